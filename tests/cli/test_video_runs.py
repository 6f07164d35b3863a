"""Runs as the user has them: files, folders and trials."""

import json

import numpy as np
import pytest
from PIL import Image

from ocfuse.cli.video_runs import find_runs, open_run, read_numbers
from ocfuse.exceptions import DatasetWarning, InvalidInputError


def pictures(folder, n, value=0):
    """Write n pictures, the i-th of which is of the colour value + i."""
    folder.mkdir(parents=True)
    for i in range(n):
        frame = np.full((4, 4, 3), value + i, dtype=np.uint8)
        Image.fromarray(frame).save(folder / f"f{i}.png")


def trial(folder, n, anomalies=()):
    pictures(folder / "rgb", n)
    (folder / "annotation.json").write_text(json.dumps({"Anomalies": list(anomalies)}))


def test_normal_training_trials_are_learned_from(tmp_path):
    trial(tmp_path / "train" / "trial_0", 3)
    trial(tmp_path / "train" / "trial_1", 4)
    trial(tmp_path / "train" / "trial_2", 4, [[1, 2]])
    trial(tmp_path / "test" / "trial_3", 2)
    with pytest.warns(DatasetWarning, match="1 trial with anomalies is left out"):
        found = find_runs([str(tmp_path)])
    assert [(str(run), len(run)) for run in found] == [
        ("train/trial_0", 3),
        ("train/trial_1", 4),
    ]
    assert [len(run) for run in find_runs([str(tmp_path / "test")])] == [2]


@pytest.mark.parametrize("ending", ["tif", "webp"])
def test_trials_may_hold_any_pictures(tmp_path, ending):
    trial(tmp_path / "trial_0", 3)
    for path in (tmp_path / "trial_0" / "rgb").iterdir():
        with Image.open(path) as picture:
            picture.save(path.with_suffix(f".{ending}"))
        path.unlink()
    (found,) = find_runs([str(tmp_path)])
    assert len(list(found)) == 3


def test_a_folder_of_picture_folders_and_arrays_has_a_run_each(tmp_path):
    pictures(tmp_path / "a", 3)
    pictures(tmp_path / "b", 2, 10)
    np.save(tmp_path / "c.npy", np.zeros((5, 4, 4, 3), dtype=np.uint8))
    (tmp_path / "notes.txt").write_text("no recording")
    (tmp_path / "b.progress").write_text("0\n1\n")
    found = find_runs([str(tmp_path)])
    assert [len(run) for run in found] == [3, 2, 5]
    assert [run.progress is None for run in found] == [True, False, True]
    assert not any(run.is_live for run in found)


def test_pictures_alone_are_one_run(tmp_path):
    pictures(tmp_path / "a", 3)
    assert [len(run) for run in find_runs([str(tmp_path / "a")])] == [3]


def test_a_trial_has_times(tmp_path):
    trial(tmp_path / "trial_0", 3)
    run = open_run(str(tmp_path / "trial_0"))
    assert [frame.time for frame in run] == pytest.approx([0, 1 / 30, 2 / 30])


@pytest.mark.parametrize("where", ["-", "0", "rtsp://127.0.0.1:9/none"])
def test_what_is_live_is_refused_unopened(tmp_path, where, monkeypatch):
    monkeypatch.setattr("ocfuse.cli.video_runs.open_frames", None)
    pictures(tmp_path / "a", 3)
    with pytest.raises(InvalidInputError, match=f"recordings.* Got {where}: .*Record runs first"):
        find_runs([str(tmp_path / "a"), where])


def test_a_folder_with_a_number_for_a_name_is_no_camera(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures(tmp_path / "0", 3)
    assert [len(run) for run in find_runs(["0"])] == [3]


@pytest.mark.parametrize("text", ["0.1\nhigh", "0.1\nnan"])
def test_progress_must_be_numbers(tmp_path, text):
    file = tmp_path / "p.txt"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match="number per frame"):
        read_numbers(file)


def test_progress_from_numpy(tmp_path):
    np.save(tmp_path / "p.npy", np.array([0.0, 0.5]))
    assert read_numbers(tmp_path / "p.npy").tolist() == [0, 0.5]
