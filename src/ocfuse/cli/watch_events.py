"""What `ocfuse watch` prints of rows and of streams, at once and in the end."""

import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from ocfuse.streaming import LiveMonitor, StreamTable
from ocfuse.streaming.clock import ChunkLog
from ocfuse.streaming.monitor import OpenRecords, place_of
from ocfuse.streaming.resume import resume_stream, save_stream
from ocfuse.streaming.sensors import SENSOR_KINDS
from ocfuse.streaming.slow import SlowChange, SlowSettings, change_words, judged_again
from ocfuse.streaming.status import CHANGED
from ocfuse.system.files import LineFile
from ocfuse.tables import TableDetector
from ocfuse.tables.dataframes import free_name
from ocfuse.tables.detector import RESULTS, RULE

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
    #: What follows slow changes, and tests for them.
    slow: SlowSettings = field(default_factory=SlowSettings)


class NotTold(logging.Handler):
    """Print why others could not be told of an event, in words."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line to stderr."""
        about: Mapping[str, str] = getattr(record, "about", {})
        if about:
            warn("Not told to {route}: {error}. It {message}.".format(**about))


class EventFile:
    """A file that events are appended to, a line of JSON each, and told to others from there.

    What is open in the file has been interrupted: the program that wrote it was killed. Only one
    program at a time may write to a file.

    Attributes
    ----------
    n_before : int
        The highest number of an event in the file; 0 if there is none.
    """

    def __init__(self, path: Path, routes: Sequence[Route]) -> None:
        self.n_before, before = 0, OpenRecords()
        for line in path.read_bytes().split(b"\n") if path.is_file() else ():
            with suppress(ValueError, TypeError, AttributeError, KeyError):  # of another program
                record = json.loads(line)
                self.n_before = max(self.n_before, int(record.get("event", 0)))
                before.take(record)
        self._file = LineFile(path)
        for record in before.interrupted():
            self._file.write(json_line(record).encode())
        self._notifiers = None
        if routes:
            logger = logging.getLogger(Notifiers.__module__)
            logger.handlers, logger.propagate = [NotTold()], False
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
    others: Mapping[str, Phase] = {"alarm": "begin", "event": "end"}
    phase: Phase = record.get("state") or others.get(kind, "note")
    begun = record.get("begun", record)
    about["begin"] = begun.get("at", moment)
    about["end"] = moment if phase in ("end", "interrupted") else None
    if kind not in others:
        # a sensor may fail again: each failure has a name of its own
        what = " ".join(filter(None, (kind, record.get("channel"))))
        name = f"{what} {about['begin']} {begun.get('row', begun.get('frame'))}"
        text = record.get("text") or _words(dict(record))
        return Alarm(name, phase, kind, text=text, **about)
    worst = record.get("worst")
    scores = worst if isinstance(worst, Mapping) else record
    channels = record.get("channels", ())
    words = "; ".join(channel["words"] for channel in channels)
    return Alarm(
        event=record["event"],
        phase=phase,
        score=scores["score"],
        threshold=record["threshold"],
        p_value=scores.get("p_value"),
        text=words
        or f"no single channel, score {scores['score']:.4g} below {record['threshold']:.4g}",
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
    if replace(settings, slow=SlowSettings()) != EventSettings():
        raise typer.BadParameter(
            "--leave, --min-rows, --hold, --timeout, --events, --notify and --state are for "
            "streams of sensors. The model knows rows that stand alone; learn one with ocfuse fit "
            "--stream."
        )
    return Reporter(model, flags, SlowChange.of(model.detector_, settings.slow))


@dataclass
class Reporter:
    """Print alarms, and rows that cannot be scored."""

    model: TableDetector
    flags: Flags
    slow: SlowChange = field(default_factory=SlowChange)
    n_alarms: int = 0
    n_broken: int = 0  # rows that break a limit
    n_unknown: int = 0  # rows that could not be scored, and may be anomalies
    n_judged: int = 0  # rows that were judged without some of their columns

    def report(self, rows: list[Row], without: str) -> None:
        """Print a line per alarm; `without` is the field of columns a row is judged without."""
        changes = self._followed(rows)
        self.n_alarms += sum(bool(row["is_anomaly"]) for row in rows) + len(changes)
        if self.model.limits_ is not None:
            self.n_broken += sum(row[RULE] is not None for row in rows)
        self.n_judged += sum(row[without] is not None for row in rows)
        shown = rows if self.flags.show_all else [row for row in rows if row["is_anomaly"]]
        if shown:
            name = free_name("threshold", shown[0])
            offset = float(self.model.detector_.offset_)
            shown = [row | {name: offset} for row in shown]
            if self.flags.json:
                print_at_once("".join(map(json_line, shown)))
            else:
                has_limits = self.model.limits_ is not None
                lines = [_line(row, name, without, has_limits) for row in shown]
                print_at_once(printable("".join(lines)))
        for change in changes:
            line = json_line(change) if self.flags.json else f"{_words(change)}\n"
            print_at_once(printable(line) if not self.flags.json else line)

    def _followed(self, rows: list[Row]) -> list[Row]:
        """Judge rows by the threshold of now; return the changes of their source."""
        told, detector = [], self.model.detector_
        shift = free_name("shift", rows[0]) if rows else ""
        for row in rows:
            score = float(row["score"])
            if self.slow.rolling is not None:
                about = self.slow.shift, detector.conformal_, float(detector.offset_)
                row |= judged_again(row, *about) | {shift: self.slow.shift}
            change = self.slow.take(score, in_event=bool(row["is_anomaly"]))
            if change is not None:
                number = next(iter(row.values()))
                place = {"row": number, "columns": {}}
                told.append(place | self.slow.record(change))
        return told

    def begin(self) -> None:
        """Do nothing at a header: rows stand alone."""

    def listen(self, has_come: bool) -> None:
        """Do nothing in a silence: rows may come when they like."""

    def end(self, n_rows: int, n_bad: int, *, has_failed: bool = False) -> None:
        """Print the counts, but not of nothing before an error."""
        if not self.flags.quiet and (n_rows or not has_failed):
            rows, alarms = count(n_rows, "row"), count(self.n_alarms, "alarm")
            alarms += f" ({self.n_broken:,} of them beyond a limit)" * (self.n_broken > 0)
            judged = f", {self.n_judged:,} judged without some columns" * (self.n_judged > 0)
            warn(f"{rows}, {alarms}, {n_bad:,} left out{judged}")

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Print why a row has no score."""
        self.n_unknown += 1
        self.flags.complain(number, error)


def _line(row: dict[str, Any], threshold: str, without: str, has_limits: bool) -> str:
    state = "alarm" if row["is_anomaly"] else "normal"
    rule = row.get(RULE) if row["is_anomaly"] else None
    hidden = (*RESULTS, threshold, without, *([RULE] if has_limits else []))
    names = "  ".join(f"{key} {value}" for key, value in row.items() if key not in hidden)
    state += f"  limit broken: {rule}" if has_limits and rule else ""
    judged = f"  judged without {row[without]}" if row[without] else ""
    return (
        f"{state}  {names}  score {row['score']:.4g}  threshold {row[threshold]:.4g}  "
        f"p-value {row['p_value']:.3g}{judged}\n"
    )


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
        self.flags = flags
        path = settings.events
        self.file = None if path is None else EventFile(path, settings.routes)
        self.monitor = LiveMonitor(
            model,
            min_rows=settings.min_rows,
            hold=settings.hold,
            leave=settings.leave,
            timeout=settings.timeout,
            is_live=is_live,
            names=names,
            slow=settings.slow,
            n_before=0 if self.file is None else self.file.n_before,
        )
        self._kept: list[str] = []
        self._state, self._saved_at = settings.state, monotonic()
        if self._state is not None:
            try:
                found = resume_stream(self._state, model)
                if found is not None and self.monitor.slow is not None:
                    self.monitor.slow.go_on_from(found.slow)
            except InvalidInputError as error:
                warn(f"Warning: {error}")

    def _save_state(self, *, is_last: bool = False) -> None:
        """Write where the stream is, now and then."""
        if self._state is not None and (is_last or monotonic() - self._saved_at >= SAVE_SECONDS):
            self._saved_at = monotonic()
            try:
                save_stream(self._state, self.monitor.model, slow=self.monitor.slow)
            except OSError as error:
                warn(f"Warning: the state of the stream cannot be written: {error}")

    @property
    def n_alarms(self) -> int:
        """Events, failures of sensors, and times that nothing was watched."""
        return self.monitor.n_alarms

    @property
    def n_unknown(self) -> int:
        """Rows that may be anomalies: none, as stretches without scores are alarms."""
        return 0

    def report(self, rows: list[Row], runs: Sequence[Any] | None, log: ChunkLog) -> None:
        """Print what happens in the next rows, whose runs may be known, and was counted there."""
        for row, records in self.monitor.follow(rows, runs, log):
            if self.flags.show_all:
                self._put({"kind": "row", **row, "threshold": self.monitor.events.threshold})
            self._say(records)
        self._save_state()
        self._print()

    def begin(self) -> None:
        """Begin another file at a header, which without times is another run."""
        if not self.monitor.model.has_times:
            self._say(self.monitor.begin_run())

    def listen(self, has_come: bool) -> None:
        """Print when no row has come for too long, and when they come again."""
        self._say(self.monitor.listen(has_come))

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Print why a row cannot be read; with many of them nothing is watched."""
        self.flags.complain(number, error)
        self._say(self.monitor.miss(number))

    def end(self, n_rows: int, n_bad: int, *, has_failed: bool = False) -> None:
        """Print what has not ended, and how much it was, but not of nothing before an error."""
        self._save_state(is_last=True)
        monitor = self.monitor
        self._say(monitor.finish())
        if self.file is not None:
            self.file.close()
        if has_failed and not n_rows:
            return
        events, counts = monitor.events, monitor.model.counts
        if self.flags.json:
            self._put(
                {
                    "kind": "summary",
                    "rows": n_rows,
                    "events": events.n_events,
                    "without_score": events.n_unscored,
                    "left_out": n_bad,
                    "blind": events.n_blind,
                    "silences": monitor.n_silences,
                    "sensors": monitor.n_sensors,
                    **({} if monitor.slow is None else {"changes": monitor.n_changes}),
                    **({"limits": monitor.n_limits} if monitor.model.limits_ is not None else {}),
                    "counts": counts,
                    **place_of(monitor.last),
                    **monitor.origin(),
                }
            )
            self._print()
        if not self.flags.quiet:
            odd = [f"{events.n_unscored:,} without a score", *oddities(counts)]
            both = f"{count(n_rows, 'row')}, {count(events.n_events, 'event')}"
            if monitor.n_changes:
                both += f", {count(monitor.n_changes, 'change')} of the source"
            if monitor.n_sensors:
                both += f", {count(monitor.n_sensors, 'sensor failure')}"
            if monitor.n_limits:
                both += f", {count(monitor.n_limits, 'limit')} broken"
            warn(f"{both}, {n_bad:,} left out; {', '.join(odd)}")

    def _say(self, records: Iterable[Row]) -> None:
        """Print records at once, and append them to the file of events."""
        for record in records:
            self._put(record)
            self._print()
            if self.file is not None:
                self.file.write(json_line(record))

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
    kind, is_cut = record["kind"], record.get("state") == "interrupted"
    if is_cut and kind != "event":
        return f"interrupted: {_words(record | {'state': 'begin'})}"
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
        state = "interrupted, its end was not seen" if is_cut else "is over"
        return (
            f"event {record['event']} {state}  {_named(last)}{_channels(record)}  rows {first} to "
            f"{last['row']}  lowest score {worst['score']:.4g} in row {worst['row']}  "
            f"severity {record['severity']:.1f}"
        )
    if kind == CHANGED:
        return f"{change_words(record)}  {_named(record)}"
    if kind in (*SENSOR_KINDS, "limit"):
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
    return f"  {words}" if words else "  no single channel" if "channels" in record else ""


def _scores(row: Row) -> str:
    return (
        f"score {row['score']:.4g}  threshold {row['threshold']:.4g}  p-value {row['p_value']:.3g}"
    )
