"""Guarantees on fresh normals that hold for any distribution of the scores."""

import math
from copy import copy
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.scores.distribution import WeightedSample, tail_decay
from ocfuse.validation import rate_in_open_interval, require_rows, score_vector


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
    n = len(normals)
    k = min(max(whole_part(rate_in_open_interval(rate, "rate") * (n + 1)), 1), n)
    return float(normals[k - 1]), k / (n + 1)


class ConformalCalibrator(BaseEstimator):  # type: ignore[misc]
    """Compare scores with those of normals that the detector did not see.

    Rows of one group, such as a run or a part, are alike: groups are what counts, not
    rows. Each of the K groups has weight 1 / (K + 1), shared by its rows, and so has the
    group to come, whose scores may be as low as they like (Lee, Barber and Willett 2023).
    What is promised then holds for a row of a fresh group, if groups are exchangeable, on
    average over groups. Without groups every row is one.

    If t rows were left out as too far outside, they may be normal all the same,
    or they may not. They are counted as the lowest of all, but never take more
    than half of the false alarms that may be raised: with the n scores known,
    ``k = max(floor(rate (n + t + 1)) - t, floor(rate (n + 1) / 2))``. With groups, each of
    them weighs as much as an average row, K / n groups.

    Parameters
    ----------
    group : str, default="group"
        What a group is called in warnings and reports, such as "run".

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        The normal scores, increasing.
    weights_ : ndarray of shape (n,)
        Their weights, which add up to K.
    rates_ : ndarray of shape (n + 1,)
        Lowest rate at which each score is the offset, and 1.
    n_groups_ : int or None
        Number of groups K, if there are groups.
    n_left_out_ : int
        Number of rows left out, t.

    Examples
    --------
    >>> from ocfuse.scores import ConformalCalibrator
    >>> calibrator = ConformalCalibrator().fit([1.0, 2.0, 3.0, 4.0])
    >>> calibrator.p_values([0.0, 2.5])
    array([0.2, 0.6])
    >>> by_run = ConformalCalibrator().fit([1.0, 2.0, 3.0, 4.0], groups=["a", "a", "a", "b"])
    >>> by_run.p_values([0.0, 3.5])
    array([0.33333333, 0.66666667])
    """

    scores_: FloatArray
    weights_: FloatArray
    rates_: FloatArray
    n_groups_: int | None
    n_left_out_: int

    def __init__(self, group: str = "group") -> None:
        self.group = group

    def fit(
        self, normal_scores: ArrayLike, n_left_out: int = 0, groups: ArrayLike | None = None
    ) -> "ConformalCalibrator":
        """Keep the scores of held-out normals.

        Parameters
        ----------
        normal_scores : array_like of shape (n,)
            The scores.
        n_left_out : int, default=0
            Number of rows left out as too far outside.
        groups : array_like of shape (n,), default=None
            Group of each score; None for scores that are independent.

        Returns
        -------
        ConformalCalibrator
            The fitted calibrator.
        """
        scores = require_rows(score_vector(normal_scores, "normal_scores"), "normal_scores")
        order = np.argsort(scores, kind="stable")
        self.scores_ = scores[order]
        n_groups, size = _groups_and_sizes(groups, len(scores))
        self.weights_ = 1.0 / size[order]
        self.rates_ = _rates(size[order], n_groups, n_left_out)
        self.n_groups_ = None if groups is None else n_groups
        self.n_left_out_ = n_left_out
        return self

    def rescored(self, scores: ArrayLike) -> "ConformalCalibrator":
        """Return a calibrator of the same rows with other scores, in the order of `scores_`."""
        check_is_fitted(self)
        fresh, found = copy(self), score_vector(scores)
        order = np.argsort(found, kind="stable")
        size = np.rint(1.0 / self.weights_[order]).astype(np.intp)
        fresh.scores_, fresh.weights_ = found[order], self.weights_[order]
        fresh.rates_ = _rates(size, self.n_groups_ or len(found), self.n_left_out_)
        return fresh

    def p_values(self, scores: ArrayLike) -> FloatArray:
        """Return (1 + number of normals that score no higher) / (n + 1).

        With groups these are counted by their weights, and n is K. For a fresh normal
        P(p <= t) <= t for every t. A p-value is at most `rate` exactly if the score is
        below the offset of `threshold(rate)`, unless that promises more than `rate`.
        Rows left out raise p-values, at most twofold.
        """
        check_is_fitted(self)
        rank = np.searchsorted(self.scores_, score_vector(scores), side="right")
        return np.asarray(self.rates_[rank])

    def severity(self, scores: ArrayLike) -> FloatArray:
        """Return how grave scores are: higher for lower scores, without an end.

        ``-log10(p)`` down to the lowest of the normal scores v, where p-values end; below it
        extrapolated, and no probability any more::

            -log10(p_lowest) + 2 log10(1 + (v - s) / (2 b))

        with b the mean distance of the lowest 5 % of the normal scores to their upper end: a
        tail that decays by a power, as far scores are rarely as rare as an exponential one says.
        1.3 is what one normal row in 20 reaches; one more is ten times as rare.

        Parameters
        ----------
        scores : array_like of shape (q,)
            Scores, higher = more normal; NaN where there is none.

        Returns
        -------
        ndarray of shape (q,)
            Severities, at least 0; NaN where there is no score.

        Examples
        --------
        >>> from ocfuse.scores import ConformalCalibrator
        >>> calibrator = ConformalCalibrator().fit(range(99))
        >>> calibrator.severity([50, 0, -5, -50]).round(1)
        array([0.3, 1.7, 2.6, 4.1])
        """
        check_is_fitted(self)
        values = np.asarray(scores, dtype=np.float64)
        known = ~np.isnan(values)
        found = np.full(values.shape, np.nan)
        found[known] = 0.0 - np.log10(self.p_values(values[known]))
        below = known & (values < self.scores_[0])
        if below.any():
            far = tail_decay(WeightedSample.of(self.scores_, self.weights_), values[below])
            found[below] -= np.log10(far)
        return found

    def threshold(self, rate: float) -> tuple[float, float]:
        """Return offset and guaranteed rate, as `conformal_threshold`.

        If no offset within the range of the scores can promise the rate, as with
        K + 1 < 1 / rate groups, it is the smallest score.
        """
        check_is_fitted(self)
        wanted = rate_in_open_interval(rate, "rate")
        k = int(np.searchsorted(self.rates_[:-1], wanted * (1.0 + 1e-12), side="right"))
        k = max(k, 1)
        return float(self.scores_[k - 1]), float(self.rates_[k - 1])

    def share_below(self, offset: float) -> float:
        """Return the share of the normals that score below an offset, all groups alike."""
        check_is_fitted(self)
        return float(np.average(self.scores_ < offset, weights=self.weights_))

    def select(self, scores: ArrayLike, fdr: float) -> NDArray[np.bool_]:
        """Choose rows of a batch so that few of the chosen are normal.

        Benjamini and Hochberg's procedure on the p-values. The expected share
        of normals among the chosen is at most `fdr`, if the batch's normals
        are independent of each other and of the calibration normals (Bates et
        al. 2023); with groups, if they are of different groups. Unlike a score,
        the choice is a property of the batch: a row may be chosen in one and not
        in another. No p-value is below
        1 / (n + 1), so of q rows a lone anomaly can be chosen only if
        n + 1 >= q / fdr, with groups K + 1 >= q / fdr.
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


def _groups_and_sizes(groups: ArrayLike | None, n: int) -> tuple[int, NDArray[np.intp]]:
    """Return the number of groups, and that of scores in the group of each."""
    labels = np.arange(n) if groups is None else np.asarray(groups)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"groups must name the group of each of the {n} scores. Got shape {labels.shape}."
        )
    _, group, size = np.unique(labels, return_inverse=True, return_counts=True)
    return len(size), size[group]


def _rates(size: NDArray[np.intp], n_groups: int, n_left_out: int) -> FloatArray:
    """Return the lowest rate at which each score is the offset, from the sizes of their groups.

    In whole numbers: shares such as 1/3 do not add up otherwise, and rounding must not decide.
    """
    n, unit = len(size), math.lcm(*np.unique(size).tolist())
    if unit == 1:  # the same, much faster
        rank = np.arange(1.0, n + 2.0)
        return np.minimum((rank + n_left_out) / (n + n_left_out + 1.0), 2.0 * rank / (n + 1.0))
    share = {s: unit // s for s in np.unique(size).tolist()}
    below = accumulate((share[s] for s in size.tolist()), initial=unit)
    lowest = n_left_out * n_groups * unit
    whole = ((n_groups + 1) * n + n_left_out * n_groups) * unit
    half = (n_groups + 1) * unit
    return np.array([min((k * n + lowest) / whole, 2 * k / half) for k in below])
