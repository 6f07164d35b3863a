"""Data of a report: plain arrays and texts, other thresholds, trust in the stated rate."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.explain import Explanation, Reading
from ocfuse.scores import ConformalCalibrator, conformal_threshold
from ocfuse.system.packages import slow

#: Positions of the slider above and below the lowest normal score.
N_WITHIN, N_BELOW = 160, 40
#: The slider ends where so many normal rows would raise an alarm.
HIGHEST_RATE = 0.5

#: Stated rates at which the others are shown.
RATES = np.round(np.geomspace(0.005, 0.5, 25), 5)
#: Fewest rows of each half by which the other is judged.
FEWEST_HALF = 10
#: Share of the draws of normal rows that the band covers.
COVERED = 0.9
N_P_BINS = 20


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
class ReportData:
    """All that a report shows of n rows.

    Attributes
    ----------
    title : str
        Title of the page.
    scores : ndarray of shape (n,)
        Fused scores; higher is more normal.
    ids : list of str
        What to call the rows.
    offset : float
        Threshold: a lower score raises an alarm.
    wanted_rate : float
        False-alarm rate that the detector was fitted for.
    calibrator : ConformalCalibrator
        Held-out scores of normal rows, which the threshold and p-values rest on.
    held_out_scores : ndarray
        Held-out scores of the training rows that were learned, in their order.
    rows : ndarray of shape (r,)
        Positions of the rows that are explained, the lowest score first.
    explanation : Explanation
        Of these rows.
    readings : list of list of Reading
        Of these rows, the most unusual feature first.
    embedding : Embedding
        Training rows and rows of the report on a map.
    agreement : ndarray of shape (d, d) or None
        Rank correlation of the members on the rows of the report; None if these
        are too few.
    card : dict of str
        Lines of the data and model card.
    remarks : list of str
        What the user should know about the training rows and the members.
    labels : ndarray of shape (n,) or None
        +1 normal, -1 anomaly, 0 unknown.
    times : ndarray of shape (n,) or None
        Numbers, or milliseconds since 1970 if `is_date`; NaN for rows without one.
    is_date : bool
        Whether the times are dates.
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

    @property
    def normal_scores(self) -> FloatArray:
        """Held-out scores of normal rows that the threshold rests on, increasing."""
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
    """Alarms at increasing thresholds, counted over all rows.

    Attributes
    ----------
    values, rates : ndarray of shape (k,)
        Thresholds and their false-alarm rates.
    alarms : ndarray of shape (k,)
        Rows that would raise an alarm.
    found, wrong : ndarray of shape (k,) or None
        Those among them that are labelled anomalies, and normal; None without labels.
    start : int
        Position of the detector's own threshold.
    """

    values: FloatArray
    rates: FloatArray
    alarms: IntArray
    found: IntArray | None
    wrong: IntArray | None
    start: int


def tabulate(data: ReportData) -> Thresholds:
    """Count the alarms at every position of the slider."""
    values = _positions(data)
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


def _positions(data: ReportData) -> FloatArray:
    """Return thresholds: finer where alarms are rare, and some below all normal rows."""
    normal = data.normal_scores
    n = len(normal)
    last = max(int(HIGHEST_RATE * n), 1)
    ranks = np.unique(np.geomspace(1, last, min(N_WITHIN, last)).round().astype(np.intp)) - 1
    lowest = min(normal[0], data.scores.min())
    # evenly in the logarithm of the distance from the lowest normal score
    below = normal[0] - np.expm1(np.linspace(0, np.log1p(normal[0] - lowest), N_BELOW))
    return np.unique(np.concatenate([normal[ranks], below, [data.offset]]))


def _count_below(scores: FloatArray, values: FloatArray) -> IntArray:
    return np.searchsorted(np.sort(scores), values, side="left")


@dataclass(frozen=True)
class Trust:
    """Stated rates beside those that were measured; NaN where nothing can be said.

    Attributes
    ----------
    rates : ndarray of shape (k,)
        Stated rates.
    low, high : ndarray of shape (k,)
        Where the true rate lies in 9 of 10 draws of as many normal rows, or groups of them.
    held_out : ndarray of shape (k,)
        Rate on each half of the training rows, by the threshold of the other.
    fresh : ndarray of shape (k,)
        Share of the rows of the report that would raise an alarm: of those that are
        labelled normal, if there are some, and else of those not labelled anomaly.
    """

    rates: FloatArray
    low: FloatArray
    high: FloatArray
    held_out: FloatArray
    fresh: FloatArray


def compare_rates(data: ReportData) -> Trust:
    """Compare stated rates with measured ones."""
    n = data.n_independent
    k = np.clip(np.floor(RATES * (n + 1)), 1, n)
    # the true rate below the k-th smallest of n scores is a Beta variable
    tails = [[(1 - COVERED) / 2], [(1 + COVERED) / 2]]
    low, high = slow("scipy.stats").beta.ppf(tails, k, n + 1 - k)
    reached = n + 1 >= 1 / RATES
    return Trust(
        rates=RATES,
        low=np.where(reached, low, np.nan),
        high=np.where(reached, high, np.nan),
        held_out=_halves(data.held_out_scores),
        fresh=_shares(judged_normal(data)),
    )


def judged_normal(data: ReportData) -> FloatArray:
    """Return the p-values of rows labelled normal, or of all that may be if none is."""
    if data.labels is None or not has_normals(data):
        return data.p_values[data.may_be_normal]
    return data.p_values[data.labels > 0]


def _shares(p_values: FloatArray) -> FloatArray:
    """Return the share of p-values up to each rate."""
    if not len(p_values):
        return np.full(len(RATES), np.nan)
    return np.array([np.mean(p_values <= rate) for rate in RATES])


def whose(data: ReportData) -> str:
    """Say which rows the measured rate is of."""
    if has_normals(data):
        return "rows labelled normal"
    return "rows of this report" if data.may_be_normal.all() else "rows not labelled anomaly"


def has_normals(data: ReportData) -> bool:
    """Tell whether some rows are labelled normal."""
    return data.labels is not None and bool((data.labels > 0).any())


def count_p_values(p_values: FloatArray) -> list[int]:
    """Count p-values in bars of equal width; those of normal rows are even."""
    counts, _ = np.histogram(p_values, bins=N_P_BINS, range=(0.0, 1.0))
    return [int(count) for count in counts]


def _halves(scores: FloatArray) -> FloatArray:
    """Judge the first half of the rows by the second, and the second by the first."""
    first, second = np.array_split(scores, 2)
    fewest = min(len(first), len(second))
    measured = np.full(len(RATES), np.nan)
    if fewest < FEWEST_HALF:
        return measured
    for i in np.flatnonzero(fewest + 1 >= 1 / RATES):
        by_first, _ = conformal_threshold(first, RATES[i])
        by_second, _ = conformal_threshold(second, RATES[i])
        measured[i] = (np.mean(second < by_first) + np.mean(first < by_second)) / 2
    return measured
