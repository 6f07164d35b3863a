"""A Gaussian at every position."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.course import hats
from ocfuse.vision.features import Features, Float32Array, FloatArray, IntArray
from ocfuse.vision.patches import BLOCK, PatchMember, by_position

#: Knots of the mean along the context: it follows changes over a twentieth of the task.
KNOTS = 21
#: Weight of the mean over all contexts, in pictures, where few were seen at one.
PRIOR = 1.0
#: Share of a unit covariance that is always added: channels may be constant.
RIDGE = 1e-4
#: Share of the mean variance that every position has at least, for its ridge.
LEAST = 1e-3


class PatchGaussian(PatchMember):
    """Mahalanobis distance of every patch to those seen at its position.

    The covariance is shrunk as Ledoit and Wolf (2004) do. With a context the
    mean follows it: at each of 21 knots it is the mean of the pictures nearby.

    Parameters
    ----------
    strides : sequence of int, default=(8, 16)
        Maps that are joined, on the grid of the finest.
    share : float, default=0.05
        Share of the positions, the strangest, whose mean is the score.
    is_smooth : bool, default=True
        Take the means of 3 x 3 positions, so that small shifts matter less.

    Attributes
    ----------
    mean_ : ndarray of shape (knots, positions, c)
        Means.
    whitening_ : ndarray of shape (positions, c, c)
        Matrices that make distances of Mahalanobis plain ones.
    """

    def __init__(
        self, strides: Sequence[int] = (8, 16), share: float = 0.05, is_smooth: bool = True
    ) -> None:
        self.strides = strides
        self.share = share
        self.is_smooth = is_smooth

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the half of the whitening that is zero: a model file is smaller."""
        state = dict(super().__getstate__())
        if "whitening_" in state:
            row, column = np.triu_indices(state["whitening_"].shape[1])
            state["whitening_"] = state["whitening_"][:, row, column]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Put the zeros back."""
        super().__setstate__(state)
        if "whitening_" in state:
            c = self.mean_.shape[2]
            if state["whitening_"].shape[1] != c * (c + 1) // 2:
                raise InvalidInputError(f"whitening_ is not that of {c} features.")
            self.whitening_ = np.zeros((len(state["whitening_"]), c, c), dtype=np.float32)
            row, column = np.triu_indices(c)
            self.whitening_[:, row, column] = state["whitening_"]

    def _learn(self, features: Features, rows: IntArray, context: FloatArray | None) -> None:
        near = np.ones((len(rows), 1)) if context is None else hats(context[rows], KNOTS)
        self.mean_ = self._means(features, rows, near)
        covariance, fourth = self._moments(features, rows, near)
        self.whitening_ = _whitening(covariance, fourth, len(rows))

    def _distances(self, patches: Float32Array, context: FloatArray | None) -> Float32Array:
        n = patches.shape[1]
        knots = len(self.mean_)
        near = np.ones((n, 1)) if knots == 1 or context is None else hats(context, knots)
        white = self._residuals(patches, near) @ self.whitening_
        result: Float32Array = np.sqrt(np.einsum("pnc,pnc->pn", white, white))
        return result

    def _residuals(self, patches: Float32Array, near: FloatArray) -> Float32Array:
        """Subtract from every patch the mean at its position and context."""
        if len(self.mean_) == 1:
            return np.asarray(patches - self.mean_[0][:, np.newaxis])
        centre = np.tensordot(near.astype(np.float32), self.mean_, axes=1)
        return np.asarray(patches - centre.transpose(1, 0, 2))

    def _means(self, features: Features, rows: IntArray, near: FloatArray) -> Float32Array:
        total: Any = 0.0
        plain: Any = 0.0
        for block, patches in self._blocks(features, rows):
            total = total + np.tensordot(near[block].T, patches.transpose(1, 0, 2), axes=1)
            plain = plain + patches.sum(axis=1, dtype=np.float64)
        overall = plain / len(rows)
        weight = near.sum(axis=0)[:, np.newaxis, np.newaxis]
        means = (total + PRIOR * overall) / (weight + PRIOR)
        return np.asarray(means, dtype=np.float32)

    def _moments(
        self, features: Features, rows: IntArray, near: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the covariance and the mean fourth power of the length, by position."""
        scatter: Any = 0.0
        fourth: Any = 0.0
        for block, patches in self._blocks(features, rows):
            r = self._residuals(patches, near[block])
            scatter = scatter + (r.transpose(0, 2, 1) @ r)
            fourth = fourth + (np.einsum("pnc,pnc->pn", r, r).astype(np.float64) ** 2).sum(axis=1)
        n = len(rows)
        return np.asarray(scatter / n, dtype=np.float64), np.asarray(fourth / n)

    def _blocks(self, features: Features, rows: IntArray) -> Iterator[tuple[slice, Float32Array]]:
        """Yield slices of the rows and their patches, positions first."""
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            yield block, by_position(self._patches(features.take(rows[block])))


def _whitening(covariance: FloatArray, fourth: FloatArray, n: int) -> Float32Array:
    """Return W with ``W W^T`` the inverse of the shrunk covariance, by position."""
    c = covariance.shape[1]
    unit = np.trace(covariance, axis1=1, axis2=2) / c
    squares = (covariance**2).sum(axis=(1, 2))
    # how far the covariance is from a multiple of the identity, and how far by chance
    distance = squares - c * unit**2
    chance = np.maximum(fourth - squares, 0.0) / n
    shrink = np.clip(chance / np.maximum(distance, np.finfo(float).tiny), 0.0, 1.0)
    # a position where nothing varies takes its scale from the others
    size = np.maximum(unit, LEAST * unit.mean()) if unit.any() else np.ones_like(unit)
    shrunk = (1.0 - shrink)[:, np.newaxis, np.newaxis] * covariance
    shrunk[:, np.arange(c), np.arange(c)] += (shrink * unit + RIDGE * size)[:, np.newaxis]
    inverse = np.linalg.inv(np.linalg.cholesky(shrunk))
    return np.ascontiguousarray(inverse.transpose(0, 2, 1), dtype=np.float32)
