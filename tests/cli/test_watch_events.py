"""Streams of sensors from the command line: fit --stream, score, watch, explain, inspect."""

import io
import json
import os
import re
import time
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ocfuse import load
from ocfuse.cli.app import run as main
from ocfuse.cli.runtime import Terminated
from ocfuse.cli.watch_events import EventFile, EventSettings, Flags, StreamReporter
from ocfuse.streaming import StreamTable
from ocfuse.streaming.monitor import patience
from ocfuse.tables import open_source
from tests.faults.cases import run_fed
from tests.forks import process
from tests.hook import Hook

N, LONGEST, FAULT = 150, 10, 100
FIT = ("--stream", "--windows", "5,10", "--members", "gmm-1,knn-5", "--false-alarms", "0.1")


def run(seed, n=N):
    rng = np.random.default_rng(seed)
    flow = rng.normal(size=n)
    when = pd.date_range("2024-03-01", periods=n, freq="s") + pd.Timedelta(hours=seed)
    current = flow / 2 + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"when": when.strftime("%F %T"), "flow": flow, "current": current})


@pytest.fixture(scope="module")
def pump(tmp_path_factory):
    """Return a folder with runs/, new.csv with a fault, and pump.ocf."""
    folder = tmp_path_factory.mktemp("pump")
    (folder / "runs").mkdir()
    for i in range(10):
        run(i).to_csv(folder / "runs" / f"run{i}.csv", index=False)
    new = run(50)
    new.loc[FAULT : FAULT + 29, "current"] += 3
    new.to_csv(folder / "new.csv", index=False)
    with redirect_stdout(io.StringIO()) as told, pytest.raises(SystemExit) as caught:
        main(["fit", str(folder / "runs"), *FIT, "-o", str(folder / "pump.ocf"), "--json"])
    assert caught.value.code == 0
    (folder / "told.json").write_text(told.getvalue())
    return folder


@pytest.fixture
def watch(pump, run_command, monkeypatch):
    """Return what runs `ocfuse watch` on bytes at stdin."""

    def run_it(content, *arguments):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run_command("watch", pump / "pump.ocf", *arguments)

    return run_it


@pytest.fixture
def hook():
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def rows(pump):
    return (pump / "new.csv").read_bytes().splitlines()


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def told_of(hook, kind, n):
    """Return the messages of a kind, each once, as soon as there are so many."""

    def found():
        messages = [json.loads(body) for _, body in hook.got]
        return {m["id"]: m for m in messages if m["kind"] == kind}

    with hook.has_come:
        assert hook.has_come.wait_for(lambda: len(found()) >= n, 20)
    return [*found().values()]


def plain(err):
    """Return what stands in the box around an error."""
    return " ".join(err.replace("│", " ").split())


# -- fit and inspect -----------------------------------------------------


def test_fit_tells_runs_channels_and_windows(pump, run_command):
    told = json.loads((pump / "told.json").read_text())
    assert told["stream"]["runs"] == told["groups"] == 10
    assert told["stream"]["windows"] == [5, 10]
    assert [c["name"] for c in told["stream"]["channels"]] == ["flow", "current"]
    assert told["false_alarms_reachable"] == pytest.approx(0.1, abs=0.01)
    assert isinstance(load(pump / "pump.ocf"), StreamTable)
    code, text, _ = run_command("inspect", pump / "pump.ocf")
    assert code == 0
    assert "the first 9 rows of a run have no score" in text
    assert "above 3 a channel drifts, as far as 10 runs can tell" in " ".join(text.split())
    assert re.search(r"how sure +of rows, not events: 10 % on average; with", text)
    assert re.search(r"file +group +every file is a run", text)
    assert "rows          1,500, of which" in text
    assert "reachable with these runs" in text
    assert "group" not in text.split("column ")[0].replace("group=", "")


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        ("drop", "above 0.3 a channel is left out (--drift drop"),
        ("follow", "above 0.3 a channel is measured from a slow mean (--drift follow"),
    ],
)
def test_inspect_names_the_drift_limit_that_applies(drift, words, pump, run_command, tmp_path):
    out = tmp_path / "m.ocf"
    code, text, _ = run_command("fit", pump / "runs", *FIT, "--drift", drift, "-o", out)
    assert code == 0
    assert words in text
    assert load(out).facts()["stream"]["drift_limit"] == 0.3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--windows", "10,ten"], "such as 10,30"),
        (["--windows", "2"], "at least 3"),
        (["--drift", "away"], "'keep', 'drop', 'follow'"),
        (["--video", "clips"], "--stream is for tables"),
    ],
)
def test_wrong_flags(pump, tmp_path, run_command, arguments, words):
    code, _, err = run_command("fit", pump / "runs", *FIT, *arguments, "-o", tmp_path / "m.ocf")
    assert code == 2
    assert words in plain(err)


def test_columns_that_are_no_channels_are_named(pump, tmp_path, run_command):
    pd.concat([run(i).assign(mode="on", run=f"r{i}") for i in range(4)]).to_csv(
        tmp_path / "all.csv", index=False
    )
    arguments = ("fit", tmp_path / "all.csv", *FIT[:-1], "0.3", "-o", tmp_path / "m.ocf", "-q")
    code, _, err = run_command(*arguments[:-1], "--group", "run")
    assert code == 0
    assert "mode" in plain(err)
    (tmp_path / "m.ocf").unlink()
    code, _, err = run_command(*arguments, "--group", "run", "--ignore", "mode")
    assert (code, err) == (0, "")
    assert load(tmp_path / "m.ocf").card_["runs"] == 4


@pytest.mark.slow
def test_a_context_needs_two_runs_or_no_course(pump, tmp_path, run_command):
    frame = run(0, n=300).assign(progress=np.linspace(0, 1, 300))
    frame.to_csv(tmp_path / "one.csv", index=False)
    arguments = ("fit", tmp_path / "one.csv", *FIT, "-o", tmp_path / "m.ocf", "-q")
    code, _, err = run_command(*arguments, "--context", "progress")
    assert code == 3
    assert "--no-course" in err
    code, _, err = run_command(*arguments, "--context", "nosuch")
    assert code == 3
    assert "context must name a column of the table" in err
    assert "Got --context 'nosuch'" in err
    code, _, err = run_command(*arguments, "--context", "progress", "--no-course")
    assert (code, err) == (0, "")
    assert "not known from 1 run" in run_command("inspect", tmp_path / "m.ocf")[1]
    code, _, err = run_command("score", tmp_path / "m.ocf", pump / "new.csv")
    assert code == 3
    assert "'progress' is missing" in err


@pytest.mark.slow
def test_inspect_tells_rows_that_the_clock_left_out(tmp_path, run_command):
    frames = [run(i).assign(run=f"r{i}") for i in range(4)]
    frames[2] = frames[2].iloc[[*range(20), 19, *range(20, N)]]
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    arguments = (*FIT[:-1], "0.3", "--group", "run", "-o", tmp_path / "m.ocf", "-q")
    assert run_command("fit", tmp_path / "all.csv", *arguments)[0] == 0
    text = run_command("inspect", tmp_path / "m.ocf")[1]
    assert "odd rows      1 with the time of the row before" in text
    told = json.loads(run_command("inspect", tmp_path / "m.ocf", "--json")[1])
    assert told["stream"]["counts"]["repeated"] == 1


@pytest.mark.slow
def test_few_runs_are_told_as_runs(pump, tmp_path, run_command):
    arguments = (*FIT[:-1], "0.05", "-o", tmp_path / "m.ocf")
    code, _, err = run_command("fit", pump / "runs", *arguments)
    assert code == 0
    assert "10 runs are too few for --false-alarms 0.05" in err
    assert "at least 19 runs; or a rate of at least 0.091." in err
    assert "group" not in err
    code, _, err = run_command("fit", pump / "runs" / "run1.csv", *arguments, "--force")
    assert code == 0
    assert "rest of this run" in err
    assert "calibrate" not in err


# -- score and explain ---------------------------------------------------


def test_score_whole_runs(pump, tmp_path, run_command):
    out = tmp_path / "scores.csv"
    code, text, _ = run_command("score", pump / "pump.ocf", pump / "new.csv", "-o", out)
    scores = pd.read_csv(out)
    assert code == 0
    assert "150 rows (9 without a score)" in text
    assert scores["score"].isna().sum() == LONGEST - 1
    assert not scores["is_anomaly"][: LONGEST - 1].any()
    assert scores["is_anomaly"][FAULT + 5 : FAULT + 30].all()
    expected = load(pump / "pump.ocf").score(open_source(pump / "new.csv").read())
    np.testing.assert_allclose(scores["score"], expected["score"], rtol=1e-9)


@pytest.mark.slow
def test_score_a_folder_chunk_by_chunk(pump, tmp_path, run_command, monkeypatch):
    out = tmp_path / "scores.csv"
    arguments = ("score", pump / "pump.ocf", pump / "runs", "-o", out, "--json")
    code, text, _ = run_command(*arguments)
    assert code == 0
    assert json.loads(text)["without_score"] == 10 * (LONGEST - 1)
    whole = pd.read_csv(out)
    assert whole["file"].nunique() == 10
    monkeypatch.setattr("ocfuse.tables.source.Source.max_cells", 4 * 37)
    assert run_command(*arguments)[0] == 0
    np.testing.assert_allclose(pd.read_csv(out)["score"], whole["score"], rtol=1e-9)


def test_what_was_odd_is_told(pump, tmp_path, run_command):
    new = pd.read_csv(pump / "new.csv", dtype=str)
    new = new.iloc[[*range(20), 19, 18, *range(20, 60), *range(90, N)]]
    new.iloc[30, 1] = "ERR"
    new.to_csv(tmp_path / "odd.csv", index=False)
    code, text, err = run_command(
        "score", pump / "pump.ocf", tmp_path / "odd.csv", "-o", tmp_path / "s.csv"
    )
    assert code == 0
    for words in (
        "1 with the time of the row before",
        "1 earlier than the row before",
        "1 after a gap in time",
        "1 with cells that are no numbers",
    ):
        assert words in text
    assert "count as missing" in err


@pytest.mark.parametrize("n_cells", [4_000_000, 4 * 37])
def test_interleaved_runs_are_refused(pump, tmp_path, run_command, monkeypatch, n_cells):
    monkeypatch.setattr("ocfuse.tables.source.Source.max_cells", n_cells)
    mixed = pd.concat([run(1).assign(file="a"), run(2).assign(file="b")]).sort_index(kind="stable")
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    given = (pump / "pump.ocf", tmp_path / "mixed.csv")
    for arguments in (
        ("score", *given, "-o", tmp_path / "s.csv"),
        ("explain", *given, "--worst", 1),
    ):
        code, _, err = run_command(*arguments)
        assert code == 3
        assert "row 2 goes on with 'a' after rows of 'b'" in err
    assert not (tmp_path / "s.csv").exists()


def test_a_table_without_any_score_is_told(pump, tmp_path, run_command):
    given = (pump / "pump.ocf", tmp_path / "dead.csv")
    pd.read_csv(pump / "new.csv").assign(flow="", current="").to_csv(given[1], index=False)
    code, text, err = run_command("score", *given, "-o", tmp_path / "s.csv")
    assert code == 0
    assert "150 rows (150 without a score)" in text
    assert "No row has a score. A row needs 10 rows of its run in the order of time" in err
    code, _, err = run_command("explain", *given, "--worst", 1)
    assert code == 3
    assert "Of 150 rows 150 with most channels empty" in err


def test_report(pump, tmp_path, run_command):
    page = tmp_path / "page.html"
    code, _, _ = run_command(
        *("score", pump / "pump.ocf", pump / "new.csv", "-o", tmp_path / "s.csv"),
        *("--report", page),
    )
    assert code == 0
    assert "9 rows without a score left out" in page.read_text(encoding="utf-8")


def test_a_report_reads_and_scores_the_stream_once(pump, tmp_path, run_command, counted):
    given = (pump / "pump.ocf", pump / "new.csv", "-o", tmp_path / "s.csv")
    assert run_command("score", *given, "--report", tmp_path / "page.html")[0] == 0
    assert (counted["reads"], counted["scored"]) == (1, N - LONGEST + 1)


def test_explain(pump, run_command):
    code, text, _ = run_command("explain", pump / "pump.ocf", pump / "new.csv", "--row", "110")
    assert code == 0
    assert text.startswith("row 110, when 2024-03-03 02:01:50\nanomaly")
    assert "most unusual channels: current " in text
    assert " (usual " in text
    arguments = ("explain", pump / "pump.ocf", pump / "new.csv", "--json")
    (worst, second) = json.loads(run_command(*arguments, "--worst", "2")[1])
    assert worst["score"] <= second["score"]
    assert FAULT <= worst["row"] < FAULT + 30 + LONGEST
    assert [c["name"] for c in worst["channels"]] == ["current", "flow"]


@pytest.mark.parametrize(("row", "words"), [("3", "no score: 3"), ("999", "has 150 rows")])
def test_rows_that_cannot_be_explained(pump, run_command, row, words):
    code, _, err = run_command("explain", pump / "pump.ocf", pump / "new.csv", "--row", row)
    assert code == 3
    assert words in err


# -- watch ---------------------------------------------------------------


def test_watch_tells_one_event(watch, rows):
    code, text, err = watch(b"\n".join(rows))
    first, last = (line for line in text.splitlines() if not line.startswith("drift"))
    assert code == 0
    assert first.startswith("event 1  row 10")
    assert last.startswith("event 1 is over")
    assert err == "150 rows, 1 event, 0 left out; 9 without a score\n"
    assert watch(b"\n".join(rows), "--fail-on-anomaly", "-q")[::2] == (1, "")


def test_every_row_has_a_line_with_its_state(watch, rows):
    code, text, _ = watch(b"\n".join(rows[: FAULT + 20]), "--all")
    beside = ("event", "drift", "chann")
    lines = [line for line in text.splitlines() if line[:5] not in beside and "  row " in line]
    states = [line.split("  ")[0] for line in lines]
    assert (code, len(lines)) == (0, FAULT + 19)
    assert states[: LONGEST - 1] == ["no score"] * (LONGEST - 1)
    assert set(states[LONGEST - 1 :]) == {"normal", "alarm"}


def test_watch_in_json_and_in_a_file(watch, rows, tmp_path):
    path = tmp_path / "events.jsonl"
    code, text, _ = watch(b"\n".join(rows), "--json", "--min-rows", "5", "--events", path)
    alarm, event, summary = (r for r in records(text) if r["kind"] != "drift")
    assert code == 0
    assert alarm["kind"] == "alarm"
    assert alarm["row"] == alarm["start"]["row"] + 4
    assert alarm["start"] == event["start"]
    assert event["raised"]["row"] == alarm["row"]
    assert event["worst"]["score"] <= alarm["score"]
    assert FAULT <= event["start"]["row"] < event["last"]["row"] < FAULT + 30 + LONGEST
    assert summary["events"] == 1
    assert summary["counts"]["seen"] == N
    written = records(path.read_text())
    assert [r for r in written if r["kind"] != "drift"] == [alarm, event]
    watch(b"\n".join(rows), "-q", "--events", path)
    assert len(records(path.read_text())) > len(written)


def test_others_are_told_what_a_watch_finds_once_each(watch, rows, tmp_path, hook):
    for _ in range(2):
        watch(b"\n".join(rows), "-q", "--events", tmp_path / "e.jsonl", "--notify", hook.url)
    told = told_of(hook, "anomaly", 4)
    assert [(m["event"], m["phase"]) for m in told] == [
        (1, "begin"),
        (1, "end"),
        (2, "begin"),
        (2, "end"),
    ]
    assert told[0]["text"].startswith("current ")
    assert (told[0]["model"], told[0]["stream"]) == ("pump", "stdin")


def test_a_sensor_that_fails_again_is_told_again(watch, rows, tmp_path, hook):
    for _ in range(2):  # each ends while the sensors fail
        watch(with_faults(rows), "-q", "--events", tmp_path / "e.jsonl", "--notify", hook.url)
    told = told_of(hook, "stuck", 4)
    assert [m["phase"] for m in told] == ["begin", "interrupted"] * 2
    first, again = told[0], told[2]
    assert first["event"] == told[1]["event"] != again["event"] == told[3]["event"]
    assert told[1]["begin"] == first["begin"] <= told[1]["end"]
    assert again["text"].startswith("channel current stands still since row 99")


def test_an_event_is_over_only_if_its_end_was_seen(watch, rows, tmp_path):
    path = tmp_path / "events.jsonl"
    content = b"\n".join(rows[: FAULT + 15])
    _, text, err = watch(content, "--events", path)
    assert "event 1 interrupted, its end was not seen  row 113" in text
    assert "is over" not in text
    assert ", 1 event, " in err
    assert [r["state"] for r in records(path.read_text()) if r["kind"] == "event"] == [
        "interrupted"
    ]
    _, text, _ = watch(with_faults(rows))
    assert "\ninterrupted: channel flow missing since row 60" in text
    content = b"\n".join(rows[: FAULT + 50])  # scores are normal, though within the hold time
    assert "event 1 is over" in watch(content, "--hold", 1000)[1]


def test_why_others_could_not_be_told_is_said_in_words(watch, rows, tmp_path):
    free = "http://127.0.0.1:9"  # nobody listens there
    _, _, err = watch(b"\n".join(rows), "-q", "--events", tmp_path / "e.jsonl", "--notify", free)
    first = next(line for line in err.splitlines() if line.startswith("Not told to"))
    assert first.startswith("Not told to http://127.0.0.1: ")
    assert first.endswith("It will be tried again.")
    assert "notification_failed" not in err


def test_others_are_told_from_a_file_of_events_only(watch, rows):
    code, _, err = watch(b"\n".join(rows), "--notify", "https://example.org/")
    assert code == 2
    assert "--events FILE" in plain(err)


def test_a_watch_that_is_killed_leaves_whole_lines_and_the_next_tells_of_it(
    pump, rows, tmp_path, hook
):
    path, fifo = tmp_path / "events.jsonl", tmp_path / "rows"
    os.mkfifo(fifo)
    arguments = ["watch", str(pump / "pump.ocf"), "-", "-q", "--events", str(path)]
    arguments += ["--notify", hook.url]
    for n_started in (1, 2):
        with process(run_fed, arguments, fifo) as child, fifo.open("wb") as feed:
            feed.write(b"\n".join([*rows[: FAULT + 15], b""]))
            feed.flush()  # and left open
            while not path.exists() or path.read_text().count('"kind": "alarm"') < n_started:
                assert child.is_alive()
                time.sleep(0.01)
            messages = told_of(hook, "anomaly", 2 * n_started - 1)
            child.kill()
            child.join()
        # an alarm that was raised is kept, and the next start says that nobody saw its end
        told = [(r["kind"], r.get("state")) for r in records(path.read_text())]
        expected = [("alarm", None), ("event", "interrupted"), ("alarm", None)][: 2 * n_started - 1]
        assert [one for one in told if one[0] != "drift"] == expected
        path.write_bytes(path.read_bytes() + b'{"kind": "ev')  # as if it were killed in a line
    (event,) = (r for r in records(path.read_bytes()[:-12]) if r["kind"] == "event")
    assert event["start"]["row"] <= event["raised"]["row"] == event["last"]["row"]
    assert event["begun"]["at"] <= event["at"]
    phases = [(message["event"], message["phase"]) for message in messages]
    assert phases == [(1, "begin"), (1, "interrupted"), (2, "begin")]


def test_a_clock_that_jumps_costs_a_few_rows_and_no_event(watch, rows):
    header, *samples = (line.split(b",", 1) for line in rows)
    when = pd.Series(pd.date_range("2024-03-03 02:00", periods=N, freq="s"))
    when[30:] -= pd.Timedelta(hours=1)  # summer is over
    when[60:] += pd.Timedelta(days=1)
    when[75] = when[74]
    when[85:] -= pd.Timedelta(seconds=3)  # set right by a little
    times = when.dt.strftime("%F %T").str.encode("ascii")
    values = [sample[1] for sample in samples]
    lines = [b",".join(header), *map(b",".join, zip(times, values, strict=True))]
    code, text, _ = watch(b"\n".join(lines), "--json")
    assert code == 0
    alarm, event, summary = (r for r in records(text) if r["kind"] not in ("drift", "blind"))
    assert FAULT <= alarm["start"]["row"] <= event["last"]["row"] < FAULT + 30 + LONGEST
    counts = summary["counts"]
    assert (counts["late"], counts["new_clock"], counts["clock"], counts["gap"]) == (6, 1, 1, 1)
    assert counts["repeated"] == 2
    # those that are left out, and windows that are filled again after each jump
    assert summary["without_score"] == 9 + (6 + 1 + 2) + 9 + 9


def test_all_rows_have_the_scores_of_the_library(watch, rows, pump):
    _, text, _ = watch(b"\r\n".join(rows), "--all", "--json")
    told = [r["score"] for r in records(text) if r["kind"] == "row"]
    expected = load(pump / "pump.ocf").score(open_source(pump / "new.csv").read())["score"]
    assert told[: LONGEST - 1] == [None] * (LONGEST - 1)
    assert told[LONGEST - 1 :] == pytest.approx(expected[LONGEST - 1 :].tolist())


def test_a_stream_without_scores_is_told(watch, rows):
    dead = [line.rsplit(b",", 2)[0] + b",," for line in rows[41:80]]
    code, text, _ = watch(b"\n".join([*rows[:41], *dead]), "--json", "--fail-on-anomaly")
    (blind,) = (r for r in records(text) if r["kind"] == "blind")
    assert code == 1
    assert blind["rows"] == 2 * LONGEST + 1
    assert blind["row"] < 79
    text = watch(b"\n".join([*rows[:41], *dead]))[1]
    assert "not watched" in text
    assert "with most channels empty" in text


@pytest.mark.parametrize("spoil", [lambda line: line + b",7", lambda line: b"garbage"])
def test_rows_that_are_refused_are_not_watched(watch, rows, tmp_path, spoil):
    path = tmp_path / "events.jsonl"
    lines = [*rows[:61], *(spoil(line) for line in rows[61:])]
    code, text, _ = watch(b"\n".join(lines), "--json", "-q", "--fail-on-anomaly", "--events", path)
    blind, summary = (r for r in records(text) if r["kind"] != "drift")
    assert code == 1
    assert (blind["kind"], blind["row"], blind["rows"]) == (
        "blind",
        60 + 2 * LONGEST,
        2 * LONGEST + 1,
    )
    assert blind["counts"]["refused"] == 2 * LONGEST + 1
    assert [r for r in records(path.read_text()) if r["kind"] != "drift"] == [blind]
    assert (summary["left_out"], summary["blind"]) == (N - 60, 1)
    assert f"so far {2 * LONGEST + 1} that could not be read" in watch(b"\n".join(lines))[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "words"),
    [(["a"] * 60 + [""] * 90, "21 that could not be read"), (["a", "b"] * 75, "not full yet")],
)
def test_runs_without_a_name_or_in_turn_are_not_watched(watch, pump, names, words):
    content = pd.read_csv(pump / "new.csv").assign(file=names).to_csv(index=False).encode()
    code, text, _ = watch(content, "-q", "--fail-on-anomaly")
    (line,) = (line for line in text.splitlines() if line.startswith("not watched"))
    assert code == 1
    assert words in line


@pytest.mark.slow
def test_without_its_context_a_stream_is_not_watched(tmp_path, monkeypatch, run_command):
    def task(seed):
        return run(seed).assign(progress=np.linspace(0, 1, N).astype(str))

    (tmp_path / "runs").mkdir()
    for i in range(10):
        task(i).to_csv(tmp_path / "runs" / f"{i}.csv", index=False)
    arguments = ("--context", "progress", "--no-course", "-o", tmp_path / "m.ocf", "-q")
    assert run_command("fit", tmp_path / "runs", *FIT, *arguments)[0] == 0
    new = task(50)
    new.loc[60:, "progress"] = ["", "?", "inf"] * 30
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("--json", "-q", "--fail-on-anomaly")
    code, text, _ = run_command("watch", tmp_path / "m.ocf", tmp_path / "new.csv", *arguments)
    blind, summary = (r for r in records(text) if r["kind"] not in ("drift", "alarm", "event"))
    assert code == 1
    assert (blind["kind"], blind["row"]) == ("blind", 60 + 2 * LONGEST)
    assert (summary["left_out"], summary["counts"]["context"]) == (0, N - 60)
    code, text, err = run_command(
        *("score", tmp_path / "m.ocf", tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    )
    assert code == 0
    assert "Rows of the stream: 90 without a context." in text
    assert "90 rows" in err
    assert pd.read_csv(tmp_path / "s.csv")["score"].notna().sum() == 60 - LONGEST + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["kind", "event", "row", "score", "is_anomaly", "start", "columns"]
)
def test_columns_may_have_any_name(pump, tmp_path, run_command, name):
    model = load(pump / "pump.ocf")
    (group,) = (column for column in model.schema_.columns if column.name == "file")
    columns = [replace(c, name=name) if c is group else c for c in model.schema_.columns]
    model.schema_ = replace(model.schema_, columns=columns)
    model.save(tmp_path / "m.ocf")
    new = pd.read_csv(pump / "new.csv")
    new[name] = ["A"] * 115 + ["B"] * 35
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("watch", tmp_path / "m.ocf", tmp_path / "new.csv", "--min-rows", 2)
    code, text, _ = run_command(*arguments, "--json")
    told = [r for r in records(text) if r["kind"] != "drift"]
    assert code == 0
    assert [(r["kind"], r.get("event")) for r in told[:2]] == [("alarm", 1), ("event", 1)]
    assert "A" in told[0]["columns"].values()
    assert told[0]["start"]["row"] == told[0]["row"] - 1 >= FAULT
    assert told[1]["last"]["row"] == 114
    assert "event 1 is over  row 114" in run_command(*arguments)[1]


def test_lines_that_are_no_rows_are_left_out(watch, rows):
    code, _, err = watch(b"\n".join([*rows[:30], b"1,2", *rows[30:]]))
    assert code == 0
    assert "Row 29 is left out" in err
    assert err.splitlines()[-1].startswith("151 rows, 1 event, 1 left out")
    assert watch(b"\n".join([*rows[:30], b"1,2"]), "--strict")[0] == 3


@pytest.mark.slow
def test_without_times_another_header_is_another_run(tmp_path, monkeypatch, run_command):
    pd.concat([run(i).assign(run=i) for i in range(10)]).drop(columns="when").to_csv(
        tmp_path / "all.csv", index=False
    )
    arguments = ("--group", "run", "-o", tmp_path / "m.ocf", "-q")
    assert run_command("fit", tmp_path / "all.csv", *FIT, *arguments)[0] == 0
    lines = run(50).drop(columns="when").to_csv(index=False).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(2 * lines)))
    _, text, _ = run_command("watch", tmp_path / "m.ocf", "--json", "--all")
    scores = [r["score"] for r in records(text) if r["kind"] == "row"]
    assert scores[:N] == pytest.approx(scores[N:], nan_ok=True)
    assert records(text)[-1]["without_score"] == 2 * (LONGEST - 1)
    assert patience(load(tmp_path / "m.ocf")) is None


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt, 130), (Terminated, 0)])
def test_a_growing_file_goes_on(pump, tmp_path, rows, run_command, monkeypatch, end, code):
    path = tmp_path / "log.csv"
    path.write_bytes(b"\n".join(rows[: FAULT + 1]) + b"\n")
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise end
        with path.open("ab") as file:
            more = rows[FAULT + 1 :][10 * len(waits) - 10 : 10 * len(waits)]
            file.write(b"\n".join(more) + b"\n")

    monkeypatch.setattr("ocfuse.cli.watch_rows.time.sleep", wait)
    found, text, _ = run_command("watch", pump / "pump.ocf", path, "--follow", "--json")
    alarm, event, summary = (r for r in records(text) if r["kind"] != "drift")
    assert found == code
    assert (alarm["kind"], event["kind"], event["state"]) == ("alarm", "event", "interrupted")
    assert event["last"]["row"] == FAULT + 19  # the last that was written
    assert summary["rows"] == FAULT + 20


def test_flags_of_streams_are_refused_for_tables(plant_folder, run_command):
    code, _, err = run_command("watch", plant_folder / "model.ocf", "--min-rows", "2")
    assert code == 2
    assert "ocfuse fit --stream" in plain(err)


def test_silence_is_told_and_its_end(pump, rows, run_command, monkeypatch):
    now = [0.0]

    def lines():
        yield rows[:40]
        yield []  # that is all there is so far
        for _ in range(5):
            now[0] += 1.0
            yield []
        yield rows[40:41]

    monkeypatch.setattr("ocfuse.cli.watch_rows.lines_of_stdin", lines)
    monkeypatch.setattr("ocfuse.streaming.monitor.monotonic", lambda: now[0])
    arguments = ("watch", pump / "pump.ocf", "-", "--json", "--fail-on-anomaly")
    code, text, _ = run_command(*arguments, "--timeout", "2.5")
    stall, resumed, summary = records(text)
    assert code == 1
    assert (stall["kind"], stall["state"], stall["seconds"]) == ("silent", "begin", 3.0)
    assert (resumed["kind"], resumed["state"], resumed["seconds"]) == ("silent", "end", 5.0)
    assert stall["row"] == resumed["row"] == 38
    assert (summary["silences"], summary["rows"]) == (1, 40)
    now[0] = 0.0
    assert run_command(*arguments, "--timeout", "5.5")[0] == 0


def test_patience_comes_from_the_dates_of_training(pump, tmp_path):
    model = load(pump / "pump.ocf")
    assert patience(model) == 5.0  # five usual steps of a second
    assert model.usual_seconds == 1.0
    assert StreamReporter(model, EventSettings(), Flags(), is_live=False).monitor.timeout is None
    assert (
        StreamReporter(model, EventSettings(timeout=2.0), Flags(), is_live=True).monitor.timeout
        == 2.0
    )


def test_scores_of_a_stream_name_the_channels_behind_alarms(pump, tmp_path, run_command):
    given = ("score", pump / "pump.ocf", pump / "new.csv", "-o", tmp_path / "s.csv", "--why")
    assert run_command(*given)[0] == 0
    scores = pd.read_csv(tmp_path / "s.csv")
    assert scores["why"][FAULT + 5].startswith("current ")
    assert scores["why"][:LONGEST].isna().all()


def test_gaps_of_a_stream_are_no_matter_of_a_flag(pump, run_command):
    for command in ("score", "watch"):
        code, _, err = run_command(command, pump / "pump.ocf", pump / "new.csv", "--gaps", "alarm")
        assert (code, "rows that stand alone" in plain(err)) == (2, True)


def with_faults(rows):
    """Return rows in which flow is missing from row 60 on, and current stands still from 99."""
    header, *cells = [row.split(b",") for row in rows]
    for i, row in enumerate(cells):
        row[1] = b"" if i >= 60 else row[1]
        row[2] = cells[99][2] if i >= 99 else row[2]
    return b"\n".join(map(b",".join, [header, *cells]))


def test_sensors_that_fail_are_told_when_it_happens(watch, rows):
    _, text, err = watch(with_faults(rows))
    told = [line for line in text.splitlines() if line.startswith("channel")]
    assert told[0].startswith("channel flow missing since row 60  row 6")
    assert told[1].startswith("channel current stands still since row 99: at ")
    assert len(told) == 2
    assert "2 sensor failures" in err
    assert watch(with_faults(rows[:90]), "--fail-on-anomaly", "-q")[0] == 1


def test_records_say_when_and_where_and_channels_before_members(watch, rows, tmp_path):
    path = tmp_path / "events.jsonl"
    _, text, _ = watch(b"\n".join(rows), "--json", "--events", path)
    _, other, _ = watch(with_faults(rows), "--json", "--events", path)
    told = records(text) + records(other)
    assert {r["kind"] for r in told} >= {"alarm", "event", "missing", "stuck", "summary"}
    for record in told:
        assert {"row", "columns", "at", "model", "stream"} <= record.keys()
        assert (record["model"], record["stream"]) == ("pump", "stdin")
    alarm = told[0]
    assert list(alarm).index("channels") < list(alarm).index("members")
    assert alarm["channels"][0]["name"] == "current"
    assert alarm["severity"] > 1
    numbers = [r["event"] for r in records(path.read_text()) if r["kind"] == "alarm"]
    assert numbers == list(range(1, len(numbers) + 1))  # over both starts
    assert len(numbers) > 1


def test_an_alarm_names_channels_first_and_members_last(watch, rows):
    _, text, _ = watch(b"\n".join(rows))
    alarm = text.splitlines()[0]
    assert "  current " in alarm
    assert alarm.index(" (usual ") < alarm.index("  score ") < alarm.index("  members ")
    assert "  severity " in alarm


def test_of_nothing_before_an_error_no_sum_is_told(watch, rows):
    for row in (b"a,b", b""):
        code, text, err = watch(row)
        assert (code, text, "0 rows" in err) == (3, "", False)
    assert "1 row, 0 events" in watch(b"\n".join([*rows[:2], b"1,2"]), "--strict")[2]


def test_another_rate_than_in_training_is_told(watch, rows):
    _, text, _ = watch(b"\n".join([rows[0], *rows[1::4]]))
    assert "rows come every 4.0 s, in training every 1.0 s" in text


def test_events_of_files_of_other_programs_count_from_one(tmp_path):
    path = tmp_path / "events.jsonl"

    def last_event():
        file, before = EventFile(path, ()), path.read_bytes()
        file.close()
        assert path.read_bytes() == before
        return file.n_before

    path.write_bytes(b"")
    assert last_event() == 0
    path.write_bytes(b'[1]\nno json\n{"event": null}\n\xff\n{"event": "x"}\n{"kind": "alarm"}\n')
    assert last_event() == 0
    path.write_bytes(b'{"event": 7}\n{"event": 3}\n{"state": "begin"}\n')
    assert last_event() == 7


# -- alarms per hour -----------------------------------------------------


@pytest.fixture(scope="module")
def careful(pump):
    """Return a model that was asked for a rate of events."""
    options = ["--false-alarms-per-hour", "8", "--rows", "300", "--json", "-o"]
    with redirect_stdout(io.StringIO()) as told, pytest.raises(SystemExit) as caught:
        main(["fit", str(pump / "runs"), *FIT, *options, str(pump / "careful.ocf")])
    assert caught.value.code == 0
    (pump / "careful.json").write_text(told.getvalue())
    return pump / "careful.ocf"


def test_fit_says_what_its_held_out_runs_raised_and_promise(pump, careful, run_command):
    known = json.loads((pump / "careful.json").read_text())
    events = known["stream"]["events"]
    assert (events["runs"], events["per"], events["asked"]) == (10, "hour", 8.0)
    assert known["rows"] <= 300
    assert events["promised"] <= 8.0 or "cannot be promised" in str(known["warnings"])
    code, out, _ = run_command("inspect", careful)
    assert code == 0
    assert "by fits that have not seen them" in plain(out)
    assert "8 asked for" in plain(out)
    assert "how sure" not in out  # that is of rows


def test_of_a_rate_of_events_that_cannot_be_promised_is_said_so_alone(pump, tmp_path, run_command):
    rates = ("--false-alarms", "0.05", "--false-alarms-per-hour", "0.1")  # of rows too low as well
    given = (*FIT[:-2], *rates, "--rows", "300", "-o", tmp_path / "m.ocf", "--json", "-q")
    code, out, err = run_command("fit", pump / "runs", *given)
    assert code == 0
    assert json.loads(out)["warnings"] == [err.removeprefix("Warning: ").rstrip()]
    assert err.startswith("Warning: 0.1 alarms per hour cannot be promised: from 10 runs")


def test_watch_uses_the_rule_of_the_model_and_the_report_has_its_events(
    pump, careful, tmp_path, run_command
):
    _, out, _ = run_command("watch", careful, pump / "new.csv", "--json")
    told = [json.loads(line) for line in out.splitlines()]
    n_events = sum(record["kind"] == "alarm" for record in told)
    assert n_events >= 1
    model = load(careful)
    scores = model.score(open_source(str(pump / "new.csv")).read())["score"]
    assert len(model.stream_.tracker().run(scores)) == n_events
    page = tmp_path / "new.html"
    code, _, _ = run_command(
        "score", careful, pump / "new.csv", "-o", tmp_path / "s.csv", "--report", page
    )
    assert code == 0
    assert f"<h3>{n_events} event" in page.read_text()


@pytest.mark.parametrize("n_cells", [4_000_000, 4 * 37])
def test_score_counts_events_of_all_runs(pump, tmp_path, run_command, monkeypatch, n_cells):
    monkeypatch.setattr("ocfuse.tables.source.Source.max_cells", n_cells)
    (tmp_path / "runs").mkdir()
    for hour, name in enumerate("abc"):  # in the last nothing fails, and each lasts 149 s
        content = run(60) if name == "c" else pd.read_csv(pump / "new.csv")
        content["when"] = run(50 + hour)["when"]
        content.to_csv(tmp_path / "runs" / f"{name}.csv", index=False)
    given = ("score", pump / "pump.ocf", tmp_path / "runs", "-o", tmp_path / "s.csv")
    code, text, _ = run_command(*given, "--report", tmp_path / "page.html")
    assert code == 0
    (found,) = re.findall(r"^(\d+) events in 3 runs, 0\.1 hours\.\n450 rows", text)
    assert f"<h3>{found} event" in (tmp_path / "page.html").read_text()
    known = json.loads(run_command(*given, "--json")[1])
    assert (known["events"], known["runs"]) == (int(found), 3)
    assert known["hours"] == pytest.approx(3 * 149 / 3600, abs=1e-4)


def test_rates_of_events_are_for_streams_and_one_at_a_time(pump, tmp_path, run_command):
    given = ("fit", pump / "runs", "-o", tmp_path / "m.ocf", "--false-alarms-per-hour", "1")
    code, _, err = run_command(*given)
    assert (code, "--false-alarms-per-hour" in plain(err)) == (2, True)
    code, _, err = run_command(*given, "--stream", "--false-alarms-per-run", "1")
    assert (code, "give one of" in plain(err)) == (2, True)
