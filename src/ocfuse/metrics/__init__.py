"""How good scores and predictions are: arrays in, one number out.

Labels and predictions are +1 (normal) and -1 (anomaly); a higher score is more normal,
everywhere. A rate that does not exist, because its class is absent, is an error and never a
silent 0 or NaN. This package must not know which detector gave the scores.

Rows that stand alone: `auc` and its neighbours. Sequences, whose anomalies last for a while:
`vus_roc`, `vus_pr`, `range_precision`, `range_recall`, `event_scores`. For `cross_val_score`
and searches of scikit-learn: `scorer`, and `as_labels` for labels in another coding.
"""

from ocfuse.metrics.ranges import (
    EventScores,
    event_scores,
    range_precision,
    range_recall,
    vus_pr,
    vus_roc,
)
from ocfuse.metrics.rows import (
    auc,
    average_precision,
    best_gmean,
    false_alarm_rate,
    gmean,
    missed_alarm_rate,
)
from ocfuse.metrics.scorers import Scorer, as_labels, scorer

__all__ = [
    "EventScores",
    "Scorer",
    "as_labels",
    "auc",
    "average_precision",
    "best_gmean",
    "event_scores",
    "false_alarm_rate",
    "gmean",
    "missed_alarm_rate",
    "range_precision",
    "range_recall",
    "scorer",
    "vus_pr",
    "vus_roc",
]
