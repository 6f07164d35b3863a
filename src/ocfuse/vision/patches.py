"""Members that judge every position of a picture by what was normal there."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ocfuse.detectors.groups import Groups
from ocfuse.exceptions import InvalidInputError
from ocfuse.vision.defects import Defects
from ocfuse.vision.features import FeatureArray, Features, Float32Array, FloatArray, IntArray
from ocfuse.vision.member import PictureMember, at

#: Pictures that are scored together, so that memory is bounded.
BLOCK = 32


class PatchMember(PictureMember):
    """Distances at every position, and their mean over the strangest ones.

    A subclass learns (`_learn`) and measures (`_distances`). The score of a
    picture is minus the mean of the largest distances.

    Attributes
    ----------
    strides_ : list of int
        Strides of the maps that are looked at.
    centre_map_, spread_map_ : ndarray of shape (h, w)
        Mean and standard deviation of the distances of normals that were held
        out, to see in a map what is unusual where.
    """

    strides: Sequence[int]
    share: float
    is_smooth: bool
    strides_: list[int]

    def fit(
        self,
        features: Features,
        fold: Groups,
        context: FloatArray | None = None,
        defects: Defects | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Learn, and score pictures and defects by fits that have not seen them."""
        self._maps = _MapMoments()
        scores = super().fit(features, fold, context, defects)
        self.centre_map_, self.spread_map_ = self._maps.result()
        del self._maps
        return scores

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

    def distances(self, features: Features, context: FloatArray | None = None) -> Float32Array:
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
            scores.append(self.pooled(distances))
        return np.concatenate(scores)

    def _distances_in_turn(
        self, features: Features, context: FloatArray | None
    ) -> Iterator[Float32Array]:
        for start in range(0, len(features), BLOCK):
            block = slice(start, start + BLOCK)
            yield self.distances(features.take(block), at(context, block))

    def pooled(self, distances: Float32Array) -> FloatArray:
        """Return minus the mean over the share of largest distances."""
        flat = distances.reshape(len(distances), -1)
        k = max(1, round(self.share * flat.shape[1]))
        largest = np.sort(np.partition(flat, -k, axis=1)[:, -k:], axis=1)
        return np.asarray(-largest.mean(axis=1, dtype=np.float64))

    def unusual(self, distances: Float32Array) -> Float32Array:
        """Return distances in standard deviations of those usual at each position."""
        result: Float32Array = (distances - self.centre_map_) / self.spread_map_
        return result

    @abstractmethod
    def _learn(self, features: Features, rows: IntArray, context: FloatArray | None) -> None:
        """Learn from some pictures, whose features are checked."""

    @abstractmethod
    def _distances(self, patches: Float32Array, context: FloatArray | None) -> Float32Array:
        """Measure patches (positions, n, c); return (positions, n)."""

    def _patches(self, features: Features) -> Float32Array:
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

    def add(self, maps: Float32Array) -> None:
        values = maps.astype(np.float64)
        self.count += len(values)
        self.total = self.total + values.sum(axis=0)
        self.squares = self.squares + (values**2).sum(axis=0)

    def result(self) -> tuple[Float32Array, Float32Array]:
        mean = np.asarray(self.total) / self.count
        variance = np.maximum(np.asarray(self.squares) / self.count - mean**2, 0.0)
        # a position that hardly varies must not turn rounding into alarm
        floor = max(float(np.median(variance)), np.finfo(np.float32).tiny)
        spread = np.sqrt((variance + floor) / 2)
        return mean.astype(np.float32), spread.astype(np.float32)


def by_position(patches: Float32Array) -> Float32Array:
    """Return patches (n, h, w, c) as (positions, n, c): each position has a model of its own."""
    n, h, w, c = patches.shape
    return np.ascontiguousarray(patches.reshape(n, h * w, c).transpose(1, 0, 2))


def embedded(
    maps: Mapping[int, FeatureArray], strides: Sequence[int], is_smooth: bool
) -> Float32Array:
    """Join the channels of several maps on the grid of the finest.

    Parameters
    ----------
    maps : dict of int to ndarray of shape (n, h, w, c)
        Feature maps by stride.
    strides : sequence of int
        Those to join.
    is_smooth : bool
        Take the mean over 3 x 3 positions first.

    Returns
    -------
    ndarray of shape (n, h, w, c)
        The joined map.
    """
    chosen = [maps[stride].astype(np.float32, copy=False) for stride in sorted(strides)]
    _, h, w, _ = chosen[0].shape
    parts = [_spread(smoothed(part) if is_smooth else part, h, w) for part in chosen]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=3)


def smoothed(maps: Float32Array) -> Float32Array:
    """Return means over 3 x 3 positions; at the border the nearest ones count again."""
    padded = np.pad(maps, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    result: Float32Array = (rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]) / np.float32(9)
    return result


def _spread(maps: Float32Array, h: int, w: int) -> Float32Array:
    """Repeat positions until the grid is h by w."""
    if maps.shape[1:3] == (h, w):
        return maps
    down, across = (
        np.arange(new) * old // new for new, old in zip((h, w), maps.shape[1:3], strict=True)
    )
    return maps[:, down][:, :, across]
