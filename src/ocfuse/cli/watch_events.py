"""What `ocfuse watch` prints of rows and of streams, at once and in the end."""

import datetime
import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import typer

from ocfuse.cli.output import (
    in_words,
    json_line,
    oddities,
    print_at_once,
    printable,
    warn,
)
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.notify import Alarm, LineJournal, Notifiers, Phase, Route, progress_file
from ocfuse.report.words import count
from ocfuse.streaming import EventTracker, StreamTable
from ocfuse.streaming.clock import ChunkLog
from ocfuse.streaming.resume import resume_stream, save_stream
from ocfuse.streaming.sensors import SENSOR_KINDS
from ocfuse.system.files import LineFile
from ocfuse.tables import TableDetector
from ocfuse.tables.dataframes import free_name
from ocfuse.tables.detector import RESULTS

#: Seconds between writes of the state of a stream.
SAVE_SECONDS = 5.0
#: A row with its scores, or a record to print. Columns of the table, which may have any name, are
#: under "columns".
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Flags:
    """Flags of the command on what is printed."""

    show_all: bool = False
    strict: bool = False
    json: bool = False
    quiet: bool = False

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Print why a row has no score, or stop there if that is asked for."""
        if self.strict:
            raise TableError(f"Row {number} cannot be scored. {error}") from error
        if not self.quiet:
            warn(f"Row {number} is left out: {in_words(error)}")


@dataclass(frozen=True)
class EventSettings:
    """Flags of the command on events; None leaves it to the model."""

    leave: float | None = None
    min_rows: int | None = None
    hold: int | None = None
    timeout: float | None = None
    #: File that lines of JSON are appended to, but not those of single rows.
    events: Path | None = None
    #: Where events are told to others.
    routes: Sequence[Route] = ()
    #: File that keeps the state of the stream over a restart.
    state: Path | None = None


class EventFile:
    """A file that events are appended to, a line of JSON each, and told to others from there."""

    def __init__(self, path: Path, routes: Sequence[Route]) -> None:
        self._file = LineFile(path)
        self._notifiers = None
        if routes:
            journal = LineJournal(path, alarm_of)
            self._notifiers = Notifiers(routes, journal, progress_file(path))

    def write(self, line: str) -> None:
        """Append a line, and tell others of it."""
        self._file.write(line.encode())
        if self._notifiers is not None:
            self._notifiers.wake()

    def close(self) -> None:
        """Close the file; what has not been told by then is told at the next start."""
        self._file.close()
        if self._notifiers is not None:
            self._notifiers.close()
            for trouble in self._notifiers.troubles:
                warn(f"Not told yet: {trouble}")


def alarm_of(record: Mapping[str, Any]) -> Alarm | None:
    """Return what is told to others of a record of rows, sensors or frames."""
    kind, moment = record["kind"], record.get("at") or record.get("time")
    about = {name: record[name] for name in ("model", "stream", "severity") if name in record}
    if kind not in ("alarm", "event"):
        phase: Phase = record.get("state", "note")
        times: dict[str, Any] = {"end" if phase == "end" else "begin": moment}
        source = " ".join(filter(None, (kind, record.get("channel"))))
        text = record.get("text") or _words(dict(record))
        return Alarm(source, phase, kind, text=text, **times, **about)
    worst = record.get("worst")
    scores = worst if isinstance(worst, Mapping) else record
    channels = record.get("channels", ())
    words = "; ".join(channel["words"] for channel in channels)
    is_new = kind == "alarm"
    return Alarm(
        event=record["event"],
        phase="begin" if is_new else "end",
        begin=moment if is_new else None,
        end=None if is_new else moment,
        score=scores["score"],
        threshold=record["threshold"],
        p_value=scores.get("p_value"),
        text=words or f"score {scores['score']:.4g} below {record['threshold']:.4g}",
        channels=channels,
        members=record.get("members", {}),
        **about,
    )


def make_reporter(
    model: TableDetector,
    settings: EventSettings,
    flags: Flags,
    is_live: bool,
    names: dict[str, str] | None = None,
) -> "Reporter | StreamReporter":
    """Return what prints alarms of single rows, or events of a stream.

    Records of JSON hold the `names`: of the model, and of the stream.
    """
    if isinstance(model, StreamTable):
        return StreamReporter(model, settings, flags, is_live, names)
    if settings != EventSettings():
        raise typer.BadParameter(
            "--leave, --min-rows, --hold, --timeout, --events, --notify and --state are for "
            "streams of sensors. The model knows rows that stand alone; learn one with ocfuse fit "
            "--stream."
        )
    return Reporter(model, flags)


@dataclass
class Reporter:
    """Print alarms, and rows that cannot be scored."""

    model: TableDetector
    flags: Flags
    n_alarms: int = 0
    n_unknown: int = 0  # rows that could not be scored, and may be anomalies
    n_judged: int = 0  # rows that were judged without some of their columns

    def report(self, rows: list[Row], without: str) -> None:
        """Print a line per alarm; `without` is the field of columns a row is judged without."""
        self.n_alarms += sum(bool(row["is_anomaly"]) for row in rows)
        self.n_judged += sum(row[without] is not None for row in rows)
        shown = rows if self.flags.show_all else [row for row in rows if row["is_anomaly"]]
        if not shown:
            return
        name = free_name("threshold", shown[0])
        offset = float(self.model.detector_.offset_)
        shown = [row | {name: offset} for row in shown]
        if self.flags.json:
            print_at_once("".join(map(json_line, shown)))
        else:
            print_at_once(printable("".join(_line(row, name, without) for row in shown)))

    def begin(self) -> None:
        """Do nothing at a header: rows stand alone."""

    def listen(self, has_come: bool) -> None:
        """Do nothing in a silence: rows may come when they like."""

    def end(self, n_rows: int, n_bad: int) -> None:
        """Print the counts."""
        if not self.flags.quiet:
            rows, alarms = count(n_rows, "row"), count(self.n_alarms, "alarm")
            judged = f", {self.n_judged:,} judged without some columns" * (self.n_judged > 0)
            warn(f"{rows}, {alarms}, {n_bad:,} left out{judged}")

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Print why a row has no score."""
        self.n_unknown += 1
        self.flags.complain(number, error)


def _line(row: dict[str, Any], threshold: str, without: str) -> str:
    state = "alarm" if row["is_anomaly"] else "normal"
    names = "  ".join(
        f"{key} {value}" for key, value in row.items() if key not in (*RESULTS, threshold, without)
    )
    judged = f"  judged without {row[without]}" if row[without] else ""
    return (
        f"{state}  {names}  score {row['score']:.4g}  threshold {row[threshold]:.4g}  "
        f"p-value {row['p_value']:.3g}{judged}\n"
    )


def patience(model: StreamTable) -> float | None:
    """Return the seconds of silence that are borne, at least 5; None if training had no dates."""
    step = model.usual_seconds
    return None if step is None else max(5.0, model.stream_.max_gap * step)


class StreamReporter:
    """Print events as they are raised and end, and stretches in which nothing is watched.

    If `is_live`, rows come as they are measured, and silence is an alarm.
    """

    def __init__(
        self,
        model: StreamTable,
        settings: EventSettings,
        flags: Flags,
        is_live: bool,
        names: dict[str, str] | None = None,
    ) -> None:
        self.model, self.flags, self.names = model, flags, names or {}
        self.events = RowEvents(
            model.stream_.tracker(settings.min_rows, settings.hold, settings.leave),
            # from two longest windows without a score on nothing is watched any more
            most_unscored=2 * max((*model.stream_.windows, 1)),
        )
        usual = patience(model) if is_live else None
        self.timeout = usual if settings.timeout is None else settings.timeout
        self.file = None
        if settings.events is not None:
            self.events.n_before = last_event(settings.events)
            self.file = EventFile(settings.events, settings.routes)
        self.n_silences = self.n_sensors = self._n_refused = 0
        self._last: Row = {"row": None, "columns": {}}
        self._why: tuple[Row, Row] | None = None  # the lowest row of an event, and its reasons
        self._kept: list[str] = []
        self._heard, self._is_silent = monotonic(), False
        self._state, self._saved_at = settings.state, monotonic()
        if self._state is not None:
            try:
                resume_stream(self._state, model)
            except InvalidInputError as error:
                warn(f"Warning: {error}")

    def _save_state(self, *, is_last: bool = False) -> None:
        """Write where the stream is, now and then."""
        if self._state is not None and (is_last or monotonic() - self._saved_at >= SAVE_SECONDS):
            self._saved_at = monotonic()
            try:
                save_stream(self._state, self.model)
            except OSError as error:
                warn(f"Warning: the state of the stream cannot be written: {error}")

    @property
    def n_alarms(self) -> int:
        """Events, failures of sensors, and times that nothing was watched."""
        events = self.events
        return events.n_events + events.n_blind + self.n_silences + self.n_sensors

    @property
    def n_unknown(self) -> int:
        """Rows that may be anomalies: none, as stretches without scores are alarms."""
        return 0

    def report(self, rows: list[Row], runs: Sequence[Any] | None, log: ChunkLog) -> None:
        """Print what happens in the next rows, whose runs may be known, and was counted there."""
        for i, row in enumerate(rows):
            self._last = row
            if self.flags.show_all:
                self._put({"kind": "row", **row, "threshold": self.events.threshold})
            for event in log.sensors.get(i, ()):
                self.n_sensors += event.state == "begin"
                self._say([event.at(row["row"]).as_dict() | {"columns": row["columns"]}])
            records = self.events.take(row, None if runs is None else runs[i])
            if records:
                told = [self._reasoned(record, rows, log) for record in records]
                self._say(told, log.counts_after(i, self.model.counts))
            if log.drifted.get(i):
                self._say([{"kind": "drift", **_place(row), "channels": log.drifted[i]}])
        self._save_state()
        worst = self.events.worst
        if worst is not None and (self._why is None or self._why[0] is not worst):
            self._why = worst, self._reasons(worst, rows, log)
        self._print()

    def _reasoned(self, record: Row, rows: list[Row], log: ChunkLog) -> Row:
        """Return a record with how grave it is, and the channels and members behind it."""
        if record["kind"] not in ("alarm", "event"):
            return record
        worst = record["worst"] if record["kind"] == "event" else record
        if record["kind"] == "event" and self._why is not None:
            known, reasons = self._why
            if known["row"] == worst["row"]:
                return record | reasons
        return record | self._reasons(worst, rows, log)

    def _reasons(self, row: Row, rows: list[Row], log: ChunkLog) -> Row:
        """Return what lies behind the score of one of these rows."""
        severity = self.model.detector_.conformal_.severity([row["score"]])[0]
        found: Row = {"severity": round(float(severity), 2)}
        place = next((i for i, one in enumerate(rows) if one["row"] == row["row"]), None)
        if place is None:
            return found
        readings, members = self.model.reasons(log, place)
        found["channels"] = [reading.as_dict() for reading in readings]
        return found | {"members": {name: float(f"{x:.6g}") for name, x in members.items()}}

    def begin(self) -> None:
        """Begin another file at a header, which without times is another run."""
        if not self.model.has_times:
            self.model.begin_run()
            self._finish()

    def _finish(self) -> None:
        """End the event that lasts."""
        self._say([self._reasoned(record, [], ChunkLog(0)) for record in self.events.finish()])

    def listen(self, has_come: bool) -> None:
        """Print when no row has come for too long, and when they come again."""
        now = monotonic()
        silence = now - self._heard
        if has_come:
            if self._is_silent:
                self._say([self._silence("end", silence)])
            self._heard, self._is_silent = now, False
        elif self.timeout is not None and silence > self.timeout and not self._is_silent:
            self._is_silent = True
            self.n_silences += 1
            self._say([self._silence("begin", silence)])

    def _silence(self, state: str, seconds: float) -> Row:
        """Return a record of silence after the last row."""
        return {"kind": "silent", "state": state, **_place(self._last), "seconds": seconds}

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Print why a row cannot be read; with many of them nothing is watched."""
        self.flags.complain(number, error)
        self._n_refused += 1
        self._say(self.events.miss({"row": number, "columns": {}}))

    def end(self, n_rows: int, n_bad: int) -> None:
        """Print the event that lasts, and how much it was."""
        self._save_state(is_last=True)
        self._finish()
        if self.file is not None:
            self.file.close()
        events, counts = self.events, self.model.counts
        if self.flags.json:
            self._put(
                {
                    "kind": "summary",
                    "rows": n_rows,
                    "events": events.n_events,
                    "without_score": events.n_unscored,
                    "left_out": n_bad,
                    "blind": events.n_blind,
                    "silences": self.n_silences,
                    "sensors": self.n_sensors,
                    "counts": counts,
                    **_place(self._last),
                    **self._origin(),
                }
            )
            self._print()
        if not self.flags.quiet:
            odd = [f"{events.n_unscored:,} without a score", *oddities(counts)]
            both = f"{count(n_rows, 'row')}, {count(events.n_events, 'event')}"
            if self.n_sensors:
                both += f", {count(self.n_sensors, 'sensor failure')}"
            warn(f"{both}, {n_bad:,} left out; {', '.join(odd)}")

    def _say(self, records: Iterable[Row], counts: dict[str, int] | None = None) -> None:
        """Print records at once; counts are those of the model, unless it is ahead of them."""
        for record in records:
            if record["kind"] == "blind":
                so_far = self.model.counts if counts is None else counts
                record |= {"counts": so_far | {"refused": self._n_refused}}
            record |= self._origin()
            self._put(record)
            self._print()
            if self.file is not None:
                self.file.write(json_line(record))

    def _origin(self) -> Row:
        """Return the time of day, model and stream."""
        now = datetime.datetime.now().astimezone()
        return {"at": now.isoformat(timespec="milliseconds"), **self.names}

    def _put(self, record: Row) -> None:
        """Keep a record until `_print`: rows that came together are printed together."""
        self._kept.append(
            json_line(record) if self.flags.json else printable(_words(record)) + "\n"
        )

    def _print(self) -> None:
        """Print what is kept."""
        text = "".join(self._kept)
        self._kept.clear()
        if text:
            print_at_once(text)


def _words(record: Row) -> str:
    """Return a record as a line to read."""
    kind = record["kind"]
    if kind == "row":
        # without a score, whether it is an anomaly is not known
        has_score = not math.isnan(record["score"])
        state = "no score" if not has_score else "alarm" if record["is_anomaly"] else "normal"
        return f"{state}  {_named(record)}  {_scores(record)}"
    if kind == "alarm":
        since, members = f"since row {record['start']['row']}", record.get("members", {})
        lowest = ", ".join(f"{name} {x:.3g}" for name, x in [*members.items()][:3] if x < 0)
        return (
            f"event {record['event']}  {_named(record)}{_channels(record)}  {_scores(record)}  "
            f"severity {record['severity']:.1f}  {since}"
            + (f"  members {lowest}" if lowest else "")
        )
    if kind == "event":
        first, last, worst = record["start"]["row"], record["last"], record["worst"]
        return (
            f"event {record['event']} is over  {_named(last)}{_channels(record)}  rows {first} to "
            f"{last['row']}  lowest score {worst['score']:.4g} in row {worst['row']}  "
            f"severity {record['severity']:.1f}"
        )
    if kind in SENSOR_KINDS:
        return f"{record['text']}  {_named(record)}"
    if kind == "blind":
        odd = ", ".join(oddities(record["counts"])) or "windows are not full yet"
        return f"not watched  {_named(record)}  no score for {record['rows']} rows; so far {odd}"
    if kind == "drift":
        return (
            f"drift  {_named(record)}  {', '.join(record['channels'])}  level has left what was "
            "learned: a lasting fault, or drift; if it is drift, learn again"
        )
    if record["state"] == "begin":
        return f"silent  no row for {record['seconds']:.1f} s"
    return f"rows come again after {record['seconds']:.1f} s"


def _named(row: Row) -> str:
    """Return row, id and time by the names of their columns."""
    named = [("row", row["row"]), *row["columns"].items()]
    return "  ".join(f"{name} {value}" for name, value in named)


def _channels(record: Row) -> str:
    """Return the channels behind a score with what is usual of them."""
    words = "; ".join(channel["words"] for channel in record.get("channels", ()))
    return f"  {words}" if words else ""


def _scores(row: Row) -> str:
    return (
        f"score {row['score']:.4g}  threshold {row['threshold']:.4g}  p-value {row['p_value']:.3g}"
    )


class RowEvents:
    """Join alarms of rows to events, as a tracker does.

    More than `most_unscored` rows in a row without a score are a blind stretch: some have none, as
    windows must be full first.
    """

    def __init__(self, tracker: EventTracker, most_unscored: int) -> None:
        self.threshold = tracker.enter
        self.tracker = tracker
        self.most_unscored = most_unscored
        self.n_events = self.n_blind = self.n_unscored = 0
        self.n_before = 0  # events that the file of an earlier start holds
        self._recent: deque[Row] = deque(maxlen=tracker.min_duration)
        self._event: Row | None = None
        self._run: Any = None
        self._blind_rows = 0

    def take(self, row: Row, run: Any = None) -> list[Row]:
        """Take the next row, and the run that it is of; return the records that it causes.

        No event goes on into another run.
        """
        records = [] if run == self._run else self.finish()
        self._run = run
        if math.isnan(row["score"]):
            self.n_unscored += 1
            return records + self.miss(row)
        self._blind_rows = 0
        self._recent.append(row)
        self.tracker.update(row["score"])
        if not self.tracker.is_on:
            return records + self._ended()
        if self._event is None:
            return [*records, self._raised(row)]
        if self.tracker.is_held:
            return records
        # of an alarm that goes on with the event, some rows have come before it was raised
        worst = min(self._event["worst"], *self._recent, key=lambda seen: seen["score"])
        self._event |= {"last": row, "worst": worst}
        return records

    def miss(self, row: Row) -> list[Row]:
        """Count a row of the same run without a score, or one that cannot be read."""
        self._blind_rows += 1
        self.tracker.update(math.nan)
        records = [] if self.tracker.is_on else self._ended()
        if self._blind_rows == self.most_unscored + 1:
            self.n_blind += 1
            records.append({"kind": "blind", **_place(row), "rows": self._blind_rows})
        return records

    def finish(self) -> list[Row]:
        """End the event that lasts, as the run ends here; return its record."""
        self.tracker.finish()
        self._recent.clear()
        return self._ended()

    def _raised(self, row: Row) -> Row:
        self.n_events += 1
        worst = min(self._recent, key=lambda seen: seen["score"])
        start = _place(self._recent[0])
        self._event = {"start": start, "raised": _place(row), "last": row, "worst": worst}
        alarm = {"kind": "alarm", "event": self.number, **row, "threshold": self.threshold}
        return alarm | {"start": start}

    def _ended(self) -> list[Row]:
        if self._event is None:
            return []
        event, self._event = self._event, None
        last = _place(event["last"])
        event |= {**last, "last": last, "threshold": self.threshold}
        return [{"kind": "event", "event": self.number, **event}]

    @property
    def number(self) -> int:
        """Number of the last event."""
        return self.n_before + self.n_events

    @property
    def worst(self) -> Row | None:
        """The row with the lowest score of the event that lasts."""
        return None if self._event is None else self._event["worst"]


def last_event(path: Path) -> int:
    """Return the highest number of an event in a file of JSON lines; 0 if there is none."""
    if not path.is_file():
        return 0
    highest = 0
    with path.open("rb") as file:
        for line in file:
            with suppress(ValueError, TypeError, AttributeError):  # of another program
                highest = max(highest, int(json.loads(line).get("event", 0)))
    return highest


def _place(row: Row) -> Row:
    """Return number and columns of a row."""
    return {name: row[name] for name in ("row", "columns")}
