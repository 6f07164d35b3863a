"""The inverse of a kernel with noise on its diagonal, as far as it is needed."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, lapack

from ocfuse.detectors.spectrum import Spectrum

FloatArray = NDArray[np.float64]


class CholeskyInverse:
    """``Kn^-1`` of ``Kn = K + noise I`` by the Cholesky factor of Kn.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        A kernel.
    noise : float
        Added to its diagonal.
    """

    def __init__(self, K: FloatArray, noise: float) -> None:
        noisy = K.copy()
        noisy.flat[:: len(K) + 1] += noise
        # The transpose of a symmetric matrix is in LAPACK's order without a copy.
        self.factor: FloatArray = cholesky(
            noisy.T, lower=True, overwrite_a=True, check_finite=False
        )

    @cached_property
    def alpha(self) -> FloatArray:
        """``Kn^-1 1``, shape (n,)."""
        ones = np.ones(len(self.factor))
        alpha: FloatArray = cho_solve((self.factor, True), ones, check_finite=False)
        return alpha

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of ``Kn^-1``, shape (n,)."""
        half, _ = lapack.dtrtri(self.factor, lower=1)
        diagonal: FloatArray = np.einsum("ij,ij->j", half, half)
        return diagonal

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance at every row had the others alone been learned from."""
        return _left_out(self.alpha, self.diagonal)


class SpectralInverse:
    """The same from all eigenpairs of the centred kernel, by block elimination.

    The centred kernel Kc is the kernel less its part along the constant vector:
    ``K = Kc + c 1' + 1 c' + mean 1 1'`` with c the centred column means. Split
    along that vector, Kn has a two by two block form, whose inverse follows
    from ``B = (Kc + noise I)^-1`` and one Schur complement s.

    Parameters
    ----------
    spectrum : Spectrum
        Of the kernel, with every eigenvector.
    noise : float
        Added to the diagonal.
    """

    def __init__(self, spectrum: Spectrum, noise: float) -> None:
        V, n = spectrum.vectors, len(spectrum.values)
        inverted = 1.0 / (spectrum.values + noise)
        c = spectrum.column_means - spectrum.mean
        Bc = V @ (inverted * (V.T @ c))
        s = noise + n * (spectrum.mean - c @ Bc)
        self.alpha: FloatArray = (1.0 - n * Bc) / s
        # B counts the constant vector, an eigenvector of Kc with value 0, in full.
        along = V**2 @ inverted - 1.0 / (n * noise)
        self.diagonal: FloatArray = along + s / n * self.alpha**2

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance at every row had the others alone been learned from."""
        return _left_out(self.alpha, self.diagonal)


def _left_out(alpha: FloatArray, diagonal: FloatArray) -> tuple[FloatArray, FloatArray]:
    variance = 1.0 / diagonal
    return 1.0 - alpha * variance, variance
