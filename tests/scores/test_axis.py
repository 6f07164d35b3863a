"""The axis keeps order, holds everything, and has round ticks."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ocfuse.scores.axis import ScoreAxis

SCORES = arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(SCORES, SCORES)
@example(np.array([1.0, 1.0, 1.0, 2e-311, *[0.0] * 12]), np.zeros(1))
def test_everything_has_a_place(normal, fresh):
    axis = ScoreAxis.over(normal, fresh)
    assert sum(axis.count(normal)) == len(normal)
    assert sum(axis.count(fresh)) == len(fresh)
    assert 1 <= len(axis.ticks()) <= 7
    places = axis.place(np.sort(fresh))
    assert (np.diff(places) >= 0).all()


def test_there_and_back():
    axis = ScoreAxis.over(np.array([0.0, 1.0, 2.0]), np.array([-100.0]))
    scores = np.array([-100.0, -1.0, 0.5, 2.0])
    assert axis.score(axis.place(scores)) == pytest.approx(scores)
    assert axis.place(np.array([1.0])) == 0.0


def test_ticks_are_round():
    ticks = ScoreAxis.over(np.linspace(-2, 2, 100), np.array([-240.0])).ticks()
    assert all(len(f"{abs(tick):.3g}".strip("0.").replace(".", "")) <= 2 for tick in ticks)
    assert min(ticks) < -20 < 0 < max(ticks)
