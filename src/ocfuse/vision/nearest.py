"""The nearest normal patches at every position."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.detectors.base import core_rows, require_count
from ocfuse.exceptions import InvalidInputError
from ocfuse.vision.features import HIGHEST, Features, Float32Array, FloatArray, IntArray
from ocfuse.vision.patches import PatchMember, by_position

#: Pictures that are compared with, at least, however few were seen at a context.
FEWEST = 10
#: Of so many times the patches that are kept, evenly spaced, these are chosen.
CONSIDERED = 4
#: Frames that are measured together where their contexts differ.
TOGETHER = 8


class PatchKNN(PatchMember):
    """Distance of every patch to the nearest of those seen at its position.

    With a context (the progress of a task, from 0 to 1) only pictures of about
    the same context are compared with.

    Parameters
    ----------
    strides : sequence of int, default=(16,)
        Maps that are joined, on the grid of the finest.
    share : float, default=0.05
        Share of the positions, the strangest, whose mean is the score.
    is_smooth : bool, default=False
        Take the means of 3 x 3 positions first.
    n_neighbors : int, default=1
        Nearest patches whose mean distance counts.
    reach : float, default=0.05
        How far apart contexts may be.
    max_patches : int, default=1000
        Patches that are kept at each position, at most: of more, those that are
        farthest apart, in every stretch of the context as many.

    Attributes
    ----------
    bank_ : ndarray of shape (positions, n, c)
        The patches, in the order of their contexts.
    lengths_ : ndarray of shape (positions, n)
        Their squared lengths.
    context_ : ndarray of shape (n,)
        Their contexts, the mean over the positions; empty without.
    """

    def __init__(
        self,
        strides: Sequence[int] = (16,),
        share: float = 0.05,
        is_smooth: bool = False,
        n_neighbors: int = 1,
        reach: float = 0.05,
        max_patches: int = 1000,
    ) -> None:
        self.strides = strides
        self.share = share
        self.is_smooth = is_smooth
        self.n_neighbors = n_neighbors
        self.reach = reach
        self.max_patches = max_patches

    def _check(self, features: Features) -> None:
        super()._check(features)
        require_count("n_neighbors", self.n_neighbors, 1, "One is usual.")
        require_count("max_patches", self.max_patches, FEWEST, "A thousand is usual.")
        if not 0 < self.reach <= 1:
            raise InvalidInputError(f"reach must be in (0, 1]. Got reach={self.reach!r}.")

    def __getstate__(self) -> dict[str, Any]:
        """Give the patches 16 bits, which is what features had: a model file is smaller."""
        state = dict(super().__getstate__())
        if "bank_" in state:
            state["bank_"] = state["bank_"].astype(np.float16)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Give them 32 bits again."""
        super().__setstate__(state)
        if "bank_" in state:
            self.bank_ = state["bank_"].astype(np.float32)

    def _learn(self, features: Features, rows: IntArray, context: FloatArray | None) -> None:
        place = np.zeros(len(rows)) if context is None else context[rows]
        parts, contexts = [], []
        for stretch, quota in self._stretches(place):
            chosen = stretch[core_rows(len(stretch), CONSIDERED * quota)]
            patches = by_position(self._patches(features.take(rows[chosen])))
            kept = [np.sort(farthest(position, quota)) for position in patches]
            parts.append(np.stack([x[k] for x, k in zip(patches, kept, strict=True)]))
            contexts.append(place[chosen][np.array(kept)].mean(axis=0))
        self.bank_ = _rounded(np.concatenate(parts, axis=1))
        self.context_ = np.empty(0) if context is None else np.concatenate(contexts)
        self.lengths_ = np.einsum("pnc,pnc->pn", self.bank_, self.bank_)

    def _stretches(self, place: FloatArray) -> Iterator[tuple[IntArray, int]]:
        """Yield the pictures of every stretch of the context, in its order, and how many to keep.

        A stretch is as long as the reach, or longer where there would be more than patches.
        """
        order = np.argsort(place, kind="stable")
        stretch = np.unique(np.floor(place[order] / self.reach), return_inverse=True)[1]
        n = int(stretch[-1]) + 1
        most = min(n, self.max_patches)
        counts = np.bincount(stretch * most // n)
        quota = _quota(counts, self.max_patches)
        for members in np.split(order, np.cumsum(counts)[:-1]):
            yield members, min(quota, len(members))

    def _distances(self, patches: Float32Array, context: FloatArray | None) -> Float32Array:
        if context is None or not len(self.context_):
            return self._nearest(patches, slice(None))
        distances = np.empty(patches.shape[:2], dtype=np.float32)
        # frames of about one context have most of their pictures in common
        order = np.argsort(context, kind="stable")
        for start in range(0, len(order), TOGETHER):
            rows = order[start : start + TOGETHER]
            low, high = np.array([self._gate(float(c)) for c in context[rows]]).T
            chosen = np.arange(low.min(), high.max())
            outside = (chosen < low[:, np.newaxis]) | (chosen >= high[:, np.newaxis])
            span = slice(int(low.min()), int(high.max()))
            distances[:, rows] = self._nearest(patches[:, rows], span, outside)
        return distances

    def _gate(self, context: float) -> tuple[int, int]:
        """Return begin and end of the pictures whose context is near, ten at least."""
        n = len(self.context_)
        least = min(max(FEWEST, self.n_neighbors), n)
        low = int(np.searchsorted(self.context_, context - self.reach, side="left"))
        high = int(np.searchsorted(self.context_, context + self.reach, side="right"))
        lacking = max(least - (high - low), 0)
        low = max(0, min(low - (lacking + 1) // 2, n - least))
        return low, min(n, max(high + lacking // 2, low + least))

    def _nearest(
        self, patches: Float32Array, chosen: slice, outside: NDArray[np.bool_] | None = None
    ) -> Float32Array:
        """Return mean distances to the nearest of the chosen, shape (positions, n).

        Pictures that are `outside`, shape (n, chosen), do not count.
        """
        bank, lengths = self.bank_[:, chosen], self.lengths_[:, chosen]
        products = patches @ bank.transpose(0, 2, 1)
        own = np.einsum("pnc,pnc->pn", patches, patches)
        squares = lengths[:, np.newaxis] - np.float32(2) * products
        k = min(self.n_neighbors, bank.shape[1])
        if outside is not None:
            squares[:, outside] = np.inf
        if k == 1:
            least = squares.min(axis=2, keepdims=True)
        else:
            least = np.sort(np.partition(squares, k - 1, axis=2)[:, :, :k], axis=2)
        distances = np.sqrt(np.maximum(least + own[:, :, np.newaxis], np.float32(0)))
        result: Float32Array = distances.mean(axis=2)
        return result


def farthest(X: Float32Array, count: int) -> IntArray:
    """Return the first row, and then always that which is farthest from those taken.

    Parameters
    ----------
    X : ndarray of shape (n, c)
        Rows.
    count : int
        How many to take.

    Returns
    -------
    ndarray of shape (count,)
        Their numbers.
    """
    if count >= len(X):
        return np.arange(len(X))
    lengths = np.einsum("nc,nc->n", X, X)
    nearest = np.full(len(X), np.inf, dtype=np.float32)
    taken = np.zeros(count, dtype=np.intp)
    for i in range(1, count):
        last = taken[i - 1]
        squares = X @ (np.float32(-2) * X[last]) + (lengths + lengths[last])
        np.minimum(nearest, squares, out=nearest)
        nearest[last] = -np.inf  # equal rows are not taken twice
        taken[i] = nearest.argmax()
    return taken


def _quota(counts: IntArray, total: int) -> int:
    """Return the most that each may give so that all together give no more than the total."""
    return max(q for q in range(1, total + 1) if np.minimum(counts, q).sum() <= total)


def _rounded(patches: Float32Array) -> Float32Array:
    return np.clip(patches, -HIGHEST, HIGHEST).astype(np.float16).astype(np.float32)
