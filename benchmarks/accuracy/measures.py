"""What is measured of a system on one split."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.splits import Split
from benchmarks.estimator.tables import FloatArray
from ocfuse.lab import paper

Measures = dict[str, float | None]


#: False alarms, in %, at which the anomalies found are counted.
RATES = (1, 5)


@dataclass(frozen=True)
class Scores:
    """Scores of the validation and test rows, and CPU seconds."""

    validation: FloatArray
    test: FloatArray
    fit: float
    score: float


def found_at(rate: int, scores: FloatArray, is_normal: NDArray[np.bool_]) -> float:
    """Return the share of anomalies, in %, below what so many % of the normals are below."""
    threshold = np.quantile(scores[is_normal], rate / 100)
    return float(100 * np.mean(scores[~is_normal] < threshold))


def measure(scores: Scores, split: Split) -> Measures:
    """Return accuracies in %, that on new kinds of anomalies apart, and seconds."""
    new = None
    if split.is_new.any():
        kept = split.is_normal | split.is_new
        new = paper.measure(scores.validation, scores.test[kept], split.is_normal[kept])["auc"]
    return {
        **paper.measure(scores.validation, scores.test, split.is_normal),
        "auc_new": new,
        **{f"hits_{rate}": found_at(rate, scores.test, split.is_normal) for rate in RATES},
        "fit": round(scores.fit, 4),
        "score": round(scores.score, 4),
    }
