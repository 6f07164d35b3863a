"""Build a model from the description that `skops` wrote of it, of known types only.

A class that a file names is never called, only its fitted state is put back: what a
constructor does with arguments of a stranger, nobody knows. The few constructors that
are needed get arguments that were checked. Every part is built once; a file that
would have parts repeat beyond its own length, or lead back to themselves, is refused.
"""

import importlib
import inspect
import io
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import sklearn
from scipy.sparse import load_npz
from sklearn.base import BaseEstimator

from ocfuse.persistence import integrity
from ocfuse.persistence.archive import LETTER_BYTES, Archive
from ocfuse.persistence.estimators import FITTED, check_fitted
from ocfuse.persistence.registry import (
    class_of,
    name_in_files,
    registered,
    with_names_of_today,
)
from ocfuse.system.packages import slow

Node = Mapping[str, Any]

#: Types of keys whose hashes hardly ever collide.
KEY_TYPES = (bool, int, float, str, np.float16, np.float32, np.str_)
#: Types of NumPy's numbers and texts.
SCALARS = {
    f"numpy.{kind.__name__}": kind
    for kind in set(np.sctypeDict.values())
    if not issubclass(kind, np.void | np.object_)
}
#: Compiled objects that fitted estimators of scikit-learn hold.
SKLEARN_PARTS = {
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.tree._tree.Tree",
} | {
    f"sklearn.metrics._dist_metrics.{name}Distance64"
    for name in [
        *("BrayCurtis", "Canberra", "Chebyshev", "Dice", "Euclidean", "Hamming", "Haversine"),
        *("Jaccard", "Kulsinski", "Mahalanobis", "Manhattan", "Matching", "Minkowski"),
        *("RogersTanimoto", "RussellRao", "SEuclidean", "SokalMichener", "SokalSneath"),
    ]
}


def is_known_class(name: str) -> bool:
    """Return whether a name is a registered class of ours, or a listed one of scikit-learn."""
    if name in SKLEARN_PARTS or registered(name) is not None:
        return True
    module_name, _, class_name = name.rpartition(".")
    parts = module_name.split(".")
    if (
        len(parts) < 2
        or parts[0] != "sklearn"
        or f"{parts[1]}.{class_name}" not in FITTED
        or not all(part.isidentifier() and not part.startswith("__") for part in parts)
        or not {"tests", "conftest"}.isdisjoint(parts)  # importing them may do anything
    ):
        return False
    try:
        found = vars(importlib.import_module(module_name)).get(class_name)
    except Exception:  # whatever a module does when it is imported, we do not know it
        return False
    return (
        inspect.isclass(found)
        and found.__module__ == module_name
        and issubclass(found, BaseEstimator)
    )


@dataclass(frozen=True)
class Survey:
    """The number of parts of a description, and the names that somebody must vouch for."""

    n_nodes: int
    strangers: list[str]

    @classmethod
    def of(cls, schema: Any, most_names: int = 2000) -> "Survey":
        """Look at every part, without building anything."""
        n_nodes = 0
        seen: set[tuple[str, str]] = set()
        for node in _nodes(schema):
            n_nodes += 1
            seen.add((str(node["__loader__"]), _name(node)))
            if len(seen) > most_names:
                raise ValueError(f"it names more than {most_names} types")
        strangers = {name for loader, name in seen if not _is_usual(loader, name)}
        return cls(n_nodes, sorted(strangers))


@runtime_checkable
class NeedsFiles(Protocol):
    """A part of a model that reads files: of those that a model file names, only the names."""

    def look_in(self, folder: Path) -> None:
        """Take files from a folder, whatever the path was that training knew."""


class Builder:
    """Build every part of a description once.

    Parameters
    ----------
    archive : Archive
        Where the arrays are.
    n_nodes : int
        Parts that the description spells out, repeated ones included.
    folder : Path, default=None
        The only place where parts may look for files; None leaves them as they are.
    """

    #: Bytes that are counted for an object, and for a random state.
    object_bytes: ClassVar[int] = 400
    random_bytes: ClassVar[int] = 8192

    def __init__(self, archive: Archive, n_nodes: int, folder: Path | None = None) -> None:
        self._archive = archive
        self._folder = folder
        self._budget = archive.budget
        self._n_left = n_nodes
        self._n_bytes_left = archive.size
        self._built: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}

    def build(self, node: Node) -> Any:
        """Return the object that a part describes."""
        number = node.get("__id__")
        if number in self._built:
            self._spend(self._sizes[number])
            return self._built[number]
        left = self._n_left
        self._spend(1)
        self._budget.spend(self.object_bytes)
        self._budget.check_time()
        make, _ = LOADERS[node["__loader__"]]
        made = make(self, node)
        if number is not None:
            self._built[number], self._sizes[number] = made, left - self._n_left
        return made

    def _spend(self, n_nodes: int) -> None:
        self._n_left -= n_nodes
        if self._n_left < 0:
            raise ValueError("its parts repeat, or hold themselves")

    def _spend_arrays(self, state: Any) -> None:
        """Refuse arrays that several parts share, each of which would make more of them."""
        values = state.values() if isinstance(state, dict) else state
        self._n_bytes_left -= sum(v.nbytes for v in values if isinstance(v, np.ndarray))
        if self._n_bytes_left < 0:
            raise ValueError("arrays are used more often than there are")

    def _all(self, nodes: list[Node]) -> list[Any]:
        items = [self.build(node) for node in nodes]
        integrity.check_none_unplaced(items)
        return items

    def _list(self, node: Node) -> Any:
        return _found(node)(self._all(node["content"]))

    def _set(self, node: Node) -> Any:
        items = self._all(node["content"])
        if not all(_is_key(item) for item in items):
            raise ValueError("a set holds something else than text or numbers")
        self._budget.spend(self.object_bytes * len(items))
        return _found(node)(items)

    def _tuple(self, node: Node) -> Any:
        items = self._all(node["content"])
        kind = _found(node)
        if kind is not tuple and len(kind._fields) != len(items):
            raise ValueError(f"{_name(node)} has other fields")
        return tuple.__new__(kind, items)

    def _dict(self, node: Node) -> Any:
        made = _found(node)()
        kinds = self.build(node["key_types"])
        for kind, (text, value) in zip(kinds, node["content"].items(), strict=True):
            made[_to_key(kind, text)] = self.build(value)
        return made

    def _defaultdict(self, node: Node) -> Any:
        content = node["content"]
        return defaultdict(self.build(content["default_factory"]), self.build(content["main"]))

    def _json(self, node: Node) -> Any:
        text = node["content"]
        if text.lstrip()[:1] in ("[", "{"):  # many parts, but counted as one
            raise ValueError("a value is no text or number")
        self._budget.spend(LETTER_BYTES * len(text))
        return json.loads(text)

    def _slice(self, node: Node) -> Any:
        return slice(*(node["content"][name] for name in ("start", "stop", "step")))

    def _bytes(self, node: Node) -> Any:
        return self._archive.read(node["file"])

    def _bytearray(self, node: Node) -> Any:
        return bytearray(self._bytes(node))

    def _type_or_function(self, node: Node) -> Any:
        return _found(node)

    def _array(self, node: Node) -> Any:
        if node["type"] == "json":
            return self._object_array(node)
        array = self._archive.array(node["file"])
        if _name(node) == "numpy.ndarray":
            return array
        if array.shape != ():
            raise ValueError("a number is an array")
        kind = SCALARS[_name(node)]
        return array[()] if kind is array.dtype.type else array.astype(kind)[()]

    def _object_array(self, node: Node) -> Any:
        shape = self.build(node["shape"])
        items = self._all(node["content"])
        for length in shape[1:]:
            if any(type(item) is not list or len(item) != length for item in items):
                raise ValueError("an array is not of the shape that it says")
            items = [value for item in items for value in item]
        made = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            made[i] = item
        if math.prod(shape) != len(items):
            raise ValueError("an array is not of the shape that it says")
        return made.reshape(shape)

    def _masked_array(self, node: Node) -> Any:
        data, mask = (self.build(node["content"][name]) for name in ("data", "mask"))
        if type(data) is not np.ndarray or type(mask) is not np.ndarray:
            raise ValueError("a masked array is made of something else than arrays")
        self._spend_arrays([data, mask])  # a shared one would be copied again and again
        if mask.dtype != bool or mask.shape != data.shape:  # they would be made to fit
            raise ValueError("the mask of an array is of another shape or type")
        return np.ma.MaskedArray(data, mask)

    def _dtype(self, node: Node) -> Any:
        return self.build(node["content"]).dtype

    def _random_state(self, node: Node) -> Any:
        state = self.build(node["content"])
        integrity.check_twister(state)
        key = state["state"]["key"]
        if not isinstance(key, np.ndarray) or key.dtype.kind not in "iu":
            raise ValueError("a random state is not of whole numbers")  # texts would grow
        self._budget.spend(self.random_bytes)
        made = np.random.RandomState(0)
        made.set_state(state)
        return made

    def _generator(self, node: Node) -> Any:
        state = self.build(node["content"]["bit_generator"])
        seed = self.build(node["content"]["seed_seq"])
        if state["bit_generator"] != "PCG64" or seed["pool_size"] != 4:  # more takes long to mix
            raise ValueError("a generator is not one of numpy.random.default_rng")
        _check_seed(seed)
        self._budget.spend(self.random_bytes)
        bits = np.random.PCG64(np.random.SeedSequence(**seed))
        bits.state = state
        return np.random.Generator(bits)

    def _tree(self, node: Node) -> Any:
        arguments = self.build(node["__reduce__"]["args"])
        state = self.build(node["content"])
        integrity.check_tree(arguments, state)
        self._spend_arrays(state)
        made = slow("sklearn.tree._tree").Tree(*arguments)
        made.__setstate__(state)
        return integrity.Unplaced(made)

    def _loss(self, node: Node) -> Any:
        arguments = self.build(node["__reduce__"]["args"])
        if not all(isinstance(value, int | float) for value in arguments):
            raise ValueError("a loss is made from something else than numbers")
        return _found(node)(*arguments)

    def _object(self, node: Node) -> Any:
        kind, name = _found(node), _name(node)
        state = None if node.get("content") is None else self.build(node["content"])
        if getattr(kind, "__setstate__", None) not in (None, BaseEstimator.__setstate__) and state:
            self._spend_arrays(state)
        if name in ("sklearn.neighbors._ball_tree.BallTree", "sklearn.neighbors._kd_tree.KDTree"):
            return self._grown_again(kind, state)
        if name.startswith("sklearn.metrics._dist_metrics."):
            if is_known_class(name):
                return integrity.Unplaced(integrity.made_metric(kind, state))
            made = kind.__new__(kind)  # one of a function that somebody vouched for
            made.__setstate__(state)
            return integrity.Unplaced(made)
        if isinstance(state, dict):
            state = with_names_of_today(name, state)
            self._check_attributes(kind, name, state)
        elif state is not None and is_known_class(name):
            raise ValueError(f"{name} has a state without names")
        made = kind.__new__(kind)
        if state is not None and hasattr(made, "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            made.__dict__.update(state)
        if self._folder is not None and issubclass(kind, NeedsFiles):
            made.look_in(self._folder)
        return made

    @staticmethod
    def _check_attributes(kind: Any, name: str, state: dict[str, Any]) -> None:
        """Check the attributes of an object, and make of them what it can use here."""
        integrity.check_attributes(kind, state)
        if name.startswith("ocfuse."):
            integrity.check_none_unplaced(state.values())
        else:
            state.update((key, integrity.placed(value)) for key, value in state.items())
        if name.startswith("sklearn.") and is_known_class(name):
            check_fitted(kind, state)
        if "_sklearn_version" in state:
            # `load` has compared versions; scikit-learn would warn again, in words of the file
            state["_sklearn_version"] = sklearn.__version__
        n_jobs = state.get("n_jobs")
        if n_jobs is not None and not (type(n_jobs) is int and n_jobs <= (os.cpu_count() or 1)):
            state["n_jobs"] = -1

    def _grown_again(self, kind: Any, state: Any) -> Any:
        """Return a tree of neighbours made from its rows; what a file says of nodes is not used."""
        rows, leaf_size, metric, weights = (integrity.placed(state[i]) for i in (0, 4, 11, 12))
        if type(leaf_size) is not int or not isinstance(weights, np.ndarray | None):
            raise ValueError("a tree of neighbours is not made from arrays")
        integrity.check_neighbour_tree(rows, metric, weights)
        self._budget.spend(5 * rows.nbytes)  # nodes, bounds and copies
        return kind(rows, leaf_size=leaf_size, metric=metric, sample_weight=weights)

    # What follows only somebody who vouched for the names gets.

    def _constructed(self, node: Node) -> Any:
        return _found(node)(*self.build(node["content"]))

    def _partial(self, node: Node) -> Any:
        content = node["content"]
        function, args, options = (self.build(content[name]) for name in ("func", "args", "kwds"))
        return partial(function, *args, **options)

    def _sparse(self, node: Node) -> Any:
        return load_npz(io.BytesIO(self._bytes(node)))


#: How to build a part of every kind, and the names that it may have without being vouched for.
LOADERS: dict[str, tuple[Callable[[Builder, Node], Any], Set[str]]] = {
    "BytearrayNode": (Builder._bytearray, {"builtins.bytearray"}),
    "BytesNode": (Builder._bytes, {"builtins.bytes"}),
    "ConstructorFromReduceNode": (Builder._constructed, set()),
    "DefaultDictNode": (Builder._defaultdict, {"collections.defaultdict"}),
    "DictNode": (
        Builder._dict,
        {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
    ),
    "DTypeNode": (Builder._dtype, {"numpy.dtype"}),
    "FunctionNode": (Builder._type_or_function, set()),  # and elementary ones of NumPy
    "JsonNode": (Builder._json, {"builtins.str"}),
    "ListNode": (Builder._list, {"builtins.list"}),
    "LossNode": (Builder._loss, {"sklearn.linear_model._sgd_fast.Hinge"}),
    "MaskedArrayNode": (
        Builder._masked_array,
        {"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"},
    ),
    "NdArrayNode": (Builder._array, SCALARS.keys() | {"numpy.ndarray"}),
    "ObjectNode": (Builder._object, set()),  # and those of `is_known_class`
    "PartialNode": (Builder._partial, set()),
    "RandomGeneratorNode": (Builder._generator, {"numpy.random._generator.Generator"}),
    "RandomStateNode": (Builder._random_state, {"numpy.random.mtrand.RandomState"}),
    "SetNode": (Builder._set, {"builtins.set"}),
    "SliceNode": (Builder._slice, {"builtins.slice"}),
    "SparseMatrixNode": (Builder._sparse, set()),
    "TreeNode": (Builder._tree, {"sklearn.tree._tree.Tree"}),
    "TupleNode": (Builder._tuple, {"builtins.tuple"}),  # and those of `is_known_class`
    "TypeNode": (
        Builder._type_or_function,
        SCALARS.keys()
        | {f"builtins.{kind.__name__}" for kind in (bool, dict, float, int, list, set, str, tuple)},
    ),
}


def name_classes(schema: Any) -> None:
    """Have a description name our classes by the registry, not by where they are."""
    for node in _nodes(schema):
        key = name_in_files(f"{node['__module__']}.{node['__class__']}")
        if key is not None:
            node.update(__module__="ocfuse", __class__=key)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a description."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            for name, value in item.items():
                # keys of a dictionary are a user's words, whatever they are
                is_dictionary = item.get("__loader__") == "DictNode" and name == "content"
                waiting.extend(value.values() if is_dictionary else (value,))
            if "__loader__" in item:
                yield item
        elif isinstance(item, list):
            waiting.extend(item)


def _module(node: Node) -> str:
    """Return where a type is; scikit-learn before 1.7 called one module otherwise."""
    module: str = node["__module__"]
    return "sklearn._loss._loss" if module == "_loss" else module


def _name(node: Node) -> str:
    """Return the full name of a type; of a class of ours as files have it since format 2."""
    name = f"{_module(node)}.{node['__class__']}"
    key = registered(name)
    return name if key is None else f"ocfuse.{key}"


def _is_usual(loader: str, name: str) -> bool:
    """Return whether nobody needs to vouch for a name in a part of some kind."""
    if len(name) > 300:
        return False
    if loader in ("ObjectNode", "TupleNode") and is_known_class(name):
        return True
    if loader == "FunctionNode":  # an elementary one of NumPy or SciPy, such as log1p
        module, _, function = name.rpartition(".")
        found = vars(sys.modules.get(module, sys)).get(function)
        return module.split(".")[0] in ("numpy", "scipy") and isinstance(found, np.ufunc)
    return loader in LOADERS and name in LOADERS[loader][1]


def _to_key(kind: Any, text: str) -> Any:
    key = None
    if kind in KEY_TYPES or issubclass(kind, np.integer | np.float64):
        key = json.loads(text) if kind is bool else kind(text)
    if not _is_key(key):
        raise ValueError("a dictionary has keys that are no text or numbers")
    return key


def _is_key(value: Any) -> bool:
    """Return whether a value may be a key: text, or a number that few others have the hash of."""
    if isinstance(value, int):
        return abs(value) < 2**64
    return isinstance(value, (*KEY_TYPES, np.integer)) and not isinstance(value, np.timedelta64)


def _check_seed(seed: Mapping[str, Any], most: int = 64) -> None:
    """Refuse a seed that would take long to mix: many numbers, or text that stands for one."""
    entropy, spawned = seed["entropy"], seed["spawn_key"]
    if isinstance(entropy, np.ndarray):
        entropy = entropy[: most + 1].tolist() if entropy.ndim == 1 else None
    for numbers in (entropy if isinstance(entropy, list | tuple) else [entropy], spawned):
        if not (
            isinstance(numbers, list | tuple)
            and len(numbers) <= most
            and all(isinstance(n, int | np.integer) and 0 <= int(n) < 2**8192 for n in numbers)
        ):
            raise ValueError("the seed of a generator is not of a few whole numbers")


def _found(node: Node) -> Any:
    key = registered(_name(node))
    if key is not None:
        return class_of(key)
    return getattr(importlib.import_module(_module(node)), node["__class__"])
