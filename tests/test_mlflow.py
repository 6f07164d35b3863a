"""Models in MLflow: what is logged is our file, and comes back as it was."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import yaml

from ocfuse import FusedDetector
from ocfuse import mlflow as ours
from ocfuse.exceptions import InvalidTypeError, MissingPackageError, ModelFileError
from ocfuse.tables import TableDetector
from tests.cli.cases import plant, with_anomalies

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of MLflow and of what it imports
]


@pytest.fixture(scope="module", autouse=True)
def mlflow():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what MLflow says of its own types
        package = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
        pytest.importorskip("mlflow.pyfunc")
    return package


@pytest.fixture(scope="module")
def model():
    detector = FusedDetector("light", random_state=0)
    return TableDetector(detector, id="part", time="when").fit(plant(200, seed=0))


@pytest.fixture
def store(mlflow, tmp_path, monkeypatch):
    """A local store in files, the only one that mlflow-skinny has."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    uri = (tmp_path / "store").as_uri()
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    yield mlflow.create_experiment("plant", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_tracking_uri(before[0])
    mlflow.set_registry_uri(before[1])


def test_a_model_comes_back_to_the_last_bit(model, tmp_path):
    folder = ours.save_model(model, tmp_path / "saved", metadata={"plant": "north"})
    again = ours.load_model(str(folder))
    table = with_anomalies()
    pd.testing.assert_frame_equal(again.score(table), model.score(table))
    written = yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8"))
    assert written["flavors"]["python_function"]["loader_module"] == "ocfuse.mlflow"
    assert written["metadata"]["plant"] == "north"
    assert "ocfuse[mlflow,tool]" in (folder / "requirements.txt").read_text(encoding="utf-8")


def test_mlflow_itself_scores_with_it(mlflow, model, tmp_path):
    folder = ours.save_model(model, tmp_path / "saved", input_example=plant(3, seed=2))
    table = with_anomalies()
    loaded = mlflow.pyfunc.load_model(str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = loaded.predict(table)
    pd.testing.assert_frame_equal(found, model.score(table))
    assert "temperature" in loaded.metadata.signature.inputs.input_names()


def test_logged_and_registered(mlflow, model, store):
    with mlflow.start_run(experiment_id=store):
        logged = ours.log_model(model, "plant", registered_model_name="plant")
    table = with_anomalies()
    for uri in (logged.model_uri, "models:/plant/1"):
        assert ours.load_model(uri).score(table)["score"].equals(model.score(table)["score"])


def test_a_detector_of_arrays(mlflow, tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 3))
    detector = FusedDetector("light", random_state=0).fit(X)
    folder = ours.save_model(detector, tmp_path / "saved")
    found = mlflow.pyfunc.load_model(str(folder)).predict(X[:9])
    np.testing.assert_array_equal(found["score"], detector.score_samples(X[:9]))
    np.testing.assert_array_equal(found["is_anomaly"], detector.predict(X[:9]) < 0)


def test_whole_numbers_truths_and_times(mlflow, tmp_path):
    """MLflow's own types would refuse each of them in some later table."""
    rng = np.random.default_rng(0)
    when = pd.date_range("2026-01-01", periods=90, freq="1h", tz="Europe/Berlin")
    rows = pd.DataFrame({"machine": rng.integers(0, 3, 90), "when": when, "is_open": when.hour > 8})
    rows["count"], rows["flow"] = rng.integers(0, 9, 90), rng.normal(size=90)
    later = rows.astype({"flow": int}).assign(count=rows["count"].where(rows["count"] > 1))
    light = FusedDetector("light", random_state=0)
    detectors = (
        FusedDetector("light", random_state=0, by="machine", time="when", season="day").fit(rows),
        TableDetector(light, id="machine", time="when").fit(rows),
    )
    for i, detector in enumerate(detectors):
        folder = ours.save_model(detector, tmp_path / f"{i}")
        found = mlflow.pyfunc.load_model(str(folder)).predict(later)
        if isinstance(detector, TableDetector):
            pd.testing.assert_frame_equal(found, detector.score(later))
        else:
            np.testing.assert_array_equal(found["score"], detector.score_samples(later))


def test_loading_imports_nothing_that_the_model_names(mlflow, model, tmp_path):
    folder = ours.save_model(model, tmp_path / "saved")
    trap = folder / "code"
    trap.mkdir()
    (trap / "trap.py").write_text("raise SystemExit('this code was run')")
    description = folder / "MLmodel"
    written = yaml.safe_load(description.read_text(encoding="utf-8"))
    written["flavors"]["python_function"] |= {"loader_module": "trap", "code": "code"}
    description.write_text(yaml.safe_dump(written), encoding="utf-8")
    assert isinstance(ours.load_model(str(folder)), TableDetector)
    with pytest.raises(SystemExit, match="was run"):
        mlflow.pyfunc.load_model(str(folder))


def test_what_is_no_model_of_ours(tmp_path):
    with pytest.raises(ModelFileError, match="holds no model of ocfuse"):
        ours.load_model(str(tmp_path))
    with pytest.raises(InvalidTypeError, match="Got str"):
        ours.save_model("model", tmp_path / "saved")
    with pytest.raises(Exception, match="not fitted"):
        ours.save_model(FusedDetector(), tmp_path / "saved")


def test_without_mlflow_the_extra_is_named(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(MissingPackageError, match=r"\[mlflow\]"):
        ours.save_model(model, tmp_path / "saved")
