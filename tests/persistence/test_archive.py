"""Files that would take long to load, or much memory: refused, in a child that has little of both.

Every file is of a few megabytes at most; each was seen to hang a load, or to fill the memory.
"""

import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.hardening.parts import Parts, directory, seal, to_npy, zipped
from ocfuse import load
from ocfuse.encoder import FeatureEncoder
from ocfuse.exceptions import ModelFileError
from ocfuse.persistence import read_header, save
from ocfuse.persistence.archive import SCHEMA, Archive, Budget

#: What the child has for all files together: seconds of a processor, and bytes beyond its start.
SECONDS, BYTES = 40, 2**29
CHILD = """
import json, resource, sys
from pathlib import Path
from ocfuse import load
from ocfuse.exceptions import ModelFileError
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
for path in sys.argv[3:]:
    try:
        load(path)
        told = "loaded"
    except ModelFileError as error:
        told = str(error)
    print(json.dumps([path, told]), flush=True)
"""
TEXT = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"x"'}
LIST = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
MANY = 1500


def value(thing):
    return {**TEXT, "content": json.dumps(thing)}


def listed(nodes, kind="list"):
    loader = "ListNode" if kind == "list" else "TupleNode"
    return {**LIST, "__class__": kind, "__loader__": loader, "content": nodes}


def typed(name, module="builtins"):
    return {"__class__": name, "__module__": module, "__loader__": "TypeNode"}


def dictionary(content, kinds=None):
    kinds = kinds or [typed("str")] * len(content)
    return {
        "__class__": "dict", "__module__": "builtins", "__loader__": "DictNode",
        "content": content, "key_types": listed(kinds),
    }  # fmt: skip


def array(name, number=None):
    node = {
        "__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode",
        "type": "numpy", "file": name,
    }  # fmt: skip
    return node if number is None else {**node, "__id__": number}


def generator(entropy, spawn_key):
    inner = dictionary({"state": value(1), "inc": value(1)})
    state = {"bit_generator": value("PCG64"), "state": inner, "has_uint32": value(0)}
    seed = {
        "entropy": entropy, "spawn_key": spawn_key, "pool_size": value(4),
        "n_children_spawned": value(0),
    }  # fmt: skip
    return {
        "__class__": "Generator", "__module__": "numpy.random._generator",
        "__loader__": "RandomGeneratorNode",
        "content": {
            "bit_generator": dictionary(state | {"uinteger": value(0)}),
            "seed_seq": dictionary(seed),
        },
    }  # fmt: skip


def masked(data, mask):
    return {
        "__class__": "MaskedArray", "__module__": "numpy.ma", "__loader__": "MaskedArrayNode",
        "content": {"data": data, "mask": mask},
    }  # fmt: skip


def hex_text(parts):
    return generator(value(1), listed([value("0x" + "f" * 2_000_000)], "tuple"))


def hex_entropy(parts):
    return generator(value("0x" + "f" * 2_000_000), listed([], "tuple"))


def shared_entropy(parts):
    parts.entries["e.npy"] = to_npy(np.ones(500_000, dtype=np.uint32))
    return listed([generator(array("e.npy", 901), listed([], "tuple")) for _ in range(MANY)])


def nested_masks(parts):
    parts.entries["d.npy"] = to_npy(np.zeros(1_000_000, dtype=np.uint8))
    parts.entries["m.npy"] = to_npy(np.zeros(1_000_000, dtype=bool))
    node = array("d.npy", 901)
    for _ in range(80):
        node = masked(node, array("m.npy", 902))
    return node


def shared_masks(parts):
    nested_masks(parts)
    return listed([masked(array("d.npy", 901), array("m.npy", 902)) for _ in range(MANY)])


def long_double_keys(parts):
    keys = [f"{i}e4000" for i in range(1, 20_000)]
    return dictionary(dict.fromkeys(keys, value(0)), [typed("longdouble", "numpy")] * len(keys))


def duration_keys(parts):
    return dictionary({"7": value(0)}, [typed("timedelta64", "numpy")])


def set_of_long_doubles(parts):
    numbers = []
    for i in range(MANY):
        parts.entries[f"{i}.npy"] = to_npy(np.longdouble(f"{i + 1}e4000"))
        numbers.append({**array(f"{i}.npy"), "__class__": "longdouble"})
    return {**LIST, "__class__": "set", "__loader__": "SetNode", "content": numbers}


def many_names(parts):
    return listed(
        [
            {"__class__": "A", "__module__": f"ocfuse.m{i}", "__loader__": "ObjectNode"}
            for i in range(3_000)
        ]
    )


def text_of_lists(parts):
    return {**TEXT, "content": "[" + "[]," * 3_000_000 + "[]]"}


def random_state(key):
    state = {"bit_generator": value("MT19937"), "state": dictionary({"key": key, "pos": value(1)})}
    state |= {"has_gauss": value(0), "gauss": value(0.0)}
    return {
        "__class__": "RandomState", "__module__": "numpy.random.mtrand",
        "__loader__": "RandomStateNode", "content": dictionary(state),
    }  # fmt: skip


def texts_as_random_state(parts):
    """Return 624 texts, of which one is long: an array would make all of them as long."""
    return random_state(listed([value("x" * 1_000_000), *[value("x")] * 623]))


def texts_as_weights(parts):
    """Return a tree of neighbours whose weights would become an array of long texts."""
    parts.entries["rows.npy"] = to_npy(np.zeros((MANY, 1)))
    parts.entries["vec.npy"] = to_npy(np.zeros(1))
    parts.entries["mat.npy"] = to_npy(np.zeros((1, 1)))
    weights = listed([value("x" * 1_000_000), *[value("x")] * (MANY - 1)])
    metric = {
        "__class__": "EuclideanDistance64", "__module__": "sklearn.metrics._dist_metrics",
        "__loader__": "ObjectNode",
        "content": listed([value(2.0), array("vec.npy"), array("mat.npy")], "tuple"),
    }  # fmt: skip
    state = [array("rows.npy"), *[value(None)] * 3, value(40), *[value(None)] * 6, metric, weights]
    return {
        "__class__": "BallTree", "__module__": "sklearn.neighbors._ball_tree",
        "__loader__": "ObjectNode", "content": listed(state, "tuple"),
    }  # fmt: skip


FORGED = {
    texts_as_random_state: "not of whole numbers",
    texts_as_weights: "not made from arrays",
    hex_text: "seed of a generator",
    hex_entropy: "seed of a generator",
    shared_entropy: "seed of a generator",
    nested_masks: "something else than arrays",
    shared_masks: "used more often than there are",
    long_double_keys: "keys that are no text or numbers",
    duration_keys: "keys that are no text or numbers",
    set_of_long_doubles: "set holds something else",
    many_names: "more than 2000 types",
    text_of_lists: "no text or number",
}


def with_schema(parts, text):
    return zipped([*parts.entries.items(), (SCHEMA, text)])


def empty_lists(parts):
    """Return a description of 18 MB whose lists would take over half a gigabyte."""
    return with_schema(parts, b"[" + b"[]," * 6_000_000 + b"[]]")


def deep(parts):
    return with_schema(parts, b"[" * 1_000_000 + b"]" * 1_000_000)


def overlapping(parts):
    """Let every entry of the directory be the first one; they would be read one after another."""
    content = bytearray(
        zipped([("0" * 8, bytes(2**20))] + [(f"{i:08}", b"") for i in range(1, 50)])
    )
    for start in directory(content):
        content[start + 42 : start + 46] = struct.pack("<I", 0)
    return bytes(content)


def longer_when_read(parts):
    """Let entries have no bytes, but take the whole file to be read."""
    content = bytearray(parts.archive())
    for start in directory(content):
        content[start + 20 : start + 28] = struct.pack("<II", len(content), 0)
    return bytes(content)


ARCHIVES = {
    empty_lists: "far more memory than it has bytes",
    deep: "nested more than 1000 deep",
    overlapping: "lie upon each other",
    longer_when_read: "would expand",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return what a child with limits says of every file, by the name of its maker."""
    folder = tmp_path_factory.mktemp("hostile")
    whole = save(FeatureEncoder().fit(np.eye(3)), folder / "whole.ocf")
    for make in (*FORGED, *ARCHIVES):
        parts = Parts.of(whole.read_bytes(), whole)
        made = make(parts)
        if make in FORGED:
            parts.schema["content"]["content"]["complete_"] = made
            made = parts.archive()
        (folder / f"{make.__name__}.ocf").write_bytes(seal(made))
    paths = sorted(map(str, folder.glob("*.ocf")))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(SECONDS), str(BYTES), *paths],
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {os.path.basename(path).removesuffix(".ocf"): why for path, why in lines}


@pytest.mark.parametrize("make", [*FORGED, *ARCHIVES], ids=lambda make: make.__name__)
@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes")
def test_hostile_files_are_refused_at_once(told, make):
    assert (FORGED | ARCHIVES)[make] in told[make.__name__]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes")
def test_a_file_as_it_should_be_is_loaded_there(told):
    assert told["whole"] == "loaded"


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no devices")
@pytest.mark.parametrize("read", [load, read_header])
def test_devices_and_pipes_are_not_opened(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe"):
        with pytest.raises(ModelFileError, match="a device or a pipe"):
            read(path)


def test_seeds_that_users_give_are_kept(tmp_path):
    for seed in (0, 10**60, [1, 2, 3], np.arange(5), np.random.SeedSequence(5).spawn(3)[2]):
        model = FeatureEncoder().fit(np.eye(3))
        model.rng_ = np.random.default_rng(seed)
        loaded = load(save(model, tmp_path / "model.ocf"))
        np.testing.assert_array_equal(loaded.rng_.random(3), model.rng_.random(3))


def test_a_budget_of_bytes_and_seconds(monkeypatch):
    budget = Budget(10)
    budget.spend(2**28)
    with pytest.raises(ValueError, match="far more memory"):
        budget.spend(1000)
    budget.check_time()
    monkeypatch.setattr("ocfuse.persistence.archive.time.thread_time", lambda: 1e9)
    with pytest.raises(ValueError, match="far too long"):
        budget.check_time()


def test_brackets_in_text_are_no_nesting():
    Budget(10**6).spend_json(json.dumps({"a": "[" * 5000 + '\\"' + "{" * 5000}).encode())


def test_an_archive_after_other_bytes_is_read_as_one(tmp_path):
    content = b"before" + zipped([("a", b"1"), ("b", b"22")])
    with Archive(content, tmp_path) as archive:
        assert archive.read("b") == b"22"
