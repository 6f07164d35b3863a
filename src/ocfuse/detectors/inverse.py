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


class SpectralInverse:
    """The same from all eigenpairs of the centred kernel, by Woodbury's identity.

    ``K = Kc + U S U'`` with U = [column means, 1] and S = [[0, 1], [1, -mean]].

    Parameters
    ----------
    spectrum : Spectrum
        Of the kernel, with every eigenvector.
    noise : float
        Added to the diagonal.
    """

    def __init__(self, spectrum: Spectrum, noise: float) -> None:
        V, means = spectrum.vectors, spectrum.column_means
        inverted = 1.0 / (spectrum.values + noise)
        U = np.stack([means, np.ones(len(means))], axis=1)
        BU = V @ (inverted[:, None] * (V.T @ U))
        core = np.linalg.inv(np.array([[spectrum.mean, 1.0], [1.0, 0.0]]) + U.T @ BU)
        self.alpha: FloatArray = BU[:, 1] - BU @ (core @ (BU.T @ U[:, 1]))
        self.diagonal: FloatArray = V**2 @ inverted - np.einsum("ni,ij,nj->n", BU, core, BU)
