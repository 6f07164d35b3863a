"""Fit and score tables of Parquet files on many machines, with Dask.

`fit` learns from a reproducible sample of all rows; `score` writes one file of scores for each
file of rows, and continues after an interruption. This package must not know what a model
computes: it only calls methods that all detectors of tables have.
"""

from ocfuse.distributed.cluster import connected
from ocfuse.distributed.fitting import fit
from ocfuse.distributed.sampling import sample
from ocfuse.distributed.scoring import Outcome, score, score_frame

__all__ = [
    "Outcome",
    "connected",
    "fit",
    "sample",
    "score",
    "score_frame",
]
