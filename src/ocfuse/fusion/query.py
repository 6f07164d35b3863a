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
        Checked training rows and their weights; kept sorted by class.
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
        # Class by class, so that the rows of a class are a slice and need no copy.
        order = y.argsort(kind="stable")
        self.Z, self.y, self.X, self.c = Z[order], y[order], X[order], c[order]
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
            start, stop = np.searchsorted(self.y, [sign, sign + 1])
            for part in (
                self._local(points, int(start), int(stop)),
                self._floor(len(points), int(start), int(stop)),
            ):
                index.append(part[0])
                weight.append(part[1])
        return np.hstack(index), np.hstack(weight)

    def _local(
        self, points: FloatArray, start: int, stop: int
    ) -> tuple[NDArray[np.intp], FloatArray]:
        n = stop - start
        hood = self.neighbourhood
        distances, near = neighbours(points, self.X[start:stop], hood.support(n))
        b = self.c[start:stop]
        weight = hood.weigh(distances, b[near], hood.count(n), float(b.sum()))
        return near + start, (1.0 - self.eta) * weight

    def _floor(self, q: int, start: int, stop: int) -> tuple[NDArray[np.intp], FloatArray]:
        n = stop - start
        chosen = start + representative_rows(n, MOST_FLOOR_ROWS)
        weight = self.eta * self.c[chosen]
        if len(chosen) < n:
            weight *= self.c[start:stop].sum() / self.c[chosen].sum()
        return np.tile(chosen, (q, 1)), np.tile(weight, (q, 1))
