"""Two Frank-Wolfe methods for lp-constrained hinge fusion.

Both move towards the maximiser over the ball of ``A' alpha``, where alpha tells
how active every hinge is. They differ in alpha and in the step.

The strong variant (`paper=False`) averages, with weight 2/(t+2), the gradients
of a hinge that is smoothed over half of the current gap, and minimises the
smoothed objective exactly along the segment. Its averaged alpha is a dual
certificate that closes as the smoothing vanishes.

The paper's variant (`paper=True`) takes a plain subgradient and the open-loop
step 2/(t+2). Frank-Wolfe needs a smooth objective; on the hinge this one does
not converge in general: it stalls at a gap that does not shrink, and neither
does its certificate (see docs/errata.md). It is here because it is what the
paper timed.

Arrays carry the problems on their first axis: A is (m, k, d), the rest (m, k),
(m, d) or (m, 1).
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray, LpBall
from ocfuse.solvers.certificate import PRIMAL_FLOOR
from ocfuse.solvers.outcome import Outcome, Pair
from ocfuse.solvers.presolve import is_hopeless
from ocfuse.solvers.solution import Status

#: The smoothing never falls below this, so that it can be divided by.
SHARPEST = 1e-12
#: A gap below this share of the allowed one that is still not proved never will be:
#: rounding hides it.
DROWNED = 0.5
#: Share of the allowed gap to which the line search is exact.
LINE_PRECISION = 1e-2


@dataclass
class Segment:
    """Where every problem stands, and the best bound and point it has seen."""

    w: FloatArray
    m: FloatArray  # A w
    average: FloatArray  # the dual variables that steer
    alpha: FloatArray  # the best dual variables seen
    best_w: FloatArray
    primal: FloatArray  # (m, 1), at best_w
    dual: FloatArray  # (m, 1), at alpha

    @classmethod
    def start(cls, A: FloatArray, c: FloatArray) -> "Segment":
        """Return w = 0, where every hinge is active."""
        m, k, d = A.shape
        w, zero = np.zeros((m, d)), np.zeros((m, k))
        primal = np.sum(c, axis=1, keepdims=True)
        return cls(w, zero, zero.copy(), zero.copy(), w.copy(), primal, np.zeros((m, 1)))

    def take(self, rows: NDArray[np.intp]) -> "Segment":
        """Return the chosen problems."""
        return Segment(*(getattr(self, f.name)[rows] for f in fields(self)))


def smoothing_width(age: int, at: Segment) -> FloatArray:
    """Return the smoothing: half of the gap, and everything at the start."""
    gap = np.full_like(at.primal, 2.0) if age == 0 else at.primal - at.dual
    return np.maximum(0.5 * gap, SHARPEST)


def activity(m: FloatArray, smoothing: FloatArray) -> FloatArray:
    """Return the derivative of the smoothed hinge, from 0 (idle) to 1 (active)."""
    return np.clip((1.0 - m) / smoothing, 0.0, 1.0)


def line_search(
    c: FloatArray, m: FloatArray, dm: FloatArray, smoothing: FloatArray, exact: FloatArray
) -> FloatArray:
    """Minimise the smoothed hinge over m + step dm, 0 <= step <= 1.

    The slope is piecewise linear in the step, so Newton steps inside a shrinking
    bracket end at the exact minimum.
    """
    push = c * dm
    low, step = np.zeros_like(exact), np.ones_like(exact)
    high = step
    for _ in range(41):
        level = (1.0 - m - step * dm) / smoothing
        slope = -np.sum(push * np.clip(level, 0.0, 1.0), axis=1, keepdims=True)
        inside = (level > 0.0) & (level < 1.0)
        bend = np.sum(np.where(inside, push * dm, 0.0), axis=1, keepdims=True) / smoothing
        falling = slope < 0.0
        low, high = np.where(falling, step, low), np.where(falling, high, step)
        open_ = (np.abs(slope) * (high - low) > exact) & (slope != 0.0)
        if not open_.any():
            break
        newton = step - np.divide(slope, bend, out=np.full_like(slope, np.inf), where=bend > 0)
        better = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        step = np.where(open_, better, step)
    return step


def iterate_once(
    A: FloatArray, c: FloatArray, ball: LpBall, at: Segment, age: int, tol: float, paper: bool
) -> Segment:
    """Take one step from every problem's point."""
    blend = 2.0 / (age + 2.0)
    smoothing = smoothing_width(age, at)
    if paper:
        average = np.where(at.m < 1.0, c, 0.0)
    else:
        average = at.average + blend * (c * activity(at.m, smoothing) - at.average)
    v = (average[:, np.newaxis, :] @ A)[:, 0, :]
    bound = (np.sum(average, axis=1) - ball.dual_norm(v))[:, np.newaxis]
    alpha = np.where(bound > at.dual, average, at.alpha)
    vertex = ball.maximiser(v)
    dm = (A @ vertex[:, :, np.newaxis])[:, :, 0] - at.m
    exact = LINE_PRECISION * tol * np.maximum(at.primal, PRIMAL_FLOOR)
    step = blend if paper else line_search(c, at.m, dm, smoothing, exact)
    w, m = at.w + step * (vertex - at.w), at.m + step * dm
    value = np.sum(c * np.maximum(0.0, 1.0 - m), axis=1, keepdims=True)
    best_w = np.where(value <= at.primal, w, at.best_w)
    return Segment(
        w, m, average, alpha, best_w, np.minimum(value, at.primal), np.maximum(bound, at.dual)
    )


def frank_wolfe(
    A: FloatArray,
    c: FloatArray,
    ball: LpBall,
    tol: float,
    max_iter: int,
    *,
    paper: bool = False,
    patience: float = np.inf,
) -> Outcome:
    """Solve a block of problems whose sample weights sum to one.

    Parameters
    ----------
    A : ndarray of shape (m, k, d)
        Margins.
    c : ndarray of shape (m, k)
        Sample weights; every row sums to one, or is zero.
    ball : LpBall
        The constraint, with one p per problem.
    tol : float
        Relative gap to reach.
    max_iter : int
        Iterations allowed.
    paper : bool, default=False
        Run the paper's variant.
    patience : float, default=inf
        Give a problem up as soon as more iterations than this seem needed.

    Returns
    -------
    Outcome
        The best pair found for every problem, and how it ended.
    """
    at = Segment.start(A, c)
    outcome = Outcome.nothing(A, c, ball)
    active = np.arange(A.shape[0])
    for age in range(max_iter):
        with np.errstate(all="ignore"):  # a lost problem shows as NaN and is dropped
            at = iterate_once(A, c, ball, at, age, tol, paper)
            gap = (at.primal - at.dual)[:, 0]
        allowed = tol * np.maximum(at.primal[:, 0], PRIMAL_FLOOR)
        lost = ~np.isfinite(gap)
        hopeless = lost | is_hopeless(age + 1, gap, allowed, np.asarray(ball.p), patience)
        look = np.flatnonzero(((gap <= allowed) | hopeless | (age + 1 == max_iter)) & ~lost)
        if look.size:
            pair = Pair.of(A[look], c[look], ball.take(look), at.best_w[look], at.alpha[look])
            outcome.update(active[look], pair, tol)
        outcome.n_iter[active] = age + 1
        solved = outcome.status[active] == Status.SOLVED
        drowned = ~solved & (lost | (gap <= DROWNED * allowed))
        outcome.status[active[drowned]] = Status.NUMERICAL_TROUBLE
        going = np.flatnonzero(~(hopeless | solved | drowned))
        if going.size < active.size:
            active, at, A, c = active[going], at.take(going), A[going], c[going]
            ball = ball.take(going)
        if not active.size:
            break
    return outcome
