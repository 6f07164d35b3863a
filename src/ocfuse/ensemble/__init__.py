"""`FusedDetector`: members, normalised scores, pseudo-anomalies and a fusion in one estimator.

Here is the one fit from rows to out-of-fold scores, the one chain that scores rows, and the
plan of memory and time. It must not know files, streams, pictures, commands or HTTP.
"""

from ocfuse.ensemble.detector import FusedDetector

__all__ = [
    "FusedDetector",
]
