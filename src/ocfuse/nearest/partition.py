"""Many rows in cells, so that a search may look at the cells around a row only."""

import itertools

import numpy as np

from ocfuse.arrays import FloatArray, IntArray

ROWS_PER_CELL = 256
#: Different rows that a search looks at, at least.
ROWS_LOOKED_AT = 2**15


class Partition:
    """Which rows are in which cell, and which cells are near each other.

    A search from a cell looks at the cells whose centres are nearest to its
    own, as many as hold `ROWS_LOOKED_AT` rows.

    It is made of the cell of each row, ascending, and for each cell of all cells `nearby`, the
    nearest centre first. `rows` are the rows of each cell, and `near` the cells that a search from
    each cell looks at, none of them empty.
    """

    def __init__(self, cell: IntArray, nearby: IntArray) -> None:
        starts = np.searchsorted(cell, np.arange(len(nearby) + 1))
        sizes = np.diff(starts)
        self.rows = [slice(int(starts[c]), int(starts[c + 1])) for c in range(len(nearby))]
        counts = 1 + np.sum(np.cumsum(sizes[nearby], axis=1) < ROWS_LOOKED_AT, axis=1)
        self.near = [
            [int(other) for other in row[:count] if sizes[other]]
            for row, count in zip(nearby, counts, strict=True)
        ]

    def pairs(self, size: int) -> list[tuple[slice, slice, bool]]:
        """Return which rows to compare with which, and whether the others also with them.

        Rows are cut into pieces of a `size` at most; two pieces that look at
        each other come once.
        """
        looked_at = [set(near) for near in self.near]
        pieces = [list(cut(rows.start, rows.stop, size)) for rows in self.rows]
        found = []
        for a, near in enumerate(self.near):
            for b in near:
                is_mutual = a in looked_at[b]
                found += [
                    (i, j, is_mutual and i != j)
                    for i in pieces[a]
                    for j in pieces[b]
                    if not is_mutual or i.start <= j.start
                ]
        return found


def one_cell(n: int) -> Partition:
    """Return a single cell of n rows: every search looks at all of them."""
    return Partition(np.zeros(n, dtype=np.intp), np.zeros((1, 1), dtype=np.intp))


def cut(begin: int, end: int, size: int) -> list[slice]:
    """Return pieces of a `size` at most."""
    return [slice(i, min(end, i + size)) for i in range(begin, end, size)]


def runs(home: IntArray) -> list[slice]:
    """Return the rows of every cell together, given the cell of each row, ascending."""
    ends = [*(1 + np.flatnonzero(home[1:] != home[:-1])).tolist(), len(home)]
    return [slice(*some) for some in itertools.pairwise([0, *ends])] if len(home) else []


def cell_centres(X: FloatArray) -> FloatArray:
    """Return the centres of cells: k-means on some rows, from evenly spaced ones."""
    n_cells = max(1, min(4096, len(X) // ROWS_PER_CELL))
    rows = X[_spaced(len(X), 32 * n_cells)]
    centres: FloatArray = rows[_spaced(len(rows), n_cells)]
    for _ in range(4):
        cell = _about_nearest(rows, centres)
        sizes = np.bincount(cell, minlength=n_cells)
        full = np.flatnonzero(sizes)
        order = np.argsort(cell, kind="stable")
        sums = np.add.reduceat(rows[order], np.cumsum(sizes[full]) - sizes[full], axis=0)
        centres[full] = sums / sizes[full, None]
    return centres


def _spaced(n: int, size: int) -> IntArray:
    """Return at most `size` numbers below n, evenly spaced."""
    return np.linspace(0, n - 1, min(n, size)).round().astype(np.intp)


def _about_nearest(X: FloatArray, centres: FloatArray) -> IntArray:
    """Return the centre nearest to each row, give or take rounding."""
    middle = centres.mean(axis=0)
    gaps = centres - middle
    half_squares = 0.5 * np.einsum("cm,cm->c", gaps, gaps)
    cell = np.empty(len(X), dtype=np.intp)
    for block in cut(0, len(X), max(1, 2**20 // len(centres))):
        cell[block] = np.argmax((X[block] - middle) @ gaps.T - half_squares, axis=1)
    return cell
