"""What detectors learn from all rows in the coordinates of landmarks.

Each class asks for rows left out block by block, see `Landmarks`.
"""

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np
from scipy.linalg import solve_triangular

from ocfuse.detectors.eigen import eigenpairs
from ocfuse.detectors.moments import Basis, FloatArray, IntArray, LeftOutBlock, Moments
from ocfuse.detectors.spectrum import RANK_TOLERANCE, SPARE, excess, heights, resolution
from ocfuse.detectors.sphere import SoftSphere

LeftOutBlocks = Callable[[], Iterator[LeftOutBlock]]


class LandmarkSpectrum:
    """Principal directions of all rows in the space of the landmarks.

    It is to `KPCA` what `Spectrum` is for the kernel of all rows.

    Parameters
    ----------
    sums : Moments
        Sums over the training rows.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Eigenvalues of the centred sum of phi phi', largest first, none below 0.
    mean : float
        Squared norm of the mean of phi, which is the mean of the kernel.
    """

    _blocks: LeftOutBlocks

    def __init__(self, sums: Moments) -> None:
        self._sums = sums
        self._centre = sums.total / sums.n
        self.mean = float(self._centre @ self._centre)
        centred = sums.products - sums.n * np.outer(self._centre, self._centre)
        values, vectors = eigenpairs(centred, overwrite=True)
        self.values: FloatArray = np.maximum(values[::-1], 0.0)
        self._vectors: FloatArray = vectors[:, ::-1]

    def over(self, blocks: LeftOutBlocks) -> "LandmarkSpectrum":
        """Return the same, to be asked of the rows of these blocks left out."""
        other = copy(self)
        other._blocks = blocks
        return other

    @property
    def resolution(self) -> float:
        """The reconstruction error that cannot be told from 0."""
        return resolution(self.values)

    @property
    def _floor(self) -> float:
        return max(RANK_TOLERANCE * float(self.values[0]), float(np.finfo(np.float64).tiny))

    def size(self, subspace: int | float) -> int:
        """Return the directions of a size or of an explained share, at most the rank."""
        if isinstance(subspace, float):
            # What the landmarks miss counts too: every row has length 1.
            whole = self._sums.n * (1.0 - self.mean)
            subspace = int(np.searchsorted(np.cumsum(self.values), subspace * whole)) + 1
        return min(int(subspace), int(np.count_nonzero(self.values > self._floor)))

    def projection(self, r: int) -> tuple[FloatArray, FloatArray]:
        """Return kernel values to r projections and the product with the mean; its projections."""
        on_phi = np.column_stack([self._vectors[:, :r], self._centre])
        shift: FloatArray = self._centre @ self._vectors[:, :r]
        return np.asfortranarray(self._sums.basis.weights(on_phi)), shift

    def left_out_errors(self, size: int) -> FloatArray:
        """Return the reconstruction error of every row had the others alone been learned from.

        As `Spectrum.left_out_errors`; the landmarks stay. What a row has beyond the
        first directions is partly in the others, spread over them as that of all
        rows is, and partly off the landmarks, where no other row has a part.
        """
        size = min(size, self._sums.n - 2)
        if size <= 0:
            grow = self._sums.n / (self._sums.n - 1)
            return np.concatenate([grow**2 * rest for _, rest in self._squares(0)])
        known = min(len(self.values), size + SPARE)
        crossing = max(self.values[size : size + 1].sum(), self._floor)
        y, weights = heights(self.values[0])
        gaps = self.values[:, None] - crossing
        lengths = gaps * gaps + y * y
        tail = self.values[known:]
        beyond = self._sums.n * (1.0 - self.mean) - float(self.values[:known].sum())
        # The sum of the tail is rounded too.
        spread = tail / max(beyond, float(tail.sum()), self._floor)
        poles = [
            np.vstack([part[:known], spread @ part[known:]])
            for part in (gaps / lengths, y / lengths)
        ]
        off = 1.0 - float(spread.sum())
        grow = self._sums.n / (self._sums.n - 1)
        errors = []
        for z, rest in self._squares(known):
            total = grow * (z.sum(axis=1) + (1.0 - off) * rest)
            z = grow * np.column_stack([z, rest])
            g = excess(z @ poles[0], z @ poles[1])
            errors.append(grow * (total / 2 + g @ weights / np.pi) + off * rest)
        return np.concatenate(errors)

    def _squares(self, r: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Return block by block the squared projections of centred rows, and what is left."""
        projection, shift = self.projection(r)
        for block in self._blocks():
            parts = block.times(projection)
            squares = (parts[:, :-1] - shift) ** 2
            rest = 1.0 + self.mean - 2.0 * parts[:, -1] - squares.sum(axis=1)
            yield squares, np.maximum(rest, 0.0)


class LandmarkInverse:
    """The Gaussian process of all rows in the space of the landmarks.

    It is the regression of the constant 1 on phi with the penalty `noise`.

    Parameters
    ----------
    sums : Moments
        Sums over the training rows.
    noise : float
        Variance of the noise.

    Attributes
    ----------
    alpha : ndarray of shape (m,)
        Kernel values to the mean of the prediction.
    """

    _blocks: LeftOutBlocks

    def __init__(self, sums: Moments, noise: float) -> None:
        self._noise = noise
        values, vectors = eigenpairs(sums.products)
        self._shares: FloatArray = 1.0 / (np.maximum(values, 0.0) + noise)
        self._rotation = sums.basis.weights(vectors)
        self.alpha: FloatArray = self._rotation @ (self._shares * (vectors.T @ sums.total))

    def over(self, blocks: LeftOutBlocks) -> "LandmarkInverse":
        """Return the same, to be asked of the rows of these blocks left out."""
        other = copy(self)
        other._blocks = blocks
        return other

    @property
    def factor(self) -> FloatArray:
        """H, shape (m, m), with the variance ``1 + noise - |H k(x)|^2``."""
        factor: FloatArray = (self._rotation * np.sqrt(1.0 - self._noise * self._shares)).T
        return factor

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance for every row had the others alone been learned from."""
        means, variances = [], []
        for block in self._blocks():
            seen = block.times_seen(self._rotation)
            phi = block.as_fresh(seen, self._rotation)
            leverage = (seen * seen) @ self._shares
            shared = (seen * phi) @ self._shares
            mean = block.times_seen(self.alpha)
            miss = (mean - 1.0) / (1.0 - leverage)
            means.append(block.as_fresh(mean, self.alpha) + shared * miss)
            squares = phi * phi
            spread = squares @ self._shares + shared * shared / (1.0 - leverage)
            off = np.maximum(1.0 - squares.sum(axis=1), 0.0)
            variances.append(off + self._noise * (1.0 + spread))
        return np.concatenate(means), np.concatenate(variances)


class LandmarkSphere:
    """The smallest soft sphere around many rows in the space of the landmarks.

    Parameters
    ----------
    basis : Basis
        The coordinates.
    sphere : SoftSphere
        The sphere around some rows in them.
    rows : ndarray of shape (c,)
        Which of the training rows these are, ascending.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        Kernel values to the product with the centre.
    level : float
        This product on the border.
    """

    _blocks: LeftOutBlocks

    def __init__(self, basis: Basis, sphere: SoftSphere, rows: IntArray) -> None:
        self.weights = basis.weights(sphere.centre)
        self.level = sphere.level
        self._sphere = sphere
        self._support = rows[sphere.support]
        half = solve_triangular(sphere.factor, np.eye(len(self.weights)), lower=True).T
        self._rotation = basis.weights(half)
        self._shift: FloatArray = sphere.middle @ half

    def over(self, blocks: LeftOutBlocks) -> "LandmarkSphere":
        """Return the same, to be asked of the rows of these blocks left out."""
        other = copy(self)
        other._blocks = blocks
        return other

    def left_out(self) -> FloatArray:
        """Return the position of every row, less the level, had the others alone been there.

        The centre moves by the weight of the row along its span, as in `SVDD`.
        """
        positions, begin = [], 0
        for block in self._blocks():
            position = block.times(self.weights) - self.level
            first, last = np.searchsorted(self._support, [begin, begin + len(position)])
            rows = self._support[first:last] - begin
            part = block.take(rows)
            seen = part.times_seen(self._rotation)
            fresh = part.as_fresh(seen, self._rotation) - self._shift
            seen -= self._shift
            own, shared = np.einsum("qm,qm->q", seen, seen), np.einsum("qm,qm->q", seen, fresh)
            position[rows] -= self._sphere.lost(slice(first, last), own, shared)
            positions.append(position)
            begin += len(position)
        return np.concatenate(positions)
