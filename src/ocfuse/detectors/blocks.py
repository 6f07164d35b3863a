"""Blocks of near rows: planes part the rows, again and again, into equal shares."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from ocfuse.detectors.gram import FloatArray, Reference
from ocfuse.detectors.leverage import evenly

IntArray: TypeAlias = NDArray[np.intp]

#: Rows that the direction of a plane is learned from.
ROWS_LOOKED_AT = 500


class Blocks:
    """Rows in blocks, and the block that any row belongs to.

    Every plane is across the direction in which the rows that it parts vary most.
    No chance is involved, and what block a row is in does not depend on others.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        The rows.
    scale : float
        Their mean squared distance M.
    most : int
        Rows of a block, at most.

    Attributes
    ----------
    parts : list of Reference
        The rows of every block, with the M of all.
    starts : ndarray of shape (number of blocks + 1,)
        The first row of every block where they follow each other, and the end.
    planes : ndarray of shape (number of blocks - 1, m)
        Directions across the planes.
    levels : ndarray of shape (number of blocks - 1,)
        Where they are: a row on or below is on the first side.
    children : ndarray of shape (number of blocks - 1, 2)
        The plane that parts each side, or ``~j`` where it is block j.
    """

    def __init__(self, X: FloatArray, scale: float, most: int) -> None:
        self._rows: list[IntArray] = []
        self._planes: list[tuple[FloatArray, float, list[int]]] = []
        self._part(X, np.arange(len(X)), -(-len(X) // most))
        self.planes: FloatArray = np.array([plane for plane, _, _ in self._planes])
        self.levels: FloatArray = np.array([level for _, level, _ in self._planes])
        self.children: IntArray = np.array([two for _, _, two in self._planes], dtype=np.intp)
        self.parts = [Reference(X[rows], scale) for rows in self._rows]
        self.starts: IntArray = np.cumsum([0, *map(len, self._rows)])

    @property
    def rows(self) -> list[IntArray]:
        """Numbers of the training rows of every block, ascending; not there after loading."""
        return self._rows

    def of(self, X: FloatArray) -> IntArray:
        """Return the block of every row."""
        found = np.zeros(len(X), dtype=np.intp)
        waiting = [(0, np.arange(len(X)))] if len(self.planes) else []
        while waiting:
            i, rows = waiting.pop()
            is_above = _heights(X[rows], self.planes[i]) > self.levels[i]
            for child, side in zip(
                self.children[i], (rows[~is_above], rows[is_above]), strict=True
            ):
                if child < 0:
                    found[side] = ~child
                elif len(side):
                    waiting.append((int(child), side))
        return found

    def _part(self, X: FloatArray, rows: IntArray, n_blocks: int) -> int:
        """Part some rows into blocks of equal size; return their plane or ``~`` their block."""
        if n_blocks == 1:
            self._rows.append(np.sort(rows))
            return ~(len(self._rows) - 1)
        plane = _direction(X[rows[evenly(len(rows), ROWS_LOOKED_AT)]])
        heights = _heights(X[rows], plane)
        order = np.argsort(heights, kind="stable")
        first = n_blocks // 2
        split = len(rows) * first // n_blocks
        level = (heights[order[split - 1]] + heights[order[split]]) / 2
        children: list[int] = []
        place = len(self._planes)
        self._planes.append((plane, float(level), children))
        children.append(self._part(X, rows[order[:split]], first))
        children.append(self._part(X, rows[order[split:]], n_blocks - first))
        return place

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def _direction(X: FloatArray) -> FloatArray:
    """Return the direction in which rows vary most."""
    direction: FloatArray = svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    return direction


def _heights(X: FloatArray, plane: FloatArray) -> FloatArray:
    """Return products with a direction, of each row on its own."""
    heights: FloatArray = np.einsum("qm,m->q", X, plane)
    return heights
