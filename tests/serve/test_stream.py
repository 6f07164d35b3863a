"""Rows in, scores and alarms out, over a real connection."""

import asyncio
import base64
import json
import socket
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import httpx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ocfuse import FusedDetector, load
from ocfuse.serve.app import create_app
from ocfuse.serve.database import Choice
from ocfuse.serve.event import COLUMNS
from ocfuse.serve.scoring import RowScorer
from ocfuse.serve.settings import Limits, Settings
from ocfuse.serve.stream import MOST_WAITING, RunFeed, Streams
from ocfuse.serve.telemetry import Metrics
from ocfuse.streaming.resume import StateFolder
from ocfuse.streaming.slow import SlowSettings
from ocfuse.tables import TableDetector
from tests.cli.cases import plant
from tests.serve.asking import ASKED, connect, wait_until
from tests.serve.conftest import sensors
from tests.serve.looking import PNG, Running

NORMAL = {"pressure": 0.0, "temperature": 20.0, "mode": "on"}
ODD = NORMAL | {"temperature": 60.0}
LIMITS = Limits(message_bytes=20_000, streams=3, rows=100)


@pytest.fixture(scope="module")
def running(model_files):
    """Return a service at an address."""
    service = create_app(Settings(model_files, limits=LIMITS))
    with Running(service) as server:
        server.service = service
        yield server


@pytest.fixture
def open_stream(running):
    """Return what opens streams, which are closed in the end."""
    with ExitStack() as opened:

        def open_it(query=""):
            address = f"ws://{running.address}/v1/stream?{query}"
            stream = opened.enter_context(connect(address))
            assert receive(stream)["type"] == "ready"
            return stream

        yield open_it
    wait_until(lambda: len(running.service.streams) == 0)


def receive(stream):
    return json.loads(stream.recv(timeout=60))


def tell(stream, **message):
    stream.send(json.dumps(message))
    return receive(stream)


def events_of(running, stream):
    return running.service.events.list(choice=Choice(stream=stream))


def test_scores_are_those_of_the_model(open_stream, model_files):
    frame = plant(5, 7)
    expected = load(model_files["plant"]).score(frame)
    stream = open_stream()
    answers = [tell(stream, row=row) for row in frame.to_dict("records")]
    assert [answer["seq"] for answer in answers] == list(range(5))
    np.testing.assert_allclose(
        [answer["score"] for answer in answers], expected["score"], rtol=0, atol=1e-10
    )
    several = tell(stream, rows=frame.to_dict("records"))
    assert several["type"] == "scores"
    assert [result["seq"] for result in several["results"]] == list(range(5, 10))
    np.testing.assert_allclose(
        [result["score"] for result in several["results"]], expected["score"], rtol=0, atol=1e-10
    )


def test_what_lies_behind_the_alarms_of_a_message_is_computed_at_once(
    running, open_stream, monkeypatch
):
    explain, sizes = RowScorer.explain_cells, []

    def counted(scorer, rows):
        sizes.append(len(rows))
        return explain(scorer, rows)

    monkeypatch.setattr(RowScorer, "explain_cells", counted)
    stream = open_stream("stream=burst")
    worse = ODD | {"temperature": 90.0}
    rows = [NORMAL, ODD, worse, ODD, {"pressure": "high"}, NORMAL, NORMAL, ODD, NORMAL]
    results = tell(stream, rows=rows)["results"]
    alarms = [result.get("alarm") for result in results]
    assert alarms == [None, "begin", None, None, None, "end", None, "begin", "end"]
    assert sizes == [3]  # two that begin an event, and the lowest of the first
    first, second = sorted(events_of(running, "burst"), key=lambda event: event.id)
    assert first.lowest < second.lowest
    alone = open_stream("stream=alone")
    for row in rows:
        tell(alone, row=row)
    again = sorted(events_of(running, "alone"), key=lambda event: event.id)
    assert [event.lowest for event in again] == pytest.approx([first.lowest, second.lowest])
    assert sizes == [3, 1, 1, 1]


def test_in_a_burst_of_events_the_channels_of_the_first_ones_are_named(
    running, open_stream, monkeypatch
):
    monkeypatch.setattr("ocfuse.serve.stream.MOST_NAMED", 2)
    tell(open_stream("stream=many"), rows=[NORMAL, ODD] * 4 + [NORMAL])
    events = sorted(events_of(running, "many"), key=lambda event: event.id)
    assert [bool(event.channels) for event in events] == [True, True, False, False]
    assert all(event.members == events[0].members for event in events)
    assert all(event.severity == events[0].severity for event in events)


def test_the_rows_around_an_event_are_kept_as_they_came(running, open_stream):
    stream = open_stream("stream=around")
    rows = [NORMAL] * 70 + [ODD] * 3 + [NORMAL] * 25
    for begin in range(0, len(rows), 49):
        tell(stream, rows=rows[begin : begin + 49])
    (event,) = events_of(running, "around")
    wait_until(lambda: running.service.events.get(event.id).n_rows == 60 + 3 + 20)
    kept = running.service.events.rows(event.id)
    assert [row["seq"] for row in kept] == list(range(10, 93))
    assert [row["values"] for row in kept] == rows[10:93]
    assert [row["seq"] for row in kept if row["is_event"]] == [70, 71, 72]
    tell(stream, row=ODD)
    stream.close()  # what is there of the second one is kept, too
    wait_until(lambda: len(events_of(running, "around")) == 2)
    second = events_of(running, "around")[0].id
    wait_until(lambda: running.service.events.get(second).state == "interrupted")
    assert [row["seq"] for row in running.service.events.rows(second)][-1] == 98


def test_rows_of_a_run_depend_on_those_before(open_stream, model_files):
    run = sensors("new", 99).drop(columns="file")
    expected = load(model_files["runs"]).score(run)["score"]
    stream, other = open_stream("model=runs"), open_stream("model=runs")
    told = []
    for i, row in enumerate(run.to_dict("records")[:30]):
        told.append(tell(stream, row=row)["score"])
        if i % 7 == 0:
            tell(other, row={"flow": 100, "current": -100})  # another stream is another run
    assert told[:4] == [None] * 4
    np.testing.assert_allclose(told[4:], expected[4:30], rtol=0, atol=1e-10)


def test_events_are_kept_before_they_are_told(open_stream, running):
    stream = open_stream("stream=kept")
    first = tell(stream, row=NORMAL)
    assert (first["alarm"], first["event"]) == (None, None)
    picture = base64.b64encode(PNG).decode()
    begin = tell(stream, row=ODD, time=100.0, id="part 7", thumbnail=picture)
    assert (begin["alarm"], begin["id"], begin["is_anomaly"]) == ("begin", "part 7", True)
    assert begin["severity"] > 1
    assert all(one["words"].startswith(one["name"]) for one in begin["channels"])
    assert "channels" not in first
    (kept,) = events_of(running, "kept")
    assert (kept.id, kept.state, kept.begin) == (begin["event"], "open", 100.0)
    assert kept.members
    assert begin["channels"]
    assert begin["channels"] == [dict(channel) for channel in kept.channels]
    assert running.service.events.thumbnail(kept.id) == ("image/png", PNG)
    assert tell(stream, row=ODD, time=101.0)["event"] == kept.id
    end = tell(stream, row=NORMAL, time=102.0)
    assert (end["alarm"], end["event"]) == ("end", kept.id)
    (kept,) = events_of(running, "kept")
    assert (kept.state, kept.end) == ("ended", 102.0)
    assert tell(stream, row=NORMAL)["event"] is None


def test_sensors_raise_an_event_after_three_rows(open_stream, running):
    stream = open_stream("model=runs&stream=pump")
    run = sensors("new", 99).drop(columns="file").to_dict("records")
    tell(stream, rows=run[:20])
    odd = [row | {"current": 30.0} for row in run[20:25]]
    assert [tell(stream, row=row)["alarm"] for row in odd] == [None, None, "begin", None, None]
    (kept,) = events_of(running, "pump")
    assert kept.members
    assert kept.channels[0]["name"] == "current"
    assert kept.channels[0]["value"] > 10
    assert "usual" in kept.channels[0]["words"]
    assert kept.severity > 1
    hasty = open_stream("model=runs&stream=hasty&min_rows=1")
    tell(hasty, rows=run[:20])
    assert tell(hasty, row=odd[0])["alarm"] == "begin"


def test_the_columns_behind_an_alarm_of_a_row_are_named(open_stream, running):
    tell(open_stream("stream=columns"), row=ODD)
    (kept,) = events_of(running, "columns")
    assert kept.channels[0]["name"] == "temperature"
    assert kept.channels[0]["value"] == 60.0
    assert kept.as_row()[COLUMNS.index("channels")].startswith("temperature 60")


def test_a_sensor_that_fails_is_an_event_until_it_works_again(open_stream, running):
    stream = open_stream("model=runs&stream=sensor")
    rows = sensors("new", 98).drop(columns="file").to_dict("records")
    tell(stream, rows=rows[:20])
    told = [tell(stream, row=row | {"current": None}, time=50.0 + i)
            for i, row in enumerate(rows[20:35])]  # fmt: skip
    (begun,) = [one for answer in told for one in answer.get("sensors", [])]
    assert (begun["kind"], begun["channel"], begun["state"]) == ("missing", "current", "begin")
    (kept,) = [event for event in events_of(running, "sensor") if event.kind == "missing"]
    assert (kept.state, kept.text) == ("open", "channel current missing since row 20")
    states = {one["stream"]: one for one in running.service.overview.streams()}
    assert states["sensor"]["state"] in ("degraded", "alarm")
    told = states["sensor"]
    assert "hannel current missing since row 20" in told["what"] + told["more"]
    # it works again once it has for some rows
    answers = [tell(stream, row=row, time=90.0 + i) for i, row in enumerate(rows[40:55])]
    (back,) = [i for i, answer in enumerate(answers) if "sensors" in answer]
    assert 5 <= back < 12
    assert answers[back]["sensors"][0]["state"] == "end"
    kept = running.service.events.get(kept.id)
    assert (kept.state, kept.end) == ("ended", 90.0 + back)
    tell(stream, rows=[row | {"current": None} for row in rows[:15]])
    stream.close()
    wait_until(lambda: events_of(running, "sensor")[0].state == "interrupted")


def test_events_of_a_burst_are_recorded_in_the_order_of_their_rows_at_once(
    open_stream, running, monkeypatch
):
    stream = open_stream("model=runs&stream=order")
    rows = sensors("new", 98).drop(columns="file").to_dict("records")
    rows[20:40] = [{"flow": 0.0, "current": 0.0}] * 20
    rows[50:] = [row | {"current": 30.0} for row in rows[50:]]
    executor, turns = running.service.workers.events, []
    submit = executor.submit

    def counted(*given):
        turns.append(given[0])
        return submit(*given)

    monkeypatch.setattr(executor, "submit", counted)
    tell(stream, rows=rows, times=[float(i) for i in range(len(rows))])
    events = sorted(events_of(running, "order"), key=lambda event: event.id)
    assert {"stuck", "anomaly"} <= {event.kind for event in events}
    begun = [event.begin for event in events]
    assert begun == sorted(begun)
    assert len([turn for turn in turns if turn != running.service.overview.tick]) == 1


def test_an_event_whose_end_nobody_saw_is_interrupted(open_stream, running):
    stream = open_stream("stream=cut")
    tell(stream, row=ODD)
    stream.close()
    wait_until(lambda: events_of(running, "cut")[0].state == "interrupted")


@pytest.mark.parametrize(
    ("model", "normal", "odd", "bad"),
    [
        ("plant", NORMAL, ODD, NORMAL | {"pressure": "x"}),
        ("runs", {"flow": 0, "current": 0}, {"flow": 50, "current": -50}, {"flow": 1}),
    ],
)
def test_rows_that_are_refused_end_an_event_when_they_are_too_many(
    running, open_stream, model, normal, odd, bad
):
    stream = open_stream(f"model={model}&stream=refused-{model}&min_rows=1")
    tell(stream, rows=[normal] * 10)
    begun = tell(stream, row=odd, time=100.0)
    told = tell(stream, rows=[bad] * 40, times=[101.0 + i for i in range(40)])["results"]
    assert begun["alarm"] == "begin"
    ends = [one for one in told if "alarm" in one]
    assert [(one["type"], one["alarm"], one["event"]) for one in ends] == [
        ("error", "end", begun["event"])
    ]
    assert ends[0]["seq"] >= begun["seq"] + 11
    (kept,) = events_of(running, f"refused-{model}")
    assert (kept.state, kept.begin, kept.end) == ("ended", 100.0, 100.0)  # at its last score
    answers = tell(stream, rows=[normal] * 60)["results"]
    alarms = [one["alarm"] for one in answers if one["alarm"]]
    assert alarms == (
        [] if model == "plant" else ["begin", "end"]
    )  # windows still hold the odd row
    states = {one["stream"]: one["state"] for one in running.service.overview.streams()}
    assert answers[-1]["event"] is None
    assert states[f"refused-{model}"] in ("unacknowledged", "degraded")  # current stands still


#: What a row is, by model: its content, and one that is no row.
KINDS = {
    "plant": {
        "normal": NORMAL,
        "odd": ODD,
        "noted": NORMAL | {"other": 1},
        "gap": NORMAL | {"pressure": None},
        "refused": NORMAL | {"pressure": "x"},
    },
    "runs": {
        "normal": {"flow": 0, "current": 0},
        "odd": {"flow": 50, "current": -50},
        "noted": {"flow": 0, "current": 0, "other": 1},
        "gap": {"flow": None, "current": None},
        "refused": {"flow": 1},
    },
}


@pytest.mark.parametrize("model", KINDS)
@settings(max_examples=25)
@given(
    min_rows=st.integers(1, 3),
    messages=st.lists(
        st.lists(
            st.tuples(st.sampled_from([*KINDS["plant"]]), st.sampled_from([1, 1, 2, 3, 10, 11])),
            max_size=4,
        ),
        max_size=6,
    ),
)
def test_an_event_is_open_while_its_rows_say_so(running, model, min_rows, messages):
    address = f"ws://{running.address}/v1/stream?model={model}&min_rows={min_rows}"
    with connect(address) as socket:
        name, alarms, numbers = receive(socket)["stream"], [], []
        (stream,) = (one for one in running.service.streams._open.values() if one.name == name)
        tell(socket, rows=[KINDS[model]["normal"]] * 10)
        for message in messages:
            rows = [KINDS[model][kind] for kind, n in message for _ in range(n)]
            told = tell(socket, rows=rows)["results"] if rows else []
            socket.send("nonsense")  # which is a bad row
            told.append(receive(socket))
            alarms += [one["alarm"] for one in told if one.get("alarm")]
            numbers += [one["event"] for one in told if one.get("alarm")]
            is_open = [
                event.kind == "anomaly" and event.state == "open"
                for event in events_of(running, name)
            ]
            assert any(is_open) == stream._tracker.is_on == (alarms[-1:] == ["begin"])
        assert alarms == (["begin", "end"] * len(alarms))[: len(alarms)]
        assert numbers[1::2] == numbers[: len(numbers) // 2 * 2 : 2]
    wait_until(lambda: len(running.service.streams) == 0)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("nonsense", "not_json"),
        ('{"row": {"a": NaN}}', "not_json"),
        ("[]", "not_rows"),
        ('{"row": 7}', "not_rows"),
        ('{"rows": {}}', "not_rows"),
        ('{"row": {"pressure": "x"}}', "unusable_rows"),
        ('{"row": {"pressure": [1]}}', "nested_cells"),
        ('{"row": {}, "time": "now"}', "bad_time"),
        ('{"row": {}, "time": 1e99}', "bad_time"),
        ('{"row": {}, "id": [1]}', "bad_id"),
        ('{"row": {}, "thumbnail": "*"}', "bad_thumbnail"),
        ('{"row": {}, "thumbnail": 7}', "bad_thumbnail"),
        ('{"rows": [{}], "times": []}', "bad_time"),
        ("[" * 5000, "nested_too_deep"),
    ],
)
def test_a_bad_message_is_answered_and_the_stream_goes_on(open_stream, message, code):
    stream = open_stream()
    stream.send(message)
    bad = receive(stream)
    assert (bad["type"], bad["seq"], bad["error"]["code"]) == ("error", 0, code)
    assert "Traceback" not in json.dumps(bad)
    assert tell(stream, row=NORMAL)["seq"] == 1


def test_a_bad_row_among_others(open_stream):
    for name, good, bad in (
        ("plant", NORMAL, NORMAL | {"pressure": "high"}),
        ("runs", {"flow": 1, "current": 1}, {"flow": 1}),
        ("runs", {"flow": 1, "current": 1}, [1, 2]),
    ):
        told = tell(open_stream(f"model={name}"), rows=[good, bad, good])["results"]
        assert [one["type"] for one in told] == ["score", "error", "score"]
        assert [one["seq"] for one in told] == [0, 1, 2]


def test_a_gap_in_a_row_is_judged_by_the_other_columns_and_noted(open_stream):
    told = tell(open_stream(), row=NORMAL | {"pressure": None})
    assert told["type"] == "score"
    assert "pressure: no value" in " ".join(told["notes"])


def test_what_is_odd_is_noted(open_stream):
    assert "other" in tell(open_stream(), row=NORMAL | {"other": 1})["notes"][0]


def test_a_time_beside_a_row_needs_no_column_of_times(open_stream):
    """Answers have no place for the columns of ids and times that the model knows."""
    for query, row in (("", NORMAL), ("model=runs", {"flow": 1, "current": 1})):
        row = {name: value for name, value in row.items() if name not in ("part", "when")}
        told = tell(open_stream(query), row=row, time=1.79e9)
        assert told["type"] == "score"
        assert "notes" not in told


def test_many_messages_at_once_are_answered_in_order(open_stream):
    stream = open_stream()
    for i in range(300):
        stream.send(json.dumps({"row": NORMAL, "id": i}))
    answers = [receive(stream) for _ in range(300)]
    assert [answer["id"] for answer in answers] == list(range(300))
    assert [answer["seq"] for answer in answers] == list(range(300))


@pytest.mark.slow
def test_a_client_that_does_not_read_is_slowed_down(running):
    """It can send until all buffers between here and there are full, and then no more."""
    host, port = running.address.split(":")
    raw = socket.create_connection((host, int(port)))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with connect(f"ws://{running.address}/v1/stream?stream=deaf", sock=raw, max_queue=1):
        raw.settimeout(1.0)
        body = json.dumps({"rows": [NORMAL] * 50}).encode()
        frame = b"\x81\xfe" + len(body).to_bytes(2, "big") + bytes(4) + body
        sent = 0
        with suppress(TimeoutError):
            while sent < 100_000_000:
                sent += raw.send(frame[sent % len(frame) :])  # a part may have been taken
        (service,) = running.service.streams._open.values()
        assert len(service._waiting) <= MOST_WAITING
        assert service._n_bytes <= 3 * LIMITS.message_bytes
        assert sent < 30_000_000
        raw.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: len(running.service.streams) == 0)


def test_messages_that_are_too_long_end_the_stream(open_stream):
    stream = open_stream()
    assert tell(stream, row={"pressure": "x" * 30_000})["type"] == "bye"
    with pytest.raises(ConnectionClosed) as caught:
        receive(stream)
    assert caught.value.rcvd.code == 1009


def test_streams_that_are_refused(running, open_stream):
    def status(query="", **more):
        address = f"ws://{running.address}/v1/stream?{query}"
        with pytest.raises(InvalidStatus) as caught, connect(address, **more):
            pass
        response = caught.value.response
        return response.status_code, json.loads(response.body)["error"]["code"]

    assert status("model=none") == (404, "unknown_model")
    assert status(origin="http://evil.example") == (403, "wrong_origin")
    streams = [open_stream() for _ in range(3)]
    assert status() == (429, "too_many_streams")
    assert tell(streams[0], row=NORMAL)["type"] == "score"


def test_streams_need_the_token(model_files):
    service = create_app(Settings({"plant": model_files["plant"]}, token=ASKED))
    with Running(service) as server:
        address = f"ws://{server.address}/v1/stream"
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            with (
                pytest.raises(InvalidStatus) as caught,
                connect(address, additional_headers=headers),
            ):
                pass
            assert caught.value.response.status_code == 401
        right = {"Authorization": f"Bearer {ASKED}"}
        with connect(address, additional_headers=right) as stream:
            assert receive(stream)["model"] == "plant"


def test_a_client_that_comes_back_takes_over(open_stream, running):
    old = open_stream("stream=same")
    tell(old, row=ODD)
    new = open_stream("stream=same")
    assert receive(old)["type"] == "bye"
    with pytest.raises(ConnectionClosed):
        receive(old)
    assert tell(new, row=NORMAL)["seq"] == 0
    assert [event.state for event in events_of(running, "same")] == ["interrupted"]


def test_samples_are_shown(open_stream, running):
    live = running.service.live
    viewer = live.join(lambda: None)
    try:
        stream = open_stream("model=runs&stream=shown")
        tell(stream, rows=sensors("new", 99).drop(columns="file").to_dict("records")[:20])
        live.watch(viewer, ("runs", "shown"))
        told = tell(stream, row={"flow": 0.5, "current": 0.4}, time=12.5)
        (sample,) = live.drain(viewer)
    finally:
        live.leave(viewer)
    assert (sample.score, sample.time, sample.seq) == (told["score"], 12.5, 20)
    assert sample.contributions
    assert sample.drift < 1


def test_pages_take_no_stream_from_others(running, open_stream):
    """Strangers may knock there: the page says who it is in its first message."""
    with ExitStack() as opened:
        for _ in range(2 * LIMITS.streams):
            opened.enter_context(connect(f"ws://{running.address}/v1/live"))
        assert tell(open_stream(), row=NORMAL)["type"] == "score"


@pytest.mark.parametrize("model", ["plant", "runs"])
def test_half_a_character_leaves_the_stream_and_its_alarm_open(open_stream, running, model):
    """Wherever it stands: in a cell, a name, an id or the name of the stream."""
    stream = open_stream(f"model={model}&stream=half-%ED%A0%80-{model}&min_rows=1")
    good, odd = NORMAL, ODD
    if model == "runs":
        good, odd = {"flow": 0, "current": 0}, {"flow": 50, "current": -50}
        for _ in range(10):
            tell(stream, row=good)
    event = tell(stream, row=odd)["event"]
    assert event is not None
    half, name = "\ud800", next(iter(good))
    for message in (
        {"row": good | {"mode": half}},
        {"row": good | {name: half}},
        {"row": good | {half: 1}},
        {"row": {half: half}},
        {"row": good, "id": half},
        {"row": good, "time": half},
        {"row": good, "thumbnail": half},
        {"rows": [good], "times": [half]},
        {half: half},
        half,
    ):
        stream.send(json.dumps(message))
        answer = receive(stream)
        assert (answer["type"], answer["error"]["code"]) == ("error", "broken_text")
    assert running.service.events.get(event).state == "open"
    answer = tell(stream, row=odd)
    assert (answer["type"], answer["event"]) == ("score", event)


def test_two_who_come_back_at_once_take_turns():
    """One of them is the stream in the end, and never both."""

    class Told:
        served = around = SimpleNamespace(name="plant", metrics=Metrics())
        name, at_work, most = "same", 0, 0

        def __init__(self):
            self.is_over, self.asked = asyncio.Event(), asyncio.Event()

        def stop(self, code, reason):
            self.asked.set()

        async def run(self):
            Told.at_work += 1
            Told.most = max(Told.most, Told.at_work)
            await self.asked.wait()
            await asyncio.sleep(0)
            Told.at_work -= 1
            self.is_over.set()

    async def come_back():
        streams, tasks = Streams(), []
        for _ in range(4):
            tasks.append(asyncio.create_task(streams.run(Told())))
            await asyncio.sleep(0 if len(tasks) > 1 else 0.01)
        await asyncio.sleep(0.01)
        assert (len(streams), Told.at_work) == (1, 1)
        await streams.close(1.0)
        await asyncio.gather(*tasks)

    asyncio.run(come_back())
    assert Told.most == 1


def test_a_clock_that_jumps_back(open_stream, running):
    """Rows are taken in the order they come, and no event ends before it begins."""
    stream = open_stream("stream=clock")
    times = {"begin": 1000.0, None: 10.0, "end": 500.0}
    told = [tell(stream, row=row, time=moment)
            for row, moment in zip((ODD, ODD, NORMAL), times.values(), strict=True)]  # fmt: skip
    assert [one["alarm"] for one in told] == list(times)
    (kept,) = events_of(running, "clock")
    assert (kept.state, kept.begin, kept.end, kept.n_samples) == ("ended", 1000.0, 1000.0, 2)
    run = sensors("new", 3).drop(columns="file").to_dict("records")[:20]
    back = tell(open_stream("model=runs"), rows=run, times=[float(-i) for i in range(20)])
    on = tell(open_stream("model=runs"), rows=run, times=[float(i) for i in range(20)])
    assert back == on


def test_too_little_memory_ends_one_stream_only(open_stream, running, monkeypatch):
    stream, other = open_stream("model=runs"), open_stream()

    def fail(*given):
        raise MemoryError("cannot allocate")

    with monkeypatch.context() as broken:
        broken.setattr(RunFeed, "_score", fail)
        stream.send(json.dumps({"row": {"flow": 1, "current": 1}}))
        with pytest.raises(ConnectionClosed) as caught:
            receive(stream)
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (1011, "")
    assert tell(other, row=NORMAL)["type"] == "score"
    assert tell(open_stream("model=runs"), row={"flow": 1, "current": 1})["type"] == "score"


def test_a_named_stream_goes_on_after_a_restart_of_the_service(model_files, tmp_path):
    frame = sensors("x", 5, n=60)
    frame.loc[25:, "current"] += 9.0
    rows = frame.to_dict("records")
    expected = load(model_files["runs"]).score(frame)["score"]
    scores, alarms = [], []
    for part, is_resumed in ((rows[:40], False), (rows[40:], True)):
        service = create_app(Settings(model_files, state=tmp_path / "states"))
        with Running(service) as server:
            with connect(f"ws://{server.address}/v1/stream?model=runs&stream=line") as stream:
                assert receive(stream)["resumed"] is is_resumed
                results = tell(stream, rows=part)["results"]
                scores += [result["score"] for result in results]
                alarms.append([result["alarm"] for result in results])
            with connect(f"ws://{server.address}/v1/stream?model=runs") as stream:
                assert receive(stream)["resumed"] is False  # nobody knows whose name it was
            wait_until(lambda service=service: len(service.streams) == 0)
    np.testing.assert_allclose(
        np.array(scores, dtype=float), expected.to_numpy(), rtol=0, atol=1e-10
    )
    assert alarms[0].count("begin") == 1
    assert alarms[1][0] == "begin"  # the alarm lasts: its event was interrupted


def test_a_state_of_another_model_is_left_out(model_files, tmp_path):
    service = create_app(Settings(model_files, state=tmp_path / "states"))
    with Running(service) as server:
        file = StateFolder(tmp_path / "states").file("runs", "line")
        file.write_bytes(b"nothing that is known")
        with connect(f"ws://{server.address}/v1/stream?model=runs&stream=line") as stream:
            assert receive(stream)["resumed"] is False
            assert tell(stream, row={"file": "x", "flow": 0.0, "current": 0.0})["type"] == "score"


def changing(n_before, n_after, step):
    frame = sensors("x", 9, n=n_before + n_after)
    frame.loc[n_before:, "current"] += step
    return frame.to_dict("records")


def test_a_stream_follows_slow_changes_and_tells_that_its_source_has_changed(model_files, tmp_path):
    slow = SlowSettings(adaptive=True, change=0.05)
    settings = Settings(model_files, state=tmp_path / "states", slow=slow)
    rows = changing(600, 1000, 0.5)
    plain = load(model_files["runs"]).score(pd.DataFrame(rows))["score"].to_numpy()
    scores, told, n_changes = [], [], 0
    for part in (rows[:1000], rows[1000:]):  # with a restart of the service between
        service = create_app(settings)
        with Running(service) as server:
            with connect(f"ws://{server.address}/v1/stream?model=runs&stream=line") as stream:
                receive(stream)
                for begin in range(0, len(part), 200):
                    results = tell(stream, rows=part[begin : begin + 200])["results"]
                    scores += [result["score"] for result in results]
            wait_until(lambda service=service: len(service.streams) == 0)
            told += service.events.list(choice=Choice(stream="line"))
            n_changes += service.metrics.changes.labels("runs")._value.get()
    (change,) = [event for event in told if event.kind == "changed"]
    assert change.state == "ended"
    assert "the source has changed: rows are stranger than before" in change.text
    assert change.alarm.phase == "end"
    assert n_changes == 1
    # all of it is one event, of which nothing is taken in
    np.testing.assert_allclose(np.array(scores, dtype=float)[-500:], plain[-500:], atol=1e-9)


def test_scores_of_a_stream_stand_to_a_threshold_that_follows_over_a_restart(model_files, tmp_path):
    settings = Settings(model_files, state=tmp_path / "states", slow=SlowSettings(adaptive=True))
    rows = changing(0, 1800, 0.06)
    plain = load(model_files["runs"]).score(pd.DataFrame(rows))["score"].to_numpy()
    results = []
    for part in (rows[:1500], rows[1500:]):
        service = create_app(settings)
        with Running(service) as server:
            with connect(f"ws://{server.address}/v1/stream?model=runs&stream=line") as stream:
                threshold = receive(stream)["threshold"]
                for begin in range(0, len(part), 100):
                    results += tell(stream, rows=part[begin : begin + 100])["results"]
            wait_until(lambda service=service: len(service.streams) == 0)
    scores = np.array([result["score"] for result in results], dtype=float)
    shifts = plain[10:] - scores[10:]
    assert abs(shifts[0]) < 1e-9
    assert shifts[-1] < shifts[1200] < -1e-4
    assert np.abs(np.diff(shifts)).max() < 0.01
    for result, score in zip(results[10:], scores[10:], strict=True):
        assert result["is_anomaly"] == (score < threshold)


def test_slow_changes_are_off_unless_they_are_asked_for(running, open_stream):
    stream = open_stream("model=runs&stream=off")
    tell(stream, rows=changing(200, 100, 0.0))
    assert running.service.settings.slow == SlowSettings()


def test_a_row_beyond_a_limit_alarms_says_so_and_is_counted_apart(tmp_path):
    guard = TableDetector(
        FusedDetector("light", false_alarm_rate=0.01, random_state=0),
        ignore=["part", "when"],
        limits={"temperature": (None, 35)},
    )
    guard.fit(plant(300, 0)).set_threshold(offset=-1e6)  # only the limit raises an alarm
    guard.save(tmp_path / "guard.ocf")
    service = create_app(Settings({"guard": tmp_path / "guard.ocf"}))
    beyond = NORMAL | {"temperature": 36.0}
    with Running(service) as running:
        running.service = service
        with connect(f"ws://{running.address}/v1/stream?stream=line") as stream:
            assert receive(stream)["type"] == "ready"
            first, second, third = (tell(stream, row=row) for row in (NORMAL, beyond, NORMAL))
        asked = httpx.post(f"http://{running.address}/v1/score", json={"rows": [beyond, NORMAL]})
        text = httpx.get(f"http://{running.address}/metrics").text
        (event,) = events_of(running, "line")
    assert (first["is_anomaly"], first["alarm"]) == (False, None)
    assert "rule" not in first
    assert (second["is_anomaly"], second["alarm"]) == (True, "begin")
    assert second["rule"] == "temperature above 35"
    assert second["score"] > -1e6
    assert second["channels"][0]["words"] == "limit broken: temperature above 35"
    assert (third["is_anomaly"], third["alarm"]) == (False, "end")
    assert event.kind == "anomaly"
    assert "limit broken: temperature above 35" in str(event)
    assert 'ocfuse_rows_total{model="guard",way="stream"} 3.0' in text
    assert 'ocfuse_rule_rows_total{model="guard",way="stream"} 1.0' in text
    results = asked.json()["results"]
    assert [one["rule"] for one in results] == ["temperature above 35", None]
    assert [one["is_anomaly"] for one in results] == [True, False]
    assert 'ocfuse_rule_rows_total{model="guard",way="request"} 1.0' in text
    assert "ocfuse_anomalous_rows_total{" not in text
