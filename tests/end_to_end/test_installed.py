"""The installed command on real files, good and bad.

A new process is started where it is the point: the rest runs in this one, much faster.
"""

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, replace

import pandas as pd
import pytest

from ocfuse import __version__
from ocfuse.persistence import read_header
from ocfuse.persistence.header import FORMAT, MAGIC
from tests.cli.cases import ANOMALIES, plant, with_anomalies

GOOD = plant(60, seed=2).to_csv(index=False)
HEADER, FIRST = GOOD.splitlines(keepends=True)[:2]


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def refusal(told, *words):
    """Check that bad data was told in one line, with nothing on stdout."""
    code, out, err = told
    assert (code, out) == (3, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert [word for word in words if word not in err] == [], err


def test_the_wheel_is_what_runs(ocfuse, tmp_path):
    assert ocfuse.run("--version", cwd=tmp_path) == (0, f"ocfuse {__version__}\n", "")
    python = ocfuse.folder / "bin" / "python"
    code = "import ocfuse; print(ocfuse.__file__)"
    where = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    )
    assert where.stdout.startswith(str(ocfuse.folder))


def test_from_normal_rows_to_alarms_and_a_report(ocfuse, story, tmp_path):
    folder, (code, out, err) = story
    assert (code, err) == (0, "")
    assert "model.ocf written" in out
    assert listing(folder) == ["model.ocf", "new.csv", "normal.csv"]
    code, out, err = ocfuse.run(
        *("score", folder / "model.ocf", folder / "new.csv", "-o", "scores.parquet"),
        *("--report", "report.html", "--fail-on-anomaly"),
        cwd=tmp_path,
    )
    assert (code, err) == (1, "")
    assert out.startswith(f"200 rows, {len(ANOMALIES)} anomalies")
    assert listing(tmp_path) == ["report.html", "scores.parquet"]
    scores = pd.read_parquet(tmp_path / "scores.parquet")
    assert tuple(scores.index[scores["is_anomaly"]]) == ANOMALIES
    assert list(scores["part"]) == list(pd.read_csv(folder / "new.csv")["part"])
    assert "P00017" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_table_of_a_real_plant(run_command, data, tmp_path, monkeypatch):
    path = data / "sequences" / "skab" / "valve1" / "0.csv"
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "begin.csv").write_text("".join(lines[:401]))
    ignored = ("--ignore", "anomaly", "--ignore", "changepoint")
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "begin.csv").open() as begin:
        monkeypatch.setattr("sys.stdin", begin)
        told = run_command("fit", "-", "--members", "light", "--quiet", *ignored)
    assert told == (0, "", "")
    code, out, err = run_command("score", "model.ocf", path)
    assert code == 0
    assert "More than half of the rows raise an alarm" in err
    assert "\n1,147 rows, " in err
    assert out.startswith("row,datetime,score,p_value,is_anomaly\n")
    alarm = pd.read_csv(io.StringIO(out))["is_anomaly"]
    is_anomaly = pd.read_csv(path, sep=";")["anomaly"] == 1
    assert alarm[is_anomaly].mean() > alarm[:400].mean()
    assert listing(tmp_path) == ["begin.csv", "model.ocf"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("", ["is empty", "column names and rows are expected"], id="empty"),
        pytest.param(HEADER, ["column names, but no rows"], id="header only"),
        pytest.param(
            GOOD.replace(",", "^"), ["Only one column was found", "delimiter"], id="delimiter"
        ),
        pytest.param(
            GOOD.replace(FIRST, "P9,2024-01-01 00:00:00,high,20,on\n"),
            ["'pressure' holds numbers, but not in row 0 ('high')", "Correct or empty"],
            id="mixed types",
        ),
        pytest.param(
            GOOD.replace(FIRST, "P9,2024-01-01 00:00:00,-inf,20,on\n"),
            ["'pressure' holds infinity in row 0", "Leave such rows out"],
            id="infinity",
        ),
        pytest.param(
            GOOD.replace("temperature", "pressure"),
            ["columns of the same name: pressure", "Rename"],
            id="duplicate names",
        ),
    ],
)
def test_tables_that_cannot_be_learned_from(run_command, tmp_path, content, words):
    (tmp_path / "table.csv").write_text(content)
    refusal(run_command("fit", tmp_path / "table.csv", "-o", tmp_path / "m.ocf"), *words)
    assert listing(tmp_path) == ["table.csv"]


def test_a_gap_that_is_refused(ocfuse, model, tmp_path):
    frame = with_anomalies()
    frame.loc[150, "pressure"] = float("nan")
    frame.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "scores.csv").write_text("of yesterday")
    flags = ("--gaps", "refuse", "-o", "scores.csv")
    told = ocfuse.run("score", model, "new.csv", *flags, cwd=tmp_path)
    refusal(told, "complete in training: pressure (row 150)", "--gaps 'judge'")
    assert listing(tmp_path) == ["new.csv", "scores.csv"]
    assert (tmp_path / "scores.csv").read_text() == "of yesterday"


def test_names_in_any_script_and_gaps(ocfuse, run_command, tmp_path):
    names = {
        "part": "Stück-id",
        "pressure": "圧力 (bar)",
        "temperature": "θερμό 🌡",
        "mode": "режим",
    }
    frame = plant(120, seed=0).rename(columns=names)
    frame.loc[::10, "圧力 (bar)"] = float("nan")
    frame.to_csv(tmp_path / "größe.csv", index=False, encoding="utf-8")
    files = (tmp_path / "größe.csv", "-o", tmp_path / "m.ocf")
    code, out, err = run_command("fit", *files, "--members", "light")
    assert code == 0, err
    kinds = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "12 of 120 cells empty" in kinds["圧力 (bar)"]
    assert "category" in kinds["режим"]
    code, out, err = ocfuse.run("score", "m.ocf", "größe.csv", "--json", "-q", cwd=tmp_path)
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["Stück-id"] for row in rows] == list(frame["Stück-id"])
    assert all(isinstance(row["score"], float) for row in rows)


def test_a_category_that_was_not_there_is_told(run_command, model, tmp_path):
    frame = with_anomalies()
    frame.loc[[3, 4], "mode"] = "rinsing"
    frame.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run_command("score", model, tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    assert code == 0
    assert "200 rows" in out
    assert err.count("\n") == 2
    assert err.startswith("Warning: Cells unlike those of training:\n  mode: new values")
    assert "('rinsing'): 2 rows, the first of them row 3" in err
    scores = pd.read_csv(tmp_path / "s.csv")["score"]
    assert scores[[3, 4]].max() < scores.median()


def rewritten(model, **fields):
    """Return a model file whose header says other things."""
    payload = model.read_bytes().removeprefix(MAGIC).split(b"\n", 1)[1]
    header = replace(read_header(model), **fields)
    header = replace(header, sha256=header.checksum(payload))
    return MAGIC + json.dumps(asdict(header)).encode() + b"\n" + payload


def test_a_model_of_another_version(run_command, story, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = story[0] / "new.csv"
    (tmp_path / "old.ocf").write_bytes(rewritten(model, ocfuse="0.0.1"))
    code, _, err = run_command("score", "old.ocf", table, "-o", "s.csv")
    assert code == 0
    assert err.startswith(f"Warning: old.ocf was written with ocfuse 0.0.1; this is {__version__}")
    (tmp_path / "new.ocf").write_bytes(rewritten(model, ocfuse="9.0", format=FORMAT + 1))
    told = run_command("score", "new.ocf", table, "-o", "t.csv")
    refusal(
        told,
        f"format {FORMAT + 1}",
        "ocfuse 9.0",
        f"This is ocfuse {__version__}",
        "Upgrade ocfuse",
    )
    assert listing(tmp_path) == ["new.ocf", "old.ocf", "s.csv"]


def test_wrong_usage_and_a_broken_installation(ocfuse, story, model, tmp_path):
    code, out, err = ocfuse.run("score", model, "--treshold", "1", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "--threshold" in err
    (tmp_path / "pandas.py").write_text("raise RuntimeError('half of an upgrade')")
    words = ("score", model, story[0] / "new.csv", "-o", "s.csv")
    told = ocfuse.run(*words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert told[:2] == (4, "")
    assert told[2].startswith("Internal error: RuntimeError: half of an upgrade.")


#: Makes its standard input the terminal of what it runs, so that Ctrl-C reaches it.
AT_TERMINAL = """\
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def interrupted(ocfuse, *arguments, cwd):
    """Press Ctrl-C when the command shows its progress; return its code and its files then."""
    ours, theirs = pty.openpty()
    process = ocfuse.start(
        *arguments, cwd=cwd, before=(sys.executable, "-c", AT_TERMINAL), stdin=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while b"[" not in shown:
        shown += os.read(ours, 1024)
    there = listing(cwd)
    for _ in range(6):  # as somebody does who sees it go on: Python may lose one in a finaliser
        os.write(ours, b"\x03")
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
            break
    out, _ = process.communicate()
    os.close(ours)
    assert out == ""
    return process.returncode, there


def test_ctrl_c_while_it_learns(ocfuse, tmp_path):
    plant(4_000, seed=0).to_csv(tmp_path / "normal.csv", index=False)
    code, _ = interrupted(ocfuse, "fit", "normal.csv", cwd=tmp_path)
    assert code == 130
    assert listing(tmp_path) == ["normal.csv"]


def test_ctrl_c_while_it_scores(ocfuse, story, model, tmp_path):
    header, rows = (story[0] / "new.csv").read_text().split("\n", 1)
    (tmp_path / "new.csv").write_text(f"{header}\n{5_000 * rows}")  # many seconds of work
    code, there = interrupted(ocfuse, "score", model, "new.csv", "-o", "s.csv", cwd=tmp_path)
    assert code == 130
    assert len(there) == 2  # the part that was written is there then, and gone now
    assert listing(tmp_path) == ["new.csv"]
