"""Guarantees on fresh normals that hold for any distribution of the scores."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ocfuse.scores.checks import FloatArray, rate_in_open_interval, require_rows, score_vector


def whole_part(number: float) -> int:
    """Return the floor, taking 28.999999999999996 (0.29 times 100) for 29."""
    return math.floor(number * (1.0 + 1e-12))


def conformal_threshold(scores: ArrayLike, rate: float) -> tuple[float, float]:
    """Return an offset that holds its false-alarm rate on fresh normals.

    The offset is the k-th smallest of the n scores, k = floor(rate (n + 1)). If
    a fresh normal is exchangeable with them (the detector saw neither), then::

        P(score < offset) <= k / (n + 1) <= rate

    with equality on the left if ties have probability 0. The probability is
    over the n scores and the fresh one together: with one given set of scores
    the rate varies around it, with a standard deviation near
    sqrt(rate (1 - rate) / n).

    If n + 1 < 1 / rate then k = 0, and no offset within the range of the scores
    can promise the rate. The offset is then the smallest score, which promises
    1 / (n + 1), more than the rate.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Scores of normals that the detector did not see.
    rate : float
        Wanted false-alarm rate, in (0, 1).

    Returns
    -------
    offset : float
        An alarm is score < offset.
    guaranteed_rate : float
        The bound max(k, 1) / (n + 1); above `rate` only if n + 1 < 1 / rate.

    Examples
    --------
    >>> from ocfuse.scores import conformal_threshold
    >>> conformal_threshold([5.0, 1.0, 4.0, 2.0], 0.4)
    (2.0, 0.4)
    >>> conformal_threshold([5.0, 1.0, 4.0, 2.0], 0.05)
    (1.0, 0.2)
    """
    normals = np.sort(require_rows(score_vector(scores), "scores"))
    return _kth_smallest(normals, rate_in_open_interval(rate, "rate"))


class ConformalCalibrator(BaseEstimator):  # type: ignore[misc]
    """Compare scores with those of normals that the detector did not see.

    If t rows were left out as too far outside, they may be normal all the same,
    or they may not. They are counted as the lowest of all, but never take more
    than half of the false alarms that may be raised: with the n scores known,
    ``k = max(floor(rate (n + t + 1)) - t, floor(rate (n + 1) / 2))``.

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        The normal scores, increasing.
    n_left_out_ : int
        Number of rows left out, t.

    Examples
    --------
    >>> from ocfuse.scores import ConformalCalibrator
    >>> calibrator = ConformalCalibrator().fit([1.0, 2.0, 3.0, 4.0])
    >>> calibrator.p_values([0.0, 2.5])
    array([0.2, 0.6])
    """

    scores_: FloatArray
    n_left_out_: int

    def fit(self, normal_scores: ArrayLike, n_left_out: int = 0) -> "ConformalCalibrator":
        """Keep the scores of held-out normals, shape (n,), and count the rows left out."""
        scores = score_vector(normal_scores, "normal_scores")
        self.scores_ = np.sort(require_rows(scores, "normal_scores"))
        self.n_left_out_ = n_left_out
        return self

    def p_values(self, scores: ArrayLike) -> FloatArray:
        """Return (1 + number of normals that score no higher) / (n + 1).

        For a fresh normal P(p <= t) <= t for every t. A p-value is at most
        `rate` exactly if the score is below the offset of `threshold(rate)`,
        unless n + 1 < 1 / rate. Rows left out raise p-values, at most twofold.
        """
        check_is_fitted(self)
        rank = np.searchsorted(self.scores_, score_vector(scores), side="right")
        return self._rate_of(rank + 1)

    def threshold(self, rate: float) -> tuple[float, float]:
        """Return offset and guaranteed rate, as `conformal_threshold`."""
        check_is_fitted(self)
        wanted = rate_in_open_interval(rate, "rate")
        n, t = len(self.scores_), self.n_left_out_
        k = max(whole_part(wanted * (n + t + 1)) - t, whole_part(wanted * (n + 1) / 2), 1)
        k = min(k, n)
        return float(self.scores_[k - 1]), float(self._rate_of(k))

    def _rate_of(self, k: int | NDArray[np.integer]) -> FloatArray:
        """Return the lowest rate at which the k-th smallest score is the offset."""
        n, t = len(self.scores_), self.n_left_out_
        return np.asarray(np.minimum((k + t) / (n + t + 1.0), 2.0 * k / (n + 1.0)))

    def select(self, scores: ArrayLike, fdr: float) -> NDArray[np.bool_]:
        """Choose rows of a batch so that few of the chosen are normal.

        Benjamini and Hochberg's procedure on the p-values. The expected share
        of normals among the chosen is at most `fdr`, if the batch's normals
        are independent of each other and of the calibration normals (Bates et
        al. 2023). Unlike a score, the choice is a property of the batch: a row
        may be chosen in one and not in another. No p-value is below
        1 / (n + 1), so of q rows a lone anomaly can be chosen only if
        n + 1 >= q / fdr.
        """
        level = rate_in_open_interval(fdr, "fdr")
        p_values = self.p_values(scores)
        count = len(p_values)
        # rounding must not decide about equality with the bound
        bound = level * np.arange(1, count + 1) / max(count, 1) * (1.0 + 1e-12)
        passed = np.flatnonzero(np.sort(p_values) <= bound)
        if len(passed) == 0:
            return np.zeros(count, dtype=np.bool_)
        return np.asarray(p_values <= bound[passed[-1]])


def _kth_smallest(normals: FloatArray, rate: float) -> tuple[float, float]:
    n = len(normals)
    k = min(max(whole_part(rate * (n + 1)), 1), n)
    return float(normals[k - 1]), k / (n + 1)
