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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors.base import core_rows
from ocfuse.encoder import FeatureEncoder
from ocfuse.ensemble.fit import Table
from ocfuse.ensemble.rows import ContextScale, canonical_order, row_numbers
from ocfuse.exceptions import CopiedRowsWarning
from ocfuse.system.packages import slow
from ocfuse.validation import ANOMALY, NORMAL

#: Share of copies among the rows from which on they are told.
TOLD_SHARE = 0.02
#: Fewer different rows than this are a discrete table, whatever they hold.
FEWEST_DIFFERENT = 10
#: A row of a discrete table has another one that differs in so many columns at most: two,
#: as a category that was encoded as zeros and ones changes two of them.
FEW_COLUMNS = 2
#: Share of the repeated rows that must have such a neighbour in a discrete table.
DISCRETE_SHARE = 0.5
#: More equal pairs than this, in units of what is predicted, are no chance.
MOST_EQUAL = 1.8
#: A single column is discrete if its smallest gap is not below this share of the median gap.
GRID_SHARE = 0.05
#: Comparisons of values with which it is told whether a table is discrete.
MOST_COMPARISONS = 2**25
#: Links between rows that may be near copies: up to this share of a typical distance ...
NEAREST_SHARE = 1e-3
#: ... and between so many neighbours in the order of a projection.
WINDOW = 16
#: Projections in which pairs are compared before their distance is computed.
N_DIRECTIONS = 4
#: The next row that is no copy is at least so many times farther away than the copies,
LEAST_RATIO = 100.0
#: and so much farther that among independent rows a smaller share than this is taken for copies.
CHANCE = 0.002
#: A column with more different values per row than this is continuous.
MANY_VALUES = 0.1
#: Rows that the distance to the next one is measured with.
MOST_REFERENCES = 1000
#: Near copies of one row, at most: more are a narrow mode.
MOST_NEAR = 64
#: Two groups are one if more than this share of the rows of one are copies of the other's.
GROUP_SHARE = 0.5
#: A row that occurs in more groups than this is a usual state, not a copy.
MOST_GROUPS = 20


@dataclass(frozen=True)
class DistinctTable:
    """A table without the copies.

    Parameters
    ----------
    table : Table
        The rows that are left.
    rows : ndarray of shape (N,)
        Their positions in the table with the copies.
    place : ndarray of shape (n,)
        For every row of that table, the position of its first copy among those left.
    """

    table: Table
    rows: IntArray
    place: IntArray

    @property
    def copied(self) -> IntArray:
        """Positions of the rows that are left out as copies of others."""
        return np.setdiff1d(np.arange(len(self.place)), self.rows)


@dataclass(frozen=True)
class Copies:
    """Which rows are copies of which.

    Parameters
    ----------
    label : ndarray of shape (n,)
        Number of the row that each row is a copy of; rows with one number are copies.
    """

    label: IntArray

    @property
    def n_different(self) -> int:
        """Number of different rows."""
        return int(self.label.max()) + 1 if len(self.label) else 0

    def first(self, order: IntArray, preferred: NDArray[np.bool_]) -> IntArray:
        """Return one row for every label: a preferred one, if any, and the first in an order."""
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        ranked = np.lexsort((place, ~preferred, self.label))
        labels = self.label[ranked]
        return np.asarray(ranked[np.append(True, labels[1:] != labels[:-1])])


def without_copies(table: Table, encoder: FeatureEncoder) -> DistinctTable:
    """Return a training table in which every row is there once.

    Anomalies and other rows are looked at apart; of copies one that is known to be normal
    is kept, if there is one. Rows with context are copies only if that is the same, too.
    Where there are groups, rows of one group are held out together anyway: there groups
    that are copies of each other become one, and no row is left out.

    Parameters
    ----------
    table : Table
        The training rows.
    encoder : FeatureEncoder
        Knows what their columns hold.

    Returns
    -------
    DistinctTable
        The table, and what was left out of it.
    """
    n = len(table)
    learned = copy(encoder).set_gaps("judge").learn(table.X)
    encoded = learned.transform(table.X)
    X = encoded
    if table.context is not None:
        scale = ContextScale(table.context, encoded.shape[1])
        X = np.hstack([encoded, scale.transform(table.context)])
    if table.groups is not None:
        if table.groups.are_folds:
            return DistinctTable(table, np.arange(n), np.arange(n))
        label = merged_groups(find_copies(X), table.groups.label)
        groups = replace(table.groups, label=label)
        return DistinctTable(replace(table, groups=groups), np.arange(n), np.arange(n))
    label, first = np.empty(n, dtype=np.intp), np.empty(0, dtype=np.intp)
    for is_anomaly in (False, True):
        rows = np.flatnonzero((table.y == ANOMALY) == is_anomaly)
        if len(rows):
            copies = find_copies(X[rows])
            label[rows] = copies.label + len(first)
            chosen = copies.first(canonical_order(X[rows]), table.y[rows] == NORMAL)
            first = np.append(first, rows[chosen])
    if len(first) == n:
        return DistinctTable(table, np.arange(n), np.arange(n))
    order = np.argsort(first)
    place = np.empty(len(first), dtype=np.intp)
    place[order] = np.arange(len(first))
    return DistinctTable(table.take(first[order]), first[order], place[label])


def find_copies(X: FloatArray) -> Copies:
    """Return which rows of standardised columns are copies by accident.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Encoded rows.

    Returns
    -------
    Copies
        The copies; in a discrete table every row is different from the others, unless
        the whole table stands there several times.
    """
    n = len(X)
    alone = Copies(np.arange(n))
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
        return Copies(label)
    order = np.argsort(label, kind="stable")
    begin = np.cumsum(counts) - counts
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n) - begin[label[order]]
    return Copies(_renumbered(label * n + place // times))


def merged_groups(copies: Copies, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return groups in which those that are mostly copies of each other are one.

    A state that many groups pass through, such as a machine that stands still, is no copy.
    """
    _, group = np.unique(groups, return_inverse=True)
    size = np.bincount(group)
    shape = (len(size), copies.n_different)
    rows = csr_array(coo_array((np.ones(len(group)), (group, copies.label)), shape=shape))
    rows.sum_duplicates()
    presence = csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=shape)
    rare = np.asarray(presence.sum(axis=0)).ravel() <= MOST_GROUPS
    kept = rare[rows.indices]
    rows.data, presence.data = rows.data * kept, presence.data * kept
    shared = coo_array(rows @ presence.T)
    is_copy = shared.data > GROUP_SHARE * size[shared.row]
    links = (np.ones(int(is_copy.sum())), (shared.row[is_copy], shared.col[is_copy]))
    number = len(size)
    merged = _connected(coo_array(links, shape=(number, number)))
    return np.asarray(merged[group], dtype=np.int64)


def _some_are_equal(X: FloatArray) -> bool:
    """Tell whether two rows may be equal to the last bit, by sums of their bits."""
    bits = (np.ascontiguousarray(X) + 0.0).view(np.uint64)  # -0.0 and 0.0 are the same value
    factors = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64)
    sums = np.einsum("nm,m->n", bits, 2 * factors + 1)  # modulo 2^64
    return len(np.unique(sums)) < len(X)


def _renumbered(label: IntArray) -> IntArray:
    return np.asarray(np.unique(label, return_inverse=True)[1], dtype=np.intp)


def _is_discrete(X: FloatArray, counts: IntArray, tolerance: float) -> bool:
    """Tell whether rows that are equal are so by nature.

    Parameters
    ----------
    X : ndarray of shape (N, m)
        The different rows.
    counts : ndarray of shape (N,)
        How often each occurs.
    tolerance : float
        Values that differ by no more are the same.

    Returns
    -------
    bool
        Whether equal rows are natural.
    """
    repeated = np.flatnonzero(counts > 1)
    if not len(repeated):
        return False
    varied = np.ptp(X, axis=0) > tolerance
    X = X[:, varied]
    m = X.shape[1]
    if m == 1:
        gaps = np.diff(np.unique(X))
        return bool(gaps.min() >= GRID_SHARE * np.median(gaps))
    chosen = core_rows(len(X), max(10, MOST_COMPARISONS // X.size))
    repeated = repeated[core_rows(len(repeated), max(10, MOST_COMPARISONS // X.size))]
    most = min(FEW_COLUMNS, m - 1)
    natural = sum(_has_neighbour(*_differences(X, int(i), tolerance), most) for i in repeated)
    if natural <= DISCRETE_SHARE * len(repeated):
        return False
    pairs = np.zeros(5)  # that differ in so many columns
    for i in chosen:
        differ, _ = _differences(X, int(i), tolerance)
        few = differ <= 4
        pairs += counts[i] * np.bincount(differ[few], weights=counts[few], minlength=5)[:5]
    # of columns that make up one category two change at once
    one, two = (pairs[1], pairs[2]) if pairs[1] else (pairs[2], pairs[4])
    equal = float((counts * (counts - 1.0)).sum()) * len(chosen) / len(X)
    return bool(2.0 * equal * two <= MOST_EQUAL * one * one)


def _differences(X: FloatArray, i: int, tolerance: float) -> tuple[IntArray, bool]:
    """Return in how many columns each row differs from row i, and if its values recur."""
    differ = np.zeros(len(X), dtype=np.intp)
    recurs = True
    for j in range(X.shape[1]):
        is_other = np.abs(X[:, j] - X[i, j]) > tolerance
        recurs = recurs and int(is_other.sum()) < len(X) - 1
        differ += is_other
    return differ, recurs


def _has_neighbour(differ: IntArray, recurs: bool, most: int) -> bool:
    """Tell whether some other row differs in few columns, and values recur."""
    return recurs and bool(np.sum(differ <= most) > 1)


def _near_rows(X: FloatArray) -> tuple[IntArray, float]:
    """Return a number for each of N different rows, the same for those that are near copies.

    Returns also how far near copies are apart at most.

    Near copies are far nearer to each other than to any other row: all rows within
    `LEAST_RATIO` times their distance are copies, too.
    """
    number = np.arange(len(X))
    if len(X) < FEWEST_DIFFERENT:
        return number, 0.0
    typical = _typical_distance(X)
    first, second, distance = _close_pairs(X, NEAREST_SHARE * typical)
    if not len(first):
        return number, 0.0
    n, m = len(X), _n_continuous(X)
    references = core_rows(n, MOST_REFERENCES)
    # of fewer references the nearest is farther away
    fewer = (n / len(references)) ** (1.0 / m)
    ratio = max(LEAST_RATIO, CHANCE ** (-1.0 / m)) * fewer
    rows = np.unique(np.append(first, second))
    distances, nearest = _nearest_references(X, rows, references)
    free = np.ones(n, dtype=bool)
    level, width = NEAREST_SHARE * typical, 0.0
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
    """Return the number of columns, at least 1, that hold many different values."""
    ordered = np.sort(X[core_rows(len(X), MOST_REFERENCES)], axis=0)
    different = 1 + (np.diff(ordered, axis=0) > 0).sum(axis=0)
    return max(1, int(np.sum(different > MANY_VALUES * len(ordered))))


def _typical_distance(X: FloatArray) -> float:
    """Return the median distance between some rows."""
    some = X[core_rows(len(X), 200)]
    other = some[::-1]
    between = np.sqrt(((some - other) ** 2).sum(axis=1))
    return float(np.median(between[between > 0])) if (between > 0).any() else 0.0


def _close_pairs(X: FloatArray, limit: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs of rows within a distance of each other, and their distances.

    Rows that are nearly equal are next to each other in the order of any projection.
    """
    directions: FloatArray = np.random.default_rng(0).normal(size=(X.shape[1], N_DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    shadows = X @ directions
    order = np.argsort(shadows[:, 0], kind="stable")
    shadows = shadows[order]
    pairs: list[tuple[IntArray, IntArray, FloatArray]] = []
    for step in range(1, min(WINDOW, len(X) - 1) + 1):
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
    links = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    return np.asarray(_connected(links), dtype=np.intp)


def _connected(links: Any) -> Any:
    """Return which component of a graph each row is in."""
    return slow("scipy.sparse.csgraph").connected_components(links, directed=False)[1]


def warn_of_copies(n_copies: int, n: int) -> None:
    """Tell that rows are copies of others, which are learned once and count once."""
    if n_copies >= TOLD_SHARE * n:
        warnings.warn(
            f"{n_copies / n:.0%} of the {n} rows are copies of others (copied_rows_). They are "
            f"learned once, and the false-alarm rate counts {n - n_copies} different ones.",
            CopiedRowsWarning,
            stacklevel=5,
        )
