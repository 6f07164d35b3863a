"""What a report draws: plain arrays, texts and an explanation."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.explain import Explanation, Reading
from ocfuse.scores import ConformalCalibrator

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]


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
