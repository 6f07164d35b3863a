"""Events: hysteresis, least duration, gaps; online and at once alike."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import EventTracker, events

NAN = float("nan")
SCORES = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, NAN]), max_size=40)


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


@pytest.mark.parametrize(
    "given", [{"leave": -1}, {"leave": NAN}, {"min_duration": 0}, {"max_unscored": -1}]
)
def test_unusable_rules_are_refused(given):
    with pytest.raises(InvalidInputError):
        EventTracker(0.0, **given)
