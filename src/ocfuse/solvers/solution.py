"""Solutions: weights, certificates, and the best pairs so far.

There is one definition of "converged": a gap recomputed from w and alpha. With margins ``a_i =
y_i s_i`` and sample weights ``c_i`` the problem is::

    primal   P(w)     = sum_i c_i max(0, 1 - a_i.w),     w in the ball
    dual     D(alpha) = sum_i alpha_i - ||A' alpha||_q,  0 <= alpha <= c

(with ``w >= 0`` the dual norm is taken of ``max(A' alpha, 0)``). Every alpha in
the box gives a valid bound ``D(alpha) <= P*``, so that ``P(w) - D(alpha)``
certifies w, whoever computed the two.
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.method import Method

#: P* = 0 is common (separable data, large p); below this share of sum(c) the
#: primal value no longer scales the gap.
PRIMAL_FLOOR = 1e-3

#: Rounding moves P - D by at most half of this times the mass of its terms
#: (measured); a gap counts as closed only if it would be with this on top.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


class Status(IntEnum):
    """Status of a solver at its end."""

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
        Number of iterations, including the presolve.
    solver : str
        The method that computed w.
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
        Number of iterations, including the presolve.
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
        """Return empty arrays for the answers of m problems."""
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


class Certificate(NamedTuple):
    """Primal value, dual value and relative gap of a pair (w, alpha)."""

    primal: FloatArray
    dual: FloatArray
    gap: FloatArray
    rounding: FloatArray  #: what rounding may hide, in the units of the gap

    def proves(self, tol: float) -> NDArray[np.bool_]:
        """Return for which pairs the gap is at most `tol`, whatever rounding did."""
        return np.asarray(self.gap + self.rounding <= tol)


def certify(
    A: FloatArray, c: FloatArray, ball: LpBall, w: FloatArray, alpha: FloatArray
) -> Certificate:
    """Return the certificate of (w, alpha), computed from the data alone.

    Shapes are (..., k, d) for A, (..., d) for w and (..., k) for c and alpha; p of the ball is a
    scalar or has the leading shape. ``gap = (P - D) / max(P, 1e-3 sum(c))`` is never below 0; it
    is inf where w is outside the ball or alpha outside the box, which proves nothing, or where D
    exceeds P by more than rounding, which cannot be.
    """
    margins = (A @ w[..., np.newaxis])[..., 0]
    v = (alpha[..., np.newaxis, :] @ A)[..., 0, :]
    primal = np.sum(c * np.maximum(0.0, 1.0 - margins), axis=-1)
    dual = np.sum(alpha, axis=-1) - ball.dual_norm(v)
    total = np.sum(c, axis=-1)
    gap = relative_gap(primal, dual, total)
    valid = ball.contains(w) & ((alpha >= 0) & (alpha <= c)).all(axis=-1)
    rounding = ROUNDING * _mass(np.abs(A), c, np.abs(w), alpha, margins)
    return Certificate(
        primal,
        dual,
        np.where(valid & (dual - primal <= rounding), gap, np.inf),
        rounding / gap_scale(primal, total),
    )


def relative_gap(primal: FloatArray, dual: FloatArray, total: FloatArray) -> FloatArray:
    """Return P - D measured in P, or in the floor where P is tiny."""
    return np.asarray(np.maximum(primal - dual, 0.0) / gap_scale(primal, total))


def gap_scale(primal: FloatArray, total: FloatArray) -> FloatArray:
    """Return what a gap is measured in; 1 where there is no weight at all."""
    scale = np.maximum(primal, PRIMAL_FLOOR * total)
    return np.where(scale > 0, scale, 1.0)


def _mass(
    size: FloatArray, c: FloatArray, w: FloatArray, alpha: FloatArray, margins: FloatArray
) -> FloatArray:
    """Return the sum of the absolute terms behind P, over active hinges, and D."""
    reach = 1.0 + (size @ w[..., np.newaxis])[..., 0]
    active = 1.0 - margins > -ROUNDING * reach
    dual = (alpha[..., np.newaxis, :] @ size)[..., 0, :].max(axis=-1)
    return np.asarray(np.sum(np.where(active, c * reach, 0.0), axis=-1) + dual)


@dataclass
class Pair:
    """Weights and dual variables of a block of problems, with their certificate."""

    w: FloatArray
    alpha: FloatArray
    certificate: Certificate

    @classmethod
    def of(
        cls, A: FloatArray, c: FloatArray, ball: LpBall, w: FloatArray, alpha: FloatArray
    ) -> "Pair":
        """Certify a pair, its weights drawn into the ball if rounding left them outside."""
        w = w / np.maximum(ball.norm(w), 1.0)[:, np.newaxis]
        return cls(w, alpha, certify(A, c, ball, w, alpha))

    def is_better_than(self, other: "Pair") -> NDArray[np.bool_]:
        """Return where this pair has the smaller gap or, tied, the smaller value."""
        mine, theirs = self.certificate, other.certificate
        tied = (mine.gap == theirs.gap) & (mine.primal < theirs.primal)
        return np.asarray((mine.gap < theirs.gap) | tied)

    def improved_by(self, other: "Pair") -> "Pair":
        """Return, problem by problem, the better of two pairs."""
        better = other.is_better_than(self)
        pairs = zip(other.certificate, self.certificate, strict=True)
        return Pair(
            np.where(better[:, np.newaxis], other.w, self.w),
            np.where(better[:, np.newaxis], other.alpha, self.alpha),
            Certificate(*(np.where(better, new, old) for new, old in pairs)),
        )


@dataclass
class BestPairs:
    """Best pair of every problem of a block, and how each ended."""

    pair: Pair
    status: NDArray[np.int8]
    n_iter: NDArray[np.int32]

    @classmethod
    def nothing(cls, A: FloatArray, c: FloatArray, ball: LpBall) -> "BestPairs":
        """Begin with w = 0 and alpha = 0, a pair that is valid, if poor."""
        m, k, d = A.shape
        return cls(
            Pair.of(A, c, ball, np.zeros((m, d)), np.zeros((m, k))),
            np.full(m, Status.MAX_ITERATIONS, dtype=np.int8),
            np.zeros(m, dtype=np.int32),
        )

    def update(self, rows: NDArray[np.intp], found: Pair, tol: float) -> NDArray[np.bool_]:
        """Take over what is better, mark what is proved, return what was taken."""
        mine = Pair(
            self.pair.w[rows],
            self.pair.alpha[rows],
            Certificate(*(value[rows] for value in self.pair.certificate)),
        )
        taken = found.is_better_than(mine)
        best = mine.improved_by(found)
        self.pair.w[rows], self.pair.alpha[rows] = best.w, best.alpha
        for target, value in zip(self.pair.certificate, best.certificate, strict=True):
            target[rows] = value
        self.status[rows[best.certificate.proves(tol)]] = Status.SOLVED
        return taken
