"""Numbers in a file that compiled code would follow out of the model's memory are refused."""

import json

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import BallTree, KDTree, KernelDensity, LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import OneClassSVM

from ocfuse import load
from ocfuse.exceptions import ModelFileError
from ocfuse.persistence import save
from tests.persistence.forging import attribute, change_array, forged, node_of

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def refuse(path, why):
    with pytest.raises(ModelFileError, match=f"cannot be rebuilt.*{why}"):
        load(path)


def set_field(field, at, value):
    def change(nodes):
        nodes[field][at] = value
        return nodes

    return change


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Return model files as they should be."""
    by_matrix = {"metric": "mahalanobis", "metric_params": {"VI": np.eye(3)}}
    random = np.random.RandomState(0)
    models = {
        "forest": IsolationForest(n_estimators=2, max_features=2, random_state=0),
        "drawn forest": IsolationForest(n_estimators=2, random_state=random),
        "classifier": RandomForestClassifier(2),
        "regressor": RandomForestRegressor(2),
        "density": KernelDensity(leaf_size=4),
        "machine": OneClassSVM(),
        "factor": LocalOutlierFactor(novelty=True),
        "factor by matrix": LocalOutlierFactor(5, novelty=True, algorithm="ball_tree", **by_matrix),
        "neighbours": NearestNeighbors(algorithm="brute"),
        "neighbours by matrix": NearestNeighbors(algorithm="brute", **by_matrix),
    }
    fitted = {name: model.fit(X, Y) for name, model in models.items()}
    fitted["categories"] = OneHotEncoder(drop="first").fit(np.arange(4.0)[:, None])
    fitted["generator"] = OneClassSVM().fit(X)
    fitted["generator"].generator_ = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("saved") / "model.ocf"
    return {name: save(model, path).read_bytes() for name, model in fitted.items()}


@pytest.fixture
def saved(contents, tmp_path):
    """Return what writes one of the model files, to be forged."""

    def written(name):
        path = tmp_path / "model.ocf"
        path.write_bytes(contents[name])
        return path

    return written


@pytest.fixture
def forest(saved):
    return saved("forest")


@pytest.mark.parametrize(
    ("field", "at", "value", "why"),
    [
        ("left_child", 0, 10**9, "no tree"),
        ("left_child", 0, -5, "no tree"),
        ("left_child", 0, 0, "no tree"),  # a cycle
        ("right_child", 0, 1, "no tree"),  # a child of two
        ("right_child", -1, 1, "leaf of a tree has a child"),
        ("feature", 0, 2, "column that there is not"),
        ("feature", 0, -1, "column that there is not"),
    ],
)
def test_nodes_of_trees(forest, field, at, value, why):
    def change(parts):
        nodes = node_of(parts, "Tree")["content"]["content"]["nodes"]
        change_array(parts, nodes, set_field(field, at, value))

    refuse(forged(forest, change), why)


def test_nodes_that_lead_back(forest):
    def swapped(nodes):
        """Exchange the children of the root and of its left child: all are reached, from behind."""
        one, other = nodes["left_child"][:2].copy()
        nodes["left_child"][0], nodes["left_child"][1] = other, one
        return nodes

    def change(parts):
        change_array(parts, node_of(parts, "Tree")["content"]["content"]["nodes"], swapped)

    refuse(forged(forest, change), "lead back")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("node_count", 10**6, "as many nodes as it says"),
        ("node_count", 0, "as many nodes as it says"),
        ("max_depth", 0, "not as deep as it says"),
        ("max_depth", 10**12, "not as deep as it says"),
    ],
)
def test_numbers_of_trees(forest, key, value, why):
    def change(parts):
        node_of(parts, "Tree")["content"]["content"][key] = told(value)

    refuse(forged(forest, change), why)


def told(value):
    return {
        "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
        "content": json.dumps(value),
    }  # fmt: skip


@pytest.mark.parametrize(("at", "value"), [(0, 10**6), (0, -1), (2, 10**9), (2, 0), (2, -1)])
def test_arguments_of_trees(forest, at, value):
    def change(parts):
        node_of(parts, "Tree")["__reduce__"]["args"]["content"][at] = told(value)

    refuse(forged(forest, change), "")


def test_trees_that_ask_for_more_columns_than_they_get(forest):
    def change(parts):
        attribute(parts, "IsolationForest", "estimators_features_")["content"] = [
            attribute(parts, "IsolationForest", "estimators_features_")["content"][0]
        ]
        node = attribute(parts, "IsolationForest", "estimators_features_")["content"][0]
        change_array(parts, node, lambda features: features[:1])

    refuse(forged(forest, change), "")


@pytest.mark.parametrize("value", [1, -1, None, 2.5, "3"])
@pytest.mark.parametrize("name", ["IsolationForest", "ExtraTreeRegressor"])
def test_columns_of_forests(forest, name, value):
    def change(parts):
        for node in parts.nodes():
            if node["__class__"] == name and "n_features_in_" in node["content"]["content"]:
                node["content"]["content"]["n_features_in_"] = told(value)

    refuse(forged(forest, change), "column")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("n_features_in_", 2, "more columns"),
        ("n_classes_", 10**8, "other classes"),
        ("n_outputs_", 10**8, "other classes"),
    ],
)
@pytest.mark.parametrize("model", ["classifier", "regressor"])
def test_numbers_of_other_forests(model, key, value, why, saved):
    def change(parts):
        content = parts.schema["content"]
        if key not in content["content"]:
            content["key_types"]["content"].append(content["key_types"]["content"][0])
        content["content"][key] = told(value)

    refuse(forged(saved(model), change), why)


def test_arrays_that_many_trees_share(saved):
    """A tree copies its arrays: many small parts could make much of a large one."""

    def change(parts):
        tree = attribute(parts, "KernelDensity", "tree_")
        rows = tree["content"]["content"][0]
        change_array(parts, rows, lambda rows: np.tile(rows, (100, 1)))
        copies = [json.loads(json.dumps(tree)) for _ in range(3)]
        for number, copy in enumerate(copies):
            copy["__id__"] = -number - 1
            copy["content"]["__id__"] = -number - 100
        tree.clear()
        tree.update({"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"})
        tree["content"] = copies

    refuse(forged(saved("density"), change), "used more often than there are")


def test_rows_of_trees_that_would_be_copied(saved):
    def change(parts):
        rows = node_of(parts, "KDTree")["content"]["content"][0]
        change_array(parts, rows, lambda rows: rows.astype("f4"))

    refuse(forged(saved("density"), change), "other rows")


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("support_vectors_", lambda a: a[:-1]),
        ("support_vectors_", lambda a: a[:, :2]),
        ("_dual_coef_", lambda a: a[:, :-1]),
        ("_dual_coef_", lambda a: np.vstack([a, a])),
        ("_intercept_", lambda a: a[:0]),
        ("_n_support", lambda a: a + 1),
        ("_n_support", lambda a: np.array([-5, a.sum() + 5], dtype=a.dtype)),
        ("support_", lambda a: a + 40),
        ("support_", lambda a: -1 - a),
        ("_probA", lambda a: np.zeros(2)),
    ],
)
def test_support_vector_machines(key, change, saved):
    forge = lambda p: change_array(p, attribute(p, "OneClassSVM", key), change)  # noqa: E731
    refuse(forged(saved("machine"), forge), "machine")


@pytest.mark.parametrize("kernel", ["precomputed", None])
def test_kernels_of_support_vector_machines(kernel, saved):
    def change(parts):
        node_of(parts, "OneClassSVM")["content"]["content"]["kernel"] = told(kernel)

    refuse(forged(saved("machine"), change), "its own kernel")


@pytest.mark.parametrize("name", ["decision_function", "n_support_", "_validate_for_predict"])
def test_attributes_that_hide_methods(name, saved):
    def change(parts):
        content = node_of(parts, "OneClassSVM")["content"]
        content["key_types"]["content"].append(content["key_types"]["content"][0])
        content["content"][name] = told(1)

    refuse(forged(saved("machine"), change), f"'{name}' would take the place of a method")


@pytest.mark.parametrize(("n_jobs", "expected"), [(10**5, -1), (1.5, -1), (1, 1), (-2, -2)])
def test_more_processors_than_there_are(n_jobs, expected, saved):
    def change(parts):
        node_of(parts, "LocalOutlierFactor")["content"]["content"]["n_jobs"] = told(n_jobs)

    assert load(forged(saved("factor"), change)).n_jobs == expected


def test_other_versions_are_told_by_the_header_alone(saved):
    def change(parts):
        node_of(parts, "OneClassSVM")["content"]["content"]["_sklearn_version"] = told("\x1b[2J")

    load(forged(saved("machine"), change))  # without a warning, which would be an error here


@pytest.mark.parametrize(
    ("key", "forge"),
    [
        ("_n_features_outs", lambda parts, node: node.update(content=[told(1)])),
        (
            "categories_",
            lambda parts, node: change_array(parts, node["content"][0], lambda a: a[::-1]),
        ),
        ("_infrequent_enabled", lambda parts, node: node.update(told(True))),
        ("_drop_idx_after_grouping", lambda parts, node: node["content"][0].update(told(4))),
    ],
)
def test_categories(key, forge, saved):
    refuse(
        forged(saved("categories"), lambda p: forge(p, attribute(p, "OneHotEncoder", key))),
        "categories",
    )


def test_matrices_of_metrics(saved):
    def change(parts):
        matrix = attribute(parts, "NearestNeighbors", "metric_params")["content"]["VI"]
        change_array(parts, matrix, lambda matrix: matrix[:1, :1])

    refuse(forged(saved("neighbours by matrix"), change), "not one of these columns")


@pytest.mark.parametrize("extra", ["_impl", "_sparse"])
def test_support_vector_machines_that_say_what_they_are(extra, saved):
    def change(parts):
        content = node_of(parts, "OneClassSVM")["content"]
        if extra not in content["content"]:
            content["key_types"]["content"].append(content["key_types"]["content"][0])
        content["content"][extra] = told("c_svc")

    refuse(forged(saved("machine"), change), "machine")


@pytest.mark.parametrize("key", ["_fit_X", "n_samples_fit_", "n_features_in_"])
def test_rows_of_neighbours(key, saved):
    def change(parts):
        parts.schema["content"]["content"][key] = told(7)

    refuse(forged(saved("neighbours"), change), "neighbours")


@pytest.mark.parametrize("kind", [KDTree, BallTree])
def test_trees_of_neighbours_are_grown_again(kind, tmp_path):
    """What a file says of nodes does not matter: they are made from the rows."""
    name = {KDTree: "kd_tree", BallTree: "ball_tree"}[kind]
    model = LocalOutlierFactor(5, novelty=True, algorithm=name, leaf_size=4).fit(X)
    path = save(model, tmp_path / "model.ocf")

    def change(parts):
        state = node_of(parts, kind.__name__)["content"]["content"]
        change_array(parts, state[1], lambda index: index + 10**9)
        change_array(parts, state[2], set_field("idx_end", 0, 10**9))
        change_array(parts, state[3], lambda bounds: bounds[:, :1])
        state[6] = told(10**6)

    loaded = load(forged(path, change))
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("at", [0, 4, 11, 12])
def test_what_trees_of_neighbours_grow_from(at, saved):
    def change(parts):
        node_of(parts, "KDTree")["content"]["content"][at] = told([1.0])

    refuse(forged(saved("density"), change), "")


def test_metrics(saved):
    def change(parts):
        state = node_of(parts, "MahalanobisDistance64")["content"]["content"]
        change_array(parts, state[2], lambda matrix: matrix[:, :1])

    refuse(forged(saved("factor by matrix"), change), "not square")


@pytest.mark.parametrize("value", [625, -1, 10**9, True, 1.0])
def test_random_states(value, saved):
    def change(parts):
        node_of(parts, "RandomState")["content"]["content"]["state"]["content"]["pos"] = told(value)

    refuse(forged(saved("drawn forest"), change), "random state is out of bounds")


@pytest.mark.parametrize("key", ["bit_generator", "seed_seq"])
def test_generators(key, saved):
    change = {"bit_generator": ("bit_generator", "Philox"), "seed_seq": ("pool_size", 10**5)}[key]

    def forge(parts):
        node_of(parts, "Generator")["content"][key]["content"][change[0]] = told(change[1])

    refuse(forged(saved("generator"), forge), "default_rng")
