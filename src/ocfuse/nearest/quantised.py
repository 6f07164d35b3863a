"""Candidates for nearest rows by integer and single-precision products.

By integers, in the compiled kernel or by NumPy: rows are coded as whole numbers in the few
directions in which they vary most (see `leading`). The nearest by these codes, with some to
spare, are measured in all columns. What is found depends on the row and the rows to find alone.
The part of a row outside these directions enters by its length only: of two rows the squared
distance is about ``|Px - Py|^2 + |rx|^2 + |ry|^2`` with P the part in the directions and r the
rest. Numbers are rounded so that all sums of products are exact: whatever their order, a row
has the same codes and the same candidates.

In single precision, in the compiled kernel (see `ProductSearch`): the kernel keeps every row
that the rounding of the products leaves in doubt and orders what it kept by direct differences,
in double precision.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import BoolArray, FloatArray, IntArray, SingleArray
from ocfuse.kernels import kernel, thread_count
from ocfuse.nearest.exact import BLOCK, Nearest
from ocfuse.nearest.partition import Partition, cut, runs

CodeArray: TypeAlias = NDArray[np.int16]
#: Codes, scales, squared lengths and rows in single precision.
Coded: TypeAlias = tuple[CodeArray, SingleArray, FloatArray, SingleArray]

#: Numbers to look at for a row that make it worth while.
LEAST_WORK = 2**21
#: Neighbours that must be among the candidates, and candidates to spare.
NEIGHBOURS, SPARE = 32, 32
#: Rows of a block of products, and numbers in it: it should stay in the cache.
PRODUCT_ROWS, PRODUCTS_AT_ONCE = 1024, 2**20
#: Single precision cannot multiply longer rows, by their square, by rows of length 1.
LARGEST_NORM = 1e30
#: A row with more candidates than so many per neighbour is not judged.
CROWD = 8


class Leading:
    """Rows as whole numbers: coordinates in orthogonal directions (m, p) of length 1."""

    def __init__(self, directions: FloatArray) -> None:
        m, p = directions.shape
        self.size = p
        # A sum has 53 bits in double precision, and 30 if it is one of whole numbers.
        self._bits, self._code_bits = _bits(m, 53), _bits(p, 30)
        self._directions = np.rint(np.ldexp(directions, self._bits))

    def codes(self, rows: FloatArray) -> tuple[CodeArray, SingleArray]:
        """Return codes (q, p) and scales (q,), powers of two: their products are coordinates."""
        whole, exponents = _whole(rows, self._bits)
        codes, shifts = _whole(whole @ self._directions, self._code_bits)
        scales = np.ldexp(np.float32(1.0), exponents + shifts - self._bits)
        return codes.astype(np.int16), scales.astype(np.float32)


def leading(rows: FloatArray) -> Leading | None:
    """Return directions of centred rows, as few as find the neighbours; None if that takes many.

    Also None if codes of the rows are too coarse: where clusters, or a few rows, are far from
    the others, most bits tell these apart only.
    """
    n, m = rows.shape
    group = 16
    most = m // 3 // group * group  # no more than one for three columns
    if n <= NEIGHBOURS + SPARE or not most:
        return None
    directions: FloatArray = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :most]
    trial = CandidateTrial(rows)
    coordinates = rows @ directions
    products = np.zeros((len(trial.tried), n))
    for size in range(group, most + 1, group):
        new = coordinates[:, size - group : size]
        products += new[trial.tried] @ new.T
        if trial.is_passed_by(trial.squares - 2.0 * products):
            found = Leading(directions[:, :size])
            if trial.is_passed_by_codes(found):
                return found
    return None


def every_column(rows: FloatArray) -> Leading | None:
    """Return the columns themselves as directions, their number made even.

    None if codes of the rows are too coarse.
    """
    n, m = rows.shape
    found = Leading(np.eye(m, m + m % 2))
    is_enough = n <= NEIGHBOURS + SPARE or CandidateTrial(rows).is_passed_by_codes(found)
    return found if is_enough else None


class CandidateTrial:
    """Whether neighbours of at most 128 centred rows, those `tried`, are among their candidates.

    `squares` are the squared lengths of all rows.
    """

    def __init__(self, rows: FloatArray) -> None:
        self._rows = rows
        self.tried: IntArray = np.arange(0, len(rows), -(-len(rows) // 128))
        self.squares: FloatArray = np.einsum("nm,nm->n", rows, rows)
        self._near = _nearest(self.squares - 2.0 * (rows[self.tried] @ rows.T), NEIGHBOURS)

    def is_passed_by(self, values: NDArray[np.floating[Any]]) -> bool:
        """Return whether values (q, n) that are small for near rows find the neighbours."""
        candidates = _nearest(values, NEIGHBOURS + SPARE)
        is_found = np.zeros(values.shape, dtype=bool)
        np.put_along_axis(is_found, candidates, True, axis=1)
        return bool(np.take_along_axis(is_found, self._near, axis=1).mean() >= 0.995)

    def is_passed_by_codes(self, leading: Leading) -> bool:
        """Return whether values as the search has them, of codes and in single precision, do."""
        codes, scales = leading.codes(self._rows)
        coded = codes * scales[:, None].astype(np.float64)
        products = (coded[self.tried] @ coded.T).astype(np.float32)
        return self.is_passed_by(self.squares.astype(np.float32) - np.float32(2.0) * products)


def _nearest(values: NDArray[np.floating[Any]], k: int) -> IntArray:
    return np.argpartition(values, k - 1, axis=1)[:, :k]


def _bits(n: int, bits: int) -> int:
    """Return the bits that numbers may have so that n products of two add up exactly."""
    return (bits - (n - 1).bit_length()) // 2


def _whole(rows: FloatArray, bits: int) -> tuple[FloatArray, NDArray[np.intc]]:
    """Return rows as whole numbers of so many bits, and the power of two of every row."""
    if kernel is not None:
        answer: tuple[FloatArray, NDArray[np.intc]]
        answer = kernel.whole(rows, bits, thread_count(rows.size))
        return answer
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    exponents = np.frexp(largest)[1] - bits
    whole: FloatArray = np.rint(rows * np.ldexp(1.0, -exponents)[:, None])
    return whole, exponents


class Distinct:
    """Rows that are all different, and the numbers of the rows equal to each.

    Row u stands for the rows ``numbers[starts[u]:starts[u + 1]]``, ascending.
    """

    rows: FloatArray  # (u, m), the different rows
    starts: IntArray  # (u + 1,)
    numbers: IntArray  # (n,)
    which: IntArray  # (n,), what stands for each row

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
        self.numbers = order
        self.starts = np.append(np.flatnonzero(is_new), n)
        self.which = np.empty(n, dtype=np.intp)
        self.which[order] = np.cumsum(is_new) - 1
        self.rows = X if is_new.all() else X[order[is_new]]

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


class CentredUnit:
    """Where rows lie: around their mean, no farther than a unit.

    The unit is a power of two, which changes no digit.
    """

    def __init__(self, rows: FloatArray) -> None:
        blocks = [rows[block] for block in cut(0, len(rows), PRODUCT_ROWS)]
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


class ProductSearch:
    """Find the nearest of different rows, without double precision where it can.

    Duplicates would crowd out the others.
    """

    def __init__(self, distinct: Distinct, cells: Partition, frame: CentredUnit) -> None:
        self._distinct, self._cells, self._frame = distinct, cells, frame
        rows, self._norms = self._scaled(distinct.rows)
        # Column by column, by which the product with a single row is four times as fast.
        self._columns = np.ascontiguousarray(rows.T)
        self._squares = self._norms.astype(np.float32)
        self._numbers = np.arange(len(rows), dtype=np.int32)

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
            for i in cut(here.start, here.stop, PRODUCT_ROWS):
                some, size = rows[i], PRODUCTS_AT_ONCE // (i.stop - i.start)
                for cell in looked_at:
                    for j in cut(cell.start, cell.stop, size):
                        found.add(
                            some @ self._columns[:, j], numbers[i], self._numbers[j],
                            squares[i], self._squares[j], False,
                        )  # fmt: skip
        nearest, is_open = self._ordered(found, X, k)
        return nearest, is_open | is_far

    def graph(self, k: int) -> tuple[Nearest, BoolArray]:
        """Return the k rows nearest to each of the different rows, itself among them."""
        found = self._candidates(self._norms, k)
        for i, j, both in self._cells.pairs(PRODUCT_ROWS):
            found.add(
                self._columns[:, i].T @ self._columns[:, j], self._numbers[i], self._numbers[j],
                self._squares[i], self._squares[j], both,
            )  # fmt: skip
        return self._ordered(found, self._distinct.rows, k)

    def _candidates(self, norms: FloatArray, k: int) -> Any:
        assert kernel is not None
        k, m = min(k, len(self._numbers)), len(self._columns) + 8
        # The error of a product per column, in units of the norms, and what underflow may add
        # to it, in the unit of the longest row.
        half_unit, underflow = 1.1 * 2.0**-24, 2.0**-120
        return kernel.Candidates(norms, k, CROWD * (k + 32), m * half_unit, m * underflow)

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


class CodedRows:
    """Find the nearest of different rows, or others as near as make no difference.

    Candidates are found by their coordinates in the `leading` directions.
    """

    def __init__(
        self, distinct: Distinct, cells: Partition, frame: CentredUnit, leading: Leading
    ) -> None:
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
        # These have no answer, and nobody may read what was in this memory.
        squares[crowded], index[crowded] = np.inf, 0
        return (squares, index), crowded

    def _measured(self, X: FloatArray, norms: FloatArray, nearest: Nearest) -> Nearest:
        """Return squares in units of the rows; measure the small ones in double precision.

        Distances in single precision are then right to about 1e-5.
        """
        squares, index = nearest
        is_near = squares < 1e-5 * norms[:, None]
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
        n_looked_at = int((looked_at[:, 1] - looked_at[:, 0]).sum())
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
        for block in cut(0, len(x[0]), max(1, 2**22 // len(rows))):
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
        for block in cut(0, n, 2048):
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
    squares = np.square(np.pad(Y - x, ((0, 0), (0, -len(x) % 32)))).reshape(len(Y), -1, 32)
    sums = np.zeros((len(Y), 32), dtype=np.float32)
    for step in range(squares.shape[1]):
        sums += squares[:, step]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0].astype(np.float64)


def _panels(coded: Coded) -> tuple[CodeArray, SingleArray, SingleArray, SingleArray]:
    """Return codes in panels of 16 rows, with scales and squares of rows up to a full panel.

    In a panel the codes of the rows lie together, two columns at a time.
    """
    codes, scales, norms, rows = coded
    n, p = codes.shape
    more = -n % 16
    panels = np.pad(codes, ((0, more), (0, 0))).reshape(-1, 16, p // 2, 2)
    return (
        np.ascontiguousarray(panels.transpose(0, 2, 1, 3)),
        np.pad(scales, (0, more)),
        np.pad(norms.astype(np.float32), (0, more)),
        rows,
    )
