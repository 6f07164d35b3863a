"""An order and folds of the training rows that do not depend on how they came."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Folds: TypeAlias = Sequence[tuple[IntArray, IntArray]]


#: Digits after the point of standardised values by which rows are ordered first.
DIGITS = 8


def canonical_order(X: FloatArray, *keys: NDArray[np.int64]) -> IntArray:
    """Return an order of the rows that depends on their content only.

    Whatever is learned from rows in this order does not depend on the order in
    which they came. Rounded values count first, so that a change of units, which
    changes the last bits of standardised values, keeps the order; then all bits;
    then the keys.
    """
    return np.lexsort((*keys[::-1], _rank(X), _rank(np.round(X, DIGITS))))


def _rank(X: FloatArray) -> IntArray:
    """Return the place of every row when rows are sorted by their bytes."""
    X = np.ascontiguousarray(X) + 0.0  # -0.0 and 0.0 are the same value
    rows = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1]


def check_groups(groups: Any, n: int) -> NDArray[np.int64] | None:
    """Return the groups as numbers, one per row, or None."""
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InvalidInputError(
            f"groups must name the run, part or tile of every row, shape ({n},). "
            f"Got shape {values.shape}."
        )
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
