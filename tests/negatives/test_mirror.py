"""Laws of the mirror."""

import numpy as np
from hypothesis import given, settings

from ocfuse.negatives import Mirror
from tests.negatives.cases import COUNTS, TABLES, normals


@given(X=TABLES, n=COUNTS)
@settings(deadline=None, max_examples=50)
def test_twice_the_mean_minus_a_row(X, n):
    drawn = Mirror().sample(X, n, 0)
    mirrored = 2.0 * X.mean(axis=0) - X
    tol = 1e-12 * max(1.0, np.abs(X).max())
    distance = np.abs(drawn[:, np.newaxis] - mirrored).max(axis=2)
    assert distance.min(axis=1).max() <= tol


def test_all_rows_are_used_before_one_is_repeated():
    X = normals(20)
    mirrored = 2.0 * X.mean(axis=0) - X
    drawn = Mirror().sample(X, 50, 0)
    source = np.abs(drawn[:, np.newaxis] - mirrored).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(np.sort(source[:20]), np.arange(20))
    np.testing.assert_array_equal(np.sort(source[20:40]), np.arange(20))
    assert len(set(source[40:])) == 10
    assert not np.array_equal(source[:20], source[20:40])
