"""An order and folds of the training rows that do not depend on how they came."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.detectors.groups import Groups
from ocfuse.exceptions import InvalidInputError, InvalidTypeError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]


#: Digits after the point of standardised values by which rows are ordered first.
DIGITS = 8
#: First columns that are looked at: mostly they tell all rows apart.
FIRST_COLUMNS = (1, 8)


def canonical_order(X: FloatArray, *keys: NDArray[Any] | None) -> IntArray:
    """Return an order of the rows that depends on their content only.

    Whatever is learned from rows in this order does not depend on the order in
    which they came. Rounded values count first, so that a change of units, which
    changes the last bits of standardised values, keeps the order; then all bits;
    then the keys that are given.
    """
    for k in FIRST_COLUMNS:
        place = row_numbers(np.round(X[:, :k], DIGITS))
        if len(place) and place.max() == len(place) - 1:  # no two are equal: nothing else counts
            return np.argsort(place)
    given = [key for key in keys[::-1] if key is not None]
    return np.lexsort((*given, row_numbers(X), row_numbers(np.round(X, DIGITS))))


def row_numbers(X: FloatArray) -> IntArray:
    """Return the place of every row when rows are sorted by their bytes; equal ones share it."""
    X = np.ascontiguousarray(X) + 0.0  # -0.0 and 0.0 are the same value
    rows = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1]


def check_groups(groups: Any, n: int) -> Groups | None:
    """Return the groups of n rows: labels as numbers, with a purge if it was given; or None."""
    if groups is None:
        return None
    if isinstance(groups, Groups):
        check_groups(groups.label, n)
        return groups
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InvalidInputError(
            f"groups must name the run, part or tile of every row, shape ({n},). "
            f"Got shape {values.shape}."
        )
    try:
        return Groups(np.unique(values, return_inverse=True)[1].astype(np.int64))
    except TypeError:
        raise InvalidTypeError(
            "groups must hold labels of one kind, such as strings or integers. Got a mixture."
        ) from None


def runs_of(groups: Groups | None) -> NDArray[np.int64] | None:
    """Return the labels that a threshold counts by; None if it counts rows."""
    return None if groups is None or groups.are_folds else groups.label


def matching_folds(
    n: int,
    fold: NDArray[np.intp],
    groups: Groups | None,
    theirs: Groups | None,
) -> NDArray[np.intp]:
    """Return folds for n more rows, by group if there are groups.

    A row whose group is known goes to the fold of its group; unknown groups, or
    rows without groups, go to the folds in turn.
    """
    count = int(fold.max()) + 1
    if groups is None or theirs is None:
        return np.arange(n) % count
    known = dict(zip(groups.label.tolist(), fold.tolist(), strict=True))
    others = [group for group in np.unique(theirs.label).tolist() if group not in known]
    known |= {group: place % count for place, group in enumerate(others)}
    return np.array([known[group] for group in theirs.label.tolist()], dtype=np.intp)


def spread_folds(order: IntArray, is_anomaly: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
    """Return a fold for every row: rows of one class in turn, by their place in `order`."""
    fold = np.empty(len(order), dtype=np.intp)
    for kind in (False, True):
        chosen = order[is_anomaly[order] == kind]
        fold[chosen] = np.arange(len(chosen)) % count
    return fold
