"""PaDiM- and PatchCore-like detectors on the features that ours sees."""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from ocfuse.vision.features import Features
from ocfuse.vision.patches import embedded

STRIDES = (8, 16)
#: Channels that PaDiM draws by chance; its ridge.
CHANNELS, RIDGE = 60, 0.01
#: Patches that stand for all in PatchCore, and patches these are learned from.
CENTRES, DRAWN = 1000, 20_000
#: Share of the positions, the strangest, whose mean is the score.
SHARE = 0.05

FloatArray = NDArray[np.float64]


def padim(train: Features, test: Features, seed: int) -> FloatArray:
    """Score by Mahalanobis distances at every position, on some channels."""
    known, new = (embedded(f.maps, STRIDES, True) for f in (train, test))
    chosen = np.random.default_rng(seed).permutation(known.shape[3])[:CHANNELS]
    known, new = (x[..., chosen].reshape(len(x), -1, CHANNELS) for x in (known, new))
    distances = np.empty(new.shape[:2])
    for p in range(known.shape[1]):
        covariance = np.cov(known[:, p].T) + RIDGE * np.eye(CHANNELS)
        r = new[:, p] - known[:, p].mean(axis=0)
        distances[:, p] = np.sqrt(np.einsum("nc,cd,nd->n", r, np.linalg.inv(covariance), r))
    return strangest(distances)


def patchcore(train: Features, test: Features, seed: int) -> FloatArray:
    """Score by distances to the nearest of 1000 centres, wherever it was seen."""
    known, new = (embedded(f.maps, STRIDES, True) for f in (train, test))
    c = known.shape[3]
    patches = known.reshape(-1, c)
    rows = np.random.default_rng(seed).permutation(len(patches))[:DRAWN]
    found = MiniBatchKMeans(CENTRES, random_state=seed, n_init=1).fit(patches[rows])
    centres = found.cluster_centers_.astype(np.float32)
    lengths = (centres**2).sum(axis=1)
    distances = np.empty((len(new), new.shape[1] * new.shape[2]))
    for i, picture in enumerate(new.reshape(len(new), -1, c)):
        squares = (picture**2).sum(axis=1, keepdims=True) + lengths - 2 * picture @ centres.T
        distances[i] = np.sqrt(np.maximum(squares.min(axis=1), 0))
    return strangest(distances)


def strangest(distances: FloatArray) -> FloatArray:
    """Return minus the mean of the largest distances."""
    k = max(1, round(SHARE * distances.shape[1]))
    return -np.sort(distances, axis=1)[:, -k:].mean(axis=1)
