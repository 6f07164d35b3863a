"""Events are runs of alarms; what is drawn keeps every extreme."""

from datetime import datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.report.timeline import MOST_POINTS, find_events, find_sections, thin_out, to_times


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_events_hold_every_alarm_once_and_are_apart(alarms, random):
    is_alarm = np.array(alarms)
    scores = np.where(is_alarm, -1.0, 1.0) * (1 + np.arange(len(alarms)))
    times = np.arange(len(alarms), dtype=float)
    events = find_events(times, scores, is_alarm)
    assert sum(event.n_alarms for event in events) == is_alarm.sum()
    for event in events:
        inside = is_alarm & (times >= event.start) & (times <= event.end)
        assert inside.sum() == event.n_alarms
        assert scores[event.row] == scores[inside].min()
    for first, second in pairwise(events):
        assert second.start - first.end > 3 + 1
    # the order of the rows does not matter, only that of the times
    mixed = np.array(random.sample(range(len(alarms)), len(alarms)))
    again = find_events(times[mixed], scores[mixed], is_alarm[mixed])
    assert [(e.start, e.end) for e in again] == [(e.start, e.end) for e in events]


def test_quiet_rows_that_part_events():
    is_alarm = np.array([1, 0, 0, 0, 1, 0, 0, 0, 0, 1], dtype=bool)
    events = find_events(np.arange(10.0), -is_alarm.astype(float), is_alarm)
    assert [(event.start, event.end) for event in events] == [(0, 4), (9, 9)]


def test_a_pause_parts_events_and_the_line():
    times = np.r_[np.arange(20.0), 500 + np.arange(20.0), np.nan]
    assert find_sections(times).tolist() == [0] * 20 + [1] * 20 + [-1]
    events = find_events(times, -np.ones(41), np.ones(41, dtype=bool))
    assert [(event.start, event.end) for event in events] == [(0, 19), (500, 519)]


@pytest.mark.parametrize("times", [[0.0], [5.0, 5.0, 5.0], np.cumsum(np.geomspace(1, 1e9, 30))])
def test_no_pause_is_seen_where_times_do_not_tell(times):
    assert not find_sections(np.asarray(times)).any()


def test_rows_without_time_belong_to_no_event():
    times = np.array([0.0, np.nan, 1.0])
    (event,) = find_events(times, -np.ones(3), np.ones(3, dtype=bool))
    assert event.n_alarms == 2
    assert thin_out(times, np.ones(3)).tolist() == [0, 2]


def test_thinning_keeps_the_extremes_and_the_order():
    rng = np.random.default_rng(0)
    scores, times = rng.normal(size=23_456), rng.normal(size=23_456)
    drawn = thin_out(times, scores)
    assert len(drawn) <= MOST_POINTS
    assert {scores.argmin(), scores.argmax()} <= set(drawn)
    assert (np.diff(times[drawn]) > 0).all()


ZONE = timezone(timedelta(hours=2))
NINE = 1794819600000.0  # 2026-11-16 09:00 UTC


@pytest.mark.parametrize(
    "time",
    [
        np.array(["2026-11-16T09:00"], dtype="datetime64[us]"),
        ["2026-11-16 09:00"],
        ["2026-11-16T11:00:00+02:00"],
        ["2026-11-16T09:00:00Z"],
        [datetime(2026, 11, 16, 9)],
        [datetime(2026, 11, 16, 11, tzinfo=ZONE)],
        pd.Series(pd.to_datetime(["2026-11-16 09:00"])),
        pd.Series(pd.to_datetime(["2026-11-16 09:00"], utc=True)),
    ],
)
def test_dates_of_all_kinds(time):
    times, is_date = to_times(time, 1)
    assert is_date
    assert times.tolist() == [NINE]


def test_numbers_are_times_too():
    times, is_date = to_times([3, 1, 2], 3)
    assert not is_date
    assert times.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "time", [["2026-11-16 09:00", None], pd.Series(pd.to_datetime(["2026-11-16 09:00", None]))]
)
def test_gaps_of_dates(time):
    assert np.isnan(to_times(time, 2)[0]).tolist() == [False, True]


@pytest.mark.parametrize("time", [[1.0], ["noon", "night"], [True, False]])
def test_what_is_no_time_is_refused(time):
    with pytest.raises(InvalidInputError, match="time must"):
        to_times(time, 2)
