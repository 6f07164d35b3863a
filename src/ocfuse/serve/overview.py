"""All streams and their states: for the page, the API, metrics and the log."""

import math
import threading
import time as clock
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ocfuse.serve.errors import finite
from ocfuse.serve.event import StoredEvent, when
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.samples import Source
from ocfuse.serve.telemetry import log_event
from ocfuse.streaming.status import SILENT, State, StreamStatus, Words


@dataclass
class _Known:
    """What is known of one stream."""

    status: StreamStatus
    #: Numbers of the last change of its state, and of anything.
    changed: int = 0
    renewed: int = 0
    #: The channel that is most unusual, as `ChannelReading.as_dict` has it.
    channel: Mapping[str, Any] | None = None
    named: float = -math.inf  # when it was found
    #: Lowest score of each ten seconds, by the number of the ten seconds.
    course: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=60))
    told: str = ""
    #: How far its level is from training; above 1 is more than chance explains.
    drift: float | None = None


class Overview:
    """Follow the state of every stream; safe to use from threads.

    States are those of `StreamStatus`. Events that are open, or that nobody has acknowledged, are
    read from the store, so that a service that was killed still tells of them.

    Parameters
    ----------
    events : EventStore
        The events.
    silence : float, optional
        Seconds without a sample after which a stream is silent, as in `StreamStatus`.

    Examples
    --------
    >>> from ocfuse.serve.event_store import EventStore
    >>> from ocfuse.serve.overview import Overview
    >>> overview = Overview(EventStore(None))
    >>> overview.connect(("pump", "line-1"))
    >>> overview.sample(("pump", "line-1"), time=1.0, score=0.5, threshold=0.0)
    >>> [(one["stream"], one["state"]) for one in overview.streams()]
    [('line-1', 'normal')]
    """

    #: Streams that are followed; of more, those that matter least are left out.
    most_streams: ClassVar[int] = 200
    #: Seconds that a stream that has ended, and that nobody must know of, is still shown.
    shown_seconds: ClassVar[float] = 600.0
    #: Seconds for which the most unusual channel of a normal stream is told: few samples have one.
    named_seconds: ClassVar[float] = 5.0
    #: Seconds of one point of the small course.
    point_seconds: ClassVar[float] = 10.0

    def __init__(self, events: EventStore, silence: float | None = None) -> None:
        self.events, self.silence = events, silence
        self._lock = threading.Lock()
        self._known: dict[Source, _Known] = {}
        self._begin = clock.time() - clock.monotonic()
        self._listeners: list[Callable[[], None]] = []
        self.change = 0
        for event in events.observe(self):
            self.changed(event)

    def now(self) -> float:
        """Return seconds since 1970, by a clock that never goes back."""
        return self._begin + clock.monotonic()

    # What happens

    def connect(self, source: Source, is_expected: bool = True) -> None:
        """Take that the source of a stream is there."""
        now = self.now()
        with self._lock:
            self._of(source, now, is_expected).status.connect(now)
            self._note(source)

    def sample(
        self,
        source: Source,
        time: float,
        score: float | None,
        threshold: float,
        lowest: float | None = None,
        channel: Mapping[str, Any] | None = None,
        drift: float | None = None,
    ) -> None:
        """Take the last sample of a message, and the lowest score in it if there are more."""
        now = self.now()
        with self._lock:
            known = self._of(source, now)
            known.drift = drift
            status = known.status
            status.sample(now, time, score, threshold)
            low = finite(score if lowest is None else lowest)
            if low is not None:
                point = int(now // self.point_seconds)
                if known.course and known.course[-1][0] == point:
                    low = min(low, known.course.pop()[1])
                known.course.append((point, low))
            if channel is not None:
                known.channel, known.named = channel, now
            elif not status.events and now - known.named > self.named_seconds:
                known.channel = None
            silence = status.open_silence
            self._note(source)
        if silence is not None:
            self.events.end(silence.id, time)

    def leave(self, source: Source, how: Literal["closed", "lost"], is_missed: bool = True) -> None:
        """Take that the source of a stream is gone."""
        now = self.now()
        with self._lock:
            if source in self._known:
                self._known[source].status.leave(now, how, is_missed)
                self._note(source)

    def tick(self) -> None:
        """Take that time has passed: record silences, and forget what has ended long ago.

        A silence that somebody knows of, of a source that is gone, is not followed for ever.
        """
        now, silent, given_up = self.now(), [], []
        with self._lock:
            for source, known in list(self._known.items()):
                status = known.status
                falls_silent = status.tick(now)
                self._note(source)
                is_over = not status.is_connected and not status.n_unacknowledged
                if falls_silent:
                    silent.append((source, status.time, self._since(status)))
                elif is_over and now - status.changed > self.shown_seconds:
                    given_up += list(status.events)
                    self._drop(source)
        for event in given_up:
            self.events.end(event, state="interrupted")
        for source, time, since in silent:
            self.events.raise_event(SILENT, source, since if time is None else time, "no samples")

    def changed(self, event: StoredEvent) -> None:
        """Take an event as it is now."""
        now, source = self.now(), (event.model, event.stream)
        with self._lock:
            if event.news.matters or source in self._known:
                self._of(source, now).status.take(now, event.news)
                self._note(source)

    def deleted(self, events: list[tuple[str, str, int]]) -> None:
        """Take that events are not kept any more."""
        now = self.now()
        with self._lock:
            for model, stream, number in events:
                if (model, stream) in self._known:
                    self._known[model, stream].status.forget(now, [number])
                    self._note((model, stream))

    def _since(self, status: StreamStatus) -> float:
        return status.changed if status.seen is None else status.seen

    def _of(self, source: Source, now: float, is_expected: bool = True) -> _Known:
        known = self._known.get(source)
        if known is None:
            if len(self._known) >= self.most_streams:
                self._drop(min(self._known, key=self._weight))
            known = self._known[source] = _Known(StreamStatus(now, self.silence, is_expected))
        return known

    def _weight(self, source: Source) -> tuple[bool, bool, float]:
        """Return how much a stream matters: most if its source is there, then by its events."""
        status = self._known[source].status
        return status.is_connected, bool(status.events), status.seen or -math.inf

    def _drop(self, source: Source) -> None:
        del self._known[source]
        self.change += 1

    def _note(self, source: Source) -> None:
        """Give a change a number; log and tell it if it is one of the state."""
        known = self._known[source]
        self.change += 1
        known.renewed = self.change
        status = known.status
        words = _key(status)
        if words == known.told:
            return
        known.changed = self.change
        before, known.told = known.told.partition("|")[0], words
        if before != status.state:
            event = None if status.event is None else status.event.id
            log_event(
                "stream_state",
                model=source[0],
                stream=source[1],
                state=status.state,
                before=before or None,
                number=event,
            )
        for listener in self._listeners:
            listener()

    # What is asked

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, after every change of a state; return what ends that."""
        with self._lock:
            self._listeners = [*self._listeners, callback]

        def stop() -> None:
            """Call back no more."""
            with self._lock:
                self._listeners = [one for one in self._listeners if one is not callback]

        return stop

    def streams(self) -> list[dict[str, Any]]:
        """Return all streams as plain data, in the order of their names."""
        with self._lock:
            return [self._told(source, self._known[source]) for source in sorted(self._known)]

    def since(self, change: int, is_whole: bool) -> tuple[int, list[Source], list[dict[str, Any]]]:
        """Return the last change, all streams, and those whose state has changed since one.

        Streams that have had samples only are left out unless all is asked for.
        """
        with self._lock:
            found = [
                self._told(source, known) | {"course": [low for _, low in known.course]}
                for source, known in sorted(self._known.items())
                if (known.renewed if is_whole else known.changed) > change
            ]
            return self.change, sorted(self._known), found

    def _told(self, source: Source, known: _Known) -> dict[str, Any]:
        status = known.status
        event = status.event
        return {
            "model": source[0],
            "stream": source[1],
            "state": status.state,
            "since": status.since,
            "title": _plain(status.title),
            "what": status.what,
            "more": _plain(status.more),
            "words": {"title": status.title, "more": status.more},
            "score": finite(status.score),
            "threshold": finite(status.threshold),
            "time": status.time,
            "seen": status.seen,
            "is_connected": status.is_connected,
            "channel": known.channel,
            "event": None if event is None else event.id,
            "open": dict(status.n_open),
            "unacknowledged": status.n_unacknowledged,
            "last_event": max(status.events, default=None),
        }

    def figures(self) -> list[tuple[Source, State, Mapping[str, int], Mapping[str, float | None]]]:
        """Return source, state, open events by kind and numbers of every stream, as they are now.

        Numbers have the names of the gauges of `StreamGauges`; None is not known.
        """
        with self._lock:
            return [
                (
                    source,
                    known.status.state,
                    known.status.n_open,
                    {
                        "score": known.status.score,
                        "threshold": known.status.threshold,
                        "last_sample_timestamp_seconds": known.status.seen,
                        "unacknowledged_events": known.status.n_unacknowledged,
                        "drift": known.drift,
                    },
                )
                for source, known in self._known.items()
            ]


def _key(status: StreamStatus) -> str:
    """Return what must be told at once when it differs."""
    scores_apart = status.state in ("unusual", "interrupted")
    words = (status.title, status.what, () if scores_apart else status.more)
    return f"{status.state}|{status.is_connected}|{len(status.events)}|{words}"


def _plain(words: Words) -> str:
    return "".join(part if isinstance(part, str) else when(part) for part in words).strip()


class StreamGauges(Collector):
    """Gauges of every stream, as the overview has them when they are asked for.

    Streams are bounded by `Overview.most_streams`, and states by their number.
    """

    def __init__(self, overview: Overview, registry: CollectorRegistry) -> None:
        self._overview = overview
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        labels = ("model", "stream")
        state = GaugeMetricFamily(
            "ocfuse_stream_state", "1 for the state of a stream.", labels=(*labels, "state")
        )
        open_events = GaugeMetricFamily(
            "ocfuse_stream_open_events", "Open events by kind.", labels=(*labels, "kind")
        )
        plain = {
            name: GaugeMetricFamily(f"ocfuse_stream_{name}", words, labels=labels)
            for name, words in (
                (
                    "drift",
                    "How far the level is from training; above 1 is more than chance explains.",
                ),
                ("score", "Last score of a stream."),
                ("threshold", "Lower scores are anomalies."),
                ("last_sample_timestamp_seconds", "When it came."),
                ("unacknowledged_events", "Events that nobody has acknowledged."),
            )
        }
        for source, word, n_open, numbers in self._overview.figures():
            state.add_metric([*source, word], 1.0)
            for kind, n in sorted(n_open.items()):
                open_events.add_metric([*source, kind], n)
            for name, value in numbers.items():
                if value is not None:
                    plain[name].add_metric([*source], value)
        yield from (state, open_events, *plain.values())
