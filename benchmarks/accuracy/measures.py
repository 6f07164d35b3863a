"""What is measured of a system on one split."""

from dataclasses import dataclass

from benchmarks.accuracy.splits import Split
from benchmarks.estimator.tables import FloatArray
from ocfuse.lab import paper

Measures = dict[str, float | None]


@dataclass(frozen=True)
class Scores:
    """Scores of the validation and test rows, and CPU seconds."""

    validation: FloatArray
    test: FloatArray
    fit: float
    score: float


def measure(scores: Scores, split: Split) -> Measures:
    """Return accuracies in %, that on new kinds of anomalies apart, and seconds."""
    new = None
    if split.is_new.any():
        kept = split.is_normal | split.is_new
        new = paper.measure(scores.validation, scores.test[kept], split.is_normal[kept])["auc"]
    return {
        **paper.measure(scores.validation, scores.test, split.is_normal),
        "auc_new": new,
        "fit": round(scores.fit, 4),
        "score": round(scores.score, 4),
    }
