"""Every search gives the same neighbours, ties and duplicates included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from ocfuse.nearest.exact import nearest_by_matrix, nearest_by_tree, without_self


def by_definition(X, Y, k):
    gaps = Y[None] - X[:, None]
    squares = np.einsum("qnm,qnm->qn", gaps, gaps)
    index = np.lexsort((np.broadcast_to(np.arange(len(Y)), squares.shape), squares))[:, :k]
    return np.take_along_axis(squares, index, axis=1), index


def rounded_distances(X, Y):
    centre = Y.mean(axis=0)
    A, B = X - centre, Y - centre
    norms = np.einsum("qm,qm->q", A, A)
    D = norms[:, None] + np.einsum("nm,nm->n", B, B) - 2 * A @ B.T
    return np.maximum(D, 0.0), norms


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    m=st.integers(1, 6),
    k=st.integers(1, 60),
    levels=st.sampled_from([2, 5, None]),
    offset=st.sampled_from([0.0, 1e6]),
)
@settings(max_examples=150, deadline=None)
def test_searches_agree_with_the_definition(seed, n, m, k, levels, offset):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n + 7, m)) if levels is None else rng.integers(levels, size=(n + 7, m))
    X, Y = Z[:7] + offset, Z[7:] + offset
    k = min(k, n)
    expected = by_definition(X, Y, k)
    D, norms = rounded_distances(X, Y)
    for squares, index in (
        nearest_by_matrix(D, X, norms, Y, k),
        nearest_by_tree(cKDTree(Y), X, Y, k),
    ):
        np.testing.assert_array_equal(index, expected[1])
        np.testing.assert_array_equal(squares, expected[0])


@pytest.mark.parametrize("levels", [2, 5, None])
@pytest.mark.parametrize("k", [1, 20, 299, 300])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_bound_drops_no_neighbour(levels, k, offset):
    # so many rows that few are looked at closely, unless most are asked for
    rng = np.random.default_rng(k)
    Z = rng.normal(size=(330, 4)) if levels is None else rng.integers(levels, size=(330, 4))
    X, Y = Z[:30] + offset, Z[30:] + offset
    D, norms = rounded_distances(X, Y)
    for found, expected in zip(
        nearest_by_matrix(D, X, norms, Y, k), by_definition(X, Y, k), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_wrong_order_of_the_fast_search_is_repaired():
    Y = np.array([[0.0], [1e-9], [2e-9], [1e8]]).repeat(5, axis=0)
    X = np.array([[0.0]])
    D, norms = rounded_distances(X, Y)
    D[0, :15] = np.arange(15)[::-1] * 1e-3  # all within the rounding of the large row
    squares, index = nearest_by_matrix(D, X, norms, Y, 3)
    np.testing.assert_array_equal(index, [[0, 1, 2]])
    np.testing.assert_array_equal(squares, 0.0)


@pytest.mark.parametrize("copies", [2, 30])
def test_self_is_dropped_and_its_duplicates_are_not(copies):
    Y = np.repeat(np.arange(3.0)[:, None], copies, axis=0)
    D, norms = rounded_distances(Y, Y)
    _, index = without_self(nearest_by_matrix(D, Y, norms, Y, copies))
    assert index.shape == (len(Y), copies - 1)
    assert not np.any(index == np.arange(len(Y))[:, None])
    assert np.all(index // copies == np.arange(len(Y))[:, None] // copies)
