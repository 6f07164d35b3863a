"""How good scores and predictions are, of rows that stand alone and of sequences.

Labels and predictions are +1 (normal) and -1 (anomaly), a higher score is more normal,
everywhere, and a rate that does not exist, because its class is absent, is an error and never a
silent 0 or NaN. Everything here takes arrays, or is a scorer for scikit-learn; it must not know
which detector gave the scores.
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
