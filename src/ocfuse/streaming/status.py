"""The state of a stream: one word for what is known of it, and "normal" only where that is known.

A `StreamStatus` is told what happens to one stream, in the order it happens, and knows at any time
its state, since when, and how to say it. It reads no clock and no file: whoever tells it says when.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias, get_args

from ocfuse.validation import check_number

State: TypeAlias = Literal[
    "alarm", "interrupted", "silent", "degraded", "starting", "unusual", "unacknowledged", "normal"
]
#: All states, the one that needs somebody most first.
STATES: tuple[State, ...] = get_args(State)

#: Kinds of events: scores that stay below the threshold, a stream that sends nothing, and a source
#: that is not what it was, which is over at once. All other kinds are troubles of single sensors,
#: such as a channel that is missing.
ANOMALY, SILENT, CHANGED = "anomaly", "silent", "changed"

#: Text in which a number stands for a moment, as each reader writes times in a way of their own.
Words: TypeAlias = tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class EventNews:
    """What a stream's state depends on of one event, as it is now.

    Parameters
    ----------
    id : int
        Its number.
    kind : str
        `ANOMALY`, `SILENT`, or the kind of trouble of a sensor.
    state : str
        "open", "ended", or "interrupted": nobody saw its end.
    begin, end : float
        Times of its first sample and of its last so far.
    acknowledged_by : str or None
        Who knows of it.
    text : str
        What it is about in a line, such as the channels that are most unusual.
    """

    id: int
    kind: str
    state: str
    begin: float
    end: float
    acknowledged_by: str | None = None
    text: str = ""

    @property
    def is_open(self) -> bool:
        """It lasts."""
        return self.state == "open"

    @property
    def matters(self) -> bool:
        """It lasts, or nobody has acknowledged it."""
        return self.is_open or self.acknowledged_by is None


class StreamStatus:
    """Know the state of one stream.

    ========================  ==================================================================
    state                     what is so (the first that holds)
    ========================  ==================================================================
    alarm                     an event of anomalous scores is open
    interrupted               such an event was open when its source went, or the service
                              stopped, and nobody has acknowledged it
    silent                    no samples come: the source is gone, or has sent none for too long
    degraded                  samples come, but a sensor is in trouble
    starting                  samples come, but the last one has no score
    unusual                   the last score is below the threshold, which is no alarm yet
    unacknowledged            scores are normal; nobody has acknowledged an event that is over
    normal                    scores are normal, and there is nothing that somebody must know
    ========================  ==================================================================

    Times of samples and events are those of the stream's own clock; `now` is that of who tells,
    in seconds, and never goes back.

    Parameters
    ----------
    now : float
        The time.
    silence : float, optional
        Seconds without a sample after which a stream is silent. By default five times the usual
        time between two messages, at least 10 s; and 60 s until that is known.
    is_expected : bool, default=True
        Samples are missed when none come. False for rows of requests, which come when they come.

    Attributes
    ----------
    state : str
        The state.
    changed : float
        When it became so, by the clock of who tells.
    score, threshold : float or None
        Last score, None if the last sample has none, and what it is compared with.
    time : float or None
        Time of the last sample.
    seen : float or None
        When it came, by the clock of who tells.
    is_connected : bool
        Whether samples can come.
    events : dict
        Events that last or that nobody has acknowledged, by number.

    Examples
    --------
    >>> from ocfuse.streaming.status import EventNews, StreamStatus
    >>> stream = StreamStatus(now=0.0)
    >>> stream.connect(0.0); stream.sample(1.0, time=1.0, score=-2.0, threshold=0.0)
    >>> stream.take(1.0, EventNews(7, "anomaly", "open", begin=1.0, end=1.0)); stream.state
    'alarm'
    >>> stream.leave(2.0, "lost")
    >>> stream.take(2.0, EventNews(7, "anomaly", "interrupted", begin=1.0, end=1.0)); stream.state
    'interrupted'
    >>> stream.title
    ('Alarm interrupted at ', 1.0)
    """

    #: Seconds of silence at least, and as long as the usual time between messages is not known.
    least_silence, first_silence = 10.0, 60.0
    #: Usual times between messages that are a silence.
    usual_gaps = 5.0

    def __init__(self, now: float, silence: float | None = None, is_expected: bool = True) -> None:
        if silence is not None:
            check_number(silence, "silence", 0.0, math.inf, "It counts seconds.", open_low=True)
        self._silence, self._is_expected = silence, is_expected
        self.state: State = "silent"
        self.changed = now
        self.score: float | None = None
        self.threshold: float | None = None
        self.time: float | None = None
        self.seen: float | None = None
        self.is_connected = False
        self.events: dict[int, EventNews] = {}
        # some of them, so that a sample costs the same however many nobody has acknowledged
        self._open: dict[int, EventNews] = {}
        self._unknown: dict[int, EventNews] = {}
        self._interrupted: dict[int, EventNews] = {}
        self._heard = now  # of a sample, or of who sends them
        self._is_silent = self._has_scored = False
        self._left = "restart"
        self._has_said_goodbye = False
        self._gaps: deque[float] = deque(maxlen=9)

    # What happens

    def connect(self, now: float) -> None:
        """Take that a source is there, at first or again; its samples are still to come."""
        self.is_connected, self._has_said_goodbye = True, False
        self.score, self._heard = None, now
        self._renew(now)

    def sample(self, now: float, time: float | None, score: float | None, threshold: float) -> None:
        """Take the last sample of a message; a score of None or NaN is none."""
        if self.seen is not None:
            self._gaps.append(now - self.seen)
        self.score = None if score is None or math.isnan(score) else float(score)
        self._has_scored |= self.score is not None
        self.threshold, self.time = float(threshold), time
        self.seen = self._heard = now
        self._is_silent = False
        self._renew(now)

    def leave(self, now: float, how: Literal["closed", "lost"], is_missed: bool = True) -> None:
        """Take that the source is gone: it has said goodbye ("closed"), or not ("lost").

        One that cannot come back under the name of the stream is not missed.
        """
        self.is_connected, self._left = False, how
        self._has_said_goodbye = how == "closed" or not is_missed
        self._heard = now
        self._renew(now)

    def take(self, now: float, event: EventNews) -> None:
        """Take an event as it is now: it begins, ends, is interrupted, or acknowledged."""
        is_unknown = event.acknowledged_by is None
        is_cut = is_unknown and event.kind == ANOMALY and event.state == "interrupted"
        for events, belongs in (
            (self.events, event.matters),
            (self._open, event.is_open),
            (self._unknown, is_unknown),
            (self._interrupted, is_cut),
        ):
            if belongs:
                events[event.id] = event
            else:
                events.pop(event.id, None)
        if self.seen is None:  # all that is known of its samples after a restart
            self.time = event.end if self.time is None else max(self.time, event.end)
        self._renew(now)

    def forget(self, now: float, events: Iterable[int]) -> None:
        """Take that some events are not kept any more."""
        for event in events:
            for known in (self.events, self._open, self._unknown, self._interrupted):
                known.pop(event, None)
        self._renew(now)

    def tick(self, now: float) -> bool:
        """Take that time has passed; return whether a stream that was expected falls silent.

        A source that has said goodbye is silent, but is not missed.
        """
        if self._is_silent or self._has_said_goodbye or now - self._heard <= self.silence:
            return False
        self._is_silent = True
        self._renew(now)
        return self._is_expected and self.open_silence is None

    # What is known

    @property
    def silence(self) -> float:
        """Seconds without a sample after which the stream is silent."""
        if self._silence is not None:
            return self._silence
        if len(self._gaps) < 3:
            return self.first_silence
        return max(self.least_silence, self.usual_gaps * median(self._gaps))

    @property
    def open_silence(self) -> EventNews | None:
        """The event that says that the stream is silent, if one is open."""
        return next((e for e in self._open.values() if e.kind == SILENT), None)

    @property
    def event(self) -> EventNews | None:
        """The event that the state is about, or else the last that nobody has acknowledged."""
        return self._alarm or self._cut or _last(self._unknown) or _last(self._open)

    @property
    def n_unacknowledged(self) -> int:
        """Events that nobody has acknowledged."""
        return len(self._unknown)

    @property
    def n_open(self) -> Mapping[str, int]:
        """Open events by kind."""
        counts: dict[str, int] = {}
        for event in self._open.values():
            counts[event.kind] = counts.get(event.kind, 0) + 1
        return counts

    @property
    def since(self) -> float:
        """When the state began: as its event or samples say, or else when it became so."""
        if self.state == "alarm" and self._alarm is not None:
            return self._alarm.begin
        if self.state == "interrupted" and self._cut is not None:
            return self._cut.end
        if self.state == "silent" and self.time is not None:
            return self.time
        return self.changed

    @property
    def title(self) -> Words:
        """The state in a few words."""
        event = self.event
        if self.state == "alarm" and event is not None:
            return ("ALARM since ", event.begin)
        if self.state == "interrupted" and event is not None:
            return ("Alarm interrupted at ", event.end)
        if self.state == "silent":
            return ("No samples since ", self.time) if self.time is not None else ("No samples",)
        if self.state == "unacknowledged" and event is not None:
            known = {ANOMALY: "Alarm of ", SILENT: "Silence of ", CHANGED: "Change of "}
            what = known.get(event.kind, "Trouble of ")
            return (what, event.begin, " not acknowledged")
        titles: dict[State, str] = {
            "degraded": "Sensor in trouble",
            "starting": "No score now" if self._has_scored else "No score yet",
            "unusual": "Below the threshold",
        }
        return (titles.get(self.state, "Normal"),)

    @property
    def what(self) -> str:
        """The channels that an alarm is about, or was, or the sensors that are in trouble."""
        if self.state == "degraded":
            return self._sensors()
        event = self._alarm or self._cut
        return "" if event is None else event.text

    @property
    def more(self) -> Words:
        """The same in full."""
        told: dict[State, Words] = {
            "alarm": self._of_alarm(),
            "interrupted": self._of_interrupted(),
            "silent": self._of_silence(),
            "degraded": ("The score goes on as well as it can.",),
            "starting": ("Samples come, but the last one has no score.",),
            "unusual": (f"No alarm yet: {self._score_words()}.",),
            "unacknowledged": ("Scores are normal again.",),
            "normal": ("No alarm.",),
        }
        return (*told[self.state], *self._of_sensors(), *self._of_others())

    def _of_alarm(self) -> Words:
        by = None if self._alarm is None else self._alarm.acknowledged_by
        known = "Not acknowledged." if by is None else f"Acknowledged by {by}."
        return (*self._of_silence(), f" {known}") if self._is_missed else (known,)

    def _of_interrupted(self) -> Words:
        if self._is_missed:
            return (f"{self._why_none()}. Not acknowledged.",)
        if self.score is None:
            return ("The source is back, without a score so far. Not acknowledged.",)
        return (f"Samples come again: {self._score_words()}. Not acknowledged.",)

    def _of_silence(self) -> Words:
        if self.state == "silent" or self.time is None:
            return (f"{self._why_none()}.",)
        return ("No samples since ", self.time, f": {self._why_none()}.")

    def _of_sensors(self) -> Words:
        texts = "" if self.state == "degraded" else self._sensors()
        return (f" {texts[0].upper()}{texts[1:]}.",) if texts else ()

    def _sensors(self) -> str:
        found = [e for e in self._open.values() if e.kind not in (ANOMALY, SILENT)]
        texts = [event.text or event.kind for event in found]
        return "; ".join(texts[:3] + ([f"{len(texts) - 3} more"] if len(texts) > 3 else []))

    def _of_others(self) -> Words:
        is_named = self.state in ("alarm", "interrupted", "unacknowledged")
        named = self.event if is_named else None
        n = self.n_unacknowledged - (named is not None and named.acknowledged_by is None)
        if n <= 0:
            return ()
        what = f"{n} {'more ' if is_named else ''}{'event' if n == 1 else 'events'}"
        return (f" {what} not acknowledged.",)

    def _why_none(self) -> str:
        if self.is_connected:
            return "Source connected, but it sends nothing"
        return {
            "closed": "Source gone: it closed the connection",
            "lost": "Source gone: the connection was lost",
        }.get(self._left, "Source gone: the service was restarted")

    def _score_words(self) -> str:
        if self.score is None or self.threshold is None:
            return "there is no score"
        side = "below" if self.score < self.threshold else "not below"
        return f"the last score {self.score:.3g} is {side} the threshold {self.threshold:.3g}"

    # How it is found out

    @property
    def _is_missed(self) -> bool:
        return not self.is_connected or self._is_silent or self.open_silence is not None

    @property
    def _alarm(self) -> EventNews | None:
        return next((e for e in self._open.values() if e.kind == ANOMALY), None)

    @property
    def _cut(self) -> EventNews | None:
        """The last alarm whose end nobody saw, until somebody acknowledges it."""
        return _last(self._interrupted)

    def _renew(self, now: float) -> None:
        state = self._found()
        if state != self.state:
            self.state, self.changed = state, now

    def _found(self) -> State:
        if self._alarm is not None:
            return "alarm"
        if self._cut is not None:
            return "interrupted"
        if self._is_missed:
            return "silent"
        if self._open:
            return "degraded"
        if self.score is None or self.threshold is None:
            return "starting"
        if self.score < self.threshold:
            return "unusual"
        return "unacknowledged" if self.events else "normal"


def _last(events: Mapping[int, EventNews]) -> EventNews | None:
    """Return the event that was added last; None if there is none."""
    return next(reversed(events.values()), None)  # type: ignore[call-overload]
