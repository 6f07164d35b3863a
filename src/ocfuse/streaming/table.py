"""StreamTable: a stream detector that knows the columns of its table."""

import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.score import Trace, blocks
from ocfuse.exceptions import (
    DriftWarning,
    InvalidInputError,
    InvalidTypeError,
    RowsWarning,
    TableError,
    TableWarning,
)
from ocfuse.explain import Explanation
from ocfuse.report import Report
from ocfuse.streaming.channels import ChannelReading
from ocfuse.streaming.clock import ChunkLog
from ocfuse.streaming.course import DRIFTING
from ocfuse.streaming.detector import StreamDetector
from ocfuse.streaming.fit import drift_limit
from ocfuse.streaming.view import MOST_MISSING
from ocfuse.streaming.windows import run_slices
from ocfuse.tables.cells import PlainRows, numbers
from ocfuse.tables.columns import shown_rows
from ocfuse.tables.dataframes import FILE, Frame, Series, as_frame, free_name, listed, pandas
from ocfuse.tables.detector import RESULTS, RUNS, TableDetector, make_card, results_of
from ocfuse.tables.labels import with_unknown
from ocfuse.tables.schema import Schema, require_known


@dataclass(frozen=True)
class Samples:
    """Rows of a table as a stream detector takes them."""

    X: FloatArray  # values of the channels, NaN for gaps
    runs: list[str] | None
    times: Any  # numbers or dates, as they are shown, or as `as_times` gives them; None for none
    context: FloatArray | None  # NaN where it is not known
    unreadable: BoolArray  # rows with cells that hold something, but no number

    @property
    def odd(self) -> dict[str, list[int]]:
        """Rows with cells that are no numbers, with most channels empty, without a context."""
        context = np.zeros(0) if self.context is None else self.context
        empty = np.isnan(self.X).sum(axis=1) > MOST_MISSING * self.X.shape[1]
        return {
            "unreadable": np.flatnonzero(self.unreadable).tolist(),
            "empty": np.flatnonzero(empty).tolist(),
            "context": np.flatnonzero(np.isnan(context)).tolist(),
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
    _warn_of("Rows with cells that are no numbers, which count as missing", table, is_strange)
    return Samples(
        X,
        runs_of(schema, table),
        schema.times_of(table),
        None if context is None else _context_of(table, context, to_learn),
        is_strange,
    )


def _warn_of(what: str, table: Frame, chosen: BoolArray) -> None:
    if chosen.any():
        first = f"row {table.index[int(np.flatnonzero(chosen)[0])]}"
        warnings.warn(RowsWarning(what, int(chosen.sum()), first), stacklevel=4)


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


def _context_of(table: Frame, name: str, to_learn: bool) -> FloatArray:
    """Return the context of the rows; to learn from, every one needs it."""
    if name not in table.columns:
        raise TableError(
            f"The column {name!r} is missing, which the model takes for the context of the rows."
        )
    values, _ = numbers(table[name])
    gone = ~np.isfinite(values)
    if to_learn and gone.any():
        raise TableError(
            f"Column {name!r} is the context of the rows, but holds no number in "
            f"{shown_rows(table[name], gone)}. Every row that is learned from needs one."
        )
    _warn_of("Rows without a context, which have no score", table, gone)
    return np.where(gone, np.nan, values)


class StreamTable(TableDetector):
    """Detect anomalies in runs of sensors that come as tables.

    The columns of numbers are the channels. `score` takes whole runs from their
    beginning; `score_rows` takes the rows of a live stream as they come. What is missing,
    late or repeated is treated as `StreamDetector` says, and counted in `counts`; a cell
    that holds no number counts as missing, and a row without a context has no score.

    Parameters
    ----------
    stream : StreamDetector, default=None
        What learns from the runs. None is `StreamDetector()`.
    label, normal, anomaly, ignore, id, time : str
        Columns, as in `TableDetector`.
    group : str, default=None
        Column that names the run of every row; the rows of a run follow each other. None
        is the column `file` that a folder has, else all rows are one run.
    context : str, default=None
        Column of numbers with the context of every row, such as the progress of a task.
        It is no channel.

    Attributes
    ----------
    schema_ : Schema
        What the columns hold.
    stream_ : StreamDetector
        The fitted detector.
    run_ : str or None
        Run that the live stream is in.
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

    @property
    def detector_(self) -> FusedDetector:  # type: ignore[override]
        """The detector of the windows, which holds the threshold."""
        return self.stream_.detector_

    @property
    def counts(self) -> dict[str, int]:
        """What has happened in the live stream, over all its runs."""
        here = self.stream_.state_.counts
        return {
            name: here.get(name, 0) + self.past_.get(name, 0) for name in {**here, **self.past_}
        }

    @property
    def drifted(self) -> list[str]:
        """Channels whose slow mean has left training, over all runs of the live stream."""
        here = self.stream_.state_.drifted
        return self.past_drifted_ + [name for name in here if name not in self.past_drifted_]

    def fit(self, frame: Any, y: Any = None) -> "StreamTable":
        """Settle what the columns hold, and learn from the runs.

        Parameters
        ----------
        frame : data frame
            Normal runs one after another, such as `open_source(folder).read()`.
        y : None
            Not used; labels are a column of the table.

        Returns
        -------
        StreamTable
            The fitted model, ready for a new stream.
        """
        stream = StreamDetector() if self.stream is None else clone(self.stream)
        if not isinstance(stream, StreamDetector):
            raise InvalidTypeError(
                f"stream must be a StreamDetector. Got {type(stream).__name__}. A detector of "
                "rows goes inside: StreamDetector(detector)."
            )
        table = as_frame(frame)
        schema = self._settled(table)
        samples = read_samples(schema, self.context, table, to_learn=True)
        channels = pandas().DataFrame(samples.X, columns=schema.features)
        labels = schema.labels_of(table)
        _warn_of_counters(channels, samples.runs)
        stream.fit(channels, with_unknown(labels), *samples.beside)
        self.schema_, self.stream_ = schema, stream
        self.card_ = make_card(channels, labels, stream.detector_)
        self.card_["runs"] = len(run_slices(samples.runs, len(table)))
        known = stream.get_params(deep=False)
        settings = ("windows", "n_blocks", "drift", "half_life", "max_gap", "course", "max_rows")
        self.card_["settings"] |= {name: repr(known[name]) for name in settings}
        return self.restart()

    # no keep_going: a stream always goes on
    def score(self, frame: Any) -> Frame:  # type: ignore[override]
        """Judge every row of whole runs, from their beginning; the live stream stays as it is.

        Parameters
        ----------
        frame : data frame
            Runs with the columns of training. They are told apart by the group column, or
            by the files of a folder; without either the table is one run.

        Returns
        -------
        pandas.DataFrame
            As of `TableDetector.score`. The first rows of a run have no score, and whether
            a row without a score is an anomaly is not known.
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
        """Judge the next rows of the live stream.

        Parameters
        ----------
        frame : data frame
            The rows, one or more, in the order in which they came. Another name in the
            group column, if there is one, begins a new run.
        keep_going : bool, default=True
            Not used: a stream always goes on.
        why : bool, default=False
            Not for streams: `explain` gives reasons.
        most_explained : int, default=None
            Not used.

        Returns
        -------
        pandas.DataFrame
            As of `score`.
        """
        if why:
            raise InvalidInputError(
                "Reasons are given for rows of a table, not of a stream, where a row has its score "
                "by those before it. Use ocfuse explain --row or --worst."
            )
        scores, _ = self.follow(frame)
        return scores

    def follow(self, frame: Any) -> tuple[Frame, ChunkLog]:
        """Judge the next rows of the live stream, as `score_rows`; tell what happened at each.

        Parameters
        ----------
        frame : data frame
            The rows, as in `score_rows`.

        Returns
        -------
        scores : pandas.DataFrame
            As of `score`.
        log : ChunkLog
            Which rows are counted in `counts`, and at which of them channels left training
            for the first time.
        """
        check_is_fitted(self, "stream_")
        table = as_frame(frame)
        samples = self._read(table)
        scores, log = self._follow(samples)
        result = self._shown(table, samples.times) | results_of(self.detector_, scores)
        return pandas().DataFrame(result, index=table.index), log

    def follow_plain(self, rows: PlainRows) -> tuple[FloatArray, ChunkLog]:
        """Judge the next rows of the live stream, as `follow`, of rows that are read plainly.

        Parameters
        ----------
        rows : PlainRows
            What `plain_reader` gave.

        Returns
        -------
        scores : ndarray of shape (n,)
            Scores; NaN where there is none.
        log : ChunkLog
            As of `follow`.
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

    def restart(self) -> "StreamTable":
        """Forget the live stream and its counts: the next row is the first of a new one."""
        check_is_fitted(self, "stream_")
        self.stream_.reset()
        self.run_, self.columns_ = None, None
        self.past_, self.past_drifted_ = {}, []
        return self

    def begin_run(self, run: str | None = None) -> "StreamTable":
        """Let the next row be the first of a new run of the live stream; counts go on.

        Parameters
        ----------
        run : str, default=None
            What the group column calls it, if there is one.

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
        """Return channels and members behind a score; see `StreamDetector.reasons`."""
        check_is_fitted(self, "stream_")
        return self.stream_.reasons(log, sample, count)

    def readings(
        self, log: ChunkLog | None = None, sample: int = -1, count: int = 3
    ) -> list[ChannelReading]:
        """Return the channels behind a score of the live stream; see `StreamDetector.readings`."""
        check_is_fitted(self, "stream_")
        return self.stream_.readings(log, sample, count)

    def explain(self, frame: Any, rows: Any = None) -> Explanation:
        """Return what lies behind the scores of some rows of whole runs.

        Parameters
        ----------
        frame : data frame
            Whole runs, as in `score`.
        rows : sequence of int, default=None
            Positions of the rows to explain, each with a score. None is all that have one.

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

    def channel_costs(self, explanation: Explanation) -> FloatArray:
        """Return what each channel costs the explained rows: the sum over its windows.

        Parameters
        ----------
        explanation : Explanation
            What `explain` returned.

        Returns
        -------
        ndarray of shape (q, number of channels)
            Columns as `channels` names them.
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
        """Make a page on the alarms in some runs, and why they were raised.

        Parameters
        ----------
        frame : data frame
            Whole runs, as in `score`.
        name : str, default="the table"
            What to call them.
        trace : Trace, default=None
            What was kept of the rows when they were scored (`ocfuse.ensemble.score`); None
            scores them.
        has_score : ndarray of shape (n,), default=None
            Which rows of the frame the trace is of; None is all.

        Returns
        -------
        Report
            The page on all rows that have a score; `save` writes it.
        """
        check_is_fitted(self, "stream_")
        schema, table = self.schema_, as_frame(frame)
        if trace is None:
            samples = self._read(table)
            features = self.stream_.features(samples.X, *samples.beside)
            chosen = ~np.isnan(features).any(axis=1)
            X, (_, times, context) = features[chosen], samples.beside
        else:
            chosen = np.ones(len(table), dtype=bool) if has_score is None else has_score
            X, context, times = trace.X, None, as_times(schema.times_of(table))
        if not chosen.any():
            raise TableError(f"No row of {name} has a score. {self.needed}")
        labels, ids = schema.labels_of(table), schema.ids_of(table)
        unscored = int((~chosen).sum())
        return self.detector_.report(
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
            context=None if context is None else context[chosen],
            trace=trace,
        )

    def calibrate(self, frame: Any) -> "StreamTable":
        """Set the threshold from fresh normal runs (see `StreamDetector.calibrate`)."""
        check_is_fitted(self, "stream_")
        samples = self._read(as_frame(frame))
        self.stream_.calibrate(samples.X, *samples.beside)
        return self

    def adapt(self, frame: Any) -> "StreamTable":
        """Refuse: rows of a run are alike, and how sure their alarms are is not known."""
        raise InvalidInputError(
            "adapt is for rows that stand alone. The model is one of streams, whose rows follow "
            "each other: fit again with the runs that are normal, or use calibrate."
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
        """Return how many rows without a score may be anomalies: those that begin a run may not."""
        return n_without if n_without == n_rows else 0

    def facts(self) -> dict[str, Any]:
        """Return what is known of the stream: runs, windows, context, drift, channels."""
        stream = self.stream_
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
                "channels": [
                    {"name": name, "drift_ratio": ratio, "is_watched": name in stream.watched_}
                    for name, ratio in ratios
                ],
            }
        }

    @property
    def channels(self) -> list[str]:
        """Channels that are watched, in the order of `channel_costs`."""
        return list(self.stream_.watched_)

    @property
    def run_column(self) -> str | None:
        """The column that names the run of every row, if there is one."""
        return next((c.name for c in self.schema_.columns if c.kind == "group"), None)

    def runs_in(self, scores: Frame) -> Series | None:
        """Return the column of scored rows that names their runs, if there is one.

        Parameters
        ----------
        scores : pandas.DataFrame
            What `score` or `score_rows` returned.

        Returns
        -------
        pandas.Series or None
            The names.
        """
        known = (free_name(name, RESULTS) for name in (self.run_column, FILE) if name is not None)
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
            shown[free_name(str(column.name), (*RESULTS, *shown))] = column
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
        )
        others = [column for column in schema.columns if column.kind == "category"]
        if others:
            shown = listed([f"{column.name} ({column.reason})" for column in others])
            say = ", ".join(f"ignore={column.name!r}" for column in others[:3])
            raise TableError(
                f"The channels of a stream must be numbers. These columns are none: {shown}. Leave "
                f"them out, say {say}; or write states as numbers, such as 0 and 1."
            )
        columns = [
            replace(column, has_gaps=True, is_constant=False)
            if column.kind == "number"
            else replace(column, reason="context of the rows, as asked for")
            if column.name == self.context
            else replace(column, kind="ignored")
            if column.kind == "empty"
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
