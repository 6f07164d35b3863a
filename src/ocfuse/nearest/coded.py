"""Nearest rows by products of whole numbers, in the compiled kernel or by NumPy.

The nearest by few directions, see `leading`, with some to spare, are measured
in all columns. What is found depends on the row and the rows to find alone.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.compiled.native import kernel, thread_count
from ocfuse.nearest.cells import Cells, cut, runs
from ocfuse.nearest.exact import BLOCK, FloatArray, IntArray, Nearest
from ocfuse.nearest.leading import SPARE, Leading, SingleArray
from ocfuse.nearest.products import CROWD, LARGEST_NORM, BoolArray, Distinct, Frame

#: Rows of a panel: their codes lie together, two columns at a time.
PANEL = 16
#: A squared distance below this share of the squared length of a row is measured in double
#: precision: distances in single precision are then right to about 1e-5.
NEAR = 1e-5
#: Sums of a squared distance.
LANES = 32
#: Values that NumPy holds at once.
VALUES_AT_ONCE = 2**22
#: Rows that are prepared at once.
ROWS_AT_ONCE = 2048

#: Codes, scales, squared lengths and rows in single precision.
Coded: TypeAlias = tuple[NDArray[np.int16], SingleArray, FloatArray, SingleArray]


class CodedRows:
    """Find the nearest of some rows, or others as near as make no difference.

    Parameters
    ----------
    distinct : Distinct
        The rows to find, all different.
    cells : Cells
        Which of them to look at.
    frame : Frame
        Where they lie.
    leading : Leading
        The directions that tell candidates.
    """

    def __init__(self, distinct: Distinct, cells: Cells, frame: Frame, leading: Leading) -> None:
        self._distinct, self._cells, self._frame, self._leading = distinct, cells, frame, leading
        self._coded, _ = self._code(distinct.rows)
        self._panels = _panels(self._coded)
        self._ranges: dict[int, IntArray] = {}

    def of(self, X: FloatArray, home: IntArray, k: int) -> tuple[Nearest, BoolArray]:
        """Return the k rows nearest to each row of X, and which of these are no answer.

        `home` are the cells of the rows, ascending.
        """
        coded, is_far = self._code(X)
        nearest, is_crowded = self._nearest(coded, home, k)
        return self._measured(X, coded[2], nearest), is_far | is_crowded

    def graph(self, k: int) -> tuple[Nearest, BoolArray]:
        """Return the k rows nearest to each of the different rows, itself among them."""
        sizes = [rows.stop - rows.start for rows in self._cells.rows]
        home = np.repeat(np.arange(len(sizes)), sizes)
        nearest, is_crowded = self._nearest(self._coded, home, k)
        return self._measured(self._distinct.rows, self._coded[2], nearest), is_crowded

    def _nearest(self, x: Coded, home: IntArray, k: int) -> tuple[Nearest, BoolArray]:
        squares, index = np.empty((len(home), k)), np.empty((len(home), k), dtype=np.intp)
        crowded = np.empty(len(home), dtype=bool)
        search = self._by_numpy if kernel is None else self._by_kernel
        for some in runs(home):
            looked_at = self._looked_at(int(home[some.start]))
            codes, scales, norms, rows = x
            part = codes[some], scales[some], norms[some], rows[some]
            (squares[some], index[some]), crowded[some] = search(part, looked_at, k)
        # Nothing was said of these, and nobody may read what stood there.
        squares[crowded], index[crowded] = np.inf, 0
        return (squares, index), crowded

    def _measured(self, X: FloatArray, norms: FloatArray, nearest: Nearest) -> Nearest:
        """Return squares in units of the rows; measure the small ones in double precision."""
        squares, index = nearest
        is_near = squares < NEAR * norms[:, None]
        squares *= self._frame.unit**2
        if not is_near.any():
            return squares, index
        near, place = np.nonzero(is_near)
        for block in cut(0, len(near), max(1, BLOCK // X.shape[1])):
            at = near[block], place[block]
            gaps = self._distinct.rows[self._distinct.which[index[at]]] - X[at[0]]
            squares[at] = np.einsum("rm,rm->r", gaps, gaps)
        several = np.flatnonzero(is_near.sum(axis=1) > 1)
        order = np.lexsort((index[several], squares[several]), axis=-1)
        squares[several] = np.take_along_axis(squares[several], order, axis=1)
        index[several] = np.take_along_axis(index[several], order, axis=1)
        return squares, index

    def _looked_at(self, cell: int) -> IntArray:
        """Return the rows that a search from a cell looks at, from and to."""
        if cell not in self._ranges:
            near = [self._cells.rows[c] for c in self._cells.near[cell]]
            self._ranges[cell] = np.array([(rows.start, rows.stop) for rows in near])
        return self._ranges[cell]

    def _by_kernel(self, x: Coded, looked_at: IntArray, k: int) -> tuple[Nearest, BoolArray]:
        assert kernel is not None
        n_looked_at = _length(looked_at)
        size = min(k + SPARE, n_looked_at)
        members = self._distinct.starts, self._distinct.numbers
        work = len(x[0]) * n_looked_at
        answer: tuple[Nearest, BoolArray] = kernel.nearest_by_codes(
            x, self._panels, members, looked_at, k, size, CROWD * (size + 32), thread_count(work)
        )
        return answer

    def _by_numpy(self, x: Coded, looked_at: IntArray, k: int) -> tuple[Nearest, BoolArray]:
        """Return the same as the kernel."""
        rows = np.concatenate([np.arange(*some) for some in looked_at])
        size = min(k + SPARE, len(rows))
        squares, index = np.empty((len(x[0]), k)), np.empty((len(x[0]), k), dtype=np.intp)
        crowded = np.zeros(len(x[0]), dtype=bool)
        for block in cut(0, len(x[0]), max(1, VALUES_AT_ONCE // len(rows))):
            values = self._values(x, block, rows)
            for i, line in enumerate(values, block.start):
                near = rows[line <= _limit(np.partition(line, size - 1)[size - 1], x[2][i])]
                crowded[i] = len(near) > CROWD * (size + 32)
                if not crowded[i]:
                    squares[i], index[i] = self._first(x[3][i], near, k)
        return (squares, index), crowded

    def _values(self, x: Coded, block: slice, rows: IntArray) -> SingleArray:
        """Return ``|y|^2 - 2 x.y`` by the codes."""
        codes, scales, norms, _ = self._coded
        products = x[0][block].astype(np.float64) @ codes[rows].T.astype(np.float64)
        values = products.astype(np.float32) * scales[rows]
        values *= np.float32(2.0) * x[1][block, None]
        return norms[rows].astype(np.float32) - values

    def _first(self, x: SingleArray, near: IntArray, k: int) -> Nearest:
        """Measure candidates and return the first k of the rows they stand for."""
        squares = _gaps(x, self._coded[3][near])
        starts, numbers = self._distinct.starts, self._distinct.numbers
        sizes = starts[near + 1] - starts[near]
        index = np.concatenate([numbers[starts[u] : starts[u + 1]] for u in near])
        squares = np.repeat(squares, sizes)
        order = np.lexsort((index, squares))[:k]
        return squares[order], index[order]

    def _code(self, X: FloatArray) -> tuple[Coded, BoolArray]:
        """Return rows as they are compared, and which are too far away for that."""
        n, m = X.shape
        codes, scales = np.empty((n, self._leading.size), np.int16), np.empty(n, np.float32)
        norms, single = np.empty(n), np.empty((n, m), np.float32)
        is_far = np.empty(n, dtype=bool)
        for block in cut(0, n, ROWS_AT_ONCE):
            rows, norms[block] = self._frame.scaled(X[block])
            is_far[block] = ~(norms[block] <= LARGEST_NORM)
            rows[is_far[block]] = 0.0
            codes[block], scales[block] = self._leading.codes(rows)
            single[block] = rows
        norms[is_far] = 0.0
        return (codes, scales, norms, single), is_far


def _limit(value: np.float32, norm: float) -> np.float32:
    """Return the largest value of a candidate, given that of the last one needed."""
    w = max(0.0, float(value) + norm)
    limit = np.float32(w - norm + 4e-16 * (abs(norm) + w))
    return np.float32(np.nextafter(limit, np.float32(np.inf)))


def _gaps(x: SingleArray, Y: SingleArray) -> FloatArray:
    """Return ``|x - y|^2`` in single precision, each in 32 sums that are added up by halves."""
    squares = np.square(np.pad(Y - x, ((0, 0), (0, -len(x) % LANES)))).reshape(len(Y), -1, LANES)
    sums = np.zeros((len(Y), LANES), dtype=np.float32)
    for step in range(squares.shape[1]):
        sums += squares[:, step]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0].astype(np.float64)


def _length(ranges: IntArray) -> int:
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def _panels(coded: Coded) -> tuple[NDArray[np.int16], SingleArray, SingleArray, SingleArray]:
    """Return codes in panels, with scales and squares of rows up to a full panel."""
    codes, scales, norms, rows = coded
    n, p = codes.shape
    more = -n % PANEL
    panels = np.pad(codes, ((0, more), (0, 0))).reshape(-1, PANEL, p // 2, 2)
    return (
        np.ascontiguousarray(panels.transpose(0, 2, 1, 3)),
        np.pad(scales, (0, more)),
        np.pad(norms.astype(np.float32), (0, more)),
        rows,
    )
