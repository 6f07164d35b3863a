"""How far columns put the rows in the same order."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.optional import slow

FloatArray: TypeAlias = NDArray[np.float64]


def rank_correlation(S: ArrayLike) -> FloatArray:
    """Return Spearman's correlation of every pair of columns.

    Parameters
    ----------
    S : array_like of shape (n, d)
        Scores of n rows by d members.

    Returns
    -------
    ndarray of shape (d, d)
        From -1 to 1; NaN for a column that is constant.

    Examples
    --------
    >>> from ocfuse.stats.correlation import rank_correlation
    >>> rank_correlation([[1.0, 30.0], [2.0, 20.0], [3.0, 10.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    ranks = slow("scipy.stats").rankdata(np.asarray(S, dtype=np.float64), axis=0)
    ranks -= ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    with np.errstate(invalid="ignore"):
        R: FloatArray = (ranks.T @ ranks) / np.outer(length, length)
    np.fill_diagonal(R, np.where(length > 0, 1.0, np.nan))
    return np.clip(R, -1.0, 1.0)
