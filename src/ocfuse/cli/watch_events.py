"""What `ocfuse watch` prints of rows and of streams, at once and in the end."""

import datetime
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from ocfuse.cli.output import (
    in_words,
    json_line,
    oddities,
    print_at_once,
    printable,
    warn,
)
from ocfuse.cli.streams import to_json_lines
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.report.words import count
from ocfuse.streaming import EventTracker, StreamTable
from ocfuse.streaming.events import leave_score
from ocfuse.system.files import LineFile
from ocfuse.tables import TableDetector
from ocfuse.tables.dataframes import Frame, free_name
from ocfuse.tables.detector import RESULTS

#: Last column of the scores: the columns that a row is judged without.
WITHOUT = "judged_without"

#: Rows in a row below the threshold that raise an event, unless somebody says otherwise.
MIN_ROWS = 3
#: Longest windows without a score from which on nothing is watched any more.
BLIND = 2
#: Seconds without a row that are always borne.
LEAST_PATIENCE = 5.0

#: A row with its scores, or what there is to tell. Columns of the table, which may have any name,
#: are under "columns".
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Flags:
    """What is wanted of who tells.

    Attributes
    ----------
    show_all : bool
        Print every row.
    strict : bool
        Stop at a row that cannot be scored.
    json : bool
        Print lines of JSON.
    quiet : bool
        Leave complaints out.
    """

    show_all: bool = False
    strict: bool = False
    json: bool = False
    quiet: bool = False

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Say why a row has no score."""
        if self.strict:
            raise TableError(f"Row {number} cannot be scored. {error}") from error
        if not self.quiet:
            warn(f"Row {number} is left out: {in_words(error)}")


@dataclass
class Reporter:
    """Print alarms, and complain of rows that cannot be scored.

    Attributes
    ----------
    model : TableDetector
        What the scores come from.
    flags : Flags
        What is wanted.
    n_alarms, n_unknown : int
        Alarms so far, and rows that could not be scored: these may be anomalies.
    n_judged : int
        Rows so far that were judged without some of their columns.
    """

    model: TableDetector
    flags: Flags
    n_alarms: int = 0
    n_unknown: int = 0
    n_judged: int = 0

    def tell(self, scores: Frame) -> None:
        """Print a line per alarm."""
        without = str(scores.columns[-1])
        self.n_alarms += int(scores["is_anomaly"].sum())
        self.n_judged += int(scores[without].notna().sum())
        shown = scores if self.flags.show_all else scores[scores["is_anomaly"]]
        name = free_name("threshold", shown.columns)
        shown = shown.assign(**{name: self.model.detector_.offset_})
        lines = (_line(row, name, without) for row in shown.to_dict("records"))
        print_at_once(to_json_lines(shown, False) if self.flags.json else printable("".join(lines)))

    def begin(self) -> None:
        """Take note of a header; rows stand alone, so that nothing begins with it."""

    def listen(self, has_come: bool) -> None:
        """Take note of whether rows have come; they may come when they like."""

    def end(self, n_rows: int, n_bad: int) -> None:
        """Say how much it was."""
        if not self.flags.quiet:
            rows, alarms = count(n_rows, "row"), count(self.n_alarms, "alarm")
            judged = f", {self.n_judged:,} judged without some columns" * (self.n_judged > 0)
            warn(f"{rows}, {alarms}, {n_bad:,} left out{judged}")

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Say why a row has no score."""
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
    """Return the seconds of silence that are borne; None if training had no dates to tell it."""
    step = model.usual_seconds
    return None if step is None else max(LEAST_PATIENCE, model.stream_.max_gap * step)


@dataclass(frozen=True)
class Wishes:
    """What somebody says of events; None leaves it to the model.

    Attributes
    ----------
    leave : float or None
        Score that ends an event.
    min_rows : int or None
        Rows in a row below the threshold that raise one.
    timeout : float or None
        Seconds without a row after which to say so.
    events : Path or None
        File that lines of JSON are appended to, but not those of single rows.
    """

    leave: float | None = None
    min_rows: int | None = None
    timeout: float | None = None
    events: Path | None = None


class StreamReporter:
    """Print events as they are raised and end, and say when nothing is watched.

    Parameters
    ----------
    model : StreamTable
        What the scores come from.
    wishes : Wishes
        What is said of events.
    flags : Flags
        How they are told.
    is_live : bool
        Rows come as they are measured: silence means something.

    Attributes
    ----------
    n_stalls : int
        Times that no row came.
    """

    def __init__(self, model: StreamTable, wishes: Wishes, flags: Flags, is_live: bool) -> None:
        self.model, self.flags = model, flags
        detector = model.detector_
        end = leave_score(detector.offset_, detector.normal_scores_)
        self.events = RowEvents(
            float(detector.offset_),
            end if wishes.leave is None else wishes.leave,
            wishes.min_rows or MIN_ROWS,
            BLIND * max((*model.stream_.windows, 1)),
        )
        usual = patience(model) if is_live else None
        self.timeout = usual if wishes.timeout is None else wishes.timeout
        self.file = None if wishes.events is None else LineFile(wishes.events)
        self.n_stalls = self._n_drifted = self._n_refused = 0
        self._heard, self._is_silent = monotonic(), False

    @property
    def n_alarms(self) -> int:
        """Events, and times that nothing was watched."""
        return self.events.n_events + self.events.n_blind + self.n_stalls

    @property
    def n_unknown(self) -> int:
        """Rows that may be anomalies: none, as stretches without scores are alarms."""
        return 0

    def tell(self, scores: Frame) -> None:
        """Print what there is to tell of rows."""
        runs = self.model.runs_in(scores)
        for i, row in enumerate(_rows(scores)):
            if self.flags.show_all:
                self._print({"kind": "row", **row, "threshold": self.events.threshold})
            self._say(self.events.take(row, None if runs is None else runs.iloc[i]))
        gone = self.model.drifted[self._n_drifted :]
        if gone:
            self._n_drifted += len(gone)
            self._say([{"kind": "drift", "channels": gone}])

    def begin(self) -> None:
        """Take note of a header: another file, and without times that is another run."""
        if not self.model.has_times:
            self.model.begin_run()
            self._say(self.events.finish())

    def listen(self, has_come: bool) -> None:
        """Take note of whether rows have come; say so when none has for too long."""
        now = monotonic()
        silence = now - self._heard
        if has_come:
            if self._is_silent:
                self._say([{"kind": "resumed", "seconds": silence}])
            self._heard, self._is_silent = now, False
        elif self.timeout is not None and silence > self.timeout and not self._is_silent:
            self._is_silent = True
            self.n_stalls += 1
            self._say([{"kind": "stall", "seconds": silence}])

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Say why a row cannot be read; with many of them nothing is watched."""
        self.flags.complain(number, error)
        self._n_refused += 1
        self._say(self.events.miss({"row": number, "columns": {}}))

    def end(self, n_rows: int, n_bad: int) -> None:
        """Print the event that lasts, and how much it was."""
        self._say(self.events.finish())
        if self.file is not None:
            self.file.close()
        events, counts = self.events, self.model.counts
        if self.flags.json:
            told = {"rows": n_rows, "events": events.n_events, "without_score": events.n_unscored}
            told |= {"left_out": n_bad, "blind": events.n_blind, "stalls": self.n_stalls}
            self._print({"kind": "summary", **told, "counts": counts})
        if not self.flags.quiet:
            odd = [f"{events.n_unscored:,} without a score", *oddities(counts)]
            told_rows = f"{count(n_rows, 'row')}, {count(events.n_events, 'event')}"
            warn(f"{told_rows}, {n_bad:,} left out; {', '.join(odd)}")

    def _say(self, told: Iterable[Row]) -> None:
        for record in told:
            if record["kind"] == "blind":
                record |= {"counts": self.model.counts | {"refused": self._n_refused}}
            if record["kind"] in ("drift", "stall", "resumed"):
                now = datetime.datetime.now().astimezone()
                record |= {"at": now.isoformat(timespec="milliseconds")}
            self._print(record)
            if self.file is not None:
                self.file.write(json_line(record).encode())

    def _print(self, record: Row) -> None:
        print_at_once(json_line(record) if self.flags.json else printable(_words(record)) + "\n")


def _rows(scores: Frame) -> Iterator[Row]:
    """Yield scored rows, their numbers apart from the columns of the table."""
    beside = [name for name in scores.columns[1:] if name not in RESULTS]
    for number, row in zip(scores.index, scores.to_dict("records"), strict=True):
        columns = {name: row[name] for name in beside}
        yield {"row": number, "columns": columns} | {name: row[name] for name in RESULTS}


def _words(record: Row) -> str:
    """Return what there is to tell as a line to read."""
    return WORDS[record["kind"]](record)


def _of_row(row: Row) -> str:
    if math.isnan(row["score"]):
        return f"no score  {_named(row)}  {_scores(row)}"
    state = "alarm" if row["is_anomaly"] else "normal"
    return f"{state}  {_named(row)}  {_scores(row)}"


def _of_alarm(alarm: Row) -> str:
    start = f"  since row {alarm['start']['row']}"
    return f"event {alarm['event']}  {_named(alarm)}  {_scores(alarm)}{start}"


def _of_event(event: Row) -> str:
    first, last, worst = event["start"]["row"], event["last"], event["worst"]
    return (
        f"event {event['event']} is over  {_named(last)}  rows {first} to {last['row']}  lowest "
        f"score {worst['score']:.4g} in row {worst['row']}"
    )


def _of_blind(blind: Row) -> str:
    odd = ", ".join(oddities(blind["counts"])) or "windows are not full yet"
    return f"not watched  {_named(blind)}  no score for {blind['rows']} rows; so far {odd}"


def _scores(row: Row) -> str:
    return (
        f"score {row['score']:.4g}  threshold {row['threshold']:.4g}  p-value {row['p_value']:.3g}"
    )


def _named(row: Row) -> str:
    """Return row, id and time by the names of their columns."""
    named = [("row", row["row"]), *row["columns"].items()]
    return "  ".join(f"{name} {value}" for name, value in named)


WORDS: dict[str, Callable[[Row], str]] = {
    "row": _of_row,
    "alarm": _of_alarm,
    "event": _of_event,
    "blind": _of_blind,
    "stall": lambda stall: f"silent  no row for {stall['seconds']:.1f} s",
    "drift": lambda drift: (
        f"drift  {', '.join(drift['channels'])}  level has left what was learned: a lasting fault, "
        "or drift; if it is drift, learn again"
    ),
    "resumed": lambda resumed: f"rows come again after {resumed['seconds']:.1f} s",
}


class RowEvents:
    """Join alarms of rows to events.

    Parameters
    ----------
    threshold, leave : float
        Scores below the first start an event, from the second on they end it.
    min_rows : int
        Scores in a row that it takes to raise an event.
    most_unscored : int
        Rows in a row that may have no score: windows must be full first.

    Attributes
    ----------
    n_events, n_blind, n_unscored : int
        Events; stretches with too many rows without a score; rows without a score.
    """

    def __init__(self, threshold: float, leave: float, min_rows: int, most_unscored: int) -> None:
        self.threshold = threshold
        self.tracker = EventTracker(threshold, leave, min_rows)
        self.most_unscored = most_unscored
        self.n_events = self.n_blind = self.n_unscored = 0
        self._recent: deque[Row] = deque(maxlen=min_rows)
        self._event: Row | None = None
        self._run: Any = None
        self._blind_rows = 0

    def take(self, row: Row, run: Any = None) -> list[Row]:
        """Take the next row, and the run that it is of; return what there is to tell.

        No event goes on into another run.
        """
        told = [] if run == self._run else self.finish()
        self._run = run
        if math.isnan(row["score"]):
            self.n_unscored += 1
            return told + self.miss(row)
        self._blind_rows = 0
        self._recent.append(row)
        was_on = self.tracker.is_on
        self.tracker.update(row["score"])
        if self.tracker.is_on:
            return told + (self._goes_on(row) if was_on else self._raised(row))
        return told + self._ended()

    def miss(self, row: Row) -> list[Row]:
        """Take note of a row without a score, or one that cannot be read, of the same run."""
        self._blind_rows += 1
        self.tracker.update(math.nan)
        told = [] if self.tracker.is_on else self._ended()
        if self._blind_rows == self.most_unscored + 1:
            self.n_blind += 1
            told.append({"kind": "blind", **_place(row), "rows": self._blind_rows})
        return told

    def finish(self) -> list[Row]:
        """End the event that lasts, as the run ends here; return what there is to tell."""
        self.tracker.finish()
        self._recent.clear()
        return self._ended()

    def _raised(self, row: Row) -> list[Row]:
        self.n_events += 1
        worst = min(self._recent, key=lambda seen: seen["score"])
        start = _place(self._recent[0])
        self._event = {"start": start, "raised": _place(row), "last": row, "worst": worst}
        told = {"kind": "alarm", "event": self.n_events, **row, "threshold": self.threshold}
        return [told | {"start": start}]

    def _goes_on(self, row: Row) -> list[Row]:
        if self._event is not None:
            worst = min(self._event["worst"], row, key=lambda seen: seen["score"])
            self._event |= {"last": row, "worst": worst}
        return []

    def _ended(self) -> list[Row]:
        if self._event is None:
            return []
        event, self._event = self._event, None
        event |= {"last": _place(event["last"]), "threshold": self.threshold}
        return [{"kind": "event", "event": self.n_events, **event}]


def _place(row: Row) -> Row:
    """Return what says which row it is."""
    return {name: row[name] for name in ("row", "columns")}
