"""Anchors and the blend between them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax

from ocfuse.fusion.local_lp import blend, blend_width, default_count, find_anchors, merge_duplicates


def test_default_count():
    assert [default_count(n) for n in (1, 19, 40, 319, 320, 10**6)] == [1, 1, 2, 15, 16, 16]


def test_one_anchor_is_the_weighted_mean():
    X = np.array([[0.0, 0.0], [4.0, 8.0]])
    np.testing.assert_allclose(find_anchors(X, np.array([3.0, 1.0]), 1), [[1.0, 2.0]])


def test_anchors_are_the_centres_of_clusters():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    X = (centres[:, np.newaxis] + rng.normal(size=(3, 50, 2))).reshape(-1, 2)
    found = find_anchors(X, np.ones(len(X)), 3)
    np.testing.assert_allclose(cdist(centres, found).min(axis=1), 0.0, atol=0.6)


def test_no_more_anchors_than_distinct_rows():
    X = np.repeat([[1.0, 2.0], [3.0, 4.0], [-0.0, 0.0], [0.0, -0.0]], 10, axis=0)
    assert len(find_anchors(X, np.ones(len(X)), 8)) == 3


def test_anchors_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    order = rng.permutation(300)
    c = rng.uniform(0.5, 1.0, 300)
    np.testing.assert_array_equal(find_anchors(X, c, 7), find_anchors(X[order], c[order], 7))


def test_duplicates_are_merged_with_their_weight():
    X = np.array([[2.0], [1.0], [2.0], [1.0], [3.0]])
    rows, c = merge_duplicates(X, np.arange(1.0, 6.0))
    found = dict(zip(rows[:, 0], c, strict=True))
    assert found == {1.0: 6.0, 2.0: 4.0, 3.0: 5.0}


def test_many_rows_are_sampled():
    X = np.random.default_rng(0).normal(size=(9000, 3))
    assert find_anchors(X, np.ones(9000), 16).shape == (16, 3)


def test_blend_is_the_softmax_of_distances():
    rng = np.random.default_rng(2)
    X, A = rng.normal(size=(30, 3)) + 5, rng.normal(size=(6, 3)) + 5
    expected = softmax(-cdist(X, A, "sqeuclidean") / 0.7, axis=1)
    np.testing.assert_allclose(blend(X, A, 0.7), expected, rtol=1e-10)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e100])
def test_far_from_all_the_nearest_anchor_counts(distance):
    A = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    b = blend(distance * np.array([[1.0, 0.2], [-1.0, -1.0], [0.1, 1.0]]), A, blend_width(A))
    np.testing.assert_allclose(b, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-12)


def test_width_follows_the_spacing():
    A = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert blend_width(A) == pytest.approx(0.5)
    assert blend_width(10 * A) == pytest.approx(50.0)
    assert blend_width(A[:1]) == 1.0
    # At an anchor the next one has e^-2 of its weight.
    b = blend(A[:1], A[:2], 0.5)
    assert b[0, 1] / b[0, 0] == pytest.approx(np.exp(-2))
