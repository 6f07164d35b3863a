"""Whether compiled code can follow what a file says: numbers of nodes, rows and columns.

scikit-learn's compiled code trusts fitted arrays. A forged one would make it read, or
write, memory that is not the model's. What is checked here cannot.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.system.packages import slow


@dataclass(frozen=True)
class Unplaced:
    """A compiled object that nobody can call until it stands where `fit` would put it.

    It follows what it is given without looking: only what holds it does look.
    """

    made: Any


def placed(value: Any) -> Any:
    """Return a value for a place where compiled objects may stand."""
    return value.made if isinstance(value, Unplaced) else value


def check_none_unplaced(values: Iterable[Any]) -> None:
    """Refuse a tree outside of its estimator, in a list or in an object of ours."""
    loose = any(isinstance(one, Unplaced) and is_tree(one.made) for one in values)
    require(not loose, "a tree stands where its estimator should")


def is_tree(value: Any) -> bool:
    """Return whether a value is the compiled part of a decision tree."""
    return isinstance(value, slow("sklearn.tree._tree").Tree)


def check_tree(arguments: tuple[Any, ...], state: Mapping[str, Any]) -> None:
    """Refuse a tree of which a node is no child of exactly one node before it."""
    n_features, n_classes, n_outputs = arguments
    require(
        type(n_classes) is np.ndarray
        and n_classes.ndim == 1
        and n_classes.dtype.kind in "iu"
        and _is_count(n_features)
        and n_outputs == len(n_classes) > 0
        and n_classes.min() >= 1,
        "a tree has other classes than outputs",
    )
    nodes = state["nodes"]
    require(
        all(type(state[name]) is np.ndarray for name in ("nodes", "values")),
        "a tree is not of arrays",
    )
    left, right, feature = (nodes[name] for name in ("left_child", "right_child", "feature"))
    inner = left != -1
    require(len(nodes) == state["node_count"] > 0, "a tree has not as many nodes as it says")
    require(bool((right[~inner] == -1).all()), "a leaf of a tree has a child")
    require(are_below(feature[inner], n_features), "a tree asks for a column that there is not")
    require(state["max_depth"] == _depth(left, right, inner), "a tree is not as deep as it says")


def made_metric(kind: Any, state: Any) -> Any:
    """Return a metric made anew from its numbers, which its constructor looks at."""
    require(isinstance(state, tuple) and len(state) == 3, "a metric has no state")
    p, vector, matrix = state
    name = kind.__name__.partition("Distance")[0]
    if name == "Minkowski":
        _require_doubles(vector, 1)
        return kind(float(p), w=vector if len(vector) else None)
    if name == "SEuclidean":
        _require_doubles(vector, 1)
        return kind(vector)
    if name == "Mahalanobis":
        _require_doubles(matrix, 2)
        require(matrix.shape[0] == matrix.shape[1], "the matrix of a metric is not square")
        return kind(VI=matrix)
    return kind()


def check_neighbour_tree(rows: Any, metric: Any, weights: Any) -> None:
    """Refuse what a tree of neighbours cannot be grown from, or only from a copy."""
    require(type(rows) is np.ndarray and rows.dtype == np.float64, "a tree has other rows")
    _require_doubles(rows, 2)
    kind = slow("sklearn.metrics").DistanceMetric
    require(isinstance(metric, kind), "a tree of neighbours has no metric")
    if weights is not None:
        _require_doubles(weights, 1)
        require(len(weights) == len(rows), "there is not one weight per row")


def check_twister(state: Mapping[str, Any]) -> None:
    """Refuse a random state that would go on beyond its numbers."""
    key, position = state["state"]["key"], state["state"]["pos"]
    require(
        state["bit_generator"] == "MT19937"
        and len(key) == 624
        and _is_count(position)
        and position <= 624,
        "a random state is out of bounds",
    )


def check_attributes(kind: type, attributes: Mapping[str, Any]) -> None:
    """Refuse attributes that hide a method."""
    for name in attributes:
        found = inspect.getattr_static(kind, name, None)
        require(
            isinstance(found, cached_property) or not hasattr(found, "__get__"),
            f"the attribute {name!r} would take the place of a method",
        )


def _depth(left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_]) -> int:
    """Return the depth of a tree, having seen that it is one."""
    children = np.sort(np.concatenate([left[inner], right[inner]]))
    require(np.array_equal(children, np.arange(1, len(left))), "nodes of a tree are no tree")
    parents = np.flatnonzero(inner)
    require(
        bool((left[parents] > parents).all() and (right[parents] > parents).all()),
        "nodes of a tree lead back",
    )
    depth, level = 0, np.zeros(1, dtype=np.intp)
    while (level := level[inner[level]]).size:
        level = np.concatenate([left[level], right[level]])
        depth += 1
    return depth


def are_below(numbers: NDArray[Any], n: int) -> bool:
    """Return whether all are in [0, n)."""
    return bool(((numbers >= 0) & (numbers < n)).all())


def n_columns(attributes: Mapping[str, Any]) -> int:
    """Return how many columns an estimator learned from."""
    found = attributes.get("n_features_in_")
    require(_is_count(found), "an estimator does not say how many columns it learned from")
    assert isinstance(found, int)
    return found


def _is_count(number: Any) -> bool:
    return type(number) is int and number >= 0


def _require_doubles(value: Any, n_dimensions: int) -> None:
    require(
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.ndim == n_dimensions
        and bool(np.isfinite(value).all()),
        f"{value!r:.50} is no array of finite numbers of {n_dimensions} dimensions",
    )


def require(holds: bool, message: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise ValueError(message)
