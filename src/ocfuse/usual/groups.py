"""Usual values by group: centres and spreads of numbers.

A number is compared with the usual values of the group of its row, such as its machine:
``(x - centre) / spread``, in units of the usual spread of a group. Groups may be nested, such as
machines of plants. Values of a group are then shrunk towards its wider group, and those of the
widest towards all rows.

**What a group says.** Its rows are pulled in to three spreads around their median, where a spread
is told by the 80 % nearest to it; mean and variance of these are what the group says of itself,
with ``v = variance / rows`` the uncertainty of the mean; the logarithm of the variance is as
uncertain as that of a chi-squared variable of ``2 (rows - 1) / (kurtosis - 1)`` degrees of freedom.

**How far it is drawn to the others** (empirical Bayes). The variance ``tau2`` between the groups
of a wider one is the one for which the middle group is as far out as it should be
(``median(d^2 / (tau2 + v)) = 0.455``, the median of a chi-squared variable), so that a few odd
groups do not count. A group is drawn to the wider one by ``v / (tau2 + v)`` of the way, but never
by more than one of its own standard errors: what is usual for an odd group of many rows stays
usual. Spreads are drawn in the same way, on the scale of logarithms.

**Groups with few rows, and new ones.** The uncertainty that is left is added to the spread, so
that rows of all groups are, as far as can be known, equally far out. A row whose group is not
known is judged by the wider group: its spread includes the variation between groups, so that 95 %
of the groups of training would be usual, whatever their distribution (the quantile of conformal
prediction, and of a t distribution for few groups).

**Rows that this was learned from** are nearer to their centre than fresh ones. `fit_held_out` of
`GroupLevels` measures each of them from what the other rows of its group say, in closed form, so
that what is learned from measured rows holds for fresh ones.

**Groups that come later** (`with_groups`) say the same of themselves, and are drawn to the wider
groups by the variances that were learned. What is known of other groups stays as it is.
"""

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, ndtri, polygamma, stdtrit

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.exceptions import SuspectInputWarning

#: Median of a chi-squared variable with one degree of freedom.
MEDIAN_OF_SQUARES = 0.45493642311957283
#: Spreads that rows are pulled in to, and the share of rows nearest to the median that tell it.
FARTHEST_ROW = 3.0
NEAREST_SHARE = 0.8
#: Groups of fewer rows have none that are pulled in.
FEWEST_PULLED = 5
#: Groups of fewer rows say nothing of their spread.
FEWEST_SPREAD = 4
#: The quantile of the distance from the middle of a normal distribution at that share.
NEAREST_DISTANCE = 1.2815515655446004
#: Share of rows that lie below the place where tails are compared, and the fewest degrees of
#: freedom that a group is thought to have.
TAIL = 0.998
LEAST_FREEDOM = 3.0
#: New groups are expected between the lower and the upper quantile of this share.
QUANTILE = 0.975
#: Standard errors that a centre, and the logarithm of a variance, is drawn by at most.
FARTHEST_CENTRE = 1.0
FARTHEST_SPREAD = 2.0


@dataclass(frozen=True)
class Statistics:
    """What groups, or rows without one of their own, say: arrays of one shape."""

    count: FloatArray
    mean: FloatArray
    squares: FloatArray  # sum of squared deviations from the mean
    pseudo: FloatArray  # squared deviation of one more row, where most values are equal

    @property
    def variance(self) -> FloatArray:
        """Variances; NaN where there are fewer than two rows, or nothing varies."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found = (self.squares + self.pseudo) / (self.count - 1.0 + (self.pseudo > 0))
        return np.where((self.count > 1) & (found > 0), found, np.nan)

    def without(self, part: "Statistics") -> "Statistics":
        """Return what is left without some of the rows."""
        n, gone = self.count, part.count
        left = n - gone
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(left > 0, (n * self.mean - gone * part.mean) / left, np.nan)
            between = (part.mean - self.mean) ** 2 * n * gone / left
        squares = np.where(left > 0, self.squares - part.squares - between, 0.0)
        # what rounding leaves of no variance is none
        squares = np.where(squares > 1e-12 * self.squares, squares, 0.0)
        return Statistics(left, mean, squares, self.pseudo)


@dataclass(frozen=True)
class Drawn:
    """Values of groups drawn to those of wider ones, with what is still uncertain."""

    value: FloatArray
    variance: FloatArray


class Shrinkage:
    """How values of groups are drawn to those of the wider groups, for one column.

    Parameters
    ----------
    parents : list of ndarray
        For every level, from the widest, the place of the wider group of each group; that of the
        widest is 0, all.
    farthest : float
        Standard errors that a group of rows is drawn by at most.

    Attributes
    ----------
    between : list of float
        Variance between the groups of a wider one, by level.
    between_new : list of float
        The same as a new group has to reckon with: odd groups count.
    said, variance, weight : list of ndarray
        What the groups of every level say by themselves, how uncertain that is, and the sum of
        the weights of the narrower groups that say it; the first is that of all.
    drawn : list of Drawn
        The same drawn to the wider groups.
    """

    def __init__(self, parents: list[IntArray], farthest: float) -> None:
        self.parents = parents
        self.farthest = farthest

    def fit(self, values: FloatArray, variances: FloatArray) -> "Shrinkage":
        """Learn from the values of the narrowest groups; NaN where they say nothing."""
        depth = len(self.parents)
        self.between, self.between_new = [0.0] * depth, [0.0] * depth
        said, variance = [values], [variances]
        weight = [np.where(np.isnan(values), 0.0, 1.0)]
        for level in range(depth - 1, -1, -1):
            parent = self.parents[level]
            n_wider = 1 if level == 0 else len(self.parents[level - 1])
            self.between[level], self.between_new[level] = between_groups(
                said[0], variance[0], parent, n_wider
            )
            wider, total = joined(said[0], variance[0], self.between[level], parent, n_wider)
            with np.errstate(divide="ignore"):
                said.insert(0, wider)
                variance.insert(0, 1.0 / total)
            weight.insert(0, total)
        self.said, self.variance, self.weight = said, variance, weight
        self.drawn = [Drawn(said[0], variance[0])]
        for level, at in enumerate(self.parents):
            all_of = self.drawn[level]
            around = Drawn(all_of.value[at], all_of.variance[at])
            self.drawn.append(self.draw(level, said[level + 1], variance[level + 1], around))
        return self

    def draw(self, level: int, value: FloatArray, variance: FloatArray, wider: Drawn) -> Drawn:
        """Draw values of groups of a level to those of their wider groups."""
        between = self.between[level]
        is_known = ~np.isnan(value) & (variance < np.inf)
        v = np.where(is_known, variance, 1.0)
        own = between / (between + v) if between > 0 else np.zeros(len(v))
        step = (1.0 - own) * (wider.value - np.where(is_known, value, wider.value))
        if level == len(self.parents) - 1:
            most = self.farthest * np.sqrt(v)
            step = np.clip(step, -most, most)
        drawn = np.where(is_known, value + step, wider.value)
        left = own * v + (1.0 - own) ** 2 * wider.variance
        return Drawn(drawn, np.where(is_known, left, wider.variance + self.between_new[level]))

    def without(self, place: IntArray, value: FloatArray, variance: FloatArray) -> Drawn:
        """Draw what the groups of rows say without these, each to a wider group without it, too.

        `place` is the group of each row.
        """
        level = len(self.parents) - 1
        parent, between = self.parents[level][place], self.between[level]
        before, v = self.said[-1][place], self.variance[-1][place]
        with np.errstate(divide="ignore"):
            gone = np.where(np.isnan(before), 0.0, 1.0 / (between + v))
            come = np.where(np.isnan(value), 0.0, 1.0 / (between + variance))
        total, middle = self.weight[level][parent], self.said[level][parent]
        left = total - gone + come
        move = come * (np.nan_to_num(value) - middle) - gone * (np.nan_to_num(before) - middle)
        is_left = left > 1e-9 * total
        move = np.where(is_left, move / np.where(is_left, left, 1.0), 0.0)
        # a group that is pulled in, as it is odd, has moved the wider one by less
        most = np.sqrt(1.0 / np.where(is_left, left, 1.0))
        wider = Drawn(
            self.drawn[level].value[parent] + np.clip(move, -most, most),
            self.drawn[level].variance[parent],
        )
        return self.draw(level, value, variance, wider)

    @property
    def extra(self) -> FloatArray:
        """Variance that a row has beside that of rows of a group, by level at which it is known.

        The first is that of a row of which nothing is known, the last, 0, that of a row of a
        known narrowest group.
        """
        return np.append(np.cumsum(self.between_new[::-1])[::-1], 0.0)


class KnownShrinkage(Shrinkage):
    """How values of new groups are drawn to `wider`, the wider group of each, learned before.

    On `depth` levels; `between` and `between_new` are those of the narrowest.
    """

    def __init__(
        self, depth: int, farthest: float, between: float, between_new: float, wider: Drawn
    ) -> None:
        super().__init__([np.zeros(len(wider.value), dtype=np.intp)] * depth, farthest)
        self.between, self.between_new = [between] * depth, [between_new] * depth
        self.wider = wider

    def draw(self, level: int, value: FloatArray, variance: FloatArray, wider: Drawn) -> Drawn:
        """Draw values of new groups; the less is known of a wider group, the less to it."""
        is_known = ~np.isnan(value) & (variance < np.inf)
        v = np.where(is_known, variance, 1.0)
        own = 1.0 - v / (self.between[level] + wider.variance + v)
        most = self.farthest * np.sqrt(v)
        step = np.clip((1.0 - own) * (wider.value - np.where(is_known, value, 0.0)), -most, most)
        drawn = np.where(is_known, value + step, wider.value)
        return Drawn(drawn, np.where(is_known, own * v, wider.variance + self.between_new[level]))

    def fit(self, values: FloatArray, variances: FloatArray) -> "KnownShrinkage":
        """Draw the values of the new groups; NaN where they say nothing."""
        last = len(self.parents) - 1
        self.drawn = [self.wider, self.draw(last, values, variances, self.wider)]
        return self

    def without(self, place: IntArray, value: FloatArray, variance: FloatArray) -> Drawn:
        """Draw what the groups of rows say without these."""
        wider = Drawn(self.wider.value[place], self.wider.variance[place])
        return self.draw(len(self.parents) - 1, value, variance, wider)


@dataclass(frozen=True)
class KnownColumn:
    """What one column has learned before: it holds for new groups, too."""

    kurtosis: float
    unit: float
    of_all: float | None
    centres: KnownShrinkage
    spreads: KnownShrinkage


def between_groups(
    values: FloatArray, variances: FloatArray, parent: IntArray, n_wider: int
) -> tuple[float, float]:
    """Return the variance between groups of the same wider one, and that of new ones to expect.

    The first is robust against odd groups; the second allows for them.
    """
    is_known = ~np.isnan(values) & (variances < np.inf)
    x, v, at = values[is_known], variances[is_known], parent[is_known]
    middle, n_of = medians(x, at, n_wider)
    several = n_of[at] > 1
    if not several.any():
        return 0.0, 0.0
    n = n_of[at][several]
    squares = (x - middle[at])[several] ** 2 * n / (n - 1.0)
    v = v[several]
    low, high = 0.0, float(squares.max()) / MEDIAN_OF_SQUARES
    if np.median(squares / np.maximum(v, np.finfo(float).tiny)) > MEDIAN_OF_SQUARES:
        for _ in range(60):
            half = 0.5 * (low + high)
            is_low = np.median(squares / (half + v)) > MEDIAN_OF_SQUARES
            low, high = (half, high) if is_low else (low, half)
            if high - low <= 1e-6 * high:
                break
    robust = low
    most = 25.0 * (robust + v)
    with_odd = float(np.mean(np.minimum(squares, most) - v))
    n_found, n_free = len(squares), len(squares) - len(np.unique(at[several]))
    few = stdtrit(max(n_free, LEAST_FREEDOM), QUANTILE) / ndtri(QUANTILE)
    # of the distances of one more group, as many are below it as QUANTILE says
    place = min(int(np.ceil((2.0 * QUANTILE - 1.0) * (n_found + 1))), n_found) - 1
    farthest = float(np.partition(np.maximum(squares - v, 0.0), place)[place])
    new = max(robust * few**2, with_odd * few**2, farthest / ndtri(QUANTILE) ** 2)
    return robust, new


def joined(
    values: FloatArray, variances: FloatArray, between: float, parent: IntArray, n_wider: int
) -> tuple[FloatArray, FloatArray]:
    """Return what wider groups say by their groups, and the sums of the weights of these.

    Groups that are farther out than three standard deviations are pulled in.
    """
    with np.errstate(divide="ignore"):
        weight = 1.0 / np.maximum(between + variances, np.finfo(float).tiny)
    is_known = ~np.isnan(values) & (variances < np.inf)
    x, w, at = values[is_known], weight[is_known], parent[is_known]
    middle, _ = medians(x, at, n_wider)
    reach = FARTHEST_ROW / np.sqrt(w)
    near = middle[at] + np.clip(x - middle[at], -reach, reach)
    order = np.lexsort((x, at))
    total = sums(w[order], at[order], n_wider)
    # about the median: sums of large numbers would lose their digits
    shift = sums((w * (near - middle[at]))[order], at[order], n_wider)
    with np.errstate(invalid="ignore", divide="ignore"):
        return middle + shift / total, total


def medians(x: FloatArray, group: IntArray, n_groups: int) -> tuple[FloatArray, IntArray]:
    """Return the median of each group, NaN if it is empty, and the number of its values."""
    ordered = x[np.lexsort((x, group))]
    count = np.bincount(group, minlength=n_groups)
    start = np.cumsum(count) - count
    found = np.full(n_groups, np.nan)
    some = count > 0
    first, n = start[some], count[some]
    found[some] = ordered[first + (n - 1) // 2] / 2 + ordered[first + n // 2] / 2
    return found, count


def sums(x: NDArray[Any], group: IntArray, n_groups: int) -> FloatArray:
    """Return the sum of the values of each group."""
    return np.bincount(group, x, n_groups).astype(np.float64)


class GroupLevels:
    """Centres and spreads of numbers by group, on one or several levels.

    Attributes
    ----------
    keys_ : list of ndarray
        For each level the groups of training, sorted, as numbers made of the position of the wider
        group and the code of the group.
    widths_ : list of int
        Number of codes of every level.
    counts_ : ndarray of shape (n_groups,)
        Number of training rows of each of the narrowest groups.
    centre_, spread_ : ndarray of shape (n_nodes, m)
        Centre and spread of all rows, then of the groups of each level.
    within_ : ndarray of shape (n_nodes, m)
        The same spread without the variation between groups, in which seasons are measured.
    unit_ : ndarray of shape (m,)
        Usual spread of a group.
    own_ : ndarray of shape (m,)
        Median weight of a group's own rows in its centre: 0 if it is that of the wider group, 1 if
        it is not shrunk at all.
    kurtosis_, of_all_ : ndarray of shape (m,)
        Kurtosis within groups, NaN for a column without values of groups; variance of all groups
        together, NaN unless they are too small to say their own.
    between_ : ndarray of shape (4, n_levels, m)
        Variances between groups of centres, without odd groups and with, and the same of
        logarithms of variances.
    wider_ : ndarray of shape (4, n_wider, m)
        Centres and how uncertain they are, and the same of logarithms of variances: of all rows,
        then of the groups of each level but the narrowest.
    """

    keys_: list[IntArray]
    widths_: list[int]
    kurtosis_: FloatArray | None = None  # of levels that were saved before there was this

    def fit(self, codes: FloatArray, X: FloatArray) -> "GroupLevels":
        """Learn from rows; see `fit_held_out`."""
        self.fit_held_out(codes, X)
        return self

    def fit_held_out(
        self, codes: FloatArray, X: FloatArray, together: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Learn from rows, and return centre and spread of each as learned from the others.

        Parameters
        ----------
        codes : ndarray of shape (n, n_levels)
            Codes of the groups of each row, widest first; -1 and NaN are unknown.
        X : ndarray of shape (n, m)
            Numbers, NaN for gaps.
        together : ndarray of shape (n,), default=None
            Rows with the same number, such as those of one run, are held out together.

        Returns
        -------
        tuple of ndarray of shape (n, m)
            Centre and spread for each row, learned without it.
        """
        parents = self._number(codes)
        if not parents:
            return self._fit_all(X)
        place = self.places(codes)[-1]
        n_groups, m = len(self.keys_[-1]), X.shape[1]
        self.counts_ = np.bincount(place[place >= 0], minlength=n_groups)
        n_nodes = 1 + sum(map(len, self.keys_))
        self.centre_ = np.zeros((n_nodes, m))
        self.spread_, self.within_ = np.ones((2, n_nodes, m))
        self.unit_, self.own_ = np.ones((2, m))
        self.kurtosis_, self.of_all_ = np.full((2, m), np.nan)
        self.between_ = np.zeros((4, len(parents), m))
        self.wider_ = np.zeros((4, n_nodes - n_groups, m))
        fitted = [self._fit_column(j, X[:, j], place, parents) for j in range(m)]
        centre, spread = self.usual(codes)
        for j, column in enumerate(fitted):
            if column is not None:
                rows = np.flatnonzero((place >= 0) & ~np.isnan(X[:, j]))
                run = rows if together is None else together[rows]
                found = column.held_out(X[rows, j], place[rows], run)
                centre[rows, j], spread[rows, j] = found
        return centre, spread

    def with_groups(
        self, codes: FloatArray, X: FloatArray
    ) -> tuple["GroupLevels", FloatArray, FloatArray]:
        """Return levels that know the groups of rows, too; those that are known stay as they are.

        And centre and spread of each row, for a row of a new group as learned without it. The
        levels are the same ones if no group is new; `codes` and `X` as in `fit_held_out`.
        """
        is_known = self.places(codes)[-1] >= 0
        rows = np.flatnonzero(~is_known & (codes >= 0).all(axis=1))
        if self.kurtosis_ is None or not len(rows):
            return self, *self.usual(codes)
        fresh = copy(self)
        wider, is_new = fresh._add(self, codes[rows])
        group = fresh.places(codes[rows])[-1]
        fresh.counts_[is_new] = np.bincount(group, minlength=len(is_new))[is_new]
        node = len(fresh.centre_) - len(is_new) + np.flatnonzero(is_new)
        place = np.cumsum(is_new)[group] - 1
        centre, spread = fresh.usual(codes)
        for j in range(X.shape[1]):
            x = X[rows, j]
            there = np.flatnonzero(~np.isnan(x))
            if np.isnan(self.kurtosis_[j]) or not len(there):
                continue
            learned = self._learned(j, wider[:, is_new, j])
            parents = learned.centres.parents
            column = GroupColumn(x[there], place[there], parents, learned)
            fresh.centre_[node, j], fresh.spread_[node, j] = column.of_groups()
            fresh.within_[node, j] = fresh.spread_[node, j]
            found = column.held_out(x[there], place[there], np.arange(len(there)))
            centre[rows[there], j], spread[rows[there], j] = found
        return fresh, centre, spread

    def _add(self, before: "GroupLevels", codes: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Take up the groups of rows, as yet with what is usual for their wider groups.

        Returns the wider group of each narrowest one, as `wider_` has it, and whether each of
        these is new.
        """
        self.keys_, self.widths_ = [], []
        moved, parent = np.zeros(1, dtype=np.intp), np.zeros(len(codes), dtype=np.intp)
        # of the groups of a level: the node of before that is usual, and what they are drawn to
        origin, around = np.zeros(1, dtype=np.intp), before.wider_[:, :1]
        origins, drawn, start = [origin], [around], 1
        for level, (keys, width) in enumerate(zip(before.keys_, before.widths_, strict=True)):
            code = _whole(codes[:, level])
            wide = max(width, int(code.max()) + 1)
            old = moved[keys // width] * wide + keys % width
            wanted = parent * wide + code
            found = np.unique(np.append(old, wanted))
            moved, parent = np.searchsorted(found, old), np.searchsorted(found, wanted)
            self.keys_.append(found)
            self.widths_.append(wide)
            is_new = np.ones(len(found), dtype=bool)
            is_new[moved] = False
            origin, around = origin[found // wide], around[:, found // wide]
            origin[moved] = np.arange(start, start + len(keys))
            origins.append(origin)
            if level < len(before.keys_) - 1:
                # a new wider group may be as far out as any
                around[1::2, is_new] += before.between_[1::2, level, np.newaxis]
                around[:, moved] = before.wider_[:, start : start + len(keys)]
                drawn.append(around)
            start += len(keys)
        node = np.concatenate(origins)
        self.centre_, self.spread_ = before.centre_[node], before.spread_[node]
        self.within_ = before.within_[node]
        self.wider_ = np.concatenate(drawn, axis=1)
        self.counts_ = np.zeros(len(is_new), dtype=before.counts_.dtype)
        self.counts_[moved] = before.counts_
        return around, is_new

    def _learned(self, j: int, wider: FloatArray) -> KnownColumn:
        """Return what one column has learned, for new groups of these wider ones."""
        assert self.kurtosis_ is not None
        depth, between = len(self.keys_), self.between_[:, -1, j].tolist()
        centre, centre_variance, spread, spread_variance = wider
        around = Drawn(centre, centre_variance), Drawn(spread, spread_variance)
        return KnownColumn(
            float(self.kurtosis_[j]),
            float(self.unit_[j]),
            None if np.isnan(self.of_all_[j]) else float(self.of_all_[j]),
            KnownShrinkage(depth, FARTHEST_CENTRE, between[0], between[1], around[0]),
            KnownShrinkage(depth, FARTHEST_SPREAD, between[2], between[3], around[1]),
        )

    def places(self, codes: FloatArray) -> list[IntArray]:
        """Return the place of the group of each row on every level, -1 if it is not known."""
        parent = np.zeros(len(codes), dtype=np.intp)
        found = []
        for level, keys in enumerate(self.keys_):
            code = _whole(codes[:, level])
            wanted = parent * self.widths_[level] + code
            at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
            is_known = (parent >= 0) & (code >= 0) & (code < self.widths_[level])
            is_known &= len(keys) > 0 and keys[at] == wanted
            parent = np.where(is_known, at, -1)
            found.append(parent)
        return found

    def nodes(self, codes: FloatArray) -> IntArray:
        """Return where the centre of each row is: that of the narrowest group that is known."""
        node, start = np.zeros(len(codes), dtype=np.intp), 1
        for keys, place in zip(self.keys_, self.places(codes), strict=True):
            node = np.where(place >= 0, start + place, node)
            start += len(keys)
        return node

    def usual(self, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread for every row and column."""
        node = self.nodes(codes)
        return self.centre_[node], self.spread_[node]

    def within(self, codes: FloatArray) -> FloatArray:
        """Return the spread within the group of every row: less than `usual` says if it is new."""
        return self.within_[self.nodes(codes)]

    def _number(self, codes: FloatArray) -> list[IntArray]:
        """Give the groups of every level numbers; return the wider group of each."""
        self.keys_ = []
        self.widths_ = []
        parents: list[IntArray] = []
        parent = np.zeros(len(codes), dtype=np.intp)
        for level in range(codes.shape[1]):
            code = _whole(codes[:, level])
            is_known = (parent >= 0) & (code >= 0)
            width = int(code.max(initial=0)) + 1
            wanted = parent * width + code
            keys, at = np.unique(wanted[is_known], return_inverse=True)
            self.keys_.append(keys)
            self.widths_.append(width)
            parents.append(keys // width)
            parent = np.full(len(codes), -1)
            parent[is_known] = at
        return parents

    def _fit_all(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Learn from rows that are all one group; of so many none moves the centre."""
        m = X.shape[1]
        self.counts_ = np.array([len(X)])
        self.centre_, self.spread_ = np.zeros((1, m)), np.ones((1, m))
        self.own_ = np.ones(m)
        for j in range(m):
            x = np.sort(X[~np.isnan(X[:, j]), j])
            if not len(x):
                continue
            one = np.zeros(len(x), dtype=np.intp)
            middle, count = medians(x, one, 1)
            reach = reach_of_groups(np.abs(x - middle), one, count)
            near = np.clip(x, middle - reach, middle + reach)
            self.centre_[0, j], self.spread_[0, j] = near.mean(), near.std() or 1.0
        self.unit_, self.within_ = self.spread_[0], self.spread_
        return self.usual(np.empty((len(X), 0)))

    def _fit_column(
        self, j: int, x: FloatArray, place: IntArray, parents: list[IntArray]
    ) -> "GroupColumn | None":
        """Learn centres and spreads of one column; None if no row of a group has a value."""
        present = ~np.isnan(x)
        rows = present & (place >= 0)
        if not rows.any():
            there = x[present]
            self.centre_[:, j] = np.median(there) if len(there) else 0.0
            self.spread_[:, j] = self.unit_[j] = (there.std() if len(there) else 1.0) or 1.0
            self.within_[:, j] = self.unit_[j]
            return None
        column = GroupColumn(x[rows], place[rows], parents)
        self.centre_[:, j], self.spread_[:, j], self.within_[:, j] = column.usual()
        self.unit_[j], self.own_[j] = column.unit, column.own
        assert self.kurtosis_ is not None
        self.kurtosis_[j] = column.kurtosis
        self.of_all_[j] = np.nan if column.of_all is None else column.of_all
        for k, of in enumerate((column.centres, column.spreads)):
            self.between_[2 * k, :, j], self.between_[2 * k + 1, :, j] = of.between, of.between_new
            wider = of.drawn[:-1]
            self.wider_[2 * k, :, j] = np.concatenate([drawn.value for drawn in wider])
            self.wider_[2 * k + 1, :, j] = np.concatenate([drawn.variance for drawn in wider])
        return column


class GroupColumn:
    """What is usual for groups in one column.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values, without gaps.
    place : ndarray of shape (n,)
        Group of each.
    parents : list of ndarray
        See `Shrinkage`.
    learned : KnownColumn, default=None
        What was learned before, if these are new groups.
    """

    def __init__(
        self,
        x: FloatArray,
        place: IntArray,
        parents: list[IntArray],
        learned: KnownColumn | None = None,
    ) -> None:
        n_groups = len(parents[-1])
        middle, count = medians(x, place, n_groups)
        reach = reach_of_groups(np.abs(x - middle[place]), place, count)
        self.low, self.high = middle - reach, middle + reach
        near = np.clip(x, self.low[place], self.high[place])
        order = np.lexsort((near, place))  # in which order the rows came changes no bit
        near, at = near[order], place[order]
        n = np.maximum(count, 1)
        mean = middle + sums(near - middle[at], at, n_groups) / n
        deviation = near - mean[at]
        squares = sums(deviation**2, at, n_groups)
        squares[squares <= 1e-26 * sums(near**2, at, n_groups)] = 0.0  # rounding
        if learned is None:
            self.kurtosis = _kurtosis(deviation, at, squares, n)
            unit = np.sqrt(np.median((squares / n)[at])) or np.sqrt(squares.sum() / len(x))
            # constant in every group: a change counts as one of a column that hardly varies
            means = mean[count > 0]
            self.unit = float(unit or 1e-3 * (np.ptp(means) or np.abs(means[0])) or 1.0)
        else:
            self.kurtosis, self.unit = learned.kurtosis, learned.unit
        is_flat = sums(near == middle[at], at, n_groups) > 0.5 * count
        pseudo = np.where(is_flat, self.unit**2, 0.0)
        self.own_rows = Statistics(count.astype(float), mean, squares, pseudo)
        if learned is None:
            # where groups are too small, those of all together
            is_small = not ((count >= FEWEST_SPREAD) & (squares + pseudo > 0)).any()
            self.of_all = self._variance_of_all(x, squares, count) if is_small else None
            self.spreads = Shrinkage(parents, FARTHEST_SPREAD)
            self.centres = Shrinkage(parents, FARTHEST_CENTRE)
        else:
            self.of_all = learned.of_all
            self.spreads, self.centres = learned.spreads, learned.centres
        self.spreads.fit(*self._of_spreads(self.own_rows))
        self.centres.fit(mean, self._of_centres(self.own_rows, self.spreads.drawn[-1]))

    @property
    def own(self) -> float:
        """How far the centre of a group is its own, in the median of groups."""
        between, v = self.centres.between[-1], self.centres.variance[-1]
        return float(np.median(between / (between + v)))

    def usual(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return centres, spreads and spreads within groups: of all, then of every level."""
        centres, spreads = self.centres, self.spreads
        found, inner = [], []
        for level, (centre, spread) in enumerate(zip(centres.drawn, spreads.drawn, strict=True)):
            is_last = level == len(centres.drawn) - 1
            within = _tail_variance(spread) if is_last else _variance(spread, spreads.extra[level])
            found.append(np.sqrt(within + centre.variance + centres.extra[level]))
            inner.append(found[-1] if is_last else np.sqrt(_variance(spread)))
        values = [drawn.value for drawn in centres.drawn]
        return np.concatenate(values), np.concatenate(found), np.concatenate(inner)

    def of_groups(self) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread of the narrowest groups."""
        centre, spread = self.centres.drawn[-1], self.spreads.drawn[-1]
        return centre.value, np.sqrt(_tail_variance(spread) + centre.variance)

    def held_out(
        self, x: FloatArray, place: IntArray, run: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return centre and spread of the rows that this was learned from, without their runs."""
        own = self.own_rows
        whole = Statistics(own.count[place], own.mean[place], own.squares[place], own.pseudo[place])
        near = np.clip(x, self.low[place], self.high[place])
        _, part = np.unique(place * (run.max() + 1) + run, return_inverse=True)
        n_parts = int(part.max()) + 1
        count = np.bincount(part, minlength=n_parts).astype(np.float64)
        # from the mean of the group: sums of large numbers would lose their digits
        apart = near - whole.mean
        mean = sums(apart, part, n_parts) / count
        squares = sums((apart - mean[part]) ** 2, part, n_parts)
        gone = Statistics(
            count[part], whole.mean + mean[part], squares[part], np.zeros_like(squares[part])
        )
        left = whole.without(gone)
        value, variance = self._of_spreads(left)
        spread = self.spreads.without(place, value, variance)
        centre = self.centres.without(place, left.mean, self._of_centres(left, spread))
        # as sure as of fresh rows: else the others, which are fewer, would seem nearer
        spread = Drawn(spread.value, self.spreads.drawn[-1].variance[place])
        return centre.value, np.sqrt(_tail_variance(spread) + centre.variance)

    def _variance_of_all(self, x: FloatArray, squares: FloatArray, count: IntArray) -> float:
        """Return the variance within groups; that of all rows if no group has several."""
        n_free = len(x) - int(np.sum(count > 0))
        found = squares.sum() / n_free if n_free else np.var(x)
        return max(float(found), 1e-3 * self.unit**2)

    def _of_spreads(self, rows: Statistics) -> tuple[FloatArray, FloatArray]:
        """Return logarithms of variances, and how uncertain these are.

        They are those of chi-squared variables, of fewer degrees of freedom the heavier the tails.
        """
        if self.of_all is not None:  # no group says anything of its own
            n = len(rows.count)
            return np.full(n, np.log(self.of_all)), np.full(n, 1e-3)
        is_said = (rows.count >= FEWEST_SPREAD) & (rows.variance > 0)
        half = np.where(is_said, (rows.count - 1.0) / (self.kurtosis - 1.0), 1.0)
        bias = digamma(half) - np.log(half)
        value = np.log(np.where(is_said, rows.variance, 1.0)) - bias
        uncertain = polygamma(1, half)
        return np.where(is_said, value, np.nan), np.where(is_said, uncertain, np.inf)

    def _of_centres(self, rows: Statistics, spread: Drawn) -> FloatArray:
        """Return how uncertain means of rows are."""
        with np.errstate(divide="ignore"):
            return np.where(rows.count > 0, _variance(spread) / rows.count, np.inf)


def _whole(codes: FloatArray) -> IntArray:
    """Return codes as whole numbers, -1 for what is not known."""
    return np.where(np.isnan(codes), -1, codes).astype(np.intp)


def _variance(spread: Drawn, extra: float = 0.0) -> FloatArray:
    """Return the mean variance, from its logarithm and how uncertain that is."""
    return np.exp(spread.value + np.minimum(0.5 * (spread.variance + extra), 2.0))


def _tail_variance(spread: Drawn) -> FloatArray:
    """Return the variance of a normal variable that is as often far out as rows of a group.

    As its variance is uncertain, that is a t variable, of more degrees of freedom the surer it is.
    """
    half = np.maximum(1.0 / spread.variance + 0.5, LEAST_FREEDOM / 2)  # of the trigamma function
    log_variance = spread.value + digamma(half) - np.log(half)
    known = np.geomspace(LEAST_FREEDOM / 2, 1e4, 300)
    factors = stdtrit(2.0 * known, TAIL) / ndtri(TAIL)
    factor = np.interp(np.log(half), np.log(known), factors)
    found: FloatArray = np.exp(log_variance) * factor**2
    return found


def reach_of_groups(distance: FloatArray, place: IntArray, count: IntArray) -> FloatArray:
    """Return how far from its median a row of each group counts in full."""
    ordered = distance[np.lexsort((distance, place))]
    start = np.cumsum(count) - count
    told = np.minimum(start + (NEAREST_SHARE * (count - 1)).astype(np.intp), len(ordered) - 1)
    reach = ordered[told] * (FARTHEST_ROW / NEAREST_DISTANCE)
    return np.where((count >= FEWEST_PULLED) & (reach > 0), reach, np.inf)


def warn_of_groups(levels: GroupLevels, names: Sequence[str]) -> None:
    """Warn of columns in `by` that divide no group of those named before, and of single rows."""
    given = names[0] if len(names) == 1 else list(names)
    n_single = int((levels.counts_ == 1).sum())
    if 2 * n_single > len(levels.counts_):
        warnings.warn(
            f"by={given!r} makes {len(levels.counts_):,} groups, and {n_single:,} of them "
            "have a single row, which tells nothing of what is usual: their rows may raise many "
            "more false alarms than stated. Name columns whose values come more often.",
            SuspectInputWarning,
            stacklevel=4,
        )
    sizes = [len(keys) for keys in levels.keys_]
    for k in range(1, len(sizes)):
        if sizes[k] == sizes[k - 1]:
            wider = list(names)
            wider.insert(k - 1, wider.pop(k))
            warnings.warn(
                f"by={list(names)!r}: {names[k]!r} divides none of the {sizes[k]:,} groups that "
                f"{names[k - 1]!r} makes. The widest comes first: by={wider!r}, or leave it out.",
                SuspectInputWarning,
                stacklevel=4,
            )


def _kurtosis(deviation: FloatArray, place: IntArray, squares: FloatArray, n: IntArray) -> float:
    """Return the kurtosis within groups, of at least 4 rows, between 2 and 30."""
    variance = squares / n
    fourth = sums(deviation**4, place, len(n)) / n
    chosen = (variance > 0) & (n >= 4)
    if not chosen.any():
        return 3.0
    of_groups = fourth[chosen] / variance[chosen] ** 2
    # of few rows it is too low: for normal ones by 6 / (n + 1)
    of_groups = of_groups + 6.0 / (n[chosen] + 1.0)
    return float(np.clip(np.average(of_groups, weights=n[chosen]), 2.0, 30.0))
