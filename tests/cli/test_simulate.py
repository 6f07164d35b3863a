"""`ocfuse simulate`: what it writes and says, and how it fails."""

import json
import subprocess
import sys

import pytest

from ocfuse.cli.app import run
from ocfuse.vision.trials import Trial, read_trials

pytest.importorskip("pybullet", reason="the extra robots is not installed")


def invoke(*arguments):
    """Run the command as the console script does; return its exit code."""
    with pytest.raises(SystemExit) as caught:
        run(list(map(str, arguments)))
    return caught.value.code


@pytest.fixture
def plans(monkeypatch):
    """Return the plans that are asked for, none of which is carried out."""
    asked = []

    def pretend(out, plan, jobs):
        asked.append(plan)
        return [Trial("a", "train", [], None)]

    monkeypatch.setattr("ocfuse.lab.robot_cell.simulate", pretend)
    return asked


@pytest.mark.slow
def test_json_on_stdout_and_nothing_else(tmp_path):
    options = ["--runs", "1", "--anomalous", "0", "--frames", "10", "--json", "--out"]
    code = "from ocfuse.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "simulate", *options, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    [group] = json.loads(done.stdout)["groups"]
    assert done.stderr == ""
    assert (group["split"], group["runs"], group["frames"], group["anomalous"]) == (
        "train",
        1,
        10,
        0,
    )
    assert len(read_trials(tmp_path)) == 1


def test_shares(plans, tmp_path):
    assert invoke("simulate", "--out", tmp_path) == 0
    assert invoke("simulate", "--runs", 1, "--types", "4, hand", "--out", tmp_path) == 0
    forty, one = plans
    assert (forty.train, forty.validation, forty.test, forty.anomalous) == (28, 6, 6, 4)
    assert (one.train, one.validation, one.test, one.anomalous) == (1, 0, 0, 1)
    assert one.types == ("4", "hand")


def test_wrong_usage(plans, tmp_path, capsys):
    (tmp_path / "file").touch()
    for options, words in (
        (["--types", "7"], "Choose from"),
        (["--frames", "2"], "--frames"),
        (["--runs", "0"], "--runs"),
    ):
        assert invoke("simulate", "--out", tmp_path / "cell", *options) == 2
        assert words in capsys.readouterr().err
    assert invoke("simulate", "--out", tmp_path / "file") == 2
    assert plans == []


def test_a_folder_that_holds_something_else(tmp_path, capsys):
    (tmp_path / "letter.txt").touch()
    assert invoke("simulate", "--out", tmp_path) == 3
    assert "Give a new folder" in capsys.readouterr().err
