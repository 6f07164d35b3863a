"""Events that are kept: none that was told of is lost, whatever happens to the process."""

import csv
import io
import json
import logging
import math
import time as clock
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.database import Choice, EventKeeper
from ocfuse.serve.event import COLUMNS, Note, StoredEvent, strongest
from ocfuse.serve.samples import Sample

Events: TypeAlias = list[StoredEvent]

#: Seconds between writes of an event that goes on.
UPDATE_SECONDS = 1.0
#: Events that are read at once for a CSV file.
CSV_EVENTS = 500
#: Bytes of a thumbnail; larger ones are not kept.
THUMBNAIL_BYTES = 64 * 1024
#: Characters of a name of a model, stream or person, and of a comment; notes of one event.
MOST_NAME, MOST_TEXT, MOST_NOTES = 200, 2000, 500

#: Characters that terminals obey.
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160))) | {9: "\t", 10: "\n", 13: "\r"}

_log = logging.getLogger(__name__)


class EventStore(EventKeeper):
    """Keep events in a file, and tell who asks; safe to use from threads.

    What begins, ends, is acknowledged or said has reached the disk when the method
    returns. If the file cannot be written, it is kept in memory, `trouble` says so, and it is
    written as soon as that is possible. Events that were open when the process ended are
    interrupted at the next start.

    Parameters
    ----------
    path : str, path-like or None
        The file, made if there is none. Beside it are its write-ahead log and a lock, as only
        one service can use it. None keeps events in memory, for as long as the process lasts.
    keep : Keep, optional
        How much is kept.

    Examples
    --------
    >>> import tempfile
    >>> from ocfuse.serve.event_store import EventStore
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = EventStore(f"{folder.name}/events.db")
    >>> event = store.begin("pump", "line-1", time=10.0, score=-1.5)
    >>> store.end(event, time=12.0)
    >>> [(event.state, event.end - event.begin) for event in store.list()]
    [('ended', 2.0)]
    >>> store.close(); folder.cleanup()
    """

    # What happens

    def begin(
        self,
        model: str,
        stream: str,
        time: float,
        score: float | None,
        *,
        offset: float | None = None,
        p_value: float | None = None,
        local_p: float | None = None,
        contributions: Mapping[str, float] | None = None,
        thumbnail: bytes | None = None,
    ) -> int:
        """Record that an alarm begins; return the number of the event.

        Parameters
        ----------
        model, stream : str
            Where it happens.
        time : float
            Time of its first sample.
        score, offset, p_value, local_p : float, optional
            Of that sample, as in `Sample`.
        contributions : mapping from str to float, optional
            Those of that sample.
        thumbnail : bytes, optional
            Its picture.
        """
        with self._lock:
            self._last_id += 1
            self._n_begun += 1
            event = StoredEvent(
                id=self._last_id,
                change=0,
                model=_clean(model, MOST_NAME),
                stream=_clean(stream, MOST_NAME),
                seen=clock.time(),
                begin=float(time),
                end=float(time),
                state="open",
                lowest=_finite(score),
                offset=_finite(offset),
                p_value=_finite(p_value),
                local_p=_finite(local_p),
                members=_members(contributions),
                n_samples=1,
            )
            self._record(self._with_picture(event, thumbnail))
        self._tell()
        return event.id

    def update(
        self,
        event: int,
        time: float,
        score: float | None = None,
        *,
        p_value: float | None = None,
        local_p: float | None = None,
        contributions: Mapping[str, float] | None = None,
        thumbnail: bytes | None = None,
    ) -> None:
        """Record one more sample of an open event; written at most once in a second.

        Parameters
        ----------
        event : int
            Its number; nothing happens if it is not open.
        time : float
            Time of the sample.
        score, p_value, local_p : float, optional
            Of the sample, as in `Sample`; kept if it is the lowest so far.
        contributions : mapping from str to float, optional
            Those of the sample.
        thumbnail : bytes, optional
            Its picture.
        """
        with self._lock:
            known = self._open.get(event)
            if known is None:
                return
            changed = replace(known, end=max(known.end, float(time)), n_samples=known.n_samples + 1)
            value = _finite(score)
            if value is not None and (known.lowest is None or value < known.lowest):
                changed = replace(
                    changed,
                    lowest=value,
                    p_value=_finite(p_value),
                    local_p=_finite(local_p),
                    members=_members(contributions) or known.members,
                )
                changed = self._with_picture(changed, thumbnail)
            self._open[event] = changed
            if clock.monotonic() - self._written.get(event, 0.0) < UPDATE_SECONDS:
                return
            self._record(changed)
        self._tell()

    def end(self, event: int, time: float | None = None, state: str = "ended") -> None:
        """Record that an event is over.

        Parameters
        ----------
        event : int
            Its number; nothing happens if it is not open.
        time : float, optional
            Time of its end; by default that of its last sample.
        state : {"ended", "interrupted"}, default="ended"
            Interrupted is an event whose end was not seen.
        """
        with self._lock:
            known = self._open.get(event)
            if known is None:
                return
            last = known.end if time is None else max(known.end, float(time))
            self._record(replace(known, end=last, state=state))
        self._tell()

    def take(self, sample: Sample) -> int | None:
        """Record what a sample means for the event of its stream; return that event.

        Parameters
        ----------
        sample : Sample
            The next sample of its stream.

        Returns
        -------
        int or None
            Number of the event that the sample belongs to.
        """
        with self._lock:
            event = self._sources.get(sample.source)
            if sample.alarm == "begin":
                if event is not None:
                    self.end(event, state="interrupted")
                return self._begin(sample)
            if event is None:
                return None
            if sample.alarm == "end":
                self.end(event, sample.time)
            else:
                self.update(
                    event,
                    sample.time,
                    sample.score,
                    p_value=sample.p_value,
                    local_p=sample.local_p,
                    contributions=sample.contributions,
                    thumbnail=sample.thumbnail,
                )
            return event

    def _begin(self, sample: Sample) -> int:
        event = self.begin(
            sample.model,
            sample.stream,
            sample.time,
            sample.score,
            offset=sample.offset,
            p_value=sample.p_value,
            local_p=sample.local_p,
            contributions=sample.contributions,
            thumbnail=sample.thumbnail,
        )
        self._sources[sample.source] = event
        return event

    def _with_picture(self, event: StoredEvent, picture: bytes | None) -> StoredEvent:
        media = _media(picture)
        if picture is None or media is None:
            return event
        self._unwritten.put_picture(event.id, picture)
        return replace(event, media=media)

    # What is said

    def acknowledge(self, event: int, who: str = "") -> StoredEvent | None:
        """Record that somebody knows of an event; the first one who does counts.

        Parameters
        ----------
        event : int
            Its number.
        who : str, default=""
            Name of the person.

        Returns
        -------
        Event or None
            The event; None if there is none of this number.
        """
        with self._lock:
            known = self.get(event)
            if known is None or known.acknowledgement is not None:
                return known
            return self._say(known, Note("acknowledge", _clean(who, MOST_NAME), clock.time(), ""))

    def comment(self, event: int, text: str, who: str = "") -> StoredEvent | None:
        """Record what somebody says about an event.

        Parameters
        ----------
        event : int
            Its number.
        text : str
            What is said.
        who : str, default=""
            Name of the person.

        Returns
        -------
        Event or None
            The event; None if there is none of this number.
        """
        said = _clean(text, MOST_TEXT + 1).strip()
        if not 0 < len(said) <= MOST_TEXT:
            raise InvalidInputError(
                f"A comment must have 1 to {MOST_TEXT} characters. Got {len(text)}."
            )
        with self._lock:
            known = self.get(event)
            if known is None:
                return None
            return self._say(known, Note("comment", _clean(who, MOST_NAME), clock.time(), said))

    def _say(self, event: StoredEvent, note: Note) -> StoredEvent:
        if len(event.notes) >= MOST_NOTES:
            raise InvalidInputError(
                f"Event {event.id} has {MOST_NOTES} notes, which is the most. Keep a longer "
                "discussion elsewhere."
            )
        said = self._record(replace(event, notes=(*event.notes, note)))
        self._tell()
        return said

    # What is asked

    def get(self, event: int) -> StoredEvent | None:
        """Return the event of this number; None if there is none."""
        with self._lock:
            known = self._open.get(event) or self._unwritten.events.get(event)
            if known is not None:
                return known
            found = self._asked(lambda: self._database.read("id = ?", [_small(event)], "id", 1))
            return found[0] if found else None

    def list(
        self,
        after: int | None = None,
        before: int | None = None,
        limit: int = 100,
        *,
        model: str | None = None,
        stream: str | None = None,
        state: str | None = None,
        acknowledged: bool | None = None,
    ) -> Events:
        """Return events, the latest first; with `after`, the first ones after it first.

        Parameters
        ----------
        after, before : int, optional
            Numbers of events between which they lie.
        limit : int, default=100
            How many at most.
        model, stream, state : str, optional
            Only events of these, as in `Choice`.
        acknowledged : bool, optional
            Only events that somebody has acknowledged, or nobody has.

        Returns
        -------
        list of Event
            The events.
        """
        choice = Choice(model, stream, state, acknowledged)
        where, values = choice.condition()
        low, high = _small(after or 0), _small(2**63 - 1 if before is None else before)
        order = "id DESC" if after is None else "id"
        with self._lock:
            asked = [*values, low, high]
            found = self._asked(
                lambda: self._database.read(f"{where} AND id > ? AND id < ?", asked, order, limit)
            )
            is_full = len(found) == limit  # and what lies beyond comes with the next page
            if is_full and found:
                low, high = (found[-1].id - 1, high) if after is None else (low, found[-1].id + 1)
            waiting = [
                event
                for event in self._unwritten.events.values()
                if low < event.id < high and choice.matches(event)
            ]
            stored = [event for event in found if event.id not in self._unwritten.events]
        both = sorted(stored + waiting, key=lambda event: event.id, reverse=after is None)
        return both[:limit]

    def changes(self, after: int, limit: int = 200) -> Events:
        """Return events that have changed since a number, in the order of their changes."""
        with self._lock:
            waiting = self._unwritten.events  # newer than what the file says of them
            stored = self._asked(
                lambda: self._database.read(
                    "change > ? AND id NOT IN (SELECT value FROM json_each(?))",
                    [_small(after), json.dumps([*waiting])],
                    "change",
                    limit,
                )
            )
            later = [event for event in waiting.values() if event.change > after]
        return sorted(stored + later, key=lambda event: event.change)[:limit]

    def thumbnail(self, event: int) -> tuple[str, bytes] | None:
        """Return type and bytes of the picture of an event; None if it has none."""
        with self._lock:
            known = self.get(event)
            if known is None or known.media is None:
                return None
            picture = self._unwritten.pictures.get(event) or self._asked(
                lambda: self._database.picture(event)
            )
        return None if picture is None else (known.media, picture)

    def csv(
        self,
        *,
        model: str | None = None,
        stream: str | None = None,
        state: str | None = None,
        acknowledged: bool | None = None,
    ) -> Iterator[str]:
        """Yield the events as the text of a CSV file, the first one first.

        Parameters
        ----------
        model, stream, state : str, optional
            Only events of these, as in `Choice`.
        acknowledged : bool, optional
            Only events that somebody has acknowledged, or nobody has.

        Yields
        ------
        str
            Some lines, the first of them with the names of the columns.
        """
        rows: list[list[str | float | int | None]] = [list(COLUMNS)]
        last = 0
        while rows:
            text = io.StringIO()
            csv.writer(text, lineterminator="\r\n").writerows(rows)
            yield text.getvalue()
            found = self.list(
                last,
                limit=CSV_EVENTS,
                model=model,
                stream=stream,
                state=state,
                acknowledged=acknowledged,
            )
            last = found[-1].id if found else last
            rows = [event.as_row() for event in found]


def _clean(text: str, most: int) -> str:
    """Return text that can be stored and shown anywhere: no half characters, not too long.

    Nor does it hold what a terminal would obey; lines and tabs are left.
    """
    return text.encode("utf-8", "replace").decode().translate(_CONTROLS)[:most]


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _members(contributions: Mapping[str, float] | None) -> dict[str, float]:
    known = {
        _clean(name, MOST_NAME): value
        for name, value in (contributions or {}).items()
        if math.isfinite(value)
    }
    return strongest(known)


def _small(number: int) -> int:
    """Return a number that fits into the file's integers; there are no events beyond."""
    return max(min(number, 2**63 - 1), -(2**63))


def _media(picture: bytes | None) -> str | None:
    """Return the type of a picture that is kept, by its first bytes."""
    if picture is None:
        return None
    if len(picture) > THUMBNAIL_BYTES:
        _log.warning(
            "A thumbnail of %d bytes is not kept: %d is the most.", len(picture), THUMBNAIL_BYTES
        )
        return None
    if picture.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if picture.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/webp" if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP" else None
