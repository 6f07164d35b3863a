"""Events of rows, and what is told of a live stream message by message."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN
from ocfuse.exceptions import DriftWarning, InvalidInputError
from ocfuse.streaming import EventTracker, LiveMonitor, StreamDetector, StreamTable
from ocfuse.streaming.channels import ChannelReading
from ocfuse.streaming.monitor import RowEvents

N, FAULT = 150, 100


def run(seed, n=N):
    rng = np.random.default_rng(seed)
    flow = rng.normal(size=n)
    when = pd.date_range("2024-03-01", periods=n, freq="s") + pd.Timedelta(hours=seed)
    current = flow / 2 + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"when": when, "flow": flow, "current": current})


@pytest.fixture(scope="module")
def learned():
    runs = pd.concat([run(i).assign(run=f"run{i}") for i in range(10)], ignore_index=True)
    detector = FusedDetector([("gmm", GMM(1)), ("knn", KNN(5))], false_alarm_rate=0.1)
    return StreamTable(StreamDetector(detector, windows=(5, 10)), group="run").fit(runs)


@pytest.fixture
def model(learned):
    return learned.restart()


@pytest.fixture
def faulty():
    new = run(50)
    new.loc[FAULT : FAULT + 29, "current"] += 3
    return new


def told(monitor, table, times):
    rows = table[["flow", "current"]].to_dict("records")
    records = [monitor.take(row, time) for row, time in zip(rows, times, strict=True)]
    return [record for some in records for record in some] + monitor.finish()


def outline(records):
    return [(r["kind"], r.get("event"), r["row"]) for r in records]


def test_messages_are_told_as_rows_of_a_table_are(model, faulty):
    whole = LiveMonitor(model, is_live=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        scores, log = whole.model.follow(faulty)
    rows = [
        {"row": i, "columns": {}, "score": score, "p_value": p, "is_anomaly": flag}
        for i, (score, p, flag) in enumerate(
            zip(scores["score"], scores["p_value"], scores["is_anomaly"], strict=True)
        )
    ]
    expected = [r for _, records in whole.follow(rows, None, log) for r in records]
    found = told(LiveMonitor(model.restart()), faulty, faulty["when"])
    assert outline(found) == outline(expected + whole.finish())
    alarm = next(r for r in found if r["kind"] == "alarm")
    assert alarm["row"] >= FAULT
    assert alarm["channels"][0]["name"] == "current"
    assert alarm["columns"]["when"] == faulty["when"][alarm["row"]]


def test_seconds_are_dates_where_training_had_dates(model, faulty):
    dates = outline(told(LiveMonitor(model), faulty, faulty["when"]))
    seconds = [when.replace(tzinfo=datetime.timezone.utc).timestamp() for when in faulty["when"]]
    assert "alarm" in {kind for kind, *_ in dates}
    assert outline(told(LiveMonitor(model.restart()), faulty, seconds)) == dates


def test_names_are_said_with_every_record_and_numbers_go_on(model, faulty):
    names = {"model": "pump", "stream": "line-9"}
    monitor = LiveMonitor(model, names=names, n_before=7)
    found = told(monitor, faulty, faulty["when"])
    assert all(r["model"] == "pump" and r["stream"] == "line-9" and r["at"] for r in found)
    assert min(r["event"] for r in found if r["kind"] == "alarm") == 8
    assert monitor.n_alarms >= 1
    assert monitor.n_rows == N


def test_a_channel_that_is_gone_and_a_silence_are_told(model, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ocfuse.streaming.monitor.monotonic", lambda: now[0])
    monitor, normal = LiveMonitor(model, timeout=2.0), run(60)
    kinds = []
    for i, row in enumerate(normal[:60].to_dict("records")):
        kinds += [
            r["kind"] for r in monitor.take(row if i < 30 else {"flow": row["flow"]}, row["when"])
        ]
    assert "missing" in kinds
    assert monitor.listen() == []
    now[0] = 3.0
    assert [(r["kind"], r["state"]) for r in monitor.listen()] == [("silent", "begin")]
    assert monitor.listen() == []
    back = monitor.take({"flow": 0.0, "current": 0.0}, normal["when"][60])
    assert [(r["kind"], r["state"]) for r in back[:1]] == [("silent", "end")]
    assert (monitor.n_sensors, monitor.n_silences) == (1, 1)


def test_rows_that_cannot_be_read_end_in_blindness(model):
    monitor = LiveMonitor(model)
    records = [r for i in range(30) for r in monitor.miss(i)]
    assert [r["kind"] for r in records] == ["blind"]
    assert records[0]["counts"]["refused"] == 21  # one more than twice the longest window


def test_a_message_that_does_not_fit_is_refused(model):
    monitor = LiveMonitor(model)
    with pytest.raises(InvalidInputError, match="flow, current"):
        monitor.take({"speed": 1.0}, 0.0)
    with pytest.raises(InvalidInputError, match="Give it as time"):
        monitor.take({"flow": 1.0})
    assert monitor.n_rows == 0


# -- events of rows ------------------------------------------------------


def told_of(scores, runs=None, **settings):
    events = RowEvents(EventTracker(0.0, 0.5, 2, **settings), most_unscored=3)
    found = []
    for i, score in enumerate(scores):
        row = {"row": i, "columns": {}, "score": score, "p_value": 0.5, "is_anomaly": score < 0}
        found += events.take(row, None if runs is None else runs[i])
    return found + events.finish(), events


def test_hysteresis_and_least_duration():
    found, events = told_of([1, -1, 1, -1, -2, 0.3, -1, 0.7, 1])
    assert [r["kind"] for r in found] == ["alarm", "event"]
    assert (found[0]["row"], found[1]["start"]["row"], found[1]["last"]["row"]) == (4, 3, 6)
    assert found[1]["worst"]["row"] == 4
    assert events.n_events == 1


def test_alarms_within_the_hold_are_told_as_one_event():
    found, events = told_of([-1, -2, 1, 1, -3, -1, 1, 1, 1, 1], hold=3)
    assert [(r["kind"], r["event"]) for r in found] == [("alarm", 1), ("event", 1)]
    assert (found[0]["row"], found[1]["last"]["row"], found[1]["worst"]["row"]) == (1, 5, 4)
    assert events.n_events == 1


def test_an_event_ends_with_its_run():
    found, events = told_of([1, -1, -1, -1, -1, 1], runs="aaabbb")
    assert [(r["kind"], r["event"]) for r in found] == [
        *(("alarm", 1), ("event", 1), ("alarm", 2), ("event", 2))
    ]
    assert found[1]["last"]["row"] == 2
    assert events.n_events == 2


@pytest.mark.parametrize(
    ("scores", "state"),
    [
        ([-1, -1], "interrupted"),
        ([-1, -1, 0.3], "end"),  # not below the threshold, though not above `leave`
        ([-1, -1, 1], "end"),  # only held
        ([-1, -1, 1, -1], "interrupted"),
        ([-1, -1, float("nan")], "interrupted"),
    ],
)
def test_an_event_of_rows_that_are_cut_off_ends_if_the_last_score_is_not_low(scores, state):
    events = RowEvents(EventTracker(0.0, 0.5, 2, hold=5), most_unscored=3)
    for i, score in enumerate(scores):
        events.take({"row": i, "columns": {}, "score": score, "p_value": 0.5, "is_anomaly": True})
    (event,) = events.finish(is_cut=True)
    assert (event["state"], event["event"], events.n_events) == (state, 1, 1)


def test_the_end_of_a_stream_interrupts_what_lasts(model, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ocfuse.streaming.monitor.monotonic", lambda: now[0])
    monitor, normal = LiveMonitor(model, timeout=2.0, names={"stream": "line"}), run(60)
    for row in normal.to_dict("records"):
        monitor.take({"flow": row["flow"]}, row["when"])
    now[0] = 3.0
    (silence,) = monitor.listen()
    (missing, silent) = (r for r in monitor.finish() if r["kind"] in ("missing", "silent"))
    assert missing["state"] == silent["state"] == "interrupted"
    assert missing["begun"]["row"] < missing["row"] == silent["row"] == N - 1
    assert silent["begun"] == {"at": silence["at"], "row": N - 1}
    assert (missing["stream"], monitor.n_sensors, monitor.n_silences) == ("line", 1, 1)
    assert monitor.finish() == []


@pytest.mark.parametrize("n_far", [0, 1])
def test_channels_that_read_as_usual_are_not_named(model, faulty, monkeypatch, n_far):
    far = ChannelReading("current", 3.0, 0.0, 1.0, 0.9)
    as_usual = ChannelReading("flow", 0.5, 0.0, 1.0, 0.9)
    left = [far] * n_far  # of the alarm
    reasons = lambda log, i: ([left.pop() if left else as_usual], {})  # noqa: E731
    monkeypatch.setattr(model, "reasons", reasons)
    records = told(LiveMonitor(model), faulty, faulty["when"])
    first, last = (next(r for r in records if r["kind"] == kind) for kind in ("alarm", "event"))
    assert last["worst"]["row"] > first["row"]
    assert first["channels"] == last["channels"] == [far.as_dict()] * n_far


def test_rows_without_a_score_are_told_once_and_again_later():
    nan = float("nan")
    found, events = told_of([*[nan] * 6, 1, *[nan] * 3, 1, *[nan] * 4])
    assert [(r["kind"], r["row"]) for r in found] == [("blind", 3), ("blind", 14)]
    assert events.n_unscored == 13
