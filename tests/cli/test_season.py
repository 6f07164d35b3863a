"""`ocfuse fit --season`: from a table with times to alarms, on the command line."""

import io
import json
import re
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest

from ocfuse.cli.app import run


def hours(days, seed, start="2026-02-02", zone=None):
    """Return the load of a plant by the hour, with a job at 6."""
    when = pd.date_range(start, periods=24 * days, freq="1h", tz=zone)
    noise = np.random.default_rng(seed).normal(size=len(when))
    load = 50 + 20 * np.sin(when.hour * np.pi / 12) + 60 * (when.hour == 6) + noise
    return pd.DataFrame({"when": when, "load": load, "temp": 20 + noise[::-1]})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("season")
    hours(42, 1).to_csv(folder / "normal.csv", index=False)
    today = hours(1, 2, "2026-05-05")
    today.loc[12, "load"] = 130.0
    today.to_csv(folder / "today.csv", index=False)
    hours(42, 1, "2026-03-10", "Europe/Berlin").to_csv(folder / "berlin.csv", index=False)
    (folder / "free.txt").write_text("2026-02-16  # a Monday\n\n2026-02-17\n")
    return folder


def fit(files, name, *flags):
    """Fit a model and return its path and what was printed."""
    path, out = files / name, io.StringIO()
    command = ["fit", *map(str, flags), "--members", "light", "-o", str(path)]
    with redirect_stdout(out), pytest.raises(SystemExit) as caught:
        run(command)
    assert caught.value.code == 0
    return path, out.getvalue()


@pytest.fixture(scope="module")
def model(files):
    return fit(files, "m.ocf", files / "normal.csv", "--season", "day")


def test_what_is_normal_at_six_is_found_at_noon(model, files, run_command):
    path, text = model
    assert "time of day: for 1 of 2 columns: load" in text
    out = files / "scores.csv"
    code, _, err = run_command("score", path, files / "today.csv", "--out", out, "--why")
    assert code == 0, err
    scores = pd.read_csv(out)
    assert scores["is_anomaly"][12]
    assert not scores["is_anomaly"][6]
    assert "at 12:00" in scores["why"][12]
    _, told, _ = run_command("explain", path, files / "today.csv", "--row", "12")
    assert "load 130, high at 12:00, usually" in told
    assert "at 12:00" in told


def test_watch_takes_rows_with_times(model, files, run_command):
    path, _ = model
    code, text, err = run_command("watch", path, files / "today.csv")
    assert code in (0, 1), err
    assert "row 12 " in text
    assert "row 6 " not in text


def test_a_row_without_a_time_is_said_to_be_judged_by_any_time(model, files, run_command):
    path, table = model[0], files / "timeless.csv"
    hours(1, 2).assign(when=lambda rows: rows["when"].mask(rows.index == 3)).to_csv(table)
    code, _, err = run_command("score", path, table)
    assert code == 0
    assert "no time, so that rows are judged by what is usual at any time: row 3" in err


@pytest.mark.parametrize("zones", [(None, "Europe/Berlin"), ("Europe/Berlin", None)])
def test_times_whose_local_hour_is_not_known_are_refused(zones, files, run_command):
    table = files / "other.csv"
    hours(42, 1, zone=zones[0]).to_csv(files / "known.csv", index=False)
    path, text = fit(files, f"{zones[0] is None}.ocf", files / "known.csv", "--season", "day")
    assert ("time of day in UTC+01:00 all year round:" in text) == (zones[0] is not None)
    rows = hours(1, 2, zone=zones[1]).astype({"when": str})
    rows.loc[5, "when"] = hours(1, 2, zone=zones[0])["when"].astype(str)[5]  # as in training
    rows.to_csv(table, index=False)
    code, _, err = run_command("score", path, table, "-o", files / "other.scores.csv")
    assert code == 3
    have = "with" if zones[0] is None else "without"
    assert f"when holds times {have} a time zone, unlike in training" in err
    assert "and 22 more rows. Write them as in training" in err
    code, text, err = run_command("score", path, table, "--keep-going", "--json")
    scores = [json.loads(line)["score"] for line in text.splitlines()]
    assert [row for row, score in enumerate(scores) if score is not None] == [5]


def test_inspect_lists_the_seasons(model, run_command):
    path, _ = model
    _, told, _ = run_command("inspect", path, "--json")
    usual = json.loads(told)["usual"]
    assert usual["seasons"] == {"day": ["load"]}
    assert usual["columns"] == 2


def test_holidays_may_be_a_file(files, run_command):
    path, _ = fit(
        *(files, "h.ocf", files / "normal.csv", "--season", "day,week"),
        *("--holidays", files / "free.txt", "--holidays", "2026-02-18,2026-02-19"),
    )
    _, told, _ = run_command("inspect", path, "--json")
    assert json.loads(told)["usual"]["holidays"] == 4


def test_offsets_need_a_zone(files, run_command):
    out = files / "b.ocf"
    code, _, err = run_command("fit", files / "berlin.csv", "--season", "day", "-o", out)
    assert code != 0
    assert "different offsets" in err
    assert not out.exists()
    path, text = fit(
        *(files, "b.ocf", files / "berlin.csv", "--season", "day", "--zone", "Europe/Berlin"),
    )
    assert "time of day in Europe/Berlin: for 1 of 2 columns" in text
    assert path.exists()


def test_a_stream_has_seasons(files, run_command):
    path, text = fit(
        *(files, "s.ocf", files / "normal.csv", "--stream", "--windows", "3", "--season", "day"),
    )
    assert "time of day: for 1 of 2 columns: load" in text
    code, told, err = run_command("watch", path, files / "today.csv", "--min-rows", "1")
    assert code in (0, 1), err
    assert re.search(r"load [\d.]+ \(usual (49|50)", told), told


def test_a_stream_refuses_times_whose_local_hour_is_not_known(files, run_command):
    table = files / "tied.csv"
    path, _ = fit(
        *(files, "t.ocf", files / "normal.csv", "--stream", "--windows", "3", "--season", "day"),
    )
    hours(1, 2, zone="Europe/Berlin").to_csv(table, index=False)
    code, _, err = run_command("score", path, table)
    assert code == 3
    assert "when holds times with a time zone, unlike in training" in err
    _, _, err = run_command("watch", path, table)
    assert "when holds times with a time zone, unlike in training" in err
    assert "0 events, 24 left out" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--season", "daily"), "Got 'daily'"),
        (("--season", "year"), "two years or more"),
        (("--season", "day", "--zone", "Berlin"), "'Berlin' is not known"),
        (("--season", "week", "--holidays", "Easter"), "Got 'Easter'"),
        (("--holidays", "2026-02-16"), "'week'"),
        (("--season", "week", "--holidays", "free.csv"), "there is no file free.csv"),
        (("--zone", "Europe/Berlin"), "--season 'day'"),
        (("--stream", "--zone", "Europe/Berlin"), "--season 'day'"),
        (("--stream", "--season", "year"), "two years or more"),
        (("--stream", "--season", "day", "--holidays", "2026-02-16"), "'week'"),
    ],
)
def test_seasons_that_cannot_be_are_refused(flags, words, files, run_command, tmp_path):
    out = tmp_path / "x.ocf"
    code, _, err = run_command("fit", files / "normal.csv", *flags, "-o", out)
    assert code != 0
    assert words in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err
    assert not out.exists()
