"""The file of events: SQLite with a write-ahead log."""

import json
import math
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.event import VERDICTS, Note, StoredEvent

SCHEMA = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, change INTEGER NOT NULL, model TEXT NOT NULL, stream TEXT NOT NULL,
    seen REAL NOT NULL, begin REAL NOT NULL, "end" REAL NOT NULL, state TEXT NOT NULL, lowest REAL,
    threshold REAL, p_value REAL, local_p REAL, members TEXT NOT NULL, n_samples INTEGER NOT NULL,
    media TEXT, kind TEXT NOT NULL DEFAULT 'anomaly', severity REAL,
    channels TEXT NOT NULL DEFAULT '[]', text TEXT NOT NULL DEFAULT '',
    n_rows INTEGER NOT NULL DEFAULT 0
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
CREATE TABLE event_rows (
    event INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE, data BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

#: What makes the tables of one version of the file those of the next.
UPDATES = {
    1: """
ALTER TABLE events RENAME COLUMN "offset" TO threshold;
ALTER TABLE events ADD COLUMN kind TEXT NOT NULL DEFAULT 'anomaly';
ALTER TABLE events ADD COLUMN severity REAL;
ALTER TABLE events ADD COLUMN channels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE events ADD COLUMN text TEXT NOT NULL DEFAULT '';
""",
    2: """
ALTER TABLE events ADD COLUMN n_rows INTEGER NOT NULL DEFAULT 0;
CREATE TABLE event_rows (
    event INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE, data BLOB NOT NULL
);
""",
}
#: "ocfe" as a number, which marks our files, and the version of the tables above.
OURS, LATEST = 0x6F636665, 3
#: The last verdict on an event in SQL.
VERDICT = (
    "(SELECT notes.kind FROM notes WHERE notes.event = events.id AND notes.kind IN "
    f"({', '.join(repr(kind) for kind in VERDICTS)}) ORDER BY notes.number DESC LIMIT 1)"
)

#: Columns of events: all of an event but its notes, which have a table of their own.
FIELDS = tuple(field.name for field in fields(StoredEvent) if field.name != "notes")
#: Those that are kept as JSON.
JSON_FIELDS = ("members", "channels")
NAMES = ", ".join(f'"{name}"' for name in FIELDS)
UPSERT = (
    f"INSERT INTO events ({NAMES}) VALUES ({', '.join('?' * len(FIELDS))}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f'"{name}" = excluded."{name}"' for name in FIELDS[1:])
)


class DamagedFileError(sqlite3.DatabaseError):
    """Say that a file of events has pages that make no sense."""


@dataclass(frozen=True)
class Choice:
    """Which events are asked for, by fields of `StoredEvent`; None is any."""

    model: str | None = None
    stream: str | None = None
    state: str | None = None
    acknowledged: bool | None = None
    kind: str | None = None
    verdict: str | None = None

    def matches(self, event: StoredEvent) -> bool:
        """Return whether an event is asked for."""
        return (
            self.model in (None, event.model)
            and self.stream in (None, event.stream)
            and self.state in (None, event.state)
            and self.kind in (None, event.kind)
            and self.acknowledged in (None, event.acknowledgement is not None)
            and (self.verdict is None or event.verdict is not None)
            and self.verdict in (None, event.verdict and event.verdict.kind)
        )

    def condition(self) -> tuple[str, list[str]]:
        """Return the same in SQL, and the values of its question marks."""
        fields = ("model", "stream", "state", "kind")
        names = [name for name in fields if getattr(self, name) is not None]
        parts = [f"{name} = ?" for name in names]
        if self.acknowledged is not None:
            parts.append(
                f"{'' if self.acknowledged else 'NOT '}EXISTS (SELECT 1 FROM notes "
                "WHERE notes.event = events.id AND notes.kind = 'acknowledge')"
            )
        values = [getattr(self, name) for name in names]
        if self.verdict is not None:
            parts.append(f"{VERDICT} = ?")
            values.append(self.verdict)
        return " AND ".join(["TRUE", *parts]), values


class Database:
    """Read and write events in a file, or in memory; used by one thread at a time.

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
        """Put a damaged file aside and begin a new one with all that can still be read.

        The number of events that were taken over is returned.
        """
        if self._path is None:
            raise DamagedFileError("events in memory have no file")
        self.connection.close()
        path = self._path.resolve()
        if self.aside is None or not self.is_lost:
            self.aside = _free_name(path)
            for part in ("-wal", "-shm", ""):  # in this order: no log may stay behind alone
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
            for row in _readable(old, "events", _fields_of(old)):
                if _is_event(row):
                    self.connection.execute(UPSERT, row)
                    kept.add(row[0])
            note_fields = ("event", "number", '"kind"', "who", '"time"', '"text"')
            for row in _readable(old, "notes", note_fields):
                if row[0] in kept and None not in row:
                    self.connection.execute(
                        "INSERT OR IGNORE INTO notes VALUES (?, ?, ?, ?, ?, ?)", row
                    )
            for table in ("pictures", "event_rows"):
                for row in _readable(old, table, ("event", "data")):
                    if row[0] in kept and isinstance(row[1], bytes):
                        self.connection.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", row)
            counted = dict(_readable(old, "counters", ("name", "value")))
            for name in ("id", "change"):
                last = self.connection.execute(f"SELECT max({name}) FROM events").fetchone()[0]
                known = counted.get(name)
                last = max(last or 0, known if isinstance(known, int) else 0)
                self.connection.execute("INSERT INTO counters VALUES (?, ?)", [name, last])
        return len(kept)

    def _prepare(self) -> None:
        """Check that the file is one of ours, and make its tables if there are none."""
        ours, latest = OURS, LATEST
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        n_tables = self._n_tables(is_own=application == ours and version <= latest)
        if n_tables and application != ours:
            raise InvalidInputError(
                f"{self.shown} is a database of another program. Name another file for events."
            )
        if version > latest:
            raise InvalidInputError(
                f"{self.shown} was written by a later version of ocfuse (version {version} of the "
                f"file; this one reads up to {latest}). Update ocfuse, or name another file."
            )
        if not n_tables:
            self.connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self.connection.execute("PRAGMA journal_mode = WAL")
        # a write has reached the disk when it returns: neither a crash nor a power cut undoes it
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        if not n_tables:
            self.connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA application_id = {ours}; "
                f"PRAGMA user_version = {latest}; "
                f"INSERT INTO counters VALUES ('store', {secrets.randbits(48)}); COMMIT;"
            )
        else:
            self._update(version, latest)
        with self.transaction():  # a folder that cannot be written to is an error now
            self.connection.execute(
                "INSERT INTO counters VALUES ('starts', 1) "
                "ON CONFLICT (name) DO UPDATE SET value = value + 1"
            )

    def _update(self, version: int, latest: int) -> None:
        """Make the tables of an older version those of this one, all or nothing."""
        if version == latest:
            return
        with self.transaction():
            for before in range(version, latest):
                for statement in UPDATES[before].split(";"):
                    self.connection.execute(statement)
            self.connection.execute(f"PRAGMA user_version = {latest}")

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

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that is written inside or nothing, also if the disk is full in the middle."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # a full disk may have ended it
                self.connection.execute("ROLLBACK")
            raise

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
        rows: Mapping[int, bytes],
    ) -> None:
        """Write events as they are now, their new notes, pictures and rows; all or nothing."""
        with self.transaction():
            for event in events:
                self.connection.execute(UPSERT, _cells(event))
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
                "INSERT OR REPLACE INTO event_rows VALUES (?, ?)", list(rows.items())
            )
            self.connection.executemany(
                "INSERT OR REPLACE INTO counters VALUES (?, ?)", list(counters.items())
            )

    def read(self, where: str, values: Iterable[Any], order: str, limit: int) -> list[StoredEvent]:
        """Return events with their notes; condition and order are SQL of this package's own."""
        return events_of(self.connection, where, values, order, limit)

    def count_verdicts(self) -> list[tuple[str, str, int, int]]:
        """Return by model and last verdict how many alarms there are, and how many with rows."""
        return self.connection.execute(
            "SELECT model, verdict, count(*), sum(n_rows > 0) FROM "
            f"(SELECT model, n_rows, {VERDICT} AS verdict FROM events WHERE kind = 'anomaly') "
            "WHERE verdict IS NOT NULL "
            "GROUP BY model, verdict ORDER BY model, verdict"
        ).fetchall()

    def data(self, table: Literal["pictures", "event_rows"], event: int) -> bytes | None:
        """Return the thumbnail of an event, or its rows."""
        row = self.connection.execute(
            f"SELECT data FROM {table} WHERE event = ?", [event]
        ).fetchone()
        return None if row is None else bytes(row[0])

    def prune(
        self, most_events: int, oldest: float, picture_bytes: int, row_bytes: int
    ) -> list[tuple[str, str, int]]:
        """Delete events that are over, pictures and rows; return model, stream, number of events.

        Events recorded before `oldest` go, and those before the latest `most_events`; pictures
        of the latest events stay, up to `picture_bytes`. Rows of events with a verdict stay first,
        then those of the latest, up to `row_bytes`.
        """
        with self.transaction():
            gone = self.connection.execute(
                "DELETE FROM events WHERE state != 'open' AND (seen < ? OR id <= "
                "(SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?)) "
                "RETURNING model, stream, id",
                [oldest, most_events],
            ).fetchall()
            self._prune_data("pictures", "event DESC", picture_bytes, "media = NULL")
            is_judged = f"(SELECT {VERDICT} IS NOT NULL FROM events WHERE events.id = event)"
            order = f"{is_judged} DESC, event DESC"
            self._prune_data("event_rows", order, row_bytes, "n_rows = 0")
        self.connection.execute("PRAGMA incremental_vacuum").fetchall()
        return gone

    def _prune_data(self, table: str, order: str, most_bytes: int, without: str) -> None:
        """Delete pictures or rows but the first in an order."""
        gone = self.connection.execute(
            f"DELETE FROM {table} WHERE event IN (SELECT event FROM (SELECT event, "
            f"sum(length(data)) OVER (ORDER BY {order}) AS total FROM {table}) "
            "WHERE total > ?) RETURNING event",
            [most_bytes],
        ).fetchall()
        self.connection.executemany(f"UPDATE events SET {without} WHERE id = ?", gone)


def judged_events(path: Path) -> list[tuple[StoredEvent, bytes | None]]:
    """Return the events of a file whose last verdict is real or a false alarm, and their rows.

    The file may be in use by a service, and is not changed.
    """
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0)
        try:
            return _judged(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InvalidInputError(
            f"{path} cannot be read as a file of events: {error}. Expected the file that `ocfuse "
            "serve --events` writes."
        ) from None


def _judged(connection: sqlite3.Connection, path: Path) -> list[tuple[StoredEvent, bytes | None]]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != OURS:
        raise InvalidInputError(
            f"{path} is no file of events. Expected the one that `ocfuse serve --events` writes."
        )
    if version != LATEST:
        raise InvalidInputError(
            f"{path} is of version {version} of the file; this ocfuse reads version {LATEST}. An "
            "older file is brought up to date when `ocfuse serve --events` is started with it; for "
            "a newer one, update ocfuse."
        )
    events = events_of(connection, f"{VERDICT} IN ('real', 'false alarm')", [], "id", -1)
    packed = dict(connection.execute("SELECT event, data FROM event_rows"))
    return [(event, packed.get(event.id)) for event in events]


def events_of(
    connection: sqlite3.Connection, where: str, values: Iterable[Any], order: str, limit: int
) -> list[StoredEvent]:
    """Return events with their notes; condition and order are SQL of this package's own."""
    rows = connection.execute(
        f"SELECT {NAMES} FROM events WHERE {where} ORDER BY {order} LIMIT ?", [*values, limit]
    ).fetchall()
    notes: dict[int, list[Note]] = {row[0]: [] for row in rows}
    for event, *said in connection.execute(
        "SELECT event, kind, who, time, text FROM notes "
        "WHERE event IN (SELECT value FROM json_each(?)) ORDER BY event, number",
        [json.dumps([*notes])],
    ):
        notes[event].append(Note(*said))
    found = []
    for row in rows:
        cells = dict(zip(FIELDS, row, strict=True))
        cells |= {name: json.loads(cells[name]) for name in JSON_FIELDS}
        found.append(StoredEvent(**cells, notes=tuple(notes[row[0]])))
    return found


def _cells(event: StoredEvent) -> list[Any]:
    cells = {name: getattr(event, name) for name in FIELDS}
    return list((cells | {name: json.dumps(cells[name]) for name in JSON_FIELDS}).values())


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means that the file is damaged, rather than busy or full."""
    code = getattr(error, "sqlite_errorcode", 0)
    # pages that make no sense (SQLITE_CORRUPT), or a first page that is none of SQLite's own
    return isinstance(error, DamagedFileError) or (code & 0xFF) in (11, 26)


def _connected(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:" if path is None else path,
        timeout=2.0,  # seconds that a write waits for another program that uses the file
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _free_name(path: Path) -> Path:
    """Return a name beside a file that no file has."""
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (f"{path.name}.damaged-{when}{more}" for more in ("", *(f"-{i}" for i in range(1000))))
    return next(path.with_name(name) for name in names if not path.with_name(name).exists())


def _readable(old: sqlite3.Connection, table: str, fields: Iterable[str]) -> Iterator[list[Any]]:
    """Yield the rows of a table of a damaged file: from its beginning, then from its end."""
    names = ", ".join(fields)
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


def _fields_of(old: sqlite3.Connection) -> list[str]:
    """Return where the fields of events are in a file that may be of an older version."""
    with suppress(sqlite3.Error):
        columns = {row[1] for row in old.execute("PRAGMA table_info(events)")}
        if columns:
            before = {"threshold": '"offset"', "kind": "'anomaly'", "severity": "NULL"}
            before |= {"channels": "'[]'", "text": "''", "n_rows": "0"}
            return [f'"{name}"' if name in columns else before[name] for name in FIELDS]
    return [f'"{name}"' for name in FIELDS]


def _is_event(row: list[Any]) -> bool:
    """Return whether a row of a damaged file is still an event."""
    values = dict(zip(FIELDS, row, strict=True))
    counts = ("id", "change", "seen", "begin", "end", "n_samples", "n_rows")
    numbers = [values[name] for name in counts]
    names = ("model", "stream", "state", "members", "kind", "channels", "text")
    texts = [values[name] for name in names]
    if not all(isinstance(n, int | float) for n in numbers):
        return False
    try:
        is_mapping = isinstance(json.loads(values["members"]), dict)
        is_mapping &= isinstance(json.loads(values["channels"]), list)
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
