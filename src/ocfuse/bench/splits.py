"""The paper's split of one set, as row numbers that can be saved and read again."""

import zlib
from dataclasses import Field, asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.stats.ranks import require_count

IntArray = NDArray[np.int64]

#: Shares of the normals to learn from and for validation; the others are for the test.
TRAIN, VALIDATION = 0.7, 0.2
#: Share of the anomalies that is known in the non-pure protocol, half of them for
#: learning and half for validation. The paper does not say how many.
KNOWN = 0.2
PROTOCOLS = ("pure", "non-pure")


@dataclass(frozen=True)
class Split:
    """Row numbers of one repetition; no row is in two of the lists.

    Parameters
    ----------
    protocol : str
        "pure" (all anomalies are for the test) or "non-pure".
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
    """Split the rows of a set at random; both protocols have the same normals.

    Parameters
    ----------
    y : array-like of shape (n,)
        +1 for normals, -1 for anomalies.
    name : str
        The set, which is part of the seed.
    protocol : {"pure", "non-pure"}
        Whether some anomalies are known.
    seed : int
        The repetition.

    Returns
    -------
    Split
        70, 20 and 10 % of the normals; all anomalies for the test, or half of a
        sample of 20 % each for learning and validation and the others for the test.
        No part may be empty, so that at least 6 normals are needed, and 1 anomaly (8 if
        some are to be known).

    Examples
    --------
    >>> from ocfuse.bench.splits import draw
    >>> split = draw([1] * 10 + [-1] * 10, "toy", "non-pure", seed=0)
    >>> len(split.train), len(split.train_anomalies), len(split.test_anomalies)
    (7, 1, 8)
    """
    _check_protocol(protocol)
    labels = _labels(y)
    require_count("seed", seed, 0)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    normals = rng.permutation(np.flatnonzero(labels > 0))
    anomalies = rng.permutation(np.flatnonzero(labels < 0))
    n_known = round(KNOWN * len(anomalies)) if protocol == "non-pure" else 0
    n = len(normals)
    train, validation, test = _cut(normals, round(TRAIN * n), round((TRAIN + VALIDATION) * n))
    learned, judged, tested = _cut(anomalies, n_known // 2, n_known)
    split = Split(protocol, name, int(seed), train, validation, test, learned, judged, tested)
    split.check()
    return split


def _check_protocol(protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {PROTOCOLS}. Got {protocol!r}.")


def _labels(y: ArrayLike) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InvalidInputError(f"y must be a list of labels. Got the shape {labels.shape}.")
    if not np.isin(labels, (1, -1)).all():
        odd = np.unique(labels[~np.isin(labels, (1, -1))])[:5].tolist()
        raise InvalidInputError(f"y must hold +1 (normal) and -1 (anomaly). Got {odd} too.")
    return labels


def _fits(field: Field[Any], record: dict[str, Any]) -> bool:
    value = record.get(field.name)
    if field.type in (str, int):
        return isinstance(value, field.type)
    return isinstance(value, list) and all(isinstance(row, int) and row >= 0 for row in value)


def _cut(rows: IntArray, first: int, second: int) -> tuple[list[int], list[int], list[int]]:
    return rows[:first].tolist(), rows[first:second].tolist(), rows[second:].tolist()
