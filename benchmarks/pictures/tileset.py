"""The magnetic tiles: pictures, kinds of defects, physical tiles, and splits by tile."""

import re
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchmarks.estimator.tables import data_folder

FREE = "MT_Free"
#: Correlation of two pictures from which on they may show one tile.
LEAST_MATCH = 0.6
#: Share of the free pictures to learn from.
TRAIN_SHARE = 0.7
#: Pictures are compared at half their size.
REDUCTION = 2

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Tiles:
    """All pictures, with the kind and the physical tile of each."""

    pictures: NDArray[np.uint8]
    kind: NDArray[np.str_]
    tile: IntArray

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in np.unique(self.kind).tolist() if kind != FREE]

    def split(self, seed: int) -> tuple[IntArray, IntArray]:
        """Return pictures to learn from, whole tiles without defects, and all others."""
        rng = np.random.default_rng(seed)
        free = self.kind == FREE
        pure = np.array([t for t in np.unique(self.tile) if free[self.tile == t].all()])
        rng.shuffle(pure)
        size = np.array([(self.tile == t).sum() for t in pure])
        count = int(np.searchsorted(np.cumsum(size), TRAIN_SHARE * size.sum()))
        known = np.isin(self.tile, pure[:count])
        return np.flatnonzero(known), np.flatnonzero(~known)


@cache
def load_tiles() -> Tiles:
    with np.load(data_folder() / "images" / "magnetic_tile_96.npz") as arrays:
        pictures, kind, name = arrays["X"], arrays["y"], arrays["name"]
    exposure = [re.match(r"exp\d+", str(n)).group() for n in name]  # type: ignore[union-attr]
    return Tiles(pictures, kind, same_tile(pictures, np.array(exposure)))


def same_tile(pictures: NDArray[np.uint8], exposure: NDArray[np.str_]) -> IntArray:
    """Group pictures of one tile at several exposures.

    Two pictures of different exposures belong together if each is the best
    match of the other among those of its exposure, by correlation, and this is
    above 0.6; and so do those connected by such pairs.
    """
    n, size, _ = pictures.shape
    half = size // REDUCTION
    small = pictures.reshape(n, half, REDUCTION, half, REDUCTION).mean(axis=(2, 4)).reshape(n, -1)
    small -= small.mean(axis=1, keepdims=True)
    small /= np.linalg.norm(small, axis=1, keepdims=True)
    match = small @ small.T
    pairs = []
    for a, b in combinations(np.unique(exposure), 2):
        rows, columns = np.flatnonzero(exposure == a), np.flatnonzero(exposure == b)
        block = match[np.ix_(rows, columns)]
        best, back = block.argmax(axis=1), block.argmax(axis=0)
        mutual = np.flatnonzero(back[best] == np.arange(len(rows)))
        good = mutual[block[mutual, best[mutual]] > LEAST_MATCH]
        pairs.append(np.stack([rows[good], columns[best[good]]]))
    i, j = np.concatenate(pairs, axis=1)
    graph = coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)
