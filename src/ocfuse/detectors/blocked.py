"""A Gaussian process of many rows: exact within blocks, by way of landmarks between them.

The kernel K of two rows is taken as it is if both are in one block, and as
``phi' phi`` if not (Snelson and Ghahramani 2007). Landmarks alone smooth away
what single rows tell of their surroundings; blocks alone do not know each other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular

from ocfuse.detectors.moments import Basis, FloatArray, IntArray, LeftOutBlock


@dataclass
class Block:
    """Kernel values of the rows of a block.

    Attributes
    ----------
    rows : ndarray of shape (b,)
        Which of the training rows these are.
    near : ndarray of shape (b, b)
        With each other.
    far : LeftOutBlock
        With the landmarks.
    """

    rows: IntArray
    near: FloatArray
    far: LeftOutBlock


class BlockedRegression:
    """The regression of the constant 1 on rows in blocks.

    With Phi the coordinates of all rows and ``Lambda = K - Phi Phi' + noise I`` within
    blocks, 0 between them, the kernel with noise is ``Kn = Lambda + Phi Phi'``. All that is
    needed of its inverse follows from ``A = (I + Phi' Lambda^-1 Phi)^-1``, block by block.
    Matrices of a block are computed each time they are needed, and none is kept.

    Parameters
    ----------
    basis : Basis
        The coordinates.
    noise : float
        Variance of the noise.
    blocks : callable
        Gives the kernel values of every block.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        ``Kn^-1 1``, block by block: kernel values in the block of a row to their part of
        its mean.
    weights : ndarray of shape (number of blocks, m)
        Kernel values at the landmarks to the part of all other blocks.
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
