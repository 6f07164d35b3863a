"""Data sets by name: the paper's UCI tables, ADBench, SKAB, robot failures, own tables.

Files are downloaded once, checked against their checksums and returned as arrays with labels.
This package must not know detectors, fusions or any experiment that uses the data.
"""

from ocfuse.datasets.adbench import load_adbench
from ocfuse.datasets.dataset import Dataset, DatasetInfo, Sequence
from ocfuse.datasets.registry import fetch, find, list_datasets, load, locate
from ocfuse.datasets.sequences import load_robot_failures, load_skab
from ocfuse.datasets.uci import load_uci
from ocfuse.datasets.user_table import load_table

__all__ = [
    "Dataset",
    "DatasetInfo",
    "Sequence",
    "fetch",
    "find",
    "list_datasets",
    "load",
    "load_adbench",
    "load_robot_failures",
    "load_skab",
    "load_table",
    "load_uci",
    "locate",
]
