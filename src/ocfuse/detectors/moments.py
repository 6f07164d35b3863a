"""Rows in the coordinates that landmarks give them, and their sums."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
#: In single or double precision.
KernelArray: TypeAlias = NDArray[np.floating[Any]]


@dataclass
class Basis:
    """The coordinates ``phi(x) = L^-1 k(x)`` that the landmarks give to a row.

    Attributes
    ----------
    factor : ndarray of shape (m, m)
        The lower triangular L.
    """

    factor: FloatArray

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
    """Sums over all training rows of phi and of phi phi'.

    Attributes
    ----------
    basis : Basis
        What phi is.
    n : int
        Number of training rows.
    total : ndarray of shape (m,)
        Sum of phi.
    products : ndarray of shape (m, m)
        Sum of phi phi'.
    """

    basis: Basis
    n: int
    total: FloatArray
    products: FloatArray


def moments(basis: Basis, blocks: Iterable[KernelArray]) -> Moments:
    """Return the sums over all rows.

    Parameters
    ----------
    basis : Basis
        The coordinates.
    blocks : iterable of ndarrays of shape (q, m)
        Kernel values of all rows, block by block.

    Returns
    -------
    Moments
        The sums.
    """
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

    Attributes
    ----------
    K : ndarray of shape (q, m)
        Kernel values.
    rows, columns : ndarray of shape (l,)
        Which of the rows are landmarks, and which landmarks they are.
    predicted : ndarray of shape (l,)
        Their values at themselves, as expected.
    """

    K: KernelArray
    rows: IntArray
    columns: IntArray
    predicted: FloatArray

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
