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
    step = max(1, BLOCK // max(1, c * X.shape[1]))
    for begin in range(0, q, step):
        block = slice(begin, begin + step)
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
