"""One event as JSON and as a line of CSV, and events that are not yet written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from ocfuse.tables.cells import no_formula

#: Members that are kept with an event: those that speak most for it.
MOST_MEMBERS = 8
#: Times from this one on are seconds since 1970; earlier ones, of a clock of the stream's own.
FIRST_DATE = 1e8

COLUMNS = (
    *("id", "model", "stream", "state", "begin", "end", "seconds", "lowest_score", "threshold"),
    *("p_value", "local_p", "n_samples", "members", "acknowledged_by", "acknowledged_at"),
    "comments",
)

#: Events and bytes of pictures that are kept while nothing can be written.
MOST_EVENTS, MOST_BYTES = 10_000, 16 * 1024**2


@dataclass(frozen=True)
class Note:
    """Something that was said about an event; it is never changed.

    Parameters
    ----------
    kind : {"acknowledge", "comment"}
        What it is.
    who : str
        Name given by the writer; "" without one.
    time : float
        When, in seconds since 1970.
    text : str
        What was said; "" for nothing but an acknowledgement.
    """

    kind: str
    who: str
    time: float
    text: str


@dataclass(frozen=True)
class StoredEvent:
    """An alarm from its first sample to its last, and what was said about it.

    Parameters
    ----------
    id : int
        Its number.
    change : int
        Number of its last change, counted over all events.
    model, stream : str
        Where it happened.
    seen : float
        When it was recorded, in seconds since 1970.
    begin, end : float
        Times of its first sample and of the last so far.
    state : {"open", "ended", "interrupted"}
        Interrupted is an event that was open when the service stopped.
    lowest, offset : float
        Its lowest score, and the threshold.
    p_value, local_p : float
        Those of the lowest score.
    members : mapping from str to float
        Contributions to the lowest score of the members that speak most for an anomaly.
    n_samples : int
        Its samples so far.
    media : str, optional
        Type of its thumbnail, such as ``"image/png"``.
    notes : tuple of Note
        What was said, in order.
    """

    id: int
    change: int
    model: str
    stream: str
    seen: float
    begin: float
    end: float
    state: str
    lowest: float | None
    offset: float | None
    p_value: float | None
    local_p: float | None
    members: Mapping[str, float]
    n_samples: int
    media: str | None = None
    notes: tuple[Note, ...] = ()

    @property
    def acknowledgement(self) -> Note | None:
        """The first note that acknowledges it."""
        return next((note for note in self.notes if note.kind == "acknowledge"), None)

    def as_json(self) -> dict[str, Any]:
        """Return the event as plain data."""
        known = self.acknowledgement
        return {
            "id": self.id,
            "change": self.change,
            "model": self.model,
            "stream": self.stream,
            "state": self.state,
            "seen": self.seen,
            "begin": self.begin,
            "end": self.end,
            "lowest": self.lowest,
            "offset": self.offset,
            "p_value": self.p_value,
            "local_p": self.local_p,
            "n_samples": self.n_samples,
            "members": dict(self.members),
            "has_thumbnail": self.media is not None,
            "acknowledged": None if known is None else {"who": known.who, "time": known.time},
            "comments": [
                {"who": note.who, "time": note.time, "text": note.text}
                for note in self.notes
                if note.kind == "comment"
            ],
        }

    def as_row(self) -> list[str | float | int | None]:
        """Return the cells of `COLUMNS`."""
        known = self.acknowledgement
        return [
            self.id,
            no_formula(self.model),
            no_formula(self.stream),
            self.state,
            when(self.begin),
            when(self.end),
            round(self.end - self.begin, 6),
            self.lowest,
            self.offset,
            self.p_value,
            self.local_p,
            self.n_samples,
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
        ]


def when(time: float) -> str:
    """Return a date in UTC, or the plain number of a clock that knows no date.

    Examples
    --------
    >>> from ocfuse.serve.event import when
    >>> when(1.7e9), when(12.5)
    ('2023-11-14T22:13:20Z', '12.5')
    """
    try:
        date = datetime.fromtimestamp(time, timezone.utc) if time >= FIRST_DATE else None
    except (OverflowError, ValueError):  # no date of our calendar
        date = None
    return str(time) if date is None else date.isoformat().replace("+00:00", "Z")


def strongest(contributions: Mapping[str, float] | None) -> dict[str, float]:
    """Return the lowest contributions, lowest first.

    Examples
    --------
    >>> from ocfuse.serve.event import strongest
    >>> strongest({"knn": 0.5, "gmm": -2.0})
    {'gmm': -2.0, 'knn': 0.5}
    """
    known = {name: float(value) for name, value in (contributions or {}).items()}
    order = sorted(known, key=known.__getitem__)
    return {name: known[name] for name in order[:MOST_MEMBERS]}


class Unwritten:
    """Events and pictures that wait to be written; bounded.

    Attributes
    ----------
    events : dict from int to Event
        By number, in the order of their last change.
    pictures : dict from int to bytes
        By number of the event.
    n_lost : int
        Events that had to go, the oldest first.
    """

    def __init__(self) -> None:
        self.events: dict[int, StoredEvent] = {}
        self.pictures: dict[int, bytes] = {}
        self.n_lost = 0

    def put(self, event: StoredEvent) -> None:
        """Let an event wait; what is too much goes."""
        self.events.pop(event.id, None)
        self.events[event.id] = event
        if len(self.events) > MOST_EVENTS:
            oldest = next((old for old in self.events.values() if old.state != "open"), event)
            del self.events[oldest.id]
            self.pictures.pop(oldest.id, None)
            self.n_lost += 1

    def put_picture(self, event: int, picture: bytes) -> None:
        """Let a picture wait; what is too much goes."""
        self.pictures[event] = picture
        while sum(map(len, self.pictures.values())) > MOST_BYTES:
            oldest = next(iter(self.pictures))
            del self.pictures[oldest]
            if oldest in self.events:
                self.events[oldest] = replace(self.events[oldest], media=None)

    def clear(self) -> None:
        """Forget what has been written."""
        self.events.clear()
        self.pictures.clear()
