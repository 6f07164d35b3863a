"""Two Frank-Wolfe methods for lp-constrained hinge fusion.

Both move towards the maximiser over the ball of ``A' alpha``, where alpha tells
how active every hinge is. They differ in alpha and in the step.

The strong variant (`paper=False`) averages, with weight 2/(t+2), the gradients
of a hinge that is smoothed over half of the current gap, and minimises the
smoothed objective exactly along the segment. Its averaged alpha is a dual
certificate that closes as the smoothing vanishes. Whenever the newest gradient
alone proves more than the average and than anything before, the average starts
anew from it: where many samples make the objective smooth in effect, memory only
delays.

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

from ocfuse.arrays import FloatArray
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.method import Forecast
from ocfuse.solvers.solution import PRIMAL_FLOOR, BestPairs, Pair, Status


@dataclass
class Segment:
    """Where every problem stands, and the best bound and point it has seen."""

    w: FloatArray
    m: FloatArray  # A w
    average: FloatArray  # the dual variables that steer
    v: FloatArray  # A' average
    age: FloatArray  # (m, 1), gradients in the average
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
        none = np.zeros((m, 1))
        return cls(w, zero, zero.copy(), w.copy(), none, zero.copy(), w.copy(), primal, none.copy())

    def take(self, rows: NDArray[np.intp]) -> "Segment":
        """Return the chosen problems."""
        return Segment(*(getattr(self, f.name)[rows] for f in fields(self)))


def activity(m: FloatArray, smoothing: FloatArray) -> FloatArray:
    """Return the derivative of the smoothed hinge, from 0 (idle) to 1 (active)."""
    return np.clip((1.0 - m) / smoothing, 0.0, 1.0)


def line_search(
    c: FloatArray, m: FloatArray, dm: FloatArray, smoothing: FloatArray, precision: float = 1e-2
) -> FloatArray:
    """Minimise the smoothed hinge over m + step dm, 0 <= step <= 1.

    The slope is piecewise linear in the step, so Newton steps inside a shrinking
    bracket end at the exact minimum, or where the slope is the share `precision` of the first.
    """
    push = c * dm
    first = np.abs(np.sum(push * activity(m, smoothing), axis=1, keepdims=True))
    low, step = np.zeros_like(first), np.ones_like(first)
    high = step
    for _ in range(41):
        level = (1.0 - m - step * dm) / smoothing
        slope = -np.sum(push * np.clip(level, 0.0, 1.0), axis=1, keepdims=True)
        inside = (level > 0.0) & (level < 1.0)
        bend = np.sum(np.where(inside, push * dm, 0.0), axis=1, keepdims=True) / smoothing
        falling = slope < 0.0
        low, high = np.where(falling, step, low), np.where(falling, high, step)
        open_ = (np.abs(slope) > precision * first) & (low < high)
        if not open_.any():
            break
        newton = step - np.divide(slope, bend, out=np.full_like(slope, np.inf), where=bend > 0)
        better = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        step = np.where(open_, better, step)
    return np.asarray(step)


def steer(
    A: FloatArray, ball: LpBall, at: Segment, newest: FloatArray, keep: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the dual variables to follow, A' of them, their bound and their age.

    They are the average with the newest gradient or, where that alone proves more
    than ever or nothing is to be kept, the newest gradient. The average, which is sure to
    converge, is not given up unless the newest gradient closes a tenth of the gap.
    """
    v = (newest[:, np.newaxis, :] @ A)[:, 0, :]
    blend = 2.0 / (at.age + 2.0)
    average = at.average + blend * (newest - at.average)
    averaged_v = at.v + blend * (v - at.v)
    alone = (newest.sum(axis=1) - ball.dual_norm(v))[:, np.newaxis]
    together = (average.sum(axis=1) - ball.dual_norm(averaged_v))[:, np.newaxis]
    progress = alone > at.dual + 0.1 * (at.primal - at.dual)
    anew = ((alone >= together) & progress) | (not keep)
    return (
        np.where(anew, newest, average),
        np.where(anew, v, averaged_v),
        np.where(anew, alone, together),
        np.where(anew, 1.0, at.age + 1.0),
    )


def iterate_once(
    A: FloatArray, c: FloatArray, ball: LpBall, at: Segment, n_iter: int, paper: bool
) -> Segment:
    """Take one step from every problem's point, after `n_iter` of them."""
    # Half of the gap, and everything at the start; never so little that it cannot be divided by.
    gap = np.full_like(at.primal, 2.0) if n_iter == 0 else at.primal - at.dual
    smoothing = np.maximum(0.5 * gap, 1e-12)
    newest = c * (at.m < 1.0 if paper else activity(at.m, smoothing))
    average, v, bound, age = steer(A, ball, at, newest, keep=not paper)
    alpha = np.where(bound > at.dual, average, at.alpha)
    vertex = ball.maximiser(v)
    dm = (A @ vertex[:, :, np.newaxis])[:, :, 0] - at.m
    step = 2.0 / (n_iter + 2.0) if paper else line_search(c, at.m, dm, smoothing)
    w, m = at.w + step * (vertex - at.w), at.m + step * dm
    value = np.sum(c * np.maximum(0.0, 1.0 - m), axis=1, keepdims=True)
    best_w = np.where(value <= at.primal, w, at.best_w)
    primal, dual = np.minimum(value, at.primal), np.maximum(bound, at.dual)
    return Segment(w, m, average, v, age, alpha, best_w, primal, dual)


def frank_wolfe(
    A: FloatArray,
    c: FloatArray,
    ball: LpBall,
    tol: float,
    max_iter: int,
    *,
    paper: bool = False,
    forecast: Forecast | None = None,
) -> BestPairs:
    """Solve a block of problems whose sample weights sum to one, or are zero.

    A problem is given up as soon as the forecast, if there is one, finds it hopeless.
    """
    at = Segment.start(A, c)
    outcome = BestPairs.nothing(A, c, ball)
    active = np.arange(A.shape[0])
    for n_iter in range(max_iter):
        with np.errstate(all="ignore"):  # a lost problem shows as NaN and is dropped
            at = iterate_once(A, c, ball, at, n_iter, paper)
            gap = (at.primal - at.dual)[:, 0]
        allowed = tol * np.maximum(at.primal[:, 0], PRIMAL_FLOOR)
        lost = ~np.isfinite(gap)
        hopeless = lost.copy()
        if forecast is not None:
            hopeless |= forecast.is_hopeless(n_iter + 1, gap, allowed, np.asarray(ball.p))
        look = np.flatnonzero(((gap <= allowed) | hopeless | (n_iter + 1 == max_iter)) & ~lost)
        if look.size:
            pair = Pair.of(A[look], c[look], ball.take(look), at.best_w[look], at.alpha[look])
            outcome.update(active[look], pair, tol)
        outcome.n_iter[active] = n_iter + 1
        solved = outcome.status[active] == Status.SOLVED
        # A gap so far below the allowed one that is not proved is hidden by rounding.
        drowned = ~solved & (lost | (gap <= 0.5 * allowed))
        outcome.status[active[drowned]] = Status.NUMERICAL_TROUBLE
        going = np.flatnonzero(~(hopeless | solved | drowned))
        if going.size < active.size:
            active, at, A, c = active[going], at.take(going), A[going], c[going]
            ball = ball.take(going)
            forecast = None if forecast is None else forecast.take(going)
        if not active.size:
            break
    return outcome
