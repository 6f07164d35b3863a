"""One-hot columns that belong together."""

from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.negatives.pca import PrincipalCoordinates, principal_coordinates

FloatArray: TypeAlias = NDArray[np.float64]


class Blocks:
    """Normals whose columns may form blocks: one category, one-hot encoded.

    A block holds several columns of the same source. Its patterns are what its
    columns hold together in some row of X, sorted.

    Parameters
    ----------
    X : ndarray of shape (n_rows, m)
        Normals.
    source : array-like of shape (m,), optional
        For every column, the number of the column it was encoded from; None if
        there are no blocks.
    """

    def __init__(self, X: FloatArray, source: ArrayLike | None = None) -> None:
        self.X = X
        self.columns = [] if source is None else _shared_columns(source, X.shape[1])
        found = [np.unique(X[:, block], axis=0, return_inverse=True) for block in self.columns]
        self.patterns = [patterns for patterns, _ in found]
        self.codes = [codes.reshape(len(X)) for _, codes in found]

    @cached_property
    def principal(self) -> PrincipalCoordinates:
        """The principal coordinates of X, for all who ask."""
        return principal_coordinates(self.X)

    def coded(self) -> FloatArray:
        """Return X with every block as one column: the numbers of its patterns."""
        if not self.columns:
            return self.X
        table = self.X.copy()
        for block, codes in zip(self.columns, self.codes, strict=True):
            table[:, block[0]] = codes
        return table[:, self._features()]

    def decoded(self, rows: FloatArray) -> FloatArray:
        """Return rows that look like X for rows that look like `coded()`."""
        table = np.empty((len(rows), self.X.shape[1]))
        table[:, self._features()] = rows
        for block, patterns in zip(self.columns, self.patterns, strict=True):
            table[:, block] = patterns[table[:, block[0]].astype(np.intp)]
        return table

    def nearest(self, rows: FloatArray) -> FloatArray:
        """Return the rows with every block replaced by the nearest of its patterns."""
        table = rows.copy()
        for block, patterns in zip(self.columns, self.patterns, strict=True):
            # squared distance without the part that all patterns share
            distance = (patterns**2).sum(axis=1) - 2.0 * rows[:, block] @ patterns.T
            table[:, block] = patterns[distance.argmin(axis=1)]
        return table

    def _features(self) -> NDArray[np.bool_]:
        """Return which columns `coded` keeps: of a block only the first."""
        kept = np.ones(self.X.shape[1], dtype=bool)
        for block in self.columns:
            kept[block[1:]] = False
        return kept


def _shared_columns(source: ArrayLike, m: int) -> list[NDArray[np.intp]]:
    numbers = np.asarray(source)
    if numbers.shape != (m,):
        raise InvalidInputError(
            f"source must hold one number for each of the {m} columns of X. "
            f"Got shape {numbers.shape}. Use the source_ of the encoder that made X."
        )
    shared, counts = np.unique(numbers, return_counts=True)
    return [np.flatnonzero(numbers == number) for number in shared[counts > 1]]
