"""When anomalies begin and end, from what is true of frames."""

import numpy as np
import pytest

from ocfuse.lab.robot_cell.task import OFF, SHOWN, SLIP, anomalous_frames, intervals
from ocfuse.vision.trials import DROP, GRASP, NORMAL, OBSTACLE, OCCLUSION


def truth(**columns):
    names = ("deviation", "slip", "seen")
    size = len(next(iter(columns.values())))
    return {name: np.array(columns.get(name, np.zeros(size)), dtype=float) for name in names}


def test_an_occlusion_comes_and_goes():
    found = anomalous_frames(OCCLUSION, truth(seen=[0, SHOWN, 1, SHOWN / 2, 0, 0.3, 0]))
    assert intervals(found) == [(1, 2), (5, 5)]


@pytest.mark.parametrize(
    ("kind", "column", "least"), [(GRASP, "deviation", OFF), (DROP, "slip", SLIP)]
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
