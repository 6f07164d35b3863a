"""Weights learned for each row that is asked about: exact, slow, nothing blended."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.fusion.inputs import FloatArray
from ocfuse.fusion.locality import Locality, neighbours, representative_rows
from ocfuse.fusion.lp import trusted_weights
from ocfuse.fusion.neighbourhood import Neighbourhood
from ocfuse.solvers.dispatch import Solver, solve_batch

#: Rows of a class that carry the global floor.
MOST_FLOOR_ROWS = 256
#: Problems that are built and solved together.
_AT_ONCE = 256


class QueryProblems:
    """The local problem of any point, built from stored training rows.

    It has the nearest rows of each class, for the local part, and for the floor all
    rows of the class or, of many, a fixed sample that carries their whole weight.

    Parameters
    ----------
    Z, y, X, c : ndarray
        Checked training rows and their weights.
    neighbourhood : Neighbourhood
        The kernel.
    locality : Locality
        The fitted norm.
    p : float
        Norm at median variability.
    eta : float
        Share of the floor.
    """

    def __init__(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        neighbourhood: Neighbourhood,
        locality: Locality,
        p: float,
        eta: float,
    ) -> None:
        self.Z, self.y, self.X, self.c = Z, y, X, c
        self.neighbourhood = neighbourhood
        self.locality = locality
        self.p = float(p)
        self.eta = float(eta)

    def solve(self, X: FloatArray, nonneg: bool, tol: float, solver: Solver) -> FloatArray:
        """Return the weights at each row, some hundred problems at a time."""
        W = np.empty((len(X), self.Z.shape[1]))
        primal = np.empty(len(X))
        for start in range(0, len(X), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            index, weight = self._rows(X[block])
            p = self.locality.norms(X[block], self.p)
            answer = solve_batch(self.Z, self.y, index, weight, p, nonneg, tol, solver)
            W[block], primal[block] = answer.W, answer.primal
        return trusted_weights(W, primal, np.full(len(X), self.c.sum()), tol)

    def _rows(self, points: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        index, weight = [], []
        for sign in np.unique(self.y):
            rows = np.flatnonzero(self.y == sign)
            for part in (self._local(points, rows), self._floor(len(points), rows)):
                index.append(part[0])
                weight.append(part[1])
        return np.hstack(index), np.hstack(weight)

    def _local(
        self, points: FloatArray, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], FloatArray]:
        n = len(rows)
        hood = self.neighbourhood
        distances, near = neighbours(points, self.X[rows], hood.support(n))
        b = self.c[rows]
        weight = hood.weigh(distances, b[near], hood.count(n), float(b.sum()))
        return rows[near], (1.0 - self.eta) * weight

    def _floor(self, q: int, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], FloatArray]:
        chosen = rows[representative_rows(len(rows), MOST_FLOOR_ROWS)]
        weight = self.eta * self.c[chosen]
        if len(chosen) < len(rows):
            weight *= self.c[rows].sum() / self.c[chosen].sum()
        return np.tile(chosen, (q, 1)), np.tile(weight, (q, 1))
