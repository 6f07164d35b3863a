"""Runs of the cell: each kind of anomaly happens, is seen, and is labelled when it is.

A run with a fault is drawn so that all else is as in the run of the same number without
one. So the pictures of both are equal, noise and all, until the fault begins.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ocfuse.lab.robot_cell.run import is_as_meant, record
from ocfuse.lab.robot_cell.settings import draw
from ocfuse.lab.robot_cell.task import HALF_BOX, intervals
from ocfuse.lab.robot_cell.world import COLUMNS
from ocfuse.vision.trials import DROP, GRASP, KINDS, OBSTACLE, OCCLUSION, type_of

pytest.importorskip("pybullet", reason="the extra robots is not installed")

#: Frames of a normal run and of the first kind of each type; the other kinds have half.
N_FRAMES = 16
FIRST = [kinds[0] for kinds in KINDS.values()]
ALL = [kind for kinds in KINDS.values() for kind in kinds]


@cache
def run(kind, n_frames=None):
    usual = N_FRAMES if kind in ("", *FIRST) else N_FRAMES // 2
    return record(draw(0, 4, kind), n_frames or usual)


def twin(recording):
    """Return the run of the same number in which nothing goes wrong."""
    n_frames = len(recording.frames)
    return run("") if n_frames == N_FRAMES else run("", n_frames)


def changed(recording):
    """Return how many pixels of each frame are not as in the normal run."""
    pairs = zip(recording.frames, twin(recording).frames, strict=True)
    return np.array([(np.abs(a.astype(int) - b).max(axis=2) > 12).sum() for a, b in pairs])


def column(recording, name):
    return np.array(recording.sensors)[:, COLUMNS.index(name)]


def test_a_normal_run_brings_the_box_to_its_target():
    normal = run("")
    place = normal.settings.place
    end = [normal.fact(f"box_{axis}")[-1] for axis in "xyz"]
    assert end == pytest.approx([place.x, place.y, HALF_BOX], abs=0.005)
    assert normal.fact("box_z").max() > 0.2
    assert not normal.is_anomalous().any()
    assert is_as_meant(normal)


def test_what_a_run_records():
    normal = run("")
    assert len(normal.times) == len(normal.moments) == len(normal.frames) == N_FRAMES
    assert np.shape(normal.sensors) == (N_FRAMES, len(COLUMNS))
    assert np.isfinite(normal.sensors).all()
    for frame in normal.frames:
        assert frame.shape == (128, 128, 3)
        assert frame.dtype == np.uint8
        assert frame.std() > 20
    moving = [m.phase not in ("wait", "rest") for m in normal.moments]
    assert np.all(np.abs(np.diff(column(normal, "position_1")))[moving[1:]].max() > 0.05)


def test_the_sensors_know_when_the_box_is_held():
    normal = run("")
    held = np.array([m.phase in ("lift", "transport") for m in normal.moments])
    free = np.array([m.phase in ("approach", "home", "rest") for m in normal.moments])
    assert column(normal, "grip_left")[held].min() > 10
    assert np.abs(column(normal, "grip_left")[free]).max() < 2
    opening = column(normal, "finger_left") + column(normal, "finger_right")
    assert opening[held] == pytest.approx(2 * HALF_BOX, abs=0.003)


@pytest.mark.parametrize("kind", ALL)
def test_frames_differ_where_they_are_labelled_and_nowhere_else(kind):
    recording = run(kind)
    is_anomalous, n_changed = recording.is_anomalous(), changed(recording)
    assert is_anomalous.any()
    assert n_changed[is_anomalous].min() > 30
    if type_of(kind) == GRASP:  # off its way, but by less than counts
        is_anomalous |= recording.fact("deviation") > 0
    assert n_changed[~is_anomalous].max(initial=0) < 10


@pytest.mark.parametrize("kind", ALL)
def test_what_should_happen_does(kind):
    recording = run(kind)
    height = recording.fact("box_z")
    held = np.array([m.phase in ("lift", "transport", "lower") for m in recording.moments])
    begin = intervals(recording.is_anomalous())[0][0]
    assert is_as_meant(recording)
    if type_of(kind) == OCCLUSION:
        assert recording.truth[-1][:3] == pytest.approx(twin(recording).truth[-1][:3], abs=1e-6)
    elif type_of(kind) == GRASP:
        assert height.max() < HALF_BOX + 0.05
        assert recording.moments[begin].phase in ("descend", "grasp")
        assert np.abs(column(recording, "grip_left")[held]).max() < 10
    elif type_of(kind) == DROP:
        assert height[begin - 1] > HALF_BOX + 0.15
        assert height[-1] == pytest.approx(HALF_BOX, abs=0.01)
        assert recording.moments[begin].phase == "transport"
    elif type_of(kind) == OBSTACLE:
        touched = recording.fact("touched")
        assert touched.any()
        assert np.flatnonzero(touched)[0] >= begin


@pytest.mark.parametrize("kind", ["short", "open"])
def test_the_controller_does_not_notice(kind):
    assert run(kind).moments == run("").moments


def test_a_run_that_is_not_as_meant_is_told():
    for kind, other in (("short", "open"), ("open", ""), ("ball", ""), ("", "block"), ("", "hand")):
        assert not is_as_meant(replace(run(kind), settings=draw(0, 4, other)))


def test_without_pictures_the_physics_are_the_same():
    blind = record(draw(0, 4), N_FRAMES, pictures=False)
    assert blind.frames == []
    assert np.array_equal(blind.sensors, run("").sensors)
