"""Find training rows that are copies of others, by accident and not by nature.

A join that doubles rows, a logger that repeats its last value or a file that was
appended to itself makes rows that carry nothing new. A row whose copy was learned
looks more normal than any fresh row, so that a threshold set on such rows raises too
many alarms. Copies are therefore learned once and count once.

In a discrete table, such as one of votes or of zeros and ones, equal rows are natural:
a fresh row may equal a training row, too. There every row counts. The other rows tell
which case it is. Where equal rows are natural

- a row that occurs twice mostly has others that differ from it in one or two columns
  only, and each of its values occurs elsewhere, too;
- equal pairs are about as many as pairs that differ in one or two columns predict. If
  every column agreed by chance, independently, then of the numbers H_k of pairs that
  differ in k columns ``H_0 = H_1^2 / (2 H_2)``.

Among 67 tables of normals with equal rows, from votes and censuses to wines and
pictures, the share of rows with such neighbours was above 0.6 for every table of few
values and below 0.2 for all tables of measurements but one of word counts. The ratio of
H_0 to what is predicted was 0.3 to 1.8 for tables of few values, and 2 to 3 for two with
hardly any equal rows.
"""

import warnings
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array

from ocfuse.arrays import FloatArray, Int64Array, IntArray
from ocfuse.detectors.base import core_rows
from ocfuse.encoder import FeatureEncoder
from ocfuse.ensemble.fit import Table, canonical_order, row_numbers
from ocfuse.ensemble.score import ContextScale
from ocfuse.exceptions import CopiedRowsWarning
from ocfuse.system.packages import slow
from ocfuse.validation import ANOMALY, NORMAL

#: Fewer different rows than this are a discrete table, whatever they hold.
FEWEST_DIFFERENT = 10
#: Rows that the distance to the next one is measured with.
MOST_REFERENCES = 1000
#: Near copies of one row, at most: more are a narrow mode.
MOST_NEAR = 64


@dataclass(frozen=True)
class DistinctTable:
    """A table without the copies."""

    table: Table
    rows: IntArray  # positions of its rows in the table with the copies
    place: IntArray  # for every row of that, the position of its first copy among those left

    @property
    def copied(self) -> IntArray:
        """Positions of the rows that are left out as copies of others."""
        return np.setdiff1d(np.arange(len(self.place)), self.rows)


def without_copies(table: Table, encoder: FeatureEncoder) -> DistinctTable:
    """Return a training table in which every row is there once.

    Anomalies and other rows are looked at apart; of copies one that is known to be normal
    is kept, if there is one. Rows with context are copies only if that is the same, too.
    Where there are groups, rows of one group are held out together anyway: there groups
    that are copies of each other become one, and no row is left out.
    """
    n = len(table)
    every = np.arange(n)
    if table.groups is not None and table.groups.are_folds:
        return DistinctTable(table, every, every)
    known = copy(encoder).set_gaps("judge").learn(table.X)
    views = known.comparable(known.read(table.X))
    if table.context is not None:
        scale = ContextScale(table.context, views[0].shape[1])
        views = [np.hstack([X, scale.transform(table.context)]) for X in views]
    if table.groups is not None:
        groups = replace(table.groups, label=merged_groups(find_copies(*views), table.groups.label))
        return DistinctTable(replace(table, groups=groups), every, every)
    number, first = np.empty(n, dtype=np.intp), np.empty(0, dtype=np.intp)
    for is_anomaly in (False, True):
        rows = np.flatnonzero((table.y == ANOMALY) == is_anomaly)
        if len(rows):
            label = find_copies(*(X[rows] for X in views))
            number[rows] = label + len(first)
            # of each label one known to be normal, if any, and the first in the canonical order
            ranked = canonical_order(views[0][rows])
            ranked = ranked[np.lexsort((table.y[rows[ranked]] != NORMAL, label[ranked]))]
            first = np.append(first, rows[ranked[np.diff(label[ranked], prepend=-1) > 0]])
    if len(first) == n:
        return DistinctTable(table, every, every)
    return DistinctTable(table.take(np.sort(first)), np.sort(first), _renumbered(first)[number])


def find_copies(X: FloatArray, *others: FloatArray) -> IntArray:
    """Return a number for each row of standardised columns, the same for copies by accident.

    Where there are other views of the same rows, copies are so in all of them. In a discrete
    table every row is different from the others, unless the whole table stands there several
    times.
    """
    n = len(X)
    alone = np.arange(n)
    if others:
        labels = [find_copies(view) for view in (X, *others)]
        return np.unique(np.array(labels), axis=1, return_inverse=True)[1].ravel()
    same = row_numbers(X) if _some_are_equal(X) else np.arange(n)
    first = np.unique(same, return_index=True)[1]
    near, width = _near_rows(X[first])
    label = _renumbered(near[same])
    counts = np.bincount(label)
    if len(counts) == n or len(counts) < FEWEST_DIFFERENT:
        return alone
    # the whole table may be there several times, be it discrete or not
    times = int(np.gcd.reduce(counts))
    different = X[np.unique(label, return_index=True)[1]]
    # values of near copies of a discrete table are not equal either
    tolerance = 10.0 * width if len(counts) < 0.9 * len(first) else 0.0
    if not _is_discrete(different, counts // times, tolerance):
        return label
    order = np.argsort(label, kind="stable")
    begin = np.cumsum(counts) - counts
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n) - begin[label[order]]
    return _renumbered(label * n + place // times)


def merged_groups(label: IntArray, groups: Int64Array) -> Int64Array:
    """Return groups in which those that are mostly copies of each other are one.

    Rows with the same label are copies. A row that occurs in more than 20 groups, such as that
    of a machine that stands still, is a usual state and no copy.
    """
    _, group = np.unique(groups, return_inverse=True)
    size = np.bincount(group)
    shape = (len(size), int(label.max(initial=-1)) + 1)
    rows = csr_array(coo_array((np.ones(len(group)), (group, label)), shape=shape))
    rows.sum_duplicates()
    presence = csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=shape)
    rare = np.asarray(presence.sum(axis=0)).ravel() <= 20
    kept = rare[rows.indices]
    rows.data, presence.data = rows.data * kept, presence.data * kept
    shared = coo_array(rows @ presence.T)
    is_copy = shared.data > 0.5 * size[shared.row]
    merged = _components(len(size), shared.row[is_copy], shared.col[is_copy])
    return np.asarray(merged[group], dtype=np.int64)


def _some_are_equal(X: FloatArray) -> bool:
    """Return whether two rows may be equal to the last bit, by sums of their bits."""
    bits = (np.ascontiguousarray(X) + 0.0).view(np.uint64)  # -0.0 and 0.0 are the same value
    factors = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64)
    sums = np.einsum("nm,m->n", bits, 2 * factors + 1)  # modulo 2^64
    return len(np.unique(sums)) < len(X)


def _renumbered(label: IntArray) -> IntArray:
    return np.asarray(np.unique(label, return_inverse=True)[1], dtype=np.intp)


def _is_discrete(X: FloatArray, counts: IntArray, tolerance: float) -> bool:
    """Return whether equal rows are natural, from the different rows and how often each occurs.

    Values that differ by no more than the tolerance are the same.
    """
    repeated = np.flatnonzero(counts > 1)
    if not len(repeated):
        return False
    varied = np.ptp(X, axis=0) > tolerance
    X = X[:, varied]
    m = X.shape[1]
    if m == 1:
        gaps = np.diff(np.unique(X))
        return bool(gaps.min() >= 0.05 * np.median(gaps))
    affordable = max(10, 2**25 // X.size)  # rows that are compared with all others
    repeated = repeated[core_rows(len(repeated), affordable)]
    # two, as a category that was encoded as zeros and ones changes two columns
    few_columns = min(2, m - 1)
    n_natural = 0
    for i in repeated:
        differ, recurs = _differences(X, int(i), tolerance)
        n_natural += recurs and np.sum(differ <= few_columns) > 1
    if n_natural <= 0.5 * len(repeated):
        return False
    pairs = np.zeros(5)  # that differ in so many columns
    chosen = core_rows(len(X), affordable)
    for i in chosen:
        differ, _ = _differences(X, int(i), tolerance)
        few = differ <= 4
        pairs += counts[i] * np.bincount(differ[few], weights=counts[few], minlength=5)[:5]
    # of columns that make up one category two change at once
    one, two = (pairs[1], pairs[2]) if pairs[1] else (pairs[2], pairs[4])
    equal = float((counts * (counts - 1.0)).sum()) * len(chosen) / len(X)
    return bool(2.0 * equal * two <= 1.8 * one * one)


def _differences(X: FloatArray, i: int, tolerance: float) -> tuple[IntArray, bool]:
    """Return in how many columns each row differs from row i, and if its values recur."""
    differ = np.zeros(len(X), dtype=np.intp)
    recurs = True
    for j in range(X.shape[1]):
        is_other = np.abs(X[:, j] - X[i, j]) > tolerance
        recurs = recurs and int(is_other.sum()) < len(X) - 1
        differ += is_other
    return differ, recurs


def _near_rows(X: FloatArray) -> tuple[IntArray, float]:
    """Return a number for each of N different rows, the same for near copies, and a distance.

    The distance is how far near copies are apart at most. They are far nearer to each other
    than to any other row: all rows within 100 times their distance are copies, too, and so many
    times more that among independent rows a share of less than 0.002 is taken for copies.
    """
    number = np.arange(len(X))
    if len(X) < FEWEST_DIFFERENT:
        return number, 0.0
    some = X[core_rows(len(X), 200)]
    between = np.sqrt(((some - some[::-1]) ** 2).sum(axis=1))
    typical = float(np.median(between[between > 0])) if (between > 0).any() else 0.0
    level = 1e-3 * typical
    first, second, distance = _close_pairs(X, level)
    if not len(first):
        return number, 0.0
    n, m = len(X), _n_continuous(X)
    references = core_rows(n, MOST_REFERENCES)
    # of fewer references the nearest is farther away
    fewer = (n / len(references)) ** (1.0 / m)
    ratio = max(100.0, 0.002 ** (-1.0 / m)) * fewer
    rows = np.unique(np.append(first, second))
    distances, nearest = _nearest_references(X, rows, references)
    free = np.ones(n, dtype=bool)
    width = 0.0
    while len(first) and level > 0:
        linked = (distance <= level) & free[first] & free[second]
        first, second, distance = first[linked], second[linked], distance[linked]
        part = _components(n, first, second)
        size = np.bincount(part)
        widest = np.zeros(len(size))
        np.maximum.at(widest, part[first], distance)
        apart = np.full(len(size), np.inf)
        outside = np.where(part[nearest] != part[rows, np.newaxis], distances, np.inf)
        np.minimum.at(apart, part[rows], outside.min(axis=1))
        found = (size > 1) & (size <= MOST_NEAR) & (apart >= ratio * widest)
        copied = found[part]
        number[copied] = n + part[copied] + n * len(np.unique(number))
        free &= ~copied
        width = max(width, float(widest[found].max(initial=0.0)))
        level = float(distance.max(initial=0.0)) / 10.0
    return _renumbered(number), width


def _n_continuous(X: FloatArray) -> int:
    """Return the number of columns, at least 1, with one different value per ten rows or more."""
    ordered = np.sort(X[core_rows(len(X), MOST_REFERENCES)], axis=0)
    different = 1 + (np.diff(ordered, axis=0) > 0).sum(axis=0)
    return max(1, int(np.sum(different > 0.1 * len(ordered))))


def _close_pairs(X: FloatArray, limit: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs of rows within a distance of each other, and their distances.

    Rows that are nearly equal are next to each other in the order of any projection: 16
    neighbours in the order of one are compared in four, before their distance is computed.
    """
    directions: FloatArray = np.random.default_rng(0).normal(size=(X.shape[1], 4))
    directions /= np.linalg.norm(directions, axis=0)
    shadows = X @ directions
    order = np.argsort(shadows[:, 0], kind="stable")
    shadows = shadows[order]
    pairs: list[tuple[IntArray, IntArray, FloatArray]] = []
    for step in range(1, min(16, len(X) - 1) + 1):
        one, other = order[:-step], order[step:]
        # in no projection are two rows farther apart than they are
        between = np.abs(shadows[step:] - shadows[:-step]).max(axis=1)
        close = np.flatnonzero(between <= limit)
        one, other = one[close], other[close]
        distance = np.sqrt(((X[one] - X[other]) ** 2).sum(axis=1))
        kept = distance <= limit
        pairs.append((one[kept], other[kept], distance[kept]))
    first, second, distances = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(distances)


def _nearest_references(
    X: FloatArray, rows: IntArray, references: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return distances from rows to their nearest references, and the numbers of these."""
    k = min(2 * MOST_NEAR, len(references))
    distances, index = [], []
    for block in slow("sklearn.metrics").pairwise_distances_chunked(X[rows], X[references]):
        near = np.argpartition(block, k - 1, axis=1)[:, :k]
        distances.append(np.take_along_axis(block, near, axis=1))
        index.append(references[near])
    return np.concatenate(distances), np.concatenate(index)


def _components(n: int, first: IntArray, second: IntArray) -> IntArray:
    """Return which component of a graph of n nodes each of them is in."""
    links = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    found = slow("scipy.sparse.csgraph").connected_components(links, directed=False)[1]
    return np.asarray(found, dtype=np.intp)


def warn_of_copies(n_copies: int, n: int) -> None:
    """Warn if at least 2 % of the rows are copies of others, which count once."""
    if n_copies >= 0.02 * n:
        warnings.warn(
            f"{n_copies / n:.0%} of the {n} rows are copies of others (copied_rows_). They are "
            f"learned once, and the false-alarm rate counts {n - n_copies} different ones.",
            CopiedRowsWarning,
            stacklevel=5,
        )
