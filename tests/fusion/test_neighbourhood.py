"""How much a training row counts at an anchor."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.local_lp import Neighbourhood

R = np.array([[1.0, 2.0, 3.0, 4.0]])


def test_gaussian_by_hand():
    K = np.exp(-2.0 * (R / 2.0) ** 2)
    b = np.array([1.0, 1.0, 2.0, 1.0])
    expected = 5.0 * b * K / (b * K).sum()
    np.testing.assert_allclose(Neighbourhood().weigh(R, b, 2, 5.0), expected)


def test_knn_by_hand():
    hood = Neighbourhood("knn")
    b = np.array([1.0, 3.0, 9.0, 9.0])
    np.testing.assert_allclose(hood.weigh(R, b, 2, 4.0), [[1.0, 3.0, 0.0, 0.0]])
    tied = np.array([[1.0, 2.0, 2.0, 4.0]])
    np.testing.assert_allclose(hood.weigh(tied, np.ones(4), 2, 3.0), [[1.0, 1.0, 1.0, 0.0]])


@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_total_is_kept_and_nearer_counts_more(kernel, k):
    rng = np.random.default_rng(0)
    r = np.sort(rng.exponential(size=(5, 6)), axis=1)
    c = Neighbourhood(kernel).weigh(r, np.ones(6), k, 2.5)
    np.testing.assert_allclose(c.sum(axis=1), 2.5)
    assert (np.diff(c, axis=1) <= 1e-15).all()


@pytest.mark.parametrize("kernel", ["gaussian", "knn"])
def test_duplicates_and_far_anchors_stay_finite(kernel):
    hood = Neighbourhood(kernel)
    for r in ([[0.0, 0.0, 0.0]], [[0.0, 0.0, 5.0]], [[1e9, 1e9 + 1, 1e9 + 2]], [[1e-200, 1, 2]]):
        c = hood.weigh(np.array(r, dtype=float), np.ones(3), 2, 1.0)
        assert np.isfinite(c).all()
        assert c.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(hood.weigh(np.zeros((1, 3)), np.ones(3), 2, 3.0), 1.0)


def test_far_from_all_rows_the_gaussian_becomes_global():
    r = 1e6 + np.array([[0.0, 1.0, 2.0]])
    np.testing.assert_allclose(Neighbourhood().weigh(r, np.ones(3), 1, 3.0), 1.0, rtol=1e-4)


def test_scale_does_not_matter():
    rng = np.random.default_rng(0)
    r = rng.exponential(size=(4, 9))
    for hood in (Neighbourhood(), Neighbourhood("knn")):
        first = hood.weigh(r, np.ones(9), 3, 1.0)
        np.testing.assert_allclose(hood.weigh(1e5 * r, np.ones(9), 3, 1.0), first)


def test_counts():
    assert [Neighbourhood().count(n) for n in (3, 50, 100, 400)] == [3, 10, 10, 20]
    assert Neighbourhood(n_neighbors=7).count(100) == 7
    assert Neighbourhood(n_neighbors=7).count(5) == 5
    assert Neighbourhood("knn", 7).support(100) == 7
    assert Neighbourhood("gaussian", 7).support(100) == 28


@pytest.mark.parametrize(
    ("hood", "message"),
    [
        (Neighbourhood("cosine"), "kernel must be one of 'gaussian', 'knn'"),
        (Neighbourhood(n_neighbors=0), "n_neighbors must be a positive integer"),
    ],
)
def test_wrong_parameters_are_refused(hood, message):
    with pytest.raises(InvalidInputError, match=message):
        hood.check()
