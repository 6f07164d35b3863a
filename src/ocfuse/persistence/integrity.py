"""Whether compiled code can follow what a file says: numbers of nodes, rows and columns.

scikit-learn's compiled code trusts fitted arrays. A forged one would make it read, or
write, memory that is not the model's. What is checked here cannot.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import DistanceMetric
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


def check_predictor(state: Mapping[str, Any]) -> None:
    """Refuse a tree of histogram boosting that leads beyond its arrays."""
    nodes, bitsets = state["nodes"], state["raw_left_cat_bitsets"]
    inner = nodes["is_leaf"] == 0
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    _depth(left, right, inner)
    asked = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
    for array in (bitsets, state["binned_left_cat_bitsets"]):
        _require(array.ndim == 2 and array.shape[1] == 8, "sets of categories have another shape")
        _require(_are_below(asked, len(array)), "a tree asks for categories that there are not")


def check_metric(state: tuple[Any, ...]) -> None:
    """Refuse a metric whose matrix is not square."""
    _require(state[2].shape[0] == state[2].shape[1], "the matrix of a metric is not square")


def check_neighbour_tree(rows: Any, metric: Any, weights: Any) -> None:
    """Refuse what a tree of neighbours cannot be grown from."""
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


def check_estimator(kind: type, attributes: Mapping[str, Any]) -> None:
    """Refuse an estimator of scikit-learn whose parts do not belong together."""
    for name, check in CHECKS.items():
        if name in attributes:
            check(attributes)
    if hasattr(kind, "_impl") and "_dual_coef_" in attributes:
        _check_machine(kind._impl in ("c_svc", "nu_svc"), attributes)


def _check_own_tree(attributes: Mapping[str, Any]) -> None:
    tree = attributes["tree_"]
    if isinstance(tree, Tree):
        _require(tree.n_features <= _n_columns(attributes), "a tree asks for more columns")


def _check_trees(attributes: Mapping[str, Any]) -> None:
    """Refuse trees that would get fewer columns from their forest than they ask for."""
    estimators = attributes["estimators_"]
    if isinstance(estimators, np.ndarray):
        # Gradient boosting adds up the classes in an array whose size others tell.
        _require(estimators.shape[1:] == (1,), "boosting of several classes is not loaded")
    trees = [getattr(one, "__dict__", {}).get("tree_") for one in _leaves(estimators)]
    if not any(isinstance(tree, Tree) for tree in trees):
        return
    n_columns = _n_columns(attributes)
    columns = attributes.get("estimators_features_") or [range(n_columns)] * len(trees)
    for tree, own in zip(trees, columns, strict=True):
        asked = tree.n_features if isinstance(tree, Tree) else 0
        _require(asked <= min(len(own), n_columns), "a tree asks for more columns")


def _check_boosting(attributes: Mapping[str, Any]) -> None:
    """Refuse trees of histogram boosting that ask for other columns."""
    n_columns = _n_columns(attributes)
    is_categorical = attributes["_bin_mapper"].is_categorical_
    _require(is_categorical.shape == (n_columns,), "bins are not those of the columns")
    for predictor in _leaves(attributes["_predictors"]):
        inner = predictor.nodes[predictor.nodes["is_leaf"] == 0]
        columns = inner["feature_idx"]
        _require(_are_below(columns, n_columns), "a tree asks for a column that there is not")
        asked = columns[inner["is_categorical"] != 0]
        _require(bool(is_categorical[asked].all()), "a tree asks for categories of numbers")


def _check_machine(is_classifier: bool, attributes: Mapping[str, Any]) -> None:
    """Refuse a support vector machine of which libsvm would read beyond an array."""
    vectors, rows = attributes["support_vectors_"], attributes["support_"]
    per_class = attributes["_n_support"]
    n_classes = len(per_class) if is_classifier else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    _require("_impl" not in attributes and not attributes["_sparse"], "a machine is of other rows")
    _require(
        n_classes >= 2
        and vectors.ndim == 2
        and vectors.shape[1] in (0, _n_columns(attributes))
        and len(vectors) in (0, len(rows))
        and _are_below(rows, attributes["shape_fit_"][0])
        and _are_below(per_class, len(rows) + 1)
        and (not is_classifier or per_class.sum() == len(rows))
        and attributes["_dual_coef_"].shape == (n_classes - 1, len(rows))
        and len(attributes["_intercept_"]) == n_pairs
        and all(len(attributes[name]) in (0, n_pairs) for name in ("_probA", "_probB")),
        "the arrays of a support vector machine do not belong together",
    )


def _check_neighbours(attributes: Mapping[str, Any]) -> None:
    rows = attributes["_fit_X"]
    _require(
        isinstance(rows, np.ndarray)
        and rows.shape == (attributes["n_samples_fit_"], _n_columns(attributes)),
        "neighbours are not looked for among the rows of training",
    )


#: By an attribute of those estimators that need the check.
CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "tree_": _check_own_tree,
    "estimators_": _check_trees,
    "_predictors": _check_boosting,
    "_fit_X": _check_neighbours,
}


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


def _leaves(nested: Any) -> Iterable[Any]:
    """Return what is in lists and arrays of lists and arrays."""
    if not isinstance(nested, list | np.ndarray):
        return [nested]
    return [leaf for item in nested for leaf in _leaves(item)]


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
