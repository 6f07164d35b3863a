"""Groups: rows that are held out together, and folds that respect them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import Int64Array
from ocfuse.exceptions import InvalidInputError, InvalidTypeError


@dataclass(frozen=True)
class Groups:
    """Groups of rows that are held out together, optionally with a purge in time.

    Rows with the same label are in one fold. With a purge, rows up to so many places from a
    held-out row are not learned either: windows of neighbouring samples overlap, and drift makes
    neighbours alike.

    Parameters
    ----------
    label : ndarray of shape (n,)
        Number of the group of each row.
    place : ndarray of shape (n,), optional
        Position of each row in time; rows of different runs must be farther apart than the purge.
    purge : int, default=0
        Number of places before and after a held-out row that are left out too.
    are_folds : bool, default=False
        Whether the groups are only parts to hold out in turn, such as blocks of one stream, and
        not a sample of future groups. A threshold then counts rows, not groups.
    name : str, default="group"
        Name of a group in messages, such as "run".
    """

    label: Int64Array
    place: Int64Array | None = None
    purge: int = 0
    are_folds: bool = False
    name: str = "group"

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: NDArray[np.intp]) -> "Groups":
        """Return the groups of the chosen rows."""
        place = None if self.place is None else self.place[rows]
        return replace(self, label=self.label[rows], place=place)

    @property
    def counted(self) -> Int64Array | None:
        """Labels of the groups that a threshold counts; None if it counts rows."""
        return None if self.are_folds else self.label

    def folds(self, n_folds: int) -> NDArray[np.intp]:
        """Return the fold of each row, whole groups together."""
        return group_folds(self.label, len(self), n_folds)

    def withheld(self, fold: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return, for each row and fold, whether it may not be learned while that is held out."""
        held = fold[:, np.newaxis] == np.arange(int(fold.max()) + 1)
        if self.place is None or not self.purge:
            return np.asarray(held)
        near = [_distance(self.place, self.place[column]) <= self.purge for column in held.T]
        return np.asarray(held | np.column_stack(near))

    def same_group(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which rows are of the group of each chosen one, or too near, shape (q, n)."""
        same = self.label[rows, np.newaxis] == self.label
        if self.place is None or not self.purge:
            return np.asarray(same)
        return np.asarray(same | (np.abs(self.place[rows, np.newaxis] - self.place) <= self.purge))


def _distance(places: Int64Array, others: Int64Array) -> Int64Array:
    """Return how far each place is from the nearest of the others."""
    known = np.sort(others)
    after = np.searchsorted(known, places)
    before = known[np.maximum(after - 1, 0)]
    behind = known[np.minimum(after, len(known) - 1)]
    return np.asarray(np.minimum(np.abs(places - before), np.abs(behind - places)))


def check_groups(groups: Any, n: int) -> Groups:
    """Return the groups of n rows, with labels as numbers; `Groups` as they are."""
    values = np.asarray(groups.label if isinstance(groups, Groups) else groups)
    if values.shape != (n,):
        raise InvalidInputError(
            f"groups must name the run, part or tile of every row, shape ({n},). "
            f"Got shape {values.shape}."
        )
    if isinstance(groups, Groups):
        return groups
    try:
        return Groups(np.unique(values, return_inverse=True)[1].astype(np.int64))
    except TypeError:
        raise InvalidTypeError(
            "groups must hold labels of one kind, such as strings or integers. Got a mixture."
        ) from None


def group_folds(groups: ArrayLike, n: int, n_folds: int) -> NDArray[np.intp]:
    """Return the fold of each row, whole groups together, folds of about equal size.

    The largest group goes first, always to the smallest fold so far.
    """
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"groups must have shape ({n},), one label per row. Got shape {labels.shape}."
        )
    try:
        _, first, group, size = np.unique(
            labels, return_index=True, return_inverse=True, return_counts=True
        )
    except TypeError:
        raise InvalidTypeError(
            "groups must hold labels of one kind. Got a mixture. Use strings or integers only."
        ) from None
    if len(size) < 2:
        raise InvalidInputError(
            "groups must hold at least 2 different labels: rows of one group are never used to "
            "judge each other. Got 1. Leave groups out if the rows are independent."
        )
    filled = np.zeros(min(n_folds, len(size)), dtype=np.intp)
    fold_of_group = np.empty(len(size), dtype=np.intp)
    # ties by first appearance, so that the names of the groups do not matter
    for g in np.lexsort((first, -size)):
        fold_of_group[g] = np.argmin(filled)
        filled[fold_of_group[g]] += size[g]
    return fold_of_group[group]
