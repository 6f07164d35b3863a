"""The same on many machines, by Dask: rows from Parquet files, scores into Parquet files."""

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
