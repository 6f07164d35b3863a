"""Training rows: canonical order, folds, and context made comparable with features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.groups import Groups
from ocfuse.validation import check_context, require_context

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


class ContextScale:
    """Bring context to the units of m standardised features.

    A column is centred, divided by its standard deviation (1 if it is constant) and
    multiplied by ``sqrt(m / k)``: two training rows are, on average, as far apart in
    their k columns of context as in their m features.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Context of the training rows.
    n_features : int
        The number m.
    """

    def __init__(self, values: FloatArray, n_features: int) -> None:
        spread = values.std(axis=0)
        is_constant = spread <= 1e-13 * np.abs(values).max(axis=0, initial=0.0)
        unit = np.sqrt(n_features / values.shape[1])
        self.centre = values.mean(axis=0)
        self.factor = unit / np.where(is_constant, 1.0, spread)

    def transform(self, values: FloatArray) -> FloatArray:
        """Return context in the units of the features."""
        return np.asarray((values - self.centre) * self.factor)


def scaled_context(scale: ContextScale | None, context: Any, n: int) -> FloatArray | None:
    """Return the context of n rows to score in the units of the features, as in fit."""
    values = np.empty((n, 0)) if context is None else check_context(context, n)
    require_context(values.shape[1], 0 if scale is None else len(scale.centre))
    return None if scale is None else scale.transform(values)
