"""What is being scored now: the latest samples, for pages that look on."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

Source: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One scored sample of a stream."""

    model: str
    stream: str
    #: Number of the sample in its stream.
    seq: int
    #: Seconds since 1970, or since a start of the stream's own.
    time: float
    #: Higher is more normal; below the threshold it is anomalous.
    score: float | None
    threshold: float
    p_value: float | None = None
    is_anomaly: bool | None = None
    #: Norm that the local fusion chose here.
    local_p: float | None = None
    #: What each member adds to the score; the lowest speak most for an anomaly.
    contributions: Mapping[str, float] | None = None
    #: How far the stream has left what was learned.
    drift: float | None = None
    alarm: Literal["begin", "end"] | None = None
    #: How bad the score is, on a scale that goes on where p-values end.
    severity: float | None = None
    #: The channels that are most unusual here, as `ChannelReading.as_dict` has them.
    readings: Sequence[Mapping[str, Any]] = ()
    #: Values of the channels, in the order of the model's columns.
    values: Sequence[float | None] = ()
    #: Small picture of it: JPEG, PNG or WebP.
    thumbnail: bytes | None = None

    @property
    def source(self) -> Source:
        """Model and stream."""
        return self.model, self.stream


def lower(first: Sample, second: Sample) -> Sample:
    """Return the sample that must not be missed: the one with the lower score."""
    scores = [
        math.inf if sample.score is None or math.isnan(sample.score) else sample.score
        for sample in (first, second)
    ]
    return second if scores[1] < scores[0] else first


class Viewer:
    """One who looks on: the samples that wait for it, never more than it can take.

    `notify` is called, from any thread, when something waits again after nothing did.
    """

    #: Samples that may wait before plain ones are left out.
    most_waiting: ClassVar[int] = 512
    #: Samples that begin or end an alarm may be so many times more before the viewer is given up.
    patience: ClassVar[int] = 4

    def __init__(self, notify: Callable[[], None]) -> None:
        self.notify = notify
        self.source: Source | None = None
        self.is_lost = False
        self._waiting: list[Sample] = []

    def put(self, sample: Sample) -> bool:
        """Let a sample wait; return whether the viewer must be notified."""
        if self.is_lost or self.source != sample.source:
            return False
        is_first = not self._waiting
        self._waiting.append(sample)
        if len(self._waiting) > self.most_waiting:
            self._waiting = thin(self._waiting)
            # what cannot be left out is all that waits: the viewer comes back and asks again
            self.is_lost = len(self._waiting) > self.patience * self.most_waiting
        return is_first

    def drain(self) -> list[Sample]:
        """Return what waits, which then no longer does."""
        waiting, self._waiting = self._waiting, []
        return waiting


def thin(samples: list[Sample]) -> list[Sample]:
    """Return the lower of every two plain samples in a row, and all that bear on an alarm.

    Examples
    --------
    >>> from ocfuse.serve.samples import Sample, thin
    >>> scores = [3.0, 2.0, 5.0, 4.0, 6.0]
    >>> samples = [Sample("m", "s", i, i, score, 0.0) for i, score in enumerate(scores)]
    >>> [sample.score for sample in thin(samples)]
    [2.0, 4.0, 6.0]
    """
    kept: list[Sample] = []
    is_open = False
    for sample in samples:
        is_plain = sample.alarm is None
        if is_plain and is_open:
            kept[-1] = lower(kept[-1], sample)
            is_open = False
        else:
            kept.append(sample)
            is_open = is_plain
    return kept


class History:
    """The last `seconds` of one stream, in at most `most` samples.

    Of those that come faster than one in ``seconds / most``, the lowest is kept.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self.seconds, self.most = seconds, most
        self.last = -math.inf
        self._kept: deque[tuple[float, Sample]] = deque(maxlen=most)

    def add(self, sample: Sample, now: float) -> None:
        """Keep a sample."""
        self.last = now
        if self._kept and sample.alarm is None:
            since, latest = self._kept[-1]
            if latest.alarm is None and now - since < self.seconds / self.most:
                self._kept[-1] = since, lower(latest, sample)
                return
        self._kept.append((now, sample))

    def samples(self, now: float) -> list[Sample]:
        """Return the samples that are not too old."""
        return [sample for since, sample in self._kept if now - since <= self.seconds]


class Live:
    """Hand samples to those who look on, without ever waiting for them.

    Methods may be called from any thread. Who opens the page sees the last `seconds` of each
    stream in `most` samples. Of more than `most_sources` streams those that have been silent for
    longest are dropped.

    Examples
    --------
    >>> from ocfuse.serve.samples import Live, Sample
    >>> live = Live()
    >>> viewer = live.join(lambda: None)
    >>> live.watch(viewer, ("pump", "line-1"))
    []
    >>> live.publish(Sample("pump", "line-1", 0, 12.5, 0.8, 0.0))
    >>> [sample.score for sample in live.drain(viewer)]
    [0.8]
    """

    def __init__(self, seconds: float = 600.0, most: int = 2400, most_sources: int = 200) -> None:
        self.seconds, self.most, self.most_sources = seconds, most, most_sources
        self._lock = threading.Lock()
        self._viewers: list[Viewer] = []
        self._histories: dict[Source, History] = {}
        self._channels: dict[Source, list[dict[str, Any]]] = {}

    @property
    def has_viewers(self) -> bool:
        """Somebody looks on: what only they need is worth computing."""
        return bool(self._viewers)

    @property
    def sources(self) -> list[Source]:
        """Models and streams that samples have come from, in order of their names."""
        with self._lock:
            return sorted(self._histories)

    def introduce(self, source: Source, channels: list[dict[str, Any]]) -> None:
        """Take name and usual range ("low", "high") of what the values of samples are."""
        with self._lock:
            if len(self._channels) >= 2 * self.most_sources:
                self._channels = {k: v for k, v in self._channels.items() if k in self._histories}
            self._channels[source] = channels

    def channels(self, source: Source | None) -> list[dict[str, Any]]:
        """Return name and usual range of the channels of a stream, as far as known."""
        with self._lock:
            return [] if source is None else self._channels.get(source, [])

    def publish(self, sample: Sample) -> None:
        """Keep a sample, and let it wait for those who look on; its picture is for events."""
        now = time.monotonic()
        if sample.thumbnail is not None:
            sample = replace(sample, thumbnail=None)
        with self._lock:
            is_new = sample.source not in self._histories
            if is_new:
                if len(self._histories) >= self.most_sources:
                    silent = min(self._histories, key=lambda key: self._histories[key].last)
                    del self._histories[silent]
                self._histories[sample.source] = History(self.seconds, self.most)
            self._histories[sample.source].add(sample, now)
            notified = [viewer for viewer in self._viewers if viewer.put(sample) or is_new]
        for viewer in notified:
            viewer.notify()

    def join(self, notify: Callable[[], None]) -> Viewer:
        """Return a viewer, which watches nothing yet."""
        viewer = Viewer(notify)
        with self._lock:
            self._viewers.append(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        with self._lock:
            self._viewers.remove(viewer)

    def watch(self, viewer: Viewer, source: Source | None) -> list[Sample]:
        """Give a viewer the samples of one stream from now on; return those before."""
        with self._lock:
            viewer.source = source
            viewer.drain()
            history = None if source is None else self._histories.get(source)
            return [] if history is None else history.samples(time.monotonic())

    def drain(self, viewer: Viewer) -> list[Sample]:
        """Return the samples that wait for a viewer."""
        with self._lock:
            return viewer.drain()
