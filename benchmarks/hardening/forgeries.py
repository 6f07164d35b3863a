"""Forged states: every attribute of every fitted object, made longer, flat, huge, shared...

A forgery changes one place of one model. Its description is otherwise what `save` wrote,
and its header fits.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.hardening.parts import Node, Parts, from_npy, to_npy

Changes = dict[str, Callable[[Any], Any]]


@dataclass(frozen=True)
class Place:
    """Where a part stands: in an owner of some class, under a name, inside of what.

    Parameters
    ----------
    owner : str
        Class of the object that has the attribute.
    name : str
        The attribute, and what leads into it.
    steps : tuple
        Keys and positions from the whole description to the part.
    """

    owner: str
    name: str
    steps: tuple[Any, ...]


def _told(value: Any) -> Node:
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
            "content": json.dumps(value)}  # fmt: skip


def _many(kind: str, items: list[Any]) -> Node:
    loader = f"{kind.capitalize()}Node"
    return {
        "__class__": kind,
        "__module__": "builtins",
        "__loader__": loader,
        "content": items,
    }


def _bare(name: str) -> Node:
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": "ObjectNode"}


def _filled(value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        if array.dtype.kind in "iu" and isinstance(value, float):
            return array
        return np.full_like(array, value)

    return change


def _first(value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        made = array.copy()
        made.reshape(-1)[:1] = value
        return made

    return change


#: What becomes of an array. Those that cannot be made of one are left out.
ARRAYS: Changes = {
    "longer": lambda a: np.concatenate([a, a]),
    "much longer": lambda a: np.repeat(a, 40, axis=0),
    "wider": lambda a: np.repeat(a, 2, axis=-1),
    "shorter": lambda a: a[:-1],
    "narrower": lambda a: a[..., :-1],
    "one": lambda a: a[:1],
    "empty": lambda a: a[:0],
    "no columns": lambda a: a[..., :0],
    "flat": lambda a: a.ravel(),
    "transposed": lambda a: a.T,
    "Fortran order": lambda a: np.asfortranarray(a),
    "backwards": lambda a: a[::-1],
    "deeper": lambda a: a[None],
    "deeper at the end": lambda a: a[..., None],
    "a number": lambda a: a.reshape(-1)[0],
    "f4": lambda a: a.astype("f4"),
    "f8": lambda a: a.astype("f8"),
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "i8": lambda a: a.astype("i8"),
    "i4": lambda a: a.astype("i4"),
    "i1": lambda a: a.astype("i1"),
    "u8": lambda a: a.astype("u8"),
    "bool": lambda a: a.astype("?"),
    "complex": lambda a: a.astype("c16"),
    "text": lambda a: a.astype("U9"),
    "dates": lambda a: a.astype("i8").astype("M8[s]"),
    "NaN": _filled(np.nan),
    "one NaN": _first(np.nan),
    "infinite": _filled(np.inf),
    "zero": _filled(0),
    "negative": lambda a: -1 - a,
    "one negative": _first(-1),
    "huge": lambda a: _filled(np.iinfo(a.dtype).max if a.dtype.kind in "iu" else 1e300)(a),
    "one huge": lambda a: _first(np.iinfo(a.dtype).max // 2 if a.dtype.kind in "iu" else 1e300)(a),
    "one more": lambda a: a + 1,
    "constant": lambda a: np.full_like(a, a.reshape(-1)[0]),
}
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 10**6, 2**31, 2**70, -2.5, 1e300, float("nan"), True, "3",
)  # fmt: skip
WORDS: tuple[Any, ...] = (
    "", "precomputed", "mahalanobis", "seuclidean", "euclidean", "haversine", "pyfunc", "brute",
    "kd_tree", "ball_tree", "poly", "chi2", "tied", "diag", "tophat", -1, 1.5, True,
)  # fmt: skip
#: Objects that stand for anything: most are compiled, and hold nothing.
BARE = (
    "sklearn.metrics._dist_metrics.MahalanobisDistance64",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.tree._tree.Tree",
    "sklearn.svm._classes.OneClassSVM",
)
UFUNC = {"__class__": "log1p", "__module__": "numpy", "__loader__": "FunctionNode"}
FLAT, SHORT = np.arange(3.0), np.arange(2.0)
#: Entries that somebody may put into a dictionary, such as options of a metric.
OPTIONS: dict[str, Any] = {
    "VI": FLAT, "V": SHORT, "w": SHORT, "Y_norm_squared": SHORT, "X_norm_squared": SHORT, "p": 0,
    "where": False, "out": FLAT, "squared": True, "n_jobs": 10**6,
}  # fmt: skip


class Forger:
    """All forgeries of one model.

    Parameters
    ----------
    parts : Parts
        The model.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.places = list(_places(parts.schema))
        self._arrays = [node["__id__"] for node in parts.nodes() if _is_array(node)]
        self._read = cache(lambda file: from_npy(parts.entries[file]))

    def all(self) -> Iterator[tuple[Place, str]]:
        """Give the places and what can be done to each."""
        for place in self.places:
            for how in self._ways(self._node(self._parts, place)):
                yield place, how

    def forged(self, forgery: list[tuple[Place, str]]) -> Parts:
        """Return the model with places changed; one that is no longer there is left."""
        changed = self._parts.copy()
        for place, how in forgery:
            with suppress(Exception):
                holder: Any = changed.schema
                for step in place.steps[:-1]:
                    holder = holder[step]
                at = place.steps[-1]
                if how == "missing":
                    _take_out(changed, place, holder, at)
                else:
                    holder[at] = self._replaced(changed, holder[at], how)
        return changed

    @staticmethod
    def _node(parts: Parts, place: Place) -> Node:
        found: Any = parts.schema
        for step in place.steps:
            found = found[step]
        node: Node = found
        return node

    def _ways(self, node: Node) -> Iterator[str]:
        yield from ("missing", "None", "nested", "a ufunc", "shared")
        yield from (f"bare {name.rpartition('.')[2]}" for name in BARE)
        loader = node.get("__loader__")
        if _is_array(node):
            yield from (f"array {how}" for how in ARRAYS if self._changed(node, how) is not None)
            yield "array masked"
        elif loader == "JsonNode":
            words = WORDS if isinstance(json.loads(node["content"]), str) else NUMBERS
            yield from (f"value {value!r}" for value in words)
            yield "an array"
        elif loader == "DictNode":
            yield from ("empty", "list of pairs", *(f"option {name}" for name in OPTIONS))
        elif loader in ("ListNode", "TupleNode"):
            yield from ("empty", "first left out", "last left out", "twice", "other way round")
        elif loader == "ObjectNode":
            yield from ("without state", "list of pairs as state")

    def _changed(self, node: Node, how: str) -> Any:
        """Return the bytes of an array that was changed, if that changes anything."""
        before = self._parts.entries[node["file"]]
        try:
            with np.errstate(all="ignore"):
                after = to_npy(ARRAYS[how](self._read(node["file"])))
        except Exception:  # one that cannot be made of this array
            return None
        return None if after == before else after

    def _replaced(self, parts: Parts, node: Node, how: str) -> Node:
        kind, _, rest = how.partition(" ")
        if how in SIMPLE:
            return SIMPLE[how](node)
        if how == "shared":
            others = [number for number in self._arrays if number != node.get("__id__")]
            return {"__id__": others[len(others) // 2]} if others else _told(None)
        if kind == "bare":
            return _bare(next(name for name in BARE if name.endswith(rest)))
        if kind == "value":
            value = next(v for v in (*NUMBERS, *WORDS) if repr(v) == rest)
            return _told(value)
        if kind == "option":
            value = OPTIONS[rest]
            made = _array(parts, value) if isinstance(value, np.ndarray) else _told(value)
            return _with_key(node, rest, made)
        if how == "array masked":
            return _masked(parts, node)
        if kind == "array":
            parts.entries[node["file"]] = self._changed(node, rest)
            return node
        return _array(parts, FLAT)


def _state_as_pairs(node: Node) -> Node:
    content = node.get("content")
    if not isinstance(content, dict) or content.get("__loader__") != "DictNode":
        return node
    return {**node, "content": _pairs(content)}


def _pairs(node: Node) -> Node:
    """Return what a dictionary can be updated with, and nobody looks at the names of."""
    hiding = _many("tuple", [_told("score_samples"), UFUNC])
    items = [_many("tuple", [_told(key), value]) for key, value in node["content"].items()]
    return _many("list", [*items, hiding])


SIMPLE: dict[str, Callable[[Node], Node]] = {
    "None": lambda node: _told(None),
    "nested": lambda node: _many("list", [node]),
    "a ufunc": lambda node: UFUNC,
    "empty": lambda node: {**node, "content": [], "__id__": -7} if _is_many(node)
    else {**node, "content": {}, "key_types": _many("list", []), "__id__": -7},
    "list of pairs": _pairs,
    "first left out": lambda node: {**node, "content": node["content"][1:]},
    "last left out": lambda node: {**node, "content": node["content"][:-1]},
    "twice": lambda node: {**node, "content": node["content"] * 2},
    "other way round": lambda node: {**node, "content": node["content"][::-1]},
    "without state": lambda node: {k: v for k, v in node.items() if k != "content"},
    "list of pairs as state": _state_as_pairs,
}  # fmt: skip


def _places(schema: Node) -> Iterator[Place]:
    """Give the places that no other of the same owner and name stands for.

    Attributes of our own objects are left to `benchmarks.hardening.mutations`.
    """
    seen = set()
    yield Place(schema["__class__"], "", ("content",))
    waiting: list[tuple[Node, str, str, tuple[Any, ...]]] = [(schema, "", "", ())]
    while waiting:
        node, owner, name, steps = waiting.pop()
        for inner, label, way in _inside(node):
            place = Place(owner, f"{name}{label}", steps + way)
            if node["__loader__"] in ("ObjectNode", "TreeNode"):
                module = node["__module__"].partition(".")[0]
                place = Place(f"{module}.{node['__class__']}", label, place.steps)
            if (place.owner, place.name) not in seen:
                seen.add((place.owner, place.name))
                waiting.append((inner, place.owner, place.name, place.steps))
                if not place.owner.startswith("ocfuse."):
                    yield place


def _inside(node: Node) -> Iterator[tuple[Node, str, tuple[Any, ...]]]:
    content = node.get("content")
    if node["__loader__"] in ("ObjectNode", "TreeNode"):
        if node["__loader__"] == "TreeNode":
            for i, item in enumerate(node["__reduce__"]["args"]["content"]):
                yield item, f"({i})", ("__reduce__", "args", "content", i)
        if isinstance(content, dict):
            for item, label, way in _inside(content):
                yield item, label, ("content", *way)
    elif isinstance(content, dict):
        for key, item in content.items():
            if isinstance(item, dict) and "__loader__" in item:
                yield item, f".{key}", ("content", key)
    elif isinstance(content, list):
        # One item of many is enough, but those of a state are all different.
        kinds = set()
        for i, item in enumerate(content):
            if "__loader__" in item and (len(content) < 20 or item["__loader__"] not in kinds):
                kinds.add(item["__loader__"])
                yield item, f"[{i}]", ("content", i)


def _is_array(node: Node) -> bool:
    return node.get("__loader__") == "NdArrayNode" and node.get("type") == "numpy"


def _is_many(node: Node) -> bool:
    return isinstance(node["content"], list)


def _take_out(parts: Parts, place: Place, holder: Any, at: Any) -> None:
    """Leave out an attribute, with the type of its key."""
    if isinstance(holder, dict) and len(place.steps) > 1:
        dictionary: Any = parts.schema
        for step in place.steps[:-2]:
            dictionary = dictionary[step]
        if "key_types" in dictionary:
            dictionary["key_types"]["content"].pop(list(holder).index(at))
    del holder[at]


def _with_key(node: Node, key: str, value: Node) -> Node:
    one = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
    kinds = node["key_types"]["content"]
    kinds = kinds if key in node["content"] else [*kinds, one]
    return {
        **node,
        "content": {**node["content"], key: value},
        "key_types": _many("list", kinds),
    }


def _array(parts: Parts, array: Any) -> Node:
    name = f"forged-{len(parts.entries)}.npy"
    parts.entries[name] = to_npy(array)
    return {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode",
            "type": "numpy", "file": name}  # fmt: skip


def _masked(parts: Parts, node: Node) -> Node:
    data = from_npy(parts.entries[node["file"]])
    mask = _array(parts, np.zeros(data.shape, dtype=bool))
    return {"__class__": "MaskedArray", "__module__": "numpy.ma", "__loader__": "MaskedArrayNode",
            "content": {"data": node, "mask": mask}}  # fmt: skip
