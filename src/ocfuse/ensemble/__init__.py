"""The whole: members, scores, pseudo-negatives and fusion in one estimator."""

from ocfuse.ensemble.detector import FusedDetector

__all__ = [
    "FusedDetector",
]
