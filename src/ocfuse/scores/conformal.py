"""Conformal thresholds and p-values: guarantees for any distribution of the scores."""

import math
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.scores.distribution import WeightedSample, tail_decay
from ocfuse.system.packages import slow
from ocfuse.validation import rate_in_open_interval, require_rows, score_vector


def whole_part(number: float) -> int:
    """Return the floor, taking 28.999999999999996 (0.29 times 100) for 29."""
    return math.floor(number * (1.0 + 1e-12))


def conformal_threshold(scores: ArrayLike, rate: float) -> tuple[float, float]:
    """Return a threshold with a guaranteed false-alarm rate on fresh normal rows.

    The offset is the k-th smallest of the n scores, k = floor(rate (n + 1)). If a fresh normal row
    is exchangeable with them (the detector saw neither), then::

        P(score < offset) <= k / (n + 1) <= rate

    with equality on the left if ties have probability 0. The probability is over the n scores and
    the fresh one together. For one given set of scores the rate differs from it, with a standard
    deviation of about sqrt(rate (1 - rate) / n).

    If n + 1 < 1 / rate, then k = 0, and no offset within the range of the scores can guarantee the
    rate. The offset is then the smallest score, which guarantees 1 / (n + 1).

    Parameters
    ----------
    scores : array_like of shape (n,)
        Scores of normal rows that the detector has not seen.
    rate : float
        False-alarm rate, in (0, 1).

    Returns
    -------
    offset : float
        Threshold: a score below it is an alarm.
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


@dataclass(frozen=True)
class Certificate:
    """Probability that a false-alarm rate holds for one calibration set.

    Parameters
    ----------
    rate : float
        The rate in question.
    mean : float
        Rate of the threshold, on average over calibration sets.
    confidence : float
        Probability, over calibration sets, with which `at_most` holds.
    at_most : float
        Upper bound of the true rate with this confidence; NaN if there is no bound.
    sureness : float
        Probability that the true rate is at most `rate`; NaN if it is unknown.
    is_exact : bool
        Whether this holds exactly: the detector has not seen the rows of the scores, as after
        `calibrate`. After `fit` each score is from a fold's detector, which differs slightly from
        the final one: the confidence is somewhat lower than stated.
    """

    rate: float
    mean: float
    confidence: float
    at_most: float
    sureness: float
    is_exact: bool

    def __str__(self) -> str:
        if math.isnan(self.at_most):
            return (
                f"{_percent(self.mean)} on average; for this model not known, as neighbouring rows "
                "of one run are alike"
            )
        nearly = ", if fresh rows score like held-out ones (sure after calibrate)"
        return (
            f"{_percent(self.mean)} on average; with {100 * self.confidence:g} % confidence at "
            f"most {_percent(self.at_most)} for this model{'' if self.is_exact else nearly}"
        )


def check_confidence(confidence: float) -> float:
    """Return a confidence, or refuse it."""
    if not 0.0 < confidence < 1.0:
        raise InvalidInputError(f"confidence must be in (0, 1), such as 0.95. Got {confidence!r}.")
    return float(confidence)


def _percent(share: float) -> str:
    """Return a share in per cent with two digits that count."""
    return f"{float(f'{100 * share:.2g}'):g} %"


class ConformalCalibrator(BaseEstimator):  # type: ignore[misc]
    """Compare scores with those of normal rows that the detector has not seen.

    Rows of one group, such as a run or a part, are alike, so groups are counted instead of rows.
    Each of the K groups has weight 1 / (K + 1), shared by its rows; so has a future group, whose
    scores may be arbitrarily low (Lee, Barber and Willett 2023). Guarantees then hold for a row of
    a fresh group, on average over groups, if groups are exchangeable. Without groups, each row is
    a group.

    If t rows far outside were left out of training, they may or may not be normal. They count as
    the lowest scores of all, but as at most half of the allowed false alarms. With n scores,
    ``k = max(floor(rate (n + t + 1)) - t, floor(rate (n + 1) / 2))``. With groups, each left-out
    row has the weight of an average row, K / n groups.

    Parameters
    ----------
    group : str, default="group"
        Name of a group in warnings and reports, such as "run".

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        The normal scores, increasing.
    weights_ : ndarray of shape (n,)
        Their weights, which add up to K.
    rates_ : ndarray of shape (n + 1,)
        Lowest rate at which each score is the offset; the last entry is 1.
    n_groups_ : int or None
        Number of groups K, if there are groups.
    n_left_out_ : int
        Number of rows left out, t.
    is_out_of_fold_ : bool
        Whether these are out-of-fold scores of training rows; guarantees then hold approximately.
    are_alike_ : bool
        Whether the scores are of neighbouring rows of one run.

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
    is_out_of_fold_: bool = True  # of models that were saved before it was known
    are_alike_: bool = False

    def __init__(self, group: str = "group") -> None:
        self.group = group

    def fit(
        self,
        normal_scores: ArrayLike,
        n_left_out: int = 0,
        groups: ArrayLike | None = None,
        *,
        is_out_of_fold: bool = False,
        are_alike: bool = False,
    ) -> "ConformalCalibrator":
        """Store the scores of held-out normal rows.

        Parameters
        ----------
        normal_scores : array_like of shape (n,)
            The scores.
        n_left_out : int, default=0
            Number of rows left out as too far outside.
        groups : array_like of shape (n,), default=None
            Group of each score; None for scores that are independent.
        is_out_of_fold : bool, default=False
            Whether these are out-of-fold scores of training rows, not of rows held out of all
            fits.
        are_alike : bool, default=False
            Whether these are scores of neighbouring, similar rows of one run. They are counted as
            rows, as there is no other run, and no bound on the rate is known.

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
        self.is_out_of_fold_, self.are_alike_ = is_out_of_fold, are_alike
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
        """Return p-values: (1 + number of normal scores that are no higher) / (n + 1).

        With groups, scores are counted with their weights, and n is K. For a fresh normal row, P(p
        <= t) <= t for every t. A p-value is at most `rate` exactly if the score is below the
        offset of `threshold(rate)`, unless that offset guarantees only a rate above `rate`. Rows
        left out of training increase p-values, at most twofold.
        """
        check_is_fitted(self)
        rank = np.searchsorted(self.scores_, score_vector(scores), side="right")
        return np.asarray(self.rates_[rank])

    def severity(self, scores: ArrayLike) -> FloatArray:
        """Return severities: higher for lower scores, without an upper bound.

        The severity is ``-log10(p)`` down to the lowest normal score v, where p is smallest. Below
        v it is extrapolated, and no longer a probability::

            -log10(p_lowest) + 2 log10(1 + (v - s) / (2 b))

        with b the mean distance of the lowest 5 % of the normal scores from their upper end. This
        tail decays as a power, as far scores are usually less rare than with an exponential one.
        One normal row in 20 reaches 1.3; one unit more is ten times as rare.

        Parameters
        ----------
        scores : array_like of shape (q,)
            Scores; higher is more normal. NaN for rows without a score.

        Returns
        -------
        ndarray of shape (q,)
            Severities, at least 0; NaN for rows without a score.

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

    def threshold(self, rate: float, confidence: float | None = None) -> tuple[float, float]:
        """Return offset and guaranteed rate; see `conformal_threshold`.

        If no offset within the range of the scores can guarantee the rate, as with K + 1 < 1 /
        rate groups, the offset is the smallest score. With `confidence`, the rate holds for these
        scores with this probability (see `certificate`); the guaranteed rate is still that on
        average, which is lower.
        """
        check_is_fitted(self)
        k = self._rank(rate_in_open_interval(rate, "rate"))
        if confidence is not None:
            level = check_confidence(confidence)
            ranks = range(1, len(self.scores_) + 1)
            held = bisect_right(ranks, rate, key=lambda i: self._held_at(i, level))
            k = max(min(k, held), 1)
        return float(self.scores_[k - 1]), float(self.rates_[k - 1])

    def _held_at(self, rank: int, confidence: float) -> float:
        """Return the rate that the score of this rank, from 1 on, holds with a confidence."""
        return self._likely_rate(self._weight_below(rank), confidence)

    def _rank(self, rate: float) -> int:
        """Return which of the scores, from 1 on, is the offset at a rate."""
        rank = int(np.searchsorted(self.rates_[:-1], rate * (1.0 + 1e-12), side="right"))
        return max(rank, 1)

    # -- how sure that is ---------------------------------------------------

    def certificate(
        self, rate: float, confidence: float = 0.95, *, offset: float | None = None
    ) -> Certificate:
        """Return the probability that a rate holds for these calibration scores.

        If the offset is the k-th smallest of n independent scores, its true rate has the
        distribution Beta(k, n + 1 - k) for any distribution of scores (with ties it is lower).
        With groups the rate is a mean of shares, one per group, and is bounded with the
        inequalities of Hoeffding and Bentkus: conservative, but without further assumptions. Rows
        left out of training count as for `threshold`.

        Parameters
        ----------
        rate : float
            The rate in question; without `offset` also the rate that the threshold is set for.
        confidence : float, default=0.95
            Probability, over calibration sets, with which the bound `at_most` holds.
        offset : float, default=None
            The threshold; None is that of `threshold`.

        Returns
        -------
        Certificate
            The bound and the probability.

        Examples
        --------
        >>> from ocfuse.scores import ConformalCalibrator
        >>> print(ConformalCalibrator().fit(range(1999)).certificate(0.01))
        1 % on average; with 95 % confidence at most 1.4 % for this model
        """
        check_is_fitted(self)
        wanted = rate_in_open_interval(rate, "rate")
        level = check_confidence(confidence)
        at = self.threshold(wanted)[0] if offset is None else offset
        rank = int(np.searchsorted(self.scores_, at, side="right"))
        if rank == 0 or self.scores_[rank - 1] < at:
            rank += 1  # between two scores; of equal ones the last counts
        below, mean = self._weight_below(rank), float(self.rates_[rank - 1])
        at_most, sureness = math.nan, math.nan
        if not self.are_alike_:
            at_most = self._likely_rate(below, level)
            sureness = self._sureness(below, wanted)
        is_exact = not (self.is_out_of_fold_ or self.n_left_out_)
        return Certificate(wanted, mean, level, at_most, sureness, is_exact)

    def _weight_below(self, rank: int) -> float:
        """Return the weight of all scores before one, counted from 1; a group weighs 1."""
        return float(self.weights_[: rank - 1].sum())

    @property
    def _counted(self) -> tuple[int, float]:
        """How many groups, or rows, there are, and how many more were left out."""
        n_rows = len(self.scores_)
        n = self.n_groups_ or n_rows
        return n, self.n_left_out_ * n / n_rows

    def _likely_rate(self, below: float, confidence: float) -> float:
        """Return the rate that is not exceeded with a confidence."""
        n, left_out = self._counted
        is_grouped = self.n_groups_ is not None
        found = _upper_bound(below + left_out, n + left_out, confidence, is_grouped)
        if left_out:
            found = min(found, 2.0 * _upper_bound(below, n, confidence, is_grouped))
        return min(found, 1.0)

    def _sureness(self, below: float, rate: float) -> float:
        """Return the confidence with which a rate is not exceeded."""
        n, left_out = self._counted
        is_grouped = self.n_groups_ is not None
        found = 1.0 - _chance_of_few(below + left_out, n + left_out, rate, is_grouped)
        if left_out:
            found = max(found, 1.0 - _chance_of_few(below, n, rate / 2.0, is_grouped))
        return found

    def share_below(self, offset: float) -> float:
        """Return the share of normal scores below an offset; all groups have the same weight."""
        check_is_fitted(self)
        return float(np.average(self.scores_ < offset, weights=self.weights_))

    def select(self, scores: ArrayLike, fdr: float) -> NDArray[np.bool_]:
        """Select anomalies of a batch with a bounded false discovery rate.

        This is the procedure of Benjamini and Hochberg on the p-values. The expected share of
        normal rows among the selected ones is at most `fdr`, if the normal rows of the batch are
        independent of each other and of the calibration rows (Bates et al. 2023); with groups, if
        they are of different groups. Unlike a score, the selection depends on the batch: a row may
        be selected in one batch and not in another. No p-value is below 1 / (n + 1), so a single
        anomaly among q rows can be selected only if n + 1 >= q / fdr, with groups K + 1 >= q /
        fdr.
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


def _chance_of_few(below: float, n: float, rate: float, is_grouped: bool) -> float:
    """Return how likely it is at most that so few of n fall below an offset of this rate.

    Of rows, the number below is binomial: exact. Of groups, the sum of their shares below is one
    of n draws between 0 and 1 whose mean is the rate.
    """
    if below >= n:
        return 1.0
    if not is_grouped:
        return float(slow("scipy.special").betainc(n - below, below + 1.0, 1.0 - rate))
    share = below / n
    if share >= rate:
        return 1.0
    distance = (1.0 - share) * math.log((1.0 - share) / (1.0 - rate))
    distance += share * math.log(share / rate) if share else 0.0
    whole = math.ceil(below - 1e-9)
    few = slow("scipy.special").betainc(max(n - whole, 1e-12), whole + 1.0, 1.0 - rate)
    return min(math.exp(-n * distance), math.e * float(few), 1.0)


def _upper_bound(below: float, n: float, confidence: float, is_grouped: bool) -> float:
    """Return the highest rate at which so few of n below the offset are not too unlikely."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        is_likely = _chance_of_few(below, n, middle, is_grouped) > 1.0 - confidence
        low, high = (middle, high) if is_likely else (low, middle)
    return high


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
