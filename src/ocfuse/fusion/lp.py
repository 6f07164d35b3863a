"""One learned weight vector for the whole space: the global lp fusion."""

import warnings

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import EqualWeightsWarning
from ocfuse.fusion.base import BaseFusion
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.problem import check_tol
from ocfuse.solvers.solve import Solver, solve
from ocfuse.system.packages import slow
from ocfuse.validation import check_number

#: Steps of the projected gradient at most; hundreds are usual.
MOST_STEPS = 3_000


class LpFusion(BaseFusion):
    """Learn one weight per member under an lp-norm constraint.

    ``w = argmin sum_i c_i max(0, 1 - y_i z_i.w)`` subject to ``||w||_p <= 1`` and,
    unless signed weights are asked for, ``w >= 0``. The score is
    ``z.w / ||w||_1``, a weighted mean. Small p selects few members, p = inf
    trusts all alike.

    Without anomalies the scores of the normals must be mostly positive, as after
    a min-max normalisation: scores with mean zero, such as z-scores, teach
    nothing. The weights are then equal, and a warning says so.

    Parameters
    ----------
    p : float, default=2.0
        Norm of the constraint, from 1 (sparse) to inf (even).
    nonneg : bool, default=True
        Ask for ``w >= 0``; signed weights can turn a member round.
    tol : float, default=1e-4
        Relative gap to which the problem is solved.
    solver : {"auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"}
        The method, as in `ocfuse.solvers.solve`.

    Attributes
    ----------
    w_ : ndarray of shape (d,)
        Weights inside the ball.
    gap_ : float
        Proven relative gap.
    status_ : str
        How the solver ended.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The method that produced the weights.

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
    """Learn one weight per member by least squares under an lp-norm constraint.

    ``w = argmin sum_i c_i (y_i - z_i.w)^2`` subject to ``||w||_p <= 1`` and, unless signed
    weights are asked for, ``w >= 0``. All else is as in `LpFusion`, whose hinge loss leaves rows
    alone that are on the right side by a margin, where the square pulls them back to it. It is
    here so that the two can be compared.

    Parameters
    ----------
    p : float, default=2.0
        Norm of the constraint, from 1 (sparse) to inf (even).
    nonneg : bool, default=True
        Ask for ``w >= 0``; signed weights can turn a member round.
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
        "projected-gradient".

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
        ball, share = LpBall(float(self.p), self.nonneg), c / c.sum()
        Q, b = (Z * share[:, np.newaxis]).T @ Z, Z.T @ (share * y)
        largest = max(float(np.linalg.eigvalsh(Q)[-1]), np.finfo(np.float64).tiny)
        step = 1.0 / largest
        # scores far out make a gap that is nothing but rounding
        least_gap = max(self.tol, 1e-13 * largest)
        # without the norm it is a problem for a library, and often the solution
        root = np.sqrt(share)
        freely = nonneg_least_squares if self.nonneg else least_squares
        w = ahead = ball.project(freely(Z * root[:, np.newaxis], y * root))
        momentum = 1.0
        self.solver_ = "projected-gradient"
        for n_iter in range(1, MOST_STEPS + 1):
            slope = Q @ w - b
            # what a linear model of the loss, which is below it, could still gain in the ball
            self.gap_ = 2.0 * float(slope @ w + ball.dual_norm(-slope))
            self.n_iter_ = n_iter
            if self.gap_ <= least_gap:
                break
            before, w = w, ball.project(ahead - step * (Q @ ahead - b))
            if (ahead - w) @ (w - before) > 0:  # overshot
                momentum = 1.0
            last, momentum = momentum, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = w + (last - 1.0) / momentum * (w - before)
        self.status_ = "solved" if self.gap_ <= least_gap else "stopped"
        loss = 1.0 + float(w @ (Q @ w) - 2.0 * (b @ w))
        learned = np.array([loss]), np.ones(1)
        self.w_ = trusted_weights(w[np.newaxis], *learned, self.tol)[0]


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
