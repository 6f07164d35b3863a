"""Principal coordinates of the normals."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

#: Directions whose spread is below this share of the largest are left out.
SMALLEST = 1e-3


@dataclass(frozen=True)
class PrincipalCoordinates:
    """Rows as x = centre + scale * (U t), t their principal coordinates.

    Columns are standardised first, so that their units do not matter. There may
    be fewer coordinates than columns, and none if all rows are equal.

    Parameters
    ----------
    t : ndarray of shape (n, r)
        Coordinates of the rows; uncorrelated, of mean 0.
    U : ndarray of shape (m, r)
        Orthonormal directions.
    centre, scale : ndarray of shape (m,)
        Mean and standard deviation of the columns, 0 if constant.
    """

    t: FloatArray
    U: FloatArray
    centre: FloatArray
    scale: FloatArray

    def rows(self, t: FloatArray) -> FloatArray:
        """Return the rows that have the coordinates t."""
        return np.asarray(self.centre + self.scale * (t @ self.U.T))


def principal_coordinates(X: FloatArray) -> PrincipalCoordinates:
    """Return the principal coordinates of the rows of X."""
    # about the first row: a constant column is not moved by rounding
    centre = X[0] + (X - X[0]).mean(axis=0)
    centred = X - centre
    peak = np.abs(centred).max(axis=0)
    unit = centred / np.where(peak > 0.0, peak, 1.0)  # its squares cannot overflow
    unit -= unit.mean(axis=0)  # the centre may be rounded by as much as the rows differ
    spread = np.sqrt((unit**2).mean(axis=0))
    Z = unit / np.where(spread > 0.0, spread, 1.0)
    U = _directions(Z)
    return PrincipalCoordinates(t=Z @ U, U=U, centre=centre, scale=peak * spread)


def _directions(Z: FloatArray) -> FloatArray:
    """Return the directions in which Z spreads, from its smaller product with itself."""
    is_wide = Z.shape[0] < Z.shape[1]
    squares, vectors = np.linalg.eigh(Z @ Z.T if is_wide else Z.T @ Z)
    kept = squares > SMALLEST**2 * squares[-1]
    U = vectors[:, kept]
    if is_wide:
        U = Z.T @ U / np.sqrt(squares[kept])
    # eigenvectors have no sign of their own: equal seeds draw equal rows everywhere
    return np.asarray(U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])]))
