"""Models learn from events that somebody has judged."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from ocfuse import FusedDetector
from ocfuse.streaming import AlarmRate, StreamDetector, StreamTable
from ocfuse.tables import TableDetector
from ocfuse.tables.judged import (
    HeldOutVerdicts,
    JudgedEvent,
    beside_judged,
    counted,
    low_rows,
    spread,
)


def rows(seed, n=60, both=0.0, current=0.0, begin=30, end=45):
    """Return two channels that go together, in some rows moved both, or one of them."""
    flow, noise = np.random.default_rng(seed).normal(size=(2, n))
    frame = pd.DataFrame({"flow": flow, "current": flow + noise / 5})
    frame.loc[begin:end, ["flow", "current"]] += both
    frame.loc[begin:end, "current"] += current
    return frame


def event(number, seed, *, is_real):
    """Return a fault, or a change of both channels that is none."""
    frame = rows(seed, current=1.5) if is_real else rows(seed, both=3.0)
    low = np.zeros(len(frame), dtype=bool)
    low[30:46] = True
    return JudgedEvent(number, is_real, [frame], [low])


EVENTS = [event(i, 100 + i, is_real=i % 2 == 0) for i in range(22)]


@pytest.fixture(scope="module")
def runs():
    parts = [rows(i).assign(file=f"run{i}") for i in range(8)]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module", params=["rows", "runs"])
def old(request, runs):
    """Return a model of rows, or of runs, that has seen neither faults nor changes."""
    light = FusedDetector("light", random_state=0, false_alarm_rate=0.13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if request.param == "rows":
            detector = light.set_params(false_alarm_rate=0.01)
            return TableDetector(detector).fit(runs[["flow", "current"]])
        return StreamTable(StreamDetector(light, windows=(5,))).fit(runs)


def learn(old, runs, events):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = runs if isinstance(old, StreamTable) else runs[["flow", "current"]]
        return clone(old).fit(frame, judged=events)


def test_a_model_heeds_verdicts_on_other_events(old, runs):
    model = learn(old, runs, EVENTS[:10])
    before = [old.raises_alarm(event) for event in EVENTS[10:]]
    assert before == [True] * 12
    if isinstance(model, StreamTable):
        after = [model.raises_alarm(event) for event in EVENTS[10:]]
    else:
        after = [model.score(low_rows(event, 20))["is_anomaly"].mean() for event in EVENTS[10:]]
    assert np.mean(after[::2]) > 0.9
    assert np.mean(after[1::2]) < 0.5  # some alarms by chance
    assert model.card_["verdicts"] == {"real": 5, "false alarm": 5}
    assert model.card_["sha256"] == old.card_["sha256"]  # the training data are the same


def test_without_verdicts_the_model_is_the_old_one(old, runs):
    again = learn(old, runs, [])
    frame = rows(77)
    np.testing.assert_array_equal(again.score(frame)["score"], old.score(frame)["score"])
    assert "verdicts" not in again.card_


def test_events_are_judged_by_models_that_have_not_seen_them(old):
    class Model:
        def __init__(self, seen):
            self.seen = seen

        def raises_alarm(self, event):
            assert event.number not in self.seen
            return event.is_real

    class Old(Model):
        def raises_alarm(self, event):
            return True

    learned = []

    def learn(events):
        learned.append({event.number for event in events})
        return Model(learned[-1])

    found = list(HeldOutVerdicts(learn, Old(set()), EVENTS[:6]).run())
    assert sorted(one.event.number for one in found) == list(range(6))
    assert len(learned) == 4
    assert counted(found) == {
        "false_alarms": {"events": 3, "quiet_before": 0, "quiet_after": 3},
        "real": {"events": 3, "alarm_before": 3, "alarm_after": 3},
    }
    assert list(HeldOutVerdicts(learn, Old(set()), EVENTS[:1]).run()) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, [1, 1, 1]),
        ([0, -1, 0], [1, -1, 1]),
        ([1, -1, 0], [1, -1, np.nan]),
    ],
)
def test_a_threshold_does_not_rest_on_false_alarms_alone(labels, expected):
    np.testing.assert_array_equal(beside_judged(labels, 3), expected)


@given(st.lists(st.booleans(), max_size=40))
def test_every_event_is_held_out_once_and_kinds_are_spread(kinds):
    events = [JudgedEvent(i, is_real, [], []) for i, is_real in enumerate(kinds)]
    folds = HeldOutVerdicts(None, None, events).folds()
    numbers = sorted(event.number for part in folds for event in part)
    assert numbers == (list(range(len(kinds))) if len(kinds) > 1 else [])
    for is_real in (False, True):
        n = [sum(event.is_real is is_real for event in part) for part in folds]
        assert max(n, default=0) - min(n, default=0) <= 1


@given(st.integers(0, 300), st.integers(1, 50))
def test_rows_are_spread_over_all(n, most):
    chosen = spread(np.arange(n), most)
    assert len(chosen) == min(n, most)
    assert sorted(set(chosen)) == chosen.tolist()
    if n:
        assert chosen[0] == 0


def test_low_rows_are_those_of_all_parts():
    one = event(1, 1, is_real=True)
    two = JudgedEvent(1, True, [*one.parts, *one.parts], [*one.low, ~one.low[0]])
    assert len(low_rows(two, 1000)) == len(one.parts[0])
    assert len(low_rows(two, 20)) == 20


def test_parts_without_a_score_say_nothing(old):
    frame = pd.DataFrame({"flow": [np.nan] * 3, "current": [np.nan] * 3})
    empty = JudgedEvent(1, True, [frame], [np.ones(3, dtype=bool)])
    if isinstance(old, StreamTable):
        assert old.raises_alarm(empty) is None


def test_verdicts_count_where_events_per_run_are_held_out(runs):
    light = FusedDetector("light", random_state=0, false_alarm_rate=0.13)
    stream = StreamDetector(light, windows=(5,), alarm_rate=AlarmRate())
    model = learn(StreamTable(stream), runs, EVENTS[:2])
    assert len(model.stream_.training_scores_) == len(runs)
    assert model.stream_.held_out_ is not None
