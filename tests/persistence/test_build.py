"""The reader of descriptions: no class is called, nothing multiplies or lies about its size."""

import functools
import json
import zoneinfo
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from benchmarks.hardening.parts import headed
from ocfuse import load
from ocfuse.encoder import FeatureEncoder
from ocfuse.exceptions import InvalidTypeError, ModelFileError, UntrustedTypeError
from ocfuse.persistence import save
from tests.persistence.forging import attribute, change_array, forged, node_of

X = np.random.default_rng(0).normal(size=(40, 3))
OURS = ("FusedDetector", "ocfuse")
TEXT = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"x"'}
LIST = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
ARGUMENTS = {**LIST, "__class__": "tuple", "__loader__": "TupleNode", "content": [TEXT]}
Point = namedtuple("Point", "x y")


class Holder(BaseEstimator):
    """Hold anything."""

    def __init__(self, held=None):
        self.held = held


TRUSTED = [f"{__name__}.Holder"]


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    return save(FeatureEncoder().fit(X), tmp_path_factory.mktemp("saved") / "a").read_bytes()


@pytest.fixture
def path(tmp_path, content):
    """Return a model file to be forged."""
    path = tmp_path / "model.ocf"
    path.write_bytes(content)
    return path


def put(node):
    """Put a node in the place of an attribute."""

    def change(parts):
        parts.schema["content"]["content"]["complete_"] = node

    return change


def again(held, tmp_path, *trusted):
    path = save(Holder(held), tmp_path / "held.ocf")
    return load(path, trusted=[*TRUSTED, *trusted]).held


@pytest.mark.parametrize(
    "call",
    [
        {"__loader__": "ConstructorFromReduceNode", "content": ARGUMENTS},
        {"__loader__": "ListNode", "content": [TEXT]},
        {"__loader__": "SetNode", "content": [TEXT]},
        {"__loader__": "DictNode", "content": {}, "key_types": LIST},
        {"__loader__": "LossNode", "content": TEXT, "__reduce__": {"args": ARGUMENTS}},
        {"__loader__": "TreeNode", "content": TEXT, "__reduce__": {"args": ARGUMENTS}},
        {"__loader__": "TypeNode"},
        {"__loader__": "FunctionNode"},
        {"__loader__": "NdArrayNode", "type": "numpy", "file": "x.npy"},
        {"__loader__": "RandomStateNode", "content": TEXT},
        {"__loader__": "PartialNode", "content": {}},
        {"__loader__": "MethodNode", "content": {"func": "save", "obj": TEXT}},
        {"__loader__": "OperatorFuncNode", "attrs": ARGUMENTS},
        {"__loader__": "SparseMatrixNode", "type": "scipy", "file": "x.npz"},
        {"__loader__": "CachedNode"},
        {"__loader__": "Unheard"},
    ],
    ids=lambda call: call["__loader__"],
)
@pytest.mark.parametrize(
    "name", [OURS, ("system", "os"), ("IsolationForest", "sklearn.ensemble._iforest")]
)
def test_no_class_is_called(path, call, name):
    node = {"__class__": name[0], "__module__": name[1], **call}
    with pytest.raises(UntrustedTypeError, match=f"{name[1]}.{name[0]}"):
        load(forged(path, put(node)))


def test_names_of_functions_among_ours(path):
    node = {
        "__class__": "write_atomically",
        "__module__": "ocfuse.system.files",
        "__loader__": "ObjectNode",
    }
    with pytest.raises(UntrustedTypeError, match="write_atomically"):
        load(forged(path, put(node)))


@pytest.mark.parametrize(
    "name",
    [
        "ocfuse.cli.app.Anything",
        "ocfuse.lab.paper.systems.System",
        "sklearn.cluster._kmeans.KMeans",
        "sklearn.ensemble._gb.GradientBoostingRegressor",
        "sklearn.preprocessing._label.MultiLabelBinarizer",
        "sklearn.svm._classes.SVC",
    ],
)
def test_packages_that_no_model_needs(path, name):
    module, _, kind = name.rpartition(".")
    node = {"__class__": kind, "__module__": module, "__loader__": "ObjectNode"}
    with pytest.raises(UntrustedTypeError, match=name):
        load(forged(path, put(node)))


def doubling(n):
    node = {**LIST, "__id__": 1}
    for number in range(2, n):
        node = {**LIST, "__id__": number, "content": [node, {"__id__": number - 1}]}
    return node


def test_parts_that_multiply(path):
    with pytest.raises(ModelFileError, match="its parts repeat"):
        load(forged(path, put(doubling(60))))


def test_parts_that_hold_themselves(path):
    node = {**LIST, "__id__": 1, "content": [{"__id__": 1}]}
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        load(forged(path, put(node)))


def test_parts_that_are_deeper_than_python(path):
    node = LIST
    for _ in range(300):
        node = {**LIST, "content": [node]}
    with pytest.raises(ModelFileError, match="RecursionError"):
        load(forged(path, put(node)))


def test_an_array_that_is_used_twice(path):
    def change(parts):
        one = attribute(parts, "FeatureEncoder", "complete_")
        attribute(parts, "FeatureEncoder", "categorical_")["file"] = one["file"]

    with pytest.raises(ModelFileError, match="used twice"):
        load(forged(path, change))


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}",
            "cannot have the shape",
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 10000000000)}",
            "cannot have the shape",
        ),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "cannot have the shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (100,)}", "as many bytes as its shape"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "not of numbers or text"),
        (
            "{'descr': ('<f8', (100000000,)), 'fortran_order': False, 'shape': (0,)}",
            "not of numbers or text",
        ),
        (
            "{'descr': [('a', '<f8', (100000000,))], 'fortran_order': False, 'shape': (0,)}",
            "not of numbers or text",
        ),
        ("{'descr': '|V0', 'fortran_order': False, 'shape': (9,)}", "not of numbers or text"),
        ("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}", "cannot be rebuilt"),
    ],
)
def test_arrays_that_lie(path, header, why):
    def change(parts):
        name = attribute(parts, "FeatureEncoder", "complete_")["file"]
        parts.entries[name] = headed(header, bytes(8))

    with pytest.raises(ModelFileError, match=why):
        load(forged(path, change))


@pytest.mark.parametrize("version", [b"\x03\x00", b"\x00\x00", b"\xff\xff"])
def test_arrays_of_another_version(path, version):
    def change(parts):
        name = attribute(parts, "FeatureEncoder", "complete_")["file"]
        content = parts.entries[name]
        parts.entries[name] = content[:6] + version + content[8:]

    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        load(forged(path, change))


@pytest.mark.parametrize("protocol", [0, 1, 3, True, "2", None])
def test_other_protocols(path, protocol):
    def change(parts):
        parts.schema["protocol"] = protocol

    with pytest.raises(ModelFileError, match="This version of ocfuse reads protocol 2"):
        load(forged(path, change))


@pytest.mark.parametrize("thing", [[1, 2], {"a": 1}, "text", None, np.eye(2)])
def test_only_models_are_saved(thing, tmp_path):
    with pytest.raises(InvalidTypeError, match="holds no model"):
        save(thing, tmp_path / "thing.ocf")


def test_only_models_are_loaded(path):
    def change(parts):
        parts.schema.update(TEXT)

    with pytest.raises(ModelFileError, match="holds no model"):
        load(forged(path, change))


def test_names_do_not_steer_the_terminal(path):
    node = {"__class__": "\x1b[2J" + "x" * 10**5, "__module__": "a", "__loader__": "ObjectNode"}
    with pytest.raises(UntrustedTypeError) as caught:
        load(forged(path, put(node)))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_many_strangers(path):
    nodes = [
        {"__class__": f"C{i}", "__module__": "a", "__loader__": "ObjectNode"} for i in range(50)
    ]
    with pytest.raises(UntrustedTypeError, match="and 30 more"):
        load(forged(path, put({**LIST, "content": nodes})))


@pytest.mark.parametrize("kind", ["list", "map", "object_", "void"])
def test_keys_of_dictionaries(path, kind):
    def change(parts):
        module = "numpy" if kind in ("object_", "void") else "builtins"
        node_of(parts, "FeatureEncoder")["content"]["key_types"]["content"][0].update(
            __class__=kind, __module__=module
        )

    with pytest.raises(ModelFileError):
        load(forged(path, change))


def test_scalars_that_are_arrays(path):
    def change(parts):
        node = attribute(parts, "FeatureEncoder", "complete_")
        node["__class__"] = "float64"

    with pytest.raises(ModelFileError, match="a number is an array"):
        load(forged(path, change))


#: Whole numbers that all have the same hash.
COLLIDING = [str(k * (2**61 - 1)) for k in range(9, 12)]


def test_sets_of_numbers_with_one_hash(path):
    items = [{**TEXT, "content": number} for number in COLLIDING]
    node = {**LIST, "__class__": "set", "__loader__": "SetNode", "content": items}
    with pytest.raises(ModelFileError, match="set holds something else"):
        load(forged(path, put(node)))


def test_keys_with_one_hash(path):
    kinds = [{"__class__": "int", "__module__": "builtins", "__loader__": "TypeNode"}] * 3
    node = {
        "__class__": "dict", "__module__": "builtins", "__loader__": "DictNode",
        "content": dict.fromkeys(COLLIDING, TEXT), "key_types": {**LIST, "content": kinds},
    }  # fmt: skip
    with pytest.raises(ModelFileError, match="keys that are no text or numbers"):
        load(forged(path, put(node)))


@pytest.mark.parametrize("value", ["[0]", "{}"])
def test_values_that_hold_parts(path, value):
    """They would count as one part, however long, and could stand in an array many times."""
    with pytest.raises(ModelFileError, match="no text or number"):
        load(forged(path, put({**TEXT, "content": value})))


def test_arrays_of_the_letters_of_a_text(path):
    shape = [{**TEXT, "content": "1"}] * 2
    node = {
        "__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "json",
        "shape": {**LIST, "__class__": "tuple", "__loader__": "TupleNode", "content": shape},
        "content": [TEXT],
    }  # fmt: skip
    with pytest.raises(ModelFileError, match="not of the shape"):
        load(forged(path, put(node)))


def test_masks_that_would_be_made_to_fit(tmp_path):
    path = save(Holder(np.ma.MaskedArray(X, X > 0)), tmp_path / "held.ocf")

    def change(parts):
        change_array(parts, node_of(parts, "MaskedArray")["content"]["mask"], lambda m: m[:1, :1])

    with pytest.raises(ModelFileError, match="the mask of an array"):
        load(forged(path, change), trusted=TRUSTED)


def test_object_arrays_of_another_shape(tmp_path):
    path = save(Holder(np.array([["a", 1], ["b", 2]], dtype=object)), tmp_path / "held.ocf")

    def change(parts):
        node_of(parts, "ndarray")["content"].pop()

    with pytest.raises(ModelFileError, match="not of the shape"):
        load(forged(path, change), trusted=TRUSTED)


def test_arrays_keep_layout_and_may_be_written(tmp_path):
    for array in (
        np.asfortranarray(X),
        X.astype(">f4"),
        X[:0],
        np.float32(3),
        np.array(["a", "ü"]),
    ):
        found = again(array, tmp_path)
        np.testing.assert_array_equal(found, array)
        assert type(found) is type(array)
        assert found.dtype == array.dtype
        if isinstance(array, np.ndarray):
            assert found.flags.f_contiguous == array.flags.f_contiguous
            assert found.flags.writeable


@pytest.mark.parametrize(
    "held",
    [
        {"a": 1, "b": [1, (2, "x")]},
        {1: "a", 2.5: "b"},
        {True: "a", False: "b"},
        {np.int64(3): "a"},
        OrderedDict(z=1, a=2),
        {"s": {1, 2}},
        b"bytes",
        bytearray(b"bytes"),
        slice(1, None, 2),
        np.dtype("f4"),
        np.float64,
        int,
        np.log1p,
        None,
        float("nan").hex(),
    ],
    ids=repr,
)
def test_usual_things_need_no_trust(held, tmp_path):
    assert again(held, tmp_path) == held


def test_object_arrays_and_masked_ones(tmp_path):
    objects = np.array([[None, "a"], [1, 2.5]], dtype=object)
    np.testing.assert_array_equal(again(objects, tmp_path), objects)
    masked = np.ma.MaskedArray([1.0, 2.0], [True, False])
    found = again(masked, tmp_path)
    np.testing.assert_array_equal(found.mask, masked.mask)
    assert again(defaultdict(list, a=[1]), tmp_path)["new"] == []


def test_shared_parts_stay_shared(tmp_path):
    one = {"a": X}
    found = again([one, one, X], tmp_path)
    assert found[0] is found[1]
    assert found[0]["a"] is found[2]


def test_generators_go_on(tmp_path):
    rng = np.random.default_rng(5)
    rng.random(3)
    state = np.random.RandomState(5)
    state.rand(3)
    found, other = again([rng, state], tmp_path)
    assert found.random() == rng.random()
    assert other.rand() == state.rand()


@pytest.mark.parametrize(
    ("held", "name"),
    [
        (frozenset("ab"), "builtins.frozenset"),
        (zoneinfo.ZoneInfo("UTC"), "zoneinfo.ZoneInfo"),
        (Point(1, 2), f"{__name__}.Point"),
    ],
)
def test_what_was_vouched_for_is_called(held, name, tmp_path):
    with pytest.raises(UntrustedTypeError, match=name):
        again(held, tmp_path)
    found = again(held, tmp_path, name)
    assert (type(found), found) == (type(held), held)


def test_partial_functions_and_sparse_matrices(tmp_path):
    function = functools.partial(json.dumps, sort_keys=True)
    found = again(function, tmp_path, "functools.partial", "json.dumps")
    assert found({"b": 1, "a": 2}) == '{"a": 2, "b": 1}'
    sparse = scipy.sparse.csr_array(np.eye(3))
    found = again(sparse, tmp_path, f"{type(sparse).__module__}.csr_array")
    np.testing.assert_array_equal(found.toarray(), np.eye(3))


def test_a_tuple_with_other_fields(tmp_path):
    path = save(Holder(Point(1, 2)), tmp_path / "held.ocf")

    def change(parts):
        node_of(parts, "Point")["content"].pop()

    with pytest.raises(ModelFileError, match="has other fields"):
        load(forged(path, change), trusted=[*TRUSTED, f"{__name__}.Point"])


def test_losses_are_made_from_numbers(tmp_path):
    path = save(FeatureEncoder().fit(X), tmp_path / "model.ocf")
    node = {
        "__class__": "Hinge",
        "__module__": "sklearn.linear_model._sgd_fast",
        "__loader__": "LossNode",
        "content": TEXT,
        "__reduce__": {"args": ARGUMENTS},
    }
    with pytest.raises(ModelFileError, match="something else than numbers"):
        load(forged(path, put(node)))


def test_the_bits_of_a_model_are_those_that_were_saved(path):
    before = load(path).transform(X)

    def change(parts):
        change_array(parts, attribute(parts, "NumberScaler", "centre_"), lambda a: a + 1)

    assert not np.array_equal(load(forged(path, change)).transform(X), before)
