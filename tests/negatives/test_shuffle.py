"""Laws of shuffled features."""

import numpy as np
from hypothesis import given, settings

from ocfuse.negatives import Shuffle
from tests.negatives.cases import COUNTS, TABLES


@given(X=TABLES, n=COUNTS)
@settings(deadline=None, max_examples=50)
def test_keeps_the_values_of_each_column(X, n):
    drawn = Shuffle().sample(X, n, 0)
    assert all(set(drawn[:, j]) <= set(X[:, j]) for j in range(X.shape[1]))


def test_keeps_marginals_and_unties_the_columns():
    x = np.random.default_rng(1).standard_normal(500)
    X = np.column_stack([x, x, -x])
    drawn = Shuffle().sample(X, 5000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), atol=0.05)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.06


def test_a_category_is_one_feature_with_its_shares_kept():
    levels = np.repeat([0, 1, 2], [50, 30, 20])
    X = np.column_stack([levels, np.eye(3)[levels]])
    drawn = Shuffle().sample(X, 5000, 0, source=[1, 0, 0, 0])
    np.testing.assert_array_equal(drawn[:, 1:].sum(axis=1), 1.0)
    np.testing.assert_allclose(drawn[:, 1:].mean(axis=0), [0.5, 0.3, 0.2], atol=0.03)
    tied = np.mean(drawn[:, 0] == drawn[:, 1:].argmax(axis=1))
    np.testing.assert_allclose(tied, 0.5**2 + 0.3**2 + 0.2**2, atol=0.03)
