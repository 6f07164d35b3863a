"""Fit and score tables of Parquet files on many machines, by Dask.

A fit learns from a reproducible sample of all rows; a score writes one file of scores for each
file of rows, and resumes after an interruption. It must not know what a model computes: it
calls only the methods that every detector of tables has.
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
