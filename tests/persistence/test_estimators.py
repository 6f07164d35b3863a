"""What fit leaves is declared for every estimator of scikit-learn that a file may name."""

import inspect
import json

import numpy as np
import pytest
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import KernelDensity, LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from benchmarks.hardening.estimators import QUERY, X, Y, estimators, fitted
from benchmarks.hardening.parts import to_npy
from benchmarks.hardening.trials import answers, tried, tried_apart
from ocfuse import load
from ocfuse.encoder import FeatureEncoder
from ocfuse.exceptions import InvalidTypeError, UntrustedTypeError
from ocfuse.persistence import save
from ocfuse.persistence.estimators import FITTED
from tests.persistence.forging import attribute, change_array, forged, node_of

NAMES = list(estimators())
#: Attributes that any estimator may have, and what the base classes of forests repeat.
COMMON = {
    "_sklearn_version", "n_features_in_", "feature_names_in_", "estimator", "estimator_params",
    "bootstrap_features", "oob_score", "_sklearn_output_config",
}  # fmt: skip
#: Attributes of training alone, which nothing that scores reads.
OF_TRAINING = {
    "linear_model.LogisticRegressionCV": {"Cs_", "n_iter_", "scores_", "coefs_paths_", "C_",
                                          "l1_ratio_", "l1_ratios_"},
    "linear_model.SGDOneClassSVM": {"_loss_function_"},
    "preprocessing.OneHotEncoder": {"_drop_idx_after_grouping", "drop_idx_"},
    "preprocessing.OrdinalEncoder": {"_n_features_outs"},
}  # fmt: skip


def parts_of(model):
    """Give an estimator and all that it holds."""
    if hasattr(model, "get_params") and hasattr(model, "__dict__"):
        yield model
        for value in vars(model).values():
            yield from parts_of(value)
    elif isinstance(model, list | tuple):
        for value in model:
            yield from parts_of(value)


def listed(part):
    return f"{type(part).__module__.split('.')[1]}.{type(part).__name__}"


@pytest.fixture(scope="module")
def fitted_parts():
    return [
        part
        for model in fitted().values()
        for part in parts_of(model)
        if type(part).__module__.startswith("sklearn.")
    ]


def test_every_declared_class_has_an_instance(fitted_parts):
    assert {listed(part) for part in fitted_parts} == set(FITTED)


@pytest.mark.parametrize("name", sorted(FITTED))
def test_every_attribute_is_declared(name, fitted_parts):
    """Fails for a version of scikit-learn that leaves others: look whether they are followed."""
    for part in (part for part in fitted_parts if listed(part) == name):
        parameters = set()
        for kind in type(part).__mro__:
            parameters |= set(inspect.signature(kind.__init__).parameters)
        known = set(FITTED[name]) | COMMON | OF_TRAINING.get(name, set()) | parameters
        assert set(part.__getstate__()) <= known


@pytest.mark.parametrize("name", NAMES)
def test_what_is_declared_is_saved_and_loaded(name, tmp_path):
    model = fitted()[name]
    width = getattr(model, "n_features_in_", 3)
    for key, value in vars(model).items():
        if isinstance(value, np.ndarray):  # products of a view round otherwise than those of a copy
            setattr(model, key, value.copy(order="A"))
    loaded = load(save(model, tmp_path / "model.ocf"))
    assert answers(loaded, width) == answers(model, width)


def told(value):
    return {
        "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
        "content": json.dumps(value),
    }  # fmt: skip


def bare(name):
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": "ObjectNode"}


def end_of(path, width=3):
    """Return what becomes of a file, in a process that may die of it."""
    ((ended, message),) = tried_apart([lambda: tried(path, width)])
    assert ended != "refused" or "cannot be rebuilt" in message
    return ended


def put_option(owner, name, option, array):
    def change(parts):
        node = attribute(parts, owner, name)
        kinds = [{"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}]
        made = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode",
                "type": "numpy", "file": "forged.npy"}  # fmt: skip
        parts.entries["forged.npy"] = to_npy(array)
        many = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
        node.update(content={option: made}, key_types={**many, "content": kinds})

    return change


METRIC = "sklearn.metrics._dist_metrics.MahalanobisDistance64"


def test_a_metric_without_state_in_a_tree_is_refused(tmp_path):
    model = LocalOutlierFactor(5, novelty=True, algorithm="ball_tree").fit(X[:, :1])
    path = save(model, tmp_path / "model.ocf")

    def change(parts):
        node_of(parts, "BallTree")["content"]["content"][11] = bare(METRIC)

    assert end_of(forged(path, change), 1) == "refused"


@pytest.mark.parametrize("name", ["metric", "effective_metric_"])
def test_a_bare_metric_is_refused(name, tmp_path):
    path = save(NearestNeighbors(algorithm="brute").fit(X[:, :1]), tmp_path / "model.ocf")

    def change(parts):
        parts.schema["content"]["content"][name] = bare(METRIC)

    assert end_of(forged(path, change), 1) == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda a: a[:1], lambda a: a[:0], lambda a: np.append(a, a)])
@pytest.mark.parametrize("fused", [False, True])
def test_a_machine_with_other_classes_is_refused(change, fused, tmp_path):
    path = save(fitted()["fused" if fused else "machine"], tmp_path / "model.ocf")

    def forge(parts):
        attributes = [
            node["content"]["content"]
            for node in parts.nodes()
            if node["__class__"] == "OneClassSVM" and node["__loader__"] == "ObjectNode"
        ]
        learned = next(some for some in attributes if "_n_support" in some)
        change_array(parts, learned["_n_support"], change)

    assert end_of(forged(path, forge)) == "refused"


@pytest.mark.parametrize("change", [np.ravel, lambda a: a[0], lambda a: a[:1], lambda a: a[:0]])
@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
def test_a_flat_matrix_of_a_metric_is_refused(change, algorithm, tmp_path):
    options = {"metric": "mahalanobis", "metric_params": {"VI": np.eye(3)}}
    model = LocalOutlierFactor(5, novelty=True, algorithm=algorithm, **options).fit(X)
    path = save(model, tmp_path / "model.ocf")

    def forge(parts):
        matrix = attribute(parts, "LocalOutlierFactor", "metric_params")["content"]["VI"]
        change_array(parts, matrix, change)

    assert end_of(forged(path, forge)) == "refused"


@pytest.mark.parametrize("option", ["Y_norm_squared", "X_norm_squared", "out", "w", "V", "VI"])
@pytest.mark.parametrize("kind", [NearestNeighbors, LocalOutlierFactor])
def test_options_of_metrics_that_fit_does_not_leave_are_refused(option, kind, tmp_path):
    path = save(kind(n_neighbors=5, algorithm="brute").fit(X), tmp_path / "model.ocf")
    numbers = np.arange(2.0 if option in ("w", "V") else 3.0)
    change = put_option(kind.__name__, "effective_metric_params_", option, numbers)
    assert end_of(forged(path, change)) == "refused"


@pytest.mark.parametrize("change", [np.ravel, lambda a: a[:1], lambda a: a[:0], lambda a: a[0, 0]])
def test_an_envelope_with_another_matrix_is_refused(change, tmp_path):
    """It is the same distance, by SciPy, which does not look either."""
    path = save(fitted()["envelope"], tmp_path / "model.ocf")

    def forge(parts):
        change_array(parts, attribute(parts, "EllipticEnvelope", "precision_"), change)

    assert end_of(forged(path, forge)) == "refused"


def test_a_mask_in_the_place_of_columns_is_refused(tmp_path):
    """It is as long as there are columns, and chooses fewer than a tree asks for."""
    path = save(fitted()["isolation"], tmp_path / "model.ocf")

    def forge(parts):
        for node in attribute(parts, "IsolationForest", "estimators_features_")["content"]:
            change_array(parts, node, lambda a: np.array([True, False, False]))
        parts.schema["content"]["content"]["_max_features"] = told(2)

    assert end_of(forged(path, forge)) == "refused"


def test_a_tree_without_its_estimator_is_refused(tmp_path):
    """It would follow its nodes whatever the columns are that it gets."""
    steps = Pipeline([("scale", StandardScaler()), ("tree", DecisionTreeClassifier())])
    path = save(steps.fit(X, Y), tmp_path / "model.ocf")

    def change(parts):
        pair = node_of(parts, "Pipeline")["content"]["content"]["steps"]["content"][1]
        pair["content"][1] = attribute(parts, "DecisionTreeClassifier", "tree_")

    assert end_of(forged(path, change)) == "refused"


def test_a_tree_in_the_place_of_a_member_answers_nothing(tmp_path):
    path = save(DecisionTreeClassifier().fit(X, Y), tmp_path / "model.ocf")

    def change(parts):
        attributes = parts.schema["content"]["content"]
        attributes["criterion"] = {
            "__class__": "dict", "__module__": "builtins", "__loader__": "DictNode",
            "content": {"tree": attributes["tree_"]},
            "key_types": {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode",
                          "content": [parts.schema["content"]["key_types"]["content"][0]]},
        }  # fmt: skip
        del attributes["tree_"]
        parts.schema["content"]["key_types"]["content"].pop()

    loaded = load(forged(path, change)).criterion["tree"]
    assert not any(hasattr(loaded, name) for name in ("predict", "apply", "score_samples"))


@pytest.mark.parametrize("option", ["where", "out", "dtype"])
def test_functions_of_numpy_are_not_told_how_to_write(option, tmp_path):
    path = save(FunctionTransformer(np.expm1, kw_args={}).fit(X), tmp_path / "model.ocf")
    change = put_option("FunctionTransformer", "kw_args", option, np.array(False))
    assert end_of(forged(path, change)) == "refused"


@pytest.mark.parametrize("kind", ["list", "tuple"])
@pytest.mark.parametrize("model", [FeatureEncoder(), StandardScaler()])
def test_a_state_of_pairs_is_refused(kind, model, tmp_path):
    """An update takes them as it takes names, which are looked at for hidden methods."""
    path = save(model.fit(X), tmp_path / "model.ocf")
    loader = f"{kind.capitalize()}Node"
    hidden = {"__class__": "log1p", "__module__": "numpy", "__loader__": "FunctionNode"}

    def change(parts):
        many = {"__class__": kind, "__module__": "builtins", "__loader__": loader}
        pair = {**many, "content": [told("transform"), hidden]}
        parts.schema["content"] = {**many, "content": [pair]}

    assert end_of(forged(path, change)) == "refused"


@pytest.mark.parametrize("name", ["_impl", "_sparse_kernels", "_parameter_constraints"])
def test_an_attribute_of_the_class_is_refused(name, tmp_path):
    model = OneClassSVM().fit(X)
    setattr(model, name, "nu_svc")
    with pytest.raises(InvalidTypeError, match=f"{name} of OneClassSVM|machine"):
        save(model, tmp_path / "model.ocf")


def test_a_metric_is_given_by_its_name(tmp_path):
    model = NearestNeighbors(metric=DistanceMetric.get_metric("euclidean")).fit(X)
    with pytest.raises(InvalidTypeError, match="a metric is not one by its name"):
        save(model, tmp_path / "model.ocf")


def own_distance(one, other):
    return float(np.abs(one - other).max())


@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
def test_a_metric_of_ones_own_needs_its_name(algorithm, tmp_path):
    model = NearestNeighbors(metric=own_distance, algorithm=algorithm).fit(X)
    path = save(model, tmp_path / "model.ocf")
    with pytest.raises(UntrustedTypeError, match="own_distance"):
        load(path)
    names = [f"{__name__}.own_distance", "sklearn.metrics._dist_metrics.PyFuncDistance64"]
    found, _ = load(path, trusted=names).kneighbors(QUERY)
    np.testing.assert_array_equal(found, model.kneighbors(QUERY)[0])


def test_densities_keep_their_weights(tmp_path):
    model = KernelDensity(algorithm="ball_tree").fit(X, sample_weight=np.arange(1.0, 42))
    loaded = load(save(model, tmp_path / "model.ocf"))
    np.testing.assert_array_equal(loaded.score_samples(QUERY), model.score_samples(QUERY))
