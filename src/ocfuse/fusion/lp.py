"""Global lp fusion: one learned weight vector for all rows."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import EqualWeightsWarning
from ocfuse.fusion.base import BaseFusion
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.problem import check_tol
from ocfuse.solvers.solve import Solver, solve
from ocfuse.system.packages import slow
from ocfuse.validation import check_number

#: Newton's steps at most; 30 to 60 are usual.
MOST_STEPS = 500
#: Weight of the loss beside the barriers at which rounding leaves nothing to gain.
HEAVIEST = 1e18


class LpFusion(BaseFusion):
    """Global lp fusion: weights of the members learned with an lp-norm constraint.

    ``w = argmin sum_i c_i max(0, 1 - y_i z_i.w)`` subject to ``||w||_p <= 1`` and, with `nonneg`,
    ``w >= 0``. The fused score is the weighted mean ``z.w / ||w||_1``. A small p selects few
    members; with p = inf all weights are nearly equal.

    Without anomalies, normal scores must be mostly positive, as after a min-max normalisation.
    From scores with mean zero, such as z-scores, nothing can be learned; the weights are then
    equal, and a warning says so.

    Parameters
    ----------
    p : float, default=2.0
        Norm of the constraint, from 1 (sparse weights) to inf (nearly equal weights).
    nonneg : bool, default=True
        Whether weights must be ``>= 0``; a negative weight reverses a member.
    tol : float, default=1e-4
        Relative duality gap to which the problem is solved.
    solver : {"auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"}
        The solver, as in `ocfuse.solvers.solve`.

    Attributes
    ----------
    w_ : ndarray of shape (d,)
        Weights inside the ball.
    gap_ : float
        Proven relative gap.
    status_ : str
        Status of the solver.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The solver that was used.

    Examples
    --------
    >>> from ocfuse.fusion import LpFusion
    >>> Z = [[0.9, 0.4], [0.8, 0.5], [0.1, 0.3]]
    >>> fusion = LpFusion(p=1.1).fit(Z, y=[1, 1, -1])
    >>> fusion.weights([[0.0]]).round(2)
    array([[1., 0.]])
    """

    def __init__(
        self, p: float = 2.0, nonneg: bool = True, tol: float = 1e-4, solver: Solver = "auto"
    ) -> None:
        self.p = p
        self.nonneg = nonneg
        self.tol = tol
        self.solver = solver

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        solution = solve(Z, y, self.p, c, self.nonneg, self.tol, self.solver)
        learned = np.array([solution.primal]), np.array([c.sum()])
        self.w_ = trusted_weights(solution.w[np.newaxis], *learned, self.tol)[0]
        self.gap_ = solution.gap
        self.status_ = str(solution.status)
        self.n_iter_ = solution.n_iter
        self.solver_ = solution.solver

    def _trust(self) -> FloatArray:
        return np.asarray(unit_weights(self.w_[np.newaxis])[0])

    def _p(self) -> float:
        return float(self.p)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray((Z * self._trust()).sum(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), Z * self._trust()


class LeastSquaresFusion(LpFusion):
    """Least-squares weights of the members, learned with an lp-norm constraint.

    ``w = argmin sum_i c_i (y_i - z_i.w)^2`` subject to ``||w||_p <= 1`` and, with `nonneg`,
    ``w >= 0``. All else is as in `LpFusion`. The hinge loss of `LpFusion` is 0 for rows beyond the
    margin; the squared loss is not. This class exists to compare the two.

    Parameters
    ----------
    p : float, default=2.0
        Norm of the constraint, from 1 (sparse weights) to inf (nearly equal weights).
    nonneg : bool, default=True
        Whether weights must be ``>= 0``; a negative weight reverses a member.
    tol : float, default=1e-6
        Gap to which the problem is solved, as a share of the loss of w = 0.

    Attributes
    ----------
    w_ : ndarray of shape (d,)
        Weights inside the ball.
    gap_ : float
        Proven gap, as a share of the loss of w = 0.
    status_ : str
        "solved", or "stopped" after the most iterations.
    n_iter_ : int
        Iterations.
    solver_ : str
        "interior-point".

    Examples
    --------
    >>> from ocfuse.fusion import LeastSquaresFusion
    >>> Z = [[0.9, 0.4], [0.8, 0.5], [0.1, 0.3]]
    >>> fusion = LeastSquaresFusion(p=1.1).fit(Z, y=[1, 1, -1])
    >>> fusion.weights([[0.0]]).round(2)
    array([[1., 0.]])
    """

    def __init__(self, p: float = 2.0, nonneg: bool = True, tol: float = 1e-6) -> None:
        self.p = p
        self.nonneg = nonneg
        self.tol = tol

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        check_number(self.p, "p", 1.0, np.inf, "Small p trusts few members.")
        check_tol(self.tol)
        share = c / c.sum()
        root = np.sqrt(share)
        Q, b = (Z * share[:, np.newaxis]).T @ Z, Z.T @ (share * y)
        # without the norm it is a problem for a library, and often the solution
        freely = nonneg_least_squares if self.nonneg else least_squares
        free = freely(Z * root[:, np.newaxis], y * root)
        found = least_squares_in_ball(Q, b, LpBall(float(self.p), self.nonneg), free, self.tol)
        w, self.gap_, self.n_iter_, is_solved = found
        self.status_ = "solved" if is_solved else "stopped"
        self.solver_ = "interior-point"
        loss = 1.0 + float(w @ (Q @ w) - 2.0 * (b @ w))
        learned = np.array([loss]), np.ones(1)
        self.w_ = trusted_weights(w[np.newaxis], *learned, self.tol)[0]


def least_squares_in_ball(
    Q: FloatArray, b: FloatArray, ball: LpBall, free: FloatArray, tol: float
) -> tuple[FloatArray, float, int, bool]:
    """Return the w of the ball with the least ``w.Q w - 2 b.w``, its gap, steps, and if it is met.

    Newton's method with logarithmic barriers. Signed weights are the difference ``u - v`` of two
    parts that are not negative, with ``sum u^p + v^p <= 1``, which has the same solutions. `free`
    is the solution without the norm.
    """
    d, p = len(b), float(ball.p)
    largest = max(float(np.linalg.eigvalsh(Q)[-1]), np.finfo(np.float64).tiny)
    # scores far out make a gap that is nothing but rounding
    tol = max(tol, 1e-13 * largest)
    w = ball.project(free)
    gap, n_steps = _gap(w, Q, b, ball), 0
    split = np.eye(d) if ball.nonneg else np.hstack([np.eye(d), -np.eye(d)])
    H, g = split.T @ Q @ split, split.T @ b
    u = np.full(len(g), 0.5 * len(g) ** (-1.0 / p))
    weight = 1.0 / largest  # of the loss beside the barriers
    while gap > tol and n_steps < MOST_STEPS and weight < HEAVIEST:
        n_steps += 1
        slope, curve = _barriers(u, p)
        slope, curve = slope + weight * (H @ u - g), curve + weight * H
        scale = 1.0 / np.sqrt(np.diag(curve))
        step = -scale * np.linalg.solve(scale[:, np.newaxis] * curve * scale, scale * slope)
        decrease = float(-slope @ step)
        loss = partial(_loss, H=H, g=g, p=p, weight=weight)
        if decrease > 0.1 and (length := _step_length(loss, u, step, decrease)):
            u = u + length * step
            continue
        inner = split @ u
        if (found := _gap(inner, Q, b, ball)) < gap:
            w, gap = inner, found
        weight *= 10.0
    return w, gap, n_steps, gap <= tol


def _gap(w: FloatArray, Q: FloatArray, b: FloatArray, ball: LpBall) -> float:
    """Return what a linear model of the loss, which is below it, could still gain in the ball."""
    slope = Q @ w - b
    return 2.0 * float(slope @ w + ball.dual_norm(-slope))


def _loss(u: FloatArray, H: FloatArray, g: FloatArray, p: float, weight: float) -> float:
    """Return the weighted loss and ``-log(1 - sum u^p) - sum log u``; infinite outside."""
    if (u <= 0.0).any() or np.min(room := _room(u, p)) <= 0.0:
        return np.inf
    barriers = -float(np.log(u).sum() + np.sum(np.log(room)))
    return barriers + weight * float(u @ (H @ u) / 2.0 - g @ u)


def _barriers(u: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature of the barriers inside."""
    room = _room(u, p)
    if np.isinf(p):
        return 1.0 / room - 1.0 / u, np.diag(1.0 / room**2 + 1.0 / u**2)
    outward = p * u ** (p - 1.0) / room
    bend = (p - 1.0) * outward / u + 1.0 / u**2
    return outward - 1.0 / u, np.diag(bend) + np.outer(outward, outward)


def _room(u: FloatArray, p: float) -> FloatArray:
    """Return what is left of the norm to the power p, of every weight if p is infinite."""
    return np.asarray(1.0 - (u if np.isinf(p) else (u**p).sum()))


def _step_length(
    loss: Callable[[FloatArray], float], u: FloatArray, step: FloatArray, decrease: float
) -> float:
    """Return the largest of 1, 1/2, 1/4, ... with a decrease of the loss; 0 if there is none."""
    now = loss(u)
    lengths = 0.5 ** np.arange(40.0)
    return next((float(s) for s in lengths if loss(u + s * step) <= now - 0.1 * s * decrease), 0.0)


def nonneg_least_squares(A: FloatArray, y: FloatArray) -> FloatArray:
    """Return the w >= 0 with the least ``|A w - y|``."""
    try:
        return np.asarray(slow("scipy.optimize").nnls(A, y)[0])
    except RuntimeError:  # it goes round in circles, as with members that are copies
        return np.zeros(A.shape[1])


def least_squares(A: FloatArray, y: FloatArray) -> FloatArray:
    """Return the w with the least ``|A w - y|``."""
    return np.asarray(np.linalg.lstsq(A, y, rcond=None)[0])


def unit_weights(W: FloatArray) -> FloatArray:
    """Divide weights by their 1-norm; rows of zeros become equal weights."""
    size = np.abs(W).sum(axis=1, keepdims=True)
    return np.where(size > 0, W / np.where(size > 0, size, 1.0), 1.0 / W.shape[1])


def trusted_weights(W: FloatArray, primal: FloatArray, total: FloatArray, tol: float) -> FloatArray:
    """Put equal weights, with a warning, where no weights are better than none.

    With w = 0 every hinge is one, so the objective is the total weight. A solution
    that is not below it by more than the tolerance has learned nothing: its
    weights are an accident of the solver.
    """
    nothing = (primal >= (1.0 - tol) * total) | ~W.any(axis=1)
    if not nothing.any():
        return W
    warnings.warn(
        f"Nothing could be learned from the scores ({int(nothing.sum())} of {len(W)} problems): "
        "no weights are better than none, so equal weights are used. Scores of normals alone "
        "must be mostly positive: normalise them to [0, 1] (min-max) rather than to mean zero "
        "(z-score). Anomalies, real or made up, must score lower than the normals.",
        EqualWeightsWarning,
        stacklevel=2,
    )
    return np.where(nothing[:, np.newaxis], 1.0 / W.shape[1], W)
