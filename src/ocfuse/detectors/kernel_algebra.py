"""Eigenpairs and inverses of kernel matrices, and what follows from them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, lapack

from ocfuse.arrays import FloatArray

#: Up to so many rows, or from half of the directions on, all directions cost no more than some.
FULL_ROWS = 1000
#: Directions beyond those asked for, which leaving a row out can bring in.
SPARE = 100


@dataclass
class Spectrum:
    """The centred kernel ``Kc = V diag(values) V'``, as far as it was computed.

    Attributes
    ----------
    values : ndarray of shape (n,)
        All eigenvalues, largest first, none below 0.
    vectors : ndarray of shape (n, s)
        The first s eigenvectors.
    column_means : ndarray of shape (n,)
        Means of the columns of the kernel before centring.
    diagonal, squares : ndarray of shape (n,)
        The diagonals of Kc and of its square.
    """

    values: FloatArray
    vectors: FloatArray
    column_means: FloatArray
    diagonal: FloatArray
    squares: FloatArray

    @property
    def mean(self) -> float:
        """Mean of the kernel."""
        return float(self.column_means.mean())

    @property
    def rank(self) -> int:
        """Numerical rank of the centred kernel."""
        return int(np.count_nonzero(self.values > self._floor))

    @property
    def _floor(self) -> float:
        return rank_floor(self.values)

    @property
    def resolution(self) -> float:
        """The reconstruction error that cannot be told from 0."""
        return resolution(self.values)

    @property
    def is_full(self) -> bool:
        """Whether every eigenvector is there."""
        return bool(len(self.values) == self.vectors.shape[1])

    def size(self, subspace: int | float) -> int:
        """Return the directions of a size or of an explained share, at most the rank."""
        if isinstance(subspace, float):
            explained = np.cumsum(self.values)
            subspace = int(np.searchsorted(explained, subspace * explained[-1])) + 1
        return min(int(subspace), self.rank)

    def projection(self, r: int) -> tuple[FloatArray, FloatArray]:
        """Return kernel values to r projections and their mean; projections of the mean."""
        n = len(self.column_means)
        # Column by column, as the eigenvectors come and as one row is multiplied fastest.
        projection = np.empty((n, r + 1), order="F")
        np.divide(self.vectors[:, :r], np.sqrt(self.values[:r]), out=projection[:, :r])
        # Eigenvectors of a centred kernel sum to 0, so the rows scored need no centring.
        projection[:, :r] -= projection[:, :r].mean(axis=0)
        projection[:, r] = 1.0 / n
        return projection, self.column_means @ projection[:, :r]

    def has(self, size: int) -> bool:
        """Whether there are eigenvectors for so many directions and for leaving rows out."""
        return self.is_full or bool(size + SPARE <= self.vectors.shape[1])

    def left_out_errors(self, size: int) -> FloatArray:
        """Return the reconstruction error of every row had the others alone been learned from.

        Without row i the kernel of the others, centred anew, has the eigenvalues
        mu with ``F(mu) = sum_l z_l / (lambda_l - mu) - 1 = 0``, where
        ``z_l = n / (n - 1) lambda_l V_il^2``, and its direction j explains
        ``n / (n - 1) / F'(mu_j)`` of row i: the residue of 1 / F. The sum of the first
        `size` residues is an integral of 1 / F along the vertical line through
        ``lambda_(size + 1)``, which separates the roots for every row (they
        interlace). Where all directions are used, that is 0 up to rounding, and so is the
        last root of a row that alone spans a direction: then the line goes between the
        smallest eigenvalue and what counts as 0. It is taken by the
        trapezoidal rule in the logarithm of the height. Directions without
        eigenvector enter with weights that are a line in their eigenvalue and
        give row i its diagonals of Kc and Kc^2.
        """
        n = len(self.values)
        grow = n / (n - 1)
        total = grow * self.diagonal
        size = min(size, n - 2)
        if size <= 0 or self.rank == 0:
            return grow * total
        y, weights = heights(self.values[0])
        crossing = float(self.values[size])
        if crossing <= self._floor:
            crossing = float(np.sqrt(self._floor * max(self.values[size - 1], self._floor)))
        g = excess(*self._secular(crossing, y))
        return grow * (total / 2 + g @ weights / np.pi)

    def _secular(self, crossing: float, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return F + 1 of every row at ``crossing + i y``: its two parts, (n, nodes)."""
        n, s = self.vectors.shape
        gaps = self.values[:, None] - crossing
        squares = gaps * gaps + y * y
        real, imaginary = gaps / squares, y / squares
        z = n / (n - 1) * self.values[:s] * self.vectors**2
        F = z @ real[:s], z @ imaginary[:s]
        tail = self.values[s:]
        if s == n or tail[0] <= self._floor:
            return F
        share = tail / tail[0]
        basis = np.stack([tail, tail * share])
        second = n / (n - 1) * self.squares - z @ self.values[:s]
        moments = np.stack([n / (n - 1) * self.diagonal - z.sum(axis=1), second / tail[0]])
        mix = np.linalg.lstsq(basis @ np.stack([np.ones(n - s), share]).T, moments, rcond=1e-10)[0]
        return F[0] + mix.T @ (basis @ real[s:]), F[1] + mix.T @ (basis @ imaginary[s:])


def centred_spectrum(K: FloatArray, subspace: int | float) -> Spectrum:
    """Return the spectrum of a kernel, with eigenvectors enough for a `subspace`.

    That is a number of directions, or the share of the trace that they explain. All
    eigenvectors are computed if they cost about the same.
    """
    means = K.mean(axis=0)
    Kc = K - means
    Kc -= means[:, None]
    Kc += means.mean()
    spectrum = Spectrum(
        np.empty(0), np.empty((0, 0)), means, Kc.diagonal().copy(), np.einsum("ij,ij->i", Kc, Kc)
    )
    if len(K) <= FULL_ROWS or not _solve_partly(spectrum, Kc, subspace):
        values, vectors = eigenpairs(Kc, overwrite=True)
        spectrum.values, spectrum.vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    return spectrum


def _solve_partly(spectrum: Spectrum, Kc: FloatArray, subspace: int | float) -> bool:
    """Find all eigenvalues and some eigenvectors; return False if too many are needed.

    Of a tridiagonal matrix all eigenvalues are cheap, and so is each eigenvector.
    """
    n = len(Kc)
    if isinstance(subspace, int) and subspace + SPARE > n // 2:
        return False
    reduced, d, e, tau, _ = lapack.dsytrd(Kc.T, lower=1, lwork=64 * n)
    values, failed = lapack.dsterf(d, e)
    spectrum.values = np.maximum(values[::-1], 0.0)
    needed = spectrum.size(subspace) + SPARE
    if failed or needed > n // 2:
        return False
    _, _, small, failed = lapack.dstemr(d, np.append(e, 0.0), 2, 0.0, 0.0, n - needed + 1, n)
    vectors = np.asfortranarray(small[:, needed - 1 :: -1])
    # The reflectors of a lower reduction leave the first row alone.
    rest = np.asfortranarray(vectors[1:])
    vectors[1:], _, _ = lapack.dormqr("L", "N", reduced[1:, :-1], tau, rest, 64 * needed)
    spectrum.vectors = vectors
    return not failed


def rank_floor(values: FloatArray) -> float:
    """Return the eigenvalue from which on one counts for the rank, given all of them.

    A projection on a direction with less than 1e-10 of the largest would multiply rounding by
    the inverse root of this share.
    """
    return max(1e-10 * float(values[0]), float(np.finfo(np.float64).tiny))


def resolution(values: FloatArray) -> float:
    """Return the reconstruction error that is rounding, given all eigenvalues.

    It is relative to the largest of them and to the length of rows in feature space, which
    is 1. Up to 9 eps were measured.
    """
    return 16.0 * float(np.finfo(np.float64).eps) * max(float(values[0]), 1.0)


def excess(real: FloatArray, imaginary: FloatArray) -> FloatArray:
    """Return the real part of 1 + 1 / F, given the parts of F + 1.

    Where F is nearly -1 the sum would lose what the weights of the nodes magnify.
    """
    less = real - 1.0
    found: FloatArray = real * less
    squares = imaginary * imaginary
    found += squares
    squares += less * less
    found /= squares
    return found


def heights(largest: float, step: float = 0.25) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the integral over y > 0.

    The integrand is constant at the foot of the line and falls as 1 / y^2 at its
    top: beyond both ends the rule is a geometric series. In log(y) it has no pole within pi / 2
    of the axis: the error is about ``exp(-pi^2 / step)``.
    """
    y = largest * np.exp(np.arange(np.log(1e-16), np.log(1e6), step))
    weights = step * y
    weights[[0, -1]] *= 1.0 + 1.0 / np.expm1(step)
    return y, weights


class CholeskyInverse:
    """``Kn^-1`` of ``Kn = K + noise I`` by the Cholesky factor of Kn."""

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


def eigenpairs(A: FloatArray, *, overwrite: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return all eigenvalues of a symmetric A, smallest first, and eigenvectors as columns."""
    # SciPy before 1.14 asks for too little memory where there is nothing to divide and conquer
    driver = "evd" if len(A) > 1 else "ev"
    values, vectors = eigh(A, driver=driver, overwrite_a=overwrite, check_finite=False)
    return values, vectors
