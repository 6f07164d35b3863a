"""Gaussian process, kernel PCA and SVDD in the coordinates of landmarks.

They learn from all rows, and score rows left out block by block, see `Landmarks`.

The Gaussian process is exact within blocks of near rows: the kernel of two rows is taken
as it is if both are in one block, and as ``phi' phi`` if not (Snelson and Ghahramani
2007). Landmarks alone smooth away local structure; blocks alone do not know each other.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.kernel_algebra import (
    SPARE,
    eigenpairs,
    excess,
    heights,
    rank_floor,
    resolution,
)

#: Noise on the kernel of the landmarks, so that it has an inverse where they are alike.
JITTER = 1e-8

#: In single or double precision.
KernelArray: TypeAlias = NDArray[np.floating[Any]]


class SoftSphere:
    """Minimise ``|w|^2 / 2 - rho + 1 / (nu n) sum_i loss_i(rho - w.phi_i)`` over w and rho.

    That is the one-class SVM; as rows have length 1, it is the SVDD with the centre w.
    What a row has off its coordinates, ``r_i = 1 - |phi_i|^2``, no other row has. In
    the dual r_i is added to the diagonal of the kernel; here it rounds the corner of
    the loss max(0, t), which is ``t^2 / (2 d_i)`` up to ``d_i = r_i / (nu n)``, r_i at least
    0.01. Newton's method starts with corners that are rounder.

    `phi` (n, m) are the coordinates of the rows, a share `nu` of which is outside. `centre` is w,
    the sum of the rows times their weights, which add up to 1; `level` is rho, the product of w
    with a row on the border; `support` are the rows on the border or outside; `factor` is the
    lower Cholesky factor of the Hessian, rho eliminated; `middle` is the mean of the rows on the
    border.
    """

    def __init__(self, phi: KernelArray, nu: float) -> None:
        self._n_outside = max(nu * len(phi), 1.0)
        norms = np.einsum("nm,nm->n", phi, phi).astype(np.float64)
        own = np.maximum(1.0 - norms, 0.01) / self._n_outside
        self.centre: FloatArray = phi.mean(axis=0, dtype=np.float64)
        self._reached = _product(phi, self.centre)
        rounding = 0.1 * float(self._reached.std())
        for _ in range(200):  # it takes 10 to 40
            rounding = rounding if rounding > 0.1 * float(own.min()) else 0.0
            step = self._newton_step(phi, own + rounding)
            gain = float(np.sum((self.factor.T @ step) ** 2))
            if rounding == 0.0 and gain <= 1e-12 * float(self.centre @ self.centre):
                break
            self._move(phi, step, own + rounding)
            rounding *= 0.2
        self.support = np.flatnonzero(self._shares)

    def lost(self, support: slice, own: FloatArray, shared: FloatArray) -> FloatArray:
        """Return how much support vectors are farther out if they are left out.

        With fixed rows on the border a row that goes moves w and rho along its span. `own` are
        squared lengths from the middle in the inverse of the Hessian, and `shared` products with
        the same rows as if these were fresh. What is returned the products with w, less rho, lose.
        """
        rows, along = self.support[support], 1.0 / float(self._stiffness.sum())
        left = 1.0 - self._stiffness[rows] * (own + along)
        span = np.maximum(shared + along, 0.0)
        # A point of feature space is at most at a squared distance of 2 from the span of others.
        span = np.minimum(span, 2.0 * left) / np.maximum(left, np.finfo(float).tiny)
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

        length = 1.0 if slope(1.0) <= 0.0 else _root(slope, 0.0, 1.0, halvings=20)
        self.centre = self.centre + length * step
        self._reached = self._reached + length * reached


def _product(phi: KernelArray, w: FloatArray) -> FloatArray:
    product: KernelArray = phi @ w.astype(phi.dtype)
    return product.astype(np.float64)


def _level(reached: FloatArray, widths: FloatArray, n_outside: float) -> float:
    """Return rho: rows below it count 1, within their width of it a part, `n_outside` in all."""

    def surplus(level: float) -> float:
        return float(np.clip((level - reached) / widths, 0.0, 1.0).sum()) - n_outside

    return _root(surplus, float(reached.min()), float((reached + widths).max()), halvings=60)


def _root(increasing: Callable[[float], float], low: float, high: float, halvings: int) -> float:
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < 0.0 else (low, middle)
    return (low + high) / 2


@dataclass
class Basis:
    """The coordinates ``phi(x) = L^-1 k(x)`` that the landmarks give to a row."""

    factor: FloatArray  # (m, m), the lower triangular L

    @property
    def least_pivot(self) -> float:
        """The least part of a landmark that those before it do not have, at most 1."""
        return float(self.factor.diagonal().min()) ** 2

    @cached_property
    def predicted(self) -> FloatArray:
        """The kernel of each landmark with itself as the others predict it, shape (m,)."""
        half, _ = lapack.dtrtri(self.factor, lower=1)
        predicted: FloatArray = 1.0 - 1.0 / np.einsum("ij,ij->j", half, half)
        return predicted

    def coordinates(self, K: KernelArray) -> KernelArray:
        """Return phi of rows, given their kernel values, in the precision of these."""
        factor = self.factor.astype(K.dtype, copy=False)
        phi: KernelArray = solve_triangular(factor, K.T, lower=True, check_finite=False).T
        return phi

    def weights(self, on_phi: FloatArray) -> FloatArray:
        """Return what multiplies kernel values, given what multiplies phi."""
        weights: FloatArray = solve_triangular(
            self.factor, on_phi, lower=True, trans=1, check_finite=False
        )
        return weights


@dataclass
class Moments:
    """Sums over all n training rows of phi and of phi phi'."""

    basis: Basis
    n: int
    total: FloatArray  # (m,), of phi
    products: FloatArray  # (m, m), of phi phi'


def moments(basis: Basis, blocks: Iterable[KernelArray]) -> Moments:
    """Return the sums over all rows, given their kernel values block by block."""
    factor = basis.factor
    n, total, products = 0, np.zeros(len(factor)), np.zeros(factor.shape)
    for block in blocks:
        # The sums themselves would lose too much in single precision.
        K = block.astype(np.float64, copy=False)
        n += len(K)
        total += K.sum(axis=0)
        products += K.T @ K
    # L^-1 A L^-T of a symmetric A
    half = solve_triangular(factor, products, lower=True, check_finite=False)
    products = solve_triangular(factor, half.T, lower=True, check_finite=False)
    total = solve_triangular(factor, total, lower=True, check_finite=False)
    return Moments(basis, n, total, (products + products.T) / 2)


@dataclass
class LeftOutBlock:
    """Kernel values of training rows at the landmarks, as if the rows were fresh.

    A landmark, which knows itself, would look more normal than any fresh row. It
    gets the value at itself that the other landmarks lead to expect.
    """

    K: KernelArray  # (q, m)
    rows: IntArray  # (l,), those that are landmarks
    columns: IntArray  # (l,), which landmarks they are
    predicted: FloatArray  # (l,), their values at themselves, as expected

    def times(self, weights: FloatArray) -> FloatArray:
        """Return the product of the values, as if the rows were fresh, with (m, r) weights."""
        return self.as_fresh(self.times_seen(weights), weights)

    def times_seen(self, weights: FloatArray) -> FloatArray:
        """Return the product of the values as they are."""
        product: KernelArray = self.K @ weights.astype(self.K.dtype, copy=False)
        return product.astype(np.float64, copy=False)

    def take(self, rows: IntArray) -> "LeftOutBlock":
        """Return some of the rows, given in ascending order."""
        here = np.flatnonzero(np.isin(self.rows, rows))
        places = np.searchsorted(rows, self.rows[here])
        return LeftOutBlock(self.K[rows], places, self.columns[here], self.predicted[here])

    def fresh_landmarks(self) -> KernelArray:
        """Return the values of those rows that are landmarks, as if they were fresh."""
        K: KernelArray = self.K[self.rows]
        K[np.arange(len(K)), self.columns] = self.predicted
        return K

    def as_fresh(self, product: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the first, given the second."""
        fresh = product.copy()
        lost = 1.0 - self.predicted
        fresh[self.rows] -= (weights[self.columns].T * lost).T
        return fresh


LeftOutBlocks = Callable[[], Iterator[LeftOutBlock]]
Asked = TypeVar("Asked", bound="AskedOfBlocks")


class AskedOfBlocks:
    """What was learned from sums over rows, and can be asked of these rows left out."""

    _blocks: LeftOutBlocks

    def over(self: Asked, blocks: LeftOutBlocks) -> Asked:
        """Return the same, to be asked of the rows of these blocks left out."""
        other = copy(self)
        other._blocks = blocks
        return other


class LandmarkSpectrum(AskedOfBlocks):
    """Principal directions of all rows in the space of the landmarks.

    It is to `KPCA` what `Spectrum` is for the kernel of all rows. `values` (m,) are the
    eigenvalues of the centred sum of phi phi', largest first, none below 0; `mean` is the squared
    norm of the mean of phi, which is the mean of the kernel.
    """

    def __init__(self, sums: Moments) -> None:
        self._sums = sums
        self._centre = sums.total / sums.n
        self.mean = float(self._centre @ self._centre)
        centred = sums.products - sums.n * np.outer(self._centre, self._centre)
        values, vectors = eigenpairs(centred, overwrite=True)
        self.values: FloatArray = np.maximum(values[::-1], 0.0)
        self._vectors: FloatArray = vectors[:, ::-1]
        #: What leads from kernel values to all directions.
        self._rotation = sums.basis.weights(self._vectors)

    @property
    def resolution(self) -> float:
        """The reconstruction error that cannot be told from 0: rounding, and what noise adds."""
        return resolution(self.values) + 2.0 * JITTER

    @property
    def _floor(self) -> float:
        return rank_floor(self.values)

    def size(self, subspace: int | float) -> int:
        """Return the directions of a size or of an explained share, at most the rank."""
        if isinstance(subspace, float):
            # What the landmarks miss counts too: every row has length 1.
            whole = self._sums.n * (1.0 - self.mean)
            subspace = int(np.searchsorted(np.cumsum(self.values), subspace * whole)) + 1
        return min(int(subspace), int(np.count_nonzero(self.values > self._floor)))

    def projection(self, r: int) -> tuple[FloatArray, FloatArray]:
        """Return kernel values to r projections and the product with the mean; its projections."""
        projection = np.empty((len(self._centre), r + 1), order="F")
        projection[:, :r] = self._rotation[:, :r]
        projection[:, r] = self._sums.basis.weights(self._centre)
        shift: FloatArray = self._centre @ self._vectors[:, :r]
        return projection, shift

    def left_out_errors(self, size: int) -> FloatArray:
        """Return the reconstruction error of every row had the others alone been learned from.

        As `Spectrum.left_out_errors`. With u the centred row that goes, and w the same row as a
        fresh one, from the mean of the others, the sums lose ``n / (n - 1) u u'``, and of their
        resolvent R at mu all that counts is ::

            w' R w + b^2 / (g (1 - a)),   a = g u' R u,  b = g u' R w,  g = n / (n - 1)

        Most rows are alike as fresh ones: w = g u. What such a row has beyond the first
        directions is partly in the others, spread over them as that of all rows is, and partly
        off the landmarks, where no other row has a part. A landmark, which others see itself by,
        is a fresh row in the span of the other landmarks; its own direction stays.
        """
        n = self._sums.n
        grow = n / (n - 1)
        size = min(size, n - 2)
        if size <= 0:
            centre, _ = self.projection(0)
            far = (self._distances(block.times(centre)) for block in self._blocks())
            return np.concatenate([grow**2 * distances for distances in far])
        known = min(len(self.values), size + SPARE)
        poles, weights = self._poles(size, known)
        landmarks = self._sums.basis.factor - self._centre
        own = landmarks @ self._vectors
        # beyond the first directions: what all rows but the landmarks have within, and off them
        rest = np.einsum("lr,lr->", own[:, known:], own[:, known:])
        beyond = max(float(self.values[known:].sum() - rest), 0.0)
        off = max(n - float(np.trace(self._sums.products)), 0.0)
        off = off / (off + beyond) if off + beyond > self._floor else 0.0
        projection, shift = self.projection(known)
        errors = []
        for block in self._blocks():
            parts = block.times_seen(projection)
            z = parts[:, :-1] - shift
            z *= z
            rest = np.maximum(self._distances(parts) - z.sum(axis=1), 0.0)
            z = np.column_stack([z, (1.0 - off) * rest])
            z *= grow
            g = excess(z @ poles[0], z @ poles[1])
            found = grow * (z.sum(axis=1) / 2 + g @ weights / np.pi) + off * rest
            if len(block.rows):
                seen = parts[block.rows, :-1]
                found[block.rows] = self._landmark_errors(block, seen, own, poles, weights)
            errors.append(found)
        return np.concatenate(errors)

    def _poles(self, size: int, known: int) -> tuple[list[FloatArray], FloatArray]:
        """Return ``1 / (values - mu)`` of the first directions, and its mean over the others.

        Its two parts, (known + 1, nodes) each, and the weights of the nodes: mu are above the
        first eigenvalue beyond `size`.
        """
        crossing = max(self.values[size : size + 1].sum(), self._floor)
        y, weights = heights(self.values[0], step=0.5)  # to 3e-9, less than the noise
        gaps = self.values[:, None] - crossing
        lengths = gaps * gaps + y * y
        tail = self.values[known:]
        total = float(tail.sum())
        share = tail / total if total > self._floor else np.zeros_like(tail)
        both = (gaps / lengths, y / lengths)
        return [np.vstack([part[:known], share @ part[known:]]) for part in both], weights

    def _landmark_errors(
        self,
        block: LeftOutBlock,
        seen: FloatArray,
        own: FloatArray,
        poles: list[FloatArray],
        weights: FloatArray,
    ) -> FloatArray:
        """Return the errors of those rows of a block that are landmarks.

        `seen` are their products with the first directions, and `own` all landmarks in all
        directions, (m, m).
        """
        n, known = self._sums.n, seen.shape[1]
        grow = n / (n - 1)
        part = block.take(block.rows)
        fresh = np.empty((len(seen), len(self.values)))
        fresh[:, :known] = part.as_fresh(seen, self._rotation[:, :known])
        fresh[:, known:] = part.times(self._rotation[:, known:])
        off = np.maximum(1.0 - np.einsum("lm,lm->l", fresh, fresh), 0.0)
        u = own[block.columns]
        w = fresh - self._centre @ self._vectors + u / (n - 1)

        def resolvent(left: FloatArray, right: FloatArray) -> Any:
            products = left * right
            products = np.column_stack([products[:, :known], products[:, known:].sum(axis=1)])
            return products @ poles[0] + 1j * (products @ poles[1])

        a = grow * resolvent(u, u)
        b = grow * resolvent(u, w)
        found = resolvent(w, w) + b * b / (grow * (1.0 - a))
        length = np.einsum("lm,lm->l", w, w)
        errors: FloatArray = length / 2 - found.real @ weights / np.pi + off
        return np.maximum(errors, 0.0)

    def _distances(self, parts: FloatArray) -> FloatArray:
        """Return the squared distances of rows to the mean, given their products with it, last."""
        return np.maximum(1.0 + self.mean - 2.0 * parts[:, -1], 0.0)


@dataclass(frozen=True)
class Principal:
    """The mean of n rows in the space of landmarks, and r of their principal directions.

    `projection` (m, r + 1) leads from kernel values to the directions and, last, to the product
    with the mean, as in `LandmarkSpectrum`; `values` (m,) are the sums of squares along these
    directions, and then along others, which are not known.
    """

    basis: Basis
    n: int
    projection: FloatArray
    values: FloatArray

    @property
    def centre(self) -> FloatArray:
        """The mean, in the coordinates of the basis."""
        centre: FloatArray = self.projection[:, -1] @ self.basis.factor
        return centre

    @property
    def shift(self) -> FloatArray:
        """Projections of the mean."""
        return self._along(self.centre)

    def _along(self, rows: FloatArray) -> FloatArray:
        """Return rows in the coordinates of the basis along the directions."""
        along: FloatArray = (rows @ self.basis.factor.T) @ self.projection[:, :-1]
        return along

    def moved(self, added: FloatArray, dropped: FloatArray, most: int) -> "Principal":
        """Return the same of these rows with some more and without others.

        The mean is exact. So are the sums of squares in the space of the last `most` of the
        directions and of what rows that come have off all of them, in which directions are found
        again; off all of them the rows of before are taken to vary alike on every side.

        Parameters
        ----------
        added, dropped : ndarray of shape (q, m)
            The rows in the coordinates of the basis.
        most : int
            Directions that may go, and that may come, at most.

        Returns
        -------
        Principal
            Mean and directions of the rows of now.
        """
        factor, before = self.basis.factor, self.centre
        m, r = len(before), self.projection.shape[1] - 1
        n = self.n + len(added) - len(dropped)
        centre = (self.n * before + added.sum(axis=0) - dropped.sum(axis=0)) / n
        shift = np.sqrt(self.n) * (before - centre)
        rows = np.vstack([added - centre, dropped - centre, shift[None]])
        sign = np.repeat([1.0, -1.0, 1.0], [len(added), len(dropped), 1])
        along = self._along(rows)
        rest = rows - (along @ self.projection[:, :-1].T) @ factor
        beyond = _span_of(rest[sign > 0], m - r, most)  # rows that go bring no direction
        first = max(r - most, 0)
        within = np.hstack([along[:, first:], rest @ beyond])
        share = float(self.values[r:].sum()) / max(m - r, 1)
        squares = np.append(self.values[first:r], np.full(beyond.shape[1], share))
        found, vectors = eigenpairs(np.diag(squares) + (within.T * sign) @ within)
        vectors = vectors[:, ::-1][:, : r - first]
        values = self.values.copy()
        values[:first] += sign @ (along[:, :first] ** 2)
        values[first:r] = found[::-1][: r - first]
        gained = float(sign @ np.einsum("pm,pm->p", rows, rows))
        left = max(float(self.values.sum()) + gained - float(values[:r].sum()), 0.0)
        tail = float(self.values[r:].sum())
        values[r:] = values[r:] * (left / tail) if tail > 0 else left / max(m - r, 1)
        # directions that are kept keep their weights, and of the others only the new are solved
        new = self.basis.weights(np.column_stack([beyond, centre]))
        projection = self.projection.copy(order="F")
        projection[:, first:r] = self.projection[:, first:r] @ vectors[: r - first]
        projection[:, first:r] += new[:, :-1] @ vectors[r - first :]
        projection[:, r] = new[:, -1]
        return Principal(self.basis, n, projection, np.maximum(values, 0.0))


def _span_of(rows: FloatArray, rank: int, most: int) -> FloatArray:
    """Return an orthonormal basis (m, s) of rows, or of where they are longest, as columns."""
    values, vectors = eigenpairs(rows @ rows.T)
    is_there = values > 1e-10 * max(float(values[-1]), np.finfo(np.float64).tiny)
    chosen = np.flatnonzero(is_there)[::-1][: min(rank, most)]
    basis: FloatArray = rows.T @ (vectors[:, chosen] / np.sqrt(values[chosen]))
    return basis


class LandmarkInverse(AskedOfBlocks):
    """The Gaussian process of all rows in the space of the landmarks.

    It is the regression of the constant 1 on phi with the penalty `noise`. `alpha` (m,) leads
    from kernel values to the mean of the prediction.
    """

    def __init__(self, sums: Moments, noise: float) -> None:
        self._noise = noise
        values, vectors = eigenpairs(sums.products)
        self._shares: FloatArray = 1.0 / (np.maximum(values, 0.0) + noise)
        self._rotation = sums.basis.weights(vectors)
        self.alpha: FloatArray = self._rotation @ (self._shares * (vectors.T @ sums.total))

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


class LandmarkSphere(AskedOfBlocks):
    """The smallest soft sphere around many rows in the space of the landmarks.

    The sphere is around those training rows that `rows` numbers, ascending. `weights` (m,) lead
    from kernel values to the product with the centre, which is `level` on the border.
    """

    def __init__(self, basis: Basis, sphere: SoftSphere, rows: IntArray) -> None:
        self.weights = basis.weights(sphere.centre)
        self.level = sphere.level
        self._sphere = sphere
        self._support = rows[sphere.support]
        half = solve_triangular(sphere.factor, np.eye(len(self.weights)), lower=True).T
        self._rotation = basis.weights(half)
        self._shift: FloatArray = sphere.middle @ half

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


@dataclass
class Block:
    """Kernel values of the rows of a block."""

    rows: IntArray  # (b,), which of the training rows these are
    near: FloatArray  # (b, b), with each other
    far: LeftOutBlock  # with the landmarks


class BlockedRegression:
    """The regression of the constant 1 on rows in blocks.

    With Phi the coordinates of all rows and ``Lambda = K - Phi Phi' + noise I`` within
    blocks, 0 between them, the kernel with noise is ``Kn = Lambda + Phi Phi'``. All that is
    needed of its inverse follows from ``A = (I + Phi' Lambda^-1 Phi)^-1``, block by block.
    Matrices of a block are computed each time they are needed, and none is kept.

    `alpha` (n,) is ``Kn^-1 1``, block by block: it leads from kernel values in the block of a row
    to their part of its mean, and `weights` (number of blocks, m) from kernel values at the
    landmarks to the part of all other blocks.
    """

    def __init__(self, basis: Basis, noise: float, blocks: Callable[[], Iterator[Block]]) -> None:
        self._basis, self._noise, self._blocks = basis, noise, blocks
        m = len(basis.factor)
        products, total = np.eye(m), np.zeros(m)
        for block in blocks():
            phi, factor = self._solved(block)
            half = solve_triangular(factor, phi, lower=True, check_finite=False)
            ones = solve_triangular(factor, np.ones(len(phi)), lower=True, check_finite=False)
            products += half.T @ half
            total += half.T @ ones
        self._joint: FloatArray = cholesky(
            products, lower=True, overwrite_a=True, check_finite=False
        )
        #: Phi' alpha
        self._whole: FloatArray = cho_solve((self._joint, True), total, check_finite=False)
        alphas, others = [], []
        for block in blocks():
            phi, factor = self._solved(block)
            missing = 1.0 - phi @ self._whole
            alphas.append(cho_solve((factor, True), missing, check_finite=False))
            others.append(self._whole - phi.T @ alphas[-1])
        self.alpha: FloatArray = np.concatenate(alphas)
        self.weights: FloatArray = basis.weights(np.column_stack(others)).T

    def left_out(self) -> FloatArray:
        """Return the mean at every row had the others alone been learned from.

        Without row i, alpha loses ``alpha_i / [Kn^-1]_ii`` times column i of ``Kn^-1``, and
        the mean there is ``1 - alpha_i / [Kn^-1]_ii``. That of a landmark is taken at the
        coordinates that it would have as a fresh row, see `LeftOutBlock`.
        """
        means, begin = np.empty(len(self.alpha)), 0
        for block in self._blocks():
            phi, factor = self._solved(block)
            inverse, _ = lapack.dpotri(factor, lower=1)
            inverse += np.tril(inverse, -1).T
            spread = inverse @ phi
            joint = cho_solve((self._joint, True), spread.T, check_finite=False).T
            alpha = self.alpha[begin : begin + len(phi)]
            lost = alpha / (inverse.diagonal() - np.einsum("bm,bm->b", joint, spread))
            mean = 1.0 - lost
            own, new = block.far.rows, self._basis.coordinates(block.far.fresh_landmarks())
            rest = block.near[own] - new @ phi.T
            column = inverse[own] - joint[own] @ spread.T
            share = np.einsum("lm,lm->l", new, joint[own]) + np.einsum("lb,lb->l", rest, column)
            mean[own] = new @ self._whole + rest @ alpha - share * lost[own]
            means[block.rows] = mean
            begin += len(phi)
        return means

    def _solved(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Return Phi of a block and the lower Cholesky factor of its Lambda."""
        phi = self._basis.coordinates(block.far.K).astype(np.float64, copy=False)
        rest = block.near - phi @ phi.T
        rest.flat[:: len(rest) + 1] += self._noise
        factor: FloatArray = cholesky(rest, lower=True, overwrite_a=True, check_finite=False)
        return phi, factor
