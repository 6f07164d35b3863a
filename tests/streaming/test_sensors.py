"""Sensors that fail: what training says of them, and events of a live stream."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ocfuse
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming import ChannelMonitor
from ocfuse.streaming.sensors import SensorLimits
from tests.streaming.cases import fitted, normal


def limits(n=600, **given_):
    return SensorLimits.learn(
        normal(n, 0), ["flow", "force", "heat"], [slice(0, n // 2), slice(n // 2, n)], **given_
    )


def told(events):
    return [(event.kind, event.channel, event.state, event.row) for event in events]


def test_sensors_that_fail_are_told_with_the_row_since_when():
    live = normal(300, 1)
    live[40:70, 0] = np.nan
    live[100:140, 1] = live[100, 1]
    live[200:220, 2] += 50
    found = ChannelMonitor(limits()).update(live)
    begun = [(e.kind, e.channel, e.since) for e in found if e.state == "begin"]
    assert begun == [("missing", "flow", 40), ("stuck", "force", 100), ("range", "heat", 200)]
    ended = [(e.kind, e.row, e.since) for e in found if e.state == "end"]
    assert ended == [("missing", 80, 70), ("stuck", 150, 140), ("range", 230, 220)]
    assert found[0].text == "channel flow missing since row 40"
    assert found[0].at(1045).text == "channel flow missing since row 1040"
    assert found[0].row - found[0].since < 10


def test_a_sensor_that_comes_and_goes_is_one_event():
    live = normal(300, 1)
    live[40:240, 0] += 50
    live[40:240:9, 0] -= 50
    found = [e for e in ChannelMonitor(limits()).update(live) if e.kind == "range"]
    assert [(e.state, e.since) for e in found] == [("begin", 41), ("end", 240)]


def test_what_happens_as_often_in_training_is_no_event():
    training = normal(600, 0)
    training[50:80, 0] = np.nan
    training[200:220, 1] = training[200, 1]
    known = SensorLimits.learn(training, ["a", "b", "c"], [slice(600)])
    live = normal(300, 1)
    live[50:80, 0] = np.nan
    live[200:220, 1] = live[200, 1]
    assert not ChannelMonitor(known).update(live)


def test_setpoints_states_and_constants_are_not_called_stuck():
    rng = np.random.default_rng(0)
    n = 2000
    training = np.column_stack(
        [
            np.repeat(rng.normal(size=n // 100), 100),  # a setpoint
            rng.integers(0, 3, n).astype(float),  # a state that often changes
            np.full(n, 7.0),
        ]
    )
    known = SensorLimits.learn(training, ["setpoint", "state", "constant"], [slice(n)])
    live = np.tile(training[0], (n, 1))
    assert not ChannelMonitor(known).update(live)
    live[:, 2] = 8.0  # but a constant that has another value is out of its range
    assert told(ChannelMonitor(known).update(live)) == [("range", "constant", "begin", 5)]


def test_another_rate_of_rows_is_told_and_that_it_is_over():
    times = np.arange(600.0)
    known = limits(times=times, step=1.0, is_dated=True)
    live = np.concatenate([np.arange(100.0), 100 + 4 * np.arange(100.0), 500 + np.arange(100.0)])
    begin, end = ChannelMonitor(known).update(normal(300, 1), live)
    assert begin.text == "rows come every 4.0 s, in training every 1.0 s"
    assert (begin.state, end.state, end.since) == ("begin", "end", begin.row)
    assert 100 < begin.row < 115


def test_a_few_gaps_in_time_are_no_other_rate():
    known = limits(times=np.arange(600.0), step=1.0)
    live = np.cumsum(np.where(np.arange(300) % 4 == 0, 30.0, 1.0))
    assert not ChannelMonitor(known).update(normal(300, 1), live)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_events_do_not_depend_on_how_samples_are_cut_into_chunks(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = 120
    live = normal(n, 3)
    for _ in range(4):
        start, length, j = rng.integers(0, n), rng.integers(1, 40), rng.integers(0, 3)
        kind = rng.integers(0, 3)
        part = live[start : start + length, j]
        part[:] = np.nan if kind == 0 else part[0] if kind == 1 else part + 50
    live[rng.random(live.shape) < 0.05] = np.nan
    times = np.cumsum(rng.choice([1.0, 1.0, 4.0, -1.0, np.nan], n) * rng.choice([1, 3]))
    times = np.where(np.isnan(times), np.arange(n), times) if rng.random() < 0.5 else times
    known = limits(times=np.arange(600.0), step=1.0)
    whole = ChannelMonitor(known).update(live, times)
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=8)))
    for edges in (cuts, range(1, n)):
        monitor, found = ChannelMonitor(known), []
        for i, j in zip([0, *edges], [*edges, n], strict=True):
            found += monitor.update(live[i:j], times[i:j])
        assert found == whole
        assert {(e.kind, e.channel) for e in whole} >= {one[:2] for one in monitor.lasting()}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_event_that_ends_has_begun_and_none_begins_twice(seed):
    rng = np.random.default_rng(seed)
    live = np.where(rng.random((300, 3)) < 0.5, np.nan, normal(300, 3))
    live[:, 1] = np.repeat(rng.normal(size=10) * 10, 30)
    on = set()
    monitor = ChannelMonitor(limits())
    for event in monitor.update(live):
        key = event.kind, event.channel
        assert (key in on) == (event.state == "end")
        on ^= {key}
    assert on == {one[:2] for one in monitor.lasting()}


def test_samples_of_other_channels_are_refused():
    with pytest.raises(InvalidInputError, match="3 channels"):
        ChannelMonitor(limits()).update(np.zeros((2, 5)))


def test_what_is_learned_of_sensors_and_their_state_survive_files(tmp_path):
    stream = fitted(time=np.arange(400.0))
    live, times = normal(60, 5), np.arange(60.0)
    live[30:, 2] = np.nan
    stream.follow(live[:33], times[:33])
    stream.checkpoint(tmp_path / "state.ocf")
    stream.save(tmp_path / "model.ocf")
    loaded = ocfuse.load(tmp_path / "model.ocf").resume(tmp_path / "state.ocf")
    _, log = loaded.follow(live[33:], times[33:])
    _, same = stream.follow(live[33:], times[33:])
    assert log.sensors == same.sensors
    ((event,),) = log.sensors.values()
    assert event.text == "channel x2 missing since row 30"


def test_a_model_without_limits_tells_what_is_missing():
    stream = fitted(time=np.arange(400.0))
    del stream.sensors_  # as of a file from before there were any
    live = normal(60, 5)
    live[30:, 2] = np.nan
    _, log = stream.follow(live, 3.0 * np.arange(60.0))
    kinds = [event.kind for events in log.sensors.values() for event in events]
    assert kinds == ["rate", "missing"]


def test_rare_false_events_on_runs_that_were_held_out():
    run = np.repeat(np.arange(12), 400)
    X = np.vstack([normal(400, seed) for seed in range(12)])
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.02, np.nan, np.round(X, 1))
    n_events = 0
    for fold in range(12):
        training, fresh = X[run != fold], X[run == fold]
        parts = [slice(i * 400, (i + 1) * 400) for i in range(11)]
        known = SensorLimits.learn(training, ["a", "b", "c"], parts)
        n_events += len(ChannelMonitor(known).update(fresh))
    assert n_events == 0
