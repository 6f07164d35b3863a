"""Events from scores, figures per run, and sums of small deviations."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import Cusum, Event, EventTracker, cusum, events, run_score, time_to_detection

NAN = math.nan
SCORES = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, NAN]), max_size=40)
#: Labels of a run with two anomalies.
Y = [1, 1, -1, -1, -1, 1, -1, -1]


def spans(found):
    return [(event.start, event.stop) for event in found]


def test_a_higher_leave_joins_what_flickers():
    scores = [1, -1, 0.5, -1, 2, -1]
    assert spans(events(scores, enter=0)) == [(1, 2), (3, 4), (5, 6)]
    assert spans(events(scores, enter=0, leave=1)) == [(1, 4), (5, 6)]


def test_short_stretches_raise_nothing():
    (event,) = events([1, -1, 1, -1, -2, -1, 1], enter=0, min_duration=3)
    assert (event.start, event.stop, event.raised, event.lowest, len(event)) == (3, 6, 5, -2.0, 3)


def test_scores_between_the_thresholds_start_nothing():
    assert events([0.5, 0.9], enter=0, leave=1) == []


def test_no_score_changes_nothing():
    assert spans(events([1, -1, NAN, -1, NAN, 1], enter=0, min_duration=2)) == [(1, 5)]


def test_many_samples_without_a_score_end_an_event():
    scores = [1, -1, *[NAN] * 4, -1, 1]
    assert spans(events(scores, enter=0, max_unscored=4)) == [(1, 7)]
    assert spans(events(scores, enter=0, max_unscored=3)) == [(1, 2), (6, 7)]
    tracker = EventTracker(0.0)
    told = [tracker.update(score) for score in [-1.0, -1.0, *[NAN] * 1000]]
    assert [(i, len(event)) for i, event in enumerate(told) if event] == [(12, 2)]
    assert not tracker.is_on


def test_scores_on_both_sides_of_a_gap_do_not_add_up():
    assert events([-1, *[NAN] * 20, -1], enter=0, min_duration=2) == []


def test_an_event_may_outlast_the_run():
    tracker = EventTracker(0.0)
    assert [tracker.update(score) for score in (1.0, -1.0)] == [None, None]
    assert tracker.is_on
    assert spans([tracker.finish()]) == [(1, 2)]
    assert tracker.finish() is None


@given(scores=SCORES, min_duration=st.integers(1, 4), leave=st.sampled_from([0.0, 1.0]))
def test_laws(scores, min_duration, leave):
    found = events(scores, 0.0, leave, min_duration)
    assert all(a.stop <= b.start for a, b in pairwise(found))
    for event in found:
        inside = np.array(scores)[event.start : event.stop]
        inside = inside[~np.isnan(inside)]
        assert (inside < leave).all()
        assert (inside[:min_duration] < 0).all()
        assert len(inside) >= min_duration
        assert event.lowest == inside.min()
        assert event.start <= event.raised < event.stop
    covered = np.zeros(len(scores), dtype=bool)
    for event in found:
        covered[event.start : event.stop] = True
    if min_duration == 1:
        assert covered[np.array(scores) < 0].all()


def test_alarms_within_the_hold_are_one_event():
    scores = [-1, 1, 1, -3, 1, 1, 1, -2]
    assert spans(events(scores, enter=0, hold=2)) == [(0, 4), (7, 8)]
    (event,) = events(scores, enter=0, hold=3)
    assert (event.start, event.stop, event.raised, event.lowest) == (0, 8, 0, -3.0)


def test_an_event_is_held_until_the_hold_has_passed():
    tracker = EventTracker(0.0, hold=2)
    states = []
    for score in (1.0, -1.0, 1.0, 1.0, 1.0):
        ended = tracker.update(score)
        states.append((tracker.is_on, tracker.is_held, ended is not None))
    on, held, over = (True, False, False), (True, True, False), (False, False, True)
    assert states == [(False, False, False), on, held, held, over]


@given(
    scores=SCORES,
    min_duration=st.integers(1, 3),
    leave=st.sampled_from([0.0, 1.0]),
    max_unscored=st.integers(0, 3),
    hold=st.integers(0, 9),
)
def test_the_hold_joins_alarms_and_changes_nothing_else(
    scores, min_duration, leave, max_unscored, hold
):
    joined = []
    for alarm in events(scores, 0.0, leave, min_duration, max_unscored):
        if joined and alarm.raised - joined[-1].stop <= hold:
            before = joined.pop()
            lowest = min(before.lowest, alarm.lowest)
            alarm = Event(before.start, alarm.stop, before.raised, lowest)
        joined.append(alarm)
    assert events(scores, 0.0, leave, min_duration, max_unscored, hold) == joined


@pytest.mark.parametrize(
    "given",
    [{"leave": -1}, {"leave": NAN}, {"min_duration": 0}, {"max_unscored": -1}, {"hold": -1}],
)
def test_unusable_rules_are_refused(given):
    with pytest.raises(InvalidInputError):
        EventTracker(0.0, **given)


def test_the_lowest_score_or_a_low_percentile():
    scores = np.r_[np.arange(100.0), np.nan]
    assert run_score(scores) == 0
    assert run_score(scores, 0.05) == 4
    assert np.isnan(run_score([np.nan]))


def test_delay_of_every_anomaly():
    alarms = np.array([0, 1, 0, 0, 1, 0, 0, 0], dtype=bool)
    np.testing.assert_array_equal(time_to_detection(Y, alarms), [2, np.nan])
    np.testing.assert_array_equal(time_to_detection(Y, np.where(alarms, -1, 1)), [2, np.nan])


def test_an_alarm_in_time_has_no_delay():
    np.testing.assert_array_equal(time_to_detection(Y, np.ones(8, bool)), [0, 0])


def test_times_and_dates():
    alarms = np.array([0, 0, 0, 1, 0, 0, 0, 1], dtype=bool)
    np.testing.assert_allclose(time_to_detection(Y, alarms, np.arange(8) * 0.1), [0.1, 0.1])
    dates = np.datetime64("2026-01-01T00:00:00") + 3 * np.arange(8).astype("timedelta64[s]")
    np.testing.assert_array_equal(time_to_detection(Y, alarms, dates), [3, 3])


def test_no_anomaly_no_delay():
    assert len(time_to_detection([1, 1], [True, False])) == 0


def test_unusable_input_is_refused():
    with pytest.raises(InvalidInputError, match="one entry per sample"):
        time_to_detection([1, -1], [True])
    with pytest.raises(InvalidInputError, match="quantile"):
        run_score([1.0], 1.0)
    with pytest.raises(InvalidInputError, match="numbers or dates"):
        time_to_detection([1], [True], ["noon"])


def test_cusum_finds_what_no_single_score_shows():
    rng = np.random.default_rng(0)
    normal, weak = rng.normal(size=500), rng.normal(size=500) - 1
    limit = cusum(normal, 0.0, 0.5).min()
    assert (weak < normal.min()).mean() < 0.05
    assert (cusum(weak, 0.0, 0.5) < limit).mean() > 0.8


def test_cusum_by_hand():
    np.testing.assert_allclose(cusum([-1, -1, NAN, 5], 0.0, 0.25), [-0.75, -1.5, -1.5, 0.0])


def test_live_is_as_of_the_run():
    scores = np.random.default_rng(1).normal(size=100)
    scores[::9] = NAN
    sums = Cusum(0.1, 0.2)
    assert [sums.update(score) for score in scores] == cusum(scores, 0.1, 0.2).tolist()


@pytest.mark.parametrize("given", [{"slack": -1}, {"slack": NAN}, {"centre": NAN}, {"centre": "0"}])
def test_unusable_settings_are_refused(given):
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        cusum([0.0], **{"centre": 0.0} | given)


@pytest.mark.parametrize("scores", [[[1.0, 2.0]], 1.0, ["low"], [[1.0], [1.0, 2.0]]])
def test_scores_are_those_of_one_run(scores):
    for take in (partial(cusum, centre=0.0), partial(events, enter=0.0), run_score):
        with pytest.raises(InvalidInputError, match="one run"):
            take(scores)
