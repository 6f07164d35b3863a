"""NeighbourIndex: the nearest of many rows.

Where there is a compiled kernel, candidates are found by products in single
precision, see `ProductSearch`; else by distances in double precision. The answer
is the same. Of very many rows only those in the cells around a row are
looked at.
"""

from functools import cached_property
from typing import Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.kernels import kernel
from ocfuse.nearest.exact import Nearest, nearest_by_matrix
from ocfuse.nearest.partition import ROWS_LOOKED_AT, Partition, cell_centres, cut, one_cell
from ocfuse.nearest.quantised import (
    LEAST_WORK,
    CentredUnit,
    CodedRows,
    Distinct,
    ProductSearch,
    every_column,
    leading,
)
from ocfuse.system.cache import digest

#: Of more different rows only the cells around a row are searched.
MOST_ROWS = 100_000
#: Rows searched for at once.
QUERIES_AT_ONCE = 8192
#: Candidates that may be held at once while a graph is made.
MOST_CANDIDATES = 2**25


def centres_of_many(X: FloatArray) -> FloatArray | None:
    """Return centres of cells if there are too many rows to look at all for each."""
    if len(X) <= MOST_ROWS:
        return None
    rows = Distinct(X).rows
    return cell_centres(rows) if len(rows) > MOST_ROWS else None


def numbers_looked_at(n: int, m: int) -> int:
    """Return about how many numbers a search in n rows of m columns looks at for one row."""
    rows = min(n, ROWS_LOOKED_AT) if n > MOST_ROWS else n
    if n * m < LEAST_WORK:
        return rows * m
    # Codes are a fourth as long as numbers; a sixth of the directions are needed, or all.
    return rows * m // 8


class NeighbourIndex:
    """Find the nearest of the rows of X.

    Given centres of cells, a row is in the cell of the centre nearest to it, and only the cells
    around are searched: see `Partition`. What is found for a row depends on the row and the rows
    of X alone.
    """

    def __init__(self, X: FloatArray, centres: FloatArray | None = None) -> None:
        # Sums over rows that lie otherwise in memory would round otherwise.
        self.X = np.ascontiguousarray(X)
        self._distinct = Distinct(self.X)
        self._cells = one_cell(len(self._distinct.rows))
        self._centres: NeighbourIndex | None = None
        if centres is not None:
            self._centres = NeighbourIndex(centres)
            cell = self._distinct.sort(self._home(self._distinct.rows))
            self._cells = Partition(cell, self._centres.graph(len(centres))[1])
        self._products = self._faster()

    @cached_property
    def digest(self) -> tuple[Any, ...]:
        """What tells these rows from others."""
        return digest(self.X)

    def of(self, X: FloatArray, k: int) -> Nearest:
        """Return the k rows nearest to each row of X."""
        if self._centres is not None and k > ROWS_LOOKED_AT:
            return NeighbourIndex(self.X).of(X, k)
        X = np.ascontiguousarray(X)
        home = self._home(X)
        # Rows that look at the same cells, together.
        order = np.argsort(home, kind="stable")
        squares, index = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.intp)
        for block in cut(0, len(X), QUERIES_AT_ONCE):
            some = order[block]
            rows, cells = X[some], home[some]
            if self._products is None or k == 0:
                found = self._by_distances(rows, cells, k)
            else:
                found = self._settled(rows, cells, *self._products.of(rows, cells, k))
            squares[some], index[some] = found
        return squares, index

    def graph(self, k: int) -> Nearest:
        """Return the k rows nearest to each of the rows, itself among them."""
        n_candidates = 2 * k * len(self._distinct.rows)
        if self._products is None or k == 0 or n_candidates > MOST_CANDIDATES:
            return self.of(self.X, k)
        (squares, index), is_open = self._products.graph(k)
        which = self._distinct.which
        return self._settled(self.X, None, (squares[which], index[which]), is_open[which])

    def _faster(self) -> ProductSearch | CodedRows | None:
        """Return what finds rows faster than distances do, if anything does."""
        rows = self._distinct.rows
        # Single precision knows too little of more columns.
        if not rows.size or rows.shape[1] > 100_000:
            return None
        frame = CentredUnit(rows)
        if rows.size >= LEAST_WORK:
            # directions are learned from 4,096 rows
            some = frame.scaled(rows[:: -(-len(rows) // 4096)])[0]
            directions = leading(some)
            if directions is None and self._centres is not None:
                # Many small products of a few rows with a cell each would take longer.
                directions = every_column(some)
            if directions is not None:
                return CodedRows(self._distinct, self._cells, frame, directions)
        return None if kernel is None else ProductSearch(self._distinct, self._cells, frame)

    def _home(self, X: FloatArray) -> IntArray:
        """Return the cell of each row."""
        if self._centres is None:
            return np.zeros(len(X), dtype=np.intp)
        return self._centres.of(X, 1)[1][:, 0]

    def _settled(
        self, X: FloatArray, home: IntArray | None, nearest: Nearest, is_open: BoolArray
    ) -> Nearest:
        """Search again for the rows that single precision could not judge."""
        squares, index = nearest
        if is_open.any():
            rows = X[is_open]
            home = self._home(rows) if home is None else home[is_open]
            squares[is_open], index[is_open] = self._by_distances(rows, home, squares.shape[1])
        return squares, index

    def _by_distances(self, X: FloatArray, home: IntArray, k: int) -> Nearest:
        """Search by distances in double precision."""
        squares, index = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.intp)
        for cell in np.unique(home):
            numbers = self._distinct.numbers_of(
                [self._cells.rows[c] for c in self._cells.near[cell]]
            )
            Y, some = self.X[numbers], np.flatnonzero(home == cell)
            for block in cut(0, len(some), max(1, 2**22 // len(Y))):
                rows = some[block]
                squares[rows], found = _by_distances(X[rows], Y, k)
                index[rows] = numbers[found]
        return squares, index


def _by_distances(X: FloatArray, Y: FloatArray, k: int) -> Nearest:
    centre = Y[0] + (Y - Y[0]).mean(axis=0)
    A, B = X - centre, Y - centre
    norms = np.einsum("qm,qm->q", A, A)
    D = A @ (-2.0 * B).T
    D += np.einsum("nm,nm->n", B, B)
    D += norms[:, None]
    return nearest_by_matrix(np.maximum(D, 0.0, out=D), X, norms, Y, k)
