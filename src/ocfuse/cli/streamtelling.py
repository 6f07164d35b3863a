"""What `ocfuse watch` says of a stream of sensors, at once and in the end."""

import datetime
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from ocfuse.cli.output import json_line, print_at_once, printable, warn
from ocfuse.cli.streamevents import Row, RowEvents
from ocfuse.cli.telling import Flags
from ocfuse.exceptions import InvalidInputError
from ocfuse.files import LineFile
from ocfuse.report.words import count
from ocfuse.streaming import StreamTable
from ocfuse.streaming.events import leave_score
from ocfuse.tables.detector import RESULTS
from ocfuse.tables.frames import Frame

#: Rows in a row below the threshold that raise an event, unless somebody says otherwise.
MIN_ROWS = 3
#: Longest windows without a score from which on nothing is watched any more.
BLIND = 2
#: Seconds without a row that are always borne.
LEAST_PATIENCE = 5.0
#: What is counted in a stream, in words.
COUNTED = {
    "repeated": "with the time of the row before",
    "late": "earlier than the row before",
    "clock": "left out, as their time was not believed",
    "new_clock": "after which another clock was taken",
    "gap": "after a gap in time",
    "missing": "with channels missing",
    "empty": "with most channels empty",
    "unreadable": "with cells that are no numbers",
    "context": "without a context",
    "refused": "that could not be read",
}


def oddities(counts: dict[str, int]) -> list[str]:
    """Return what was odd about the rows of a stream, such as "2 after a gap in time"."""
    return [f"{counts[name]:,} {words}" for name, words in COUNTED.items() if counts.get(name)]


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


class StreamTeller:
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
