"""Nearest rows by products in single precision, in the compiled kernel.

The kernel keeps every row that the rounding of the products leaves in doubt
and orders what it kept by direct differences, in double precision.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.compiled.native import kernel, thread_count
from ocfuse.nearest.cells import Cells, cut, runs
from ocfuse.nearest.exact import FloatArray, IntArray, Nearest

SingleArray: TypeAlias = NDArray[np.float32]
BoolArray: TypeAlias = NDArray[np.bool_]

#: Rows of a block of products, and numbers in it: it should stay in the cache.
ROWS_AT_ONCE, PRODUCTS_AT_ONCE = 1024, 2**20
#: The error of a product, in units of the norms: so much per column.
HALF_UNIT = 1.1 * 2.0**-24
#: What underflow may add to it per column, in the unit of the longest row.
UNDERFLOW = 2.0**-120
#: Single precision knows too little of more columns.
MOST_COLUMNS = 100_000
#: Nor can it multiply longer rows, by their square, by rows of length 1.
LARGEST_NORM = 1e30
#: A row with more candidates than so many per neighbour is not judged.
CROWD = 8


class Distinct:
    """Rows that are all different, and the numbers of the rows equal to each.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Rows, some of them duplicates.

    Attributes
    ----------
    rows : ndarray of shape (u, m)
        The different rows.
    starts, numbers : ndarray of shape (u + 1,) and (n,)
        Row u stands for the rows ``numbers[starts[u]:starts[u + 1]]``, ascending.
    which : ndarray of shape (n,)
        What stands for each row.
    """

    rows: FloatArray
    starts: IntArray
    numbers: IntArray
    which: IntArray

    def __init__(self, X: FloatArray) -> None:
        n, m = X.shape
        # Equal rows have equal keys; rows that differ and have one stay apart.
        keys = np.einsum("nm,m->n", X, np.cos(np.arange(m)))
        order = np.argsort(keys, kind="stable")
        is_new = np.ones(n, dtype=bool)
        is_new[1:] = keys[order[1:]] != keys[order[:-1]]
        same = np.flatnonzero(~is_new)
        is_new[same] = (X[order[same]] != X[order[same - 1]]).any(axis=1)
        if is_new.all():
            order = np.arange(n)
        self._take(X, order, is_new)

    def sort(self, keys: IntArray) -> IntArray:
        """Put the different rows in the order of some keys, and return these sorted."""
        order = np.argsort(keys, kind="stable")
        lengths = np.diff(self.starts)[order]
        ends = np.cumsum(lengths)
        shift = np.repeat(self.starts[order] - (ends - lengths), lengths)
        self.numbers = self.numbers[np.arange(len(self.numbers)) + shift]
        self.starts = np.append(0, ends)
        self.which = np.argsort(order)[self.which]
        self.rows = self.rows[order]
        return keys[order]

    def numbers_of(self, rows: list[slice]) -> IntArray:
        """Return the numbers of the rows that some rows stand for, ascending."""
        parts = [self.numbers[self.starts[s.start] : self.starts[s.stop]] for s in rows]
        return np.sort(np.concatenate(parts))

    def _take(self, X: FloatArray, order: IntArray, is_new: BoolArray) -> None:
        self.numbers = order
        self.starts = np.append(np.flatnonzero(is_new), len(X))
        self.which = np.empty(len(X), dtype=np.intp)
        self.which[order] = np.cumsum(is_new) - 1
        self.rows = X if is_new.all() else X[order[is_new]]


class Frame:
    """Where rows lie: around a centre, no farther than a unit.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        The rows.

    Attributes
    ----------
    centre : ndarray of shape (m,)
        Their mean.
    unit : float
        A power of two, which changes no digit.
    """

    def __init__(self, rows: FloatArray) -> None:
        blocks = [rows[block] for block in cut(0, len(rows), ROWS_AT_ONCE)]
        # Constant columns must give exactly 0, so the mean is taken around a row.
        sums = np.sum([(block - rows[0]).sum(axis=0) for block in blocks], axis=0)
        self.centre: FloatArray = rows[0] + sums / len(rows)
        self.unit = 1.0
        longest = np.sqrt(max(self.scaled(block)[1].max() for block in blocks))
        self.unit = float(np.ldexp(1.0, int(np.frexp(longest)[1])))

    def scaled(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows around the centre in units, and the squares of their lengths."""
        with np.errstate(over="ignore"):
            rows = X - self.centre
            rows /= self.unit
            return rows, np.einsum("qm,qm->q", rows, rows)


class Products:
    """Find the nearest of some rows, without double precision where it can.

    Parameters
    ----------
    distinct : Distinct
        The rows to find; duplicates would crowd out the others.
    cells : Cells
        Which of them to look at.
    frame : Frame
        Where they lie.
    """

    def __init__(self, distinct: Distinct, cells: Cells, frame: Frame) -> None:
        self._distinct, self._cells, self._frame = distinct, cells, frame
        self._rows, self._norms = self._scaled(distinct.rows)
        self._squares = self._norms.astype(np.float32)
        self._numbers = np.arange(len(self._rows), dtype=np.int32)

    def of(self, X: FloatArray, home: IntArray, k: int) -> tuple[Nearest, BoolArray]:
        """Return the k rows nearest to each row of X, and which of these are no answer.

        `home` are the cells of the rows, ascending.
        """
        rows, norms = self._scaled(X)
        is_far = ~(norms <= LARGEST_NORM)
        rows[is_far], norms[is_far] = 0.0, 0.0
        found = self._candidates(norms, k)
        squares, numbers = norms.astype(np.float32), np.arange(len(X), dtype=np.int32)
        for here in runs(home):
            looked_at = [self._cells.rows[c] for c in self._cells.near[home[here.start]]]
            for i in cut(here.start, here.stop, ROWS_AT_ONCE):
                some, size = rows[i], PRODUCTS_AT_ONCE // (i.stop - i.start)
                for cell in looked_at:
                    for j in cut(cell.start, cell.stop, size):
                        found.add(
                            some @ self._rows[j].T, numbers[i], self._numbers[j],
                            squares[i], self._squares[j], False,
                        )  # fmt: skip
        nearest, is_open = self._ordered(found, X, k)
        return nearest, is_open | is_far

    def graph(self, k: int) -> tuple[Nearest, BoolArray]:
        """Return the k rows nearest to each of the different rows, itself among them."""
        found = self._candidates(self._norms, k)
        for i, j, both in self._cells.pairs(ROWS_AT_ONCE):
            found.add(
                self._rows[i] @ self._rows[j].T, self._numbers[i], self._numbers[j],
                self._squares[i], self._squares[j], both,
            )  # fmt: skip
        return self._ordered(found, self._distinct.rows, k)

    def _candidates(self, norms: FloatArray, k: int) -> Any:
        assert kernel is not None
        k, m = min(k, len(self._rows)), self._rows.shape[1] + 8
        return kernel.Candidates(norms, k, CROWD * (k + 32), m * HALF_UNIT, m * UNDERFLOW)

    def _ordered(self, found: Any, X: FloatArray, k: int) -> tuple[Nearest, BoolArray]:
        distinct, threads = self._distinct, thread_count(len(X) * k * X.shape[1])
        members = distinct.starts, distinct.numbers
        answer: tuple[Nearest, BoolArray]
        answer = found.nearest(X, distinct.rows, members, k, threads)
        return answer

    def _scaled(self, X: FloatArray) -> tuple[SingleArray, FloatArray]:
        """Return centred rows in single precision, and the squares of their lengths."""
        rows, norms = self._frame.scaled(X)
        with np.errstate(over="ignore"):
            return rows.astype(np.float32), norms
