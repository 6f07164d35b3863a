"""One scale for all scores, thresholds, p-values and probabilities: higher is more normal.

Everything here is learned from arrays of scores and, if there are any, of labels. It must not
know which detector gave the scores, nor the rows they belong to.
"""

from ocfuse.scores.calibrate import LabelCalibrator, TailCalibrator
from ocfuse.scores.conformal import Certificate, ConformalCalibrator, conformal_threshold
from ocfuse.scores.normalise import (
    MinMax,
    Normaliser,
    RobustZ,
    TailProbability,
    ZScore,
    join_lowest,
    make_normaliser,
)
from ocfuse.scores.slow import ChangeTest, RollingThreshold, SourceChange
from ocfuse.scores.threshold import gmean_threshold, prediction_limit, quantile_threshold

__all__ = [
    "Certificate",
    "ChangeTest",
    "ConformalCalibrator",
    "LabelCalibrator",
    "MinMax",
    "Normaliser",
    "RobustZ",
    "RollingThreshold",
    "SourceChange",
    "TailCalibrator",
    "TailProbability",
    "ZScore",
    "conformal_threshold",
    "gmean_threshold",
    "join_lowest",
    "make_normaliser",
    "prediction_limit",
    "quantile_threshold",
]
