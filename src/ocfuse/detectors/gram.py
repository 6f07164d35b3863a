"""Distances, kernels, factorisations and neighbours, each computed once."""

import math
from collections import defaultdict
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import EXTRA, NUMBER, Cost, Shape
from ocfuse.detectors.kernel_algebra import (
    CholeskyInverse,
    SpectralInverse,
    Spectrum,
    centred_spectrum,
)
from ocfuse.kernels import kernel, thread_count
from ocfuse.nearest.exact import Nearest, nearest_by_matrix, nearest_by_tree, without_self
from ocfuse.nearest.index import MOST_ROWS, NeighbourIndex, centres_of_many, numbers_looked_at
from ocfuse.system.packages import slow
from ocfuse.system.threads import few_threads

Made = TypeVar("Made")

#: Neighbours alone keep no distance matrix larger than the first: they take distances block by
#: block. Of more distances than the second they search without, and folds slice no matrix.
MOST_KEPT, MOST_DISTANCES = 2**18, 2**24


class Reference:
    """The training rows, as scoring needs them; small, and kept with the model.

    Values beyond 1e150 are taken as 1e150. `centre` is the mean of the rows, from which
    distances are computed; `scale` is M, the mean squared distance of two different rows, 1 if
    all are equal; `views` are the rows in other coordinates, by the name of the view.
    """

    #: Without a kernel a tree pays from so many rows, up to 8 columns.
    tree_rows: ClassVar[int] = 1000
    #: Centres of the cells, if there are so many rows that only cells around a row are searched.
    cell_centres: FloatArray | None = None

    def __init__(self, X: FloatArray, scale: float | None = None) -> None:
        self.X = _bounded(X)
        # Constant columns must give exactly 0, so the mean is taken around a row.
        self.centre = self.X[0] + (self.X - self.X[0]).mean(axis=0)
        if scale is None:
            n = self.n_rows
            scale = 2.0 * float(self.norms(self.X).sum()) / (n - 1) if n > 1 else 1.0
            scale = scale if scale > 1e-290 else 1.0
        self.scale = scale
        self.views: dict[str, ViewedReference] = {}

    @property
    def n_rows(self) -> int:
        """Number of training rows n."""
        return len(self.X)

    def query(self, X: FloatArray) -> "Query":
        """Compare new rows with the training rows; lazy: nothing is computed yet."""
        return Query(self, _bounded(X))

    def squared_distances(self, X: FloatArray) -> FloatArray:
        """Return the squared distances of the rows of X to the training rows."""
        doubled, squares = self._prepared
        rows = X - self.centre
        return complete(rows @ doubled, squares, np.einsum("qm,qm->q", rows, rows))

    def norms(self, X: FloatArray) -> FloatArray:
        """Return the squared distances of the rows of X to the centre."""
        rows = X - self.centre
        norms: FloatArray = np.einsum("qm,qm->q", rows, rows)
        return norms

    def view(self, kind: "type[View]") -> "ViewedReference":
        """Return the same rows in other coordinates, computed when first asked for."""
        if kind.__name__ not in self.views:
            self.views[kind.__name__] = ViewedReference(self, kind(self))
        return self.views[kind.__name__]

    def like(self, X: FloatArray, kept: IntArray | None = None) -> "Reference":
        """Return other rows with the centre, the scale and the views of these.

        Parameters
        ----------
        X : ndarray of shape (n, m)
            The rows.
        kept : ndarray, default=None
            The first of them are these of ours, whose coordinates are known.
        """
        other = copy(self)  # without what starts with an underscore
        other.X = _bounded(X)
        other.views = {}
        for name, view in self.views.items():
            coordinates = view.coordinates
            known = view.X[:0] if kept is None else view.X[kept]
            rest = coordinates.transform(other.X[len(known) :])
            seen = view.like(np.concatenate([known, rest]))
            other.views[name] = cast(ViewedReference, seen)
        return other

    @property
    def tree(self) -> Any | None:
        """A search tree of the rows if it pays, built when first asked for."""
        n, m = self.X.shape
        if kernel is not None or m > 8 or n < self.tree_rows:
            return None
        if "_tree" not in self.__dict__:
            self._tree = slow("scipy.spatial").cKDTree(self.X)
        return self._tree

    @property
    def search(self) -> NeighbourIndex:
        """What finds the nearest of many rows, prepared when first asked for."""
        if "_search" not in self.__dict__:
            if self.cell_centres is None:
                self.cell_centres = centres_of_many(self.X)
            self._search = NeighbourIndex(self.X, self.cell_centres)
        return self._search

    @property
    def _prepared(self) -> tuple[FloatArray, FloatArray]:
        if "_packed" not in self.__dict__:
            doubled = np.ascontiguousarray((-2.0 * (self.X - self.centre)).T)
            self._packed = doubled, self.norms(self.X)
        return self._packed

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class View(Protocol):
    """Coordinates of rows that are learned from the training rows."""

    def __init__(self, raw: Reference) -> None: ...

    def transform(self, X: FloatArray) -> FloatArray:
        """Return rows in the new coordinates; each row on its own."""


class Parting(Protocol):
    """Training rows in parts, and the part that any row belongs to."""

    parts: list[Reference]

    def of(self, X: FloatArray) -> IntArray:
        """Return the part of each row, which does not depend on others."""


class ViewedReference(Reference):
    """Training rows in the coordinates of a view; new rows are put into them alike."""

    def __init__(self, raw: Reference, coordinates: View) -> None:
        super().__init__(coordinates.transform(raw.X))
        self.coordinates = coordinates

    def query_raw(self, X: FloatArray) -> "Query":
        """Compare new rows, not yet in the coordinates, with the training rows."""
        return self.query(self.coordinates.transform(X))


@dataclass(frozen=True)
class _Part:
    """Some rows and columns of a larger Query."""

    whole: "Query"
    rows: IntArray
    columns: IntArray

    def of(self, matrix: FloatArray) -> FloatArray:
        return matrix[np.ix_(self.rows, self.columns)]


class Query:
    """Rows against training rows; every method caches what it computed.

    Treat what it returns as read-only: all members are given the same arrays. A `part` slices
    distances and kernels from a larger Query. `counts` says how often "distances", "exp", "eigh"
    and "cholesky" were computed; a part counts with its whole.
    """

    def __init__(self, reference: Reference, X: FloatArray, part: _Part | None = None) -> None:
        self.reference = reference
        self.X = X
        self.counts: dict[str, int] = defaultdict(int) if part is None else part.whole.counts
        self._part = part
        self._distances: FloatArray | None = None
        self._kernels: dict[float, FloatArray] = {}
        self._nearest: tuple[FloatArray, IntArray] | None = None
        self._views: dict[str, Query] = {}
        self._others: dict[int, Query] = {}
        self._parted: dict[int, list[tuple[int, IntArray, Query]]] = {}

    @property
    def n_rows(self) -> int:
        """Number of compared rows q."""
        return len(self.X)

    def view(self, kind: type[View]) -> "Query":
        """Return the same rows in other coordinates, which the training rows alone decide."""
        name = kind.__name__
        if name not in self._views:
            self._views[name] = self._compute_view(kind)
        return self._views[name]

    def against(self, reference: Reference) -> "Query":
        """Compare the same rows with other training rows, in the same coordinates."""
        if id(reference) not in self._others:
            self._others[id(reference)] = Query(reference, self.X)
        return self._others[id(reference)]

    def parted(self, parting: "Parting") -> "list[tuple[int, IntArray, Query]]":
        """Return every part that has any rows: its number, theirs, and these against its own."""
        if id(parting) not in self._parted:
            part = parting.of(self.X)
            numbers = [(int(j), np.flatnonzero(part == j)) for j in np.unique(part)]
            self._parted[id(parting)] = [
                (j, rows, Query(parting.parts[j], self.X[rows])) for j, rows in numbers
            ]
        return self._parted[id(parting)]

    @property
    def squared_distances(self) -> FloatArray:
        """Squared Euclidean distances (q, n), rounded to about eps M."""
        if self._distances is None:
            if self._part is not None:
                self._distances = self._part.of(self._part.whole.squared_distances)
            else:
                self.counts["distances"] += 1
                self._distances = self._compute_distances()
        return self._distances

    def kernel(self, width: float) -> FloatArray:
        """Return ``exp(-D2 / (width M))``, shape (q, n).

        Widths that differ by a power of two share one exponential and are
        squared from it, always from the same one: what was asked for before
        changes no bit. Against an exponential of their own they differ by at
        most 1e-15, relatively.
        """
        if width not in self._kernels:
            if self._part is not None:
                self._kernels[width] = self._part.of(self._part.whole.kernel(width))
            else:
                self._kernels[width] = self._squared_from_root(width)
        return self._kernels[width]

    def neighbours(self, k: int) -> tuple[FloatArray, IntArray]:
        """Return distances and row numbers (q, k) of the nearest training rows.

        Distances are exact, nearest first, ties in the order of the rows; k is
        cut to the rows there are. Ask for the largest k first: smaller ones
        are slices of it. Of very many rows only those in the cells around a
        row are looked at, see `Reference.cell_centres`.
        """
        k = min(k, self._most_neighbours)
        if self._nearest is None or self._nearest[0].shape[1] < k:
            squares, index = self._compute_nearest(k)
            self._nearest = np.sqrt(squares), index
        distances, index = self._nearest
        return distances[:, :k], index[:, :k]

    @property
    def _most_neighbours(self) -> int:
        return self.reference.n_rows

    @property
    def _has_distances(self) -> bool:
        """Whether distances are there, or so few that they may be kept."""
        if self._distances is not None:
            return True
        if self._part is not None:
            return self._part.whole._has_distances
        n = self.reference.n_rows
        return max(self.n_rows, n) * n <= MOST_DISTANCES

    def _compute_view(self, kind: type[View]) -> "Query":
        return self.reference.view(kind).query_raw(self.X)

    def _compute_distances(self) -> FloatArray:
        return self.reference.squared_distances(self.X)

    def _compute_nearest(self, k: int) -> Nearest:
        tree = self.reference.tree
        if tree is not None:
            return nearest_by_tree(tree, self.X, self.reference.X, k)
        if not self._has_distances:
            return self._search(k)
        norms = self.reference.norms(self.X)
        n = self.reference.n_rows
        if self._part is not None or self._distances is not None or self.n_rows * n <= MOST_KEPT:
            return nearest_by_matrix(self.squared_distances, self.X, norms, self.reference.X, k)
        found = []
        for begin in range(0, self.n_rows, max(1, MOST_KEPT // n)):
            block = slice(begin, begin + max(1, MOST_KEPT // n))
            rows = self.X[block]
            D = self.reference.squared_distances(rows)
            found.append(nearest_by_matrix(D, rows, norms[block], self.reference.X, k))
        squares, index = zip(*found, strict=True)
        return np.concatenate(squares), np.concatenate(index)

    def _search(self, k: int) -> Nearest:
        return self.reference.search.of(self.X, k)

    def _squared_from_root(self, width: float) -> FloatArray:
        # Exponents of two go in threes, the largest of which is exponentiated: 1, 1/2, 1/4.
        squarings = (1 - math.frexp(width)[1]) % 3
        root = math.ldexp(width, squarings)
        if root not in self._kernels:
            self.counts["exp"] += 1
            rate = 1.0 / (root * self.reference.scale)
            self._kernels[root] = decayed(self.squared_distances, rate)
        K = self._kernels[root]
        for i in range(squarings):
            K = np.square(K) if i == 0 else np.square(K, out=K)
        return K


class Gram(Query):
    """Training rows against themselves; every method caches what it computed.

    Drop it after fitting: a fitted member keeps its `reference` only.
    """

    #: Number of rows of the whole fit: n, or more where these are the rows of a fold. Whether rows
    #: are many is decided by it, so that members of a fold are of the same kind as the others.
    n_fit: int

    def __init__(self, X: FloatArray) -> None:
        self._begin(Reference(X), None, len(X))

    @classmethod
    def of(cls, reference: Reference) -> "Gram":
        """Return the Gram of rows that are prepared already, or have another scale."""
        return cls.__new__(cls)._begin(reference, None, reference.n_rows)

    def _begin(self, reference: Reference, part: _Part | None, n_fit: int) -> "Gram":
        super().__init__(reference, reference.X, part)
        self.n_fit = n_fit
        self._spectra: dict[float, Spectrum] = {}
        self._factors: dict[tuple[float, float], CholeskyInverse] = {}
        self._made: dict[tuple[Any, int], Any] = {}
        return self

    def view(self, kind: type[View]) -> "Gram":
        """Return the same rows in other coordinates, against themselves."""
        return cast(Gram, super().view(kind))

    def query(self, X: FloatArray) -> Query:
        """Compare new rows with the training rows."""
        return self.reference.query(X)

    def made(self, make: "Callable[[Gram, int], Made]", size: int) -> Made:
        """Return what `make` makes of this Gram in some size, the same for all who ask."""
        if (make, size) not in self._made:
            self._made[make, size] = make(self, size)
        found: Made = self._made[make, size]
        return found

    def fold(self, train: IntArray, test: IntArray) -> tuple["Gram", Query]:
        """Return the Gram of some rows and the Query of others against them.

        Both are slices of what this one computes, with the same scale M. Their
        views are their own: they must not have seen the others.
        """
        reference = Reference(self.X[train], self.reference.scale)
        gram = Gram.__new__(Gram)._begin(reference, _Part(self, train, train), self.n_fit)
        return gram, Query(reference, self.X[test], _Part(self, test, train))

    def spectrum(self, width: float, subspace: int | float) -> Spectrum:
        """Return the spectrum of the centred kernel, as far as a `subspace` needs it.

        In one thread unless n is large: LAPACK's threads meet after every product
        of the kernel with a vector, and on busy cores they wait for each other.
        """
        found = self._spectra.get(width)
        if found is None or not found.has(found.size(subspace)):
            self.counts["eigh"] += 1
            K = self.kernel(width)
            with few_threads(K.size):
                found = self._spectra[width] = centred_spectrum(K, subspace)
        return found

    def inverse(self, width: float, noise: float) -> CholeskyInverse | SpectralInverse:
        """Return the inverse of the kernel with noise on its diagonal.

        From a factorisation that is there already; if none is, by Cholesky,
        which costs a tenth of a spectrum.
        """
        spectrum = self._spectra.get(width)
        # Less noise would magnify the rounding of a spectrum.
        is_exact = spectrum is not None and spectrum.is_full and noise >= 1e-4
        if spectrum is None or not is_exact or (width, noise) in self._factors:
            return self.cholesky(width, noise)
        return SpectralInverse(spectrum, noise)

    def cholesky(self, width: float, noise: float) -> CholeskyInverse:
        """Return the same inverse, with its Cholesky factor."""
        if (width, noise) not in self._factors:
            self.counts["cholesky"] += 1
            K = self.kernel(width)
            with few_threads(K.size):
                self._factors[width, noise] = CholeskyInverse(K, noise)
        return self._factors[width, noise]

    @property
    def _most_neighbours(self) -> int:
        return self.n_rows - 1

    def _compute_view(self, kind: type[View]) -> "Gram":
        return Gram.__new__(Gram)._begin(self.reference.view(kind), None, self.n_fit)

    def _compute_distances(self) -> FloatArray:
        # BLAS computes half of a product of a matrix with its own transpose, and
        # the sums below commute: the result is symmetric to the last bit.
        rows = self.X - self.reference.centre
        D: FloatArray = rows @ rows.T
        squares = D.diagonal().copy()
        for begin in range(0, self.n_rows, 64):  # rows that stay in the cache
            block = slice(begin, begin + 64)
            part = D[block]
            part *= -2.0
            part += squares[block, None] + squares
            np.maximum(part, 0.0, out=part)
        np.fill_diagonal(D, 0.0)
        return D

    def _compute_nearest(self, k: int) -> Nearest:
        return without_self(super()._compute_nearest(k + 1))

    def _search(self, k: int) -> Nearest:
        return self.reference.search.graph(k)


@dataclass(frozen=True)
class RowChange:
    """Training rows before and after some have come and others have gone, as members see them.

    `old` and `new` are the rows; the first of the new ones are those of the old that are `kept`,
    by their numbers, and the last are `added`. `kept` is None where rows were drawn anew.
    """

    old: Reference
    new: Reference
    kept: IntArray | None
    added: FloatArray
    _views: "dict[str, RowChange]" = field(default_factory=dict)

    @property
    def dropped(self) -> FloatArray:
        """The rows that have gone."""
        is_gone = np.ones(self.old.n_rows, dtype=bool)
        is_gone[self.kept] = False
        rows: FloatArray = self.old.X[is_gone]
        return rows

    @property
    def size(self) -> int:
        """Number of rows that have come or gone."""
        n_kept = 0 if self.kept is None else len(self.kept)
        return self.old.n_rows - n_kept + len(self.added)

    def view(self, kind: type[View]) -> "RowChange":
        """Return the same change in the coordinates of a view, which stay as they are."""
        name = kind.__name__
        if name not in self._views:
            old, new = self.old.view(kind), self.new.view(kind)
            added = new.X[new.n_rows - len(self.added) :]
            self._views[name] = RowChange(old, new, self.kept, added)
        return self._views[name]


def _bounded(X: FloatArray) -> FloatArray:
    """Return rows without values beyond the largest; a copy, unless nobody can write into X."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    largest = 1e150  # its square does not overflow
    if not X.flags.writeable and X.size and max(X.max(), -X.min()) <= largest:
        return X
    return np.clip(X, -largest, largest)


def distances_cost(shape: Shape) -> Cost:
    """Return the cost of the distances of all rows to each other, which members share."""
    n = shape.rows
    work = n * (shape.columns + EXTRA)
    part = Cost(
        fit_work={"square": shape.fits(2) * n * work},
        score_work={"square": work},
        fit_bytes={"square": shape.held * NUMBER * n * n},
        scratch_bytes={"outside": NUMBER * shape.scored * n},
    )
    return Cost(shared={("square", shape.view, n): part})


def neighbours_cost(shape: Shape, k: int) -> Cost:
    """Return the cost of the k nearest rows of every row, which members share."""
    n = shape.rows
    own = Cost(score_work={"neighbour": k})
    # a neighbour and its distance take 16 bytes
    part = Cost(fit_bytes={"neighbours": shape.held * 16 * n * k})
    if n**2 <= (MOST_DISTANCES if shape.folds else MOST_KEPT):  # folds are slices of the whole
        own += distances_cost(shape)
    elif n**2 <= MOST_DISTANCES:
        work = n * (shape.columns + EXTRA)
        part += Cost(fit_work={"square": shape.fits(2) * n * work}, score_work={"square": work})
    else:
        numbers = numbers_looked_at(n, shape.columns)
        part += Cost(
            fit_work={"search": shape.fits(2) * n * numbers},
            score_work={"search": numbers, "cells": float(n > MOST_ROWS)},
            fit_bytes={"search": shape.held * NUMBER * shape.cells},
        )
    return own + Cost(shared={("neighbours", shape.view, n): part})


def complete(D: FloatArray, columns: FloatArray, rows: FloatArray) -> FloatArray:
    """Return squared distances, none below 0, in the place of D (q, n), which holds ``-2 x.y``.

    `columns` (n,) and `rows` (q,) are the squared lengths of the y and of the x.
    """
    if kernel is not None and D.flags.c_contiguous:
        kernel.complete(D, columns, rows, thread_count(D.size))
        return D
    D += columns
    D += rows[:, None]
    return np.maximum(D, 0.0, out=D)


def decayed(D: FloatArray, rate: float) -> FloatArray:
    """Return ``exp(-rate D)``.

    Compiled and by NumPy it differs by rounding alone; either way a value depends on
    nothing but the distance and the rate.
    """
    if kernel is not None:
        # a value costs as much as four numbers to read
        K: FloatArray = kernel.decay(D, rate, thread_count(4 * D.size))
        return K
    K = D * -rate
    return np.exp(K, out=K)
