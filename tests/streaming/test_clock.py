"""The clock: no time, or run of times, silences a stream for ever."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse.streaming.clock import TAKEN, Clock

TIMES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 50),
    st.sampled_from([1e9, 1e9 + 1, -5.0]),
)


def verdicts(times, clock=None):
    clock = clock or Clock(usual_step=1.0, max_gap=5.0)
    return [clock.read(float(time)) for time in times]


def test_order_gaps_and_repeats():
    assert verdicts([0, 1, 1, 0.5, 2, 8]) == ["next", "next", "repeated", "late", "next", "gap"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e9])
def test_one_bad_time_costs_one_sample(bad):
    assert verdicts([0, 1, bad, 3, 4]) == ["next", "next", "clock", "next", "next"]


def test_a_second_sample_confirms_a_jump():
    assert verdicts([0, 1, 1e9, 1e9 + 1, 1e9 + 2]) == ["next", "next", "clock", "gap", "next"]
    assert verdicts([0, 1, 1e9, 5e9, 2, 3])[2:] == ["clock", "clock", "next", "next"]


def test_a_clock_set_back_is_taken():
    times = [100, 101, *range(8)]
    assert verdicts(times)[2:] == ["late"] * 4 + ["new_clock"] + ["next"] * 3


def test_a_bad_first_time_is_outlived():
    assert verdicts([1e9, *range(6)]) == ["next"] + ["late"] * 4 + ["new_clock", "next"]


def test_late_samples_now_and_then_do_not_set_the_clock():
    times = [t for here in range(10, 30) for t in (here, here - 5)]
    assert set(verdicts(times)[1::2]) == {"late"}


def test_without_a_usual_step_there_are_no_gaps():
    times = [0, 1, 1e9, 1e12, 1]
    assert verdicts(times, Clock(math.inf, 5.0)) == ["next"] * 4 + ["late"]


@given(before=st.lists(TIMES, max_size=30), start=st.floats(-1e6, 1e6))
def test_whatever_came_before_a_steady_clock_is_taken(before, start):
    clock = Clock(usual_step=1.0, max_gap=5.0)
    verdicts(before, clock)
    steady = [clock.read(start + i) for i in range(12)]
    assert set(steady[6:]) <= TAKEN
