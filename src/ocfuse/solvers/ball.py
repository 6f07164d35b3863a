"""The lp ball: norm, dual norm, linear minimisation and projection.

Everything is safe from p = 1 to p = inf: powers are taken of entries divided
by the largest one, so that nothing overflows at q = 10,000 or underflows to a
wrong answer, and the two ends need no special case.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray

#: Far more than any projection needs (about 10, at worst 50).
MAX_NEWTON = 200


def conjugate(p: FloatArray | float) -> FloatArray:
    """Return q with 1/p + 1/q = 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 - 1.0 / np.asarray(p, dtype=np.float64)))


def lp_norm(x: FloatArray, p: FloatArray | float) -> FloatArray:
    """Return the lp norm along the last axis; `p` broadcasts over the others."""
    magnitude = np.abs(x)
    largest = magnitude.max(axis=-1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)[..., np.newaxis]
    p = np.asarray(p, dtype=np.float64)
    total = np.sum((magnitude / unit) ** p[..., np.newaxis], axis=-1)
    return np.asarray(largest * total ** (1.0 / p))


@dataclass(frozen=True)
class LpBall:
    """The set of w with ``||w||_p <= 1`` and, if `nonneg`, ``w >= 0``.

    p is from 1 to inf; an array (m,) holds one norm per problem, and the methods then take
    arrays of shape (m, d).
    """

    p: FloatArray | float
    nonneg: bool = False

    def take(self, rows: NDArray[np.intp]) -> "LpBall":
        """Return the balls of the chosen problems."""
        return LpBall(np.asarray(self.p)[rows], self.nonneg)

    def norm(self, w: FloatArray) -> FloatArray:
        """Return ``||w||_p``."""
        return lp_norm(w, self.p)

    def contains(self, w: FloatArray) -> NDArray[np.bool_]:
        """Return whether w lies in the ball, to rounding."""
        inside = self.norm(w) <= 1.0 + 1e-9
        return np.asarray(inside & (w >= 0).all(axis=-1) if self.nonneg else inside)

    def dual_norm(self, v: FloatArray) -> FloatArray:
        """Return the largest ``v.w`` over the ball."""
        return lp_norm(self._reachable(v), conjugate(self.p))

    def maximiser(self, v: FloatArray) -> FloatArray:
        """Return a point of the ball where ``v.w`` is largest; 0 where v = 0.

        The linear minimisation oracle of ``-v``: ``sign(v) |v|^(q-1)``, scaled
        to unit p-norm. At p = 1 the weight goes to the largest entry (shared by
        exact ties), at p = inf every non-zero entry gets its sign.
        """
        v = self._reachable(v)
        largest = np.abs(v).max(axis=-1, keepdims=True, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        exponent = (conjugate(self.p) - 1.0)[..., np.newaxis]
        w = np.sign(v) * np.abs(v / unit) ** exponent
        length = np.where(largest > 0, self.norm(w)[..., np.newaxis], 1.0)
        return np.asarray(w / length)

    def project(self, x: FloatArray) -> FloatArray:
        """Return the point of the ball that is nearest to x in the Euclidean norm.

        Dividing x by its norm gives this point at p = 2 only.
        """
        x = self._reachable(np.asarray(x, dtype=np.float64))
        p = np.broadcast_to(np.asarray(self.p, dtype=np.float64), x.shape[:-1]).ravel()
        rows = np.abs(x).reshape(-1, x.shape[-1])
        with np.errstate(over="ignore"):
            outside = lp_norm(rows, p) > 1.0
        is_cube = p >= 1e17  # there d^(1/p) rounds to 1, as with p = inf
        simplex, sphere = outside & (p == 1.0), outside & (p > 1.0) & ~is_cube
        if simplex.any():
            rows[simplex] = _onto_simplex(rows[simplex])
        if sphere.any():
            rows[sphere] = _onto_sphere(rows[sphere], p[sphere, np.newaxis])
        cube = outside & is_cube
        rows[cube] = np.minimum(rows[cube], 1.0)
        return np.asarray(np.copysign(rows.reshape(x.shape), x))

    def _reachable(self, v: FloatArray) -> FloatArray:
        """Return the part of a direction that the sign constraint can follow."""
        return np.maximum(v, 0.0) if self.nonneg else v


def _onto_simplex(x: FloatArray) -> FloatArray:
    """Project rows x >= 0 from outside the ball of p = 1."""
    # A common shift changes nothing on the simplex, and this one keeps the
    # differences between large entries exact.
    x = x - x.max(axis=-1, keepdims=True)
    falling = -np.sort(-x, axis=-1)
    threshold = (np.cumsum(falling, axis=-1) - 1.0) / np.arange(1, x.shape[-1] + 1)
    n_kept = np.sum(falling > threshold, axis=-1, keepdims=True)
    return np.maximum(x - np.take_along_axis(threshold, n_kept - 1, axis=-1), 0.0)


def _onto_sphere(x: FloatArray, p: FloatArray) -> FloatArray:
    """Project rows x >= 0 from outside a ball of 1 < p < inf.

    The nearest point z has ``||z||_p = 1`` and ``z_j + lam z_j^(p-1) = x_j``.
    With ``z_j = x_j exp(-t_j)`` the latter reads ``phi(t_j) = log lam + (p-2)
    log x_j``, see `_phi`. The order of the entries is kept, hence the largest
    one ends in ``[d^(-1/p), 1]``: its t is the unknown, bracketed from the
    start and found by Newton steps on ``log ||z||_p = 0``, or by halving where
    such a step leaves the bracket.
    """
    log_x = np.log(np.maximum(x, np.finfo(np.float64).tiny))
    top = log_x.max(axis=-1, keepdims=True)
    low = np.maximum(top, 1e-200)
    high = np.maximum(low, top + np.log(x.shape[-1]) / p)
    T = 0.5 * (low + high)
    for _ in range(MAX_NEWTON):
        value, slope = _phi(T, p)
        t, slopes = _inverse_phi(value + (p - 2.0) * (log_x - top), p)
        z = x * np.exp(-t)
        length = lp_norm(z, p[:, 0])[:, np.newaxis]
        excess = np.log(length)
        rate = np.sum((z / length) ** p * (slope / slopes), axis=-1, keepdims=True)
        low, high = np.where(excess > 0, T, low), np.where(excess > 0, high, T)
        newton = T + excess / rate
        is_safe = (low <= newton) & (newton <= high)
        step = np.where(is_safe, newton, 0.5 * (low + high)) - T
        T = T + step
        if np.all(np.abs(step) <= 1e-14 * (1.0 + T)):
            break
    return np.asarray(z / length)


def _phi(t: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``(p-1) t + log(1 - exp(-t))`` and its slope.

    The function is increasing and concave on t > 0.
    """
    with np.errstate(divide="ignore", over="ignore"):
        # Two ways to write the same, each exact where the other cancels.
        log_term = np.where(t < 0.7, np.log(-np.expm1(-t)), np.log1p(-np.exp(-t)))
        return (p - 1.0) * t + log_term, (p - 1.0) + 1.0 / np.expm1(t)


def _inverse_phi(value: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return t with ``phi(t) = value``, and the slope there."""
    value = np.maximum(value, -600.0)
    # Both bounds lie left of the root, where Newton climbs without overshooting.
    t = np.maximum(value / (p - 1.0), 1.0 / (np.exp(-value) + p))
    for _ in range(MAX_NEWTON):
        reached, slope = _phi(t, p)
        step = (value - reached) / slope
        t = t + step
        if np.all(np.abs(step) <= 2e-15 * (1.0 + t)):
            break
    return t, _phi(t, p)[1]
