"""The same problem for cvxpy and for Clarabel alone, each in its fastest form.

The ball is written with exact power cones (p = 2: a second-order cone), which
this cvxpy solves faster than its default, an approximation by many cones.
"""

from dataclasses import dataclass

import clarabel
import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


def in_ball(w: cp.Variable, p: float) -> cp.Constraint:
    return cp.norm(w, 2) <= 1 if p == 2 else cp.pnorm(w, p, approx=False) <= 1


def tolerances(tol: float | None) -> dict[str, float]:
    """Return Clarabel's settings for a tolerance; None: its own, 1e-8."""
    return {} if tol is None else dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)


def rebuilt(A: Array, c: Array, p: float, tol: float | None) -> float:
    """Write the problem down in cvxpy and solve it; return the optimum."""
    w, xi = cp.Variable(A.shape[1]), cp.Variable(A.shape[0], nonneg=True)
    problem = cp.Problem(cp.Minimize(c @ xi), [xi >= 1 - A @ w, in_ball(w, p)])
    problem.solve(solver=cp.CLARABEL, **tolerances(tol))
    return float(problem.value)


class Parametrised:
    """A problem written down and compiled once, whose data then changes."""

    def __init__(self, k: int, d: int, p: float) -> None:
        self.A, self.c = cp.Parameter((k, d)), cp.Parameter(k, nonneg=True)
        w, xi = cp.Variable(d), cp.Variable(k, nonneg=True)
        self.problem = cp.Problem(cp.Minimize(self.c @ xi), [xi >= 1 - self.A @ w, in_ball(w, p)])
        assert self.problem.is_dcp(dpp=True)

    def solve(self, A: Array, c: Array, tol: float | None) -> float:
        self.A.value, self.c.value = A, c
        self.problem.solve(solver=cp.CLARABEL, **tolerances(tol))
        return float(self.problem.value)


@dataclass
class Conic:
    """Data of ``min q.x`` with ``b - M x`` in a product of cones, as Clarabel takes it."""

    q: Array
    M: sparse.csc_matrix
    b: Array
    cones: list[object]

    def solver(self, tol: float | None) -> clarabel.DefaultSolver:
        """Return a solver that is set up and not yet run."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        for name, value in tolerances(tol).items():
            setattr(settings, name, value)
        n = len(self.q)
        nothing = sparse.csc_matrix((n, n))
        return clarabel.DefaultSolver(nothing, self.q, self.M, self.b, self.cones, settings)


def conic(A: Array, c: Array, p: float) -> Conic:
    """Write the problem by hand, x = (w, xi, t), with ``|w_j|^p <= t_j`` and ``sum t <= 1``."""
    k, d = A.shape
    n_lifted = 0 if p == 2 else d
    hinge = sparse.hstack([-A, -sparse.eye(k), sparse.csc_matrix((k, n_lifted))])
    positive = sparse.hstack([sparse.csc_matrix((k, d)), -sparse.eye(k), _zero(k, n_lifted)])
    if p == 2:
        ball = sparse.vstack([_zero(1, d + k), sparse.hstack([-sparse.eye(d), _zero(d, k)])])
        M, b = sparse.vstack([hinge, positive, ball]), [-np.ones(k), np.zeros(k), _first(d + 1)]
        cones = [clarabel.NonnegativeConeT(2 * k), clarabel.SecondOrderConeT(d + 1)]
    else:
        total = sparse.hstack([_zero(1, d + k), np.ones((1, d))])
        M = sparse.vstack([hinge, positive, total, *(_power_rows(j, k, d) for j in range(d))])
        b = [-np.ones(k), np.zeros(k), np.ones(1), np.tile([0.0, 1.0, 0.0], d)]
        powers = [clarabel.PowerConeT(1 / p) for _ in range(d)]
        cones = [clarabel.NonnegativeConeT(2 * k + 1), *powers]
    q = np.concatenate([np.zeros(d), c, np.zeros(n_lifted)])
    return Conic(q, sparse.csc_matrix(M), np.concatenate(b), cones)


def _power_rows(j: int, k: int, d: int) -> sparse.coo_matrix:
    """Return the rows of (t_j, 1, w_j), a member of the power cone."""
    return sparse.coo_matrix(([-1.0, -1.0], ([0, 2], [d + k + j, j])), shape=(3, 2 * d + k))


def _zero(rows: int, columns: int) -> sparse.csc_matrix:
    return sparse.csc_matrix((rows, columns))


def _first(size: int) -> Array:
    return np.eye(1, size)[0]
