"""Cholesky factorisation of many small matrices at once.

NumPy offers a batched factorisation that raises if one matrix of the batch is
indefinite to rounding, and no batched substitution. Here a pivot that rounding
made tiny is replaced by a huge one, which sets that component of the solution
to zero and leaves the other problems alone.
"""

import numpy as np

from ocfuse.solvers.ball import FloatArray

#: Pivots below this share of the matrix's largest diagonal entry are noise.
PIVOT_FLOOR = 1e-30
HUGE_PIVOT = 1e128


def factorise(K: FloatArray) -> FloatArray:
    """Return L with L L' = K, shape (m, d, d); the upper triangle is undefined."""
    L = K.copy()
    floor = PIVOT_FLOOR * np.einsum("mii->mi", K).max(axis=1)
    for j in range(K.shape[1]):
        pivot = np.where(L[:, j, j] > floor, L[:, j, j], HUGE_PIVOT)
        L[:, j:, j] /= np.sqrt(pivot)[:, np.newaxis]
        L[:, j, j] = np.sqrt(pivot)
        below = L[:, j + 1 :, j]
        L[:, j + 1 :, j + 1 :] -= below[:, :, np.newaxis] * below[:, np.newaxis, :]
    return L


def substitute(L: FloatArray, r: FloatArray) -> FloatArray:
    """Return x with L L' x = r, shape (m, d)."""
    x = r.copy()
    d = r.shape[1]
    for j in range(d):
        x[:, j] /= L[:, j, j]
        x[:, j + 1 :] -= L[:, j + 1 :, j] * x[:, j : j + 1]
    for j in range(d - 1, -1, -1):
        x[:, j] /= L[:, j, j]
        x[:, :j] -= L[:, j, :j] * x[:, j : j + 1]
    return x
