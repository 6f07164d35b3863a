"""Model files: complete or not written, checked before anything is built, no code run."""

import ast
import importlib
import json
import pickle
import threading
import warnings
import zipfile
from dataclasses import asdict, replace
from importlib.metadata import version
from io import BytesIO

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDOneClassSVM
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from ocfuse import load
from ocfuse.encoder import FeatureEncoder
from ocfuse.exceptions import (
    InvalidTypeError,
    ModelFileError,
    ModelVersionWarning,
    UntrustedTypeError,
)
from ocfuse.persistence import Header, read_header, save
from ocfuse.persistence.archive import Archive
from ocfuse.persistence.build import SKLEARN_PARTS, Builder, is_known_class
from ocfuse.persistence.header import FORMAT, LONGEST_HEADER, MAGIC
from ocfuse.persistence.registry import PATHS_OF_FORMAT_1

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


class Stranger(BaseEstimator):
    """A type that is not ours."""


@pytest.fixture
def model():
    return FeatureEncoder().fit(X)


@pytest.fixture
def path(model, tmp_path):
    return save(model, tmp_path / "model.ocf")


def rewrite_header(path, **changes):
    """Change fields of the header; the checksum stays."""
    first, line, payload = path.read_bytes().split(b"\n", 2)
    header = json.dumps(json.loads(line) | changes).encode()
    path.write_bytes(b"\n".join([first, header, payload]))


def forge(path, payload, **changes):
    """Write any payload behind a header whose checksum is right."""
    versions = {"ocfuse": version("ocfuse"), "sklearn": version("scikit-learn")} | changes
    header = Header(format=FORMAT, size=len(payload), sha256="", **versions)
    header = replace(header, sha256=header.checksum(payload))
    path.write_bytes(MAGIC + json.dumps(asdict(header)).encode() + b"\n" + payload)


def payload_of(path):
    return path.read_bytes().split(b"\n", 2)[2]


def archive(entries, compression=zipfile.ZIP_STORED):
    buffer = BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as file:
        warnings.simplefilter("ignore")  # about duplicate names
        for name, content in entries:
            file.writestr(name, content)
    return buffer.getvalue()


def claim_size(content, size):
    """Change the size that the directory of an archive gives for its first entry."""
    field = content.index(b"PK\x01\x02") + 24
    return content[:field] + size.to_bytes(4, "little") + content[field + 4 :]


def with_type(module, name):
    """Return the archive of an object whose type is named by the file."""
    node = {"__class__": name, "__module__": module, "__loader__": "ObjectNode", "protocol": 2}
    return archive([("schema.json", json.dumps(node))])


def test_round_trip_is_exact(model, path):
    np.testing.assert_array_equal(load(path).transform(X), model.transform(X))


def scores(model):
    for name in ("score_samples", "predict_proba", "decision_function", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    return model.transform(X)


@pytest.mark.parametrize(
    "estimator",
    [
        IsolationForest(n_estimators=5, random_state=np.random.RandomState(0)),
        OneClassSVM(),
        SGDOneClassSVM(random_state=0),
        GaussianMixture(2, random_state=0),
        EllipticEnvelope(random_state=0),
        RandomForestClassifier(n_estimators=3, random_state=0),
        LogisticRegression(),
        OneHotEncoder(drop=[X[3, 0], *X[0, 1:]], handle_unknown="ignore", sparse_output=False),
        make_pipeline(StandardScaler(), OneClassSVM()),
        FunctionTransformer(np.log1p),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_scikit_learn_estimators_need_no_trust(estimator, tmp_path):
    model = estimator.fit(X, Y)
    loaded = load(save(model, tmp_path / "model.ocf"))
    np.testing.assert_array_equal(scores(loaded), scores(model))


@pytest.mark.parametrize(
    "estimator",
    [
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2),
        SVC(),
        SGDClassifier("log_loss", random_state=0),
        CalibratedClassifierCV(LogisticRegression(), cv=2),
        VotingClassifier(
            [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier())], voting="soft"
        ),
        GaussianProcessRegressor(optimizer=None),
        MLPRegressor(
            hidden_layer_sizes=(3,), solver="adam", tol=10, n_iter_no_change=1, random_state=0
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_estimators_need_the_names_that_the_error_tells(estimator, tmp_path):
    model = estimator.fit(X, np.arange(40) % 3)
    path = save(model, tmp_path / "model.ocf")
    with pytest.raises(UntrustedTypeError) as caught:
        load(path)
    names = ast.literal_eval(str(caught.value).partition("trusted=")[2].removesuffix(")."))
    np.testing.assert_array_equal(scores(load(path, trusted=names)), scores(model))


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("estimator", [LocalOutlierFactor(novelty=True), KernelDensity()])
def test_neighbour_trees_need_no_trust(estimator, metric, algorithm, tmp_path):
    model = estimator.set_params(algorithm=algorithm, metric=metric).fit(X)
    loaded = load(save(model, tmp_path / "model.ocf"))
    np.testing.assert_array_equal(scores(loaded), scores(model))


def test_the_named_parts_exist():
    """A part that scikit-learn renames must be noticed here, not by a user."""
    gone = {"Kulsinski"}  # only in older versions
    for name in SKLEARN_PARTS:
        module_name, _, class_name = name.rpartition(".")
        if not any(old in class_name for old in gone):
            assert isinstance(getattr(importlib.import_module(module_name), class_name), type)


def test_header_says_what_wrote_it(path):
    header = read_header(path)
    assert header.format == FORMAT
    assert header.ocfuse == version("ocfuse")
    assert header.sklearn == version("scikit-learn")


@pytest.mark.parametrize("keep", [0, 5, len(MAGIC), len(MAGIC) + 20, -1, -1000])
def test_truncated_files(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelFileError, match=r"model\.ocf is (cut off|damaged|not an ocfuse)"):
        load(path)


def test_an_altered_byte_of_the_payload_is_noticed(path):
    content = path.read_bytes()
    start = len(content) - read_header(path).size
    for position in np.random.default_rng(1).integers(start, len(content), 60):
        altered = bytearray(content)
        altered[position] ^= 0x10
        path.write_bytes(altered)
        with pytest.raises(ModelFileError, match="was altered"):
            load(path)


@pytest.mark.parametrize(
    "changes",
    [{"ocfuse": "0.0.1"}, {"sklearn": "9.9"}, {"sha256": "0" * 64}, {"ocfuse": ""}],
)
def test_an_altered_header_is_noticed(path, changes):
    rewrite_header(path, **changes)
    with pytest.raises(ModelFileError, match="was altered"):
        load(path)


def test_newer_format(path):
    rewrite_header(path, format=FORMAT + 1, ocfuse="9.9")
    told = rf"format {FORMAT + 1}, written by ocfuse"
    with pytest.raises(ModelFileError, match=told + r" 9\.9.*Upgrade"):
        load(path)
    rewrite_header(path, ocfuse="\x1b[2J")
    with pytest.raises(ModelFileError, match=told + r" \?\."):
        load(path)


@pytest.mark.parametrize(
    "header",
    [b"[]", b"{}", b"7", b"not json", b"\xff", b'{"format": 1}', b"[" * 3000]
    + [b'{"format": %b}' % text for text in (b'"x"', b'"1"', b"1.0", b"true", b"null", b"[1]")]
    + [b'{"format": %b}' % text for text in (b"0", b"-1", b"1e999", b"NaN", b"9" * 5000)],
)
def test_bad_headers(path, header):
    path.write_bytes(MAGIC + header + b"\npayload")
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


@pytest.mark.parametrize("number", [True, 0, -1, 1.0, float("inf"), "1", None, [1]])
def test_a_format_that_is_no_number_from_1_on(path, number):
    rewrite_header(path, format=number)
    with pytest.raises(ModelFileError, match="damaged: its format"):
        load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": True},
        {"size": 1.0},
        {"size": None},
        {"sha256": 1},
        {"more": 1},
        {"sklearn": ["1", "9"]},
        {"ocfuse": "\x1b[2J"},
        {"sklearn": "1" * 1000},
    ],
)
def test_fields_of_the_wrong_type(path, changes):
    rewrite_header(path, **changes)
    with pytest.raises(ModelFileError, match="damaged: its header is not complete"):
        read_header(path)


def test_the_longest_header(path):
    first, line, payload = path.read_bytes().split(b"\n", 2)
    for padding, readable in ((LONGEST_HEADER, True), (LONGEST_HEADER + 1, False)):
        path.write_bytes(b"\n".join([first, line.ljust(padding), payload]))
        for read in (read_header, load):
            if readable:
                read(path)
            else:
                with pytest.raises(ModelFileError, match="header is not complete"):
                    read(path)


@pytest.mark.parametrize("package", ["ocfuse", "sklearn"])
def test_other_versions_warn(path, model, package):
    shown = {"ocfuse": "ocfuse", "sklearn": "scikit-learn"}[package]
    forge(path, payload_of(path), **{package: "77.1.0"})
    with pytest.warns(ModelVersionWarning, match=rf"written with {shown} 77\.1\.0") as caught:
        loaded = load(path)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(loaded.source_, model.source_)


@pytest.mark.parametrize("package", ["ocfuse", "sklearn"])
def test_another_patch_release_does_not_warn(path, package):
    running = version({"ocfuse": "ocfuse", "sklearn": "scikit-learn"}[package])
    forge(path, payload_of(path), **{package: ".".join([*running.split(".")[:2], "77"])})
    load(path)


class Bomb:
    """A pickle that would run code."""

    def __reduce__(self):
        return (pytest.fail, ("code was run",))


def test_a_pickle_is_never_opened(path):
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="looks like a pickle, which ocfuse never opens"):
        load(path)


@pytest.mark.parametrize("payload", [pickle.dumps(Bomb()), b"", b"PK\x03\x04", b"x" * 100])
def test_only_archives_follow_a_true_header(path, payload):
    forge(path, payload)
    with pytest.raises(ModelFileError, match="damaged: it holds no archive"):
        load(path)


def test_an_archive_without_a_model(path):
    forge(path, archive([("other.json", "{}")]))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


@pytest.fixture
def nothing_is_read(monkeypatch):
    """Fail when an entry is read."""
    monkeypatch.setattr(Archive, "read", lambda self, name: pytest.fail(f"read {name}"))


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("claimed", [10**7, 1])
def test_a_compressed_bomb_is_not_expanded(tmp_path, claimed):
    path = tmp_path / "bomb.ocf"
    content = archive([("schema.json", bytes(10**7))], zipfile.ZIP_DEFLATED)
    forge(path, claim_size(content, claimed))
    with pytest.raises(ModelFileError, match="would expand"):
        load(path)


@pytest.mark.usefixtures("nothing_is_read")
def test_entries_that_claim_more_than_there_is(tmp_path):
    path = tmp_path / "bomb.ocf"
    forge(path, claim_size(archive([("schema.json", b"{}")]), 10**9))
    with pytest.raises(ModelFileError, match="would expand"):
        load(path)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize(
    "names",
    [["a.npy", "a.npy"], ["/etc/x"], ["../x"], ["a/../../x"], ["..\\x"], ["C:/x"], ["C:x"]],
)
def test_unusable_names_in_the_archive(tmp_path, names):
    path = tmp_path / "names.ocf"
    forge(path, archive([(name, b"") for name in ["schema.json", *names]]))
    with pytest.raises(ModelFileError, match="names in its archive"):
        load(path)


def test_a_zip_archive_is_no_model(tmp_path):
    path = tmp_path / "archive.ocf"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ModelFileError, match="zip archive"):
        load(path)


def test_strange_types_must_be_trusted(tmp_path):
    path = save(Stranger(), tmp_path / "stranger.ocf")
    name = f"{Stranger.__module__}.Stranger"
    for trusted in ((), None, ["other.Type"]):
        with pytest.raises(UntrustedTypeError, match=rf"{name}\. Nothing was loaded.*trusted="):
            load(path, trusted=trusted)
    assert isinstance(load(path, trusted=[name]), Stranger)
    assert isinstance(load(path, trusted=iter([name, "not.Needed"])), Stranger)


@pytest.mark.parametrize("trusted", ["mypackage.MyDetector", True, [Stranger], b"name"])
def test_trusted_must_be_names(path, trusted):
    with pytest.raises(InvalidTypeError, match=r"trusted must be a list of names\. Got trusted="):
        load(path, trusted=trusted)


@pytest.mark.parametrize(
    ("module", "name"), [("os", "system"), ("ocfuse.encoder", "check_table"), ("builtins", "eval")]
)
def test_files_that_name_functions(path, module, name):
    forge(path, with_type(module, name))
    with pytest.raises(UntrustedTypeError, match=rf"{module}\.{name}"):
        load(path)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ocfuse.FeatureEncoder", True),
        (f"ocfuse.{next(iter(PATHS_OF_FORMAT_1))}", True),  # as format 1 has it
        ("ocfuse.LocalScale", True),  # a class of ours, not an estimator
        ("ocfuse.load", False),
        ("ocfuse.os", False),
        ("ocfuse.localscale", False),
        ("ocfuse.encoder.LocalScale", False),
        ("LocalScale", False),
        ("ocfuse.encoder.check_table", False),  # a function
        ("ocfuse.encoder.ColumnTransformer", False),  # defined elsewhere
        ("ocfuse.persistence.os.system", False),
        ("ocfuse.solvers.solution.Certificate", False),  # ours, but no part of a model
        ("sklearn.tree._tree.Tree", True),
        ("sklearn.metrics._dist_metrics.EuclideanDistance64", True),
        ("sklearn.metrics._dist_metrics.PyFuncDistance64", False),  # calls a function
        ("sklearn.tree._classes.BaseDecisionTree", False),  # an estimator, not a listed one
        ("sklearn.utils._tags.Tags", False),  # neither an estimator nor a part of one
        ("sklearn.svm.OneClassSVM", False),  # defined elsewhere
        ("sklearn.utils.os.system", False),
        ("sklearn.datasets.fetch_openml", False),
        ("Detector", False),
        (".Detector", False),
        ("sklearn..svm.Detector", False),
        ("ocfuse.encoder.", False),
        ("ocfuse_evil.Detector", False),
        ("os.system", False),
        ("ocfuse.nowhere.Detector", False),
    ],
)
def test_known_classes(name, known):
    assert is_known_class(name) is known


@pytest.mark.parametrize(
    "module",
    [
        "sklearn.tests.test_base",
        "sklearn.conftest",
        "sklearn.utils._testing",
        "ocfuse.__main__",
        "sklearn.externals.x",
        "sklearn.datasets",
        "sklearn.experimental.x",
        "ocfuse.tests.a",
        "os",
        "sklearn_evil",
        "ocfusion",
        "sklearn.a-b",
        "",
    ],
)
def test_modules_are_judged_before_they_are_imported(module, monkeypatch):
    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert not is_known_class(f"{module}.Detector")


@pytest.mark.parametrize("error", [ImportError, RuntimeError, SyntaxError, Warning])
def test_a_module_that_fails_when_imported_is_not_known(error, monkeypatch):
    def fail(name):
        raise error(name)

    monkeypatch.setattr(importlib, "import_module", fail)
    assert not is_known_class("sklearn.somewhere.Detector")


def test_a_folder_that_does_not_exist(model, tmp_path):
    folder = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as caught:
        save(model, folder / "model.ocf")
    assert str(caught.value) == f"There is no folder {folder}. Create it first."
    assert not list(tmp_path.iterdir())


def test_a_path_that_is_a_folder(model, tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder\. Give the name of a file in it"):
        save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_longest_file_name(model, tmp_path):
    path = save(model, tmp_path / ("m" * 251 + ".ocf"))
    np.testing.assert_array_equal(load(path).transform(X), model.transform(X))


def local_class():
    class Local(BaseEstimator):
        pass

    return Local()


@pytest.mark.parametrize(
    ("thing", "what"),
    [
        (FunctionTransformer(lambda x: x), "<lambda>"),
        (local_class(), "Local"),
        ({"lock": threading.Lock()}, "lock"),
        ((number for number in ()), "generator"),
    ],
    ids=["lambda", "local class", "lock", "generator"],
)
def test_things_that_cannot_be_saved(thing, what, path):
    before = path.read_bytes()
    with pytest.raises(InvalidTypeError, match=rf"cannot be saved: .*{what}.*Nothing was written"):
        save(thing, path)
    assert path.read_bytes() == before


def test_a_failed_save_leaves_the_old_file(path, monkeypatch, model):
    before = path.read_bytes()

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        save(model, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_file_that_cannot_be_rebuilt(path, monkeypatch):
    def fail(*arguments, **options):
        raise AttributeError("no such field")

    monkeypatch.setattr(Builder, "build", fail)
    with pytest.raises(ModelFileError, match=r"cannot be rebuilt.*train again.*no such field"):
        load(path)
