"""Data of a report: plain arrays and texts, other thresholds, trust in the stated rate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.explain import Explanation, Reading
from ocfuse.report.timeline import ChannelCourse
from ocfuse.scores import ConformalCalibrator, conformal_threshold
from ocfuse.system.packages import slow


@dataclass(frozen=True)
class Embedding:
    """Rows as points of a plane, with the weights of the d members there.

    Attributes
    ----------
    points : ndarray of shape (k, 2)
        Where the rows lie.
    is_new : ndarray of shape (k,)
        Whether a point is a row of the report; the others are training rows.
    rows : ndarray of shape (k,)
        Positions of the rows in their table.
    scores : ndarray of shape (k,)
        Fused scores, those of training rows held out.
    weights : ndarray of shape (k, d)
        How far each member is trusted there.
    local_p : ndarray of shape (k,)
        Norm of the ball around the weights; NaN if the fusion has none.
    """

    points: FloatArray
    is_new: NDArray[np.bool_]
    rows: IntArray
    scores: FloatArray
    weights: FloatArray
    local_p: FloatArray


@dataclass(frozen=True)
class GroupAlarms:
    """Alarms among the rows of one group, such as a machine.

    Between `low` and `high` its rate of alarms lies with a confidence of 90 %.
    """

    name: str
    n_rows: int
    n_alarms: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """Share of its rows that raise an alarm."""
        return self.n_alarms / self.n_rows


def count_by_group(names: list[str], is_alarm: NDArray[np.bool_]) -> list[GroupAlarms]:
    """Count the alarms of every group; those whose rate is surely highest come first."""
    known, place = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    n = np.bincount(place)
    alarms = np.bincount(place[is_alarm], minlength=len(known))
    beta = slow("scipy.stats").beta
    low = np.where(alarms > 0, beta.ppf(0.05, np.maximum(alarms, 1), n - alarms + 1), 0.0)
    high = np.where(alarms < n, beta.ppf(0.95, alarms + 1, np.maximum(n - alarms, 1)), 1.0)
    order = np.lexsort((known, -alarms / n, -low))
    return [
        GroupAlarms(str(known[i]), int(n[i]), int(alarms[i]), float(low[i]), float(high[i]))
        for i in order
    ]


@dataclass(frozen=True)
class ReportData:
    """Data of a report on n rows.

    Attributes
    ----------
    title : str
        Title of the page.
    scores : ndarray of shape (n,)
        Fused scores; higher is more normal.
    ids : list of str
        Names of the rows.
    offset : float
        Threshold: a lower score raises an alarm.
    wanted_rate : float
        False-alarm rate that the detector was fitted for.
    calibrator : ConformalCalibrator
        Held-out scores of normal rows, which set the threshold and p-values.
    held_out_scores : ndarray
        Held-out scores of the training rows that were learned, in their order.
    rows : ndarray of shape (r,)
        Positions of the rows that are explained, the lowest score first.
    explanation : Explanation
        Explanation of these rows.
    readings : list of list of Reading
        Features of these rows, the most unusual first.
    embedding : Embedding
        Training rows and rows of the report on a map.
    agreement : ndarray of shape (d, d) or None
        Rank correlation of the members on the rows of the report; None if these
        are too few.
    card : dict of str
        Lines of the data and model card.
    remarks : list of str
        Remarks on the training rows and the members.
    labels : ndarray of shape (n,) or None
        +1 normal, -1 anomaly, 0 unknown.
    times : ndarray of shape (n,) or None
        Numbers, or milliseconds since 1970 if `is_date`; NaN for rows without one.
    is_date : bool
        Whether the times are dates.
    channels : tuple of ChannelCourse
        Channels of a stream that matter most, the first one most.
    channel_readings : dict of int to str
        Values of the channels by the position of an explained row of a stream.
    events : list of ndarray or None
        Rows of each event of a stream; None joins consecutive alarms.
    by_group : list of GroupAlarms
        Alarms by group, if numbers are compared with the usual values of the group.
    """

    title: str
    scores: FloatArray
    ids: list[str]
    offset: float
    wanted_rate: float
    calibrator: ConformalCalibrator
    held_out_scores: FloatArray
    rows: IntArray
    explanation: Explanation
    readings: list[list[Reading]]
    embedding: Embedding
    agreement: FloatArray | None
    card: dict[str, str]
    remarks: list[str]
    labels: NDArray[np.int64] | None = None
    times: FloatArray | None = None
    is_date: bool = False
    channels: tuple[ChannelCourse, ...] = ()
    channel_readings: Mapping[int, str] = field(default_factory=dict)
    events: list[IntArray] | None = None
    by_group: list[GroupAlarms] = field(default_factory=list)

    @property
    def normal_scores(self) -> FloatArray:
        """Held-out scores of normal rows that set the threshold, increasing."""
        return self.calibrator.scores_

    @property
    def n_groups(self) -> int | None:
        """Groups of these rows, if the threshold counts groups."""
        return self.calibrator.n_groups_

    @property
    def n_independent(self) -> int:
        """How many independent draws the threshold rests on: groups, or else rows."""
        return len(self.normal_scores) if self.n_groups is None else self.n_groups

    @cached_property
    def p_values(self) -> FloatArray:
        """Conformal p-values of the rows."""
        return self.calibrator.p_values(self.scores)

    def rates_at(self, thresholds: FloatArray) -> FloatArray:
        """Return the false-alarm rates that thresholds stand for."""
        # an alarm is a score strictly below the threshold
        return self.calibrator.p_values(np.nextafter(thresholds, -np.inf))

    @cached_property
    def threshold_rate(self) -> float:
        """False-alarm rate that the detector's own threshold stands for: the reachable one."""
        return float(self.rates_at(np.array([self.offset]))[0])

    @property
    def stated_rate(self) -> float:
        """False-alarm rate that was asked for; of a threshold set since, the one it stands for."""
        as_fitted, _ = self.calibrator.threshold(self.wanted_rate)
        return self.wanted_rate if self.offset == as_fitted else self.threshold_rate

    @property
    def n_groups_above(self) -> int:
        """Number of groups with more alarms than by chance in one of 100 at the stated rate."""
        alarms = np.array([group.n_alarms for group in self.by_group])
        rows = np.array([group.n_rows for group in self.by_group])
        return int(np.sum(slow("scipy.stats").binom.sf(alarms - 1, rows, self.stated_rate) < 0.01))

    @property
    def may_be_normal(self) -> NDArray[np.bool_]:
        """Which rows no label calls an anomaly."""
        n = len(self.scores)
        return np.ones(n, dtype=bool) if self.labels is None else self.labels >= 0

    @property
    def is_alarm(self) -> NDArray[np.bool_]:
        """Which rows raise an alarm."""
        return self.scores < self.offset


@dataclass(frozen=True)
class Thresholds:
    """Increasing thresholds, their false-alarm rates, and the rows that would raise an alarm.

    Of these, `found` are labelled anomalies and `wrong` are labelled normal; None without
    labels. `start` is the position of the detector's own threshold.
    """

    values: FloatArray
    rates: FloatArray
    alarms: IntArray
    found: IntArray | None
    wrong: IntArray | None
    start: int


def tabulate(data: ReportData) -> Thresholds:
    """Count the alarms at every position of the slider."""
    normal = data.normal_scores
    # finer where alarms are rare, up to where half of the normal rows would raise one
    last = max(len(normal) // 2, 1)
    ranks = np.unique(np.geomspace(1, last, min(160, last)).round().astype(np.intp)) - 1
    # below all normal rows, evenly in the logarithm of the distance from the lowest
    lowest = min(normal[0], data.scores.min())
    below = normal[0] - np.expm1(np.linspace(0, np.log1p(normal[0] - lowest), 40))
    below[-1] = lowest  # rounding must not put it above
    values = np.unique(np.concatenate([normal[ranks], below, [data.offset]]))
    found = wrong = None
    if data.labels is not None:
        found = _count_below(data.scores[data.labels < 0], values)
        wrong = _count_below(data.scores[data.labels > 0], values)
    return Thresholds(
        values=values,
        rates=data.rates_at(values),
        alarms=_count_below(data.scores, values),
        found=found,
        wrong=wrong,
        start=int(np.searchsorted(values, data.offset)),
    )


def _count_below(scores: FloatArray, values: FloatArray) -> IntArray:
    return np.searchsorted(np.sort(scores), values, side="left")


@dataclass(frozen=True)
class Trust:
    """Stated rates beside those that were measured; NaN where nothing can be said.

    Between `low` and `high` the true rate lies in 9 of 10 draws of as many normal rows, or
    groups of them. `held_out` is the rate on each half of the training rows by the threshold of
    the other, `fresh` the share of the rows of the report that would raise an alarm: of those
    that are labelled normal, if there are some, and else of those not labelled anomaly.
    """

    rates: FloatArray
    low: FloatArray
    high: FloatArray
    held_out: FloatArray
    fresh: FloatArray


def compare_rates(data: ReportData) -> Trust:
    """Compare stated rates with measured ones."""
    rates = np.round(np.geomspace(0.005, 0.5, 25), 5)
    n = data.n_independent
    k = np.clip(np.floor(rates * (n + 1)), 1, n)
    # the true rate below the k-th smallest of n scores is a Beta variable
    covered = 0.9
    tails = [[(1 - covered) / 2], [(1 + covered) / 2]]
    low, high = slow("scipy.stats").beta.ppf(tails, k, n + 1 - k)
    reached = n + 1 >= 1 / rates
    p_values = judged_normal(data)
    fresh = [np.mean(p_values <= rate) if len(p_values) else np.nan for rate in rates]
    return Trust(
        rates=rates,
        low=np.where(reached, low, np.nan),
        high=np.where(reached, high, np.nan),
        held_out=_halves(data.held_out_scores, rates),
        fresh=np.array(fresh),
    )


def judged_normal(data: ReportData) -> FloatArray:
    """Return the p-values of rows labelled normal, or of all that may be if none is."""
    if data.labels is None or not has_normals(data):
        return data.p_values[data.may_be_normal]
    return data.p_values[data.labels > 0]


def whose(data: ReportData) -> str:
    """Say which rows the measured rate is of."""
    if has_normals(data):
        return "rows labelled normal"
    return "rows of this report" if data.may_be_normal.all() else "rows not labelled anomaly"


def has_normals(data: ReportData) -> bool:
    """Return whether some rows are labelled normal."""
    return data.labels is not None and bool((data.labels > 0).any())


def count_p_values(p_values: FloatArray, n_bins: int = 20) -> list[int]:
    """Count p-values in bars of equal width; those of normal rows are even."""
    counts, _ = np.histogram(p_values, bins=n_bins, range=(0.0, 1.0))
    return [int(count) for count in counts]


def _halves(scores: FloatArray, rates: FloatArray, fewest: int = 10) -> FloatArray:
    """Judge the first half of the rows by the second, and the second by the first."""
    first, second = np.array_split(scores, 2)
    n = min(len(first), len(second))
    measured = np.full(len(rates), np.nan)
    if n < fewest:
        return measured
    for i in np.flatnonzero(n + 1 >= 1 / rates):
        by_first, _ = conformal_threshold(first, rates[i])
        by_second, _ = conformal_threshold(second, rates[i])
        measured[i] = (np.mean(second < by_first) + np.mean(first < by_second)) / 2
    return measured
