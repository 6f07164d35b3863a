"""Members that score each position of a picture: Gaussians and nearest patches."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ocfuse.arrays import FloatArray, IntArray, SingleArray
from ocfuse.detectors.base import core_rows, require_count
from ocfuse.exceptions import InvalidInputError
from ocfuse.groups import Groups
from ocfuse.streaming.course import hats
from ocfuse.vision.defects import Defects
from ocfuse.vision.features import HIGHEST, FeatureArray, Features


class PictureMember(BaseEstimator, ABC):  # type: ignore[misc]
    """A model of normal pictures: a subclass learns (`learn`) and scores (`score`)."""

    @abstractmethod
    def learn(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        rows: IntArray | None = None,
    ) -> Any:
        """Learn what is normal from some of the pictures, all if `rows` is None."""

    @abstractmethod
    def score(self, features: Features, context: FloatArray | None = None) -> FloatArray:
        """Return one score per picture, higher = more normal."""

    def fit(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        defects: Defects | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Learn, and return the scores of n pictures and q defects by fits that have not seen them.

        The label of `fold` is the fold in which a picture is held out; `context` is the
        progress of the task, from 0 to 1.
        """
        origin = np.empty(0, dtype=np.intp) if defects is None else defects.origin
        held_out, strange = np.empty(len(features)), np.empty(len(origin))
        for f, withheld in enumerate(fold.withheld(fold.label).T):
            self.learn(features, fold, context, np.flatnonzero(~withheld))
            inside = np.flatnonzero(fold.label == f)
            for start in range(0, len(inside), 256):  # features of so many are copied at a time
                rows = inside[start : start + 256]
                held_out[rows] = self._score_unseen(features.take(rows), at(context, rows))
            made = np.flatnonzero(fold.label[origin] == f)
            if defects is not None and len(made):
                strange[made] = self.score(defects.features.take(made), at(context, origin[made]))
        self.learn(features, fold, context)
        return held_out, strange

    def _score_unseen(self, features: Features, context: FloatArray | None) -> FloatArray:
        """Score normal pictures that were held out; a subclass may note more about them."""
        return self.score(features, context)


def at(context: FloatArray | None, rows: Any) -> FloatArray | None:
    """Return the context of some pictures, None if there is none."""
    return None if context is None else context[rows]


class PatchMember(PictureMember):
    """Distances at every position, and their mean over the strangest ones.

    A subclass learns (`_learn`) and measures (`_distances`). The score of a picture is minus the
    mean of the largest distances. `centre_map_` and `spread_map_`, of shape (h, w), are mean and
    standard deviation of the distances of normals that were held out.
    """

    #: Pictures that are scored together, so that memory is bounded.
    block_size: ClassVar[int] = 32

    strides: Sequence[int]
    share: float
    is_smooth: bool
    _unseen: list[SingleArray]
    strides_: list[int]

    def fit(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        defects: Defects | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Learn, and score pictures and defects by fits that have not seen them."""
        self._maps, self._unseen = _MapMoments(), []
        scores = super().fit(features, fold, context, defects)
        self.centre_map_, self.spread_map_ = self._maps.result()
        del self._maps
        return scores

    def take_unseen(self, fold: Groups) -> SingleArray:
        """Return how unusual every place of every training picture was to fits without it.

        They are there once, after `fit` with these folds: no model file holds them.
        """
        maps = self.unusual(np.concatenate(self.__dict__.pop("_unseen")))
        order = np.argsort(fold.label, kind="stable")  # fold by fold, as `fit` goes
        ordered = np.empty_like(maps)
        ordered[order] = maps
        return ordered

    def learn(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        rows: IntArray | None = None,
    ) -> "PatchMember":
        """Learn what is normal; nothing is held out, whatever the folds are."""
        self._check(features)
        self._learn(features, np.arange(len(features)) if rows is None else rows, context)
        return self

    def distances(self, features: Features, context: FloatArray | None = None) -> SingleArray:
        """Return how strange every position is, shape (n, h, w): 0 is normal."""
        patches = self._patches(features)
        return self._distances(by_position(patches), context).T.reshape(patches.shape[:3])

    def score(self, features: Features, context: FloatArray | None = None) -> FloatArray:
        """Return one score per picture, higher = more normal."""
        blocks = self._distances_in_turn(features, context)
        return np.concatenate([self.pooled(distances) for distances in blocks])

    def _score_unseen(self, features: Features, context: FloatArray | None) -> FloatArray:
        scores = []
        for distances in self._distances_in_turn(features, context):
            self._maps.add(distances)
            self._unseen.append(distances)
            scores.append(self.pooled(distances))
        return np.concatenate(scores)

    def _distances_in_turn(
        self, features: Features, context: FloatArray | None
    ) -> Iterator[SingleArray]:
        for start in range(0, len(features), self.block_size):
            block = slice(start, start + self.block_size)
            yield self.distances(features.take(block), at(context, block))

    def pooled(self, distances: SingleArray) -> FloatArray:
        """Return minus the mean over the share of largest distances."""
        flat = distances.reshape(len(distances), -1)
        k = max(1, round(self.share * flat.shape[1]))
        largest = np.sort(np.partition(flat, -k, axis=1)[:, -k:], axis=1)
        return np.asarray(-largest.mean(axis=1, dtype=np.float64))

    def unusual(self, distances: SingleArray) -> SingleArray:
        """Return distances in standard deviations of those usual at each position."""
        result: SingleArray = (distances - self.centre_map_) / self.spread_map_
        return result

    @abstractmethod
    def _learn(self, features: Features, rows: IntArray, context: FloatArray | None) -> None:
        """Learn from some pictures, whose features are checked."""

    @abstractmethod
    def _distances(self, patches: SingleArray, context: FloatArray | None) -> SingleArray:
        """Measure patches (positions, n, c); return (positions, n)."""

    def _patches(self, features: Features) -> SingleArray:
        return embedded(features.maps, self.strides_, self.is_smooth)

    def _check(self, features: Features) -> None:
        if not 0 < self.share <= 1:
            raise InvalidInputError(f"share must be in (0, 1]. Got share={self.share!r}.")
        self.strides_ = [int(stride) for stride in self.strides if stride in features.maps]
        if not self.strides_:
            raise InvalidInputError(
                f"{type(self).__name__} looks at maps of strides {list(self.strides)}. The "
                f"backbone gives {sorted(features.maps) or 'none'}. Use strides that it gives."
            )


class _MapMoments:
    """Mean and spread of maps that come in batches."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, 0.0, 0.0

    def add(self, maps: SingleArray) -> None:
        values = maps.astype(np.float64)
        self.count += len(values)
        self.total = self.total + values.sum(axis=0)
        self.squares = self.squares + (values**2).sum(axis=0)

    def result(self) -> tuple[SingleArray, SingleArray]:
        mean = np.asarray(self.total) / self.count
        variance = np.maximum(np.asarray(self.squares) / self.count - mean**2, 0.0)
        # a position that hardly varies must not turn rounding into alarm
        floor = max(float(np.median(variance)), np.finfo(np.float32).tiny)
        spread = np.sqrt((variance + floor) / 2)
        return mean.astype(np.float32), spread.astype(np.float32)


def by_position(patches: SingleArray) -> SingleArray:
    """Return patches (n, h, w, c) as (positions, n, c): each position has a model of its own."""
    n, h, w, c = patches.shape
    return np.ascontiguousarray(patches.reshape(n, h * w, c).transpose(1, 0, 2))


def embedded(
    maps: Mapping[int, FeatureArray], strides: Sequence[int], is_smooth: bool
) -> SingleArray:
    """Join the channels of maps, given by stride, of shape (n, h, w, c) on the finest grid.

    With `is_smooth` the mean over 3 x 3 positions is taken first.
    """
    chosen = [maps[stride].astype(np.float32, copy=False) for stride in sorted(strides)]
    _, h, w, _ = chosen[0].shape
    parts = [enlarged(smoothed(part) if is_smooth else part, h, w) for part in chosen]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=3)


def smoothed(maps: SingleArray) -> SingleArray:
    """Return means over 3 x 3 positions; at the border the nearest ones count again."""
    padded = np.pad(maps, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    result: SingleArray = (rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]) / np.float32(9)
    return result


def mean_map(parts: Sequence[SingleArray], weights: Sequence[float]) -> SingleArray:
    """Return the weighted mean of maps (n, h, w), on the finest grid among them."""
    h, w = (max(part.shape[axis] for part in parts) for axis in (1, 2))
    shares = np.asarray(weights) / sum(weights)
    total = sum(s * enlarged(p, h, w) for s, p in zip(shares, parts, strict=True))
    return np.asarray(total, dtype=np.float32)


def enlarged(maps: SingleArray, h: int, w: int) -> SingleArray:
    """Repeat positions until the grid is h by w."""
    if maps.shape[1:3] == (h, w):
        return maps
    down, across = np.arange(h) * maps.shape[1] // h, np.arange(w) * maps.shape[2] // w
    return maps[:, down][:, :, across]


class PatchGaussian(PatchMember):
    """Mahalanobis distance of each patch to training patches at its position.

    The covariance is shrunk as in Ledoit and Wolf (2004). With a context the mean depends on it:
    at each of 21 knots it is the mean of the pictures at about the same context.

    Parameters
    ----------
    strides : sequence of int, default=(8, 16)
        Strides of the feature maps that are joined, on the grid of the finest.
    share : float, default=0.05
        Share of the positions, those with the largest distances, whose mean is the score.
    is_smooth : bool, default=True
        Whether to average 3 x 3 positions, so that small shifts matter less.

    Attributes
    ----------
    mean_ : ndarray of shape (knots, positions, c)
        Means.
    whitening_ : ndarray of shape (positions, c, c)
        Matrices that turn Mahalanobis distances into Euclidean ones.
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
        # with 21 knots the mean follows changes over a twentieth of the task
        near = np.ones((len(rows), 1)) if context is None else hats(context[rows], 21)
        self.mean_ = self._means(features, rows, near)
        covariance, fourth = self._moments(features, rows, near)
        self.whitening_ = _whitening(covariance, fourth, len(rows))

    def _distances(self, patches: SingleArray, context: FloatArray | None) -> SingleArray:
        n = patches.shape[1]
        knots = len(self.mean_)
        near = np.ones((n, 1)) if knots == 1 or context is None else hats(context, knots)
        white = self._residuals(patches, near) @ self.whitening_
        result: SingleArray = np.sqrt(np.einsum("pnc,pnc->pn", white, white))
        return result

    def _residuals(self, patches: SingleArray, near: FloatArray) -> SingleArray:
        """Subtract from every patch the mean at its position and context."""
        if len(self.mean_) == 1:
            return np.asarray(patches - self.mean_[0][:, np.newaxis])
        centre = np.tensordot(near.astype(np.float32), self.mean_, axes=1)
        return np.asarray(patches - centre.transpose(1, 0, 2))

    def _means(self, features: Features, rows: IntArray, near: FloatArray) -> SingleArray:
        total: Any = 0.0
        plain: Any = 0.0
        for block, patches in self._blocks(features, rows):
            total = total + np.tensordot(near[block].T, patches.transpose(1, 0, 2), axes=1)
            plain = plain + patches.sum(axis=1, dtype=np.float64)
        overall = plain / len(rows)
        weight = near.sum(axis=0)[:, np.newaxis, np.newaxis]
        # the mean over all contexts counts as one picture, where few were seen at a context
        means = (total + overall) / (weight + 1.0)
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

    def _blocks(self, features: Features, rows: IntArray) -> Iterator[tuple[slice, SingleArray]]:
        """Yield slices of the rows and their patches, positions first."""
        for start in range(0, len(rows), self.block_size):
            block = slice(start, start + self.block_size)
            yield block, by_position(self._patches(features.take(rows[block])))


def _whitening(
    covariance: FloatArray, fourth: FloatArray, n: int, ridge: float = 1e-4
) -> SingleArray:
    """Return W with ``W W^T`` the inverse of the shrunk covariance, by position.

    The ridge, a share of a unit covariance, is always added: channels may be constant.
    """
    c = covariance.shape[1]
    unit = np.trace(covariance, axis1=1, axis2=2) / c
    squares = (covariance**2).sum(axis=(1, 2))
    # how far the covariance is from a multiple of the identity, and how far by chance
    distance = squares - c * unit**2
    chance = np.maximum(fourth - squares, 0.0) / n
    shrink = np.clip(chance / np.maximum(distance, np.finfo(float).tiny), 0.0, 1.0)
    # a position where nothing varies takes its scale from the others
    size = np.maximum(unit, 1e-3 * unit.mean()) if unit.any() else np.ones_like(unit)
    shrunk = (1.0 - shrink)[:, np.newaxis, np.newaxis] * covariance
    shrunk[:, np.arange(c), np.arange(c)] += (shrink * unit + ridge * size)[:, np.newaxis]
    inverse = np.linalg.inv(np.linalg.cholesky(shrunk))
    return np.ascontiguousarray(inverse.transpose(0, 2, 1), dtype=np.float32)


class PatchKNN(PatchMember):
    """Distance of each patch to the nearest training patches at its position.

    With a context (the progress of a task, from 0 to 1), patches are compared only with those of
    training pictures at about the same context.

    Parameters
    ----------
    strides : sequence of int, default=(16,)
        Strides of the feature maps that are joined, on the grid of the finest.
    share : float, default=0.05
        Share of the positions, those with the largest distances, whose mean is the score.
    is_smooth : bool, default=False
        Whether to average 3 x 3 positions first.
    n_neighbors : int, default=1
        Number of nearest patches whose mean distance is taken.
    reach : float, default=0.05
        Largest difference of contexts.
    max_patches : int, default=1000
        Most patches to store at each position. Of more, those farthest apart are stored, the same
        number for each section of the context.

    Attributes
    ----------
    bank_ : ndarray of shape (positions, n, c)
        The patches, in the order of their contexts.
    lengths_ : ndarray of shape (positions, n)
        Squared lengths of the patches.
    context_ : ndarray of shape (n,)
        Contexts of the patches, averaged over the positions; empty without context.
    """

    #: Pictures that are compared with, at least, however few were seen at a context.
    min_pictures: ClassVar[int] = 10

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
        require_count("max_patches", self.max_patches, self.min_pictures, "A thousand is usual.")
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
            # of four times the patches that are kept, evenly spaced, these are chosen
            chosen = stretch[core_rows(len(stretch), 4 * quota)]
            patches = by_position(self._patches(features.take(rows[chosen])))
            kept = [np.sort(farthest(position, quota)) for position in patches]
            parts.append(np.stack([x[k] for x, k in zip(patches, kept, strict=True)]))
            contexts.append(place[chosen][np.array(kept)].mean(axis=0))
        bank = np.clip(np.concatenate(parts, axis=1), -HIGHEST, HIGHEST)
        self.bank_ = bank.astype(np.float16).astype(np.float32)
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
        # the most that each may give so that all together give no more than may be kept
        quota = max(
            q
            for q in range(1, self.max_patches + 1)
            if np.minimum(counts, q).sum() <= self.max_patches
        )
        for members in np.split(order, np.cumsum(counts)[:-1]):
            yield members, min(quota, len(members))

    def _distances(self, patches: SingleArray, context: FloatArray | None) -> SingleArray:
        if context is None or not len(self.context_):
            return self._nearest(patches, slice(None))
        distances = np.empty(patches.shape[:2], dtype=np.float32)
        # frames of about one context have most of their pictures in common
        order = np.argsort(context, kind="stable")
        for start in range(0, len(order), 8):
            rows = order[start : start + 8]
            low, high = np.array([self._gate(float(c)) for c in context[rows]]).T
            chosen = np.arange(low.min(), high.max())
            outside = (chosen < low[:, np.newaxis]) | (chosen >= high[:, np.newaxis])
            span = slice(int(low.min()), int(high.max()))
            distances[:, rows] = self._nearest(patches[:, rows], span, outside)
        return distances

    def _gate(self, context: float) -> tuple[int, int]:
        """Return begin and end of the pictures whose context is near, ten at least."""
        n = len(self.context_)
        least = min(max(self.min_pictures, self.n_neighbors), n)
        low = int(np.searchsorted(self.context_, context - self.reach, side="left"))
        high = int(np.searchsorted(self.context_, context + self.reach, side="right"))
        lacking = max(least - (high - low), 0)
        low = max(0, min(low - (lacking + 1) // 2, n - least))
        return low, min(n, max(high + lacking // 2, low + least))

    def _nearest(
        self, patches: SingleArray, chosen: slice, outside: NDArray[np.bool_] | None = None
    ) -> SingleArray:
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
        result: SingleArray = distances.mean(axis=2)
        return result


def farthest(X: SingleArray, count: int) -> IntArray:
    """Return the numbers of the first row, and then always of that farthest from those taken."""
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
