"""Thresholds: offsets from observed scores, limits from few runs, and warnings about them.

`ThresholdMixin`, `InnerThresholdMixin` and `AlarmMixin` are the methods that all detectors share.
The functions return offsets of given scores.
"""

import warnings
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError, ThresholdWarning
from ocfuse.frame_columns import in_memory
from ocfuse.scores.conformal import Certificate, ConformalCalibrator, whole_part
from ocfuse.scores.normalise import SD_PER_MAD
from ocfuse.system.packages import slow
from ocfuse.validation import (
    ANOMALY,
    NORMAL,
    label_vector,
    rate_in_open_interval,
    require_rows,
    score_vector,
)

Self = TypeVar("Self", bound="ThresholdMixin")
Outer = TypeVar("Outer", bound="InnerThresholdMixin")


class ThresholdMixin:
    """Methods of a detector whose threshold is set from held-out scores of normal rows.

    Attributes
    ----------
    conformal_ : ConformalCalibrator
        The held-out scores of `fit` or `calibrate`.
    offset_ : float
        Threshold: a lower score raises an alarm.
    threshold_rate_ : float
        False-alarm rate of the threshold.
    """

    conformal_: ConformalCalibrator
    offset_: float
    threshold_rate_: float

    def set_threshold(
        self: Self,
        false_alarm_rate: float | None = None,
        *,
        offset: float | None = None,
        confidence: float | None = None,
    ) -> Self:
        """Set the threshold of a fitted detector, without a new fit.

        Parameters
        ----------
        false_alarm_rate : float, default=None
            Share of fresh normal rows that may raise an alarm.
        offset : float, default=None
            The threshold itself, instead of a rate.
        confidence : float, default=None
            Probability, such as 0.95, with which the rate must hold for this model (see
            `certificate`). None: the rate holds on average over models.

        Returns
        -------
        object
            The detector.
        """
        check_is_fitted(self, "conformal_")
        found = settle_threshold(self.conformal_, false_alarm_rate, offset, confidence)
        self.offset_, self.threshold_rate_ = found
        return self

    def certificate(self, rate: float | None = None, confidence: float = 0.95) -> Certificate:
        """Return how certain it is that the false-alarm rate holds for this model.

        The stated rate holds on average over calibration sets. With this set the true rate may be
        higher or lower; its distribution is known (see `ConformalCalibrator.certificate`).

        Parameters
        ----------
        rate : float, default=None
            The rate; `sureness` of the result is the probability that it holds. None is
            `threshold_rate_`.
        confidence : float, default=0.95
            Probability with which the bound `at_most` of the result holds.

        Returns
        -------
        Certificate
            The bound and the probability; in words: ``print(detector.certificate())``.
        """
        check_is_fitted(self, "conformal_")
        reached = float(np.clip(self.threshold_rate_, 1e-9, 1.0 - 1e-9))
        asked = reached if rate is None else rate
        return self.conformal_.certificate(asked, confidence, offset=float(self.offset_))


class InnerThresholdMixin(ThresholdMixin):
    """The methods of `ThresholdMixin` for a detector whose `detector_` has the threshold."""

    detector_: Any

    @property
    def conformal_(self) -> ConformalCalibrator:  # type: ignore[override]
        """Held-out scores of normal rows."""
        found: ConformalCalibrator = self.detector_.conformal_
        return found

    @property
    def offset_(self) -> float:  # type: ignore[override]
        """Threshold: a lower score raises an alarm."""
        return float(self.detector_.offset_)

    @property
    def threshold_rate_(self) -> float:  # type: ignore[override]
        """False-alarm rate of the threshold."""
        return float(self.detector_.threshold_rate_)

    def set_threshold(
        self: Outer,
        false_alarm_rate: float | None = None,
        *,
        offset: float | None = None,
        confidence: float | None = None,
    ) -> Outer:
        """Set the threshold of a fitted detector, without a new fit.

        Parameters
        ----------
        false_alarm_rate : float, default=None
            Share of fresh normal rows that may raise an alarm.
        offset : float, default=None
            The threshold itself, instead of a rate.
        confidence : float, default=None
            Probability, such as 0.95, with which the rate must hold for this model (see
            `certificate`). None: the rate holds on average over models.

        Returns
        -------
        object
            The detector.
        """
        check_is_fitted(self, "detector_")
        self.detector_.set_threshold(false_alarm_rate, offset=offset, confidence=confidence)
        return self


class AlarmMixin(ThresholdMixin):
    """Alarms and p-values of a detector of rows, from its `score_samples` and its limits.

    An alarm is a score below the threshold or a value beyond a limit. P-values and the false-alarm
    rate depend on scores only.
    """

    limits_: Any = None

    def score_samples(self, X: Any, context: Any = None) -> FloatArray:
        """Return the score of every row: higher is more normal."""
        raise NotImplementedError

    def decision_function(self, X: Any, context: Any = None) -> FloatArray:
        """Return the score minus the threshold: negative raises an alarm."""
        scores = self.score_samples(X, context)
        return scores - self.offset_

    def predict(self, X: Any, context: Any = None) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for alarms; a row without a score is an alarm.

        A row that breaks a limit is an alarm, whatever its score.
        """
        if self.limits_ is None:
            return np.where(self.decision_function(X, context) >= 0, NORMAL, ANOMALY)
        rows = in_memory(X)  # a query is run once
        is_normal = self.decision_function(rows, context) >= 0
        return np.where(is_normal & (self.broken_limits(rows) == ""), NORMAL, ANOMALY)

    def broken_limits(self, X: Any) -> NDArray[np.object_]:
        """Return which limits each row breaks, such as "temp above 90"; empty for none."""
        return np.full(len(X), "", dtype=object)

    def p_values(self, X: Any, context: Any = None) -> FloatArray:
        """Return conformal p-values: how rarely a normal row scores this low."""
        scores = self.score_samples(X, context)
        return p_values_of(scores, self.conformal_)


def p_values_of(scores: FloatArray, conformal: ConformalCalibrator) -> FloatArray:
    """Return the p-values of scores; NaN where there is no score."""
    known = ~np.isnan(scores)
    p_values = np.full(len(scores), np.nan)
    if known.any():
        p_values[known] = conformal.p_values(scores[known])
    return p_values


def check_rate(rate: Any) -> None:
    """Refuse what is no false-alarm rate."""
    if not (isinstance(rate, int | float | np.number) and 0 < rate < 1):
        raise InvalidInputError(f"false_alarm_rate must be in (0, 1), such as 0.01. Got {rate!r}.")


def settle_threshold(
    conformal: ConformalCalibrator,
    rate: float | None,
    offset: float | None,
    confidence: float | None = None,
) -> tuple[float, float]:
    """Return the offset for a rate, or the given offset, and the rate of that offset.

    Warn if that is higher than the rate asked for, or does not hold with the confidence.
    """
    if (rate is None) == (offset is None):
        raise InvalidInputError("Give either false_alarm_rate or offset.")
    if rate is None:
        if confidence is not None:
            raise InvalidInputError("confidence is that of false_alarm_rate. Give both, or none.")
        if not (isinstance(offset, int | float | np.number) and np.isfinite(offset)):
            raise InvalidInputError(f"offset must be a finite number. Got {offset!r}.")
        return float(offset), conformal.share_below(float(offset))
    check_rate(rate)
    offset, reached = conformal.threshold(rate, confidence)
    if confidence is not None:
        _warn_if_unsure(conformal, rate, reached, confidence)
    elif reached > rate:
        _warn_of_few(conformal, rate, reached)
    _warn_if_tied(conformal.scores_, offset, rate)
    return offset, reached


def quantile_threshold(scores: ArrayLike, rate: float) -> float:
    """Return the largest threshold with at most a share `rate` of the scores below it.

    The share holds for the given scores only; that of `conformal_threshold` holds for fresh normal
    rows.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Scores of normal rows.
    rate : float
        Share of them that may be false alarms, in (0, 1).

    Returns
    -------
    float
        The (floor(rate n) + 1)-th smallest score.

    Examples
    --------
    >>> from ocfuse.scores import quantile_threshold
    >>> quantile_threshold([1.0, 2.0, 3.0, 4.0], 0.25)
    2.0
    """
    normals = np.sort(require_rows(score_vector(scores), "scores"))
    n_below = whole_part(rate_in_open_interval(rate, "rate") * len(normals))
    return float(normals[min(n_below, len(normals) - 1)])


def gmean_threshold(scores: ArrayLike, y: ArrayLike) -> float:
    """Return the threshold with the largest G-mean of labelled scores.

    The G-mean is sqrt(TPR TNR), where TPR is the share of normal rows with a score >= offset, and
    TNR the share of anomalies below it. The offset lies half-way between two neighbouring scores.
    Of several equally good ones the lowest is taken, which has the fewest false alarms. If all
    scores are equal, it is that score.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Higher is more normal.
    y : array_like of shape (n,)
        +1 normal, -1 anomaly; both must occur.

    Returns
    -------
    float
        The offset.

    Examples
    --------
    >>> from ocfuse.scores import gmean_threshold
    >>> gmean_threshold([1.0, 2.0, 4.0, 5.0], [-1, -1, 1, 1])
    3.0
    """
    checked = score_vector(scores)
    is_normal = label_vector(y, len(checked)) > 0
    values, position = np.unique(checked, return_inverse=True)
    if len(values) == 1:
        return float(values[0])
    # whole numbers, so that equally good places tie exactly
    normals_below = np.cumsum(np.bincount(position, weights=is_normal))[:-1]
    anomalies_below = np.cumsum(np.bincount(position, weights=~is_normal))[:-1]
    best = int(np.argmax((is_normal.sum() - normals_below) * anomalies_below))
    low, high = values[best], values[best + 1]
    middle = 0.5 * low + 0.5 * high
    # between neighbouring floats there is no middle
    return float(middle if middle > low else high)


def prediction_limit(scores: ArrayLike, false_alarm_rate: float = 0.05) -> float:
    """Return a threshold from few normal scores, by extrapolation beyond the lowest.

    It is ``median - t 1.4826 MAD sqrt(1 + 1/n)``, with t the quantile of Student's t distribution
    with n - 1 degrees of freedom: a robust prediction limit of one more Gaussian score. The lowest
    of ten scores stands for a rate of 9 %; lower rates need extrapolation. The tail is inferred
    from median and spread, so prefer `FusedDetector.set_threshold` if there are at least
    ``1 / false_alarm_rate`` scores.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Held-out scores of normal runs, such as `training_scores_`; NaN is left out.
    false_alarm_rate : float, default=0.05
        Share of fresh normal runs that may score lower.

    Returns
    -------
    float
        The threshold, for `FusedDetector.set_threshold(offset=...)`.

    Examples
    --------
    >>> from ocfuse.scores import prediction_limit
    >>> round(prediction_limit([0.1, 0.3, -0.2, 0.0, -0.1, -4.0]), 2)
    -0.53
    """
    if not 0 < false_alarm_rate < 0.5:
        raise InvalidInputError(
            f"false_alarm_rate must be in (0, 0.5), such as 0.05. Got {false_alarm_rate!r}."
        )
    values = np.asarray(scores, dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 3:
        raise InvalidInputError(f"At least 3 scores are needed to tell their spread. Got {n}.")
    middle = np.median(values)
    spread = SD_PER_MAD * np.median(np.abs(values - middle))
    quantile = slow("scipy.stats").t.ppf(1.0 - false_alarm_rate, n - 1)
    return float(middle - quantile * spread * np.sqrt(1.0 + 1.0 / n))


def warn_if_many_left_out(n_left_out: int, n: int, rate: float) -> None:
    """Warn that rows left out may be more than the threshold allows for."""
    if n_left_out > rate * (n + n_left_out) / 2:
        warnings.warn(
            f"{n_left_out} of {n + n_left_out} training rows are far outside and were not learned "
            "from (trimmed_rows_). If they are normal, say so with y = +1: otherwise rows like "
            "them raise alarms beyond the stated rate.",
            ThresholdWarning,
            stacklevel=5,
        )


def _warn_of_few(conformal: ConformalCalibrator, rate: float, reached: float) -> None:
    """Warn that the normal rows, or their groups, are too few for the rate."""
    n, least = conformal.n_groups_, int(np.ceil(1 / rate)) - 1
    who = f"{len(conformal.scores_)} normal rows are"
    advice = f"Use more rows: at least {least}, and twice as many if some were left out."
    if n is not None:
        name = conformal.group
        one = f"One {name} cannot tell how {name}s differ, and is"
        who = one if n == 1 else f"{n} {name}s are"
        twice = ", and twice as many if rows were left out" if conformal.n_left_out_ else ""
        lowest = np.ceil(1e3 * reached) / 1e3
        advice = f"Use at least {least} {name}s{twice}; or a rate of at least {lowest:g}"
        # runs are never independent rows
        alone = "; or, if rows of one group are independent, calibrate without groups"
        advice += f"{alone}." if name == "group" else "."
    warnings.warn(
        f"{who} too few for false_alarm_rate={rate:g}: the threshold is at their lowest score, "
        f"which stands for {reached:.3g}. {advice}",
        FewSamplesWarning,
        stacklevel=5,
    )


def _warn_if_unsure(
    conformal: ConformalCalibrator, rate: float, reached: float, confidence: float
) -> None:
    """Warn that the rate cannot be held with the confidence."""
    at_most = conformal.certificate(reached, confidence).at_most
    if at_most <= rate * (1.0 + 1e-9):
        return
    if conformal.are_alike_:
        raise InvalidInputError(
            "The threshold rests on neighbouring rows of one run, which are alike: with what "
            "confidence a rate holds is not known. Calibrate on several runs, or leave confidence "
            "out."
        )
    least = int(np.ceil(np.log(1.0 - confidence) / np.log(1.0 - rate)))
    name = "normal row" if conformal.n_groups_ is None else conformal.group
    warnings.warn(
        f"{conformal.n_groups_ or len(conformal.scores_)} {name}s are too few for "
        f"false_alarm_rate={rate:g} with confidence {confidence:g}: the threshold is at the lowest "
        f"score, and the rate at most {at_most:.3g}. Use at least {least} {name}s, more if some "
        "were left out.",
        FewSamplesWarning,
        stacklevel=5,
    )


def _warn_if_tied(scores: FloatArray, offset: float, rate: float) -> None:
    """Warn that many normal rows share the lowest score, so that few alarms can be raised."""
    lowest = int(np.sum(scores == scores[0]))
    if offset == scores[0] and lowest > 1 and lowest / len(scores) > rate:
        warnings.warn(
            f"{lowest} of {len(scores)} normal rows share the lowest score: only a row that "
            "scores lower still raises an alarm. Raise false_alarm_rate, or use a fusion with "
            "finer scores than votes.",
            ThresholdWarning,
            stacklevel=5,
        )
