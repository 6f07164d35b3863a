"""A stream is called normal only where that is known."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.status import STATES, EventNews, StreamStatus

KINDS = ["anomaly", "silent", "missing", "stuck", "range", "rate"]
SCORES = st.one_of(st.none(), st.just(math.nan), st.floats(-2, 2))


class Life(RuleBasedStateMachine):
    """Anything that can happen to a stream, in any order; what is so is noted beside."""

    def __init__(self):
        super().__init__()
        self.now, self.stream = 0.0, StreamStatus(0.0)
        self.events, self.n = {}, 0
        self.score, self.is_there, self.quiet_since = None, False, 0.0

    def pass_time(self, seconds=1.0):
        self.now += seconds

    def tell(self, event):
        self.events[event.id] = event
        self.stream.take(self.now, event)

    @rule()
    def connect(self):
        self.pass_time()
        self.stream.connect(self.now)
        self.is_there, self.score, self.quiet_since = True, None, self.now

    @precondition(lambda self: self.is_there)
    @rule(score=SCORES)
    def sample(self, score):
        self.pass_time()
        self.stream.sample(self.now, self.now, score, 0.0)
        self.score = None if score is None or math.isnan(score) else score
        self.quiet_since = self.now

    @rule(how=st.sampled_from(["closed", "lost"]))
    def die(self, how):
        self.pass_time()
        self.stream.leave(self.now, how)
        self.is_there = False

    @rule(kind=st.sampled_from(KINDS))
    def begin(self, kind):
        self.n += 1
        self.tell(EventNews(self.n, kind, "open", self.now, self.now))

    @precondition(lambda self: self.events)
    @rule(data=st.data(), state=st.sampled_from(["ended", "interrupted"]))
    def end(self, data, state):
        self.change(data, state=state, end=self.now)

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def acknowledge(self, data):
        self.change(data, acknowledged_by="Ada")

    def change(self, data, **new):
        before = self.events[data.draw(st.sampled_from(sorted(self.events)))]
        values = {name: getattr(before, name) for name in EventNews.__dataclass_fields__}
        self.tell(EventNews(**values | new))

    @rule(seconds=st.floats(1, 100))
    def wait(self, seconds):
        self.pass_time(seconds)
        self.stream.tick(self.now)

    @rule()
    def restart(self):
        """The service is killed and comes back: all that is left are the events."""
        self.pass_time()
        self.stream = StreamStatus(self.now)
        self.is_there, self.score, self.quiet_since = False, None, self.now
        for event in list(self.events.values()):
            is_cut = event.state == "open" and event.kind != "silent"
            state = "interrupted" if is_cut else event.state
            self.tell(
                EventNews(
                    event.id, event.kind, state, event.begin, event.end, event.acknowledged_by
                )
            )

    @invariant()
    def normal_is_known(self):
        """No news may hide: this is what the operator's screen stands on."""
        stream, matter = self.stream, [e for e in self.events.values() if e.matters]
        if stream.state == "normal":
            assert self.is_there
            assert self.score is not None
            assert self.score >= 0.0
            assert not matter
        if any(e.kind == "anomaly" and e.is_open for e in matter):
            assert stream.state == "alarm"
        assert stream.state in STATES
        assert "Normal" not in stream.title or stream.state == "normal"
        assert stream.n_unacknowledged == sum(e.acknowledged_by is None for e in matter)
        assert "" not in stream.title
        assert "" not in stream.more

    @invariant()
    def nothing_cries_wolf(self):
        """What is well is called so: a screen that always warns is not read."""
        is_well = self.is_there and self.score is not None and self.score >= 0.0
        is_well = is_well and self.now - self.quiet_since < self.stream.least_silence
        if is_well and not any(e.matters for e in self.events.values()):
            assert self.stream.state == "normal"


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def stream_at(*scores):
    stream = StreamStatus(0.0)
    stream.connect(0.0)
    for i, score in enumerate(scores):
        stream.sample(float(i + 1), float(i + 1), score, 0.0)
    return stream


def test_an_alarm_whose_source_is_gone_is_interrupted_until_somebody_knows_of_it():
    stream = stream_at(1.0, -2.0)
    assert (stream.state, stream.title) == ("unusual", ("Below the threshold",))
    stream.take(2.0, EventNews(7, "anomaly", "open", 2.0, 2.0, text="flow 1 (usual 2 +- 0.1)"))
    assert (stream.state, stream.title) == ("alarm", ("ALARM since ", 2.0))
    assert stream.what == "flow 1 (usual 2 +- 0.1)"
    stream.leave(3.0, "lost")
    assert stream.state == "alarm"  # until the event is known to be cut off
    stream.take(3.0, EventNews(7, "anomaly", "interrupted", 2.0, 2.5))
    assert (stream.state, stream.title) == ("interrupted", ("Alarm interrupted at ", 2.5))
    assert "Source gone" in stream.more[0]
    assert "Not acknowledged" in stream.more[0]
    stream.connect(4.0)
    stream.sample(5.0, 5.0, 1.0, 0.0)
    assert (stream.state, stream.since) == ("interrupted", 2.5)
    stream.take(6.0, EventNews(7, "anomaly", "interrupted", 2.0, 2.5, "Ada"))
    assert stream.state == "normal"


def test_an_alarm_that_is_over_is_told_until_somebody_knows_of_it():
    stream = stream_at(1.0)
    stream.take(1.0, EventNews(1, "anomaly", "open", 1.0, 1.0))
    stream.take(2.0, EventNews(2, "missing", "open", 1.0, 1.0, text="channel flow missing"))
    stream.take(3.0, EventNews(1, "anomaly", "ended", 1.0, 2.0))
    assert stream.state == "degraded"
    assert stream.what == "channel flow missing"
    assert stream.more[1:] == (" 2 events not acknowledged.",)
    stream.take(4.0, EventNews(2, "missing", "ended", 1.0, 4.0, "Ada"))
    assert stream.state == "unacknowledged"
    assert stream.title == ("Alarm of ", 1.0, " not acknowledged")
    stream.forget(5.0, [1])
    assert stream.state == "normal"


def test_a_stream_is_silent_after_five_usual_gaps_and_at_least_ten_seconds():
    def silent_after(gap, silence=None):
        stream = StreamStatus(0.0, silence)
        stream.connect(0.0)
        for i in range(5):
            stream.sample(gap * i, gap * i, 1.0, 0.0)
        last = gap * 4
        assert not stream.tick(last + stream.silence)
        assert stream.state == "normal"
        assert stream.tick(last + stream.silence + 0.01)
        assert stream.state == "silent"
        assert not stream.tick(last + 10 * stream.silence)  # told once
        return stream.silence

    assert [silent_after(gap) for gap in (0.1, 1.0, 60.0)] == [10.0, 10.0, 300.0]
    assert silent_after(1.0, silence=2.0) == 2.0
    assert stream_at(1.0).silence == 60.0  # its step is not known
    with pytest.raises(InvalidInputError, match="silence"):
        StreamStatus(0.0, silence=0.0)


def test_a_source_that_says_goodbye_is_silent_but_not_missed():
    stream = stream_at(1.0)
    stream.leave(2.0, "closed")
    assert (stream.state, stream.title) == ("silent", ("No samples since ", 1.0))
    assert not stream.tick(1e6)
    stream.leave(2.0, "lost")
    assert stream.tick(1e6)
    requests = StreamStatus(0.0, is_expected=False)
    requests.connect(0.0)
    requests.sample(1.0, 1.0, 1.0, 0.0)
    assert not requests.tick(1e6)
    assert requests.state == "silent"


def test_a_sample_without_a_score_is_not_normal():
    stream = stream_at(None)
    assert (stream.state, stream.title) == ("starting", ("No score yet",))
    stream = stream_at(1.0, math.nan)
    assert (stream.state, stream.title) == ("starting", ("No score now",))
