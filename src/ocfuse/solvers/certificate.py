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
from numpy.typing import NDArray

from ocfuse.solvers.ball import FloatArray, LpBall

#: P* = 0 is common (separable data, large p); below this share of sum(c) the
#: primal value no longer scales the gap.
PRIMAL_FLOOR = 1e-3


#: Rounding moves P - D by at most half of this times the mass of its terms
#: (measured); a gap counts as closed only if it would be with this on top.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


class Certificate(NamedTuple):
    """Primal value, dual value and relative gap of a pair (w, alpha)."""

    primal: FloatArray
    dual: FloatArray
    gap: FloatArray
    rounding: FloatArray  #: what rounding may hide, in the units of the gap

    def proves(self, tol: float) -> NDArray[np.bool_]:
        """Tell for which pairs the gap is at most `tol`, whatever rounding did."""
        return np.asarray(self.gap + self.rounding <= tol)


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
        outside the ball or alpha outside the box, which proves nothing, or where
        D exceeds P by more than rounding, which cannot be.
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
