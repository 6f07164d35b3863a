"""`ocfuse export`: a model in, an ONNX file out."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import OneClassSVM

from ocfuse import FusedDetector, load
from ocfuse.detectors.neighbours import KNN
from tests.onnx.cases import run, session


def test_a_model_is_written_and_scores_alike(plant_folder, tmp_path, run_command):
    model, out = plant_folder / "model.ocf", tmp_path / "model.onnx"
    code, text, err = run_command("export", model, "-o", out)
    assert (code, err) == (0, "")
    for words in ("model.onnx", "one input of shape (rows, 1)", "temperature", "p_value"):
        assert words in text
    told = json.loads(run_command("export", model, "-o", out, "--force", "--json")[1])
    assert told["inputs"] == [column["name"] for column in told["columns"]]
    table, detector = pd.read_csv(plant_folder / "normal.csv").head(20), load(model)
    found = run(detector, table, session(out.read_bytes()))["score"]
    np.testing.assert_allclose(found, detector.score(table)["score"], rtol=1e-5, atol=1e-6)


def test_a_model_of_arrays_takes_one_tensor(tmp_path, run_command):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = FusedDetector("light", random_state=0).fit(X).save(tmp_path / "model.ocf")
    code, text, _ = run_command("export", model, "-o", tmp_path / "model.onnx", "--single")
    assert code == 0
    assert "X of shape (rows, 3)" in text
    ready = session((tmp_path / "model.onnx").read_bytes())
    assert ready.get_inputs()[0].type == "tensor(float)"
    assert run_command("export", model, "-o", tmp_path / "m.onnx", "--quiet") == (0, "", "")


def test_nothing_is_replaced_unasked(plant_folder, tmp_path, run_command):
    model, out = plant_folder / "model.ocf", tmp_path / "model.onnx"
    out.write_bytes(b"something")
    code, _, err = run_command("export", model, "-o", out)
    assert code == 2
    assert "--force" in err
    assert out.read_bytes() == b"something"
    code, _, err = run_command("export", model, "-o", model, "--force")
    assert code == 2
    assert "would be overwritten" in " ".join(err.split())


def test_what_cannot_be_written_says_why(tmp_path, run_command):
    X = np.random.default_rng(0).normal(size=(60, 2))
    members = [("svm", OneClassSVM()), ("knn", KNN(5))]
    model = FusedDetector(members, random_state=0).fit(X).save(tmp_path / "model.ocf")
    code, text, err = run_command("export", model, "-o", tmp_path / "model.onnx")
    assert (code, text) == (3, "")
    assert "svm (OneClassSVM)" in err
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("name", ["nothing.ocf", "model.txt"])
def test_no_model(tmp_path, run_command, name):
    (tmp_path / "model.txt").write_text("no model")
    code, _, err = run_command("export", tmp_path / name, "-o", tmp_path / "model.onnx")
    assert code == 3
    assert name in err
