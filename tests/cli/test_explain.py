"""`ocfuse explain`: the rows asked for, in words and in JSON."""

import json
import re

import pandas as pd
import pytest

from ocfuse import load
from ocfuse.tables import open_source
from tests.cli.cases import ANOMALIES


@pytest.fixture
def explain(plant_folder, run_command, monkeypatch):
    """Return what runs the command on the new rows, read in several chunks."""
    monkeypatch.setattr(
        "ocfuse.tables.open_source", lambda *a, **k: open_source(*a, **k, chunk_rows=64)
    )
    files = (plant_folder / "model.ocf", plant_folder / "new.csv")
    return lambda *arguments: run_command("explain", *files, *arguments)


def test_words(explain, plant_folder):
    code, text, err = explain("--row", "150", "--row", "17")
    assert (code, err) == (0, "")
    first, second = text.strip().split("\n\n")
    assert first.startswith("row 150, part P00150, when 2024-01-01")
    assert second.startswith("row 17, part P00017")
    frame = open_source(plant_folder / "new.csv").read()
    alone = load(plant_folder / "model.ocf").explain(frame.iloc[[17]])
    assert second.endswith(alone.describe(0))


def test_worst_are_the_lowest_scores(explain):
    code, text, _ = explain("--worst", "3", "--json")
    told = json.loads(text)
    assert code == 0
    assert {row["row"] for row in told[:2]} == set(ANOMALIES)
    assert [row["score"] for row in told] == sorted(row["score"] for row in told)
    assert [row["is_anomaly"] for row in told[:2]] == [True, True]
    for row in told:
        total = row["base"] + sum(member["share"] for member in row["members"])
        assert total == pytest.approx(row["score"])
    by_row = {row["row"]: row for row in told}
    costs = {feature["name"]: feature["cost"] for feature in by_row[17]["features"]}
    assert max(costs, key=costs.get) == "temperature"
    for row in told:
        total = sum(feature["cost"] for feature in row["features"])
        assert row["reference_score"] - total == pytest.approx(row["score"])


def test_values_stand_beside_what_is_usual(explain):
    (told,) = json.loads(explain("--row", "17", "--json")[1])
    first = told["features"][0]
    assert (first["name"], first["value"], first["is_unusual"]) == ("temperature", 60, True)
    assert first["usual"]["low"] < first["usual"]["high"] < 60
    mode = next(feature for feature in told["features"] if feature["name"] == "mode")
    assert isinstance(mode["value"], str)
    assert mode["usual"]["share"] == mode["usual"]["values"][mode["value"]] > 0.05
    assert told["reason"].startswith("temperature 60, usually ")
    text = explain("--row", "17")[1]
    assert "temperature 60, usually " in text


def test_what_the_terminal_shows_adds_up_to_the_score(explain):
    lines = explain("--row", "17")[1].splitlines()
    score = float(re.search(r"score (\S+),", lines[1])[1])
    totals = [i for i, line in enumerate(lines) if line.startswith("score ")]
    heads = next(i for i, line in enumerate(lines) if line.startswith("member"))
    for first, last in ((2, totals[0]), (heads + 1, totals[1])):
        *parts, total = (float(line.split()[-1]) for line in lines[first : last + 1])
        assert total == score
        assert sum(parts) == pytest.approx(score, abs=1e-9)


def test_more_than_there_are(explain):
    assert len(json.loads(explain("--worst", "500", "--json")[1])) == 200
    code, text, err = explain("--row", "17", "--row", "200")
    assert (code, text) == (3, "")
    assert "200 rows" in err


@pytest.mark.parametrize(
    "arguments", [[], ["--row", "1", "--worst", "1"], ["--row", "-1"], ["--worst", "0"]]
)
def test_wrong_usage(explain, arguments):
    assert explain(*arguments)[0] == 2


@pytest.mark.parametrize(("asked", "n"), [(("--row", "3"), 1), (("--worst", "1"), 2)])
def test_rows_that_are_odd_are_counted_once(plant_folder, tmp_path, run_command, asked, n):
    frame = pd.read_csv(plant_folder / "new.csv")
    frame.loc[[3, 9], "mode"] = "idle"
    frame.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = run_command("explain", plant_folder / "model.ocf", tmp_path / "t.csv", *asked)
    assert code == 0
    assert err.count("Warning") == 1
    assert ("2 rows, the first" in err) == (n == 2)


def test_a_gap_is_explained_as_asked_for(plant_folder, tmp_path, run_command):
    frame = pd.read_csv(plant_folder / "new.csv")
    frame.loc[3, "pressure"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    asked = ("explain", plant_folder / "model.ocf", tmp_path / "t.csv", "--row", "3", "--gaps")
    assert run_command(*asked, "judge")[1].splitlines()[1].startswith("normal")
    text = run_command(*asked, "alarm")[1]
    assert "pressure missing, never seen in training" in text
    code, _, err = run_command(*asked, "refuse")
    assert (code, "pressure (row 3)" in err) == (3, True)
