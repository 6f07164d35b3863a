"""Mutants of a model file, each told by a seed.

Most would be stopped by the checksum: these are sealed again, as a stranger with a
text editor could do.
"""

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from benchmarks.hardening.parts import (
    SCHEMA,
    Node,
    Parts,
    from_npy,
    headed,
    seal,
    to_npy,
    zipped,
)

Random = np.random.Generator

#: Names that must never be looked up, or never be called.
HOSTILE = [
    "os.system",
    "posix.system",
    "builtins.eval",
    "builtins.exec",
    "builtins.open",
    "builtins.compile",
    "builtins.__import__",
    "subprocess.Popen",
    "subprocess.call",
    "shutil.rmtree",
    "importlib.import_module",
    "numpy.load",
    "numpy.fromfile",
    "numpy.memmap",
    "numpy.save",
    "numpy.frompyfunc",
    "scipy.io.loadmat",
    "ctypes.CDLL",
    "pickle.loads",
    "joblib.load",
    "socket.socket",
    "webbrowser.open",
    "antigravity.geohash",
    "sklearn.utils._joblib.delayed",
    "sklearn.datasets._openml.fetch_openml",
    "sklearn.utils.parallel.Parallel",
    "ocfuse.persistence.model.load",
    "ocfuse.persistence.model.save",
    "ocfuse.files.write_atomically",
    "ocfuse.cli.app.run",
    "ocfuse.vision.stored.FeatureStore",
    "ocfuse.vision.video.Video",
    "functools.partial",
    "operator.methodcaller",
    "operator.attrgetter",
    "types.FunctionType",
    "types.CodeType",
    "code.InteractiveInterpreter",
    "builtins.type",
    "builtins.object",
    "builtins.super",
    "builtins.bytearray",
]
#: Names that may be built, in places where they do not belong.
KNOWN = [
    "ocfuse.ensemble.detector.FusedDetector",
    "ocfuse.detectors.neighbours.KNN",
    "ocfuse.detectors.forest.Forest",
    "ocfuse.detectors.forest.Trees",
    "ocfuse.detectors.gram.Reference",
    "ocfuse.nearest.search.Search",
    "ocfuse.fusion.rules.SumRule",
    "ocfuse.scores.normalise.MinMax",
    "ocfuse.exceptions.OcfuseError",
    "ocfuse.features.FeatureEncoder",
    "ocfuse.tables.schema.Schema",
    "ocfuse.vision.backbone.OnnxBackbone",
    "ocfuse.vision.torched.TorchBackbone",
    "sklearn.tree._tree.Tree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.ensemble._iforest.IsolationForest",
    "sklearn.svm._classes.OneClassSVM",
    "sklearn.svm._classes.SVC",
    "sklearn.metrics._dist_metrics.MahalanobisDistance64",
    "sklearn.metrics._dist_metrics.SEuclideanDistance64",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "numpy.float64",
    "numpy.ndarray",
    "numpy.log1p",
    "builtins.list",
    "builtins.dict",
    "builtins.tuple",
    "builtins.str",
    "builtins.set",
    "builtins.map",
    "collections.OrderedDict",
    "sklearn._loss._loss.CyHuberLoss",
    "sklearn.linear_model._sgd_fast.Hinge",
    "numpy.random.mtrand.RandomState",
    "sklearn.cluster._kmeans.KMeans",
]
LOADERS = [
    "ObjectNode",
    "DictNode",
    "ListNode",
    "TupleNode",
    "SetNode",
    "JsonNode",
    "NdArrayNode",
    "TypeNode",
    "FunctionNode",
    "TreeNode",
    "LossNode",
    "PartialNode",
    "MethodNode",
    "OperatorFuncNode",
    "ConstructorFromReduceNode",
    "BytesNode",
    "BytearrayNode",
    "SliceNode",
    "DTypeNode",
    "MaskedArrayNode",
    "RandomStateNode",
    "RandomGeneratorNode",
    "SparseMatrixNode",
    "DefaultDictNode",
    "CachedNode",
    "QuantileForestNode",
    "NoSuchNode",
]
JSON = (
    "null", "true", "0", "-1", "1", "7", "2147483648", "9223372036854775807",
    "-9223372036854775808", "1e308", "1e-320", "-0.0", "NaN", "Infinity",
    "1e999", '""', '"x"', '"../../etc/passwd"', "[]",
    "{}", "[[1]]", '{"a": 1}', "not json", "9" * 5000, "[" * 3000 + "]" * 3000, '"\\ud800"',
)  # fmt: skip
NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, -(2**63), 2**63 - 1, 255, 1000)
REALS = (0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e18)


class Bomb:
    """A pickle that would run code."""

    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/ocfuse-was-here",)


def mutant(seed: int, kind: str, content: bytes, parts: Parts) -> bytes:
    """Return a mutated file."""
    rng = np.random.default_rng(seed)
    if kind == "bytes":
        return _pick(rng, RAW)(rng, content)
    if kind == "archive":
        return seal(_pick(rng, ARCHIVES)(rng, parts))
    changed = parts.copy()
    changes = {"description": SCHEMAS, "arrays": ARRAYS, "both": (*SCHEMAS, *ARRAYS)}[kind]
    for _ in range(int(rng.integers(1, 4))):
        # What an earlier change left may be no array, or no node, any more.
        with suppress(Exception):
            _pick(rng, changes)(rng, changed)
    return seal(changed.archive())


def _pick(rng: Random, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


# Bytes as they are in a damaged file.


def _flip(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for at in rng.integers(len(changed), size=int(rng.integers(1, 9))):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _flip_in_header(rng: Random, content: bytes) -> bytes:
    return _flip(rng, content[:300]) + content[300:]


def _cut(rng: Random, content: bytes) -> bytes:
    return content[: int(rng.integers(len(content)))]


def _cut_out(rng: Random, content: bytes) -> bytes:
    begin = int(rng.integers(len(content)))
    return content[:begin] + content[begin + int(rng.integers(1, 5000)) :]


def _insert(rng: Random, content: bytes) -> bytes:
    at = int(rng.integers(len(content)))
    return content[:at] + rng.bytes(int(rng.integers(1, 100))) + content[at:]


def _blank(rng: Random, content: bytes) -> bytes:
    begin, n = int(rng.integers(len(content))), int(rng.integers(1, 4096))
    return content[:begin] + bytes(len(content[begin : begin + n])) + content[begin + n :]


def _noise(rng: Random, content: bytes) -> bytes:
    return rng.bytes(int(rng.integers(0, 2000)))


def _pickled(rng: Random, content: bytes) -> bytes:
    return pickle.dumps(Bomb(), protocol=int(rng.integers(0, 6)))


def _flip_and_seal(rng: Random, content: bytes) -> bytes:
    return seal(_flip(rng, content.split(b"\n", 2)[2]))


def _cut_and_seal(rng: Random, content: bytes) -> bytes:
    return seal(_cut(rng, content.split(b"\n", 2)[2]))


def _noise_and_seal(rng: Random, content: bytes) -> bytes:
    return seal(_pick(rng, (_noise, _pickled, _blank))(rng, content))


RAW: tuple[Callable[[Random, bytes], bytes], ...] = (
    _flip, _flip_in_header, _cut, _cut_out, _insert, _blank, _noise, _pickled,
    _flip_and_seal, _flip_and_seal, _flip_and_seal, _cut_and_seal, _noise_and_seal,
)  # fmt: skip


# The archive.


def _entries(parts: Parts) -> list[tuple[str, bytes]]:
    return [*parts.entries.items(), (SCHEMA, json.dumps(parts.schema).encode())]


def _named(rng: Random, parts: Parts) -> bytes:
    entries = _entries(parts)
    name = _pick(rng, ("../x", "/etc/x", "C:\\x", "..\\x", "a/../../x", SCHEMA, "", "x" * 60000,
                       "\x1b[31m", "aux", "x/", entries[0][0]))  # fmt: skip
    return zipped([*entries, (name, b"x")])


def _compressed(rng: Random, parts: Parts) -> bytes:
    how = _pick(rng, (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    entries = _entries(parts)
    if rng.random() < 0.5:
        entries.append(("bomb.npy", bytes(10**6)))
    return zipped(entries, how)


def _appended(rng: Random, parts: Parts) -> bytes:
    extra = rng.bytes(int(rng.integers(1, 1000)))
    archive = parts.archive()
    return archive + extra if rng.random() < 0.5 else extra + archive


def _missing(rng: Random, parts: Parts) -> bytes:
    entries = _entries(parts)
    del entries[int(rng.integers(len(entries)))]
    return zipped(entries)


def _field(rng: Random, parts: Parts) -> bytes:
    """Change a field of the directory: flags, method, checksum, sizes, offsets, attributes."""
    archive = bytearray(parts.archive())
    starts = [i for i in range(len(archive) - 46) if archive[i : i + 4] == b"PK\x01\x02"]
    at = _pick(rng, starts) + int(_pick(rng, (6, 8, 10, 16, 20, 24, 28, 30, 32, 36, 38, 42)))
    value = int(_pick(rng, (0, 1, 8, 12, 99, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF, 10**6, 0xA1FF0000)))
    width = int(_pick(rng, (2, 4)))
    archive[at : at + width] = (value % 256**width).to_bytes(width, "little")
    return bytes(archive)


def _end(rng: Random, parts: Parts) -> bytes:
    """Change the end of the directory, or claim that it is one of 64 bits."""
    archive = bytearray(parts.archive())
    at = len(archive) - 22 + int(_pick(rng, (4, 6, 8, 10, 12, 16, 20)))
    archive[at : at + 2] = b"\xff\xff"
    if rng.random() < 0.5:
        locator = struct.pack("<IIQI", 0x07064B50, 0, int(rng.integers(2**40)), 1)
        archive[-22:-22] = locator
    return bytes(archive)


def _overlapping(rng: Random, parts: Parts) -> bytes:
    """Let two entries of the directory begin at the same place."""
    archive = bytearray(parts.archive())
    starts = [i for i in range(len(archive) - 46) if archive[i : i + 4] == b"PK\x01\x02"]
    one, other = _pick(rng, starts), _pick(rng, starts)
    archive[one + 42 : one + 46] = archive[other + 42 : other + 46]
    if rng.random() < 0.5:
        archive[one + 16 : one + 28] = archive[other + 16 : other + 28]
    return bytes(archive)


def _nested(rng: Random, parts: Parts) -> bytes:
    return zipped([(SCHEMA, parts.archive()), ("inner.zip", parts.archive())])


def _other_schema(rng: Random, parts: Parts) -> bytes:
    text = _pick(rng, (b"", b"{}", b"[]", b"null", b"7", b"\xff\xfe{", b"[" * 10**5,
                       pickle.dumps(Bomb()), b'{"__loader__": "ObjectNode"}',
                       b'{"a":' * 5000 + b"1" + b"}" * 5000))  # fmt: skip
    return zipped([*parts.entries.items(), (SCHEMA, text)])


ARCHIVES: tuple[Callable[[Random, Parts], bytes], ...] = (
    _named, _compressed, _appended, _missing, _field, _field, _end, _overlapping, _nested,
    _other_schema,
)  # fmt: skip


# The description.


def _node(rng: Random, parts: Parts) -> Node:
    return _pick(rng, parts.nodes())


def _become(node: Node, other: Node) -> None:
    node.clear()
    node.update(other)


def _rename(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] != "JsonNode"]
    module, _, name = _pick(rng, (*HOSTILE, *KNOWN)).rpartition(".")
    _pick(rng, nodes).update(__class__=name, __module__=module)


def _exchange_names(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] == "ObjectNode"]
    one, other = _pick(rng, nodes), _pick(rng, nodes)
    one.update(__class__=other["__class__"], __module__=other["__module__"])


def _odd_name(rng: Random, parts: Parts) -> None:
    _node(rng, parts)[_pick(rng, ("__class__", "__module__"))] = _pick(
        rng, ("", "x" * 10**5, "\x1b[2J", "a b", "__main__", "..", None, 7, [], {}, "ocfuse.\n")
    )


def _reload(rng: Random, parts: Parts) -> None:
    _node(rng, parts)["__loader__"] = _pick(rng, LOADERS)


def _call(rng: Random, parts: Parts) -> None:
    """Ask for a call of a class or a function, in each way there is."""
    module, _, name = _pick(rng, (*HOSTILE, *KNOWN)).rpartition(".")
    text = {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": '"id"',
    }
    args = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [text],
    }
    none = {**text, "content": "{}"}
    function = {"__class__": name, "__module__": module, "__loader__": "FunctionNode"}
    call = _pick(rng, (
        {"__loader__": "ConstructorFromReduceNode", "content": args},
        {"__loader__": "ListNode", "content": [text]},
        {"__loader__": "SetNode", "content": [text]},
        {"__loader__": "TupleNode", "content": [text]},
        {"__loader__": "DictNode", "content": {}, "key_types": {**args, "content": []}},
        {"__loader__": "LossNode", "content": none, "__reduce__": {"args": args}},
        {"__loader__": "TreeNode", "content": none, "__reduce__": {"args": args}},
        {"__loader__": "PartialNode",
         "content": {"func": function, "args": args, "kwds": none, "namespace": none}},
        {"__loader__": "MethodNode", "content": {"func": "save", "obj": function}},
        {"__loader__": "OperatorFuncNode", "attrs": args},
        {"__loader__": "TypeNode"},
        {"__loader__": "FunctionNode"},
        {"__loader__": "RandomStateNode", "content": none},
    ))  # fmt: skip
    _become(_node(rng, parts), {"__class__": name, "__module__": module, **call})


def _key_types(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] == "TypeNode"]
    module, _, name = _pick(rng, (*HOSTILE, *KNOWN)).rpartition(".")
    if nodes:
        _pick(rng, nodes).update(__class__=name, __module__=module)


def _value(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] == "JsonNode"]
    _pick(rng, nodes)["content"] = _pick(rng, JSON)


def _number(rng: Random, parts: Parts) -> None:
    """Change a number a little: the kind of lie that is hardest to see."""
    nodes = [n for n in parts.nodes() if n["__loader__"] == "JsonNode" and n["content"].isdigit()]
    if nodes:
        node = _pick(rng, nodes)
        node["content"] = str(int(node["content"]) + int(_pick(rng, (-1, 1, 2, 100, 10**6))))


def _swap(rng: Random, parts: Parts) -> None:
    one, other = _node(rng, parts), _node(rng, parts)
    first = dict(one)
    _become(one, dict(other))
    _become(other, first)


def _same_number(rng: Random, parts: Parts) -> None:
    _node(rng, parts)["__id__"] = _node(rng, parts).get("__id__")


def _only_number(rng: Random, parts: Parts) -> None:
    node = _node(rng, parts)
    _become(
        node,
        {"__id__": node.get("__id__") if rng.random() < 0.5 else _node(rng, parts).get("__id__")},
    )


def _odd_number(rng: Random, parts: Parts) -> None:
    _node(rng, parts)["__id__"] = _pick(rng, (0, -1, 1.5, "x", None, [], {}, True, 10**30))


def _drop(rng: Random, parts: Parts) -> None:
    node = _node(rng, parts)
    del node[_pick(rng, list(node))]


def _content(rng: Random, parts: Parts) -> None:
    node = _node(rng, parts)
    node[_pick(rng, list(node))] = _pick(
        rng, (None, 7, -1, "x", [], {}, [7], {"a": 7}, True, 1e308)
    )


def _lengths(rng: Random, parts: Parts) -> None:
    lists = [n for n in parts.nodes() if isinstance(n.get("content"), list)]
    if lists:
        node = _pick(rng, lists)
        content = node["content"]
        node["content"] = _pick(rng, ([], content[:-1], content[::-1], content * 2, content * 50))


def _attributes(rng: Random, parts: Parts) -> None:
    tables = [n for n in parts.nodes() if isinstance(n.get("content"), dict) and n["content"]]
    if tables:
        content = _pick(rng, tables)["content"]
        keys = list(content)
        one, other = _pick(rng, keys), _pick(rng, keys)
        if rng.random() < 0.5:
            content[one], content[other] = content[other], content[one]
        else:
            content[_pick(rng, ("__class__", "__dict__", "score_samples", "_impl", "fit", ""))] = (
                content.pop(one)
            )


def _deep(rng: Random, parts: Parts) -> None:
    inner: Any = {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [],
    }
    for _ in range(int(_pick(rng, (50, 200)))):
        inner = {**inner, "content": [inner]}
    _become(_node(rng, parts), inner)


def _doubling(rng: Random, parts: Parts) -> None:
    """Put a list of two lists, each of which is a list of two lists, and so on."""
    empty = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    inner: Any = {**empty, "__id__": 1, "content": []}
    for number in range(2, 60):
        inner = {**empty, "__id__": number, "content": [inner, {"__id__": number - 1}]}
    if rng.random() < 0.5:
        shape = {**empty, "__class__": "tuple", "__loader__": "JsonNode", "content": str([2] * 40)}
        inner = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode",
                 "type": "json", "shape": shape, "content": [inner, inner]}  # fmt: skip
    _become(_node(rng, parts), inner)


def _file(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if "file" in node]
    names = (*parts.entries, SCHEMA, "/etc/passwd", "../x", "", "missing.npy")
    _pick(rng, nodes)["file"] = _pick(rng, names)


def _protocol(rng: Random, parts: Parts) -> None:
    parts.schema["protocol"] = _pick(rng, (0, 1, 3, -1, True, None, "2", 2.0, 10**30))


SCHEMAS: tuple[Callable[[Random, Parts], None], ...] = (
    _rename, _rename, _exchange_names, _odd_name, _reload, _call, _call, _key_types, _value, _value,
    _number, _number, _number, _swap, _swap, _same_number, _only_number, _odd_number, _drop,
    _content, _lengths, _attributes, _deep, _doubling, _file, _protocol,
)  # fmt: skip


# Arrays.


def _array(rng: Random, parts: Parts) -> str:
    return _pick(rng, [name for name in parts.entries if name.endswith(".npy")])


def _numbers(rng: Random, parts: Parts) -> None:
    """Change some numbers, in what stays an array of the same shape."""
    name = _array(rng, parts)
    array = from_npy(parts.entries[name])
    flat = array.reshape(-1)
    if not flat.size:
        return
    field = flat[_pick(rng, array.dtype.names)] if array.dtype.names else flat
    at = rng.integers(field.size, size=int(rng.integers(1, 4)))
    with np.errstate(all="ignore"):
        if field.dtype.kind in "iu":
            info = np.iinfo(field.dtype)
            field[at] = np.clip(
                _pick(rng, (*NUMBERS, len(flat), -2)), info.min, min(info.max, 2**62)
            )
        elif field.dtype.kind == "f":
            field[at] = _pick(rng, REALS)
        elif field.dtype.kind == "b":
            field[at] = ~field[at]
    parts.entries[name] = to_npy(flat.reshape(array.shape))


def _shuffled(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    array = from_npy(parts.entries[name])
    parts.entries[name] = to_npy(rng.permutation(array) if array.ndim else array)


def _shaped(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    array = np.atleast_1d(from_npy(parts.entries[name]))
    parts.entries[name] = to_npy(_pick(rng, (
        array[:0], array[:-1], array[:1], np.concatenate([array, array]), array.T, array[None],
        array[..., :0], array[..., :-1], array.ravel(), array[0], np.repeat(array, 2, axis=-1),
        np.asfortranarray(array), np.empty((0, *array.shape[1:]), dtype=array.dtype),
    )))  # fmt: skip


def _typed(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    array = from_npy(parts.entries[name])
    if array.dtype.names is None:
        kind = _pick(
            rng, ("f2", "f4", ">f8", "i1", "i4", "i8", "u8", "?", "U5", "S3", "c16", "M8[s]")
        )
        with np.errstate(all="ignore"):
            parts.entries[name] = to_npy(array.astype(kind))


def _header(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    shape = _pick(rng, ("(10000000000,)", "(-1,)", "(2, -8)", "(0, 99999999999)", "(1.5,)", "7",
                        "()",
                        "(" + "1," * 70 + ")", "(18446744073709551615, 2)", "(True,)"))  # fmt: skip
    kind = _pick(rng, ("'<f8'", "'|O'", "'|V0'", "'<U0'", "'<U999999999'", "[('a', '|O')]", "'bad'",
                       "[('a', '<f8', (999999999,))]", "'<f8'", "__import__('os')"))  # fmt: skip
    order = _pick(rng, ("True", "False", "2"))
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}"
    parts.entries[name] = headed(text, rng.bytes(int(rng.integers(0, 64))))


def _pickled_array(rng: Random, parts: Parts) -> None:
    bombs = np.array([Bomb()], dtype=object)
    parts.entries[_array(rng, parts)] = _pick(
        rng, (to_npy(bombs, allow_pickle=True), pickle.dumps(Bomb()), pickle.dumps(bombs))
    )


def _npz(rng: Random, parts: Parts) -> None:
    parts.entries[_array(rng, parts)] = zipped([("a.npy", bytes(10**6))], zipfile.ZIP_DEFLATED)


def _cut_array(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    content = parts.entries[name]
    parts.entries[name] = _pick(
        rng, (content[: int(rng.integers(len(content)))], content + rng.bytes(8), b"", content[:8])
    )


def _flip_array(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    parts.entries[name] = _flip(rng, parts.entries[name])


ARRAYS: tuple[Callable[[Random, Parts], None], ...] = (
    _numbers, _numbers, _numbers, _numbers, _shuffled, _shaped, _shaped, _shaped, _typed, _header,
    _pickled_array, _npz, _cut_array, _flip_array,
)  # fmt: skip
#: How often each kind, against the others.
KINDS = {"bytes": 2, "archive": 1, "description": 4, "arrays": 4, "both": 1}
