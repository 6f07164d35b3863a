"""Isolation forest: how many random cuts isolate a row."""

import math
from copy import copy
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import Cost, Shape
from ocfuse.detectors.base import (
    N_FOLDS,
    BaseDetector,
    interleaved_folds,
    out_of_fold_scores,
    require_count,
    seed_of,
)
from ocfuse.detectors.gram import Gram, Query, RowChange
from ocfuse.exceptions import InvalidInputError
from ocfuse.kernels import kernel, thread_count

#: Trees compare in single precision; values beyond its largest are taken as this.
LARGEST_SINGLE = float(np.finfo(np.float32).max)
#: Draws of a column before all are looked at, and cells that are looked at together.
MOST_DRAWS, MOST_CELLS = 8, 2**20


class Trees:
    """Trees as scoring needs them, each filled up to a complete tree of one height.

    The root is node 1 and node i has the children 2 i and 2 i + 1: none is
    stored, and every row takes as many steps as the trees are high. What
    grows below a leaf to fill up the tree ends in leaves like it.

    At node i a row goes right if its feature exceeds the threshold; `lengths` are those of the
    paths to the leaves. All arrays have shape (n_trees, 2^height); column 0 of `features` and
    `thresholds` is not used.
    """

    def __init__(
        self, features: NDArray[np.int32], thresholds: NDArray[np.float32], lengths: FloatArray
    ) -> None:
        self.features, self.thresholds, self.lengths = features, thresholds, lengths

    def follow(self, X: FloatArray) -> FloatArray:
        """Return the length of the path of every row in every tree, shape (q, n_trees)."""
        # A feature beyond the columns would read the next row: a file may hold anything.
        try:
            if kernel is None:
                return self._by_numpy(X)
            work = len(X) * len(self.lengths) * self.lengths.shape[1].bit_length()
            lengths: FloatArray = kernel.follow(
                self.features, self.thresholds, self.lengths, X, thread_count(work)
            )
            return lengths
        except ValueError:
            raise InvalidInputError(
                f"The features of the trees must be in [0, {X.shape[1]}), the columns of X. "
                f"Got up to {self.features.max()}. Fit the forest again."
            ) from None

    def with_others(self, others: "Trees", places: IntArray) -> "Trees":
        """Return trees of which those at some places are others."""
        width = max(self.lengths.shape[1], others.lengths.shape[1])
        mine, theirs = self._filled_to(width), others._filled_to(width)
        for i in range(len(mine)):
            np.asarray(mine[i])[places] = theirs[i]
        return Trees(*mine)

    def _filled_to(self, width: int) -> tuple[NDArray[np.int32], NDArray[np.float32], FloatArray]:
        """Return copies of the arrays, of trees that are filled up to so many leaves."""
        n_trees, own = self.lengths.shape
        features = np.zeros((n_trees, width), dtype=np.int32)
        thresholds = np.zeros((n_trees, width), dtype=np.float32)
        features[:, :own], thresholds[:, :own] = self.features, self.thresholds
        return features, thresholds, np.repeat(self.lengths, width // own, axis=1)

    def _by_numpy(self, X: FloatArray) -> FloatArray:
        """Return the same as the kernel."""
        n_trees, width = self.lengths.shape
        q, m = X.shape
        if self.features.min() < 0 or self.features.max() >= m:
            raise ValueError("a feature is no column of X")
        values = _to_single(X).ravel()
        begin = m * np.arange(q)[:, None]
        tree = width * np.arange(n_trees)
        features, thresholds = self.features.ravel(), self.thresholds.ravel()
        node = np.ones((q, n_trees), dtype=np.intp)
        for _ in range(width.bit_length() - 1):
            at = tree + node
            node = 2 * node + (values.take(begin + features.take(at)) > thresholds.take(at))
        lengths: FloatArray = self.lengths.take(tree + node - width)
        return lengths


class Forest(BaseDetector):
    """Isolation forest: score rows by the number of random cuts that isolate them.

    The score is ``-2^(-E[h(x)] / c(r))``, as in scikit-learn's `IsolationForest`: h is the length
    of the path of a row in a tree grown on r rows, and c the mean length in a random tree. All
    trees grow and score together, level by level: to fit a forest takes milliseconds, to score a
    row a fraction of one.

    Out-of-fold scores are computed with the trees that have not drawn the row. If these are fewer
    than a fourth of all trees for some row, as for less than about 1.7 r rows, four more forests
    are grown for these scores, each without a fourth of the rows.

    Parameters
    ----------
    n_trees : int, default 100
        Number of trees.
    rows_per_tree : int, default 256
        Number of rows r that each tree draws, at most the number of rows.
    max_samples : int, optional
        Most rows to draw from, evenly spaced. None draws from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.
    random_state : int, RandomState instance or None
        Seed of the draws of rows, features and thresholds.

    Attributes
    ----------
    rows_per_tree_ : int
        The number r that was used.
    trees_ : Trees
        The trees.
    seed_ : int
        Seed of the random numbers.
    drawn_ : ndarray of shape (n_trees, r)
        Numbers of the rows that each tree drew, as numbered at that time.
    renewed_ : float
        Number of trees replaced by updates, including fractions.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> Forest(random_state=0).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True
    renewed_: float = 0.0

    def __init__(
        self,
        n_trees: int = 100,
        *,
        rows_per_tree: int = 256,
        max_samples: int | None = None,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.rows_per_tree = rows_per_tree
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        return Cost(
            fit_work={"trees": 1 + shape.folds, "paths": shape.rows},
            score_work={"trees": 1},
            fit_bytes={"trees": 1},
            model_bytes={"trees": 1},
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_trees", self.n_trees, 1, "Use 100.")
        require_count("rows_per_tree", self.rows_per_tree, 2, "Use 256.")

    def _fit(self, gram: Gram) -> None:
        self.rows_per_tree_ = min(self.rows_per_tree, gram.n_rows)
        self.seed_ = seed_of(self.random_state)
        rng = np.random.default_rng([self.seed_, 1])
        r = self.rows_per_tree_
        draws = (rng.choice(gram.n_rows, r, replace=False) for _ in range(self.n_trees))
        self.drawn_ = np.sort(np.array(list(draws), dtype=np.int32), axis=1)
        self.trees_ = grow_trees(gram.X, self.drawn_, np.random.default_rng(self.seed_))

    def updated(self, change: RowChange) -> "Forest":
        """Return a copy in which a share of the trees is grown again, on the new rows.

        The share is that of the rows added or, if these are more, dropped. The oldest trees are
        replaced first.
        """
        fresh, n_trees = copy(self), len(self.drawn_)
        fresh.reference_ = change.new
        share = 1.0 / n_trees  # where rows are drawn anew: how many of all are new is not known
        if change.kept is not None:
            n_gone = change.old.n_rows - len(change.kept)
            share = min(1.0, max(len(change.added), n_gone) / change.new.n_rows)
        fresh.renewed_ = self.renewed_ + share * n_trees
        first, last = int(self.renewed_), int(fresh.renewed_)
        places = np.arange(first, min(last, first + n_trees)) % n_trees
        if not len(places):
            return fresh
        r = min(self.rows_per_tree_, change.new.n_rows)
        rng = np.random.default_rng([self.seed_, 2, last])
        draws = (rng.choice(change.new.n_rows, r, replace=False) for _ in places)
        drawn = np.sort(np.array(list(draws), dtype=np.int32), axis=1)
        if r < self.rows_per_tree_:  # fewer rows than a tree has drawn before: nothing fits
            return fresh
        fresh.trees_ = self.trees_.with_others(grow_trees(change.new.X, drawn, rng), places)
        fresh.drawn_ = self.drawn_.copy()
        fresh.drawn_[places] = drawn
        return fresh

    def _score(self, query: Query) -> FloatArray:
        return self._mean_score(query.X, None)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        n_trees = len(self.drawn_)
        fewest = math.ceil(n_trees / N_FOLDS)
        unseen = np.ones((gram.n_rows, n_trees), dtype=bool)
        np.put_along_axis(unseen.T, self.drawn_, False, axis=1)
        if unseen.sum(axis=1).min() >= fewest:
            return self._mean_score(gram.X, unseen)
        # the same seed: trees that are like those that score, but for the rows left out
        forest = clone(self).set_params(random_state=self.seed_)
        return out_of_fold_scores(forest, gram, interleaved_folds(gram.n_rows), by_fold=True)

    def _mean_score(self, X: FloatArray, asked: NDArray[np.bool_] | None) -> FloatArray:
        """Return the score of every row by the trees that are asked, or by all."""
        mean = np.empty(len(X))
        step = max(1, 2**16 // len(self.drawn_))  # pairs of a row and a tree
        for begin in range(0, len(X), step):
            block = slice(begin, begin + step)
            lengths = self.trees_.follow(X[block])
            mean[block] = np.mean(lengths, axis=1, where=True if asked is None else asked[block])
        usual = _usual_length(self.rows_per_tree_)
        # A tree of one row has no cut: nothing is unusual.
        return -np.exp2(-mean / usual) if usual else np.full(len(X), -0.5)


def grow_trees(X: FloatArray, drawn: NDArray[np.int32], rng: np.random.Generator) -> Trees:
    """Grow a tree on each of several draws of rows, all of them level by level.

    A node is cut at a random place of a random column that is not constant there, until its rows
    are alone or alike, or the tree is as high as a balanced one. The same random numbers belong to
    the same node whatever the rows are: trees of one seed on nearly the same rows are alike.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Rows.
    drawn : ndarray of shape (n_trees, r)
        Numbers of the rows of each tree.
    rng : Generator
        Draws columns and places.

    Returns
    -------
    Trees
        The trees.
    """
    n_trees, r = drawn.shape
    highest = math.ceil(math.log2(max(r, 2)))
    values = _to_single(X)
    chance = rng.random((2**highest, 2, n_trees))
    # entries, a row in a tree each, are kept node by node; a node is a tree and a place in it
    row, size = drawn.ravel(), np.full(n_trees, r)
    tree, place = np.arange(n_trees), np.ones(n_trees, dtype=np.int64)
    cuts, leaves = [], []
    for depth in range(highest + 1):
        column = np.full(len(size), -1)
        if depth < highest:
            first = (chance[place, 0, tree] * values.shape[1]).astype(np.intp)
            column, low, high = _drawn_columns(values, row, size, first, rng)
        is_leaf = column < 0
        length = depth + average_length(size[is_leaf])
        leaves.append((tree[is_leaf], place[is_leaf], length))
        if is_leaf.all():
            break
        kept = ~is_leaf
        row, size = row[np.repeat(kept, size)], size[kept]
        tree, place, column = tree[kept], place[kept], column[kept]
        low, high = low[kept], high[kept]
        share = chance[place, 1, tree]
        threshold = _rounded_down((1.0 - share) * low + share * high)
        # both sides get a row, whatever was rounded
        threshold = np.where((threshold >= low) & (threshold < high), threshold, low)
        cuts.append((tree, place, column, threshold.astype(np.float32)))
        node = np.repeat(np.arange(len(size)), size)
        goes_right = values[row, column[node]] > cuts[-1][3][node]
        row = row[np.argsort(2 * node + goes_right, kind="stable")]
        n_right = np.add.reduceat(goes_right, np.cumsum(size) - size, dtype=np.int64)
        size = np.column_stack([size - n_right, n_right]).ravel()
        tree, place = np.repeat(tree, 2), np.column_stack([2 * place, 2 * place + 1]).ravel()
    return _filled_up(n_trees, depth, cuts, leaves)


def _drawn_columns(
    values: NDArray[np.float32],
    row: NDArray[np.int32],
    size: IntArray,
    column: IntArray,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the column of every node that was drawn for it, and its range there.

    A constant one is drawn again: so all others are equally likely. Where that happens many times
    in a row, all columns are looked at; where all are constant, the column is -1.
    """
    low, high = np.zeros(len(size)), np.zeros(len(size))
    open_nodes = np.flatnonzero(size > 1)
    entries = row[np.repeat(size > 1, size)]
    for _ in range(MOST_DRAWS):
        if not len(open_nodes):
            break
        sizes = size[open_nodes]
        found = values[entries, np.repeat(column[open_nodes], sizes)]
        first = np.cumsum(sizes) - sizes
        low[open_nodes] = np.minimum.reduceat(found, first)
        high[open_nodes] = np.maximum.reduceat(found, first)
        again = ~(high[open_nodes] > low[open_nodes])
        entries, open_nodes = entries[np.repeat(again, sizes)], open_nodes[again]
        column[open_nodes] = rng.integers(values.shape[1], size=len(open_nodes))
    column[size <= 1] = column[open_nodes] = -1
    n_at_once = max(1, MOST_CELLS // (values.shape[1] * int(size.max())))  # nodes
    for begin in range(0, len(open_nodes), n_at_once):
        nodes = open_nodes[begin : begin + n_at_once]
        first = np.cumsum(size[nodes]) - size[nodes]
        own, entries = np.split(entries, [int(size[nodes].sum())])
        least = np.minimum.reduceat(values[own], first, axis=0)
        most = np.maximum.reduceat(values[own], first, axis=0)
        number = np.cumsum(most > least, axis=1)  # of the columns that vary
        wanted = (rng.random(len(nodes)) * number[:, -1]).astype(np.intp)
        found = np.argmax(number > wanted[:, np.newaxis], axis=1)
        each = np.arange(len(nodes))
        column[nodes] = np.where(number[:, -1] > 0, found, -1)
        low[nodes], high[nodes] = least[each, found], most[each, found]
    return column, low, high


def _filled_up(n_trees: int, height: int, cuts: list[Any], leaves: list[Any]) -> Trees:
    """Return trees of one height from cuts and leaves, level by level: tree, place and values."""
    features = np.zeros((n_trees, 2**height), dtype=np.int32)
    thresholds = np.zeros((n_trees, 2**height), dtype=np.float32)
    for tree, place, column, threshold in cuts:
        features[tree, place], thresholds[tree, place] = column, threshold
    lengths = np.empty((n_trees, 2**height))
    for depth, (tree, place, length) in enumerate(leaves):
        width = 2 ** (height - depth)  # leaves that it becomes
        below = lengths.reshape(n_trees, 2**depth, width)
        below[tree, place - 2**depth] = length[:, np.newaxis]
    return Trees(features, thresholds, lengths)


def average_length(n: NDArray[np.int_]) -> FloatArray:
    """Return c(n), the mean length of a path in a random tree of n rows."""
    large = np.maximum(n, 3).astype(np.float64)
    harmonic = np.log(large - 1.0) + np.euler_gamma
    lengths: FloatArray = 2.0 * harmonic - 2.0 * (large - 1.0) / large
    return np.where(n > 2, lengths, np.maximum(n - 1.0, 0.0))


@cache
def _usual_length(n: int) -> float:
    return float(average_length(np.array([n]))[0])


def _to_single(X: FloatArray) -> NDArray[np.float32]:
    return np.clip(X, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32)


def _rounded_down(thresholds: FloatArray) -> NDArray[np.float32]:
    """Return the largest numbers of single precision not above: they part such numbers alike."""
    single = thresholds.astype(np.float32)
    below = np.nextafter(single, np.float32(-np.inf))
    return np.where(single > thresholds, below, single)
