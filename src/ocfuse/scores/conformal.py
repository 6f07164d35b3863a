"""Guarantees on fresh normals that hold for any distribution of the scores."""

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


@dataclass(frozen=True)
class Certificate:
    """How surely a false-alarm rate holds for one calibration set, not only on average.

    Parameters
    ----------
    rate : float
        The rate asked about.
    mean : float
        Rate of the threshold on average over calibration sets.
    confidence : float
        Probability, over calibration sets, with which `at_most` holds.
    at_most : float
        Rate that fresh normals do not exceed with this confidence; NaN if nothing can be said.
    sureness : float
        Confidence with which they do not exceed `rate`; NaN if nothing can be said.
    is_exact : bool
        The detector has seen none of the scores (`calibrate`). After `fit`, each is of a
        detector that has not seen it but is not quite the final one, and all this holds nearly.
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
        nearly = "" if self.is_exact else " (nearly: exact after calibrate)"
        return (
            f"{_percent(self.mean)} on average; with {100 * self.confidence:g} % confidence at "
            f"most {_percent(self.at_most)} for this model{nearly}"
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
    is_out_of_fold_ : bool
        The scores are out-of-fold scores of training rows: what is promised holds nearly.
    are_alike_ : bool
        The scores are of neighbouring rows of one run.

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
        """Keep the scores of held-out normals.

        Parameters
        ----------
        normal_scores : array_like of shape (n,)
            The scores.
        n_left_out : int, default=0
            Number of rows left out as too far outside.
        groups : array_like of shape (n,), default=None
            Group of each score; None for scores that are independent.
        is_out_of_fold : bool, default=False
            They are out-of-fold scores of training rows, not of rows that were held out for good.
        are_alike : bool, default=False
            They are of neighbouring rows of one run, and count although they are alike: there is
            no other run. How surely the rate holds is then not known.

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

    def threshold(self, rate: float, confidence: float | None = None) -> tuple[float, float]:
        """Return offset and guaranteed rate, as `conformal_threshold`.

        If no offset within the range of the scores can promise the rate, as with
        K + 1 < 1 / rate groups, it is the smallest score. With a confidence, the rate is to hold
        for these scores with this probability, as `certificate` has it, and the guaranteed rate
        is still the one on average, which is lower.
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
        """Return how surely a rate holds for these very scores.

        With n scores of independent rows, the rate of the k-th smallest as offset is a draw of
        Beta(k, n + 1 - k), whatever the distribution (at most that, with ties). With groups it
        is the mean of shares between 0 and 1, one per group, and bounded by the inequalities of
        Hoeffding and Bentkus: conservative, but without further assumptions. Rows left out count
        as for `threshold`.

        Parameters
        ----------
        rate : float
            The rate asked about; without an offset the one that it is set for.
        confidence : float, default=0.95
            Probability, over calibration sets, with which `at_most` shall hold.
        offset : float, default=None
            The threshold; None is that of `threshold`.

        Returns
        -------
        Certificate
            What holds.

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
