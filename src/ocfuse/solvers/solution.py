"""What a solver returns: weights, certificate and how it ended."""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray
from ocfuse.solvers.method import Method


class Status(IntEnum):
    """How a solver ended."""

    SOLVED = 0  #: the recomputed gap is at most the tolerance
    MAX_ITERATIONS = 1  #: the iterations ran out first; the best point is returned
    NUMERICAL_TROUBLE = 2  #: no step made progress any more; the best point is returned

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights of one problem, with the certificate that proves them.

    Attributes
    ----------
    w : ndarray of shape (d,)
        Weights, inside the ball.
    alpha : ndarray of shape (n,)
        Dual variables in [0, c]; the gap can be recomputed from w and alpha.
    primal, dual : float
        Value of the objective at w, and the proven lower bound.
    gap : float
        ``(primal - dual) / max(primal, 1e-3 * sum(c))``; at most `tol` when solved.
    status : Status
        How the solver ended.
    n_iter : int
        Iterations, presolve included.
    solver : str
        The method that produced w.
    """

    w: FloatArray
    alpha: FloatArray
    primal: float
    dual: float
    gap: float
    status: Status
    n_iter: int
    solver: str


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """Weights of m problems, each with its certificate.

    Attributes
    ----------
    W : ndarray of shape (m, d)
        Weights, one row per problem.
    alpha : ndarray of shape (m, k)
        Dual variables, aligned with the index array.
    primal, dual, gap : ndarray of shape (m,)
        Objective, lower bound and relative gap.
    status : ndarray of shape (m,)
        Values of `Status`.
    n_iter : ndarray of shape (m,)
        Iterations, presolve included.
    method : ndarray of shape (m,)
        The method that produced each row, as a number; `solver` has the names.
    """

    W: FloatArray
    alpha: FloatArray
    primal: FloatArray
    dual: FloatArray
    gap: FloatArray
    status: NDArray[np.int8]
    n_iter: NDArray[np.int32]
    method: NDArray[np.int8]

    @classmethod
    def empty(cls, m: int, k: int, d: int) -> "BatchSolution":
        """Return room for the answers of m problems."""
        return cls(
            np.empty((m, d)), np.empty((m, k)), np.empty(m), np.empty(m), np.empty(m),
            np.empty(m, dtype=np.int8), np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int8),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.W)

    def __getitem__(self, i: int) -> Solution:
        """Return the solution of one problem."""
        return Solution(
            self.W[i], self.alpha[i], float(self.primal[i]), float(self.dual[i]),
            float(self.gap[i]), Status(int(self.status[i])), int(self.n_iter[i]),
            Method(int(self.method[i])).solver,
        )  # fmt: skip

    @property
    def solver(self) -> list[str]:
        """Name of the method that produced each row, as in `Solution`."""
        return [Method(int(code)).solver for code in self.method]

    @property
    def n_solved(self) -> int:
        """Number of problems whose gap is at most the tolerance."""
        return int(np.count_nonzero(self.status == Status.SOLVED))

    def improve(self, rows: NDArray[np.intp], other: "BatchSolution") -> None:
        """Take over the answers of another attempt where their gap is smaller."""
        better = other.gap <= self.gap[rows]
        for f in fields(self):
            if f.name != "n_iter":
                getattr(self, f.name)[rows[better]] = getattr(other, f.name)[better]
        self.n_iter[rows] += other.n_iter
