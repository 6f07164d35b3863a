"""Laws of swapped features."""

import numpy as np
import pytest
from hypothesis import given, settings

from ocfuse.negatives import Swap
from tests.negatives.cases import COUNTS, TABLES


def numbered(n, m):
    """Return rows that tell which row each of their values is from."""
    return np.tile(np.arange(float(n))[:, np.newaxis], (1, m))


@given(X=TABLES, n=COUNTS)
@settings(deadline=None, max_examples=50)
def test_keeps_the_values_of_each_column_and_changes_every_row(X, n):
    drawn = Swap().sample(X, n, 0)
    assert all(set(drawn[:, j]) <= set(X[:, j]) for j in range(X.shape[1]))
    if n <= len(X) and (X[0] != X).any():
        rows = np.random.RandomState(0).permutation(len(X))[:n]
        assert (drawn != X[rows]).any(axis=1).all()


@pytest.mark.parametrize(("m", "share"), [(1, 1.0), (2, 0.75), (4, 0.375), (5, 0.3), (40, 0.3)])
def test_share_of_the_features_that_is_swapped(m, share):
    n = 4000
    drawn = Swap().sample(numbered(n, m), n, 0)
    rows = np.random.RandomState(0).permutation(n)
    swapped = drawn != rows[:, np.newaxis]
    at_least_one = share + (1.0 - share) ** m / m  # a row without any gets one
    np.testing.assert_allclose(swapped.mean(), at_least_one, atol=0.015)
    assert swapped.any(axis=1).all()


def test_constant_columns_do_not_count():
    X = np.column_stack([numbered(4000, 2), np.ones((4000, 50))])
    drawn = Swap().sample(X, 4000, 0)
    rows = np.random.RandomState(0).permutation(4000)
    swapped = (drawn != X[rows])[:, :2]
    np.testing.assert_allclose(swapped.mean(), 0.75 + 0.25**2 / 2, atol=0.015)


def test_no_row_swaps_with_itself():
    X = numbered(3, 50)
    swapped = []
    for seed in range(40):
        rows = np.random.RandomState(seed).permutation(3)
        swapped.append(Swap().sample(X, 3, seed) != X[rows])
    np.testing.assert_allclose(np.mean(swapped), 0.3, atol=0.03)


def test_swapped_features_come_from_different_rows():
    drawn = Swap().sample(numbered(100, 20), 500, 0)
    assert np.mean([len(set(row)) for row in drawn]) > 6.0


def test_keeps_marginals():
    X = np.random.default_rng(2).exponential(size=(800, 6))
    drawn = Swap().sample(X, 8000, 0)
    for q in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(
            np.quantile(drawn, q, axis=0), np.quantile(X, q, axis=0), rtol=0.05, atol=0.02
        )


def test_a_category_is_one_feature():
    levels = np.arange(3).repeat(200)
    X = np.column_stack([levels, np.eye(3)[levels]])
    drawn = Swap().sample(X, 600, 0, source=[1, 0, 0, 0])
    rows = np.random.RandomState(0).permutation(600)
    np.testing.assert_array_equal(drawn[:, 1:].sum(axis=1), 1.0)
    # two features: 0.75 of either come from another row, which has another level in 400 of 599
    changed = np.mean(drawn[:, 1:].argmax(axis=1) != levels[rows])
    forced = (1.0 - 0.75 * 400 / 599) ** 2 / 2
    np.testing.assert_allclose(changed, 0.75 * 400 / 599 + forced, atol=0.05)
