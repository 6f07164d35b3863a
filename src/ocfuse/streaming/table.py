"""StreamTable: a stream detector for tables, with the kinds of their columns."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.column_kinds import counted, is_few
from ocfuse.encoder import is_given
from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.plan import Plan
from ocfuse.ensemble.score import Trace, blocks
from ocfuse.exceptions import (
    DriftWarning,
    InvalidInputError,
    InvalidTypeError,
    OcfuseWarning,
    RowsWarning,
    TableError,
    TableWarning,
)
from ocfuse.explain import Explanation
from ocfuse.limits import ValueLimits
from ocfuse.report import ChannelCourse, Report, ReportData, make_report
from ocfuse.streaming.channels import ChannelReading, reading_line, readings_of
from ocfuse.streaming.clock import ChunkLog, check_times
from ocfuse.streaming.course import DRIFTING
from ocfuse.streaming.detector import StreamDetector
from ocfuse.streaming.fit import JudgedRun, drift_limit
from ocfuse.streaming.view import MOST_MISSING
from ocfuse.streaming.windows import run_slices
from ocfuse.system.packages import slow
from ocfuse.tables.cells import PlainRows, numbers, words, zone_of
from ocfuse.tables.columns import shown_rows
from ocfuse.tables.dataframes import FILE, Frame, Series, as_frame, free_name, listed, pandas
from ocfuse.tables.detector import (
    RUNS,
    TableDetector,
    make_card,
    verdicts_of,
)
from ocfuse.tables.judged import JudgedEvent
from ocfuse.tables.labels import with_unknown
from ocfuse.tables.schema import Schema, require_known
from ocfuse.validation import ANOMALY, NORMAL, UNKNOWN

#: Channels whose course a report shows.
MOST_DRAWN = 4


@dataclass(frozen=True)
class Samples:
    """Rows of a table as a stream detector takes them."""

    X: FloatArray  # values of the channels, NaN for gaps
    runs: list[str] | None
    times: Any  # numbers or dates, as they are shown, or as `as_times` gives them; None for none
    context: FloatArray | None  # NaN where it is not known
    unreadable: BoolArray  # rows with cells that hold something, but no number
    unlearned: BoolArray | None = None  # rows in a state that training did not have

    @property
    def odd(self) -> dict[str, list[int]]:
        """Rows with odd cells, with most channels empty, without a context, in an odd state."""
        gone = np.isnan(np.zeros(len(self.X)) if self.context is None else self.context)
        states = {}
        if self.unlearned is not None:
            gone &= ~self.unlearned
            states = {"state": np.flatnonzero(self.unlearned).tolist()}
        empty = np.isnan(self.X).sum(axis=1) > MOST_MISSING * self.X.shape[1]
        return {
            "unreadable": np.flatnonzero(self.unreadable).tolist(),
            "empty": np.flatnonzero(empty).tolist(),
            "context": np.flatnonzero(gone).tolist(),
            **states,
        }

    @property
    def beside(self) -> tuple[Any, Any, Any]:
        """Runs, times and context, in the order of `StreamDetector.fit`."""
        return self.runs, as_times(self.times), self.context


def as_times(times: Any) -> Any:
    """Return times as an array, dates in UTC; None if there are none."""
    if times is None or isinstance(times, np.ndarray):
        return times
    is_tied = getattr(times.dtype, "tz", None) is not None
    return (times.dt.tz_convert(None) if is_tied else times).to_numpy()


def read_samples(
    schema: Schema, context: str | None, table: Frame, *, to_learn: bool = False
) -> Samples:
    """Return the rows of a table; a cell that holds no number counts as missing."""
    X, is_strange = _channels(schema, table)
    _warn_of(
        "Rows with cells that are no numbers, which count as missing",
        table,
        np.flatnonzero(is_strange),
    )
    place = unlearned = None
    if context is not None:
        states = states_of(schema, context)
        place, is_new = _context_of(table, context, states, to_learn)
        unlearned = is_new if states else None
    return Samples(X, runs_of(schema, table), schema.times_of(table), place, is_strange, unlearned)


def states_of(schema: Schema, context: str | None) -> list[str]:
    """Return the states that the column of the context holds, such as AUTO; none for numbers."""
    return next((c.categories for c in schema.columns if c.name == context), [])


def judged_runs(schema: Schema, context: str | None, event: JudgedEvent) -> list[JudgedRun]:
    """Return the parts of an event as a stream detector takes them.

    Of a real event, only rows below the threshold are anomalies. All rows around a false alarm
    are normal.
    """
    found = []
    for part, low in zip(event.parts, event.low, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OcfuseWarning)  # of rows that were judged long ago
            samples = read_samples(schema, context, part)
        _, times, place = samples.beside
        found.append(
            JudgedRun(
                event.number,
                samples.X,
                check_times(times, len(part)),
                None if place is None else place.reshape(len(part), -1),
                np.where(low, ANOMALY, UNKNOWN) if event.is_real else np.full(len(part), NORMAL),
            )
        )
    return found


def _warn_of(what: str, table: Frame, rows: IntArray) -> None:
    if len(rows):
        warnings.warn(RowsWarning(what, len(rows), f"row {table.index[rows[0]]}"), stacklevel=4)


def runs_of(schema: Schema, table: Frame) -> list[str] | None:
    """Return the run of every row; None if all are one."""
    groups = schema.groups_of(table)
    if groups is None and FILE in table.columns:
        return [str(name) for name in table[FILE]]
    return groups


def _channels(schema: Schema, table: Frame) -> tuple[FloatArray, BoolArray]:
    """Return the values of the channels, and which rows have cells that are no numbers."""
    columns = table.columns.get_indexer(schema.features)
    if (columns < 0).any():
        schema.check(table.iloc[:0])  # says which are missing
    try:
        # at once: row by row, a column at a time would take longer than the score
        values = table.to_numpy(object)[:, columns]
        X = values.astype(np.float64)
        if any(isinstance(cell, str) and "_" in cell for cell in values.flat):
            raise ValueError("Python reads 1_000, which is no number here")
        is_text = np.zeros(X.shape, dtype=bool)
    except (TypeError, ValueError):
        read = [numbers(table[name]) for name in schema.features]
        X = np.column_stack([values for values, _ in read])
        is_text = np.column_stack([text for _, text in read])
        # in 20 rows, a channel without any number is another column, and not a sensor that fails
        if len(X) >= 20 and (is_text.any(axis=0) & np.isnan(X).all(axis=0)).any():
            schema.check(table)  # says which columns are of another type
    is_strange = is_text | np.isinf(X)
    return np.where(is_strange, np.nan, X), is_strange.any(axis=1)


def _context_of(
    table: Frame, name: str, states: list[str], to_learn: bool
) -> tuple[FloatArray, BoolArray]:
    """Return the context of the rows, of states their number, and which states are not known.

    To learn from, every row needs one.
    """
    if name not in table.columns:
        raise TableError(
            f"The column {name!r} is missing, which the model takes for the context of the rows."
        )
    unlearned = np.zeros(len(table), dtype=bool)
    if states:
        said = words(table[name])
        codes = {state: float(i) for i, state in enumerate(states)}
        values = np.array([codes.get(str(word), np.nan) for word in said])
        unlearned = np.isnan(values) & np.array([word is not None for word in said], dtype=bool)
        _warn_of(
            f"Rows in a state of {name!r} that training did not have, without a score",
            table,
            np.flatnonzero(unlearned),
        )
    else:
        values, _ = numbers(table[name])
    gone = ~np.isfinite(values)
    if to_learn and gone.any():
        what = "state" if states else "number"
        raise TableError(
            f"Column {name!r} is the context of the rows, but holds no {what} in "
            f"{shown_rows(table[name], gone)}. Every row that is learned from needs one."
        )
    without = np.flatnonzero(gone & ~unlearned)
    _warn_of("Rows without a context, which have no score", table, without)
    return np.where(gone, np.nan, values), unlearned


def _states_in(column: Series) -> list[str]:
    """Return the states that a column of text holds; none if it holds numbers."""
    said = [word for word in words(column) if word is not None]
    if not said or numbers(column)[1].sum() != len(said):
        return []
    counts = counted(said)
    if not is_few(counts):
        raise TableError(
            f"Column {str(column.name)!r} is the context of the rows, but holds {len(counts):,} "
            "different texts. Expected numbers, or a few states such as AUTO and MANUAL."
        )
    return sorted(counts)


class StreamTable(TableDetector):
    """Anomaly detector for sensor streams in tables.

    The columns of numbers are the channels. `score` scores whole recorded runs; `score_rows`
    scores the next rows of a live stream. Missing values and late or repeated rows are treated as
    in `StreamDetector`, and counted in `counts`. A cell that holds no number counts as missing,
    and a row without a context has no score.

    Parameters
    ----------
    stream : StreamDetector, default=None
        The detector, not yet fitted. None is `StreamDetector()`.
    label, normal, anomaly, ignore, id, time : str
        Columns and label values, as in `TableDetector`.
    group : str, default=None
        Column with the run of each row; the rows of a run must follow each other. None takes the
        column `file` of a folder of files; without it all rows are one run.
    context : str, default=None
        Column with the context of each row: numbers, such as the progress of a task, or a few
        states, such as AUTO and MANUAL. It is not a channel. Rows in a state that training did not
        have get no score, and are counted.
    season, holidays, zone : object
        As in `StreamDetector`; they may also be given to `stream` instead. Seasons need a column
        of times. The zone is by default that of its times.

    Attributes
    ----------
    schema_ : Schema
        The columns and their kinds.
    stream_ : StreamDetector
        The fitted detector.
    run_ : str or None
        Current run of the live stream.
    card_ : dict
        Rows, columns, runs, versions, time, settings and checksum of the training data.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ocfuse import FusedDetector
    >>> from ocfuse.streaming import StreamDetector, StreamTable
    >>> def run(name, seed):
    ...     flow, current = np.random.default_rng(seed).normal(size=(2, 200))
    ...     return pd.DataFrame({"file": name, "flow": flow, "current": flow + current / 5})
    >>> runs = pd.concat([run(f"run{i}.csv", i) for i in range(20)], ignore_index=True)
    >>> light = FusedDetector("light", random_state=0)
    >>> model = StreamTable(StreamDetector(light, windows=(10,))).fit(runs)
    >>> new = run("new.csv", 100)
    >>> new.loc[100:120, "current"] += 2
    >>> scores = model.score(new)
    >>> int(scores["score"].isna().sum()), bool(scores["is_anomaly"][105:120].all())
    (9, True)
    """

    kind = RUNS

    stream_: StreamDetector
    run_: str | None
    columns_: list[str] | None
    past_: dict[str, int]
    past_drifted_: list[str]

    def __init__(
        self,
        stream: StreamDetector | None = None,
        *,
        label: str | None = None,
        normal: Any = None,
        anomaly: Any = None,
        ignore: Any = (),
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
        context: str | None = None,
        season: Any = (),
        holidays: Any = (),
        zone: str | None = None,
    ) -> None:
        self.stream = stream
        self.label = label
        self.normal = normal
        self.anomaly = anomaly
        self.ignore = ignore
        self.id = id
        self.time = time
        self.group = group
        self.context = context
        self.season = season
        self.holidays = holidays
        self.zone = zone

    @property
    def detector_(self) -> FusedDetector:  # type: ignore[override]
        """The detector of the windows, which has the threshold."""
        return self.stream_.detector_

    @property
    def limits_(self) -> ValueLimits | None:
        """The limits beyond which a row always raises an alarm; None if there are none."""
        return self.stream_.limits_

    @property
    def counts(self) -> dict[str, int]:
        """Counts of odd rows in the live stream (late, missing, ...), over all its runs."""
        here = self.stream_.state_.counts
        return {
            name: here.get(name, 0) + self.past_.get(name, 0) for name in {**here, **self.past_}
        }

    @property
    def drifted(self) -> list[str]:
        """Channels whose slow mean has left the training range, in all runs of the live stream."""
        here = self.stream_.state_.drifted
        return self.past_drifted_ + [name for name in here if name not in self.past_drifted_]

    def fit(self, frame: Any, y: Any = None, judged: Sequence[JudgedEvent] = ()) -> "StreamTable":
        """Infer the kinds of the columns, and learn from the runs.

        Parameters
        ----------
        frame : data frame
            Normal runs, one after another, such as `open_source(folder).read()`.
        y : None
            Not used; labels are a column of the table.
        judged : sequence of JudgedEvent, default=()
            Events with a verdict. Rows below the threshold of a real event are learned as
            anomalies, all rows of a false alarm as normal. Each event counts as one run.

        Returns
        -------
        StreamTable
            The fitted model, ready for a new stream.
        """
        stream, table = self._blank(), as_frame(frame)
        schema = self._settled(table)
        samples = read_samples(schema, self.context, table, to_learn=True)
        states = states_of(schema, self.context)
        if states and stream.course is not None:
            stream.set_params(course__n_knots=len(states))  # what is usual, state by state
        channels = pandas().DataFrame(samples.X, columns=schema.features)
        labels = schema.labels_of(table)
        _warn_of_counters(channels, samples.runs)
        runs = [run for event in judged for run in judged_runs(schema, self.context, event)]
        self._give_seasons(stream, schema, table)
        stream.fit(channels, with_unknown(labels), *samples.beside, judged=runs)
        self.schema_, self.stream_ = schema, stream
        self.card_ = make_card(channels, labels, stream.detector_) | verdicts_of(judged)
        self.card_["runs"] = len(run_slices(samples.runs, len(table)))
        known = stream.get_params(deep=False)
        settings: tuple[str, ...] = (
            "windows",
            "n_blocks",
            "drift",
            "half_life",
            "max_gap",
            "course",
            "max_rows",
            "alarm_rate",
            "direction",
            "limits",
        )
        settings += ("season", "holidays", "zone") if is_given(known["season"]) else ()
        self.card_["settings"] |= {name: repr(known[name]) for name in settings}
        return self.restart()

    def plan(self, frame: Any) -> Plan:
        """Predict memory and time of `fit`, without fitting.

        Parameters
        ----------
        frame : data frame
            Runs, as for `fit`. Channels that `fit` would drop for their drift are counted.

        Returns
        -------
        Plan
            Bytes and seconds: ``print(model.plan(frame))``. Its rows are those that are learned
            (`max_rows`), its columns the features of the windows.
        """
        table = as_frame(frame)
        schema = self._settled(table)
        n_runs = len(run_slices(runs_of(schema, table), len(table)))
        return self._blank().plan((len(table), len(schema.features)), n_runs)

    def _blank(self) -> StreamDetector:
        """Return what is to learn."""
        stream = StreamDetector() if self.stream is None else clone(self.stream)
        if not isinstance(stream, StreamDetector):
            raise InvalidTypeError(
                f"stream must be a StreamDetector. Got {type(stream).__name__}. A detector of "
                "rows goes inside: StreamDetector(detector)."
            )
        return stream

    def _give_seasons(self, stream: StreamDetector, schema: Schema, table: Frame) -> None:
        """Tell the stream detector of the seasons, and of the zone of the times."""
        for name in ("season", "holidays", "zone"):
            own, theirs = getattr(self, name), getattr(stream, name)
            if is_given(own) and is_given(theirs) and own != theirs:
                raise InvalidInputError(
                    f"{name}={own!r}, but the stream has {name}={theirs!r}. Give it in one place "
                    "only."
                )
            if is_given(own):
                stream.set_params(**{name: own})
        if not is_given(stream.season):
            return
        times = next((column for column in schema.columns if column.kind == "time"), None)
        if times is None:
            raise TableError(
                "A season needs the times of the rows, and no column holds any: "
                f"{listed(list(table.columns))}. Name it, for instance time='when'."
            )
        if times.utc:
            stream.set_params(zone=stream.zone or zone_of(table[times.name]))
        elif times.format != "number":
            stream.set_params(zone=None)  # they are local

    # no keep_going: a stream always goes on
    def score(self, frame: Any) -> Frame:  # type: ignore[override]
        """Score every row of whole runs; the live stream does not change.

        Parameters
        ----------
        frame : data frame
            Whole runs with the columns of training. The group column, or the files of a folder,
            separate the runs; without either the table is one run.

        Returns
        -------
        pandas.DataFrame
            As of `TableDetector.score`. The first rows of a run have no score; "is_anomaly" is
            missing there.
        """
        check_is_fitted(self, "stream_")
        table = as_frame(frame)
        run_slices(runs_of(self.schema_, table), len(table))  # refuses runs that are interleaved
        fresh = copy(self)
        fresh.stream_ = copy(self.stream_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)  # of a live stream
            return fresh.restart().score_rows(table)

    def score_rows(
        self,
        frame: Any,
        *,
        keep_going: bool = True,
        why: bool | str = False,
        most_explained: int | None = None,
    ) -> Frame:
        """Score the next rows of the live stream.

        Parameters
        ----------
        frame : data frame
            One or more rows, in the order of their arrival. A new name in the group column, if
            there is one, begins a new run.
        keep_going : bool, default=True
            Not used: a stream always continues.
        why : bool or "all", default=False
            Add a column "why" with the channels behind each alarm, and their usual values; "all":
            behind the score of every row.
        most_explained : int, default=None
            Most rows with a reason; None is `most_explained` of the model.

        Returns
        -------
        pandas.DataFrame
            As of `score`.
        """
        scores, log = self.follow(frame)
        if why:
            known = scores["score"].notna()
            wanted = known if why == "all" else known & (scores["score"] < self.offset_)
            rows = np.flatnonzero(wanted)
            most = self.most_explained if most_explained is None else most_explained
            _warn_of("Rows without a reason, as so many are not explained", scores, rows[most:])
            texts = pandas().Series(None, index=scores.index, dtype="string")
            for i in rows[:most].tolist():
                texts.iloc[i] = reading_line(self.readings(log, i)) or "no single channel"
            scores[free_name("why", scores.columns)] = texts
        return scores

    def follow(self, frame: Any) -> tuple[Frame, ChunkLog]:
        """Score the next rows of the live stream as `score_rows`, and record events at each.

        Parameters
        ----------
        frame : data frame
            The rows, as in `score_rows`.

        Returns
        -------
        scores : pandas.DataFrame
            As of `score`.
        log : ChunkLog
            Rows that are counted in `counts`, and rows at which a channel left the training range
            for the first time.
        """
        check_is_fitted(self, "stream_")
        table = as_frame(frame)
        samples = self._read(table)
        scores, log = self._follow(samples)
        result = self._shown(table, samples.times) | self._results(table, scores)
        return pandas().DataFrame(result, index=table.index), log

    def follow_plain(self, rows: PlainRows) -> tuple[FloatArray, ChunkLog]:
        """Score the next rows of the live stream as `follow`, from rows of `plain_reader`.

        Parameters
        ----------
        rows : PlainRows
            Rows read by `plain_reader`.

        Returns
        -------
        scores : ndarray of shape (n,)
            Scores; NaN for rows without a score.
        log : ChunkLog
            As returned by `follow`.
        """
        X = np.array(rows.X, dtype=np.float64)
        none = np.zeros(len(X), dtype=bool)
        return self._follow(Samples(X, rows.runs, rows.times, rows.context, none))

    def _follow(self, samples: Samples) -> tuple[FloatArray, ChunkLog]:
        _, times, context = samples.beside
        scores = np.full(len(samples.X), np.nan)
        log = ChunkLog(0)
        for run, rows in _stretches(samples.runs, len(samples.X)):
            if run != self.run_:
                self.begin_run(run)
            scores[rows], part = self.stream_.follow(
                samples.X[rows],
                None if times is None else times[rows],
                None if context is None else context[rows],
            )
            log.extend(part, but=self.past_drifted_)
        for name, odd in samples.odd.items():
            self.past_[name] = self.past_.get(name, 0) + len(odd)
            log.add(name, odd)
        return scores, log

    def raises_alarm(self, event: JudgedEvent) -> bool | None:
        """Return whether the rows of an event raise an alarm; None if none has a score.

        Parameters
        ----------
        event : JudgedEvent
            The event. Each part of it is scored as a run.

        Returns
        -------
        bool or None
            Whether one of them raises an alarm.
        """
        check_is_fitted(self, "stream_")
        has_score = False
        for run in judged_runs(self.schema_, self.context, event):
            tracker = self.stream_.tracker()
            scores = self.stream_.score_samples(run.samples, None, run.times, run.context)
            has_score |= not np.isnan(scores).all()
            for score in scores.tolist():
                tracker.update(score)
                if tracker.is_on:
                    return True
        return False if has_score else None

    def restart(self) -> "StreamTable":
        """Start a new live stream with the next row, and set its counts to zero."""
        check_is_fitted(self, "stream_")
        self.stream_.reset()
        self.run_, self.columns_ = None, None
        self.past_, self.past_drifted_ = {}, []
        return self

    def begin_run(self, run: str | None = None) -> "StreamTable":
        """Start a new run of the live stream with the next row; counts continue.

        Parameters
        ----------
        run : str, default=None
            Its name in the group column, if there is one.

        Returns
        -------
        StreamTable
            The model.
        """
        check_is_fitted(self, "stream_")
        self.past_, self.past_drifted_ = self.counts, self.drifted
        monitor = self.stream_.state_.monitor
        self.stream_.reset()
        if monitor is not None:  # the sensors are the same, and so is what has become of them
            self.stream_.state_.monitor = monitor.begin_run()
        self.run_ = run
        return self

    def reasons(
        self, log: ChunkLog, sample: int, count: int = 3
    ) -> tuple[list[ChannelReading], dict[str, float]]:
        """Return channels and members that lower a score; see `StreamDetector.reasons`."""
        check_is_fitted(self, "stream_")
        return self.stream_.reasons(log, sample, count)

    def readings(
        self, log: ChunkLog | None = None, sample: int = -1, count: int = 3
    ) -> list[ChannelReading]:
        """Return the channels that lower a live score; see `StreamDetector.readings`."""
        check_is_fitted(self, "stream_")
        return self.stream_.readings(log, sample, count)

    def explain(self, frame: Any, rows: Any = None) -> Explanation:
        """Explain the scores of some rows of whole runs.

        Parameters
        ----------
        frame : data frame
            Whole runs, as in `score`.
        rows : sequence of int, default=None
            Positions of the rows to explain, each with a score. None explains all with a score.

        Returns
        -------
        Explanation
            One entry per row; its features are windows of the channels.
        """
        check_is_fitted(self, "stream_")
        table = as_frame(frame)
        samples = self._read(table)
        if rows is None:
            rows = ~np.isnan(self.stream_.score_samples(samples.X, *samples.beside))
        return self.stream_.explain(samples.X, rows, *samples.beside)

    def explained(self, frame: Any, rows: Any) -> tuple[Explanation, list[list[ChannelReading]]]:
        """Return the explanation of rows, and the readings of their channels.

        Parameters
        ----------
        frame : data frame
            Whole runs, as in `score`.
        rows : sequence of int
            Positions of the rows, each with a score.

        Returns
        -------
        explanation : Explanation
            One entry per row.
        readings : list of list of ChannelReading
            For each row its channels, those that lower the score most first.
        """
        why, samples = self.explain(frame, rows), self._read(as_frame(frame))
        features = self.stream_.features(samples.X, *samples.beside)[rows]
        context = None if samples.context is None else samples.context[rows][:, np.newaxis]
        times = check_times(samples.beside[1], len(samples.X))
        when = None if times is None else times[rows]
        view = self.stream_.view_
        return why, readings_of(why, self.detector_, view, features, context, times=when)

    def channel_costs(self, explanation: Explanation) -> FloatArray:
        """Return how much each channel lowers the explained scores, summed over its windows.

        Parameters
        ----------
        explanation : Explanation
            Result of `explain`.

        Returns
        -------
        ndarray of shape (q, number of channels)
            Costs; the columns are those of `channels`.
        """
        check_is_fitted(self, "stream_")
        costs, n = explanation.attributions, len(self.stream_.watched_)
        return np.asarray(costs.reshape(len(costs), -1, n).sum(axis=1))

    def report(
        self,
        frame: Any,
        *,
        name: str = "the table",
        trace: Trace | None = None,
        has_score: BoolArray | None = None,
    ) -> Report:
        """Report the alarms in runs, and their reasons, as one HTML page.

        Parameters
        ----------
        frame : data frame
            Whole runs, as in `score`.
        name : str, default="the table"
            Name of the table in the report.
        trace : Trace, default=None
            What was recorded when the rows were scored (`ocfuse.ensemble.score`); None scores
            them.
        has_score : ndarray of shape (n,), default=None
            Rows of the frame that `trace` has; None is all.

        Returns
        -------
        Report
            The page on all rows that have a score; `save` writes it.
        """
        check_is_fitted(self, "stream_")
        schema, table = self.schema_, as_frame(frame)
        with warnings.catch_warnings():
            if trace is not None:  # what is odd was told when the rows were scored
                warnings.simplefilter("ignore", TableWarning)
            samples = self._read(table)
        _, times, context = samples.beside
        if trace is None:
            features = self.stream_.features(samples.X, *samples.beside)
            chosen = np.asarray(~np.isnan(features).any(axis=1))
            X = features[chosen]
        else:
            chosen = np.ones(len(table), dtype=bool) if has_score is None else has_score
            X = trace.X
        if not chosen.any():
            raise TableError(f"No row of {name} has a score. {self.needed}")
        context = None if context is None else context[chosen]
        if trace is None:
            trace = self.detector_._trace(X, context)
        events = self._events_of(trace.score, chosen, runs_of(schema, table))
        labels, ids = schema.labels_of(table), schema.ids_of(table)
        unscored = int((~chosen).sum())
        data = slow("ocfuse.ensemble.report").report_data(
            self.detector_,
            X,
            None if labels is None else with_unknown(labels[chosen]),
            # runs that all begin at 0 have no common time
            time=times[chosen] if times is not None and _rises(times[chosen]) else None,
            ids=(table.index if ids is None else ids)[chosen],
            feature_names=self.stream_.feature_names_,
            title=f"Anomalies in {name}",
            card={
                "Data": f"{name}, {unscored:,} rows without a score left out",
                "Model learned": self.card_["time"],
                "Training table": f"{self.card_['rows']:,} rows, {self.card_['runs']:,} runs",
                "SHA-256 of the training columns, as they were read": self.card_["sha256"],
                "Columns not learned from": schema.left_out or "none",
            },
            trace=trace,
            events=events,
        )
        times = check_times(samples.beside[1], len(samples.X))
        when = None if times is None else times[chosen]
        return make_report(self._with_channels(data, X, samples.X[chosen], context, when))

    def _with_channels(
        self,
        data: ReportData,
        features: FloatArray,
        values: FloatArray,
        context: FloatArray | None,
        times: FloatArray | None,
    ) -> ReportData:
        """Return the data of a report with the channels that matter and what they read."""
        stream, why = self.stream_, data.explanation
        # those of the alarms or, if there are none, of the lowest scores
        costs = np.maximum(self.channel_costs(why), 0.0)[why.is_anomaly | ~why.is_anomaly.any()]
        total = costs.sum(axis=0)
        most = [j for j in np.argsort(-total, kind="stable")[:MOST_DRAWN].tolist() if total[j] > 0]
        low, high = stream.sensor_limits.band(context)
        place = np.flatnonzero(stream.view_.is_watched)
        rows = data.rows
        readings = readings_of(
            *(why, self.detector_, stream.view_, features[rows]),
            None if context is None else context[rows],
            times=None if times is None else times[rows],
        )
        return replace(
            data,
            channels=tuple(
                ChannelCourse(self.channels[j], *(x[:, place[j]] for x in (values, low, high)))
                for j in most
            ),
            channel_readings={
                int(row): reading_line(found) for row, found in zip(rows, readings, strict=True)
            },
        )

    def _events_of(
        self, scores: FloatArray, has_score: BoolArray, runs: list[str] | None
    ) -> list[IntArray]:
        """Return the scored rows of every event, counted among those that have a score."""
        whole = np.full(len(has_score), np.nan)
        whole[has_score] = scores
        before: IntArray = np.cumsum(has_score) - has_score  # scored rows before each
        found: list[IntArray] = []
        for part in run_slices(runs, len(whole)):
            for event in self.stream_.tracker().run(whole[part]):
                rows = np.arange(part.start + event.start, part.start + event.stop)
                found.append(before[rows[has_score[rows]]])
        return found

    def calibrate(self, frame: Any) -> "StreamTable":
        """Set the threshold from fresh normal runs (see `StreamDetector.calibrate`)."""
        check_is_fitted(self, "stream_")
        samples = self._read(as_frame(frame))
        self.stream_.calibrate(samples.X, *samples.beside)
        return self

    def adapt(self, frame: Any) -> "StreamTable":
        """Raise an error: rows of a run are alike, so the certainty of their alarms is unknown."""
        raise InvalidInputError(
            "adapt is for rows that stand alone. The model is one of streams, whose rows follow "
            "each other: fit again with the runs that are normal, or use calibrate."
        )

    def update(self, frame: Any, *, memory: int | None = None) -> "StreamTable":
        """Raise an error: rows of a run are alike, and the threshold counts runs."""
        raise InvalidInputError(
            "update is for rows that stand alone. The model is one of streams, whose rows follow "
            "each other: fit again with the runs that are normal, use calibrate, or let the "
            "threshold follow slow changes (ocfuse watch --adaptive)."
        )

    def in_order(self, chunks: Iterable[Frame]) -> Iterator[Frame]:
        """Yield chunks, unless rows of a recorded run do not follow each other."""
        last, seen = None, set()
        for chunk in chunks:
            for i, run in enumerate(runs_of(self.schema_, chunk) or ()):
                if run != last and run in seen:
                    raise TableError(
                        f"The rows of a run must follow each other, but row {chunk.index[i]} goes "
                        f"on with {run!r} after rows of {last!r}. Sort the table by run, then by "
                        "time."
                    )
                last = run
                seen.add(run)
            yield chunk

    def n_unknown(self, n_without: int, n_rows: int) -> int:
        """Return how many rows without a score may be anomalies, except first rows of runs."""
        return n_without if n_without == n_rows else 0

    def facts(self) -> dict[str, Any]:
        """Return facts of the stream: runs, windows, context, drift, channels, seasons."""
        stream = self.stream_
        usual = stream.view_.usual
        seasons = None if usual is None else usual.seasons
        found = {} if seasons is None else {"usual": seasons.facts(stream.channels_)}
        ratios = zip(stream.channels_, stream.drift_ratio_.tolist(), strict=True)
        return {
            "stream": {
                "runs": self.card_["runs"],
                "windows": list(stream.windows),
                "context": self.context,
                "drift": stream.drift,
                "drift_limit": DRIFTING
                if stream.drift != "keep"
                else drift_limit(self.card_["runs"], stream.n_blocks),
                "counts": stream.training_counts_,
                "events": stream.alarm_facts(),
                "channels": [
                    {"name": name, "drift_ratio": ratio, "is_watched": name in stream.watched_}
                    for name, ratio in ratios
                ],
            }
        } | found

    @property
    def channels(self) -> list[str]:
        """Channels that are not dropped, in the order of `channel_costs`."""
        return list(self.stream_.watched_)

    @property
    def run_column(self) -> str | None:
        """Column with the run of each row; None if there is none."""
        return next((c.name for c in self.schema_.columns if c.kind == "group"), None)

    def runs_in(self, scores: Frame) -> Series | None:
        """Return the column with the runs of scored rows; None if there is none.

        Parameters
        ----------
        scores : pandas.DataFrame
            Result of `score` or `score_rows`.

        Returns
        -------
        pandas.Series or None
            Names of the runs.
        """
        known = (
            free_name(name, self.result_names)
            for name in (self.run_column, FILE)
            if name is not None
        )
        return next((scores[name] for name in known if name in scores.columns), None)

    @property
    def needed(self) -> str:
        """What a row needs to have a score, in words."""
        what = "most channels" if self.context is None else f"{self.context!r} and most channels"
        longest = max((*self.stream_.windows, 1))
        return f"A row needs {longest} rows of its run in the order of time, with {what}."

    @property
    def has_times(self) -> bool:
        """Whether rows have a time, so that gaps between them are noticed."""
        return any(column.kind == "time" for column in self.schema_.columns)

    @property
    def usual_seconds(self) -> float | None:
        """Usual time between two rows in training; None if these had no dates."""
        dated = [c for c in self.schema_.columns if c.kind == "time" and c.format != "number"]
        step = float(self.stream_.view_.usual_step)
        return step if dated and np.isfinite(step) else None

    def _read(self, table: Frame) -> Samples:
        """Return the rows of a table; other columns than before are checked, with warnings."""
        if list(table.columns) != self.columns_:
            self.schema_.check(table.iloc[:0])
            self.columns_ = list(table.columns)
        if is_given(self.stream_.season):
            self.schema_.require_local_times(table)
        return read_samples(self.schema_, self.context, table)

    def _beside(self, table: Frame) -> dict[str, Series]:
        return self._shown(table, self.schema_.times_of(table))

    @property
    def _context(self) -> str | None:
        return self.context

    def _shown(self, table: Frame, times: Series | None) -> dict[str, Series]:
        """Return run, file, id and time, under names that are free."""
        plain = dict.fromkeys(name for name in (self.run_column, FILE) if name in table.columns)
        found = [table[name] for name in plain]
        found += [column for column in (self.schema_.ids_of(table), times) if column is not None]
        shown: dict[str, Series] = {}
        for column in found:
            shown[free_name(str(column.name), (*self.result_names, *shown))] = column
        return shown

    def _settled(self, table: Frame) -> Schema:
        """Return what the columns hold; all features are channels, which may have gaps."""
        ignored = [self.ignore] if isinstance(self.ignore, str) else list(self.ignore)
        group = FILE if self.group is None and FILE in table.columns else self.group
        if self.context is not None:
            given = {"label": self.label, "id": self.id, "time": self.time, "group": group}
            known = [(kind, name) for kind, name in given.items() if name is not None]
            require_known(table, [("context", self.context), *known])
            ignored.append(self.context)
        schema = Schema.infer(
            *(table, self.label, ignored, self.id, self.time),
            normal=self.normal,
            anomaly=self.anomaly,
            group=group,
            direction=None if self.stream is None else self.stream.direction,
            limits=None if self.stream is None else self.stream.limits,
        )
        others = [column for column in schema.columns if column.kind == "category"]
        if others:
            shown = listed([f"{column.name} ({column.reason})" for column in others])
            what = (
                f"The channels of a stream are numbers. These columns are none: {shown}. To "
                f"compare rows of the same state, say context={others[0].name!r}."
            )
            if not any(column.kind == "number" for column in schema.columns):
                raise TableError(what)
            warnings.warn(f"{what} They are left out.", TableWarning, stacklevel=3)
        states = [] if self.context is None else _states_in(table[self.context])
        reason = "context of the rows, as asked for"
        reason += f": {listed(states)}" if states else ""
        columns = [
            replace(column, has_gaps=True, is_constant=False)
            if column.kind == "number"
            else replace(column, reason=reason, categories=states)
            if column.name == self.context
            else replace(column, reason="every file is a run")
            if column.kind == "group" and self.group is None
            else replace(column, kind="ignored")
            if column.kind in ("empty", "category")
            else column
            for column in schema.columns
        ]
        return Schema(columns, schema.label_rule)


def _stretches(runs: list[str] | None, n: int) -> Iterator[tuple[str | None, slice]]:
    """Yield rows of one run at a time, and not too many: members need memory for each."""
    starts = [0] if runs is None else [i for i in range(n) if i == 0 or runs[i] != runs[i - 1]]
    for start, stop in zip(starts, [*starts[1:], n], strict=True):
        for rows in blocks(start, stop):
            yield None if runs is None else runs[rows.start], rows


def _warn_of_counters(channels: Frame, runs: list[str] | None) -> None:
    """Warn of channels that rise in every row of every run, as times and counters do."""
    X = channels.to_numpy()
    slices = run_slices(runs, len(X))
    rising = np.all([(np.diff(X[part], axis=0) > 0).all(axis=0) for part in slices], axis=0)
    for name in channels.columns[rising]:
        warnings.warn(
            f"Column {name!r} rises in every row, as times and counters do, but is taken for a "
            f"channel. If it is none, say time={name!r}, context={name!r} or ignore={name!r}.",
            TableWarning,
            stacklevel=3,
        )


def _rises(times: Any) -> bool:
    return bool((np.diff(times) >= np.zeros(1, dtype=np.diff(times[:1]).dtype)).all())
