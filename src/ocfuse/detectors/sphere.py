"""The smallest soft sphere around rows with few coordinates, by Newton's method."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_solve, cholesky

from ocfuse.detectors.moments import FloatArray, KernelArray

#: What a row has off its coordinates counts as at least this; it rounds the corner of the loss.
LEAST_OWN = 0.01
#: At first corners are rounded by this share of the spread, at every further step by less.
FIRST_ROUNDING, FALL = 0.1, 0.2
#: The end: a step would gain less than this share of the objective.
TOLERANCE = 1e-12
#: Newton's method takes 10 to 40 steps; after so many it ends at any rate.
MOST_STEPS = 200
#: Halvings of an interval, for the level and for the length of a step.
LEVEL_HALVINGS, STEP_HALVINGS = 60, 20
#: A point of feature space is at most so far, squared, from the span of others.
LARGEST_SPAN = 2.0


class SoftSphere:
    """Minimise ``|w|^2 / 2 - rho + 1 / (nu n) sum_i loss_i(rho - w.phi_i)`` over w and rho.

    That is the one-class SVM; as rows have length 1, it is the SVDD with the centre w.
    What a row has off its coordinates, ``r_i = 1 - |phi_i|^2``, no other row has. In
    the dual r_i is added to the diagonal of the kernel; here it rounds the corner of
    the loss max(0, t), which is ``t^2 / (2 d_i)`` up to ``d_i = r_i / (nu n)``. Newton's
    method starts with corners that are rounder.

    Parameters
    ----------
    phi : ndarray of shape (n, m)
        Coordinates of the rows.
    nu : float
        Share of the rows outside.

    Attributes
    ----------
    centre : ndarray of shape (m,)
        w, the sum of the rows times their weights, which add up to 1.
    level : float
        rho, the product of w with a row on the border.
    support : ndarray of shape (s,)
        Rows on the border or outside.
    factor : ndarray of shape (m, m)
        Lower Cholesky factor of the Hessian, rho eliminated.
    middle : ndarray of shape (m,)
        Mean of the rows on the border.
    """

    def __init__(self, phi: KernelArray, nu: float) -> None:
        self._n_outside = max(nu * len(phi), 1.0)
        norms = np.einsum("nm,nm->n", phi, phi).astype(np.float64)
        own = np.maximum(1.0 - norms, LEAST_OWN) / self._n_outside
        self.centre: FloatArray = phi.mean(axis=0, dtype=np.float64)
        self._reached = _product(phi, self.centre)
        rounding = FIRST_ROUNDING * float(self._reached.std())
        for _ in range(MOST_STEPS):
            rounding = rounding if rounding > 0.1 * float(own.min()) else 0.0
            step = self._newton_step(phi, own + rounding)
            gain = float(np.sum((self.factor.T @ step) ** 2))
            if rounding == 0.0 and gain <= TOLERANCE * float(self.centre @ self.centre):
                break
            self._move(phi, step, own + rounding)
            rounding *= FALL
        self.support = np.flatnonzero(self._shares)

    def lost(self, support: slice, own: FloatArray, shared: FloatArray) -> FloatArray:
        """Return how much support vectors are farther out if they are left out.

        With fixed rows on the border a row that goes moves w and rho along its span.

        Parameters
        ----------
        support : slice
            Which support vectors.
        own, shared : ndarray of shape (s,)
            Their squared lengths from the middle in the inverse of the Hessian, and
            their products with the same rows as if these were fresh.

        Returns
        -------
        ndarray of shape (s,)
            What the products with w, less rho, lose.
        """
        rows, along = self.support[support], 1.0 / float(self._stiffness.sum())
        left = 1.0 - self._stiffness[rows] * (own + along)
        span = np.maximum(shared + along, 0.0)
        span = np.minimum(span, LARGEST_SPAN * left) / np.maximum(left, np.finfo(float).tiny)
        lost: FloatArray = self._shares[rows] / self._n_outside * np.maximum(span, 0.0)
        return lost

    def _newton_step(self, phi: KernelArray, widths: FloatArray) -> FloatArray:
        """Set rho for the present w, and all that depends on it; return the step of w."""
        self.level = _level(self._reached, widths, self._n_outside)
        excess = (self.level - self._reached) / widths
        self._shares: FloatArray = np.clip(excess, 0.0, 1.0)
        off_border = np.maximum(-excess, excess - 1.0)
        # If the border runs between rows, the nearest one stands for it.
        border = np.flatnonzero(off_border < max(0.0, np.nextafter(off_border.min(), np.inf)))
        self._stiffness: FloatArray = np.zeros(len(phi))
        stiffness = self._stiffness[border] = 1.0 / (self._n_outside * widths[border])
        rows = phi[border].astype(np.float64)
        self.middle: FloatArray = stiffness @ rows / stiffness.sum()
        rows -= self.middle
        rows *= np.sqrt(stiffness)[:, None]
        hessian = rows.T @ rows
        hessian.flat[:: len(hessian) + 1] += 1.0
        self.factor: FloatArray = cholesky(
            hessian, lower=True, overwrite_a=True, check_finite=False
        )
        support = np.flatnonzero(self._shares)
        drawn = self._shares[support] @ phi[support].astype(np.float64) / self._n_outside
        step: FloatArray = cho_solve((self.factor, True), drawn - self.centre)
        return step

    def _move(self, phi: KernelArray, step: FloatArray, widths: FloatArray) -> None:
        """Go along the step of w, and the one of rho that belongs to it, as far as it gains."""
        reached, up = _product(phi, step), float(self.middle @ step)
        along, squared = float(self.centre @ step) - up, float(step @ step)

        def slope(length: float) -> float:
            level = self.level + length * up
            shares = np.clip((level - self._reached - length * reached) / widths, 0.0, 1.0)
            return along + length * squared + float(shares @ (up - reached)) / self._n_outside

        length = 1.0 if slope(1.0) <= 0.0 else _root(slope, 0.0, 1.0, STEP_HALVINGS)
        self.centre = self.centre + length * step
        self._reached = self._reached + length * reached


def _product(phi: KernelArray, w: FloatArray) -> FloatArray:
    product: KernelArray = phi @ w.astype(phi.dtype)
    return product.astype(np.float64)


def _level(reached: FloatArray, widths: FloatArray, n_outside: float) -> float:
    """Return rho: rows below it count 1, within their width of it a part, `n_outside` in all."""

    def surplus(level: float) -> float:
        return float(np.clip((level - reached) / widths, 0.0, 1.0).sum()) - n_outside

    return _root(surplus, float(reached.min()), float((reached + widths).max()), LEVEL_HALVINGS)


def _root(increasing: Callable[[float], float], low: float, high: float, halvings: int) -> float:
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < 0.0 else (low, middle)
    return (low + high) / 2
