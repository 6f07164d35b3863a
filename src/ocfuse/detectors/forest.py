"""Isolation forest: how many random cuts it takes to be alone."""

import math
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ocfuse.arrays import FloatArray
from ocfuse.cost import Cost, Shape
from ocfuse.detectors.base import (
    N_FOLDS,
    BaseDetector,
    interleaved_folds,
    out_of_fold_scores,
    require_count,
)
from ocfuse.detectors.gram import Gram, Query
from ocfuse.exceptions import InvalidInputError
from ocfuse.kernels import kernel, thread_count
from ocfuse.system.packages import slow

#: Trees compare in single precision; values beyond its largest are taken as this.
LARGEST_SINGLE = float(np.finfo(np.float32).max)


class Trees:
    """Trees as scoring needs them, each filled up to a complete tree of one height.

    The root is node 1 and node i has the children 2 i and 2 i + 1: none is
    stored, and every row takes as many steps as the trees are high. What
    grows below a leaf to fill up the tree ends in leaves like it.

    They are made of fitted trees, the `tree_` of scikit-learn. At node i a row goes right if its
    feature exceeds the threshold; `lengths` are those of the paths to the leaves. All arrays have
    shape (n_trees, 2^height); column 0 of `features` and `thresholds` is not used.
    """

    def __init__(self, trees: list[Any]) -> None:
        sizes = np.array([tree.node_count for tree in trees])
        first = np.cumsum(sizes) - sizes
        names = ("feature", "threshold", "children_left", "children_right", "n_node_samples")
        feature, threshold, left, right, rows = (
            np.concatenate([getattr(tree, name) for tree in trees]) for name in names
        )
        is_leaf = left < 0
        # Both children of a leaf are the leaf itself.
        own, tree = np.arange(len(left)), np.repeat(first, sizes)
        left, right = np.where(is_leaf, own, left + tree), np.where(is_leaf, own, right + tree)
        nodes, depth = first[:, None], np.zeros((len(trees), 1))
        inner = [nodes]
        for _ in range(max(tree.max_depth for tree in trees)):
            inner.append(nodes)
            depth = np.repeat(depth + ~is_leaf[nodes], 2, axis=1)
            nodes = np.stack([left[nodes], right[nodes]], axis=-1).reshape(len(trees), -1)
        table = np.concatenate(inner, axis=1)
        self.features = np.where(is_leaf, 0, feature).astype(np.int32)[table]
        self.thresholds = _rounded_down(threshold)[table]
        self.lengths: FloatArray = depth + average_length(rows)[nodes]

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

    def _by_numpy(self, X: FloatArray) -> FloatArray:
        """Return the same as the kernel."""
        n_trees, width = self.lengths.shape
        q, m = X.shape
        if self.features.min() < 0 or self.features.max() >= m:
            raise ValueError("a feature is no column of X")
        values = np.clip(X, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32).ravel()
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
    """Score rows by how many random cuts it takes to part them from the others.

    The score is ``-2^(-E[h(x)] / c(r))``, that of scikit-learn's
    `IsolationForest`, whose trees these are: h is the length of the path of a
    row in a tree grown on r rows and c the mean length in a random tree. All
    trees are followed at once, so that a single row takes a fraction of a
    millisecond.

    Out-of-fold scores come from the trees that have not drawn the row. If for some
    row they are fewer than a fourth of all, as they are below about 1.7 r
    rows, four smaller forests are grown for the purpose, each with a fourth of
    the trees and without a fourth of the rows.

    Parameters
    ----------
    n_trees : int, default 100
        Number of trees.
    rows_per_tree : int, default 256
        Number of rows r that each tree draws; cut to the rows there are.
    max_samples : int, optional
        Draw from at most so many rows, evenly spaced.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.
    random_state : int, RandomState instance or None
        Draws rows, features and thresholds.

    Attributes
    ----------
    rows_per_tree_ : int
        r as used.
    trees_ : Trees
        The trees.
    drawn_ : ndarray of shape (n_trees, r)
        Numbers of the rows that each tree has drawn.
    offset_ : float
        Rows that score less are called anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> Forest(random_state=0).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True

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
        """Return what it takes to learn from rows, and to score one."""
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
        forest = slow("sklearn.ensemble").IsolationForest(
            n_estimators=self.n_trees,
            max_samples=self.rows_per_tree_,
            random_state=self.random_state,
        )
        forest.fit(np.clip(gram.X, -LARGEST_SINGLE, LARGEST_SINGLE))
        self.trees_ = Trees([tree.tree_ for tree in forest.estimators_])
        self.drawn_ = np.array(forest.estimators_samples_, dtype=np.int32)

    def _score(self, query: Query) -> FloatArray:
        return self._mean_score(query.X, None)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        n_trees = len(self.drawn_)
        fewest = math.ceil(n_trees / N_FOLDS)
        unseen = np.ones((gram.n_rows, n_trees), dtype=bool)
        np.put_along_axis(unseen.T, self.drawn_, False, axis=1)
        if unseen.sum(axis=1).min() >= fewest:
            return self._mean_score(gram.X, unseen)
        forest = clone(self).set_params(n_trees=fewest)
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


def average_length(n: NDArray[np.int_]) -> FloatArray:
    """Return c(n), the mean length of a path in a random tree of n rows."""
    large = np.maximum(n, 3).astype(np.float64)
    harmonic = np.log(large - 1.0) + np.euler_gamma
    lengths: FloatArray = 2.0 * harmonic - 2.0 * (large - 1.0) / large
    return np.where(n > 2, lengths, np.maximum(n - 1.0, 0.0))


@cache
def _usual_length(n: int) -> float:
    return float(average_length(np.array([n]))[0])


def _rounded_down(thresholds: FloatArray) -> NDArray[np.float32]:
    """Return the largest numbers of single precision not above: they part such numbers alike."""
    single = thresholds.astype(np.float32)
    below = np.nextafter(single, np.float32(-np.inf))
    return np.where(single > thresholds, below, single)
