"""`ocfuse plan`: what a fit would take, of rows and of streams, without learning."""

import json

import pytest

from ocfuse import FusedDetector
from ocfuse.tables import TableDetector, open_source
from tests.streaming.test_table import runs


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
    assert (told["rows"], told["columns"]) == (300, 4)
    assert told["fit_bytes"] == expected.fit_bytes
    assert "300 rows of 4 columns" in run_command("plan", path, *table)[1]


@pytest.mark.usefixtures("no_fits")
def test_of_a_stream_counts_windows_and_the_rows_that_are_taken(run_command, tmp_path):
    runs().to_csv(tmp_path / "runs.csv", index=False)
    text = run_command("plan", tmp_path / "runs.csv", "--stream", "--group", "file")[1]
    assert "1,200 rows of 12 columns in 10 groups" in text
    text = run_command("plan", tmp_path / "runs.csv", "--stream", "--windows", "none")[1]
    assert "1,200 rows of 2 columns" in text  # the channels themselves
    code, _, err = run_command("plan", tmp_path / "runs.csv", "--windows", "5")
    assert (code, "--windows is for streams: add --stream" in err) == (2, True)
