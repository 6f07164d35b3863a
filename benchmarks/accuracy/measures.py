"""What is measured of a system on one split."""

from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.splits import Split
from benchmarks.estimator.tables import FloatArray
from ocfuse.metrics import auc, average_precision, best_gmean, false_alarm_rate, gmean
from ocfuse.scores import conformal_threshold

#: The threshold of every system lets so many normals raise an alarm.
RATE = 0.05

Measures = dict[str, float | None]


@dataclass(frozen=True)
class Scores:
    """Scores of the validation and test rows, and CPU seconds."""

    validation: FloatArray
    test: FloatArray
    fit: float
    score: float


def measure(scores: Scores, split: Split) -> Measures:
    """Return accuracies in %, and seconds; the threshold comes from the validation rows."""
    if not (np.isfinite(scores.test).all() and np.isfinite(scores.validation).all()):
        raise ValueError("scores that are not finite")
    y = np.where(split.is_normal, 1, -1)
    offset, _ = conformal_threshold(scores.validation, RATE)
    predicted = np.where(scores.test >= offset, 1, -1)
    kept = split.is_normal | split.is_new
    return {
        "auc": _percent(auc(y, scores.test)),
        "auc_new": _percent(auc(y[kept], scores.test[kept])) if split.is_new.any() else None,
        "ap": _percent(average_precision(y, scores.test)),
        "gmean": _percent(gmean(y, predicted)),
        "best_gmean": _percent(best_gmean(y, scores.test)),
        "false_alarms": _percent(false_alarm_rate(y, predicted)),
        "fit": round(scores.fit, 4),
        "score": round(scores.score, 4),
    }


def _percent(value: float) -> float:
    # rounding errors must not part systems that are level
    return round(100 * value, 6)
