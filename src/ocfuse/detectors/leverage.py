"""The choice of landmarks: rows that represent all rows of a table."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Added to the kernel of the landmarks.
JITTER = 1e-6
#: Rows that landmarks are chosen from, and rows that their leverage is measured against.
CANDIDATES, PILOTS = 8000, 500
#: Width of the kernel in which it is measured, in multiples of M, and its ridge.
PILOT_WIDTH, PILOT_RIDGE = 0.5, 0.1


def choose_landmarks(X: FloatArray, scale: float, m: int) -> IntArray:
    """Return the numbers of at most m different rows that represent all rows of X.

    A row is chosen in proportion to its leverage: how little the others tell of
    it. Evenly spaced rows would miss the fringe. No chance is involved: rows are
    taken at even steps of the summed leverage.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    scale : float
        Their mean squared distance M.
    m : int
        Number of landmarks.

    Returns
    -------
    ndarray of at most m integers
        Row numbers, ascending; fewer if rows are equal.
    """
    candidates = evenly(len(X), CANDIDATES)
    candidates = candidates[_first_of_equals(X[candidates])]
    if len(candidates) <= m:
        return candidates
    share = _chances(_leverage(X[candidates], scale), m)
    steps = np.searchsorted(np.cumsum(share), np.arange(m) + 0.5)
    chosen: IntArray = candidates[np.unique(np.minimum(steps, len(candidates) - 1))]
    return chosen


def _chances(leverage: FloatArray, m: int) -> FloatArray:
    """Return chances in proportion to the leverage that add up to m, none above 1."""
    chances = np.zeros_like(leverage)
    is_free = np.ones(len(leverage), dtype=bool)
    while True:
        left = m - np.count_nonzero(~is_free)
        chances[is_free] = left * leverage[is_free] / leverage[is_free].sum()
        is_full = is_free & (chances > 1.0)
        if not is_full.any():
            return chances
        chances[is_full] = 1.0
        is_free &= ~is_full


def _leverage(X: FloatArray, scale: float) -> FloatArray:
    """Return how much each row adds to evenly spaced pilots, and to what all rows have."""
    # Near the origin less is lost to rounding.
    X = X - X.mean(axis=0)
    pilots = X[evenly(len(X), PILOTS)]
    factor = noisy_factor(_kernel(pilots, pilots, scale))
    phi = solve_triangular(factor, _kernel(X, pilots, scale).T, lower=True, check_finite=False)
    seen = cholesky(phi @ phi.T + PILOT_RIDGE * np.eye(len(pilots)), lower=True)
    half = solve_triangular(seen, phi, lower=True, check_finite=False)
    missed = np.maximum(1.0 - np.einsum("pn,pn->n", phi, phi), 0.0)
    leverage: FloatArray = missed + PILOT_RIDGE * np.einsum("pn,pn->n", half, half)
    return leverage


def _kernel(X: FloatArray, Y: FloatArray, scale: float) -> FloatArray:
    K: FloatArray = squared_distances(X, Y)
    K *= -1.0 / (PILOT_WIDTH * scale)
    return np.exp(K, out=K)


def _first_of_equals(X: FloatArray) -> IntArray:
    """Return the numbers of the rows that equal no earlier one."""
    X = np.ascontiguousarray(X) + 0.0  # -0.0 and 0.0 are the same value
    rows = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()
    return np.sort(np.unique(rows, return_index=True)[1])


def evenly(n: int, most: int) -> IntArray:
    """Return at most so many of n row numbers, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def squared_distances(X: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances of rows about the origin, in their float type."""
    D: NDArray[Any] = X @ (-2.0 * Y).T
    D += np.einsum("nd,nd->n", Y, Y)
    D += np.einsum("nd,nd->n", X, X)[:, None]
    np.maximum(D, 0.0, out=D)
    return D


def noisy_factor(K: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a kernel of landmarks with a little noise."""
    noisy = K.copy()
    noisy.flat[:: len(K) + 1] += JITTER
    factor: FloatArray = cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
    return factor
