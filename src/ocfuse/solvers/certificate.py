"""The one definition of "converged": a gap recomputed from w and alpha.

With margins ``a_i = y_i s_i`` and sample weights ``c_i`` the problem is::

    primal   P(w)     = sum_i c_i max(0, 1 - a_i.w),     w in the ball
    dual     D(alpha) = sum_i alpha_i - ||A' alpha||_q,  0 <= alpha <= c

(with ``w >= 0`` the dual norm is taken of ``max(A' alpha, 0)``). Every alpha in
the box gives a valid bound ``D(alpha) <= P*``, so that ``P(w) - D(alpha)``
certifies w, whoever computed the two.
"""

from typing import NamedTuple

import numpy as np

from ocfuse.solvers.ball import FloatArray, LpBall

#: P* = 0 is common (separable data, large p); below this share of sum(c) the
#: primal value no longer scales the gap.
PRIMAL_FLOOR = 1e-3


class Certificate(NamedTuple):
    """Primal value, dual value and relative gap of a pair (w, alpha)."""

    primal: FloatArray
    dual: FloatArray
    gap: FloatArray


def certify(
    A: FloatArray, c: FloatArray, ball: LpBall, w: FloatArray, alpha: FloatArray
) -> Certificate:
    """Return the certificate of (w, alpha), computed from the data alone.

    Parameters
    ----------
    A : ndarray of shape (..., k, d)
        Margins ``y_i s_i``.
    c : ndarray of shape (..., k)
        Sample weights.
    ball : LpBall
        The constraint; its p is a scalar or has the leading shape of `A`.
    w : ndarray of shape (..., d)
        Weights inside the ball.
    alpha : ndarray of shape (..., k)
        Dual variables inside the box [0, c].

    Returns
    -------
    Certificate
        ``gap = (P - D) / max(P, 1e-3 sum(c))``, never below 0; inf where w is
        outside the ball or alpha outside the box, which proves nothing.
    """
    margins = (A @ w[..., np.newaxis])[..., 0]
    v = (alpha[..., np.newaxis, :] @ A)[..., 0, :]
    primal = np.sum(c * np.maximum(0.0, 1.0 - margins), axis=-1)
    dual = np.sum(alpha, axis=-1) - ball.dual_norm(v)
    gap = relative_gap(primal, dual, np.sum(c, axis=-1))
    valid = ball.contains(w) & ((alpha >= 0) & (alpha <= c)).all(axis=-1)
    return Certificate(primal, dual, np.where(valid, gap, np.inf))


def relative_gap(primal: FloatArray, dual: FloatArray, total: FloatArray) -> FloatArray:
    """Return P - D measured in P, or in the floor where P is tiny."""
    scale = np.maximum(primal, PRIMAL_FLOOR * total)
    excess = np.maximum(primal - dual, 0.0)
    return np.asarray(excess / np.where(scale > 0, scale, 1.0))
