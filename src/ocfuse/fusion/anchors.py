"""Anchors: the places where weights are learned, and the blend between them."""

import numpy as np

from ocfuse.fusion.inputs import FloatArray
from ocfuse.fusion.locality import representative_rows
from ocfuse.optional import slow
from ocfuse.system.cache import remembered
from ocfuse.threads import one_thread

#: Rows that stand for all when the centres are looked for.
_MOST_ROWS = 2000


def default_count(n: int) -> int:
    """Return the number of anchors for n normals: one per twenty, at most 16."""
    return min(16, max(1, n // 20))


@remembered
def find_anchors(X: FloatArray, c: FloatArray, n_anchors: int) -> FloatArray:
    """Return weighted k-means centres, fewer if there are fewer distinct rows."""
    if n_anchors == 1:
        return np.average(X, axis=0, weights=c)[np.newaxis]
    rows = representative_rows(len(X), max(_MOST_ROWS, n_anchors))
    X, c = merge_duplicates(X[rows], c[rows])
    if len(X) <= n_anchors:
        return X
    means = slow("sklearn.cluster").KMeans(n_anchors, n_init=1, max_iter=100, random_state=0)
    # Threads add in the order in which they end, and the last bits would differ.
    with one_thread():
        means.fit(X, sample_weight=c)
    return np.ascontiguousarray(means.cluster_centers_, dtype=np.float64)


def merge_duplicates(X: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct rows, ordered by their values, with their summed weights."""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weights=c).astype(np.float64)


def blend_width(A: FloatArray) -> float:
    """Return h: half the median squared distance of an anchor to the nearest other.

    At an anchor the nearest other one then has e^-2 of its weight, and halfway
    between two both count alike.
    """
    if len(A) < 2:
        return 1.0
    D = slow("scipy.spatial.distance").cdist(A, A, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    nearest = D.min(axis=1)
    return float(np.median(nearest) / 2.0) if nearest.all() else 1.0


def blend(X: FloatArray, A: FloatArray, h: float) -> FloatArray:
    """Return the softmax over the anchors of ``-||x - a||^2 / h``, shape (q, K).

    The part ``||x||^2`` is common to all anchors and is left out before it can
    drown their difference: ``(2 x.a - ||a||^2) / h`` holds far from all anchors.
    """
    centre = A.mean(axis=0)
    B = A - centre
    logits = (2.0 * ((X - centre) @ B.T) - (B**2).sum(axis=1)) / h
    logits -= logits.max(axis=1, keepdims=True)
    b = np.exp(logits)
    return np.asarray(b / b.sum(axis=1, keepdims=True))
