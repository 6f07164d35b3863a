"""Descriptions of models that were written by hand: names, kinds, references, values."""

from collections.abc import Callable
from typing import Any

from benchmarks.hardening.parts import Node, Parts, Random, pick
from benchmarks.hardening.words import HOSTILE, JSON, KNOWN, LOADERS
from ocfuse.persistence.archive import SCHEMA


def _node(rng: Random, parts: Parts) -> Node:
    return pick(rng, parts.nodes())


def _become(node: Node, other: Node) -> None:
    node.clear()
    node.update(other)


def _rename(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] != "JsonNode"]
    module, _, name = pick(rng, (*HOSTILE, *KNOWN)).rpartition(".")
    pick(rng, nodes).update(__class__=name, __module__=module)


def _exchange_names(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] == "ObjectNode"]
    one, other = pick(rng, nodes), pick(rng, nodes)
    one.update(__class__=other["__class__"], __module__=other["__module__"])


def _odd_name(rng: Random, parts: Parts) -> None:
    _node(rng, parts)[pick(rng, ("__class__", "__module__"))] = pick(
        rng, ("", "x" * 10**5, "\x1b[2J", "a b", "__main__", "..", None, 7, [], {}, "ocfuse.\n")
    )


def _reload(rng: Random, parts: Parts) -> None:
    _node(rng, parts)["__loader__"] = pick(rng, LOADERS)


def _call(rng: Random, parts: Parts) -> None:
    """Ask for a call of a class or a function, in each way there is."""
    module, _, name = pick(rng, (*HOSTILE, *KNOWN)).rpartition(".")
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
    call = pick(
        rng,
        (
            {"__loader__": "ConstructorFromReduceNode", "content": args},
            {"__loader__": "ListNode", "content": [text]},
            {"__loader__": "SetNode", "content": [text]},
            {"__loader__": "TupleNode", "content": [text]},
            {"__loader__": "DictNode", "content": {}, "key_types": {**args, "content": []}},
            {"__loader__": "LossNode", "content": none, "__reduce__": {"args": args}},
            {"__loader__": "TreeNode", "content": none, "__reduce__": {"args": args}},
            {
                "__loader__": "PartialNode",
                "content": {"func": function, "args": args, "kwds": none, "namespace": none},
            },
            {"__loader__": "MethodNode", "content": {"func": "save", "obj": function}},
            {"__loader__": "OperatorFuncNode", "attrs": args},
            {"__loader__": "TypeNode"},
            {"__loader__": "FunctionNode"},
            {"__loader__": "RandomStateNode", "content": none},
        ),
    )
    _become(_node(rng, parts), {"__class__": name, "__module__": module, **call})


def _key_types(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] == "TypeNode"]
    module, _, name = pick(rng, (*HOSTILE, *KNOWN)).rpartition(".")
    if nodes:
        pick(rng, nodes).update(__class__=name, __module__=module)


def _value(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if node["__loader__"] == "JsonNode"]
    pick(rng, nodes)["content"] = pick(rng, JSON)


def _number(rng: Random, parts: Parts) -> None:
    """Change a number a little: the kind of lie that is hardest to see."""
    nodes = [n for n in parts.nodes() if n["__loader__"] == "JsonNode" and n["content"].isdigit()]
    if nodes:
        node = pick(rng, nodes)
        node["content"] = str(int(node["content"]) + int(pick(rng, (-1, 1, 2, 100, 10**6))))


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
    _node(rng, parts)["__id__"] = pick(rng, (0, -1, 1.5, "x", None, [], {}, True, 10**30))


def _drop(rng: Random, parts: Parts) -> None:
    node = _node(rng, parts)
    del node[pick(rng, list(node))]


def _content(rng: Random, parts: Parts) -> None:
    node = _node(rng, parts)
    node[pick(rng, list(node))] = pick(rng, (None, 7, -1, "x", [], {}, [7], {"a": 7}, True, 1e308))


def _lengths(rng: Random, parts: Parts) -> None:
    lists = [n for n in parts.nodes() if isinstance(n.get("content"), list)]
    if lists:
        node = pick(rng, lists)
        content = node["content"]
        node["content"] = pick(rng, ([], content[:-1], content[::-1], content * 2, content * 50))


def _attributes(rng: Random, parts: Parts) -> None:
    tables = [n for n in parts.nodes() if isinstance(n.get("content"), dict) and n["content"]]
    if tables:
        content = pick(rng, tables)["content"]
        keys = list(content)
        one, other = pick(rng, keys), pick(rng, keys)
        if rng.random() < 0.5:
            content[one], content[other] = content[other], content[one]
        else:
            content[
                pick(rng, ("__class__", "__dict__", "score_samples", "_impl", "n_jobs", ""))
            ] = content.pop(one)


def _deep(rng: Random, parts: Parts) -> None:
    inner: Any = {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [],
    }
    for _ in range(int(pick(rng, (50, 200)))):
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
        inner = {
            "__class__": "ndarray",
            "__module__": "numpy",
            "__loader__": "NdArrayNode",
            "type": "json",
            "shape": shape,
            "content": [inner, inner],
        }
    _become(_node(rng, parts), inner)


def _multiplying(rng: Random, parts: Parts) -> None:
    """Have a long part stand many times in what would be made of it."""
    value = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    array = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    n, width = 200, 20_000
    text = {**value, "content": pick(rng, (f'"{"x" * width}"', str([0] * width))), "__id__": -1}
    shape = {**value, "__class__": "tuple", "__loader__": "TupleNode"}
    shape["content"] = [{**value, "content": str(side)} for side in (n, width)]
    again = {**text, "content": "0"}
    texts = {**array, "type": "json", "shape": shape, "content": [text, *[again] * (n - 1)]}
    file = pick(rng, [name for name in parts.entries if name.endswith(".npy")])
    data = {**array, "type": "numpy", "file": file, "__id__": -2}
    masked = {"__class__": "MaskedArray", "__module__": "numpy.ma", "__loader__": "MaskedArrayNode"}
    masked["content"] = {"data": data, "mask": {**value, "content": "true"}}
    several = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    numbers = [{**value, "content": str(i * (2**61 - 1))} for i in range(n)]
    made = pick(
        rng,
        (
            texts,
            {**several, "content": [masked] * n},
            {**several, "__class__": "set", "__loader__": "SetNode", "content": numbers},
        ),
    )
    _become(_node(rng, parts), made)


def _file(rng: Random, parts: Parts) -> None:
    nodes = [node for node in parts.nodes() if "file" in node]
    names = (*parts.entries, SCHEMA, "/etc/passwd", "../x", "", "missing.npy")
    pick(rng, nodes)["file"] = pick(rng, names)


def _protocol(rng: Random, parts: Parts) -> None:
    parts.schema["protocol"] = pick(rng, (0, 1, 3, -1, True, None, "2", 2.0, 10**30))


SCHEMAS: tuple[Callable[[Random, Parts], None], ...] = (
    _rename,
    _rename,
    _exchange_names,
    _odd_name,
    _reload,
    _call,
    _call,
    _key_types,
    _value,
    _value,
    _number,
    _number,
    _number,
    _swap,
    _swap,
    _same_number,
    _only_number,
    _odd_number,
    _drop,
    _content,
    _lengths,
    _attributes,
    _deep,
    _doubling,
    _multiplying,
    _file,
    _protocol,
)
