"""The task of the arm: phases, progress, the path of the hand, labels of frames."""

import numpy as np
import pytest

from ocfuse.lab.robot_cell.task import (
    HOME,
    OVER_PICK,
    PHASES,
    SECONDS,
    SHOWN,
    Pose,
    Task,
    anomalous_frames,
    intervals,
    ramp,
)
from ocfuse.vision.trials import DROP, GRASP, NORMAL, OBSTACLE, OCCLUSION

NOMINAL = np.array(list(PHASES.values()))
TIMES = np.linspace(0, SECONDS, 2000, endpoint=False)
PICK, PLACE = Pose(0.5, -0.2, 0.028, 0.2), Pose(0.55, 0.2, 0.028, -0.1)


@pytest.fixture(params=[0.9, 1.0, 1.1])
def task(request):
    return Task(PICK, PLACE, request.param * NOMINAL)


def test_phases_come_in_their_order(task):
    phases = [task.moment(time).phase for time in TIMES]
    assert list(dict.fromkeys(phases)) == [*PHASES, "rest"]


def test_progress_rises_from_0_to_1(task):
    progress = np.array([task.moment(time).progress for time in TIMES])
    assert progress[0] == 0
    assert progress[-1] == 1
    assert np.all(np.diff(progress) >= 0)


def test_progress_does_not_depend_on_the_speed():
    slow, fast = Task(PICK, PLACE, 1.1 * NOMINAL), Task(PICK, PLACE, 0.9 * NOMINAL)
    for time in (0.5, 2.0, 5.0):
        assert slow.moment(1.1 * time).progress == pytest.approx(fast.moment(0.9 * time).progress)


def test_the_hand_never_jumps(task):
    path = np.array([task.hand(task.moment(time)) for time in TIMES])
    # metres, and radians, in 1/222 of a second
    assert np.abs(np.diff(path, axis=0)).max() < 0.01


def test_the_hand_visits_its_stations(task):
    def hand_after(phase):
        end = task.ends[list(PHASES).index(phase)]
        return task.hand(task.moment(end - 1e-9))

    assert hand_after("wait")[:3] == pytest.approx(HOME)
    assert hand_after("approach")[:3] == pytest.approx(OVER_PICK)
    assert hand_after("descend") == pytest.approx(PICK.array())
    assert hand_after("lower") == pytest.approx(PLACE.array())
    assert task.hand(task.moment(SECONDS))[:3] == pytest.approx(HOME)


def test_fingers_are_closed_from_grasp_to_release(task):
    closed = {m.phase for m in map(task.moment, TIMES) if task.is_gripping(m)}
    assert closed == {"grasp", "lift", "transport", "lower"}


def test_ramp_stays_within_its_ends():
    values = [ramp(t) for t in np.linspace(-1, 2, 31)]
    assert values[0] == 0
    assert values[-1] == 1
    assert np.all(np.diff(values) >= 0)


def truth(**columns):
    names = ("deviation", "slip", "seen")
    size = len(next(iter(columns.values())))
    return {name: np.array(columns.get(name, np.zeros(size)), dtype=float) for name in names}


def test_an_occlusion_comes_and_goes():
    found = anomalous_frames(OCCLUSION, truth(seen=[0, SHOWN, 1, SHOWN / 2, 0, 0.3, 0]))
    assert intervals(found) == [(1, 2), (5, 5)]


@pytest.mark.parametrize(
    ("kind", "column", "least"), [(GRASP, "deviation", 0.02), (DROP, "slip", 0.002)]
)
def test_a_box_that_is_left_behind_stays_so(kind, column, least):
    values = [0, 0.9 * least, least, 0, 0]
    assert intervals(anomalous_frames(kind, truth(**{column: values}))) == [(2, 4)]


def test_an_obstacle_stays_even_if_the_arm_hides_it():
    assert intervals(anomalous_frames(OBSTACLE, truth(seen=[0, SHOWN, 0, 0]))) == [(1, 3)]


def test_nothing_of_a_normal_run_is_anomalous():
    everything = truth(seen=[1, 1], slip=[1, 1], deviation=[1, 1])
    assert not anomalous_frames(NORMAL, everything).any()


def test_intervals_are_the_flags_again():
    rng = np.random.default_rng(0)
    for _ in range(50):
        flags = rng.random(12) < 0.5
        again = np.zeros(12, dtype=bool)
        for first, last in intervals(flags):
            assert not again[max(first - 1, 0) : last + 1].any()
            again[first : last + 1] = True
        assert np.array_equal(flags, again)
