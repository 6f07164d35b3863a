"""Tables to learn from: the ten UCI sets of the paper, and synthetic ones of any size."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocfuse.datasets import load_uci
from ocfuse.datasets.uci import UCI_SETS
from ocfuse.lab.paper.repetitions import fill, standardise

FloatArray = NDArray[np.float64]

#: Names such as "D1_banknotes", and those of the registry.
UCI = {f"{uci_set.paper_id}_{name}": name for name, uci_set in UCI_SETS.items()}
TRAIN_SHARE = 0.7


@dataclass(frozen=True)
class Task:
    """Normal rows to learn from, and normal rows and anomalies to tell apart."""

    train: FloatArray
    test: FloatArray
    is_normal: NDArray[np.bool_]


def uci_task(name: str, seed: int) -> Task:
    """Split one set: 70 % of the normals to learn from; standardised on them."""
    X, is_normal = uci_rows(name)
    rng = np.random.default_rng(seed)
    normal = rng.permutation(X[is_normal])
    cut = round(TRAIN_SHARE * len(normal))
    train, rest = normal[:cut], normal[cut:]
    test = np.vstack([rest, X[~is_normal]])
    train, test = standardised(*filled(train, test))
    return Task(train, test, np.arange(len(test)) < len(rest))


def uci_rows(name: str) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the rows of one set as numbers, perhaps with gaps, and which are normal."""
    data = load_uci(UCI[name])
    return data.X, data.y > 0


def synthetic_task(n: int, m: int = 10, seed: int = 0) -> Task:
    """Draw n normals from four regions of different shape, and n rows to score."""
    rng = np.random.default_rng(seed)
    centres, scales = 4 * rng.normal(size=(4, m)), rng.uniform(0.3, 2.0, (4, m))

    def normals(count: int) -> FloatArray:
        region = rng.integers(0, 4, count)
        return centres[region] + scales[region] * rng.normal(size=(count, m))

    train, rest = normals(n), normals(n - n // 10)
    anomalies = normals(n // 10) + 3 * rng.normal(size=(n // 10, m))
    train, test = standardised(train, np.vstack([rest, anomalies]))
    return Task(train, test, np.arange(n) < len(rest))


def data_folder() -> Path:
    """Return where the data sets are, or say how to tell."""
    folder = os.environ.get("OCFUSE_DATA")
    if not folder:
        raise SystemExit("Set OCFUSE_DATA to the folder of the data sets (make does it).")
    return Path(folder)


def filled(known: FloatArray, *others: FloatArray) -> list[FloatArray]:
    """Fill gaps by the medians of the known rows, in these too: PyOD does not take gaps."""
    return [fill(X, known) for X in (known, *others)]


def standardised(known: FloatArray, *others: FloatArray) -> list[FloatArray]:
    """Standardise by the known rows, these too: PyOD does not."""
    return [standardise(X, known) for X in (known, *others)]
