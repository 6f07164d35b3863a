"""How events reach the disk, and what happens when they cannot."""

import logging
import math
import os
import sqlite3
import threading
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.database import Database, is_damage
from ocfuse.serve.event import Event
from ocfuse.serve.live import Source
from ocfuse.serve.unwritten import Unwritten

T = TypeVar("T")

#: Seconds between attempts to write after one has failed.
RETRY_SECONDS = 1.0
#: Seconds and new events after which old ones are looked for.
PRUNE_SECONDS, PRUNE_EVENTS = 3600.0, 200
#: Numbers of changes that are left out at each start: a page may know some that never reached
#: the disk, and none of them must be given twice.
SPARE_CHANGES = 2**20

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keep:
    """How much is kept; the oldest goes first, open events never.

    Parameters
    ----------
    days : float, optional
        Age of an event; None keeps it for ever.
    events : int, default=100_000
        Events.
    picture_bytes : int, default=268_435_456
        Bytes of all thumbnails.
    """

    days: float | None = None
    events: int = 100_000
    picture_bytes: int = 256 * 1024**2

    def __post_init__(self) -> None:
        for name in (bound.name for bound in fields(self)):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInputError(f"What is kept, {name}, must be above 0. Got {value!r}.")


class EventKeeper:
    """Write events, or keep them in memory until that is possible.

    Parameters
    ----------
    path : str, path-like or None
        The file; None keeps all in memory.
    keep : Keep, optional
        How much is kept.

    Attributes
    ----------
    name : str
        What tells this file from others.
    change : int
        Number of the last change.
    is_closed : bool
        Nothing is written any more.
    """

    def __init__(self, path: str | os.PathLike[str] | None, keep: Keep | None = None) -> None:
        self.keep = Keep() if keep is None else keep
        self._lock = threading.RLock()
        self._database = Database(None if path is None else Path(path))
        self._damage: str | None = None
        self._unwritten = Unwritten()
        self._open: dict[int, Event] = {}
        self._sources: dict[Source, int] = {}
        self._written: dict[int, float] = {}
        self._listeners: list[Callable[[], None]] = []
        self._failure: str | None = None
        self._timer: threading.Timer | None = None
        self._retry_at = self._prune_at = 0.0
        self._n_begun = 0
        self.is_closed = False
        self.name = f"{self._database.counter('store'):012x}"
        self.change = self._database.counter("change") + SPARE_CHANGES
        self._last_id = self._database.counter("id")
        if self._database.aside is not None:
            self._tell_damage(self._database.aside)
        self._interrupt(self._database.read("state = 'open'", [], "id", -1))

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

    def close(self) -> None:
        """Interrupt what is open and close the file."""
        with self._lock:
            if self.is_closed:
                return
            self._interrupt(list(self._open.values()))
            self._retry_at = 0.0
            self._write()
            if self._failure is not None:
                _log.error("Events are lost. %s", self.trouble)
            self.is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._database.close()

    def _record(self, event: Event) -> Event:
        """Give an event the next number of change, and write it."""
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
        self._write()
        return event

    def _interrupt(self, events: list[Event]) -> None:
        for event in events:
            self._record(replace(event, state="interrupted"))

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
            self._retry_at = clock.monotonic() + RETRY_SECONDS
            self._try_later()
        if had_failed != (self._failure is not None):
            _log.warning("%s", self.trouble or "Events are written to their file again.")

    def _write_all(self) -> None:
        self._database.write(
            self._unwritten.events.values(),
            self._unwritten.pictures,
            {"change": self.change, "id": self._last_id},
        )

    def _asked(self, question: Callable[[], T]) -> T:
        """Return what the file says; if it is damaged, what a new one with the rest of it says."""
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
            self._tell_damage(self._database.aside, n)
        self.name = f"{self._database.counter('store'):012x}"
        waiting = self._unwritten.events
        for event in self._open.values():
            if event.id not in waiting:
                self._unwritten.put(event)
        self._write_all()

    def _tell_damage(self, aside: Path, n: int | None = None) -> None:
        taken = "what could be read" if n is None else f"{n} events that could be read"
        self._damage = (
            f"The file of events {self._database.shown} was damaged. It is kept as {aside.name}, "
            f"and a new one was begun with {taken} of it. Check the disk."
        )
        _log.error("%s", self._damage)

    def _try_later(self) -> None:
        if self._timer is None or not self._timer.is_alive():
            self._timer = threading.Timer(1.1 * RETRY_SECONDS, self._retry)
            self._timer.daemon = True
            self._timer.start()

    def _retry(self) -> None:
        with self._lock:
            self._timer = None
            self._write()
        self._tell()

    def _prune(self) -> None:
        now = clock.monotonic()
        if now < self._prune_at and self._n_begun < PRUNE_EVENTS:
            return
        self._prune_at, self._n_begun = now + PRUNE_SECONDS, 0
        days = self.keep.days
        oldest = -math.inf if days is None else clock.time() - 86_400 * days
        self._database.prune(self.keep.events, oldest, self.keep.picture_bytes)

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for callback in listeners:
            callback()
