"""Rows without a score: nobody knows whether they are normal, and nothing says that they are."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ocfuse import FusedDetector
from ocfuse.detectors import KNN
from ocfuse.streaming import StreamDetector, StreamTable
from ocfuse.tables import TableDetector

LONGEST = 6


def rows(n, seed):
    """Return normal rows of two numbers."""
    values = np.random.default_rng(seed).normal(size=(n, 2))
    return pd.DataFrame(values, columns=["flow", "current"])


def small():
    return FusedDetector([("knn", KNN(3))], random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a model, and rows of which the second and the fourth hold text."""
    place = tmp_path_factory.mktemp("unscored")
    TableDetector(small()).fit(rows(60, 0)).save(place / "model.ocf")
    odd = rows(20, 1).clip(-1, 1).astype(str)
    odd.loc[[1, 3], "flow"] = "BAD"
    odd.to_csv(place / "odd.csv", index=False)
    return place


@pytest.fixture(scope="module")
def stream():
    runs = pd.concat([rows(60, i).assign(file=f"{i}.csv") for i in range(10)], ignore_index=True)
    detector = FusedDetector([("knn", KNN(3))], false_alarm_rate=0.1, random_state=0)
    return StreamTable(StreamDetector(detector, windows=(LONGEST,))).fit(runs)


@pytest.fixture
def score(folder, run_command):
    def run_it(*arguments):
        return run_command("score", folder / "model.ocf", folder / "odd.csv", *arguments)

    return run_it


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet"])
def test_an_anomaly_that_is_not_known_is_an_empty_cell_in_every_format(score, tmp_path, name):
    out = tmp_path / name
    code, text, _ = score("--keep-going", "-o", out)
    assert (code, "2 without a score" in text) == (0, True)
    if name == "s.csv":
        flags = [line.rsplit(",", 1)[1] for line in out.read_text().splitlines()[1:]]
        assert (flags[1], flags[3]) == ("", "")
        known = {"True", "False"}
    elif name == "s.jsonl":
        flags = [json.loads(line)["is_anomaly"] for line in out.read_text().splitlines()]
        assert (flags[1], flags[3]) == (None, None)
        known = {True, False}
    else:
        flags = pq.read_table(out)["is_anomaly"].to_pylist()
        assert (flags[1], flags[3]) == (None, None)
        known = {True, False}
    assert set(flags) - known == {flags[1]}


def test_rows_without_a_score_are_counted_apart_from_anomalies(score, tmp_path):
    _, text, _ = score("--keep-going", "-o", tmp_path / "s.csv", "--json", "--threshold", "-1e9")
    told = json.loads(text)
    assert (told["rows"], told["anomalies"], told["without_score"]) == (20, 0, 2)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [((), 0), (("--fail-on-anomaly",), 1), (("--fail-above", 0.05), 1), (("--fail-above", 0.1), 0)],
)
def test_a_row_that_may_be_an_anomaly_does_not_pass_for_a_normal_one(score, flags, expected):
    assert score("--keep-going", "-q", "--threshold", "-1e9", *flags)[0] == expected


def test_watch_fails_on_a_row_that_it_could_not_judge(folder, run_command):
    files = ("watch", folder / "model.ocf", folder / "odd.csv", "-q", "--threshold", "-1e9")
    assert run_command(*files)[0] == 0
    assert run_command(*files, "--fail-on-anomaly")[0] == 1


def test_the_type_of_the_column_does_not_depend_on_the_rows(stream):
    table = TableDetector(small()).fit(rows(60, 0)).score(rows(5, 1))
    assert table["is_anomaly"].dtype == stream.score(rows(20, 1))["is_anomaly"].dtype == "boolean"


def test_the_first_rows_of_a_stream_are_neither_normal_nor_anomalies(stream):
    scores = stream.score(rows(20, 1))
    assert scores["is_anomaly"].isna().tolist() == scores["score"].isna().tolist()
    assert scores["is_anomaly"].isna().sum() == LONGEST - 1


def test_a_stream_passes_with_its_first_rows_but_not_without_any_score(
    stream, tmp_path, run_command
):
    stream.save(tmp_path / "stream.ocf")
    for n, expected in ((20, 0), (LONGEST - 2, 1)):
        rows(n, 1).to_csv(tmp_path / "new.csv", index=False)
        files = ("score", tmp_path / "stream.ocf", tmp_path / "new.csv", "--threshold", "-1e9")
        assert run_command(*files, "-q", "--fail-on-anomaly")[0] == expected


def test_watch_prints_the_first_rows_of_a_stream_as_without_a_score(stream, tmp_path, run_command):
    stream.save(tmp_path / "stream.ocf")
    rows(8, 1).to_csv(tmp_path / "new.csv", index=False)
    files = ("watch", tmp_path / "stream.ocf", tmp_path / "new.csv", "--all", "-q")
    assert run_command(*files)[1].startswith("no score")
    first = json.loads(run_command(*files, "--json")[1].splitlines()[0])
    assert (first["score"], first["is_anomaly"]) == (None, None)
