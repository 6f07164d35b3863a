"""Model files: complete or not written, checked before anything is built, no code run."""

import hashlib
import json
import pickle
import zipfile
from importlib.metadata import version

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.ensemble import IsolationForest

from ocfuse import load
from ocfuse.exceptions import ModelFileError, ModelVersionWarning, UntrustedTypeError
from ocfuse.features import FeatureEncoder
from ocfuse.persistence import FORMAT, MAGIC, _is_known_class, read_header, save

X = np.random.default_rng(0).normal(size=(40, 3))


class Stranger(BaseEstimator):
    """A type that is not ours."""


@pytest.fixture
def model():
    return FeatureEncoder().fit(X)


@pytest.fixture
def path(model, tmp_path):
    return save(model, tmp_path / "model.ocf")


def rewrite_header(path, **changes):
    first, line, payload = path.read_bytes().split(b"\n", 2)
    header = json.dumps(json.loads(line) | changes).encode()
    path.write_bytes(b"\n".join([first, header, payload]))


def test_round_trip_is_exact(model, path):
    np.testing.assert_array_equal(load(path).transform(X), model.transform(X))


def test_scikit_learn_estimators_need_no_trust(tmp_path):
    forest = IsolationForest(n_estimators=5, random_state=0).fit(X)
    loaded = load(save(forest, tmp_path / "forest.ocf"))
    np.testing.assert_array_equal(loaded.score_samples(X), forest.score_samples(X))


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


def test_newer_format(path):
    rewrite_header(path, format=FORMAT + 1, ocfuse="9.9")
    with pytest.raises(ModelFileError, match=r"format 2, written by ocfuse 9\.9.*Upgrade"):
        load(path)


@pytest.mark.parametrize(
    "header", [b"[]", b"{}", b"not json", b'{"format": 1}', b'{"format": "x"}', b"[" * 3000]
)
def test_bad_headers(path, header):
    path.write_bytes(MAGIC + header + b"\npayload")
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_other_scikit_learn_warns(path, model):
    rewrite_header(path, sklearn="0.1.0")
    with pytest.warns(ModelVersionWarning, match=r"written with scikit-learn 0\.1\.0"):
        loaded = load(path)
    np.testing.assert_array_equal(loaded.source_, model.source_)


class Bomb:
    """A pickle that would run code."""

    def __reduce__(self):
        return (pytest.fail, ("code was run",))


def test_a_pickle_is_never_opened(path):
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="looks like a pickle, which ocfuse never opens"):
        load(path)


def test_a_pickle_behind_a_true_header_is_never_opened(path, model):
    payload = pickle.dumps(Bomb())
    path.write_bytes(path.read_bytes().split(b"\n", 2)[0] + b"\n")
    header = {"format": 1, "ocfuse": "1", "sklearn": version("scikit-learn")}
    header |= {"size": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    path.write_bytes(MAGIC + json.dumps(header).encode() + b"\n" + payload)
    with pytest.raises(ModelFileError, match="damaged"):
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
    with pytest.raises(UntrustedTypeError, match=f"{name}.*Nothing was loaded.*trusted="):
        load(path)
    assert isinstance(load(path, trusted=[name]), Stranger)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ocfuse.features.FeatureEncoder", True),
        ("ocfuse.features.check_table", False),  # a function
        ("ocfuse.features.ColumnTransformer", False),  # defined elsewhere
        ("ocfuse.persistence.os.system", False),
        ("sklearn.tree._tree.Tree", True),
        ("sklearn.utils.os.system", False),
        ("sklearn.datasets.fetch_openml", False),
        ("ocfuse_evil.Detector", False),
        ("os.system", False),
        ("ocfuse.nowhere.Detector", False),
    ],
)
def test_known_classes(name, known):
    assert _is_known_class(name) is known


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

    monkeypatch.setattr(skops.io, "loads", fail)
    with pytest.raises(ModelFileError, match=r"cannot be rebuilt.*train again.*no such field"):
        load(path)
