"""Exact nearest rows: candidates by a fast search, order by direct differences.

A fast search (a matrix product, a tree) rounds in its own way. Its candidates
are measured again by direct differences, so that duplicates are at distance 0
and a row gets the same answer from every search and in every batch. Rows at
the same distance come in the order of their numbers.
"""

from typing import Any, TypeAlias

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.kernels import kernel, thread_count
from ocfuse.system.cache import cached
from ocfuse.system.packages import slow
from ocfuse.system.threads import one_thread

#: (squared distances, row numbers), both (q, k), nearest first
Nearest: TypeAlias = tuple[FloatArray, IntArray]

#: Candidates beyond the k asked for: enough where few rows tie.
SPARE = 8
#: Numbers held at once by a block of direct differences.
BLOCK = 2**20


def nearest_by_matrix(
    D: FloatArray, X: FloatArray, norms: FloatArray, Y: FloatArray, k: int
) -> Nearest:
    """Return the k rows of Y nearest to each row of X, given rounded squared distances.

    D (q, n) holds ``|x|^2 + |y|^2 - 2 x.y`` of centred rows, and `norms` their
    ``|x|^2``. The error of an entry is below ``c (|x|^2 + |y|^2)`` with c a few
    m eps, hence below ``c (3 |x|^2 + 2 |x - y|^2)``.
    """
    c = (X.shape[1] + 8) * np.finfo(np.float64).eps
    if kernel is None or k == 0:
        return _by_numpy(D, X, norms, Y, k, c)
    threads = thread_count(D.size)
    found: Nearest = kernel.nearest_by_matrix(D, norms, c, X, Y, k, threads)
    return found


def nearest_by_tree(tree: Any, X: FloatArray, Y: FloatArray, k: int) -> Nearest:
    """Return the k rows of Y nearest to each row of X, given a cKDTree of Y."""
    margin = 1 + (X.shape[1] + 8) * np.finfo(np.float64).eps
    size = min(len(Y), k + SPARE)
    distances, found = tree.query(X, k=np.arange(1, size + 1))
    squares, index = ordered(X, Y, found, k)
    if size == len(Y):
        return squares, index
    reach = np.sqrt(squares[:, -1]) * margin
    for i in np.flatnonzero(reach * margin >= distances[:, -1]):
        near = np.array(tree.query_ball_point(X[i], reach[i] * margin), dtype=np.intp)
        squares[i], index[i] = ordered(X[i : i + 1], Y, near[None], k)
    return squares, index


def without_self(nearest: Nearest, own: IntArray | None = None) -> Nearest:
    """Drop each row from its own k + 1 neighbours, or the last if duplicates hide it.

    The rows are all, or those of the numbers `own`.
    """
    squares, index = nearest
    keep = index != (np.arange(len(index)) if own is None else own)[:, None]
    keep[keep.all(axis=1), -1] = False
    shape = (len(index), index.shape[1] - 1)
    return squares[keep].reshape(shape), index[keep].reshape(shape)


def ordered(X: FloatArray, Y: FloatArray, candidates: IntArray, k: int) -> Nearest:
    """Measure the candidates (q, c) by direct differences and return the first k."""
    q, c = candidates.shape
    squares, index = np.empty((q, k)), np.empty((q, k), dtype=np.intp)
    for block in row_blocks(q, c * X.shape[1]):
        near = candidates[block]
        gaps = Y[near] - X[block, None]
        found = np.einsum("qcm,qcm->qc", gaps, gaps)
        order = np.arange(len(near))[:, None], np.lexsort((near, found), axis=-1)[:, :k]
        squares[block] = found[order]
        index[block] = near[order]
    return squares, index


def _by_numpy(
    D: FloatArray, X: FloatArray, norms: FloatArray, Y: FloatArray, k: int, c: float
) -> Nearest:
    """Return the same as the kernel."""
    n = D.shape[1]
    size = min(n, k + SPARE)
    if size == n:
        return ordered(X, Y, np.broadcast_to(np.arange(n), D.shape), k)
    found = np.argpartition(D, size - 1, axis=1)[:, :size]
    last = D[np.arange(len(D)), found[:, -1]]
    squares, index = ordered(X, Y, found, k)
    for i in np.flatnonzero(squares[:, -1] >= (1 - 2 * c) * last - 3 * c * norms):
        reach = (1 + 4 * c) * squares[i, -1] + 6 * c * norms[i]
        squares[i], index[i] = ordered(X[i : i + 1], Y, np.flatnonzero(D[i] <= reach)[None], k)
    return squares, index


@cached
def own_neighbours(X: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """Return distances and indices of the k nearest other rows of each row."""
    # in few columns a tree is faster than a product
    algorithm = "auto" if X.shape[1] <= 5 else "brute"
    search = slow("sklearn.neighbors").NearestNeighbors(n_neighbors=k, algorithm=algorithm)
    # Which of equal neighbours is found depends on the number of threads.
    with one_thread():
        index = search.fit(X).kneighbors(return_distance=False)
    distances = np.empty(index.shape)
    # Again from the differences: the search may round a zero to 1e-8.
    for block in row_blocks(len(X), k * X.shape[1]):
        difference = X[index[block]] - X[block, np.newaxis]
        distances[block] = np.sqrt((difference**2).sum(axis=2))
    order = distances.argsort(axis=1, kind="stable")
    return np.take_along_axis(distances, order, 1), np.take_along_axis(index, order, 1)


@cached
def neighbours(points: FloatArray, X: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """Return distances and indices of the k rows of X nearest to each point.

    No matrix product: a distance does not depend on the other points, to the bit,
    and of equal distances the first row wins.
    """
    distances = np.empty((len(points), k))
    index = np.empty((len(points), k), dtype=np.intp)
    for block in row_blocks(len(points), len(X)):
        D = slow("scipy.spatial.distance").cdist(points[block], X)
        index[block] = _smallest(D, k)
        distances[block] = np.take_along_axis(D, index[block], axis=1)
    return distances, index


def _smallest(D: FloatArray, k: int) -> IntArray:
    """Return the first k of a stable sort of each row, without sorting all of it."""
    if kernel is not None and k:
        chosen: IntArray = kernel.smallest(D, k, thread_count(D.size))
        return chosen
    if 4 * k >= D.shape[1]:
        return np.asarray(D.argsort(axis=1, kind="stable")[:, :k])
    found = np.sort(np.argpartition(D, k - 1, axis=1)[:, :k], axis=1)
    near = np.take_along_axis(D, found, axis=1)
    found = np.take_along_axis(found, near.argsort(axis=1, kind="stable"), axis=1)
    # where the last one ties with others, any of them may have been found
    tied = np.count_nonzero(near.max(axis=1, keepdims=True) >= D, axis=1) > k
    found[tied] = D[tied].argsort(axis=1, kind="stable")[:, :k]
    return found


def row_blocks(n: int, width: int) -> list[slice]:
    """Return n rows in blocks that hold `BLOCK` numbers at most, `width` of each row."""
    step = max(1, BLOCK // max(1, width))
    return [slice(start, start + step) for start in range(0, n, step)]


def representative_rows(n: int, most: int) -> IntArray:
    """Return all rows or, of too many, a sample that is always the same."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.RandomState(0).choice(n, most, replace=False))
