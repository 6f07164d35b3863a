"""Recorded runs: our layout, that of the Toyota HSR, and class folders."""

import json

import numpy as np
import pytest

from ocfuse.exceptions import DatasetError, DatasetWarning
from ocfuse.vision.trials import read_trials


def add_frames(folder, n_frames, pattern="frame_{:04d}.jpg", begin=0):
    folder.mkdir(parents=True)
    for i in range(begin, begin + n_frames):
        (folder / pattern.format(i)).touch()


def add_trial(folder, n_frames=5, annotation=None, **arrays):
    add_frames(folder / "rgb", n_frames, "left_{:04d}.jpg", begin=3)
    if annotation is not None:
        (folder / "annotation.json").write_text(json.dumps(annotation), encoding="utf-8")
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


@pytest.fixture
def toyota(tmp_path):
    """Return a folder as the Zenodo record 4578539 has it."""
    names = np.array([b"arm_lift_joint", b"head_pan_joint"])
    positions = np.arange(14.0).reshape(7, 2)
    for split, trial in (("train", "trial_2"), ("train", "trial_10"), ("validation", "trial_3")):
        add_trial(tmp_path / split / trial, annotation={"Comment": "fine"})
    add_trial(
        tmp_path / "test" / "trial_7",
        annotation={"Anomalies": [[1, 2], [4, 4]], "Start": 0},
        joint_state_positions=positions,
        joint_names=names,
    )
    add_frames(tmp_path / "test/trial_7/rendered_body", 5, "frame_{:04d}.png")
    add_frames(tmp_path / "test/trial_7/flow", 4, "framex_{:04d}.jpg")
    return tmp_path


def test_toyota(toyota):
    *others, test = read_trials(toyota, frame_rate=10)
    assert [t.name for t in others] == ["train/trial_2", "train/trial_10", "validation/trial_3"]
    assert [t.split for t in (*others, test)] == ["train", "train", "validation", "test"]
    assert all(t.kind == 0 and t.labels().tolist() == [1] * 5 for t in others)
    assert all(t.joints is None and t.progress is None for t in others)
    assert test.kind == -1
    assert test.anomalies == [(1, 2), (4, 4)]
    assert test.labels().tolist() == [1, -1, -1, 1, -1]
    assert test.labels().dtype == np.int64
    assert [path.name for path in test.frames] == [f"left_{i:04d}.jpg" for i in range(3, 8)]
    assert test.times == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    # a row for every frame, and some more
    assert test.joints[:, 0].tolist() == [0, 2, 4, 6, 8]
    assert test.joint_names == ["arm_lift_joint", "head_pan_joint"]


def test_one_split_alone(toyota):
    [trial] = read_trials(toyota / "test")
    assert (trial.name, trial.split) == ("trial_7", "test")


def test_one_run_alone(toyota):
    [trial] = read_trials(toyota / "test" / "trial_7")
    assert trial.name == "trial_7"
    assert len(trial.frames) == 5


def test_joints_that_do_not_fit_are_left_out(toyota):
    np.save(toyota / "test/trial_7/joint_state_positions.npy", np.zeros((3, 2)))
    with pytest.warns(DatasetWarning, match="no row for every"):
        trials = read_trials(toyota)
    assert trials[-1].joints is None
    (toyota / "test/trial_7/joint_state_positions.npy").write_bytes(b"nonsense")
    with pytest.warns(DatasetWarning, match="cannot be read"):
        assert read_trials(toyota)[-1].joints is None


def test_names_of_joints_may_be_missing(toyota):
    (toyota / "test/trial_7/joint_names.npy").unlink()
    assert read_trials(toyota)[-1].joint_names == ["joint_0", "joint_1"]


def test_anomalies_outside_the_frames_are_cut(toyota):
    file = toyota / "test/trial_7/annotation.json"
    file.write_text('{"Anomalies": [[3, 99], [50, 60]]}', encoding="utf-8")
    with pytest.warns(DatasetWarning, match="outside its 5 frames"):
        trials = read_trials(toyota)
    assert trials[-1].anomalies == [(3, 4)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[1]", "must hold an object"),
        ('{"Anomalies": [1, 2]}', "pairs of frames"),
        ('{"Anomalies": [["a", 2]]}', "pairs of frames"),
    ],
)
def test_damaged_annotations(toyota, text, words):
    (toyota / "test/trial_7/annotation.json").write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=words) as caught:
        read_trials(toyota)
    assert "trial_7" in str(caught.value)


def test_a_run_without_pictures_is_left_out(toyota):
    (toyota / "test/trial_8/rgb").mkdir(parents=True)
    with pytest.warns(DatasetWarning, match="holds no pictures"):
        assert len(read_trials(toyota)) == 4


def test_pictures_beside_the_runs_are_left_out(toyota):
    (toyota / "overview.png").touch()
    with pytest.warns(DatasetWarning, match="beside folders"):
        assert len(read_trials(toyota)) == 4


@pytest.mark.parametrize(("word", "kind"), [("book falls", -1), (9, -1), (3, 3), ([1], -1)])
def test_types_that_are_not_ours(toyota, word, kind):
    file = toyota / "test/trial_7/annotation.json"
    file.write_text(json.dumps({"Anomalies": [[1, 2]], "type": word}), encoding="utf-8")
    assert read_trials(toyota)[-1].kind == kind


def test_half_written_runs_are_not_seen(toyota):
    add_trial(toyota / "test/.trial_9.abc.part")
    assert len(read_trials(toyota)) == 4


def test_class_folders(tmp_path):
    names = {
        "Normal": 0,
        "camera occlusion": 1,
        "grasp_failure": 2,
        "gripper-drop": 3,
        "Obstacle": 4,
        "abnormal": -1,
    }
    for name in names:
        add_frames(tmp_path / name, 3, "{}.png", begin=9)
    trials = {trial.name: trial for trial in read_trials(tmp_path)}
    assert {name: trial.kind for name, trial in trials.items()} == names
    assert [path.name for path in trials["Normal"].frames] == ["9.png", "10.png", "11.png"]
    for trial in trials.values():
        assert trial.split == ("train" if trial.kind == 0 else "test")
        assert set(trial.labels()) == {1 if trial.kind == 0 else -1}


def test_class_folders_in_splits_and_runs(tmp_path):
    add_frames(tmp_path / "Train/normal/run1", 2)
    add_frames(tmp_path / "Train/normal/run2", 2)
    add_frames(tmp_path / "val/normal", 2)
    for i in range(1, 5):
        add_frames(tmp_path / f"test/type{i}/run", 2)
    add_frames(tmp_path / "test/2", 2)
    trials = read_trials(tmp_path)
    assert [(trial.split, trial.kind) for trial in trials] == [
        ("train", 0),
        ("train", 0),
        ("validation", 0),
        ("test", 2),
        *(("test", i) for i in range(1, 5)),
    ]


def test_a_class_that_nobody_can_tell(tmp_path):
    add_frames(tmp_path / "blue", 2)
    with pytest.raises(DatasetError, match=r"blue.*tells no class"):
        read_trials(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(DatasetError, match="no runs"):
        read_trials(tmp_path)
    with pytest.raises(DatasetError, match="no folder"):
        read_trials(tmp_path / "missing")
