"""The file of events: SQLite with a write-ahead log, and how long events are kept."""

import json
import logging
import math
import os
import secrets
import sqlite3
import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.event import Note, StoredEvent, Unwritten
from ocfuse.serve.samples import Source

#: Marks a file as one of ours; "ocfe" as a number.
APPLICATION = 0x6F636665
#: Of the tables below; a file of a later version is refused.
VERSION = 1
#: What SQLite calls damage: pages that make no sense, and a first page that is none of its own.
DAMAGE = frozenset({11, 26})
#: What belongs to the file, in the order in which it may be moved: no log may stay behind alone.
PARTS = ("-wal", "-shm", "")
#: Milliseconds that a write waits for another program which reads or writes the file.
BUSY_MS = 2000

SCHEMA = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, change INTEGER NOT NULL, model TEXT NOT NULL, stream TEXT NOT NULL,
    seen REAL NOT NULL, begin REAL NOT NULL, "end" REAL NOT NULL, state TEXT NOT NULL, lowest REAL,
    "offset" REAL, p_value REAL, local_p REAL, members TEXT NOT NULL, n_samples INTEGER NOT NULL,
    media TEXT
);
CREATE INDEX events_by_change ON events (change);
CREATE INDEX events_open ON events (id) WHERE state = 'open';
CREATE TABLE notes (
    event INTEGER NOT NULL REFERENCES events (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    kind TEXT NOT NULL, who TEXT NOT NULL, time REAL NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (event, number)
);
CREATE TABLE pictures (
    event INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE, data BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

FIELDS = (
    *("id", "change", "model", "stream", "seen", "begin", "end", "state", "lowest", "offset"),
    *("p_value", "local_p", "members", "n_samples", "media"),
)
NOTE_FIELDS = ("event", "number", "kind", "who", "time", "text")
_NAMES = ", ".join(f'"{name}"' for name in FIELDS)
_MARKS = ", ".join("?" * len(FIELDS))
_CHANGED = ", ".join(f'"{name}" = excluded."{name}"' for name in FIELDS[1:])
_UPSERT = (
    f"INSERT INTO events ({_NAMES}) VALUES ({_MARKS}) ON CONFLICT (id) DO UPDATE SET {_CHANGED}"
)

T = TypeVar("T")

#: Seconds between attempts to write after one has failed.
RETRY_SECONDS = 1.0
#: Seconds and new events after which old ones are looked for.
PRUNE_SECONDS, PRUNE_EVENTS = 3600.0, 200
#: Numbers of changes that are left out at each start: a page may know some that never reached
#: the disk, and none of them must be given twice.
SPARE_CHANGES = 2**20

_log = logging.getLogger(__name__)


class DamagedFileError(sqlite3.DatabaseError):
    """Say that a file of events has pages that make no sense."""


@dataclass(frozen=True)
class Choice:
    """Which events are asked for; None is any.

    Parameters
    ----------
    model, stream, state : str, optional
        As in `StoredEvent`.
    acknowledged : bool, optional
        Somebody has acknowledged it, or nobody has.
    """

    model: str | None = None
    stream: str | None = None
    state: str | None = None
    acknowledged: bool | None = None

    def matches(self, event: StoredEvent) -> bool:
        """Tell whether an event is asked for."""
        return (
            self.model in (None, event.model)
            and self.stream in (None, event.stream)
            and self.state in (None, event.state)
            and self.acknowledged in (None, event.acknowledgement is not None)
        )

    def condition(self) -> tuple[str, list[str]]:
        """Return the same in SQL, and the values of its question marks."""
        names = [name for name in ("model", "stream", "state") if getattr(self, name) is not None]
        parts = [f"{name} = ?" for name in names]
        if self.acknowledged is not None:
            parts.append(
                f"{'' if self.acknowledged else 'NOT '}EXISTS (SELECT 1 FROM notes "
                "WHERE notes.event = events.id AND notes.kind = 'acknowledge')"
            )
        return " AND ".join(["TRUE", *parts]), [getattr(self, name) for name in names]


class Database:
    """Read and write events; one connection, used by one thread at a time.

    Parameters
    ----------
    path : Path or None
        The file, which is made if there is none; None is memory.

    Attributes
    ----------
    shown : str
        How messages name it.
    aside : Path or None
        Where a damaged file has been put, if the file was one.
    is_lost : bool
        A damaged file has been put aside, but no new one could be made yet: `replace` does.
    """

    def __init__(self, path: Path | None) -> None:
        self.shown = "memory" if path is None else str(path)
        self.aside: Path | None = None
        self.is_lost = False
        self._path = path
        self._guard: sqlite3.Connection | None = None
        try:
            self._guard = None if path is None else _claim(path)
            try:
                self._open(path)
            except DamagedFileError:
                self.replace()
        except BaseException as error:
            self._release()
            if isinstance(error, sqlite3.Error):
                raise InvalidInputError(
                    f"The file of events {self.shown} cannot be used: {error}. It must be one "
                    "of ocfuse, or not exist yet, in a folder that can be written to and has "
                    "room. Name another one, or repair the folder."
                ) from error
            raise

    def _open(self, path: Path | None) -> None:
        self.connection = _connected(path)
        try:
            self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def replace(self) -> int:
        """Keep a damaged file aside, and begin a new one with all that can still be read.

        Returns
        -------
        int
            Events that were taken over.
        """
        if self._path is None:
            raise DamagedFileError("events in memory have no file")
        self.connection.close()
        path = self._path.resolve()
        if self.aside is None or not self.is_lost:
            self.aside = _free_name(path)
            for part in PARTS:
                with suppress(FileNotFoundError):
                    os.replace(f"{path}{part}", f"{self.aside}{part}")
            self.is_lost = True
        self._open(path)
        old = _connected(self.aside)
        try:
            n = self._take_over(old)
        except BaseException:
            self.connection.close()
            raise
        finally:
            old.close()
        self.is_lost = False
        return n

    def _take_over(self, old: sqlite3.Connection) -> int:
        """Copy what can be read of a damaged file: from both ends up to the damage."""
        kept: set[int] = set()
        with self.transaction():
            for row in _readable(old, "events", FIELDS):
                if _is_event(row):
                    self.connection.execute(_UPSERT, row)
                    kept.add(row[0])
            for row in _readable(old, "notes", NOTE_FIELDS):
                if row[0] in kept and None not in row:
                    marks = "?, ?, ?, ?, ?, ?"
                    self.connection.execute(f"INSERT OR IGNORE INTO notes VALUES ({marks})", row)
            for row in _readable(old, "pictures", ("event", "data")):
                if row[0] in kept and isinstance(row[1], bytes):
                    self.connection.execute("INSERT OR IGNORE INTO pictures VALUES (?, ?)", row)
            counted = dict(_readable(old, "counters", ("name", "value")))
            for name in ("id", "change"):
                last = self.connection.execute(f"SELECT max({name}) FROM events").fetchone()[0]
                known = counted.get(name)
                last = max(last or 0, known if isinstance(known, int) else 0)
                self.connection.execute("INSERT INTO counters VALUES (?, ?)", [name, last])
        return len(kept)

    def _prepare(self) -> None:
        self.connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        n_tables = self._n_tables(is_own=application == APPLICATION and version <= VERSION)
        if n_tables and application != APPLICATION:
            raise InvalidInputError(
                f"{self.shown} is a database of another program. Name another file for events."
            )
        if version > VERSION:
            raise InvalidInputError(
                f"{self.shown} was written by a later version of ocfuse (version {version} of the "
                f"file; this one reads up to {VERSION}). Update ocfuse, or name another file."
            )
        if not n_tables:
            self.connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self.connection.execute("PRAGMA journal_mode = WAL")
        # a write has reached the disk when it returns: neither a crash nor a power cut undoes it
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        if not n_tables:
            self.connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION}; "
                f"PRAGMA user_version = {VERSION}; "
                f"INSERT INTO counters VALUES ('store', {secrets.randbits(48)}); COMMIT;"
            )
        with self.transaction():  # a folder that cannot be written to is told of now
            self.connection.execute(
                "INSERT INTO counters VALUES ('starts', 1) "
                "ON CONFLICT (name) DO UPDATE SET value = value + 1"
            )

    def _n_tables(self, is_own: bool) -> int:
        """Return the number of tables and indices; say if a file of ours is damaged."""
        try:
            (n,) = self.connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if is_own and n:
                (found,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
                if found != "ok":
                    raise DamagedFileError(found)
        except sqlite3.DatabaseError as error:
            if is_own and is_damage(error):
                raise DamagedFileError(str(error)) from error
            raise
        return int(n)

    def transaction(self) -> "_Transaction":
        """Return a context in which all is written, or nothing."""
        return _Transaction(self.connection)

    def close(self) -> None:
        """Close the file; its log becomes part of it."""
        self.connection.close()
        self._release()

    def _release(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def counter(self, name: str) -> int:
        """Return a number that is kept beside the events; 0 at first."""
        row = self.connection.execute(
            "SELECT value FROM counters WHERE name = ?", [name]
        ).fetchone()
        return 0 if row is None else int(row[0])

    def write(
        self,
        events: Iterable[StoredEvent],
        pictures: Mapping[int, bytes],
        counters: Mapping[str, int],
    ) -> None:
        """Write events as they are now, their new notes and pictures; all or nothing."""
        with self.transaction():
            for event in events:
                self.connection.execute(_UPSERT, _to_row(event))
                self.connection.executemany(
                    "INSERT OR IGNORE INTO notes VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (event.id, number, note.kind, note.who, note.time, note.text)
                        for number, note in enumerate(event.notes)
                    ],
                )
            self.connection.executemany(
                "INSERT OR REPLACE INTO pictures VALUES (?, ?)", list(pictures.items())
            )
            self.connection.executemany(
                "INSERT OR REPLACE INTO counters VALUES (?, ?)", list(counters.items())
            )

    def read(self, where: str, values: Iterable[Any], order: str, limit: int) -> list[StoredEvent]:
        """Return events, with what was said about them.

        Parameters
        ----------
        where : str
            Condition in SQL, of this package's own making.
        values : iterable
            Values of its question marks.
        order : str
            Columns in SQL.
        limit : int
            Most events.
        """
        rows = self.connection.execute(
            f"SELECT {_NAMES} FROM events WHERE {where} ORDER BY {order} LIMIT ?",
            [*values, limit],
        ).fetchall()
        notes = self._notes([row[0] for row in rows])
        return [_from_row(row, tuple(notes.get(row[0], ()))) for row in rows]

    def _notes(self, ids: list[int]) -> dict[int, list[Note]]:
        found: dict[int, list[Note]] = {}
        for event, kind, who, time, text in self.connection.execute(
            "SELECT event, kind, who, time, text FROM notes "
            "WHERE event IN (SELECT value FROM json_each(?)) ORDER BY event, number",
            [json.dumps(ids)],
        ):
            found.setdefault(event, []).append(Note(kind, who, time, text))
        return found

    def picture(self, event: int) -> bytes | None:
        """Return the thumbnail of an event."""
        row = self.connection.execute(
            "SELECT data FROM pictures WHERE event = ?", [event]
        ).fetchone()
        return None if row is None else bytes(row[0])

    def prune(self, most_events: int, oldest: float, most_bytes: int) -> int:
        """Delete the oldest events that are over, and pictures; return how many events.

        Parameters
        ----------
        most_events : int
            Events that may stay.
        oldest : float
            Those recorded before this time go.
        most_bytes : int
            Bytes of pictures that may stay; those of the latest events do.
        """
        with self.transaction():
            deleted = self.connection.execute(
                "DELETE FROM events WHERE state != 'open' AND (seen < ? OR id <= "
                "(SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?))",
                [oldest, most_events],
            ).rowcount
            self.connection.execute(
                "DELETE FROM pictures WHERE event IN (SELECT event FROM (SELECT event, "
                "sum(length(data)) OVER (ORDER BY event DESC) AS total FROM pictures) "
                "WHERE total > ?)",
                [most_bytes],
            )
            self.connection.execute(
                "UPDATE events SET media = NULL WHERE media IS NOT NULL "
                "AND id NOT IN (SELECT event FROM pictures)"
            )
        self.connection.execute("PRAGMA incremental_vacuum").fetchall()
        return deleted


class _Transaction:
    """All or nothing, also if the disk is full in the middle."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            try:
                self.connection.execute("COMMIT")
                return
            except sqlite3.Error:
                self._undo()
                raise
        self._undo()

    def _undo(self) -> None:
        if self.connection.in_transaction:  # a full disk may have ended it
            self.connection.execute("ROLLBACK")


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether an error means that the file is damaged, rather than busy or full."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, DamagedFileError) or (code & 0xFF) in DAMAGE


def _connected(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else path,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _free_name(path: Path) -> Path:
    """Return a name beside a file that no file has."""
    when = clock.strftime("%Y%m%dT%H%M%SZ", clock.gmtime())
    names = (f"{path.name}.damaged-{when}{more}" for more in ("", *(f"-{i}" for i in range(1000))))
    return next(path.with_name(name) for name in names if not path.with_name(name).exists())


def _readable(old: sqlite3.Connection, table: str, fields: Iterable[str]) -> Iterator[list[Any]]:
    """Yield the rows of a table of a damaged file: from its beginning, then from its end."""
    names = ", ".join(f'"{name}"' for name in fields)
    reached = None
    for order, sign in (("rowid", 1), ("rowid DESC", -1)):
        last = -math.inf
        try:
            for row in old.execute(f"SELECT rowid, {names} FROM {table} ORDER BY {order}"):
                place = sign * row[0]
                if place <= last or (sign < 0 and reached is not None and row[0] <= reached):
                    return  # pages that lead in a circle, or all that is there has been seen
                last = place
                yield list(row[1:])
            return
        except sqlite3.Error:
            reached = None if last == -math.inf else last


def _is_event(row: list[Any]) -> bool:
    """Tell whether a row of a damaged file is still an event."""
    values = dict(zip(FIELDS, row, strict=True))
    numbers = [values[name] for name in ("id", "change", "seen", "begin", "end", "n_samples")]
    texts = [values[name] for name in ("model", "stream", "state", "members")]
    if not all(isinstance(n, int | float) for n in numbers):
        return False
    try:
        is_mapping = isinstance(json.loads(values["members"]), dict)
    except (TypeError, ValueError):
        return False
    return is_mapping and all(isinstance(text, str) for text in texts)


def _claim(path: Path) -> sqlite3.Connection:
    """Return a lock that says the file is in use; the system frees it however we end."""
    if not path.parent.is_dir():
        raise InvalidInputError(f"There is no folder {path.parent} for events. Create it first.")
    guard = sqlite3.connect(
        f"{path.resolve()}.lock",  # one lock for one file, whatever links lead to it
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        guard.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        guard.close()
        if "locked" not in str(error):
            raise
        raise InvalidInputError(
            f"{path} is in use by another service. Stop that one, or name another file for events."
        ) from None
    return guard


def _to_row(event: StoredEvent) -> list[Any]:
    return [
        json.dumps(event.members) if name == "members" else getattr(event, name) for name in FIELDS
    ]


def _from_row(row: tuple[Any, ...], notes: tuple[Note, ...]) -> StoredEvent:
    values = dict(zip(FIELDS, row, strict=True))
    return StoredEvent(**values | {"members": json.loads(values["members"]), "notes": notes})


@dataclass(frozen=True)
class Retention:
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
    keep : Retention, optional
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

    def _record(self, event: StoredEvent) -> StoredEvent:
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

    def _interrupt(self, events: list[StoredEvent]) -> None:
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
