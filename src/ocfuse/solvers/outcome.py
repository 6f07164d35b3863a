"""The best pairs (w, alpha) that a block solver has found so far."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray, LpBall
from ocfuse.solvers.certificate import Certificate, certify
from ocfuse.solvers.solution import Status


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
        """Tell where this pair has the smaller gap or, tied, the smaller value."""
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
class Outcome:
    """Best pair of every problem of a block, and how each ended."""

    pair: Pair
    status: NDArray[np.int8]
    n_iter: NDArray[np.int32]

    @classmethod
    def nothing(cls, A: FloatArray, c: FloatArray, ball: LpBall) -> "Outcome":
        """Begin with w = 0 and alpha = 0, a pair that is valid, if poor."""
        m, k, d = A.shape
        return cls(
            Pair.of(A, c, ball, np.zeros((m, d)), np.zeros((m, k))),
            np.full(m, Status.MAX_ITERATIONS, dtype=np.int8),
            np.zeros(m, dtype=np.int32),
        )

    def update(self, rows: NDArray[np.intp], found: Pair, tol: float) -> NDArray[np.bool_]:
        """Take over what is better, mark what is proved, tell what was taken."""
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
