"""What would happen at other thresholds, for the slider of the page."""

from dataclasses import dataclass

import numpy as np

from ocfuse.report.data import FloatArray, IntArray, ReportData

#: Positions of the slider above and below the lowest normal score.
N_WITHIN, N_BELOW = 160, 40
#: The slider ends where so many normal rows would raise an alarm.
HIGHEST_RATE = 0.5


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
