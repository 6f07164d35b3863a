"""Records of a live stream of sensors: alarms, failing sensors, silence, change."""

import datetime
import math
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, TypeAlias

from sklearn.utils.validation import check_is_fitted

from ocfuse.exceptions import DriftWarning, InvalidInputError
from ocfuse.streaming.clock import ChunkLog
from ocfuse.streaming.events import EventTracker
from ocfuse.streaming.slow import SlowSettings, judged_again
from ocfuse.streaming.table import StreamTable
from ocfuse.tables.dataframes import pandas

#: A scored row, or what happened there: number, columns beside the channels, and more by kind.
Record: TypeAlias = dict[str, Any]


def patience(model: StreamTable) -> float | None:
    """Return the seconds of silence that are borne, at least 5; None if training had no dates."""
    step = model.usual_seconds
    return None if step is None else max(5.0, model.stream_.max_gap * step)


class LiveMonitor:
    """Report alarms, failing sensors, silence and change of a live stream, row by row.

    Every record is a dictionary, as printed by `ocfuse watch --json`. Its `kind` is one of these:

    ==================================  =========================================================
    kind                                when
    ==================================  =========================================================
    alarm                               an event begins: scores are below the threshold
    event                               the event ends (`state` "end")
    missing, stuck, range, rate         a sensor fails ("begin"), or works again ("end")
    limit                               a limit is broken ("begin"), or no longer ("end")
    silent                              no rows come ("begin"), or they come again ("end")
    blind                               rows come, but have no score for long
    drift                               the level of a channel has left its training range
    changed                             the source has changed (see `slow`)
    ==================================  =========================================================

    Records of an end have the time (`at`) and row of the begin as `begun`. Their `state` is
    "interrupted" if nobody has seen the end, see `finish`.

    Parameters
    ----------
    model : StreamTable
        A fitted model. It keeps the state of the live stream.
    min_rows, hold : int, optional
        Consecutive scores below the threshold after which an alarm is raised, and rows after its
        end within which the next alarm belongs to the same event. By default those of the model.
    leave : float, optional
        The first score that is not below it ends an alarm; by default that of the model.
    timeout : float, optional
        Seconds without a row after which silence is reported. By default five times the usual time
        between rows, at least 5 s; without dates in training, silence is not reported.
    is_live : bool, default=True
        Whether rows come as they are measured. If False, silence is only reported with `timeout`.
    names : dict, optional
        Further entries of every record, such as the model and the stream.
    slow : SlowSettings, optional
        Whether the threshold follows slow changes, and whether changes of the source are reported.
        Scores are then raw scores minus `shift`, to be compared with the threshold.
    n_before : int, default=0
        Number of earlier events, after which events are numbered.

    Attributes
    ----------
    model : StreamTable
        The model.
    events : RowEvents
        The events, and the number of rows without a score.
    last : dict
        The last row.
    n_rows, n_silences, n_sensors, n_limits, n_changes : int
        Numbers of rows given to `take`, of silences, of failures of sensors, of broken limits and
        of changes of the source.
    slow : SlowChange or None
        The object that follows slow changes and tests for a change.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ocfuse import FusedDetector
    >>> from ocfuse.streaming import LiveMonitor, StreamDetector, StreamTable
    >>> flow, current = np.random.default_rng(0).normal(size=(2, 2000)).round(2)
    >>> runs = pd.DataFrame({"run": np.arange(2000) // 100, "flow": flow, "current": current})
    >>> light = StreamDetector(FusedDetector("light", random_state=0), windows=(5,))
    >>> monitor = LiveMonitor(StreamTable(light, group="run").fit(runs), min_rows=2)
    >>> told = [monitor.take({"run": 0, "flow": 0.1, "current": c}) for c in [0.2] * 9 + [8] * 3]
    >>> [record["kind"] for records in told for record in records]
    ['alarm']
    """

    def __init__(
        self,
        model: StreamTable,
        *,
        min_rows: int | None = None,
        hold: int | None = None,
        leave: float | None = None,
        timeout: float | None = None,
        is_live: bool = True,
        names: Mapping[str, str] | None = None,
        slow: SlowSettings | None = None,
        n_before: int = 0,
    ) -> None:
        check_is_fitted(model, "stream_")
        asked = SlowSettings() if slow is None else slow
        self.slow = model.stream_.slow_change(asked) if asked.is_on else None
        self.n_changes = 0
        self.model, self.names = model, dict(names or {})
        self.events = RowEvents(
            model.stream_.tracker(min_rows, hold, leave),
            # from two longest windows without a score on nothing is watched any more
            most_unscored=2 * max((*model.stream_.windows, 1)),
            n_before=n_before,
        )
        usual = patience(model) if is_live else None
        self.timeout = usual if timeout is None else timeout
        self.n_rows = self.n_silences = self.n_sensors = self.n_limits = self._n_refused = 0
        self.last: Record = {"row": None, "columns": {}}
        self._why: tuple[Record, Record] | None = None  # lowest row of an event, and its reasons
        self._channels: list[Record] = []  # behind the last alarm
        self._heard, self._is_silent = monotonic(), False
        self._open = OpenRecords()

    @property
    def n_alarms(self) -> int:
        """Number of events, failing sensors, broken limits, changes and silences."""
        events = self.events
        others = self.n_silences + self.n_sensors + self.n_limits + self.n_changes
        return events.n_events + events.n_blind + others

    def take(self, values: Mapping[str, Any], time: Any = None) -> list[Record]:
        """Add the next row; return the records of what happens there.

        Parameters
        ----------
        values : mapping
            Numbers by the names of the columns. None, NaN and absent channels are missing values.
            Other names are not used.
        time : float, str or datetime, optional
            Time of the row, as in training; for dates also seconds since 1970. By default the
            value of the time column in `values`.

        Returns
        -------
        list of dict
            The records, in order; usually empty.
        """
        back = self.listen(True)
        frame = pandas().DataFrame([self._cells(values, time)], index=[self.n_rows])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)  # it is a record
            scores, log = self.model.follow(frame)
        runs = self.model.runs_in(scores)
        (cells,) = scores.to_dict("records")
        names = self.model.result_names
        beside = {name: cell for name, cell in cells.items() if name not in names}
        row = {"row": self.n_rows, "columns": beside, **{name: cells[name] for name in names}}
        self.n_rows += 1
        told = self.follow([row], None if runs is None else runs.tolist(), log)
        return back + [record for _, records in told for record in records]

    def _cells(self, values: Mapping[str, Any], time: Any) -> Record:
        """Return a row for all columns of the model."""
        schema = self.model.schema_
        if not any(name in values for name in schema.features):
            raise InvalidInputError(
                f"None of the names is a channel of the model. Got {', '.join(values) or 'none'}. "
                f"Expected {', '.join(schema.features)}."
            )
        context = [] if self.model.context is None else [self.model.context]
        beside = [c.name for c in schema.columns if c.kind in ("group", "id") and c.name in values]
        cells = {name: values.get(name) for name in (*schema.features, *context, *beside)}
        clock = next((c for c in schema.columns if c.kind == "time"), None)
        if clock is None:
            return cells
        if time is None and values.get(clock.name) is None:
            raise InvalidInputError(
                f"The model knows when its rows were measured ({clock.name!r}), and this row has "
                "no time. Give it as time."
            )
        time = values[clock.name] if time is None else time
        if clock.format != "number" and isinstance(time, int | float):
            moment = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
            time = moment if clock.utc else moment.replace(tzinfo=None)
        return cells | {clock.name: time}

    def follow(
        self, rows: Sequence[Record], runs: Sequence[Any] | None, log: ChunkLog
    ) -> Iterator[tuple[Record, list[Record]]]:
        """Yield the next scored rows, each with the records of what happens there.

        Parameters
        ----------
        rows : list of dict
            Rows that were scored together: number, columns and results.
        runs : list or None
            Run of each row, if there are several.
        log : ChunkLog
            Log of these rows from `StreamTable.follow`.

        Yields
        ------
        row : dict
            The row.
        records : list of dict
            Records of what happens there.
        """
        for i, row in enumerate(rows):
            self.last = row
            told: list[Record] = []
            for event in log.sensors.get(i, ()):
                if event.state == "begin":
                    self.n_limits += event.kind == "limit"
                    self.n_sensors += event.kind != "limit"
                told.append(event.at(row["row"]).as_dict() | {"columns": row["columns"]})
            score = float(row["score"])
            if self.slow is not None and self.slow.rolling is not None:
                detector = self.model.detector_
                about = self.slow.shift, detector.conformal_, float(detector.offset_)
                row |= judged_again(row, *about) | {"shift": self.slow.shift}
            for record in self.events.take(row, None if runs is None else runs[i]):
                if record["kind"] == "blind":
                    record |= self._counted(log.counts_after(i, self.model.counts))
                told.append(self._reasoned(record, rows, log))
            if self.slow is not None:
                change = self.slow.take(score, in_event=self.events.tracker.is_alarm)
                if change is not None:
                    self.n_changes += 1
                    told.append(place_of(row) | self.slow.record(change))
            if log.drifted.get(i):
                told.append({"kind": "drift", **place_of(row), "channels": log.drifted[i]})
            yield row, self._signed(told)
        worst = self.events.worst
        if worst is not None and (self._why is None or self._why[0] is not worst):
            self._why = worst, self._reasons(worst, rows, log)

    def miss(self, number: int) -> list[Record]:
        """Count a row that cannot be read; after many of them the stream is reported as blind."""
        self._n_refused += 1
        told = self.events.miss({"row": number, "columns": {}})
        for record in told:
            if record["kind"] == "blind":
                record |= self._counted(self.model.counts)
        return self._signed(told)

    def listen(self, has_come: bool = False) -> list[Record]:
        """Return a record if no row has come for too long, or if rows come again."""
        now = monotonic()
        silence = now - self._heard
        if has_come:
            was_silent, self._heard, self._is_silent = self._is_silent, now, False
            return self._signed([self._silence("end", silence)]) if was_silent else []
        if self.timeout is None or silence <= self.timeout or self._is_silent:
            return []
        self._is_silent = True
        self.n_silences += 1
        return self._signed([self._silence("begin", silence)])

    def begin_run(self) -> list[Record]:
        """Start a new run with the next row; return the record of the event that ends."""
        self.model.begin_run()
        return self._finished(is_cut=False)

    def finish(self) -> list[Record]:
        """End the stream here, and return records of what has not ended.

        An event is over if the last score is not below the threshold, although another alarm could
        have followed within the hold time. Otherwise nobody has seen its end, and the `state` of
        its record is "interrupted". So are failing sensors, broken limits and silences.
        """
        ended = self._finished(is_cut=True)
        return ended + [record | place_of(self.last) for record in self._open.interrupted()]

    def _finished(self, *, is_cut: bool) -> list[Record]:
        ended = self.events.finish(is_cut=is_cut)
        return self._signed([self._reasoned(record, [], ChunkLog(0)) for record in ended])

    def origin(self) -> Record:
        """Return the current time and `names`."""
        return {"at": time_of_day(), **self.names}

    def _signed(self, records: Iterable[Record]) -> list[Record]:
        return [self._open.take(record | self.origin()) for record in records]

    def _counted(self, counts: dict[str, int]) -> Record:
        return {"counts": counts | {"refused": self._n_refused}}

    def _reasoned(self, record: Record, rows: Sequence[Record], log: ChunkLog) -> Record:
        """Return a record with how grave it is, and the channels and members behind it.

        An event has the channels of its alarm if all are as usual in its lowest row.
        """
        if record["kind"] not in ("alarm", "event"):
            return record
        worst = record["worst"] if record["kind"] == "event" else record
        known, reasons = self._why or ({}, {})
        if record["kind"] == "event" and known.get("row") == worst["row"]:
            found = reasons
        else:
            found = self._reasons(worst, rows, log)
        if record["kind"] == "alarm":
            self._channels = found.get("channels", [])
        elif not found.get("channels"):
            found = found | {"channels": self._channels}
        return record | found

    def _reasons(self, row: Record, rows: Sequence[Record], log: ChunkLog) -> Record:
        """Return what lies behind the score of one of these rows."""
        severity = self.model.detector_.conformal_.severity([row["score"]])[0]
        found: Record = {"severity": round(float(severity), 2)}
        place = next((i for i, one in enumerate(rows) if one["row"] == row["row"]), None)
        if place is None:
            return found
        readings, members = self.model.reasons(log, place)
        found["channels"] = [reading.as_dict() for reading in readings if reading.stands_out]
        return found | {"members": {name: float(f"{x:.6g}") for name, x in members.items()}}

    def _silence(self, state: str, seconds: float) -> Record:
        """Return a record of silence after the last row."""
        return {"kind": "silent", "state": state, **place_of(self.last), "seconds": seconds}


class RowEvents:
    """Join alarms of rows to events, as a tracker does.

    More than `most_unscored` rows in a row without a score are a blind stretch: some have none, as
    windows must be full first.
    """

    def __init__(self, tracker: EventTracker, most_unscored: int, n_before: int = 0) -> None:
        self.threshold = tracker.enter
        self.tracker = tracker
        self.most_unscored = most_unscored
        self.n_events = self.n_blind = self.n_unscored = 0
        self.n_before = n_before  # events of an earlier start
        self._recent: deque[Record] = deque(maxlen=tracker.min_duration)
        self._event: Record | None = None
        self._run: Any = None
        self._blind_rows = 0

    def take(self, row: Record, run: Any = None) -> list[Record]:
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

    def miss(self, row: Record) -> list[Record]:
        """Count a row of the same run without a score, or one that cannot be read."""
        self._blind_rows += 1
        self.tracker.update(math.nan)
        records = [] if self.tracker.is_on else self._ended()
        if self._blind_rows == self.most_unscored + 1:
            self.n_blind += 1
            records.append({"kind": "blind", **place_of(row), "rows": self._blind_rows})
        return records

    def finish(self, *, is_cut: bool = False) -> list[Record]:
        """End the event that lasts, as the run ends here; return its record.

        If the run is cut off here, an event whose last score is below the threshold is
        interrupted.
        """
        is_low = bool(self._recent) and self._recent[-1]["score"] < self.threshold
        self.tracker.finish()
        self._recent.clear()
        return self._ended("interrupted" if is_cut and is_low else "end")

    def _raised(self, row: Record) -> Record:
        self.n_events += 1
        worst = min(self._recent, key=lambda seen: seen["score"])
        start = place_of(self._recent[0])
        self._event = {"start": start, "raised": place_of(row), "last": row, "worst": worst}
        alarm = {"kind": "alarm", "event": self.number, **row, "threshold": self.threshold}
        return alarm | {"start": start}

    def _ended(self, state: str = "end") -> list[Record]:
        if self._event is None:
            return []
        event, self._event = self._event, None
        last = place_of(event["last"])
        event |= {**last, "last": last, "threshold": self.threshold}
        return [{"kind": "event", "state": state, "event": self.number, **event}]

    @property
    def number(self) -> int:
        """Number of the last event."""
        return self.n_before + self.n_events

    @property
    def worst(self) -> Record | None:
        """The row with the lowest score of the event that lasts."""
        return None if self._event is None else self._event["worst"]


class OpenRecords:
    """Records of what has begun and has not ended: events, failures of sensors, silences."""

    def __init__(self) -> None:
        self._begun: list[Record] = []

    def take(self, record: Record) -> Record:
        """Return the next record; that of an end says when and where it has `begun`."""
        state = record.get("state")
        if (record["kind"] == "alarm" or state == "begin") and "at" in record:
            self._begun.append(record)
        elif state in ("end", "interrupted"):
            what = _what(record)
            begun = next((one for one in reversed(self._begun) if _what(one) == what), None)
            if begun is not None:
                self._begun.remove(begun)
                return record | {"begun": _moment(begun)}
        return record

    def interrupted(self) -> list[Record]:
        """Return records that end all of them: nobody has seen their ends."""
        begun, self._begun = self._begun, []
        about = {"state": "interrupted", "at": time_of_day()}
        return [record | _of_event(record) | about | {"begun": _moment(record)} for record in begun]


def _what(record: Record) -> tuple[Any, ...]:
    """Return what begins and ends: an event by its number, a failure by kind and channel."""
    kind = "event" if record["kind"] == "alarm" else record["kind"]
    return kind, record.get("event"), record.get("channel")


def _moment(record: Record) -> Record:
    return {name: record[name] for name in ("at", "row", "frame") if name in record}


def _of_event(record: Record) -> Record:
    """Return what the record of an event has beside that of its alarm, if nothing more is known."""
    if record["kind"] != "alarm":
        return {}
    if "frame" in record:
        frame, time = record["frame"], record["time"]
        more = {"stop": frame + 1, "stop_time": time, "raised": frame, "raised_time": time}
        return {"kind": "event", **more, "worst": frame}
    names = ("row", "columns", "score", "p_value", "is_anomaly")
    row = {name: record[name] for name in names if name in record}
    return {"kind": "event", "raised": place_of(row), "last": row, "worst": row}


def time_of_day() -> str:
    """Return the current time as text, with its zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="milliseconds")


def place_of(row: Record) -> Record:
    """Return number and columns of a row."""
    return {name: row[name] for name in ("row", "columns")}
