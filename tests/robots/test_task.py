"""The task of the arm: phases in order, progress that never falls, a path without jumps."""

import numpy as np
import pytest

from ocfuse.lab.robot_cell.task import HOME, OVER_PICK, PHASES, REST, SECONDS, Pose, Task, ramp

NOMINAL = np.array(list(PHASES.values()))
TIMES = np.linspace(0, SECONDS, 2000, endpoint=False)
PICK, PLACE = Pose(0.5, -0.2, 0.028, 0.2), Pose(0.55, 0.2, 0.028, -0.1)


@pytest.fixture(params=[0.9, 1.0, 1.1])
def task(request):
    return Task(PICK, PLACE, request.param * NOMINAL)


def test_phases_come_in_their_order(task):
    phases = [task.moment(time).phase for time in TIMES]
    assert list(dict.fromkeys(phases)) == [*PHASES, REST]


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
