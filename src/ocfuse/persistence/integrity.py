"""Whether compiled code can follow what a file says: numbers of nodes, rows and columns.

scikit-learn's compiled code trusts fitted arrays. A forged one would make it read, or
write, memory that is not the model's. What is checked here cannot.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._forest import BaseForest
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import OneClassSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

#: Numbers in the state of the Mersenne twister.
TWISTER = 624
#: Numbers in the pool of a seed; more would take long to mix.
POOL = 4


def check_tree(arguments: tuple[Any, ...], state: Mapping[str, Any]) -> None:
    """Refuse a tree of which a node is no child of exactly one node before it."""
    n_features, n_classes, n_outputs = arguments
    _require(
        isinstance(n_classes, np.ndarray)
        and n_classes.ndim == 1
        and n_classes.dtype.kind in "iu"
        and _is_count(n_features)
        and n_outputs == len(n_classes) > 0
        and n_classes.min() >= 1,
        "a tree has other classes than outputs",
    )
    nodes = state["nodes"]
    left, right, feature = (nodes[name] for name in ("left_child", "right_child", "feature"))
    inner = left != -1
    _require(len(nodes) == state["node_count"] > 0, "a tree has not as many nodes as it says")
    _require(bool((right[~inner] == -1).all()), "a leaf of a tree has a child")
    _require(_are_below(feature[inner], n_features), "a tree asks for a column that there is not")
    _require(state["max_depth"] == _depth(left, right, inner), "a tree is not as deep as it says")


def check_metric(state: tuple[Any, ...]) -> None:
    """Refuse a metric whose matrix is not square."""
    _require(state[2].shape[0] == state[2].shape[1], "the matrix of a metric is not square")


def check_neighbour_tree(rows: Any, metric: Any, weights: Any) -> None:
    """Refuse what a tree of neighbours cannot be grown from, or only from a copy."""
    _require(isinstance(rows, np.ndarray) and rows.dtype == np.float64, "a tree has other rows")
    _require(isinstance(metric, DistanceMetric), "a tree of neighbours has no metric")
    _require(weights is None or len(weights) == len(rows), "there is not one weight per row")


def check_twister(state: Mapping[str, Any]) -> None:
    """Refuse a random state that would go on beyond its numbers."""
    inner = state["state"]
    position = inner["pos"]
    _require(
        state["bit_generator"] == "MT19937"
        and len(inner["key"]) == TWISTER
        and _is_count(position)
        and position <= TWISTER,
        "a random state is out of bounds",
    )


def check_attributes(kind: type, attributes: Mapping[str, Any]) -> None:
    """Refuse attributes that hide a method, or that do not belong together."""
    for name in attributes:
        found = inspect.getattr_static(kind, name, None)
        _require(
            isinstance(found, cached_property) or not hasattr(found, "__get__"),
            f"the attribute {name!r} would take the place of a method",
        )
    if not kind.__module__.startswith("sklearn."):
        return
    for known, name, check in CHECKS:
        if issubclass(kind, known) and name in attributes:
            check(attributes)


def _check_own_tree(attributes: Mapping[str, Any]) -> None:
    tree = attributes["tree_"]
    if isinstance(tree, Tree):
        _require(tree.n_features <= _n_columns(attributes), "a tree asks for more columns")


def _check_trees(attributes: Mapping[str, Any]) -> None:
    """Refuse trees that would get fewer columns from their forest than they ask for."""
    trees: list[Any] = [
        getattr(one, "__dict__", {}).get("tree_") for one in attributes["estimators_"]
    ]
    n_columns = _n_columns(attributes)
    columns = attributes.get("estimators_features_") or [range(n_columns)] * len(trees)
    for tree, own in zip(trees, columns, strict=True):
        _require(isinstance(tree, Tree), "a forest is not of trees alone")
        _require(tree.n_features <= min(len(own), n_columns), "a tree asks for more columns")
        # A forest makes room for as many numbers per row as it says itself.
        told = (attributes.get(name) for name in ("n_outputs_", "n_classes_"))
        for said, found in zip(told, (tree.n_outputs, tree.n_classes), strict=True):
            fits = said is None or np.array_equal(np.atleast_1d(said), np.atleast_1d(found))
            _require(fits, "a tree has other classes than its forest")


def _check_machine(attributes: Mapping[str, Any]) -> None:
    """Refuse a support vector machine of which libsvm would read beyond an array."""
    vectors, rows, kernel = (
        attributes[name] for name in ("support_vectors_", "support_", "kernel")
    )
    _require("_impl" not in attributes and not attributes["_sparse"], "a machine is of other rows")
    _require(isinstance(kernel, str) and kernel != "precomputed", "a machine has its own kernel")
    _require(
        vectors.shape == (len(rows), _n_columns(attributes))
        and _are_below(rows, attributes["shape_fit_"][0])
        and _are_below(attributes["_n_support"], len(rows) + 1)
        and attributes["_dual_coef_"].shape == (1, len(rows))
        and len(attributes["_intercept_"]) == 1
        and all(len(attributes[name]) <= 1 for name in ("_probA", "_probB")),
        "the arrays of a support vector machine do not belong together",
    )


def _check_categories(attributes: Mapping[str, Any]) -> None:
    """Refuse codes of categories that would be written beyond their columns."""
    categories, dropped = attributes["categories_"], attributes["_drop_idx_after_grouping"]
    if dropped is None:
        dropped = [None] * len(categories)
    widths = [len(c) - (d is not None) for c, d in zip(categories, dropped, strict=True)]
    _require(
        not attributes["_infrequent_enabled"]
        and attributes["_n_features_outs"] == widths
        and all(d is None or 0 <= d < len(c) for c, d in zip(categories, dropped, strict=True))
        and all(_are_rising(some) for some in categories),
        "categories are not those of their columns, or rare ones are joined",
    )


def _are_rising(categories: NDArray[Any]) -> bool:
    """Tell whether a search by halves finds every category; objects are not looked for so."""
    return categories.dtype == object or bool((categories[:-1] < categories[1:]).all())


def _check_neighbours(attributes: Mapping[str, Any]) -> None:
    rows = attributes["_fit_X"]
    _require(
        isinstance(rows, np.ndarray)
        and rows.shape == (attributes["n_samples_fit_"], _n_columns(attributes)),
        "neighbours are not looked for among the rows of training",
    )
    for name in ("metric_params", "effective_metric_params_"):
        for value in (attributes.get(name) or {}).values():
            sides = set(np.shape(value))
            _require(sides <= {_n_columns(attributes)}, "a metric is not one of these columns")


#: Estimators that need a check, and what they have once they are fitted.
CHECKS: tuple[tuple[type, str, Callable[[Mapping[str, Any]], None]], ...] = (
    (BaseDecisionTree, "tree_", _check_own_tree),
    (BaseForest, "estimators_", _check_trees),
    (IsolationForest, "estimators_", _check_trees),
    (LocalOutlierFactor, "_fit_X", _check_neighbours),
    (NearestNeighbors, "_fit_X", _check_neighbours),
    (OneClassSVM, "_dual_coef_", _check_machine),
    (OneHotEncoder, "categories_", _check_categories),
)


def _depth(left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_]) -> int:
    """Return the depth of a tree, having seen that it is one."""
    children = np.sort(np.concatenate([left[inner], right[inner]]))
    _require(np.array_equal(children, np.arange(1, len(left))), "nodes of a tree are no tree")
    parents = np.flatnonzero(inner)
    _require(
        bool((left[parents] > parents).all() and (right[parents] > parents).all()),
        "nodes of a tree lead back",
    )
    depth, level = 0, np.zeros(1, dtype=np.intp)
    while (level := level[inner[level]]).size:
        level = np.concatenate([left[level], right[level]])
        depth += 1
    return depth


def _are_below(numbers: NDArray[Any], n: int) -> bool:
    """Tell whether all are in [0, n)."""
    return bool(((numbers >= 0) & (numbers < n)).all())


def _n_columns(attributes: Mapping[str, Any]) -> int:
    n_columns = attributes.get("n_features_in_")
    _require(_is_count(n_columns), "an estimator does not say how many columns it learned from")
    assert isinstance(n_columns, int)
    return n_columns


def _is_count(number: Any) -> bool:
    return type(number) is int and number >= 0


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
