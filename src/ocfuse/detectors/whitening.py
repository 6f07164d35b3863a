"""Whitening: coordinates in which the normal rows spread evenly in all directions."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import svd

from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.eigen import eigenpairs
from ocfuse.detectors.gram import FloatArray, Gram, IntArray, Reference
from ocfuse.threads import few_threads, one_thread

#: The covariance is moved towards a sphere by at least this share.
LEAST_SHRINKAGE = 1e-3
#: Error of an eigenvalue, relative to the largest, per column.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
#: Of a row that alone spans a direction, so much of the leverage is left to the others.
SMALLEST_LEFT = 1e-12
#: A mean variance below this is taken as none.
SMALLEST_VARIANCE = 1e-290


class Whitening:
    """Multiply centred rows by ``W = ((1 - a) C + a v I)^(-1/2)``, up to a rotation.

    C is the covariance of the training rows, v its mean variance and a the
    shrinkage of Ledoit and Wolf (2004), at least 0.001. The coordinates are
    the principal ones. Where the training rows do not span all m directions,
    the part of a row off their span, on which W is the factor ``(a v)^(-1/2)``,
    becomes a single column: its length. No training row has such a part, so
    norms and distances to training rows are those of all m columns.

    A row is multiplied on its own: its coordinates are the same to the last
    bit in every batch, and duplicates stay duplicates.

    Parameters
    ----------
    raw : Reference
        The training rows.

    Attributes
    ----------
    shrinkage : float
        a.
    directions : ndarray of shape (r, m)
        An orthonormal basis of the centred rows.
    factors : ndarray of shape (r,)
        What W multiplies these directions by.
    rest_factor : float
        What W multiplies all others by.
    rounding : float
        The length of a training row off its span, which is 0, as computed;
        that of every row is taken as so much less.
    """

    def __init__(self, raw: Reference) -> None:
        self.centre = raw.centre
        self.rounding = 0.0
        rows = raw.X - raw.centre
        variance = float(np.mean(np.einsum("nm,nm->n", rows, rows))) / rows.shape[1]
        if variance <= SMALLEST_VARIANCE:
            # M is twice the sum of the variances; a fold of one row has one too.
            variance = raw.scale / (2 * rows.shape[1])
        # In this unit fourth powers do not overflow.
        rows /= np.sqrt(variance)
        with few_threads(rows.size * min(rows.shape)):
            values, self.directions = _principal(rows)
        a = self.shrinkage = max(LEAST_SHRINKAGE, ledoit_wolf(rows, values))
        self.factors: FloatArray = 1.0 / np.sqrt(((1.0 - a) * values + a) * variance)
        self.rest_factor = float(1.0 / np.sqrt(a * variance))
        if len(self.directions) < rows.shape[1]:
            self.rounding = float(self._split(raw.X)[1].max())

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the whitened rows, shape (q, min(r + 1, m))."""
        inside, rest = self._split(X)
        inside *= self.factors
        r, m = self.directions.shape
        return inside if r == m else np.column_stack([inside, rest * self.rest_factor])

    def _split(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows in the directions, and the length of what is off them."""
        rows = X - self.centre
        with one_thread():
            inside = _row_by_row(self.directions, rows)
            if inside.shape == rows.shape:
                return inside, np.zeros(len(rows))
            rows -= _row_by_row(self.directions.T, inside)
        # Shifted rather than cut: a step would turn rounding into a difference.
        length = np.sqrt(np.einsum("qm,qm->q", rows, rows)) - self.rounding
        return inside, np.maximum(length, 0.0)


class LeftOut(Gram):
    """Whitened training rows, each at the distances in a whitening that has not seen it.

    Without row i, whose whitened coordinates are w_i, the inverse covariance gains
    ``b w_i w_i' / (1 - b |w_i|^2)`` with ``b = (1 - a) / (n - 1)``, in these
    coordinates and up to a factor (Sherman and Morrison), so that ::

        d(i, j)^2 = (n - 1) / n (|w_i - w_j|^2 + b (w_i.(w_i - w_j))^2 / (1 - b |w_i|^2))

    The shrinkage a and the mean variance stay, and so do the other rows' neighbours.

    Parameters
    ----------
    gram : Gram
        The rows in a `Whitening`.
    shrinkage : float
        Its shrinkage a.
    """

    def __init__(self, gram: Gram, shrinkage: float) -> None:
        self._begin(gram.reference, None, gram.n_fit)
        self._gram = gram
        self._norms: FloatArray = np.einsum("nm,nm->n", gram.X, gram.X)
        self._gain = (1.0 - shrinkage) / (gram.n_rows - 1)

    def neighbours(self, k: int) -> tuple[FloatArray, IntArray]:
        """Return new distances of the k rows nearest in the whitening of all, nearest first."""
        distances, index = self._gram.neighbours(k)
        squares = distances**2
        self._stretch(squares, self._norms, self._norms[index])
        order = squares.argsort(axis=1, kind="stable")
        nearest = np.sqrt(np.take_along_axis(squares, order, axis=1))
        return nearest, np.take_along_axis(index, order, axis=1)

    def made(self, make: Callable[[Gram, int], Any], size: int) -> Any:
        """Return the same landmarks, with rows that are left out at their new distances."""
        return self._gram.made(make, size).adjusted(self._adjust)

    def _adjust(self, squares: FloatArray, block: slice, others: FloatArray) -> None:
        self._stretch(squares, self._norms[block], np.einsum("nm,nm->n", others, others))

    def _stretch(self, squares: FloatArray, norms: FloatArray, others: FloatArray) -> None:
        """Change the squared distances of rows of some norms to rows of others, in place."""
        n, own = self._gram.n_rows, norms[:, None]
        along = (squares + own - others) / 2
        along *= along
        along *= self._gain / np.maximum(1.0 - self._gain * own, SMALLEST_LEFT)
        squares += along
        squares *= (n - 1) / n


def ledoit_wolf(rows: FloatArray, values: FloatArray) -> float:
    """Return the shrinkage towards a sphere that is closest to the true covariance.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        Centred rows.
    values : ndarray of shape (r,)
        Eigenvalues of their covariance; the other m - r are 0.

    Returns
    -------
    float
        In [0, 1]; 0 if the covariance is a sphere already, 1 if it is 0.
    """
    n, m = rows.shape
    squares = float(values @ values)
    distance = squares - float(values.sum()) ** 2 / m
    if distance <= ROUNDING * squares:
        return 0.0 if len(values) else 1.0
    norms = np.einsum("nm,nm->n", rows, rows)
    error = (float(norms @ norms) / n - squares) / n
    return float(np.clip(error / distance, 0.0, 1.0))


def whitening_cost(shape: Shape) -> Cost:
    """Return the cost of a whitening of the rows."""
    n, m = shape.rows, shape.columns
    r = min(n, m)  # rows span no more directions than there are rows
    size = NUMBER * r * m
    return Cost(
        fit_work={"whitening": shape.fits() * (n + m) * r * r},
        score_work={"whitening": r * m},
        fit_bytes={"wide": size},
        model_bytes={"wide": size},
    )


def _principal(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the positive eigenvalues of the covariance, and directions as rows."""
    n, m = rows.shape
    if n > m:
        values, vectors = eigenpairs(rows.T @ rows / n)
        is_positive = values > ROUNDING * m * max(values[-1], SMALLEST_VARIANCE)
        return values[is_positive], np.ascontiguousarray(vectors.T[is_positive])
    _, singular, directions = svd(rows, full_matrices=False, check_finite=False)
    is_positive = singular > ROUNDING * m * max(singular[0], SMALLEST_VARIANCE)
    return singular[is_positive] ** 2 / n, directions[is_positive]


def _row_by_row(A: FloatArray, rows: FloatArray) -> FloatArray:
    """Return ``rows @ A.T`` by one product per row, which does not know the other rows."""
    product: FloatArray = np.matmul(A, rows[:, :, None])[:, :, 0]
    return product
