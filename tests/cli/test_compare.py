"""`ocfuse compare`: a table in, a comparison out, and what is wrong with a table."""

import json

import numpy as np
import pandas as pd
import pytest

from ocfuse.cli.app import run
from ocfuse.compare import DEFAULT, compare


@pytest.fixture
def table(tmp_path):
    """Return a CSV of 120 normals and 30 anomalies, with ids and a category."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(120, 3)), rng.normal(2, 1, size=(30, 3))])
    frame = pd.DataFrame(X, columns=["flow", "pressure", "current"])
    frame.insert(0, "id", [f"part-{i}" for i in range(150)])
    frame["state"] = np.repeat(["ok", "leak"], [120, 30])
    path = tmp_path / "pump.csv"
    frame.to_csv(path, index=False)
    return path


def invoke(*arguments):
    """Run the command as the console script does; return its exit code."""
    with pytest.raises(SystemExit) as caught:
        run(["compare", *map(str, arguments)])
    return caught.value.code


FAST = ("--members", "light", "--splits", "2")


@pytest.mark.slow
def test_the_command_tells_what_the_library_finds(table, tmp_path, capsys):
    out = tmp_path / "results.csv"
    assert invoke(table, "--label", "state", *FAST, "--json", "-o", out) == 0
    told = json.loads(capsys.readouterr().out)
    frame = pd.read_csv(table)
    features = frame[["flow", "pressure", "current"]]
    found = compare(features, frame["state"] == "ok", members="light", n_splits=2)
    measures = ("system", "auc", "gmean", "false_alarms", "rank", "auc_sd")
    expected = [{key: row[key] for key in measures} for row in found.summary()]
    assert [{key: row[key] for key in measures} for row in told["summary"]] == expected
    assert told["notes"] == found.notes()
    assert len(told["records"]) == len(found.records)
    written = pd.read_csv(out)
    assert written["system"].tolist() == [row["system"] for row in told["summary"]]
    np.testing.assert_allclose(written["auc"], [row["auc"] for row in told["summary"]])


@pytest.mark.slow
def test_groups_are_told_and_not_learned(table, capsys):
    frame = pd.read_csv(table)
    frame["run"] = np.arange(len(frame)) // 5
    frame.to_csv(table, index=False)
    assert invoke(table, "--label", "state", "--group", "run", *FAST, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert any("one group were never parted" in note for note in told["notes"])
    found = compare(
        frame[["flow", "pressure", "current"]],
        frame["state"] == "ok",
        members="light",
        n_splits=2,
        groups=frame["run"],
    )
    assert [row["auc"] for row in told["summary"]] == [row["auc"] for row in found.summary()]


def test_the_data_are_not_overwritten(table, capsys):
    before = table.read_bytes()
    assert invoke(table, "--label", "state", *FAST, "-o", table) == 2
    assert "would be" in capsys.readouterr().err
    assert table.read_bytes() == before


@pytest.mark.slow
def test_the_printed_table(table, capsys):
    assert invoke(table, "--label", "state", "--ignore", "current", *FAST) == 0
    out = capsys.readouterr().out
    header = out.splitlines()[0].split("  ")
    assert [word.strip() for word in header if word.strip()] == [
        *("system", "kind", "AUC", "sd", "rank", "G-mean", "false alarms", "seconds")
    ]
    assert f"{DEFAULT}  detector" in out
    assert "no test of significance holds" in out


@pytest.mark.slow
def test_quiet_prints_the_table_alone(table, capsys):
    assert invoke(table, "--label", "state", *FAST, "--quiet") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1 + 1 + 4 + 8 + 7
    assert captured.err == ""


@pytest.mark.slow
def test_config_file(table, tmp_path, capsys):
    config = tmp_path / "ocfuse.toml"
    config.write_text('[compare]\nlabel = "state"\nmembers = "light"\nsplits = 1\njson = true\n')
    assert invoke(table, "--config", config) == 0
    assert {r["split"] for r in json.loads(capsys.readouterr().out)["records"]} == {0}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--label", "stat"], "label must name a column of the table"),
        (["--label", "state", "--normal", "fine"], "normal must name values of column 'state'"),
        (["--label", "flow"], "It is not clear which labels of column 'flow' are normal"),
    ],
)
def test_bad_data(table, capsys, arguments, expected):
    assert invoke(table, *arguments) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"Error: {expected}")


def test_too_few_anomalies(table, tmp_path, capsys):
    few = tmp_path / "few.csv"
    pd.read_csv(table).iloc[:123].to_csv(few, index=False)
    assert invoke(few, "--label", "state") == 3
    assert "Got 120 and 3." in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--label", "state", "--splits", "0"],
        ["--label", "state", "--members", "heavy"],
        ["--label", "state", "--false-alarms", "5"],
        ["--label", "state", "-o", "results.docx"],
    ],
)
def test_wrong_usage(table, capsys, arguments):
    assert invoke(table, *arguments) == 2
    assert "Usage" in capsys.readouterr().err
