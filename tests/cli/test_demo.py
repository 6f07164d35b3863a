"""`ocfuse demo`: the story, and files that the commands it names work on."""

import io
import json
import re
import shlex
from contextlib import redirect_stdout

import pandas as pd
import pytest

import ocfuse
from ocfuse.cli.app import run
from ocfuse.cli.demo import FALSE_ALARMS


def invoke(*arguments):
    """Run the command as the console script does; return its exit code."""
    with pytest.raises(SystemExit) as caught:
        run(list(map(str, arguments)))
    return caught.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder, with a space in its name, after the demo; its story is in story.txt."""
    folder = tmp_path_factory.mktemp("a demo") / "of mine"
    with redirect_stdout(io.StringIO()) as out:
        assert invoke("demo", "-o", folder) == 0
    (folder.parent / "story.txt").write_text(out.getvalue(), encoding="utf-8")
    return folder


@pytest.fixture
def story(folder):
    """Return what the demo printed."""
    return (folder.parent / "story.txt").read_text(encoding="utf-8")


def test_files(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {"labelled.csv", "model.ocf", "new.csv", "normal.csv", "report.html"}
    normal, new, labelled = (
        pd.read_csv(folder / f"{name}.csv") for name in ("normal", "new", "labelled")
    )
    diagnosis = labelled.set_index("id")["diagnosis"]
    assert set(diagnosis[normal["id"]]) == {"benign"}
    assert sorted([*normal["id"], *new["id"]]) == sorted(labelled["id"])
    assert list(normal) == list(new)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")


def test_the_first_line_comes_before_the_work(monkeypatch, tmp_path, capsys):
    def stop(seed):
        raise KeyboardInterrupt

    monkeypatch.setattr("ocfuse.cli.demo._tables", stop)
    assert invoke("demo", "-o", tmp_path) == 130
    assert capsys.readouterr().out.startswith(f"ocfuse {ocfuse.__version__}: the story")


def test_the_story(story):
    for expected in ("Learned what is normal from 250", "anomaly: score", "report.html"):
        assert expected in story
    found, false = map(float, re.findall(r"([\d.]+)% of", story)[:2])
    assert found > 60
    assert false < 15


@pytest.mark.slow
def test_the_three_commands_work_on_these_very_files(folder, story, capsys):
    commands = [shlex.split(line) for line in re.findall(r"^  (ocfuse .*)$", story, re.MULTILINE)]
    assert [command[1] for command in commands] == ["score", "explain", "compare"]
    score, explain, compare = (command[1:] for command in commands)
    assert invoke(*score) == 0
    scores = pd.read_csv(folder / "scores.csv")
    assert int(scores["is_anomaly"].sum()) == int(re.search(r"(\d+) alarms", story)[1])
    assert f"Why row {scores['score'].idxmin()} is the strangest" in story
    capsys.readouterr()
    assert invoke(*explain) == 0
    assert capsys.readouterr().out.startswith(f"row {scores['score'].idxmin()}, ")
    assert invoke(*compare, "--splits", 1, "--members", "light") == 0
    (folder / "scores.csv").unlink()


@pytest.mark.slow
def test_json(tmp_path, capsys):
    assert invoke("demo", "-o", tmp_path, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["false_alarms"] < 0.15
    assert len(told["next"]) == 3


def test_the_model_is_that_of_the_folder(folder):
    model = ocfuse.load(folder / "model.ocf")
    new = pd.read_csv(folder / "new.csv")
    assert model.detector_.false_alarm_rate == FALSE_ALARMS
    assert model.score(new)["is_anomaly"].any()


def test_a_file_in_the_way(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")  # the line is not broken, however long the path is
    (tmp_path / "file").write_text("")
    assert invoke("demo", "-o", tmp_path / "file") == 2
    assert "is a file" in capsys.readouterr().err
