"""Synthetic score matrices that look like those of one-class detectors.

A latent degree of normality is seen by every detector with its own strength and
noise; scores are scaled to [0, 1] by the 5th and 95th percentile of the normals
and clipped to [-1, 2], as the fusion does. Pure data is normal throughout;
non-pure data has 30 % anomalies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ANOMALY_SHARE = 0.3


@dataclass(frozen=True)
class Instance:
    """Input of `solve_batch`; a global problem has one row in `index`."""

    S: NDArray[np.float64]
    y: NDArray[np.float64]
    index: NDArray[np.int64]
    c: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Problems, samples per problem, columns."""
        return (*self.index.shape, self.S.shape[1])


def scores(
    n: int, d: int, pure: bool, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores (n, d) and labels."""
    y = np.ones(n) if pure else np.where(rng.random(n) < ANOMALY_SHARE, -1.0, 1.0)
    normality = rng.normal(size=n) + np.where(y > 0, 0.0, -2.0)
    strength = rng.uniform(0.2, 1.5, size=d)
    S = normality[:, np.newaxis] * strength + rng.normal(size=(n, d))
    low, high = np.percentile(S[y > 0], [5, 95], axis=0)
    return np.clip((S - low) / (high - low), -1.0, 2.0), y


def whole(n: int, d: int, pure: bool, seed: int) -> Instance:
    """Return one global problem."""
    S, y = scores(n, d, pure, np.random.default_rng(seed))
    return Instance(S, y, np.arange(n)[np.newaxis], np.full((1, n), 1.0 / n))


def local(n: int, m: int, k: int, d: int, pure: bool, seed: int) -> Instance:
    """Return m local problems: neighbours along a latent line, Gaussian weights."""
    rng = np.random.default_rng(seed)
    S, y = scores(n, d, pure, rng)
    place = np.sort(rng.random(n))
    anchors = rng.integers(0, n, size=m)
    begin = np.clip(anchors - k // 2, 0, n - k)
    index = begin[:, np.newaxis] + np.arange(k)
    distance = np.abs(place[index] - place[anchors, np.newaxis])
    width = distance.mean(axis=1, keepdims=True)
    return Instance(S, y, index, np.exp(-0.5 * (distance / width) ** 2))
