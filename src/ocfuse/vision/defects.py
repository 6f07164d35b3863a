"""Made-up defects, by which it is judged who sees defects.

Into pictures: a piece of another picture, a scratch, a blot, a blurred patch.
Where only features are known: positions that take the features of another
place in another picture.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from ocfuse.arrays import IntArray
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Picture

#: Kinds of defects that are made up in pictures.
N_KINDS = 4


@dataclass(frozen=True)
class Defects:
    """Features of q pictures with made-up defects, and the normal picture each was made from."""

    features: Features
    origin: IntArray


def with_defects(
    pictures: Sequence[Picture], n_per_kind: int, random: np.random.Generator
) -> tuple[list[Picture], IntArray]:
    """Return pictures with one defect each, and the number of its kind.

    Normal pictures, of shape (size, size, 3), are taken in turn.
    """
    made, kind = [], []
    for k, make in enumerate((_paste, _scratch, _blot, _blur)):
        for i in range(n_per_kind):
            picture = pictures[i % len(pictures)].astype(np.float32)
            other = pictures[int(random.integers(len(pictures)))].astype(np.float32)
            changed = make(picture, other, random)
            made.append(np.clip(np.rint(changed), 0, 255).astype(np.uint8))
            kind.append(k)
    return made, np.array(kind, dtype=np.intp)


def with_swaps(
    features: Features, n: int, random: np.random.Generator
) -> tuple[Features, IntArray]:
    """Return features in which a region comes from elsewhere, for want of pictures.

    The pooled features move towards those of the other picture by the share of
    the region.
    """
    rows = np.arange(n) % len(features)
    others = random.integers(len(features), size=n)
    area = _areas(random, n)
    corner, source = random.random((n, 2)), random.random((n, 2))
    pooled = features.pooled[rows] + area[:, np.newaxis].astype(np.float32) * (
        features.pooled[others] - features.pooled[rows]
    )
    maps = {}
    for stride, values in features.maps.items():
        changed = values[rows]
        h, w = values.shape[1:3]
        for i in range(n):
            side = np.maximum(np.rint(np.sqrt(area[i]) * np.array([h, w])).astype(int), 1)
            a, b = (
                (at * (np.array([h, w]) - side + 1)).astype(int) for at in (corner[i], source[i])
            )
            patch = values[others[i], b[0] : b[0] + side[0], b[1] : b[1] + side[1]]
            changed[i, a[0] : a[0] + side[0], a[1] : a[1] + side[1]] = patch
        maps[stride] = changed
    return Features(pooled, maps), np.zeros(n, dtype=np.intp)


def _areas(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Return shares of the picture that defects cover, from 0.5 to 10 %."""
    return np.exp(random.uniform(np.log(0.005), np.log(0.1), n))


def _box(size: int, random: np.random.Generator) -> tuple[int, int, int, int]:
    """Return top, left, height and width of a place for a defect."""
    area = float(_areas(random, 1)[0]) * size * size
    aspect = float(np.exp(random.uniform(-1.0, 1.0)))
    height, width = np.sqrt(area * aspect), np.sqrt(area / aspect)
    h, w = (int(np.clip(round(side), 1, size - 1)) for side in (height, width))
    return int(random.integers(size - h + 1)), int(random.integers(size - w + 1)), h, w


def _contrast(picture: NDArray[Any], random: np.random.Generator) -> float:
    """Return the contrast of a defect, from 1 to 4 standard deviations of the picture.

    In a picture of one colour these are taken for 8 grey levels.
    """
    size = max(float(picture.std()), 8.0) * random.uniform(1.0, 4.0)
    return float(size * random.choice([-1.0, 1.0]))


def _paste(picture: NDArray[Any], other: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    top, left, h, w = _box(len(picture), random)
    y, x = int(random.integers(len(picture) - h + 1)), int(random.integers(len(picture) - w + 1))
    picture[top : top + h, left : left + w] = other[y : y + h, x : x + w]
    return picture


def _scratch(
    picture: NDArray[Any], other: NDArray[Any], random: np.random.Generator
) -> NDArray[Any]:
    size = len(picture)
    y, x = np.mgrid[:size, :size]
    centre, angle = random.uniform(0.1, 0.9, 2) * size, random.uniform(0.0, np.pi)
    along = (x - centre[0]) * np.cos(angle) + (y - centre[1]) * np.sin(angle)
    across = (y - centre[1]) * np.cos(angle) - (x - centre[0]) * np.sin(angle)
    length, width = random.uniform(0.1, 0.4) * size, random.uniform(0.005, 0.015) * size
    inside = np.exp(-((across / width) ** 2) / 2) * (np.abs(along) < length)
    return np.asarray(picture + _contrast(picture, random) * inside[:, :, np.newaxis])


def _blot(picture: NDArray[Any], other: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    top, left, h, w = _box(len(picture), random)
    y, x = np.mgrid[: len(picture), : len(picture)]
    squares = ((y - top - h / 2) / (h / 2)) ** 2 + ((x - left - w / 2) / (w / 2)) ** 2
    inside = np.exp(-squares)[:, :, np.newaxis]
    return np.asarray(picture + _contrast(picture, random) * inside)


def _blur(picture: NDArray[Any], other: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    top, left, h, w = _box(len(picture), random)
    soft = uniform_filter(picture, (len(picture) // 12, len(picture) // 12, 1), mode="nearest")
    picture[top : top + h, left : left + w] = soft[top : top + h, left : left + w]
    return picture
