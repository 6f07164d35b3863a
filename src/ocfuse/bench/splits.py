"""The paper's split of one set, as row numbers that can be saved and read again."""

import zlib
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError

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

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Split":
        """Return the split of a record."""
        return cls(**{field.name: record[field.name] for field in fields(cls)})


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

    Examples
    --------
    >>> from ocfuse.bench.splits import draw
    >>> split = draw([1] * 10 + [-1] * 10, "toy", "non-pure", seed=0)
    >>> len(split.train), len(split.train_anomalies), len(split.test_anomalies)
    (7, 1, 8)
    """
    if protocol not in PROTOCOLS:
        raise InvalidInputError(f"protocol must be one of {PROTOCOLS}. Got {protocol!r}.")
    labels = np.asarray(y)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    normals = rng.permutation(np.flatnonzero(labels > 0))
    anomalies = rng.permutation(np.flatnonzero(labels < 0))
    n_known = round(KNOWN * len(anomalies)) if protocol == "non-pure" else 0
    n = len(normals)
    train, validation, test = _cut(normals, round(TRAIN * n), round((TRAIN + VALIDATION) * n))
    learned, judged, tested = _cut(anomalies, n_known // 2, n_known)
    return Split(protocol, name, seed, train, validation, test, learned, judged, tested)


def _cut(rows: IntArray, first: int, second: int) -> tuple[list[int], list[int], list[int]]:
    return rows[:first].tolist(), rows[first:second].tolist(), rows[second:].tolist()
