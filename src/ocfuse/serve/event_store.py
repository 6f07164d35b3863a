"""The store of events: none that was recorded is lost, whatever happens to the process."""

import csv
import io
import json
import logging
import math
import os
import re
import sqlite3
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from ocfuse.exceptions import InvalidInputError
from ocfuse.notify import Alarm
from ocfuse.serve.database import Choice, Database, is_damage
from ocfuse.serve.errors import finite
from ocfuse.serve.event import COLUMNS, VERDICTS, Note, StoredEvent, Unwritten
from ocfuse.serve.event_rows import KeptRow, unpacked
from ocfuse.serve.samples import Sample, Source
from ocfuse.serve.settings import Retention
from ocfuse.streaming.status import SILENT

T = TypeVar("T")
Events: TypeAlias = list[StoredEvent]
KeptRows: TypeAlias = list[KeptRow]
Readings: TypeAlias = Sequence[Mapping[str, Any]]

_log = logging.getLogger(__name__)


class Observer(Protocol):
    """Who is told of every change of an event."""

    def changed(self, event: StoredEvent) -> None:
        """Take an event as it is now."""

    def deleted(self, events: list[tuple[str, str, int]]) -> None:
        """Take model, stream and number of events that are not kept any more."""


class EventStore:
    """Keep events in a file, and return them; safe to use from threads.

    What begins, ends, is acknowledged or said has reached the disk when the method
    returns. If the file cannot be written, it is kept in memory, `trouble` says so, and it is
    written as soon as that is possible. Events that were open when the process ended are
    interrupted at the next start; but a stream that was silent is still silent then.

    Parameters
    ----------
    path : str, path-like or None
        The file, made if there is none. Beside it are its write-ahead log and a lock, as only
        one service can use it. None keeps events in memory, for as long as the process lasts.
    keep : Retention, optional
        How much is kept.

    Attributes
    ----------
    name : str
        Identifies the file.
    change : int
        Number of the last change.
    is_closed : bool
        Nothing is written any more.

    Examples
    --------
    >>> import tempfile
    >>> from ocfuse.serve.event_store import EventStore
    >>> from ocfuse.serve.samples import Sample
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = EventStore(f"{folder.name}/events.db")
    >>> event = store.begin(Sample("pump", "line-1", 0, time=10.0, score=-1.5, threshold=0.0))
    >>> store.end(event, time=12.0)
    >>> [(event.state, event.end - event.begin) for event in store.list()]
    [('ended', 2.0)]
    >>> store.close(); folder.cleanup()
    """

    #: Characters of a name of a model, stream or person, and of a comment.
    most_name: ClassVar[int] = 200
    most_text: ClassVar[int] = 2000
    #: Notes of one event.
    most_notes: ClassVar[int] = 500
    #: Bytes of a thumbnail; larger ones are not kept.
    most_thumbnail_bytes: ClassVar[int] = 64 * 1024
    #: Seconds between writes of an event that goes on, and between attempts after one has failed.
    update_seconds: ClassVar[float] = 1.0
    retry_seconds: ClassVar[float] = 1.0
    #: Events of before that an observer is told of; the latest.
    most_observed: ClassVar[int] = 10_000
    #: Bytes of the rows of an event, as they are stored; more are not kept.
    most_row_bytes: ClassVar[int] = 512 * 1024
    #: New events after which old ones are looked for; every hour they are in any case.
    prune_events: ClassVar[int] = 200

    def __init__(self, path: str | os.PathLike[str] | None, keep: Retention | None = None) -> None:
        self.keep = Retention() if keep is None else keep
        self._lock = threading.RLock()
        self._database = Database(None if path is None else Path(path))
        self._damage: str | None = None
        self._unwritten = Unwritten()
        self._open: dict[int, StoredEvent] = {}
        self._sources: dict[Source, int] = {}
        self._written: dict[int, float] = {}
        self._listeners: list[Callable[[], None]] = []
        self._observers: list[Observer] = []
        self._failure: str | None = None
        self._timer: threading.Timer | None = None
        self._retry_at = self._prune_at = 0.0
        self._n_begun = 0
        self.is_closed = False
        self.name = f"{self._database.counter('store'):012x}"
        # numbers of changes are left out at each start: a page may know some that never reached
        # the disk, and none of them must be given twice
        self.change = self._database.counter("change") + 2**20
        self._last_id = self._database.counter("id")
        if self._database.aside is not None:
            self._note_damage(self._database.aside, "what could be read")
        for event in self._database.read("state = 'open'", [], "id", -1):
            if event.kind == SILENT:
                self._open[event.id] = event
            else:
                self._record(replace(event, state="interrupted"))

    @property
    def trouble(self) -> str | None:
        """What keeps events from being written, or was wrong with their file; None if nothing."""
        with self._lock:
            if self._failure is None:
                return self._damage
            lost = f"; {self._unwritten.n_lost} were lost" if self._unwritten.n_lost else ""
            return (
                f"Events are kept in memory only, as {self._database.shown} cannot be "
                f"written: {self._failure}. {len(self._unwritten.events)} wait{lost}. Scoring "
                "goes on; free some room or repair the folder, and they are written."
            )

    @property
    def n_unwritten(self) -> int:
        """How many events are in memory only, as they could not be written."""
        with self._lock:
            return 0 if self._failure is None else len(self._unwritten.events)

    @property
    def state(self) -> str:
        """Whether events are "written", are "waiting" to be, or their file was "replaced"."""
        with self._lock:
            if self._failure is not None:
                return "waiting"
            return "written" if self._damage is None else "replaced"

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, after every change; return what ends that."""
        with self._lock:
            self._listeners.append(callback)

        def stop() -> None:
            """Call back no more."""
            with self._lock:
                self._listeners.remove(callback)

        return stop

    def observe(self, observer: "Observer") -> list[StoredEvent]:
        """Tell of every event that changes or is deleted, in this order; return what matters now.

        That are the events that are open or that nobody has acknowledged, the first one first.
        The observer is called by the thread that changes them, and must not ask the store.
        """
        with self._lock:
            self._observers.append(observer)
            unknown = self.list(limit=self.most_observed, choice=Choice(acknowledged=False))
            known = {event.id: event for event in [*unknown, *self._open.values()]}
            return [known[number] for number in sorted(known)]

    def interrupt(self) -> None:
        """Interrupt what is open, but for silences: nobody watches any more."""
        self._interrupt_open()
        self._notify()

    def _interrupt_open(self) -> None:
        with self._lock:
            for event in list(self._open.values()):
                if event.kind != SILENT:
                    self._record(replace(event, state="interrupted"))

    def close(self) -> None:
        """Interrupt what is open, but for silences, and close the file."""
        with self._lock:
            if self.is_closed:
                return
            self._interrupt_open()
            self._retry_at = 0.0
            self._write()
            if self._failure is not None:
                _log.error("Events are lost. %s", self.trouble)
            self.is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._database.close()

    # What happens

    def begin(self, sample: Sample) -> int:
        """Record that an alarm begins with a sample; return the number of the event."""
        with self._lock:
            self._last_id += 1
            self._n_begun += 1
            event = StoredEvent(
                id=self._last_id,
                change=0,
                model=_clean(sample.model, self.most_name),
                stream=_clean(sample.stream, self.most_name),
                seen=clock.time(),
                begin=float(sample.time),
                end=float(sample.time),
                state="open",
                lowest=finite(sample.score),
                threshold=finite(sample.threshold),
                p_value=finite(sample.p_value),
                local_p=finite(sample.local_p),
                members=self._strongest(sample.contributions),
                n_samples=1,
                severity=finite(sample.severity),
                channels=_told(sample.readings, self.most_name),
            )
            self._record(self._with_picture(event, sample.thumbnail))
        self._notify()
        return event.id

    def raise_event(
        self, kind: str, source: Source, time: float, text: str, channels: Readings = ()
    ) -> int:
        """Record that something else than an anomaly begins; return the number of the event."""
        with self._lock:
            self._last_id += 1
            self._n_begun += 1
            event = StoredEvent(
                id=self._last_id,
                change=0,
                model=_clean(source[0], self.most_name),
                stream=_clean(source[1], self.most_name),
                seen=clock.time(),
                begin=float(time),
                end=float(time),
                state="open",
                lowest=None,
                threshold=None,
                p_value=None,
                local_p=None,
                members={},
                n_samples=0,
                kind=kind,
                channels=_told(channels, self.most_name),
                text=_clean(text, self.most_text),
            )
            self._record(event)
        self._notify()
        return event.id

    def update(self, event: int, sample: Sample) -> None:
        """Record one more sample of an event, if it is open; written at most once in a second.

        What belongs to the score is kept if the score is the lowest so far.
        """
        with self._lock:
            known = self._open.get(event)
            if known is None:
                return
            last = max(known.end, float(sample.time))
            changed = replace(known, end=last, n_samples=known.n_samples + 1)
            score = finite(sample.score)
            if score is not None and (known.lowest is None or score < known.lowest):
                changed = replace(
                    changed,
                    lowest=score,
                    p_value=finite(sample.p_value),
                    local_p=finite(sample.local_p),
                    members=self._strongest(sample.contributions) or known.members,
                    severity=finite(sample.severity),
                    channels=_told(sample.readings, self.most_name) or known.channels,
                )
                changed = self._with_picture(changed, sample.thumbnail)
            self._open[event] = changed
            if clock.monotonic() - self._written.get(event, 0.0) < self.update_seconds:
                return
            self._record(changed)
        self._notify()

    def end(self, event: int, time: float | None = None, state: str = "ended") -> None:
        """Record that an open event is over, by default at its last sample.

        It is "ended", or "interrupted" if its end was not seen.
        """
        with self._lock:
            known = self._open.get(event)
            if known is None:
                return
            last = known.end if time is None else max(known.end, float(time))
            self._record(replace(known, end=last, state=state))
        self._notify()

    def take(self, sample: Sample) -> int | None:
        """Record what the next sample of a stream means for its event; return that event."""
        with self._lock:
            event = self._sources.get(sample.source)
            if sample.alarm == "begin":
                if event is not None:
                    self.end(event, state="interrupted")
                event = self._sources[sample.source] = self.begin(sample)
                return event
            if event is None:
                return None
            if sample.alarm == "end":
                self.end(event, sample.time)
            else:
                self.update(event, sample)
            return event

    def _with_picture(self, event: StoredEvent, picture: bytes | None) -> StoredEvent:
        if picture is None:
            return event
        if len(picture) > self.most_thumbnail_bytes:
            _log.warning(
                "A thumbnail of %d bytes is not kept: %d is the most.",
                len(picture),
                self.most_thumbnail_bytes,
            )
            return event
        media = _media(picture)
        if media is None:
            return event
        self._unwritten.put_picture(event.id, picture)
        return replace(event, media=media)

    def keep_rows(self, event: int, rows: bytes, n_rows: int) -> None:
        """Keep the rows around an event, as `packed` has them, in place of those before."""
        if not self.keep.row_bytes or len(rows) > self.most_row_bytes:
            return
        with self._lock:
            known = self.get(event)
            if known is None:
                return
            self._unwritten.put_rows(event, rows)
            self._record(replace(known, n_rows=n_rows))
        self._notify()

    # What is said

    def acknowledge(self, event: int, who: str) -> StoredEvent | None:
        """Record that somebody knows of an event, the first one who does; return the event."""
        name = self._name_of(who)
        with self._lock:
            known = self.get(event)
            if known is None or known.acknowledgement is not None:
                return known
            return self._say(known, "acknowledge", name, "")

    def acknowledge_all(self, source: Source, up_to: int, who: str) -> int:
        """Record that somebody knows of all events of a stream up to a number; return how many."""
        name = self._name_of(who)
        choice = Choice(source[0], source[1], acknowledged=False)
        with self._lock:
            events = self.list(before=up_to + 1, limit=self.keep.events, choice=choice)
            note = Note("acknowledge", name, clock.time(), "")
            said = [self._change(replace(one, notes=(*one.notes, note))) for one in events]
            self._write()
            self._tell(said)
        self._notify()
        return len(events)

    def judge(self, event: int, verdict: str, who: str, comment: str = "") -> StoredEvent | None:
        """Record what somebody found an event to be, which acknowledges it; return the event.

        The last verdict counts; those before it stay.

        Parameters
        ----------
        event : int
            Number of the event.
        verdict : {"real", "false alarm", "unknown"}
            What it was.
        who : str
            Name of who says so.
        comment : str, default=""
            Why.

        Returns
        -------
        StoredEvent or None
            The event; None if there is none of this number.
        """
        if verdict not in VERDICTS:
            raise InvalidInputError(
                f"A verdict is one of {', '.join(map(repr, VERDICTS))}. Got {verdict!r}."
            )
        name, text = self._name_of(who, "A verdict"), _clean(comment, self.most_text + 1).strip()
        if len(text) > self.most_text:
            raise InvalidInputError(
                f"The comment of a verdict has at most {self.most_text} characters."
            )
        with self._lock:
            known = self.get(event)
            if known is None:
                return None
            if known.acknowledgement is None:
                known = self._noted(known, "acknowledge", name, "")
            return self._say(known, verdict, name, text)

    def _name_of(self, who: str, what: str = "An acknowledgement") -> str:
        name = _clean(who, self.most_name).strip()
        if not name:
            raise InvalidInputError(
                f'{what} needs the name of who makes it, such as {{"who": "Ada"}}. Got {who!r}.'
            )
        return name

    def comment(self, event: int, text: str, who: str = "") -> StoredEvent | None:
        """Record what somebody says about an event; return the event."""
        said = _clean(text, self.most_text + 1).strip()
        if not 0 < len(said) <= self.most_text:
            raise InvalidInputError(
                f"A comment must have 1 to {self.most_text} characters. Got {len(text)}."
            )
        with self._lock:
            known = self.get(event)
            return None if known is None else self._say(known, "comment", who, said)

    def _say(self, event: StoredEvent, kind: str, who: str, text: str) -> StoredEvent:
        said = self._record(self._noted(event, kind, who, text))
        self._notify()
        return said

    def _noted(self, event: StoredEvent, kind: str, who: str, text: str) -> StoredEvent:
        """Return an event with one more note."""
        if len(event.notes) >= self.most_notes:
            raise InvalidInputError(
                f"Event {event.id} has {self.most_notes} notes, which is the most. Keep a longer "
                "discussion elsewhere."
            )
        note = Note(kind, _clean(who, self.most_name), clock.time(), text)  # type: ignore[arg-type]
        return replace(event, notes=(*event.notes, note))

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
        choice: Choice | None = None,
    ) -> Events:
        """Return events between two numbers, the latest first.

        With `after`, those that follow it come first.
        """
        choice = choice or Choice()
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
        return sorted(stored + waiting, key=attrgetter("id"), reverse=after is None)[:limit]

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
        return sorted(stored + later, key=attrgetter("change"))[:limit]

    @property
    def position(self) -> int:
        """Number of the last change: what routes of alarms take for the end of a journal."""
        return self.change

    def after(self, position: int) -> Sequence[tuple[int, Alarm]]:
        """Return what routes tell of events that have changed since a number."""
        return [(event.change, event.alarm) for event in self.changes(position)]

    def thumbnail(self, event: int) -> tuple[str, bytes] | None:
        """Return type and bytes of the picture of an event; None if it has none."""
        with self._lock:
            known = self.get(event)
            if known is None or known.media is None:
                return None
            picture = self._unwritten.pictures.get(event) or self._asked(
                lambda: self._database.data("pictures", event)
            )
        return None if picture is None else (known.media, picture)

    def rows(self, event: int) -> KeptRows | None:
        """Return the rows that are kept around an event, in their order; None if there are none."""
        with self._lock:
            packed = self._unwritten.rows.get(event) or self._asked(
                lambda: self._database.data("event_rows", _small(event))
            )
        return None if packed is None else unpacked(packed)

    def verdicts(self) -> dict[str, dict[str, int]]:
        """Return by model how many alarms have each verdict, and how many can be learned from.

        What waits to be written is not counted.
        """
        found: dict[str, dict[str, int]] = {}
        with self._lock:
            for model, verdict, n, n_kept in self._asked(self._database.count_verdicts):
                counts = found.setdefault(model, {**dict.fromkeys(VERDICTS, 0), "usable": 0})
                counts[verdict] = n
                counts["usable"] += n_kept if verdict != "unknown" else 0
        return found

    def csv(self, choice: Choice | None = None, n_at_once: int = 500) -> Iterator[str]:
        """Yield the events as the text of a CSV file, the first one first, some lines at once."""
        rows: list[list[str | float | int | None]] = [list(COLUMNS)]
        last = 0
        while rows:
            text = io.StringIO()
            csv.writer(text, lineterminator="\r\n").writerows(rows)
            yield text.getvalue()
            found = self.list(last, limit=n_at_once, choice=choice)
            last = found[-1].id if found else last
            rows = [event.as_row() for event in found]

    # How it is kept

    def _record(self, event: StoredEvent) -> StoredEvent:
        """Give an event the next number of change, and write it."""
        event = self._change(event)
        self._write()
        self._tell([event])
        return event

    def _change(self, event: StoredEvent) -> StoredEvent:
        """Give an event the next number of change, and let it wait to be written."""
        self.change += 1
        event = replace(event, change=self.change)
        if event.state == "open":
            self._open[event.id] = event
            self._written[event.id] = clock.monotonic()
        else:
            self._open.pop(event.id, None)
            self._written.pop(event.id, None)
            self._sources = {key: id for key, id in self._sources.items() if id != event.id}
        self._unwritten.put(event)
        return event

    def _tell(self, events: Events) -> None:
        for observer in self._observers:
            for event in events:
                observer.changed(event)

    def _write(self) -> None:
        if self.is_closed or clock.monotonic() < self._retry_at:
            return
        had_failed = self._failure is not None
        try:
            self._asked(self._write_all)
            self._failure, self._retry_at = None, 0.0
            self._unwritten.clear()
            self._asked(self._prune)
        except (sqlite3.Error, OSError) as error:
            self._failure = str(error)
            self._retry_at = clock.monotonic() + self.retry_seconds
            if self._timer is None or not self._timer.is_alive():
                self._timer = threading.Timer(1.1 * self.retry_seconds, self._retry)
                self._timer.daemon = True
                self._timer.start()
        if had_failed != (self._failure is not None):
            _log.warning("%s", self.trouble or "Events are written to their file again.")

    def _write_all(self) -> None:
        self._database.write(
            self._unwritten.events.values(),
            self._unwritten.pictures,
            {"change": self.change, "id": self._last_id},
            self._unwritten.rows,
        )

    def _asked(self, question: Callable[[], T]) -> T:
        """Return what the file says; if it is damaged, replace it by a new one and ask that."""
        try:
            return question()
        except sqlite3.DatabaseError as error:
            if self.is_closed or not (is_damage(error) or self._database.is_lost):
                raise
        self._replace()
        return question()

    def _replace(self) -> None:
        """Keep a damaged file aside and go on with a new one; nothing that is known is lost."""
        n = self._database.replace()
        if self._database.aside is not None:
            self._note_damage(self._database.aside, f"{n} events that could be read")
        self.name = f"{self._database.counter('store'):012x}"
        waiting = self._unwritten.events
        for event in self._open.values():
            if event.id not in waiting:
                self._unwritten.put(event)
        self._write_all()

    def _note_damage(self, aside: Path, taken: str) -> None:
        self._damage = (
            f"The file of events {self._database.shown} was damaged. It is kept as {aside.name}, "
            f"and a new one was begun with {taken} of it. Check the disk."
        )
        _log.error("%s", self._damage)

    def _retry(self) -> None:
        with self._lock:
            self._timer, self._retry_at = None, 0.0  # also if a write has failed meanwhile
            self._write()
        self._notify()

    def _prune(self) -> None:
        now = clock.monotonic()
        if now < self._prune_at and self._n_begun < self.prune_events:
            return
        self._prune_at, self._n_begun = now + 3600.0, 0
        days = self.keep.days
        oldest = -math.inf if days is None else clock.time() - 86_400 * days
        keep = self.keep
        gone = self._database.prune(keep.events, oldest, keep.picture_bytes, keep.row_bytes)
        for observer in self._observers:
            observer.deleted(gone)

    def _notify(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for callback in listeners:
            callback()

    def _strongest(self, contributions: Mapping[str, float] | None) -> dict[str, float]:
        """Return the eight lowest contributions, which speak most for an anomaly, lowest first."""
        known = {
            _clean(name, self.most_name): float(value)
            for name, value in (contributions or {}).items()
            if math.isfinite(value)
        }
        return dict(sorted(known.items(), key=itemgetter(1))[:8])


def _clean(text: str, most: int) -> str:
    """Return text that can be stored and shown anywhere: no half characters, not too long.

    Nor does it hold what a terminal would obey; lines and tabs are left.
    """
    whole = text.encode("utf-8", "replace").decode()
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "", whole)[:most]


def _small(number: int) -> int:
    """Return a number that fits into the file's integers; there are no events beyond."""
    return max(min(number, 2**63 - 1), -(2**63))


def _told(readings: Readings, most_name: int) -> list[dict[str, Any]]:
    """Return readings as they are stored, without what cannot be shown."""
    return [
        {
            name: _clean(value, 2 * most_name)
            if isinstance(value, str)
            else value
            if isinstance(value, int)
            else finite(value)
            for name, value in reading.items()
        }
        for reading in readings
    ]


def _media(picture: bytes) -> str | None:
    """Return the type of a picture that is kept, by its first bytes."""
    if picture.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if picture.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/webp" if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP" else None
