"""172 one-class tasks: 24 sets of ADBench, the ten of the paper, and 138 of public classes.

The defaults of earlier versions were chosen on the first 34. `families.json` names the family of
every task (tasks that share rows or a source), and the fold in which the family is judged by what
was learned from the families of the other folds.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.estimator.tables import UCI, FloatArray, data_folder
from ocfuse.datasets import Dataset, load_adbench, load_uci
from ocfuse.lab.paper.runner import data_digest

#: A smoke run: a table, one with few rows for its columns, and one with gaps.
QUICK = ("6_cardio", "46_WPBC", "D10_hepatitis")

FAMILIES = Path(__file__).parent / "families.json"


def adbench() -> list[str]:
    """Return the names of the development sets."""
    return sorted(path.stem for path in (data_folder() / "adbench").glob("*.npz"))


def all_sets(quick: bool) -> list[str]:
    """Return the names of all sets, or of the few of a smoke run."""
    return list(QUICK) if quick else [*adbench(), *UCI]


def all_tasks(quick: bool) -> list[str]:
    """Return the names of all tasks, or of the few of a smoke run."""
    if quick:
        return [*QUICK, "segment-0"]
    return sorted(name for found in _families().values() for name in found["sets"])


def one_of_each(names: Sequence[str]) -> list[str]:
    """Return one task of each family, drawn once and for all."""
    drawn: dict[str, str] = {}
    for name in sorted(names, key=lambda name: zlib.crc32(name.encode())):
        drawn.setdefault(family(name), name)
    return sorted(drawn.values())


def family(name: str) -> str:
    """Return the family of a set; most are a family of their own."""
    return _places()[name][0]


def fold(name: str) -> int:
    """Return the fold in which the family of a set is judged."""
    return _places()[name][1]


def family_means(names: Sequence[str], values: FloatArray) -> FloatArray:
    """Return the means of rows of values over the tasks of each family, families in order.

    What is not finite is left out.
    """
    own = np.array([family(name) for name in names])
    return np.array([finite_means(values[own == name]) for name in np.unique(own)])


def finite_means(table: FloatArray) -> FloatArray:
    """Return the mean of every column over the rows that have a value."""
    count = np.isfinite(table).sum(axis=0)
    return np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)


@cache
def _families() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FAMILIES.read_text(encoding="utf-8"))
    return found


@cache
def _places() -> dict[str, tuple[str, int]]:
    return {
        name: (family, found["fold"])
        for family, found in _families().items()
        for name in found["sets"]
    }


def rows(name: str) -> tuple[FloatArray, FloatArray]:
    """Return the normal rows and the anomalies of a set."""
    data = _loaded(name)
    return data.X[data.y > 0], data.X[data.y < 0]


@cache
def content(name: str) -> str:
    """Return a digest of a set."""
    data = _loaded(name)
    return data_digest(data.X, data.y)


@dataclass(frozen=True)
class Labelled:
    """Rows with +1 (normal) or -1 (anomaly)."""

    X: FloatArray
    y: NDArray[np.int64]


@lru_cache(maxsize=1)  # seeds of one set follow each other
def _loaded(name: str) -> Dataset | Labelled:
    if name in UCI:
        return load_uci(UCI[name])
    path = data_folder() / "oneclass" / f"{name}.npz"
    if not path.exists():
        return load_adbench(name)
    with np.load(path) as stored:
        return Labelled(stored["X"].astype(np.float64), 1 - 2 * stored["y"].astype(np.int64))
