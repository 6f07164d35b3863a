"""Measures of scores and predictions, for independent rows and for sequences.

Labels and predictions are +1 (normal) and -1 (anomaly), a higher score is more normal, and a
measure that needs an absent class raises an error; it is never a silent 0 or NaN. All functions
take arrays, or return scorers for scikit-learn; they must not know which detector gave the scores.
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
