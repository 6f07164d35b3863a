"""`ocfuse fit --by`: from a table of machines to alarms, on the command line."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest

from ocfuse.cli.app import run

N_MACHINES, N_DAYS = 90, 10
FLAGS = ("--by", "machine", "--members", "light")
BROKEN = np.isin(np.arange(N_MACHINES), np.arange(0, N_MACHINES, 9))


def volumes(n_days, seed, share=1.0):
    """Return the volume of every machine on some days."""
    level = np.exp(np.random.default_rng(0).normal(size=N_MACHINES) * 1.5 + 7.0)
    noise = np.random.default_rng(seed).normal(size=(n_days, N_MACHINES))
    names = [f"m{i:02}" for i in range(N_MACHINES)] * n_days
    volume = np.round(level * share * np.exp(0.15 * noise)).ravel()
    return pd.DataFrame({"machine": names, "volume": volume})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by")
    volumes(30, 1).to_csv(folder / "normal.csv", index=False)
    volumes(N_DAYS, 2, np.where(BROKEN, 0.2, 1.0)).to_csv(folder / "today.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(files):
    path, out = files / "m.ocf", io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit) as caught:
        run(["fit", str(files / "normal.csv"), *FLAGS, "-o", str(path)])
    assert caught.value.code == 0
    return path, out.getvalue()


def test_machines_at_a_fifth_of_their_volume_are_found(model, files, run_command):
    path, _ = model
    out = files / "scores.csv"
    code, text, err = run_command("score", path, files / "today.csv", "--out", out)
    assert code == 0, err
    assert list(pd.read_csv(out))[:3] == ["row", "machine", "score"]
    is_alarm = pd.read_csv(out)["is_anomaly"].to_numpy().reshape(N_DAYS, N_MACHINES)
    assert is_alarm[:, BROKEN].sum(axis=1).min() >= 9
    assert is_alarm[:, ~BROKEN].mean() <= 0.06
    assert f"{is_alarm.sum()} anomalies" in text


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_watch_names_the_machine_of_an_alarm(flags, model, files, run_command):
    code, text, err = run_command("watch", model[0], files / "today.csv", *flags)
    assert code in (0, 1), err
    assert ('"machine": "m09"' if flags else "row 9  machine m09  score") in text


def test_watch_and_why_mark_rows_of_machines_that_are_not_known(model, run_command, tmp_path):
    rows = volumes(1, 3).head(4)
    rows.loc[1, "machine"], rows.loc[2, "machine"] = "m999", None
    rows.loc[3, "volume"] = 0
    rows.to_csv(tmp_path / "rows.csv", index=False)
    _, text, err = run_command("watch", model[0], tmp_path / "rows.csv", "--all", "--json")
    without = [json.loads(line)["judged_without"] for line in text.splitlines()]
    assert without == [None, "machine", "machine", None]
    assert "2 judged without some columns" in err
    run_command("score", model[0], tmp_path / "rows.csv", "--why", "-o", tmp_path / "s.csv")
    why = pd.read_csv(tmp_path / "s.csv")["why"]
    assert why.str.contains("judged without machine").fillna(False).tolist() == [
        *(False, True, True, False)
    ]


def test_fit_and_inspect_say_who_is_measured(model, run_command):
    path, text = model
    assert "machine  by" in text
    assert "measured by machine: 90 groups of 30 rows" in text
    _, shown, _ = run_command("inspect", path)
    assert "measured by machine: 90 groups of 30 rows" in shown
    _, told, _ = run_command("inspect", path, "--json")
    usual = json.loads(told)["usual"]
    assert usual["by"] == ["machine"]
    assert usual["groups"] == 90
    assert usual["rows"] == [30, 30, 30]
    assert usual["drawn"]["volume"] < 0.05


def test_explain_and_report_name_the_machine(model, files, run_command):
    path, _ = model
    code, text, err = run_command("explain", path, files / "today.csv", "--row", "0")
    assert code == 0, err
    assert "for machine m00" in text
    page = files / "report.html"
    code, _, err = run_command("score", path, files / "today.csv", "--report", page, "--quiet")
    assert code == 0, err
    assert "for machine m00" in page.read_text()
    assert "Alarms by group" in page.read_text()


def test_a_row_needs_its_machine(model, files, run_command):
    path, _ = model
    table = files / "without.csv"
    volumes(1, 3).drop(columns="machine").to_csv(table, index=False)
    code, _, err = run_command("score", path, table)
    assert code != 0
    assert "Missing: machine" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--by", "mashine"), "mashine"),
        (("--by", "day"), "another value in every row"),
        (("--by", "machine", "--ignore", "machine"), "machine"),
        (("--season", "day"), "needs the times of the rows"),
    ],
)
def test_what_says_nothing_of_groups_is_refused(flags, words, files, run_command, tmp_path):
    table = volumes(2, 1)
    table["day"] = [f"x{i}" for i in range(len(table))]
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.ocf"
    code, _, err = run_command("fit", tmp_path / "t.csv", "-o", out, *flags)
    assert code != 0
    assert words in err
    assert "Traceback" not in err
    assert not out.exists()


def test_what_a_fit_warns_of_is_said_in_flags(run_command, tmp_path):
    table = volumes(4, 1).assign(plant=lambda rows: rows["machine"].str[-1])
    table.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "--members", "light", "--by", "machine,plant")
    code, _, err = run_command(*fit, "-o", tmp_path / "m.ocf")
    assert code == 0
    assert "--by machine,plant: 'plant' divides none of the 90 groups that 'machine' makes" in err
    assert "The widest comes first: --by plant,machine, or leave it out." in err
