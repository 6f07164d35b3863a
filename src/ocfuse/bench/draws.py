"""Repeated random splits of a user's labelled rows."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.ensemble.labels import ANOMALY, NORMAL, LabelArray
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError
from ocfuse.report.words import count

IntArray = NDArray[np.intp]

#: Shares of the normals to learn from and to set thresholds by; the others are tested.
TRAIN, VALIDATION = 0.6, 0.2
#: Below these a comparison says nothing.
FEWEST_NORMALS, FEWEST_ANOMALIES, FEWEST_GROUPS = 30, 5, 5
#: Below this an AUC is coarse.
FEW_ANOMALIES = 20


@dataclass(frozen=True)
class Rows:
    """Row numbers of one split; no row is in two of them.

    Parameters
    ----------
    train, validation : ndarray
        Normals to learn from, and normals to set thresholds by.
    test : ndarray
        Rows to be told apart.
    is_normal : ndarray of bool
        The truth about the test.
    """

    train: IntArray
    validation: IntArray
    test: IntArray
    is_normal: NDArray[np.bool_]


class Draws:
    """Splits of the rows; tested ones with gaps that training has not are counted.

    Parameters
    ----------
    X : array or data frame
        All rows.
    y : ndarray
        +1, 0 or -1 for each.
    max_rows : int
        Most normals, and most anomalies, of a split.
    seed : int
        Of all splits.
    groups : ndarray, default=None
        Number of the group of each row; normals of one group are all learned from, all
        for the thresholds, or all tested.
    """

    def __init__(
        self,
        X: Any,
        y: LabelArray,
        max_rows: int,
        seed: int,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        self.normals, self.anomalies = np.flatnonzero(y == NORMAL), np.flatnonzero(y == ANOMALY)
        _require(len(self.normals), len(self.anomalies))
        self.groups = groups
        if groups is not None:
            _require_groups(len(np.unique(groups[self.normals])))
        self.n_normals = min(len(self.normals), max_rows)
        self.n_anomalies = min(len(self.anomalies), max_rows)
        self.gaps = _gaps(X)
        self.seed, self.n_judged = seed, 0
        #: Normals and anomalies that each split has tested.
        self.tested: list[tuple[int, int]] = []

    def warn(self, rate: float) -> None:
        """Tell if there are too few rows for the rate."""
        n = round(VALIDATION * self.n_normals)
        if n + 1 < 1 / rate:
            warnings.warn(
                f"{self.n_normals} normals leave {n} to set a threshold by, too few for "
                f"false_alarm_rate={rate:g}: it stands for {1 / (n + 1):.3g}. Use at least "
                f"{int(np.ceil((1 / rate - 1) / VALIDATION))} normals, or a higher rate.",
                FewSamplesWarning,
                stacklevel=3,
            )

    def warn_of_tests(self) -> None:
        """Tell if too few anomalies were tested for differences to mean much."""
        fewest = min(n_anomalies for _, n_anomalies in self.tested)
        if fewest < FEW_ANOMALIES:
            warnings.warn(
                f"{count(fewest, 'tested anomaly is', 'tested anomalies are')} few: each is worth "
                f"{1 / fewest:.2f} of an AUC. Take smaller differences for nothing.",
                FewSamplesWarning,
                stacklevel=3,
            )

    def draw(self, split: int) -> Rows:
        """Return the rows of a split."""
        rng = np.random.default_rng([self.seed, split])
        normals = rng.permutation(self.normals)[: self.n_normals]
        anomalies = rng.permutation(self.anomalies)[: self.n_anomalies]
        train, validation, fresh = self._parts(normals)
        test = np.concatenate([fresh, anomalies])
        complete = ~self.gaps[train].any(axis=0)
        self.n_judged += int((self.gaps[test] & complete).any(axis=1).sum())
        self.tested.append((len(fresh), len(anomalies)))
        is_normal = np.repeat([True, False], [len(fresh), len(anomalies)])
        return Rows(train, validation, test, is_normal)

    def _parts(self, normals: IntArray) -> list[IntArray]:
        """Cut normals into three parts, between groups if there are some."""
        if self.groups is None:
            return np.split(normals, _cuts(len(normals)))
        groups = self.groups[normals]
        _, first, code = np.unique(groups, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))[code]  # groups in the order in which they were drawn
        part = np.searchsorted(_cuts(len(first)), place, side="right")
        return [normals[part == i] for i in range(3)]


def _cuts(n: int) -> list[int]:
    return [round(TRAIN * n), round((TRAIN + VALIDATION) * n)]


def _require_groups(n: int) -> None:
    if n < FEWEST_GROUPS:
        raise InvalidInputError(
            f"At least {FEWEST_GROUPS} groups with normal rows are needed to compare systems. "
            f"Got {n}. Compare without groups, knowing that it is too optimistic."
        )


def _gaps(X: Any) -> NDArray[np.bool_]:
    """Tell which values of an array, or of a data frame of pandas or polars, are missing."""
    table = X.to_pandas() if hasattr(X, "to_pandas") else X
    return np.asarray(table.isna() if hasattr(table, "isna") else np.isnan(table))


def _require(n_normals: int, n_anomalies: int) -> None:
    if n_normals < FEWEST_NORMALS or n_anomalies < FEWEST_ANOMALIES:
        raise InvalidInputError(
            f"At least {FEWEST_NORMALS} rows labelled normal (+1) and {FEWEST_ANOMALIES} labelled "
            f"anomaly (-1) are needed to compare systems. Got {n_normals} and {n_anomalies}."
        )
