"""Rows for the benchmark of scale, generated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

#: Factors of feature rows, and the standard deviation of what they do not explain.
FACTORS, NOISE = 64, 0.3
#: Rows made at once: memory of the generator must not hide that of a fit.
BLOCK = 10_000

#: Planted rows: features, factors of each cluster, and the spread and share of the clusters.
COLUMNS, RANK = 64, 8
SPREADS = (0.5, 1.0, 2.0, 4.0)
SHARES = (0.2, 0.4, 0.3, 0.1)
#: Between the centres of clusters, in a column.
APART = 4.0
ROUGHNESS = 0.3
KINDS = ("local", "global", "dependency")
#: Local anomalies are this many times farther from the centre than rows of their cluster.
STRETCH = 1.5
#: Share of columns that a dependency anomaly has from other rows.
SWAPPED = 0.25
#: Global anomalies are shifted by as much to twice as much, in a share of the columns.
SHIFT, SHIFTED = 4.0, 0.1


def features(n: int, m: int, seed: int = 0) -> FloatArray:
    """Return n rows like pooled features of a network: low rank, noise, positive and skewed."""
    return features_and_fresh(n, 0, m, seed)[0]


def features_and_fresh(
    n: int, n_fresh: int, m: int, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return n rows to learn from and fresh ones of the same source."""
    rng = np.random.default_rng(seed)
    loads = rng.normal(size=(FACTORS, m)) / (1.0 + np.arange(FACTORS) / 8.0)[:, None]
    X = np.empty((n + n_fresh, m))
    for begin in range(0, len(X), BLOCK):
        block = X[begin : begin + BLOCK]
        block[:] = rng.normal(size=(len(block), FACTORS)) @ loads
        block += NOISE * rng.normal(size=block.shape)
        np.logaddexp(0.0, block, out=block)
    return X[:n], X[n:]


def feature_anomalies(rows: FloatArray, seed: int = 0) -> FloatArray:
    """Return as many rows, of which a quarter of the columns is from other rows each."""
    rng = np.random.default_rng([seed, 1])
    return _swapped(rows, rng)


@dataclass(frozen=True)
class Planted:
    """Normal rows to learn from, and a test of fresh normals and anomalies.

    Attributes
    ----------
    X : ndarray of shape (n, 64)
        Normal rows.
    test : ndarray of shape (q, 64)
        Rows to score.
    kind : ndarray of shape (q,)
        "normal", "local", "global" or "dependency".
    """

    X: FloatArray
    test: FloatArray
    kind: NDArray[np.str_]

    @property
    def is_anomaly(self) -> BoolArray:
        return np.asarray(self.kind != "normal")


def planted(n: int, n_test: int = 10_000, seed: int = 0) -> Planted:
    """Return n normal rows of four clusters, and a test with a tenth of anomalies.

    The clusters have their own spread and their own few factors, so that a distance that is
    usual in one is strange in another (local), few columns are ever far out (global), and
    columns depend on each other (dependency). Test rows do not depend on n.
    """
    world = _World(np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 2])
    n_each = n_test // 10 // len(KINDS)
    normals = world.draw(n_test - n_each * len(KINDS), rng)[0]
    anomalies = [
        world.local(n_each, rng),
        world.shifted(n_each, rng),
        _swapped(world.draw(n_each, rng)[0], rng),
    ]
    kind = np.repeat(["normal", *KINDS], [len(normals), n_each, n_each, n_each])
    X = world.draw(n, np.random.default_rng([seed, 3]))[0]
    return Planted(X, np.vstack([normals, *anomalies]), kind)


class _World:
    """Four clusters."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.centres = APART * rng.normal(size=(len(SPREADS), COLUMNS))
        self.loads = rng.normal(size=(len(SPREADS), RANK, COLUMNS)) / np.sqrt(RANK)

    def draw(
        self, n: int, rng: np.random.Generator, stretch: float = 1.0
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return n rows and their clusters."""
        cluster = rng.choice(len(SPREADS), size=n, p=SHARES)
        X = np.empty((n, COLUMNS))
        for begin in range(0, n, BLOCK):
            block = slice(begin, begin + BLOCK)
            X[block] = self._rows(cluster[block], rng, stretch)
        return X, cluster

    def _rows(
        self, cluster: NDArray[np.intp], rng: np.random.Generator, stretch: float
    ) -> FloatArray:
        factors = rng.normal(size=(len(cluster), RANK))
        noise = ROUGHNESS * rng.normal(size=(len(cluster), COLUMNS))
        X = np.empty_like(noise)
        for c, spread in enumerate(SPREADS):
            mine = cluster == c
            X[mine] = spread * stretch * (factors[mine] @ self.loads[c] + noise[mine])
        return X + self.centres[cluster]

    def local(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return rows too far out for their cluster, though not for the widest."""
        rows, cluster = self.draw(4 * n, rng, STRETCH)
        return rows[cluster < len(SPREADS) - 1][:n]

    def shifted(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return rows that some columns take far out."""
        rows, _ = self.draw(n, rng)
        far = SHIFT * rng.uniform(1.0, 2.0, size=rows.shape)
        far *= rng.choice([-1.0, 1.0], size=rows.shape)
        shifted: FloatArray = rows + np.where(rng.random(rows.shape) < SHIFTED, far, 0.0)
        return shifted


def _swapped(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the rows, each with a share of its columns from other rows, column by column."""
    others = np.column_stack([column[rng.permutation(len(rows))] for column in rows.T])
    swapped: FloatArray = np.where(rng.random(rows.shape) < SWAPPED, others, rows)
    return swapped
