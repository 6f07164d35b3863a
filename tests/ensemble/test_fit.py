"""The order of the training rows depends on their content only."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.ensemble.fit import canonical_order


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 4))
def test_any_order_of_the_rows_comes_out_the_same(seed, n, m):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, m)).astype(float)  # many equal rows
    y = rng.integers(-1, 2, n)
    shuffled = rng.permutation(n)
    first, second = canonical_order(X, y), canonical_order(X[shuffled], y[shuffled])
    np.testing.assert_array_equal(X[first], X[shuffled][second])
    np.testing.assert_array_equal(y[first], y[shuffled][second])
    assert sorted(first) == list(range(n))


@pytest.mark.parametrize("n_equal", [0, 1, 8, 12])
def test_the_first_columns_decide_as_all_do(n_equal):
    X = np.random.default_rng(0).normal(size=(60, 12))
    X[:, :n_equal] = np.round(X[:, :n_equal])
    X[:30, 0] = 0.0
    y = np.arange(60) % 7
    order = canonical_order(X, y)
    np.testing.assert_array_equal(canonical_order(X, y, first_columns=()), order)


def test_negative_zero_is_zero():
    X = np.array([[0.0], [-0.0], [0.0]])
    y = np.array([3, 2, 1])
    np.testing.assert_array_equal(canonical_order(X, y), [2, 1, 0])
