"""Cells on disk: the same bytes however they are made, whole runs only; cells refused."""

import json
import shutil
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from ocfuse.exceptions import FolderInUseError, InvalidInputError, MissingPackageError, OcfuseError
from ocfuse.lab.robot_cell import cell, read_plan, simulate
from ocfuse.lab.robot_cell.cell import PLAN_FILE, SIMULATOR, maker
from ocfuse.lab.robot_cell.run import TRUTH
from ocfuse.system.files import folder_lock
from ocfuse.system.progress import show_progress
from ocfuse.vision.trials import read_trials
from tests.forks import process
from tests.lab.robot_cell.cases import PLAN

pytest.importorskip("pybullet", reason="the extra robots is not installed")
image = pytest.importorskip("PIL.Image", reason="the extra robots is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra robots is not installed")


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_layout(folder):
    files = set(content(folder))
    expected = {"cell.json"}
    for trial in ("train/trial_0000", "train/trial_0001", "test/trial_0002"):
        names = ("annotation.json", "states.parquet", "truth.parquet")
        expected |= {f"{trial}/{name}" for name in names}
        expected |= {f"{trial}/rgb/frame_{i:04d}.jpg" for i in range(10)}
    assert files == expected


def test_what_is_written_is_what_is_read(folder):
    *normal, drop = read_trials(folder)
    assert [trial.name for trial in normal] == ["train/trial_0000", "train/trial_0001"]
    assert all((trial.labels() == 1).all() and trial.kind == 0 for trial in normal)
    assert (drop.split, drop.kind, drop.subkind) == ("test", 3, "open")
    [(first, last)] = drop.anomalies
    assert last == 9
    assert drop.labels().tolist() == [1] * first + [-1] * (10 - first)
    for trial in (*normal, drop):
        assert trial.joints.shape == (10, len(trial.joint_names))
        assert trial.joints.dtype == trial.times.dtype == trial.progress.dtype == np.float64
        assert np.all(np.diff(trial.progress) >= 0)
        assert np.allclose(np.diff(trial.times), 0.9)
        with image.open(trial.frames[0]) as frame:
            assert frame.size == (128, 128)
        # what is true is not told to who learns from joints
        assert not set(TRUTH) & set(trial.joint_names)


def test_the_truth_is_written(folder):
    truth = parquet.read_table(folder / "test/trial_0002/truth.parquet")
    assert truth.column_names == list(TRUTH)
    assert truth["box_z"].to_numpy().max() > 0.2
    about = json.loads((folder / "test/trial_0002/annotation.json").read_text())
    assert about["name"] == "drop"
    assert about["settings"]["seed"] == 7


def test_killed_and_gone_on_with_two_processes(folder, tmp_path):
    first = tmp_path / "train/trial_0000"
    with process(simulate, tmp_path, PLAN) as victim:
        while not first.exists() and victim.is_alive():
            time.sleep(0.02)
        victim.kill()
        victim.join()
        assert victim.exitcode == -9
    done = list(tmp_path.glob("*/trial_*"))
    assert first in done
    assert len(done) < 3
    stamp = (first / "annotation.json").stat().st_mtime_ns
    (tmp_path / "train/.trial_0001.dead.part").mkdir()
    simulate(tmp_path, PLAN, jobs=2)
    assert (first / "annotation.json").stat().st_mtime_ns == stamp
    assert content(tmp_path) == content(folder)


def test_a_whole_cell_is_not_made_again(folder, monkeypatch):
    monkeypatch.setattr(cell, "write_run", None)
    told = []
    with show_progress(lambda *step: told.append(step)):
        assert len(simulate(folder, PLAN)) == 3
    assert told == [("runs", "there", 3, 3)]


def test_one_command_at_a_time(tmp_path):
    with folder_lock(tmp_path), pytest.raises(FolderInUseError, match="is written to by process"):
        simulate(tmp_path, PLAN)


def test_a_run_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(cell, "is_as_meant", lambda recording: False)
    monkeypatch.setattr(cell, "record", lambda settings, n_frames: None)
    with pytest.raises(OcfuseError, match="in 20 attempts with seed 7"):
        simulate(tmp_path, PLAN)
    assert {path.name for path in tmp_path.rglob("*")} == {PLAN_FILE}


@pytest.mark.parametrize("package", ["pybullet", "PIL", "pyarrow"])
def test_a_missing_package_is_named_before_anything_is_written(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"{package}.*\[robots\]"):
        simulate(tmp_path / "new", PLAN)
    assert not (tmp_path / "new").exists()


@pytest.fixture
def begun(folder, tmp_path, monkeypatch):
    """Return a cell of which one run is missing; none can be made."""
    shutil.copytree(folder, tmp_path / "cell")
    shutil.rmtree(tmp_path / "cell/train/trial_0001")
    monkeypatch.setattr(cell, "write_run", None)
    return tmp_path / "cell"


def rewrite(folder, **changes):
    file = folder / PLAN_FILE
    facts = {**json.loads(file.read_text(encoding="utf-8")), **changes}
    file.write_text(json.dumps(facts), encoding="utf-8")


def test_a_plan_is_read_as_it_was_written(folder, tmp_path):
    assert read_plan(folder) == PLAN
    assert read_plan(tmp_path) is None


def test_what_made_it_is_written(folder):
    made_by = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))["made_by"]
    assert made_by == maker()
    assert made_by["simulator"] == SIMULATOR
    assert {"numpy", "pillow", "pybullet"} < set(made_by)


def test_another_cell_is_not_mixed_in(folder):
    with pytest.raises(InvalidInputError, match="other n_frames, seed: 10, 7"):
        simulate(folder, replace(PLAN, n_frames=20, seed=8))


def test_a_cell_of_another_simulator_is_refused_even_if_it_is_whole(folder, monkeypatch):
    monkeypatch.setattr(cell, "SIMULATOR", SIMULATOR + 1)
    with pytest.raises(InvalidInputError, match=r"version 1; this is version 2.*new folder"):
        simulate(folder, PLAN)


@pytest.mark.parametrize("made_by", [None, {}, "me"])
def test_a_cell_that_tells_no_simulator_is_refused(begun, made_by):
    rewrite(begun, made_by=made_by)
    with pytest.raises(InvalidInputError, match="not told"):
        simulate(begun, PLAN)


def test_runs_of_other_packages_are_not_mixed_in(begun):
    rewrite(begun, made_by={**maker(), "numpy": "1.0"})
    with pytest.raises(InvalidInputError, match=r"begun with numpy 1\.0.*Install those versions"):
        simulate(begun, PLAN)


def test_a_whole_cell_may_be_read_with_other_packages(folder, begun):
    shutil.copytree(folder / "train/trial_0001", begun / "train/trial_0001")
    rewrite(begun, made_by={**maker(), "numpy": "1.0"})
    assert len(simulate(begun, PLAN)) == 3


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"letter\.txt.*Give a new folder"):
        simulate(tmp_path, PLAN)


@pytest.mark.parametrize("text", ["dear", "[]", "{}", '{"train": 1}'])
def test_a_damaged_claim_is_told(tmp_path, text):
    (tmp_path / PLAN_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match="damaged"):
        simulate(tmp_path, PLAN)
    with pytest.raises(InvalidInputError, match="damaged"):
        read_plan(tmp_path)
