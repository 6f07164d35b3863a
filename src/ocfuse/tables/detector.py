"""TableDetector: a detector that knows the columns of its table."""

import hashlib
import os
import platform
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import BoolArray, FloatArray, Int64Array
from ocfuse.encoder import cell_warnings_off, is_given, make_encoder
from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.plan import Plan, require_memory
from ocfuse.ensemble.score import Trace, score_in_blocks, score_numbers, takes_numbers
from ocfuse.exceptions import (
    FewSamplesWarning,
    InvalidInputError,
    InvalidTypeError,
    OcfuseWarning,
    RowsWarning,
    TableError,
)
from ocfuse.explain import Explanation
from ocfuse.limits import ValueLimits
from ocfuse.persistence import save
from ocfuse.report import Report
from ocfuse.report.words import MANY_ALARMS, count
from ocfuse.scores.threshold import InnerThresholdMixin, p_values_of
from ocfuse.system.log import logger
from ocfuse.tables import cells
from ocfuse.tables.cells import PlainReader, PlainRows
from ocfuse.tables.dataframes import Frame, Series, as_frame, free_name, pandas
from ocfuse.tables.judged import JudgedEvent, beside_judged, low_rows
from ocfuse.tables.labels import with_unknown
from ocfuse.tables.schema import Schema

_log = logger(__name__)

#: What a model knows: rows that stand alone, or runs, in which a row depends on those before it.
ROWS: Final = "rows"
RUNS: Final = "runs"
#: Columns of what `score` returns, after id, time and groups.
RESULTS = ("score", "p_value", "is_anomaly")
#: Column after these if the model has limits: the limits that a row breaks.
RULE = "rule"


class TableDetector(InnerThresholdMixin, BaseEstimator):  # type: ignore[misc]
    """Anomaly detector for tables with columns of different kinds.

    `fit` infers the kind of each column (numbers, categories, times, ids, labels) and trains a
    `FusedDetector` on the features. Later tables are read with the same kinds. A table scored in
    chunks has the same scores as at once.

    Parameters
    ----------
    detector : FusedDetector, default=None
        The detector, not yet fitted. None is `FusedDetector()`.
    label : str, default=None
        Column with the labels: which rows are normal and which are anomalies.
    normal : str or collection, default=None
        Values of the label column that mean normal (see `Schema.infer`).
    anomaly : str or collection, default=None
        Values of the label column that mean anomaly; rows with an empty cell have no label.
    ignore : str or sequence of str, default=()
        Columns not to learn from.
    id : str, default=None
        Column with a name or number of each row. None looks for one.
    time : str, default=None
        Column with the time of each row. None looks for one.
    group : str, default=None
        Column with the group of each row, such as its run or part. Rows of one group are held out
        together, and the threshold counts groups.
    categories : str or sequence of str, default=()
        Columns that hold categories even if they look otherwise: codes of digits, text with many
        values.
    numbers : str or sequence of str, default=()
        Columns that hold numbers even if they look like ids or counters of rows.
    by : str or sequence of str, default=None
        Columns that name what a row belongs to, such as "machine", or from the widest to the
        narrowest ``["plant", "machine"]``. Numbers are compared with the usual values of the same
        machine. `group` is different: its rows are held out together.
    season : str or sequence of str, default=()
        Compare numbers with the usual values at the same local time of the "day", "week", "month"
        or "year", in those columns where this predicts held-out rows better.
    holidays : str or sequence of str, default=()
        Days that are treated as Sundays unless their training rows differ. Needs
        ``season="week"``.
    zone : str, default=None
        Time zone in which days begin, such as "Europe/Berlin". None is the zone of the times;
        times without a zone are local.
    direction, limits : dict, default=None
        Columns in which only one side is bad, and limits, as in `FusedDetector`. These, `by`,
        `season`, `holidays` and `zone` may also be given to `detector` instead.

    Attributes
    ----------
    schema_ : Schema
        The columns and their kinds.
    detector_ : FusedDetector
        The fitted detector.
    card_ : dict
        Rows, columns, versions, time, settings and checksum of the training data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse import FusedDetector
    >>> from ocfuse.tables import TableDetector
    >>> flowers = load_iris(as_frame=True).frame
    >>> setosa = flowers[flowers["target"] == 0].drop(columns="target")
    >>> model = TableDetector(FusedDetector("light", random_state=0)).fit(setosa)
    >>> model.score(flowers.drop(columns="target").iloc[[25, 60, 120]])["is_anomaly"]
    25     False
    60      True
    120     True
    Name: is_anomaly, dtype: boolean
    """

    #: `ROWS` or `RUNS`.
    kind: ClassVar[str] = ROWS
    #: Rows that may be scored to say why others raise alarms; each takes two per column.
    max_scored: ClassVar[int] = 1_000_000
    #: Rows of a judged event that are learned from: neighbours say the same.
    most_judged: ClassVar[int] = 20

    schema_: Schema
    detector_: FusedDetector
    card_: dict[str, Any]
    # of models that were saved before there were these
    numbers: Any = ()
    by: Any = None
    season: Any = ()
    holidays: Any = ()
    zone: str | None = None
    direction: Any = None
    limits: Any = None

    def __init__(
        self,
        detector: FusedDetector | None = None,
        *,
        label: str | None = None,
        normal: Any = None,
        anomaly: Any = None,
        ignore: Any = (),
        id: str | None = None,
        time: str | None = None,
        group: str | None = None,
        categories: Any = (),
        numbers: Any = (),
        by: Any = None,
        season: Any = (),
        holidays: Any = (),
        zone: str | None = None,
        direction: Any = None,
        limits: Any = None,
    ) -> None:
        self.detector = detector
        self.label = label
        self.normal = normal
        self.anomaly = anomaly
        self.ignore = ignore
        self.id = id
        self.time = time
        self.group = group
        self.categories = categories
        self.numbers = numbers
        self.by = by
        self.season = season
        self.holidays = holidays
        self.zone = zone
        self.direction = direction
        self.limits = limits

    def fit(self, frame: Any, y: Any = None, judged: Sequence[JudgedEvent] = ()) -> "TableDetector":
        """Infer the kinds of the columns, and learn from the rows.

        Parameters
        ----------
        frame : data frame
            Training rows, such as `open_source(path).read()`.
        y : None
            Not used; labels are a column of the table.
        judged : sequence of JudgedEvent, default=()
            Events with a verdict. At most 20 rows of each are learned: as anomalies if the event
            was real, as normal rows if it was a false alarm.

        Returns
        -------
        TableDetector
            The fitted model.
        """
        table = as_frame(frame)
        detector, schema = self._settled_for(table)
        features, labels = schema.features_of(table), schema.labels_of(table)
        if judged:
            detector.fit(*_with_judged(schema, features, labels, schema.groups_of(table), judged))
        else:
            detector.fit(features, with_unknown(labels), schema.groups_of(table))
        _warn_if_few(detector)
        _log.info("columns: %s", ", ".join(f"{c.name} ({c.kind})" for c in schema.columns))
        self.schema_, self.detector_ = schema, detector
        self.card_ = make_card(features, labels, detector) | verdicts_of(judged)
        return self

    def raises_alarm(self, event: JudgedEvent) -> bool | None:
        """Return whether a row of an event raises an alarm; None if none has a score.

        Parameters
        ----------
        event : JudgedEvent
            The event; its rows below the threshold of that time are tested.

        Returns
        -------
        bool or None
            Whether one of them raises an alarm.
        """
        check_is_fitted(self, "detector_")
        found = self.score(low_rows(event, self.most_judged), keep_going=True)["is_anomaly"]
        return bool(found.any()) if found.notna().any() else None

    def plan(self, frame: Any) -> Plan:
        """Predict memory and time of `fit`, without fitting.

        Parameters
        ----------
        frame : data frame
            Training rows, as for `fit`.

        Returns
        -------
        Plan
            Bytes and seconds, by part of the fit: ``print(model.plan(frame))``.
        """
        table = as_frame(frame)
        detector, schema = self._settled_for(table)
        features, labels = schema.features_of(table), schema.labels_of(table)
        return detector.plan(features, with_unknown(labels), schema.groups_of(table))

    def _settled_for(self, table: Frame) -> tuple[FusedDetector, Schema]:
        """Return what is to learn, and what the columns hold."""
        detector = FusedDetector() if self.detector is None else clone(self.detector)
        if not isinstance(detector, FusedDetector):
            raise InvalidTypeError(
                f"detector must be a FusedDetector. Got {type(detector).__name__}. Other "
                "detectors can be its members: FusedDetector(members=[...])."
            )
        if self.label is None and len(table.columns) >= 2_000 and len(table):
            # to look at every column takes its time, which is better not spent in vain
            n_numbers = sum(map(cells.is_number, table.iloc[0]))
            require_memory(detector.plan((len(table), max(n_numbers, 1))))
        given = self._joined_settings(detector)
        schema = Schema.infer(
            *(table, self.label, self.ignore, self.id, given.pop("time")),
            normal=self.normal,
            anomaly=self.anomaly,
            group=self.group,
            categories=self.categories,
            numbers=self.numbers,
            by=given["by"],
            gives_times=is_given(given["season"]),
            direction=given["direction"],
            limits=given["limits"],
        )
        asked = {"categories": self.categories, "numbers": self.numbers}
        if any(map(is_given, asked.values())):
            forced = {}
            for what, names in asked.items():
                several = [names] if isinstance(names, str) else names
                forced[what] = [c.name for c in schema.columns if c.name in several]
            encoder = make_encoder(detector.encoder)
            detector.set_params(encoder=encoder.set_params(**forced))
        times = next((c for c in schema.columns if c.is_given), None)
        given["time"] = None if times is None else times.name
        if times is not None and times.utc and not given["zone"]:
            given["zone"] = cells.zone_of(table[times.name])
        known = {name: value for name, value in given.items() if value != getattr(detector, name)}
        return detector.set_params(**known), schema

    def _joined_settings(self, detector: FusedDetector) -> dict[str, Any]:
        """Return what is given here or to the detector of whose and when rows are, and limits."""
        joined: dict[str, Any] = {}
        for name in ("by", "time", "season", "holidays", "zone", "direction", "limits"):
            own, theirs = getattr(self, name), getattr(detector, name)
            if is_given(own) and is_given(theirs) and own != theirs:
                raise InvalidInputError(
                    f"{name}={own!r}, but the detector has {name}={theirs!r}. Give it in one place "
                    "only."
                )
            joined[name] = own if is_given(own) else theirs
        return joined

    def score(
        self,
        frame: Any,
        *,
        keep_going: bool = False,
        why: bool | str = False,
        most_explained: int | None = None,
    ) -> Frame:
        """Return score, p-value and decision of every row.

        Parameters
        ----------
        frame : data frame
            Rows with the columns of training. Further columns are not used.
        keep_going : bool, default=False
            If True, rows that cannot be scored have an empty score, p-value and "is_anomaly", and
            a warning counts them. If False, they are an error. These are rows with text among
            numbers, with infinity, or, if such gaps are refused (`FusedDetector.set_gaps`), with
            gaps in columns that had none in training.
        why : bool or "all", default=False
            Add a column "why" with the reason of each alarm in one line, such as "TSH 530, usually
            0.4 to 6.1"; "all": of every row (see `Explanation.reason`). To explain a row takes
            about as long as to score two rows per column. Rows with gaps in columns that had none
            in training are marked: "judged without TSH".
        most_explained : int, default=None
            Most rows with a reason, the first ones; a warning counts the others. None is as many
            as take the time of a million scored rows.

        Returns
        -------
        pandas.DataFrame
            Columns: file, id, time and those of `by`, if there are such columns; "score", higher
            is more normal; "p_value", how rarely a normal row scores this low; "is_anomaly",
            true, false, or missing without a score; and if the model has limits, "rule", the
            limits that the row breaks, which make it an anomaly whatever its score. The index is
            that of `frame`. A gap in a column that had none in training takes the value of the
            nearest training rows.
            P-values are then larger on average, and a warning says so.
        """
        check_is_fitted(self, "detector_")
        if why not in (False, True, "all"):
            raise InvalidInputError(f"why must be True, False or 'all'. Got why={why!r}.")
        table = as_frame(frame)
        unusable = self._unusable(table) if keep_going else np.zeros(len(table), dtype=bool)
        scores = np.full(len(table), np.nan)
        scores[~unusable] = self._scores(table[~unusable])
        result = self._beside(table) | self._results(table, scores)
        if why:
            is_alarm = result["is_anomaly"].fillna(False).to_numpy(dtype=bool)
            wanted = ~np.isnan(scores) & (is_alarm | (why == "all"))
            most = self.most_explained if most_explained is None else most_explained
            reasons = self._reasons(table, wanted, most)
            result[free_name("why", result)] = self._marked(table, reasons, ~np.isnan(scores))
        return pandas().DataFrame(result, index=table.index)

    @property
    def limits_(self) -> ValueLimits | None:
        """The limits beyond which a row always raises an alarm; None if there are none."""
        return self.detector_.limits_

    def broken_limits(self, frame: Any) -> NDArray[np.object_]:
        """Return which of the `limits` each row breaks.

        Parameters
        ----------
        frame : data frame
            Rows with the columns of training, including rows without a score.

        Returns
        -------
        ndarray of shape (n,)
            Texts such as "temp above 90"; empty if the row breaks no limit.
        """
        check_is_fitted(self, "detector_")
        table = as_frame(frame)
        if self.limits_ is None:
            return np.full(len(table), "", dtype=object)
        known = {column.name: column for column in self.schema_.columns}
        values = [
            cells.numbers(table[name], known[name].format)[0]
            if name in table.columns
            else np.full(len(table), np.nan)
            for name in self.limits_.names
        ]
        return np.array(self.limits_.broken(np.column_stack(values)), dtype=object)

    @property
    def result_names(self) -> tuple[str, ...]:
        """Columns of what `score` returns, after id, time and groups."""
        return RESULTS if self.limits_ is None else (*RESULTS, RULE)

    def _results(self, table: Frame, scores: FloatArray) -> dict[str, Any]:
        """Return the columns `RESULTS` of rows, and `RULE` if there are limits."""
        results = results_of(self.detector_, scores)
        if self.limits_ is None:
            return results
        rules = self.broken_limits(table)
        results["is_anomaly"][rules != ""] = True
        return results | {RULE: pandas().array([rule or None for rule in rules], dtype="string")}

    @property
    def most_explained(self) -> int:
        """Most rows that `score` explains by default."""
        return max(self.max_scored // (2 * int(self.detector_.n_features_in_)), 1)

    def explain(self, frame: Any, rows: Any = None) -> Explanation:
        """Explain the scores of rows (see `FusedDetector.explain`).

        Parameters
        ----------
        frame : data frame
            Rows with the columns of training.
        rows : sequence of int, default=None
            Positions of the rows to explain. None is all.

        Returns
        -------
        Explanation
            One entry per row.
        """
        check_is_fitted(self, "detector_")
        table = frame if rows is None else as_frame(frame).iloc[rows]
        features = self.schema_.features_of(table, gaps=self.detector_.encoder_.gaps)
        with cell_warnings_off():
            return self.detector_.explain(features)

    def report(
        self,
        frame: Any,
        *,
        name: str = "the table",
        trace: Trace | None = None,
        has_score: BoolArray | None = None,
    ) -> Report:
        """Report the alarms among the rows, and their reasons, as one HTML page.

        Parameters
        ----------
        frame : data frame
            Rows with the columns of training; labels, ids and times are shown too.
        name : str, default="the table"
            Name of the table in the report.
        trace : Trace, default=None
            What was recorded when the rows were scored (`ocfuse.ensemble.score`); None scores
            them.
        has_score : ndarray of shape (n,), default=None
            Rows of the frame that `trace` has; None is all. Other rows are left out.

        Returns
        -------
        Report
            The page; `save` writes it.
        """
        check_is_fitted(self, "detector_")
        schema, card = self.schema_, self.card_
        table = as_frame(frame)
        if has_score is not None and not has_score.all():
            if not has_score.any():
                raise TableError(f"No report was written: no row of {name} could be scored.")
            name += f", {count(int((~has_score).sum()), 'row')} without a score left out"
            table = table[has_score]
        shown = {
            "Data": name,
            "Model learned": card["time"],
            "Training table": f"{card['rows']:,} rows, {card['columns']:,} columns",
            "SHA-256 of the training columns, as they were read": card["sha256"],
            "Columns not learned from": schema.left_out or "none",
        } | ({"Times": "in UTC"} if schema.times_are_utc else {})
        gaps = self.detector_.encoder_.gaps
        features = schema.features_of(table, gaps=gaps) if trace is None else trace.X
        with cell_warnings_off():
            return self.detector_.report(
                features,
                with_unknown(schema.labels_of(table)),
                time=schema.times_of(table),
                ids=schema.ids_of(table),
                title=f"Anomalies in {name}",
                card=shown,
                trace=trace,
            )

    def calibrate(self, frame: Any) -> "TableDetector":
        """Set the threshold from fresh normal rows, by group if there is a group column.

        See `FusedDetector.calibrate`.
        """
        check_is_fitted(self, "detector_")
        schema, table = self.schema_, as_frame(frame)
        features, groups = schema.features_of(table), schema.groups_of(table)
        with cell_warnings_off():
            self.detector_.calibrate(features, groups=groups)
        return self

    def adapt(self, frame: Any) -> "TableDetector":
        """Learn from unlabelled rows how far to trust each member (see `FusedDetector.adapt`).

        Parameters
        ----------
        frame : data frame
            Unlabelled rows with the columns of training; a label column is not used.

        Returns
        -------
        TableDetector
            The model.
        """
        check_is_fitted(self, "detector_")
        features = self.schema_.features_of(as_frame(frame), gaps=self.detector_.encoder_.gaps)
        with cell_warnings_off():
            self.detector_.adapt(features)
        return self

    def update(self, frame: Any, *, memory: int | None = None) -> "TableDetector":
        """Learn more normal rows, without a new fit (see `FusedDetector.update`).

        Parameters
        ----------
        frame : data frame
            Rows with the columns of training. If there is a label column, anomalies are not
            learned, and normal rows always are.
        memory : int, default=None
            Most rows to keep; the oldest ones are forgotten. None keeps all.

        Returns
        -------
        TableDetector
            The model; "updates" in its `card_` lists the time and the rows of each update.
        """
        check_is_fitted(self, "detector_")
        schema, table = self.schema_, as_frame(frame)
        features = schema.features_of(table, gaps=self.detector_.encoder_.gaps)
        labels = with_unknown(schema.labels_of(table))
        before = self.detector_.n_added_, self.detector_.n_dropped_
        with cell_warnings_off():
            self.detector_.update(features, labels, memory=memory)
        detector = self.detector_
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        known = self.card_.get("updates", {})
        updates = {
            "number": known.get("number", 0) + 1,
            "rows_added": detector.n_added_,
            "rows_forgotten": detector.n_dropped_,
            "last": now,
            "last_rows": {
                "given": len(table),
                "added": detector.n_added_ - before[0],
                "forgotten": detector.n_dropped_ - before[1],
            },
            "members_kept_as_they_were": list(detector.unchanged_members_),
            "fit_again": detector.refit_reason_,
        }
        self.card_ = self.card_ | {"updates": updates}
        return self

    def prune(self, tol: float = 1e-9) -> "TableDetector":
        """Remove members that change no score by more than `tol` (see `FusedDetector.prune`)."""
        check_is_fitted(self, "detector_")
        self.detector_.prune(tol)
        return self

    # -- what `StreamTable` does otherwise, as its rows are of runs ----

    @property
    def counts(self) -> dict[str, int] | None:
        """Counts of odd samples of a live stream; None for a table of independent rows."""
        return None

    @property
    def needed(self) -> str:
        """What a row needs besides its columns to have a score, in words."""
        return ""

    @property
    def channels(self) -> list[str]:
        """Channels of a stream whose windows are the features; empty for independent rows."""
        return []

    def restart(self) -> "TableDetector":
        """Start a new stream; without effect for independent rows."""
        return self

    def score_rows(
        self,
        frame: Any,
        *,
        keep_going: bool = False,
        why: bool | str = False,
        most_explained: int | None = None,
    ) -> Frame:
        """Score the next rows of a table or of a live stream; see `score`."""
        return self.score(frame, keep_going=keep_going, why=why, most_explained=most_explained)

    def plain_reader(self, header: Sequence[str]) -> PlainReader | None:
        """Return a fast reader of rows of text without gaps; None if there can be none.

        Parameters
        ----------
        header : sequence of str
            Names of the columns.

        Returns
        -------
        PlainReader or None
            The reader.
        """
        check_is_fitted(self, "detector_")
        wanted = {*self.schema_.features, *([self._context] if self._context else [])}
        if len(set(header)) < len(header) or not wanted <= set(header):
            return None
        empty = pandas().DataFrame(columns=list(header), dtype="string")
        shown = {name: str(column.name) for name, column in self._beside(empty).items()}
        return PlainReader(
            self.schema_.columns, header, shown, is_stream=self.kind == RUNS, context=self._context
        )

    @property
    def _context(self) -> str | None:
        """Column with the context of the rows, which only streams have."""
        return None

    def score_plain(self, rows: PlainRows) -> FloatArray:
        """Return the scores of rows read by `plain_reader`.

        Parameters
        ----------
        rows : PlainRows
            The rows, without gaps and without new categories.

        Returns
        -------
        ndarray of shape (n,)
            Scores, as in `score`.
        """
        detector, names = self.detector_, self.schema_.features
        with cell_warnings_off():
            if takes_numbers(detector):
                return score_numbers(detector, np.array(rows.X, dtype=np.float64))
            cells = zip(*rows.X, strict=True)
            columns = {name: list(column) for name, column in zip(names, cells, strict=True)}
            return score_in_blocks(detector, pandas().DataFrame(columns))

    def in_order(self, chunks: Iterable[Frame]) -> Iterator[Frame]:
        """Yield chunks of a recorded table, unless their rows do not follow each other."""
        yield from chunks

    def n_unknown(self, n_without: int, n_rows: int) -> int:
        """Return how many of the rows without a score may be anomalies."""
        return n_without

    def channel_costs(self, explanation: Explanation) -> FloatArray:
        """Return how much each of the `channels` lowers the scores of the explained rows."""
        return np.zeros((len(explanation), 0))

    def facts(self) -> dict[str, Any]:
        """Return further facts of the model, besides columns, detector and card."""
        return {}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to one file, which `ocfuse.load` reads."""
        check_is_fitted(self, "detector_")
        return save(self, path)

    def _scores(self, table: Frame) -> FloatArray:
        features = self.schema_.features_of(table, gaps=self.detector_.encoder_.gaps)
        with cell_warnings_off():
            return score_in_blocks(self.detector_, features)

    def _reasons(self, table: Frame, wanted: BoolArray, most: int) -> Series:
        """Say in one line each why the wanted rows, the first ones, have their scores."""
        rows = np.flatnonzero(wanted)
        if len(rows) > most:
            what = (
                "Rows without a reason, as so many are not explained: ocfuse explain --row does it"
            )
            first = f"row {table.index[rows[most]]}"
            warnings.warn(RowsWarning(what, len(rows) - most, first), stacklevel=3)
        texts = np.full(len(table), None, dtype=object)
        for start in range(0, len(rows[:most]), 200):
            some = rows[:most][start : start + 200]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # raised when the rows were scored
                explanation = self.explain(table.iloc[some])
            texts[some] = [explanation.reason(i) for i in range(len(some))]
        return pandas().Series(texts, index=table.index, dtype="string")

    def judged_without(self, frame: Any) -> list[str]:
        """Return for each row the columns it is scored without.

        Parameters
        ----------
        frame : data frame
            Rows with the columns of training.

        Returns
        -------
        list of str
            Names of columns with a gap where training had none, unless such gaps are refused or
            alarms, and of the columns of group and time if they are missing or new; empty for
            rows that are scored with all columns.
        """
        check_is_fitted(self, "detector_")
        table = as_frame(frame)
        is_judged = self.detector_.encoder_.gaps == "judge"
        return self.schema_.gaps_of(table, gaps=is_judged)

    def _marked(self, table: Frame, reasons: Series, has_score: BoolArray) -> Series:
        """Add to the reasons which columns a row is judged without."""
        for i, names in enumerate(self.judged_without(table)):
            if names and has_score[i]:
                reason = reasons.iloc[i]
                text = f"judged without {names}"
                reasons.iloc[i] = text if pandas().isna(reason) else f"{reason}; {text}"
        return reasons

    def _unusable(self, table: Frame) -> BoolArray:
        is_refused = self.detector_.encoder_.gaps == "refuse"
        rows = self.schema_.unusable_rows(table, gaps=is_refused)
        if rows.any():
            what = (
                "Rows without a score: text among numbers, infinity, gaps that are refused, or "
                "times whose zone is unknown"
            )
            first = f"row {table.index[int(np.flatnonzero(rows)[0])]}"
            warnings.warn(RowsWarning(what, int(rows.sum()), first), stacklevel=3)
        return rows

    def _beside(self, table: Frame) -> dict[str, Series]:
        """Return the columns that are shown beside the scores, under names that are free."""
        schema = self.schema_
        known = {
            "file": schema.files_of(table),
            "id": schema.ids_of(table),
            "time": schema.shown_times_of(table),
        }
        whose = (column.name for column in schema.columns if column.kind == "by")
        there = [(kind, column) for kind, column in known.items() if column is not None]
        there += [("by", table[name]) for name in whose if name in table.columns]
        taken = {*self.result_names, *(column.name for _, column in there)}
        result = {}
        for kind, column in there:
            is_taken = column.name in self.result_names
            name = free_name(kind, taken) if is_taken else str(column.name)
            taken.add(name)
            result[name] = column
        return result


@dataclass
class Tally:
    """Counts of scored rows.

    Attributes
    ----------
    rows, anomalies, without_score : int
        Rows, those below the threshold, and those that have no score.
    by_rule, only_by_rule : int
        Rows that break limits, and those of them that are not below the threshold.
    rules : Counter of str
        How many rows break each limit.
    unknown : int
        Rows without a score that may be anomalies: not those that begin a stream.
    """

    rows: int = 0
    anomalies: int = 0
    without_score: int = 0
    by_rule: int = 0
    only_by_rule: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    unknown: int = 0

    def add(self, scores: Frame, *, has_limits: bool = False, threshold: float = 0.0) -> None:
        """Count further rows, as `TableDetector.score` returns them."""
        self.rows += len(scores)
        self.without_score += int(scores["score"].isna().sum())
        is_low = scores["is_anomaly"].fillna(False).astype(bool)
        if has_limits:
            is_broken = scores[RULE].notna()
            is_low &= scores["score"] < threshold
            self.by_rule += int(is_broken.sum())
            self.only_by_rule += int((is_broken & ~is_low).sum())
            self.rules.update(chain.from_iterable(scores[RULE].dropna().str.split("; ")))
        self.anomalies += int(is_low.sum())

    def add_counts(self, counts: dict[str, Any]) -> None:
        """Add what `counts` of another tally has returned."""
        for name in self.counts():
            if name != "rules":
                setattr(self, name, getattr(self, name) + counts[name])
        self.rules.update(counts["rules"])

    def counts(self) -> dict[str, Any]:
        """Return what can be added to other counts, for JSON."""
        names = ("rows", "anomalies", "without_score", "by_rule", "only_by_rule", "rules")
        return {name: getattr(self, name) for name in names}

    def summary(self, has_limits: bool) -> dict[str, Any]:
        """Return the counts to show; rows that break limits apart, if there are limits."""
        of_limits = {"rows": self.by_rule, "only": self.only_by_rule, "limits": self.rules}
        names = ("rows", "anomalies", "without_score")
        shown = {name: getattr(self, name) for name in names}
        return shown | ({"by_rule": of_limits} if has_limits else {})

    def exceeds(self, share: float) -> bool:
        """Return whether more than a share of the rows raise an alarm, or may."""
        return self.anomalies + self.only_by_rule + self.unknown > share * self.rows

    def notes(self) -> list[str]:
        """Return what is odd about so many alarms; of fewer than 10 rows nothing is."""
        is_odd = self.rows >= 10 and self.anomalies > self.rows / 2
        return [MANY_ALARMS] if is_odd else []


def results_of(detector: FusedDetector, scores: FloatArray) -> dict[str, Any]:
    """Return the columns `RESULTS` of scores; whether NaN is an anomaly is not known."""
    is_anomaly = pandas().array(scores < detector.offset_, dtype="boolean")
    is_anomaly[np.isnan(scores)] = None
    p_values = p_values_of(scores, detector.conformal_)
    return dict(zip(RESULTS, (scores, p_values, is_anomaly), strict=True))


def _warn_if_few(detector: FusedDetector) -> None:
    """Warn how far off the rate of false alarms may be, where few rows set the threshold."""
    n_expected = 2  # false alarms among these rows, at least
    rate, n, what = detector.false_alarm_rate, detector.n_groups_, "groups"
    if n is None:
        n, what = len(detector.normal_scores_), "normal rows"
    if (n + 1) * rate >= n_expected or detector.threshold_rate_ > rate:
        return  # enough, or the detector itself has warned
    # split conformal: the rate is Beta(k, n + 1 - k) over draws of the n rows
    k = max(int((n + 1) * rate), 1)
    worst = betaincinv(k, n + 1 - k, 0.95)
    warnings.warn(
        f"{n} {what} are few to set a threshold by: {rate:.3g} of fresh normal rows may raise an "
        f"alarm, but it can well be {worst:.2g}. Use at least "
        f"{int(np.ceil(n_expected / rate))} {what}, or a higher rate.",
        FewSamplesWarning,
        stacklevel=3,
    )


def _with_judged(
    schema: Schema,
    features: Frame,
    labels: Int64Array | None,
    groups: list[str] | None,
    judged: Sequence[JudgedEvent],
) -> tuple[Frame, FloatArray, list[str] | None]:
    """Return features, labels and groups with those of judged events behind them."""
    y = [beside_judged(labels, len(features))]
    parts, names = [features], list(groups or ())
    for event in judged:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OcfuseWarning)  # of rows that were judged long ago
            parts.append(schema.features_of(low_rows(event, TableDetector.most_judged)))
        y.append(np.full(len(parts[-1]), float(event.label)))
        names += [f"judged event {event.number}"] * len(parts[-1])
    table = pandas().concat(parts, ignore_index=True)
    return table, np.concatenate(y), None if groups is None else names


def verdicts_of(judged: Sequence[JudgedEvent]) -> dict[str, Any]:
    """Return the lines of a card on events with a verdict; empty if there were none."""
    real = sum(event.is_real for event in judged)
    return {"verdicts": {"real": real, "false alarm": len(judged) - real}} if judged else {}


def make_card(features: Frame, y: Int64Array | None, detector: FusedDetector) -> dict[str, Any]:
    """Return rows, columns, versions, time, settings and a checksum of the training data."""
    packages = ("ocfuse", "numpy", "scipy", "scikit-learn", "pandas")
    return {
        "rows": len(features),
        "columns": features.shape[1],
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"Python": platform.python_version()} | {p: version(p) for p in packages},
        "settings": {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in detector.get_params(deep=False).items()
        },
        "sha256": data_checksum(features, y),
    }


def data_checksum(features: Frame, y: Int64Array | None) -> str:
    """Return the SHA-256 of names, values and labels, in whatever format they were stored."""
    digest = hashlib.sha256()
    for name in features.columns:
        values = features[name].to_numpy()
        is_text = values.dtype == object
        content = repr(values.tolist()).encode() if is_text else values.astype("<f8").tobytes()
        digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
    if y is not None:
        digest.update(np.asarray(y).astype("<i8").tobytes())
    return digest.hexdigest()
