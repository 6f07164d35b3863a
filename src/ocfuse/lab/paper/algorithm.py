"""The method as printed in arXiv 2411.06406, for evidence only. Do not use it.

Nothing else in ocfuse calls this module. It shows, in code that anybody can
run, two defects that ``docs/errata.md`` proves:

- Equation 2 gives every training sample its own weights. It falls apart into
  one problem per sample, solved by `closed_form_per_sample`, whose weights
  carry the label they were meant to predict.
- Algorithm 1 starts on the boundary of the ball, where its barrier is
  infinite, and then follows the gradient of that barrier with the wrong sign.
  `algorithm_1` returns weights that are not numbers.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray
from ocfuse.solvers.ball import lp_norm
from ocfuse.solvers.problem import Problem

#: A barrier gradient: (weights (n, d), norms (n,), mu) to (n, d).
BarrierGradient: TypeAlias = Callable[[FloatArray, FloatArray, float], FloatArray]


def closed_form_per_sample(S: ArrayLike, y: ArrayLike, p: ArrayLike) -> FloatArray:
    """Solve eq. 2 of the paper: one weight vector per sample, in closed form.

    Degenerate: no term couples two samples, so that sample i only asks for
    ``min_w max(0, 1 - y_i s_i.w)``. By Hölder the minimum is
    ``max(0, 1 - ||s_i||_q)``, reached at ``w_i = y_i v_i`` with ``v_i`` the
    point of the ball where ``s_i.v`` is largest (divided by ``||s_i||_q`` if
    that exceeds 1). Then ``s_i.w_i`` has the sign of ``y_i`` for every s_i but
    0: random labels are "learned" without an error, and a new point, whose
    label is unknown, gets no weights at all.

    Parameters
    ----------
    S : array-like of shape (n, d)
        Scores.
    y : array-like of shape (n,)
        Labels, +1 normal and -1 anomaly.
    p : float or array-like of shape (n,)
        Norm, or the norm of every sample, from 1 to inf.

    Returns
    -------
    ndarray of shape (n, d)
        One weight vector per sample.
    """
    problem = _one_problem_per_sample(S, y, p)
    ball = problem.ball()
    reach = ball.dual_norm(problem.A)
    return np.asarray(ball.maximiser(problem.A) / np.maximum(1.0, reach)[:, np.newaxis])


def algorithm_1(
    S: ArrayLike,
    y: ArrayLike,
    p: float,
    *,
    local_p: ArrayLike | None = None,
    learning_rate: float = 0.01,
    max_epochs: int = 50,
    start: float = 1.0,
    barrier: BarrierGradient | None = None,
) -> FloatArray:
    """Run Algorithm 1 of the paper as printed; its weights become NaN.

    Degenerate: the start has ``||w||_p = 1``, where the barrier gradient
    divides by zero; the "projection" of the infinite step is inf / inf. From a
    start inside the ball the wrong sign drives w to the boundary, and the
    scaling puts it exactly there. The arguments `start` and `barrier` repair
    one flaw at a time, to show which of them does what.

    Parameters
    ----------
    S : array-like of shape (n, d)
        Scores.
    y : array-like of shape (n,)
        Labels, +1 normal and -1 anomaly.
    p : float
        Global norm; sets the start.
    local_p : array-like of shape (n,), optional
        Norm of every sample, ``L(x_i, p)``; all equal to `p` by default. The
        paper gives no formula for L.
    learning_rate : float, default=0.01
        Fixed step. The paper names no value.
    max_epochs : int, default=50
        Epochs, without a stopping rule. The paper names no value.
    start : float, default=1.0
        Factor on the printed start; below 1 it lies inside the ball.
    barrier : callable, optional
        Barrier gradient to follow; `printed_barrier_gradient` by default.

    Returns
    -------
    ndarray of shape (n, d)
        One weight vector per sample, as a rule not finite.
    """
    problem = _one_problem_per_sample(S, y, p if local_p is None else local_p)
    gradient = printed_barrier_gradient if barrier is None else barrier
    n, d = problem.A.shape
    w = start * initial_weights(n, d, p)
    mu = 10.0
    # The divisions by zero are what is to be shown.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(max_epochs):
            w = w - learning_rate * (hinge_gradient(w, problem.A) + gradient(w, problem.p, mu))
            w = radial_scaling(w, problem.p)
            mu = mu / 2.0
    return w


def initial_weights(n: int, d: int, p: float) -> FloatArray:
    """Return the printed start ``1 / ||1||_p``, a point of the boundary."""
    ones = np.ones((n, d))
    return ones / lp_norm(ones, p)[:, np.newaxis]


def hinge_gradient(w: FloatArray, A: FloatArray) -> FloatArray:
    """Return a subgradient of ``max(0, 1 - a_i.w_i)`` for every sample."""
    margins = np.sum(A * w, axis=1, keepdims=True)
    return np.where(margins < 1.0, -A, 0.0)


def printed_barrier_gradient(w: FloatArray, p: FloatArray, mu: float) -> FloatArray:
    """Return ``-mu p w^(p-1) ||w||_p^(p-2) / (1 - ||w||_p^p)``, as printed.

    Compare `barrier_gradient`: the sign is wrong, the factor ``||w||^(p-2)``
    does not belong there, and the power of a negative weight is NaN for most p.
    """
    norm, p = lp_norm(w, p)[:, np.newaxis], p[:, np.newaxis]
    with np.errstate(invalid="ignore"):
        power = w ** (p - 1.0)
    return np.asarray(-mu * p * power * norm ** (p - 2.0) / (1.0 - norm**p))


def barrier_gradient(w: FloatArray, p: FloatArray, mu: float) -> FloatArray:
    """Return ``mu p sign(w) |w|^(p-1) / (1 - ||w||_p^p)``, the true gradient."""
    norm, p = lp_norm(w, p)[:, np.newaxis], p[:, np.newaxis]
    return np.asarray(mu * p * np.sign(w) * np.abs(w) ** (p - 1.0) / (1.0 - norm**p))


def barrier_value(w: FloatArray, p: FloatArray, mu: float) -> FloatArray:
    """Return ``-mu log(1 - ||w||_p^p)``, infinite on the boundary.

    Algorithm 1 computes this number too, and never uses it.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-mu * np.log1p(-(lp_norm(w, p) ** p)))


def radial_scaling(w: FloatArray, p: FloatArray) -> FloatArray:
    """Return the printed "projection" ``w / max(1, ||w||_p)``.

    It is the nearest point of the ball at p = 2 only (`LpBall.project` is it
    for every p), and it lands on the boundary, where the barrier is infinite.
    """
    return np.asarray(w / np.maximum(1.0, lp_norm(w, p))[:, np.newaxis])


def _one_problem_per_sample(S: ArrayLike, y: ArrayLike, p: ArrayLike) -> Problem:
    """Check the input; eq. 2 is a local problem with one neighbour, itself."""
    index = np.arange(np.size(y))[:, np.newaxis]
    return Problem.from_neighbours(S, y, index, None, p, nonneg=False)
