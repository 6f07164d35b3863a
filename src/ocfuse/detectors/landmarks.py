"""Landmarks: a kernel of many rows by way of some of them (Nystrom's approximation).

With K the kernel of the m landmarks and ``K + jitter I = L L'``, a row x becomes the
m numbers ``phi(x) = L^-1 k(x)``, and ``k(x, y)`` is about ``phi(x)' phi(y)``. What is
learned from n rows then rests on the sums of phi and of phi phi' over them, at a
cost of n m^2, and no matrix of n rows is kept.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular, svd

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.gram import Gram, Reference, complete
from ocfuse.detectors.landmark_models import (
    JITTER,
    Basis,
    Block,
    BlockedRegression,
    KernelArray,
    LandmarkInverse,
    LandmarkSpectrum,
    LandmarkSphere,
    LeftOutBlock,
    Moments,
    SoftSphere,
    moments,
)

#: Changes squared distances (q, m) of some training rows to the landmarks, given third, in place.
Adjust: TypeAlias = Callable[[KernelArray, slice, FloatArray], None]

#: Rows of a block, at most.
BLOCK_ROWS = 1000
#: Up to so many kernel values are kept from the sums over all rows to the rows left out.
MOST_REUSED = 2**20
#: Kernel values held at once, and those that a sphere, which takes many passes, is learned from.
MOST_VALUES, MOST_KEPT = 2**21, 2**25


class Blocks:
    """Rows in blocks, and the block that any row belongs to.

    Every plane is across the direction in which the rows that it parts vary most.
    No chance is involved, and what block a row is in does not depend on others.

    `parts` are the rows of every block, `most` of them, with the M of all, and `starts` the first
    row of every block where they follow each other, and the end. A row on or below the level of a
    plane is on its first side; `children` are the planes that part the two sides, or ``~j`` for
    block j.
    """

    def __init__(self, X: FloatArray, scale: float, most: int) -> None:
        self._rows: list[IntArray] = []
        self._planes: list[tuple[FloatArray, float, list[int]]] = []
        self._part(X, np.arange(len(X)), -(-len(X) // most))
        self.planes: FloatArray = np.array([plane for plane, _, _ in self._planes])
        self.levels: FloatArray = np.array([level for _, level, _ in self._planes])
        self.children: IntArray = np.array([two for _, _, two in self._planes], dtype=np.intp)
        self.parts = [Reference(X[rows], scale) for rows in self._rows]
        self.starts: IntArray = np.cumsum([0, *map(len, self._rows)])

    @property
    def rows(self) -> list[IntArray]:
        """Numbers of the training rows of every block, ascending; not there after loading."""
        return self._rows

    def of(self, X: FloatArray) -> IntArray:
        """Return the block of every row."""
        found = np.zeros(len(X), dtype=np.intp)
        waiting = [(0, np.arange(len(X)))] if len(self.planes) else []
        while waiting:
            i, rows = waiting.pop()
            is_above = _heights(X[rows], self.planes[i]) > self.levels[i]
            for child, side in zip(
                self.children[i], (rows[~is_above], rows[is_above]), strict=True
            ):
                if child < 0:
                    found[side] = ~child
                elif len(side):
                    waiting.append((int(child), side))
        return found

    def _part(self, X: FloatArray, rows: IntArray, n_blocks: int) -> int:
        """Part some rows into blocks of equal size; return their plane or ``~`` their block."""
        if n_blocks == 1:
            self._rows.append(np.sort(rows))
            return ~(len(self._rows) - 1)
        some = X[rows[evenly(len(rows), 500)]]
        plane: FloatArray = svd(some - some.mean(axis=0), full_matrices=False)[2][0]
        heights = _heights(X[rows], plane)
        order = np.argsort(heights, kind="stable")
        first = n_blocks // 2
        split = len(rows) * first // n_blocks
        level = (heights[order[split - 1]] + heights[order[split]]) / 2
        children: list[int] = []
        place = len(self._planes)
        self._planes.append((plane, float(level), children))
        children.append(self._part(X, rows[order[:split]], first))
        children.append(self._part(X, rows[order[split:]], n_blocks - first))
        return place

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def _heights(X: FloatArray, plane: FloatArray) -> FloatArray:
    """Return products with a direction, of each row on its own."""
    heights: FloatArray = np.einsum("qm,m->q", X, plane)
    return heights


class Landmarks:
    """All rows of a Gram against at most m of them, the landmarks.

    Treat what it returns as read-only: all members are given the same objects. The `reference`
    holds the landmarks, with the mean squared distance M of all rows.
    """

    #: Kernel values are computed in single precision where every landmark has at least this share
    #: of its own, which those before it do not have, and no row is far from the mean.
    least_pivot: ClassVar[float] = 0.01

    def __init__(self, gram: Gram, m: int) -> None:
        rows, scale = gram.reference.X, gram.reference.scale
        self._rows = rows
        self._adjust: Adjust | None = None
        self._chosen = choose_landmarks(rows, scale, m)
        self.reference = Reference(rows[self._chosen], scale)
        self._bases: dict[float, Basis] = {}
        self._sums: dict[float, Moments] = {}
        self._kept: dict[float, list[KernelArray]] = {}
        self._spectra: dict[float, LandmarkSpectrum] = {}
        self._inverses: dict[tuple[float, float], LandmarkInverse] = {}
        self._regressions: dict[tuple[float, float], BlockedRegression] = {}
        self._spheres: dict[tuple[float, float], LandmarkSphere] = {}

    @property
    def n_rows(self) -> int:
        """Number of landmarks."""
        return self.reference.n_rows

    def spectrum(self, width: float, subspace: int | float) -> LandmarkSpectrum:
        """Return the principal directions of all rows; a `subspace` of any size is there."""
        if width not in self._spectra:
            self._spectra[width] = LandmarkSpectrum(self._summed(width))
        return self._spectra[width].over(partial(self._left_out, width))

    def inverse(self, width: float, noise: float) -> LandmarkInverse:
        """Return the inverse of the kernel of all rows with noise on its diagonal."""
        if (width, noise) not in self._inverses:
            self._inverses[width, noise] = LandmarkInverse(self._summed(width), noise)
        return self._inverses[width, noise].over(partial(self._left_out, width))

    def cholesky(self, width: float, noise: float) -> LandmarkInverse:
        """Return the same inverse: it has its factor at any rate."""
        return self.inverse(width, noise)

    def regression(self, width: float, noise: float) -> BlockedRegression:
        """Return the regression of the constant 1 on all rows, in blocks."""
        if (width, noise) not in self._regressions:
            blocks = partial(self._blocks, width)
            self._regressions[width, noise] = BlockedRegression(self._basis(width), noise, blocks)
        return self._regressions[width, noise]

    def sphere(self, width: float, nu: float) -> LandmarkSphere:
        """Return the soft sphere with a share nu of the rows outside.

        Of very many rows it is around evenly spaced ones.
        """
        if (width, nu) not in self._spheres:
            self._spheres[width, nu] = self._make_sphere(width, nu)
        return self._spheres[width, nu].over(partial(self._left_out, width))

    def adjusted(self, adjust: Adjust) -> "Landmarks":
        """Return the same, but rows that are left out have other distances to the landmarks."""
        other = copy(self)
        other._adjust = adjust
        return other

    @cached_property
    def blocks(self) -> Blocks:
        """All rows in blocks of near ones."""
        return Blocks(self._rows, self.reference.scale, BLOCK_ROWS)

    @cached_property
    def _is_near(self) -> bool:
        """Whether no row is so far out that single precision would lose its distances."""
        norms = (self.reference.norms(self._rows[block]).max() for block in self._steps())
        return bool(max(norms) <= 100.0 * self.reference.scale)

    def _basis(self, width: float) -> Basis:
        if width not in self._bases:
            K = self.reference.query(self.reference.X).kernel(width)
            self._bases[width] = Basis(noisy_factor(K))
        return self._bases[width]

    def _summed(self, width: float) -> Moments:
        if width not in self._sums:
            kernels: Iterable[KernelArray] = self._kernels(width)
            if len(self._rows) * self.n_rows <= MOST_REUSED:
                kernels = self._kept[width] = list(kernels)
            self._sums[width] = moments(self._basis(width), kernels)
        return self._sums[width]

    def _make_sphere(self, width: float, nu: float) -> LandmarkSphere:
        basis, begin = self._basis(width), 0
        rows = evenly(len(self._rows), max(2, MOST_KEPT // self.n_rows))
        phi: KernelArray = np.empty((len(rows), self.n_rows), self._precision(width))
        for K in self._kernels(width):
            first, last = np.searchsorted(rows, [begin, begin + len(K)])
            phi[first:last] = basis.coordinates(K[rows[first:last] - begin])
            begin += len(K)
        return LandmarkSphere(basis, SoftSphere(phi, nu), rows)

    def _steps(self) -> Iterator[slice]:
        step = max(1, MOST_VALUES // self.n_rows)
        return (slice(begin, begin + step) for begin in range(0, len(self._rows), step))

    def _kernels(self, width: float, adjust: Adjust | None = None) -> Iterator[KernelArray]:
        """Yield the kernel values of all rows, block by block, in the precision they need."""
        kind = self._precision(width)
        centre = self.reference.centre
        landmarks = (self.reference.X - centre).astype(kind)
        for block in self._steps():
            K = squared_distances((self._rows[block] - centre).astype(kind), landmarks)
            if adjust is not None:
                adjust(K, block, self.reference.X)
            K *= kind(-1.0 / (width * self.reference.scale))
            yield np.exp(K, out=K)

    def _precision(self, width: float) -> type[np.floating[Any]]:
        """Return what kernel values of rows are computed in.

        Their rounding is multiplied by the inverse of the factor of the landmarks.
        """
        is_single = self._is_near and self._basis(width).least_pivot >= self.least_pivot
        return np.float32 if is_single else np.float64

    def _left_out(self, width: float) -> Iterator[LeftOutBlock]:
        """Yield the kernel values of rows that are left out, with landmarks among them."""
        own, begin = self._basis(width).predicted, 0
        kept = self._kept.pop(width, None)  # once: they take room
        if kept is None or self._adjust is not None:
            kernels: Iterable[KernelArray] = self._kernels(width, self._adjust)
        else:
            kernels = kept
        for K in kernels:
            here = np.flatnonzero((self._chosen >= begin) & (self._chosen < begin + len(K)))
            yield LeftOutBlock(K, self._chosen[here] - begin, here, own[here])
            begin += len(K)

    def _blocks(self, width: float) -> Iterator[Block]:
        """Yield the kernel values of every block, in double precision."""
        landmarks, own = self.reference.X - self.reference.centre, self._basis(width).predicted
        for rows in self.blocks.rows:
            X = self._rows[rows] - self.reference.centre
            near, far = squared_distances(X, X), squared_distances(X, landmarks)
            np.fill_diagonal(near, 0.0)
            for K in (near, far):
                K *= -1.0 / (width * self.reference.scale)
                np.exp(K, out=K)
            _, places, here = np.intersect1d(rows, self._chosen, return_indices=True)
            yield Block(rows, near, LeftOutBlock(far, places, here, own[here]))


def landmarks_cost(
    shape: Shape, size: int, width: float, outputs: float, n_blocks: int = 2
) -> Cost:
    """Return the cost of learning from all rows by way of `size` landmarks.

    Members of one width share the factor of the landmarks and the sums over the rows. `outputs`
    are the numbers that are made of the kernel values of a row, of which `n_blocks` blocks are
    held at once.
    """
    n, m, view = shape.rows, shape.columns, shape.view
    square = (1 + (shape.folds > 0)) * NUMBER * size * size  # a fold has as many landmarks
    distances = Cost(
        fit_work={"landmark distances": shape.fits() * n * size * m},
        score_work={"landmark distances": size * m},
        model_bytes={"landmarks": NUMBER * size * m},
    )
    return Cost(
        fit_work={
            "landmark products": shape.fits() * n * size * size,
            "landmark cube": (1 + shape.folds) * size**3,
        },
        score_work={"landmark products": outputs * size},
        fit_bytes={"landmarks": square},
        scratch_bytes={"landmark work": NUMBER * n_blocks * min(n * size, MOST_VALUES)},
        model_bytes={"landmarks": NUMBER * outputs * size},
        shared={
            ("landmarks", view, n, size): distances,
            ("landmarks", view, n, size, width): Cost(fit_bytes={"landmarks": 2 * square}),
        },
        methods=frozenset({"landmarks"}),
    )


def blocks_cost(shape: Shape, size: int) -> Cost:
    """Return the cost of blocks of near rows, beside that of so many landmarks."""
    n, most = shape.rows, min(shape.rows, BLOCK_ROWS)
    # a row is compared with those of its block, and all rows are kept
    part = Cost(
        score_work={"landmark distances": most * shape.columns},
        fit_bytes={"landmarks": shape.held * NUMBER * shape.cells},
        model_bytes={"landmarks": NUMBER * shape.cells},
    )
    return Cost(
        fit_work={"landmark cube": shape.fits() * n * most * size},
        scratch_bytes={"landmark work": NUMBER * most * (most + size)},
        shared={("blocks", shape.view, n): part},
    )


def sphere_cost(shape: Shape, size: int) -> Cost:
    """Return the cost of a sphere, beside that of so many landmarks: many passes over rows."""
    values = min(shape.rows * size, MOST_KEPT)
    return Cost(
        fit_work={"sphere": shape.fits() * values}, scratch_bytes={"sphere": NUMBER * values}
    )


def choose_landmarks(X: FloatArray, scale: float, m: int) -> IntArray:
    """Return the numbers of at most m different rows that represent all rows of X.

    A row is chosen in proportion to its leverage: how little the others say of
    it. Evenly spaced rows would miss the fringe. No chance is involved: rows are
    taken at even steps of the summed leverage. The numbers ascend; `scale` is M.
    """
    candidates = evenly(len(X), 8000)
    some = np.ascontiguousarray(X[candidates]) + 0.0  # -0.0 and 0.0 are the same value
    keys = some.view(np.dtype((np.void, some.dtype.itemsize * some.shape[1]))).ravel()
    # the first of equal rows
    candidates = candidates[np.sort(np.unique(keys, return_index=True)[1])]
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
    pilots = X[evenly(len(X), 250)]
    width, ridge = 0.5, 0.1
    factor = noisy_factor(_kernel(pilots, pilots, width * scale))
    K = _kernel(X, pilots, width * scale)
    phi = solve_triangular(factor, K.T, lower=True, check_finite=False)
    seen = cholesky(phi @ phi.T + ridge * np.eye(len(pilots)), lower=True)
    half = solve_triangular(seen, phi, lower=True, check_finite=False)
    missed = np.maximum(1.0 - np.einsum("pn,pn->n", phi, phi), 0.0)
    leverage: FloatArray = missed + ridge * np.einsum("pn,pn->n", half, half)
    return leverage


def _kernel(X: FloatArray, Y: FloatArray, unit: float) -> FloatArray:
    """Return ``exp(-|x - y|^2 / unit)`` of rows about the origin."""
    K: FloatArray = squared_distances(X, Y)
    K *= -1.0 / unit
    return np.exp(K, out=K)


def evenly(n: int, most: int) -> IntArray:
    """Return at most so many of n row numbers, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def squared_distances(X: NDArray[Any], Y: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances of rows about the origin, in their float type."""
    D: NDArray[Any] = X @ (-2.0 * Y).T
    columns, rows = np.einsum("nd,nd->n", Y, Y), np.einsum("nd,nd->n", X, X)
    if D.dtype == np.float64:
        return complete(D, columns, rows)
    D += columns
    D += rows[:, None]
    np.maximum(D, 0.0, out=D)
    return D


def row_blocks(X: FloatArray, m: int) -> Iterator[FloatArray]:
    """Yield rows in blocks whose kernel values at m landmarks are few enough to be held."""
    step = max(1, MOST_VALUES // m)
    for begin in range(0, len(X), step):
        yield X[begin : begin + step]


def noisy_factor(K: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a kernel of landmarks with a little noise."""
    noisy = K.copy()
    noisy.flat[:: len(K) + 1] += JITTER
    factor: FloatArray = cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
    return factor
