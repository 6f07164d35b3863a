"""Tables to learn from: the ten UCI sets of the paper, and synthetic ones of any size."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: File and normal class.
UCI = {
    "D1_banknotes": "0",
    "D2_ionosphere": "good",
    "D3_voting": "democrat",
    "D4_glass": "building_windows_non_float_processed",
    "D5_iris": "Iris-virginica",
    "D6_breastw": "benign",
    "D7_wine": "2",
    "D8_australian": "0",
    "D9_haberman": "survived_5_years_or_longer",
    "D10_hepatitis": "live",
}
TRAIN_SHARE = 0.7
ANSWERS = {"y": 1.0, "n": 0.0}


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
    table = pd.read_csv(data_folder() / "uci" / f"{name}.csv", dtype={"label": str})
    X = table.drop(columns="label").replace(ANSWERS).astype(float).to_numpy()
    if name == "D3_voting":
        X = np.where(np.isnan(X), 0.5, X)
    return X, (table["label"] == UCI[name]).to_numpy()


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


def filled(train: FloatArray, *others: FloatArray) -> list[FloatArray]:
    """Fill gaps by the medians of the training rows: PyOD does not take them."""
    median = np.nanmedian(train, axis=0)
    return [np.where(np.isnan(X), median, X) for X in (train, *others)]


def standardised(train: FloatArray, *others: FloatArray) -> list[FloatArray]:
    """Standardise by the training rows: PyOD does not."""
    centre, scale = train.mean(axis=0), train.std(axis=0)
    scale[scale == 0] = 1.0
    return [(X - centre) / scale for X in (train, *others)]
