"""The registry: every class that a model holds has one name, which does not depend on its place."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.base import BaseEstimator

import ocfuse
from benchmarks.hardening.models import WEIGHTS, write_models
from benchmarks.hardening.parts import Parts
from ocfuse import FeatureEncoder, load
from ocfuse.exceptions import MissingPackageError, ModelFileError, UntrustedTypeError
from ocfuse.persistence import read_header, registry, save
from ocfuse.persistence.registry import CLASSES, PATHS_OF_FORMAT_1, class_of, name_in_files
from tests.golden.record import models_folder, unpacked
from tests.persistence.forging import forged, node_of

#: Packages of which nothing is part of a model: what is used by people, and research.
OUTSIDE = {"bench", "cli", "datasets", "distributed", "lab", "report", "robots", "serve"}
#: Files of each format, as they are kept for tests.
FILES = {number: sorted(models_folder(number).glob("*.ocf.gz")) for number in (1, 2)}


#: Where format 1 has a class, without the name of the class.
OLD = next(p for p, key in PATHS_OF_FORMAT_1.items() if key == "FeatureEncoder").rpartition(".")[0]


def is_concrete(kind):
    is_estimator = inspect.isclass(kind) and issubclass(kind, BaseEstimator)
    return is_estimator and not inspect.isabstract(kind) and not kind.__name__.startswith("_")


def estimators():
    """Yield the estimators that all modules define, but for abstract and private ones."""
    for found in pkgutil.walk_packages(ocfuse.__path__, "ocfuse."):
        if OUTSIDE.isdisjoint(found.name.split(".")):
            for kind in vars(imported(found.name)).values():
                if is_concrete(kind) and kind.__module__ == found.name:
                    yield kind


def imported(name):
    """Return a module, or one without content if it needs a package that is not there."""
    try:
        return importlib.import_module(name)
    except MissingPackageError:
        return ModuleType(name)


def names_in(content):
    """Return the names of types of ours in a model file, without the package."""
    names = {f"{node['__module__']}.{node['__class__']}" for node in Parts.of(content, "a").nodes()}
    return {name.removeprefix("ocfuse.") for name in names if name.startswith("ocfuse.")}


def content_of(path):
    with unpacked(path) as file:
        return file.read_bytes()


def test_every_estimator_has_a_name():
    found = {f"{kind.__module__}.{kind.__qualname__}" for kind in estimators()}
    assert len(found) > 50
    assert not found - set(CLASSES.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # there are few rows, on purpose
def test_every_class_in_a_model_has_a_name(tmp_path):
    """As models of every kind are written: no path of a module is left in any of them."""
    write_models(tmp_path)
    found = set()
    for name in WEIGHTS:
        found |= names_in((tmp_path / f"{name}.ocf").read_bytes())
    for path in FILES[2]:
        found |= names_in(content_of(path))
    assert len(found) > 60
    assert not found - set(CLASSES)


@pytest.mark.slow
def test_every_path_of_old_files_has_a_name():
    found = set().union(*(names_in(content_of(path)) for path in FILES[1]))
    assert len(found) > 60
    assert not found - set(PATHS_OF_FORMAT_1)


@pytest.mark.parametrize("key", CLASSES)
def test_a_name_is_of_the_class_that_its_path_tells(key):
    kind = class_of(key)
    assert inspect.isclass(kind)
    path = f"{kind.__module__}.{kind.__qualname__}"
    assert path == CLASSES[key]
    assert name_in_files(path) == key


def test_no_name_and_no_class_stands_twice():
    assert len(set(CLASSES.values())) == len(CLASSES)
    tree = ast.parse(Path(registry.__file__).read_text())
    for table in (node for node in ast.walk(tree) if isinstance(node, ast.Dict)):
        keys = [ast.literal_eval(key) for key in table.keys]
        assert len(set(keys)) == len(keys)


def test_old_paths_lead_to_names():
    assert set(PATHS_OF_FORMAT_1.values()) <= set(CLASSES)
    assert not set(PATHS_OF_FORMAT_1) & set(CLASSES)


def test_names_are_not_paths():
    assert all(key.isidentifier() for key in CLASSES)


@pytest.fixture
def path(tmp_path):
    return save(FeatureEncoder().fit([[1.0], [2.0], [4.0]]), tmp_path / "model.ocf")


def test_a_file_names_classes_and_no_modules(path):
    assert read_header(path).format == 2
    assert names_in(path.read_bytes()) == {"FeatureEncoder", "NumberScaler"}


class Renamed(FeatureEncoder):
    """A class that was moved here, and is called otherwise now."""


def test_a_class_that_moves_is_found_where_it_is(path, monkeypatch):
    monkeypatch.setitem(CLASSES, "FeatureEncoder", f"{__name__}.Renamed")
    class_of.cache_clear()
    try:
        assert type(load(path)) is Renamed
    finally:
        class_of.cache_clear()


@pytest.mark.parametrize(
    "name",
    [
        ("ocfuse", "Nothing"),
        ("ocfuse", "load"),
        ("ocfuse", f"{OLD}.Nothing"),
        (f"ocfuse.{OLD}", "LocalScale"),  # a module of format 1, but of another class
        ("ocfuse.explain", "Explanation"),  # ours, but no part of a model
        ("", "FeatureEncoder"),
        ("Ocfuse", "FeatureEncoder"),
        ("ocfuse.ocfuse", "FeatureEncoder"),
    ],
    ids=".".join,
)
def test_names_that_are_not_registered_are_refused(path, name):
    def change(parts):
        node_of(parts, "FeatureEncoder").update(__module__=name[0], __class__=name[1])

    with pytest.raises(UntrustedTypeError, match=name[1]):
        load(forged(path, change))


def test_an_old_path_is_read_in_any_format(path):
    def change(parts):
        node_of(parts, "FeatureEncoder").update(__module__=f"ocfuse.{OLD}")

    assert type(load(forged(path, change))) is FeatureEncoder


def test_a_class_that_is_gone_is_told(path, monkeypatch):
    def gone(key):
        raise ImportError("no module named gone")

    monkeypatch.setattr("ocfuse.persistence.build.class_of", gone)
    with pytest.raises(ModelFileError, match=r"cannot be rebuilt.*no module named gone"):
        load(path)


def test_words_of_users_are_not_names(tmp_path):
    """Keys and texts that look like a path stay as they are."""
    model = FeatureEncoder().fit([[1.0], [2.0], [4.0]])
    model.notes_ = {"__module__": "ocfuse.encoder", "__class__": "FeatureEncoder", "__loader__": 1}
    loaded = load(save(model, tmp_path / "model.ocf"))
    assert loaded.notes_ == model.notes_


@pytest.mark.parametrize("number", FILES)
@pytest.mark.filterwarnings("ignore")  # written by earlier versions
def test_attributes_of_earlier_files_have_their_names_of_today(number):
    """A pool has not called its out-of-fold scores so from the beginning."""
    (file,) = (path for path in FILES[number] if path.name == "fusion-competence.ocf.gz")
    assert b"honest_scores_" in content_of(file)
    with unpacked(file) as path:
        pool = load(path).pool_
    assert pool.out_of_fold_scores_.shape[1] == len(pool.names_)
    assert not hasattr(pool, "honest_scores_")
