"""States of streams from begin to end of the service: what must be known is told after a kill."""

import logging
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from prometheus_client import CollectorRegistry, generate_latest

from ocfuse.serve.event_store import EventStore
from ocfuse.serve.overview import Overview, StreamGauges
from ocfuse.serve.samples import Sample
from ocfuse.streaming import EventTracker

SOURCE = ("pump", "line-1")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1.79e9

    def __call__(self):
        return self.now


def overview_of(events, clock, **more):
    class Timed(Overview):
        def now(self):
            return clock()

    return Timed(events, **more)


def only(overview):
    (stream,) = overview.streams()
    return stream


class Line(RuleBasedStateMachine):
    """One stream of a service that is killed and comes back, with its events on disk."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock, self.store = Clock(), None
        self.tracker, self.score, self.is_there = None, None, False
        self.start()

    def start(self):
        self.store = EventStore(Path(self.folder.name) / "events.db")
        self.overview = overview_of(self.store, self.clock)

    def teardown(self):
        self.store.close()
        self.folder.cleanup()

    @precondition(lambda self: not self.is_there)
    @rule()
    def connect(self):
        self.overview.connect(SOURCE)
        self.tracker, self.is_there, self.score = EventTracker(0.0, 0.5, 2), True, None

    @precondition(lambda self: self.is_there)
    @rule(scores=st.lists(st.floats(-1, 1), min_size=1, max_size=4))
    def send(self, scores):
        for score in scores:
            self.clock.now += 1.0
            was_on = self.tracker.is_on
            self.tracker.update(score)
            is_on = self.tracker.is_on
            alarm = "begin" if is_on and not was_on else "end" if was_on and not is_on else None
            self.store.take(Sample(*SOURCE, 0, self.clock.now, score, 0.0, alarm=alarm))
        self.overview.sample(SOURCE, self.clock.now, scores[-1], 0.0)
        self.score = scores[-1]

    @precondition(lambda self: self.is_there)
    @rule(how=st.sampled_from(["closed", "lost"]))
    def die(self, how):
        for event in self.store.list():
            if event.state == "open":
                self.store.end(event.id, state="interrupted")
        self.overview.leave(SOURCE, how)
        self.is_there = False

    @rule(is_killed=st.booleans())
    def restart(self, is_killed):
        if is_killed:
            self.store._database.close()  # nothing more is written, as after kill -9
            self.store.is_closed = True
        else:
            self.store.close()
        self.is_there, self.score = False, None
        self.start()

    @rule()
    def acknowledge(self):
        open_or_not = self.overview.streams()
        if open_or_not and open_or_not[0]["last_event"]:
            self.store.acknowledge_all(SOURCE, open_or_not[0]["last_event"], "Ada")

    @rule(seconds=st.floats(1, 100))
    def wait(self, seconds):
        self.clock.now += seconds
        self.overview.tick()

    @invariant()
    def normal_is_known(self):
        matter = [event for event in self.store.list() if event.news.matters]
        told = self.overview.streams()
        if matter:
            assert told[0]["state"] != "normal"
            assert told[0]["unacknowledged"] == sum(e.acknowledgement is None for e in matter)
        if told and told[0]["state"] == "normal":
            assert self.is_there
            assert self.score >= 0.0
        if any(e.state == "open" and e.kind == "anomaly" for e in matter):
            assert told[0]["state"] == "alarm"


TestLine = Line.TestCase
TestLine.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store():
    store = EventStore(None)
    yield store
    store.close()


def test_a_stream_that_falls_silent_is_an_event_until_it_is_back(store, clock):
    overview = overview_of(store, clock, silence=5.0)
    overview.connect(SOURCE)
    overview.sample(SOURCE, 100.0, 1.0, 0.0)
    clock.now += 5.0
    overview.tick()
    assert store.list() == []
    clock.now += 1.0
    overview.tick()
    overview.tick()
    (silence,) = store.list()
    assert (silence.kind, silence.state, silence.begin) == ("silent", "open", 100.0)
    assert (only(overview)["state"], only(overview)["open"]) == ("silent", {"silent": 1})
    overview.leave(SOURCE, "lost")
    overview.connect(SOURCE)
    assert only(overview)["state"] == "silent"
    overview.sample(SOURCE, 200.0, 1.0, 0.0)
    assert (store.get(silence.id).state, store.get(silence.id).end) == ("ended", 200.0)
    assert only(overview)["state"] == "unacknowledged"
    store.acknowledge(silence.id, "Ada")
    assert only(overview)["state"] == "normal"


def test_a_stream_with_open_matters_that_does_not_come_back_falls_silent(tmp_path, clock):
    store = EventStore(tmp_path / "events.db")
    store.take(Sample(*SOURCE, 0, 50.0, -1.0, 0.0, alarm="begin"))
    store.take(Sample("pump", "line-2", 0, 50.0, -1.0, 0.0, alarm="begin"))
    store.acknowledge(2, "Ada")
    store.close()
    store = EventStore(tmp_path / "events.db")
    overview = overview_of(store, clock)
    assert only(overview)["state"] == "interrupted"  # of the other nobody must know any more
    assert only(overview)["more"].startswith("Source gone: the service was restarted")
    clock.now += 61
    overview.tick()
    assert [event.kind for event in store.list(choice=None)] == ["silent", "anomaly", "anomaly"]
    store.close()
    store = EventStore(tmp_path / "events.db")
    again = overview_of(store, clock)
    assert only(again)["open"] == {"silent": 1}
    clock.now += 1000
    again.tick()
    assert len(store.list()) == 3  # no second one
    store.close()


def test_a_silence_that_somebody_knows_of_is_not_followed_for_ever(store, clock):
    """A machine that is taken away must not stay on the screen."""
    overview = overview_of(store, clock)
    overview.connect(SOURCE)
    overview.sample(SOURCE, 1.0, 1.0, 0.0)
    overview.leave(SOURCE, "lost")
    clock.now += 1000
    overview.tick()
    overview.tick()
    (silence,) = store.list()
    assert only(overview)["open"] == {"silent": 1}
    store.acknowledge(silence.id, "Ada")
    assert only(overview)["state"] == "silent"
    overview.tick()
    assert overview.streams() == []
    assert store.get(silence.id).state == "interrupted"


def test_a_stream_without_a_name_of_its_own_is_not_missed(store, clock):
    overview = overview_of(store, clock)
    overview.connect(SOURCE)
    overview.sample(SOURCE, 1.0, 1.0, 0.0)
    overview.leave(SOURCE, "lost", is_missed=False)
    clock.now += 500
    overview.tick()
    assert (only(overview)["state"], store.list()) == ("silent", [])


def test_gauges_and_log_say_what_the_page_says(store, clock, caplog):
    overview = overview_of(store, clock)
    registry = CollectorRegistry()
    StreamGauges(overview, registry)
    with caplog.at_level(logging.INFO, "ocfuse.serve"):
        overview.connect(SOURCE)
        overview.sample(SOURCE, 1.0, -2.0, -0.5, drift=1.5)
        store.take(Sample(*SOURCE, 0, 1.0, -2.0, -0.5, alarm="begin"))
    told = [record.about for record in caplog.records if record.message == "stream_state"]
    assert [one["state"] for one in told] == ["starting", "unusual", "alarm"]
    assert (told[-1]["before"], told[-1]["stream"], told[-1]["number"]) == ("unusual", "line-1", 1)
    text = generate_latest(registry).decode()
    labels = 'model="pump",stream="line-1"'
    assert 'ocfuse_stream_state{model="pump",state="alarm",stream="line-1"} 1.0' in text
    assert f'ocfuse_stream_open_events{{kind="anomaly",{labels}}} 1.0' in text
    assert f"ocfuse_stream_score{{{labels}}} -2.0" in text
    assert f"ocfuse_stream_drift{{{labels}}} 1.5" in text
    assert f"ocfuse_stream_unacknowledged_events{{{labels}}} 1.0" in text


def test_gauges_are_read_while_no_event_can_change(store, clock):
    class Events(dict):
        def values(self):
            assert overview._lock.locked()  # or another thread could add an event meanwhile
            return super().values()

    overview = overview_of(store, clock)
    registry = CollectorRegistry()
    StreamGauges(overview, registry)
    overview.connect(SOURCE)
    overview._known[SOURCE].status._open = Events()
    store.take(Sample(*SOURCE, 0, 1.0, -2.0, -0.5, alarm="begin"))
    assert 'ocfuse_stream_open_events{kind="anomaly"' in generate_latest(registry).decode()


def test_streams_are_bounded_and_those_that_matter_stay(store, clock, monkeypatch):
    monkeypatch.setattr(Overview, "most_streams", 3)
    overview = overview_of(store, clock)
    store.take(Sample("pump", "alarmed", 0, 1.0, -1.0, 0.0, alarm="begin"))
    for i in range(5):
        overview.connect(("pump", f"s{i}"))
        if i != 1:
            overview.leave(("pump", f"s{i}"), "closed")
    assert [one["stream"] for one in overview.streams()] == ["alarmed", "s1", "s4"]
    clock.now += 601
    overview.tick()
    assert [one["stream"] for one in overview.streams()] == ["alarmed", "s1"]


def test_events_that_are_deleted_are_forgotten(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(EventStore, "prune_events", 1)
    store = EventStore(tmp_path / "events.db")
    overview = overview_of(store, clock)
    overview.connect(SOURCE)
    overview.sample(SOURCE, 1.0, 1.0, 0.0)
    for i in range(5):
        store.end(store.begin(Sample(*SOURCE, 0, float(i), -1.0, 0.0)))
    assert only(overview)["unacknowledged"] == 5
    monkeypatch.setattr(store, "keep", type(store.keep)(events=2))
    store.end(store.begin(Sample("pump", "other", 0, 9.0, -1.0, 0.0)))
    assert {one["stream"]: one["unacknowledged"] for one in overview.streams()} == {
        "line-1": 1,
        "other": 1,
    }
    store.close()


def test_a_page_is_sent_what_has_changed(store, clock):
    overview = overview_of(store, clock)
    overview.connect(SOURCE)
    change, sources, told = overview.since(-1, is_whole=False)
    assert (sources, [one["state"] for one in told]) == ([SOURCE], ["starting"])
    overview.sample(SOURCE, 1.0, 2.0, 0.0)
    change, _, told = overview.since(change, is_whole=False)
    assert [one["state"] for one in told] == ["normal"]
    overview.sample(SOURCE, 2.0, 1.5, 0.0, lowest=1.0)
    assert overview.since(change, is_whole=False)[2] == []
    (told,) = overview.since(change, is_whole=True)[2]
    assert (told["score"], told["course"], told["words"]["title"]) == (1.5, [1.0], ("Normal",))
