"""One event as JSON and as a line of CSV, and events that are not yet written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, ClassVar, Literal

from ocfuse.notify import Alarm, Phase
from ocfuse.streaming.status import ANOMALY, EventNews
from ocfuse.tables.cells import no_formula

#: Columns of a CSV file of events.
COLUMNS = (
    *("id", "kind", "model", "stream", "state", "begin", "end", "seconds", "lowest_score"),
    *("threshold", "p_value", "severity", "local_p", "n_samples", "channels", "members"),
    *("acknowledged_by", "acknowledged_at", "comments"),
    *("verdict", "verdict_by", "verdict_at", "verdict_comment"),
)
#: What somebody can find an event to be.
VERDICTS = ("real", "false alarm", "unknown")


@dataclass(frozen=True)
class Note:
    """Something that was said about an event, in seconds since 1970; it is never changed.

    An acknowledgement has no text, and a verdict may have one. Who gave no name is "", which only
    comments may.
    """

    kind: Literal["acknowledge", "comment", "real", "false alarm", "unknown"]
    who: str
    time: float
    text: str


@dataclass(frozen=True)
class StoredEvent:
    """An alarm, a silence or a trouble of a sensor from begin to end, and what was said about it.

    Its fields, in this order, are also the columns of its table.
    """

    id: int
    #: Number of its last change, counted over all events.
    change: int
    model: str
    stream: str
    #: When it was recorded, in seconds since 1970.
    seen: float
    #: Times of its first sample and of the last so far.
    begin: float
    end: float
    #: "open", "ended", or "interrupted": open when its source or the service was gone.
    state: str
    #: Its lowest score, and the threshold.
    lowest: float | None
    threshold: float | None
    #: Those of the lowest score.
    p_value: float | None
    local_p: float | None
    #: Contributions to the lowest score of the members that speak most for an anomaly.
    members: Mapping[str, float]
    n_samples: int
    #: Type of its thumbnail, such as "image/png".
    media: str | None = None
    #: "anomaly", "silent", or the kind of trouble of a sensor, such as "missing".
    kind: str = ANOMALY
    #: How bad the lowest score is, on a scale that goes on where p-values end.
    severity: float | None = None
    #: The channels that are most unusual at the lowest score, or the one that is in trouble.
    channels: Sequence[Mapping[str, Any]] = ()
    #: What it is about in a line.
    text: str = ""
    #: Rows around it that are kept.
    n_rows: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def acknowledgement(self) -> Note | None:
        """The first note that acknowledges it."""
        return next((note for note in self.notes if note.kind == "acknowledge"), None)

    @property
    def verdict(self) -> Note | None:
        """The last verdict, which counts."""
        return next((note for note in reversed(self.notes) if note.kind in VERDICTS), None)

    @property
    def news(self) -> EventNews:
        """What the state of its stream depends on."""
        known = self.acknowledgement
        by = None if known is None else known.who or "somebody"
        text = self.text or "; ".join(channel["words"] for channel in self.channels)
        return EventNews(self.id, self.kind, self.state, self.begin, self.end, by, text)

    @property
    def alarm(self) -> Alarm:
        """What is told of it to others."""
        text = self.news.text or f"score {self.lowest} below {self.threshold}"
        phases: Mapping[str, Phase] = {"open": "begin", "interrupted": "interrupted"}
        return Alarm(
            event=self.id,
            phase=phases.get(self.state, "end"),
            kind=self.kind,
            model=self.model,
            stream=self.stream,
            begin=when(self.begin),
            end=None if self.state == "open" else when(self.end),
            severity=self.severity,
            score=self.lowest,
            threshold=self.threshold,
            p_value=self.p_value,
            text=text,
            channels=self.channels,
            members=self.members,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the event as plain data."""
        known = self.acknowledgement
        verdicts = [
            {"verdict": note.kind, "who": note.who, "time": note.time, "comment": note.text}
            for note in self.notes
            if note.kind in VERDICTS
        ]
        return {
            "id": self.id,
            "change": self.change,
            "kind": self.kind,
            "model": self.model,
            "stream": self.stream,
            "state": self.state,
            "seen": self.seen,
            "begin": self.begin,
            "end": self.end,
            "lowest": self.lowest,
            "threshold": self.threshold,
            "p_value": self.p_value,
            "severity": self.severity,
            "local_p": self.local_p,
            "n_samples": self.n_samples,
            "text": self.text,
            "channels": [dict(channel) for channel in self.channels],
            "members": dict(self.members),
            "has_thumbnail": self.media is not None,
            "n_rows": self.n_rows,
            "acknowledged": None if known is None else {"who": known.who, "time": known.time},
            "comments": [
                {"who": note.who, "time": note.time, "text": note.text}
                for note in self.notes
                if note.kind == "comment"
            ],
            "verdict": verdicts[-1] if verdicts else None,
            "earlier_verdicts": verdicts[:-1],
        }

    def as_row(self) -> list[str | float | int | None]:
        """Return the cells of `COLUMNS`."""
        known, verdict = self.acknowledgement, self.verdict
        return [
            self.id,
            self.kind,
            no_formula(self.model),
            no_formula(self.stream),
            self.state,
            when(self.begin),
            when(self.end),
            round(self.end - self.begin, 6),
            self.lowest,
            self.threshold,
            self.p_value,
            self.severity,
            self.local_p,
            self.n_samples,
            no_formula(self.text or "; ".join(channel["words"] for channel in self.channels)),
            no_formula("; ".join(f"{name} {value:.4g}" for name, value in self.members.items())),
            None if known is None else no_formula(known.who),
            None if known is None else when(known.time),
            no_formula(
                "\n".join(
                    f"{when(note.time)} {note.who or 'no name'}: {note.text}"
                    for note in self.notes
                    if note.kind == "comment"
                )
            ),
            None if verdict is None else verdict.kind,
            None if verdict is None else no_formula(verdict.who),
            None if verdict is None else when(verdict.time),
            None if verdict is None else no_formula(verdict.text),
        ]


def when(time: float) -> str:
    """Return a date in UTC, or the plain number of a stream with a clock of its own.

    Examples
    --------
    >>> from ocfuse.serve.event import when
    >>> when(1.7e9), when(12.5)
    ('2023-11-14T22:13:20Z', '12.5')
    """
    try:
        is_date = time >= 1e8  # seconds since 1970
        date = datetime.fromtimestamp(time, timezone.utc) if is_date else None
    except (OverflowError, ValueError):  # no date of our calendar
        date = None
    return str(time) if date is None else date.isoformat().replace("+00:00", "Z")


class Unwritten:
    """Events, pictures and rows that wait to be written, by the number of the event; bounded.

    Events stand in the order of their last change. Where they are too many, the oldest go.
    """

    #: Events, and bytes of pictures and of rows, that wait at most.
    most_events: ClassVar[int] = 10_000
    most_bytes: ClassVar[int] = 16 * 1024**2

    def __init__(self) -> None:
        self.events: dict[int, StoredEvent] = {}
        self.pictures: dict[int, bytes] = {}
        self.rows: dict[int, bytes] = {}
        self.n_lost = 0

    def put(self, event: StoredEvent) -> None:
        """Let an event wait; what is too much goes."""
        self.events.pop(event.id, None)
        self.events[event.id] = event
        if len(self.events) > self.most_events:
            oldest = next((old for old in self.events.values() if old.state != "open"), event)
            del self.events[oldest.id]
            self.pictures.pop(oldest.id, None)
            self.rows.pop(oldest.id, None)
            self.n_lost += 1

    def put_picture(self, event: int, picture: bytes) -> None:
        """Let a picture wait; what is too much goes."""
        self.pictures[event] = picture
        self._bound(self.pictures, media=None)

    def put_rows(self, event: int, rows: bytes) -> None:
        """Let the rows of an event wait; what is too much goes."""
        self.rows[event] = rows
        self._bound(self.rows, n_rows=0)

    def _bound(self, waiting: dict[int, bytes], **without: Any) -> None:
        while sum(map(len, waiting.values())) > self.most_bytes:
            oldest = next(iter(waiting))
            del waiting[oldest]
            if oldest in self.events:
                self.events[oldest] = replace(self.events[oldest], **without)

    def clear(self) -> None:
        """Forget what has been written."""
        self.events.clear()
        self.pictures.clear()
        self.rows.clear()
