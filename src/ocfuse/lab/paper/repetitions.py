"""The paper's splits as row numbers, and the rows of one repetition."""

import zlib
from dataclasses import Field, asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray, Int64Array
from ocfuse.exceptions import InvalidInputError
from ocfuse.paper import KnownRows
from ocfuse.stats.ranks import require_count

PROTOCOLS = ("pure", "non-pure")


@dataclass(frozen=True)
class Split:
    """Row numbers of one repetition; no row is in two of the lists.

    Parameters
    ----------
    protocol : str
        "pure" (all anomalies are in the test part) or "non-pure".
    name : str
        The set.
    seed : int
        The repetition.
    train, validation, test : list of int
        Normals.
    train_anomalies, validation_anomalies, test_anomalies : list of int
        Anomalies.
    """

    protocol: str
    name: str
    seed: int
    train: list[int]
    validation: list[int]
    test: list[int]
    train_anomalies: list[int]
    validation_anomalies: list[int]
    test_anomalies: list[int]

    def record(self) -> dict[str, Any]:
        """Return the split as it is stored in JSON."""
        return asdict(self)

    def parts(self) -> list[list[int]]:
        """Return the six lists."""
        return [value for value in asdict(self).values() if isinstance(value, list)]

    @classmethod
    def read(cls, record: Any) -> "Split":
        """Return the split of a record."""
        if not isinstance(record, dict) or not all(_fits(f, record) for f in fields(cls)):
            raise InvalidInputError(
                "record must be a split: a name, a protocol, a seed and lists of row numbers."
            )
        split = cls(**{field.name: record[field.name] for field in fields(cls)})
        split.check()
        return split

    def digest(self) -> str:
        """Return eight digits that change with any row number."""
        return f"{zlib.crc32(repr(self.parts()).encode()):08x}"

    def check(self) -> None:
        """Refuse an unknown protocol, and a part without rows."""
        _check_protocol(self.protocol)
        known = ("train_anomalies", "validation_anomalies") if self.protocol == "pure" else ()
        empty = [name for name, rows in asdict(self).items() if rows == [] and name not in known]
        if empty:
            raise InvalidInputError(
                f"Every part of a {self.protocol} split must have rows. There are none for "
                f"{', '.join(empty)}: with so few normals or anomalies a set cannot be split."
            )


def draw(y: ArrayLike, name: str, protocol: str, seed: int) -> Split:
    """Split the rows of a data set at random; both protocols have the same normal rows.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels: +1 normal, -1 anomaly.
    name : str
        Name of the data set, which is part of the seed.
    protocol : {"pure", "non-pure"}
        "non-pure" has labelled anomalies in training and validation, "pure" has none.
    seed : int
        The repetition.

    Returns
    -------
    Split
        Training, validation and test have 70, 20 and 10 % of the normal rows. "pure": all
        anomalies are in the test part. "non-pure": 10 % of the anomalies are in training, 10 % in
        validation, and the others in the test part. No part may be empty, so at least 6 normal
        rows are needed, and 1 anomaly ("non-pure": 8).

    Examples
    --------
    >>> from ocfuse.lab.paper.repetitions import draw
    >>> split = draw([1] * 10 + [-1] * 10, "toy", "non-pure", seed=0)
    >>> len(split.train), len(split.train_anomalies), len(split.test_anomalies)
    (7, 1, 8)
    """
    _check_protocol(protocol)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidInputError(f"y must be a list of labels. Got the shape {labels.shape}.")
    if not np.isin(labels, (1, -1)).all():
        odd = np.unique(labels[~np.isin(labels, (1, -1))])[:5].tolist()
        raise InvalidInputError(f"y must hold +1 (normal) and -1 (anomaly). Got {odd} too.")
    require_count("seed", seed, 0)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    normals = rng.permutation(np.flatnonzero(labels > 0))
    anomalies = rng.permutation(np.flatnonzero(labels < 0))
    # the paper does not say how many anomalies are known
    n_known = round(0.2 * len(anomalies)) if protocol == "non-pure" else 0
    n = len(normals)
    train, validation, test = _cut(normals, round(0.7 * n), round((0.7 + 0.2) * n))
    learned, judged, tested = _cut(anomalies, n_known // 2, n_known)
    split = Split(protocol, name, int(seed), train, validation, test, learned, judged, tested)
    split.check()
    return split


def _check_protocol(protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {PROTOCOLS}. Got {protocol!r}.")


def _fits(field: Field[Any], record: dict[str, Any]) -> bool:
    value = record.get(field.name)
    if field.type in (str, int):
        return isinstance(value, field.type)
    return isinstance(value, list) and all(isinstance(row, int) and row >= 0 for row in value)


def _cut(rows: Int64Array, first: int, second: int) -> tuple[list[int], list[int], list[int]]:
    return rows[:first].tolist(), rows[first:second].tolist(), rows[second:].tolist()


@dataclass(frozen=True, eq=False)
class Repetition:
    """The rows that systems are given, the rows of the test, and the truth about these."""

    known: KnownRows
    test: FloatArray
    is_normal: NDArray[np.bool_]


def prepare(X: FloatArray, split: Split) -> Repetition:
    """Fill gaps by medians of the training normals, and standardise by them."""
    complete = fill(X, X[split.train])
    scaled = standardise(complete, complete[split.train])
    known = KnownRows(
        scaled[split.train],
        scaled[split.validation],
        scaled[split.train_anomalies],
        scaled[split.validation_anomalies],
        split.seed,
    )
    test = scaled[[*split.test, *split.test_anomalies]]
    return Repetition(known, test, np.arange(len(test)) < len(split.test))


def fill(X: FloatArray, known: FloatArray) -> FloatArray:
    """Fill gaps by the medians of known rows, or by 0 in a column that they lack."""
    empty = np.isnan(known).all(axis=0)
    median = np.nanmedian(np.where(empty, 0.0, known), axis=0)
    return np.where(np.isnan(X), median, X)


def standardise(X: FloatArray, known: FloatArray) -> FloatArray:
    """Bring known rows to mean 0 and variance 1; a constant column is only shifted.

    The mean of equal values may be off in the last bits, so that their deviation is
    not 0: what is not above rounding counts as none.
    """
    centre, scale = known.mean(axis=0), known.std(axis=0)
    noise = 10.0 * float(np.finfo(np.float64).eps) * np.abs(known).max(axis=0)
    return np.asarray((X - centre) / np.where(scale > noise, scale, 1.0))


def repeated(trial: Repetition) -> dict[str, float]:
    """Return the share, in %, of normals and of anomalies of the test that equal a training row."""
    # the sum turns -0 into 0, which has other bytes
    train = {row.tobytes() for row in trial.known.train + 0.0}
    is_known = np.array([row.tobytes() in train for row in trial.test + 0.0])
    parts = {"normals": trial.is_normal, "anomalies": ~trial.is_normal}
    return {name: round(100.0 * float(is_known[part].mean()), 4) for name, part in parts.items()}
