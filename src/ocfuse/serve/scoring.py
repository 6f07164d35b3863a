"""Score and explain rows by a model, and batch the rows of many requests."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.encoder import cell_warnings_off, read_numbers
from ocfuse.ensemble import FusedDetector
from ocfuse.ensemble.score import ScoreChain, score_in_blocks, score_numbers, takes_numbers
from ocfuse.exceptions import InvalidInputError, ModelFileError
from ocfuse.explain import Explanation
from ocfuse.serve.decoding import JSONRow, Rows
from ocfuse.serve.errors import finite, overloaded
from ocfuse.serve.pictures import PictureScorer
from ocfuse.streaming import EventTracker, StreamTable
from ocfuse.streaming.events import leave_score
from ocfuse.streaming.slow import SlowChange, SlowSettings
from ocfuse.streaming.table import states_of
from ocfuse.tables import Column, Schema, TableDetector
from ocfuse.tables.dataframes import Frame, numbered_names, pandas
from ocfuse.tables.detector import ROWS, RULE, RUNS
from ocfuse.vision import PictureDetector

#: The features of one row, in the order of the model: numbers, NaN for gaps, or text.
Cells: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Scores:
    """Scores and p-values of some rows, and notes on what was odd about them.

    Where there is no score, it is NaN, and `is_anomaly` is None.
    """

    score: list[float]
    p_value: list[float]
    is_anomaly: Sequence[bool | None]
    notes: list[str] = field(default_factory=list)
    #: The limits that each row breaks; None if the model has none.
    rule: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.score)

    def part(self, rows: slice) -> "Scores":
        """Return those of some rows."""
        rule = None if self.rule is None else self.rule[rows]
        return Scores(self.score[rows], self.p_value[rows], self.is_anomaly[rows], rule=rule)


def is_low(score: float, is_anomaly: bool | None, rule: str | None, threshold: float) -> bool:
    """Return whether a row raises an alarm by its score, not only by a limit that it breaks."""
    return bool(is_anomaly) if rule is None else score < threshold


class RowScorer:
    """Score rows that do not depend on each other.

    `is_named` says whether the detector knows its columns by name.
    """

    kind: Literal["rows"] = ROWS
    #: Rows before a row that its score depends on.
    n_reach: ClassVar[int] = 0

    def __init__(self, detector: FusedDetector, schema: Schema, is_named: bool = True) -> None:
        self.detector, self.schema, self.is_named = detector, schema, is_named
        self.names = schema.features
        self.threshold = float(detector.offset_)
        columns = {column.name: column for column in schema.columns}
        self._known = frozenset(columns)
        self._needed = [name for name in self.names if columns[name].kind != "empty"]
        self._categories = [
            (j, frozenset(columns[name].categories))
            for j, name in enumerate(self.names)
            if columns[name].kind in ("category", "by")
        ]
        #: Columns of times, which are read more closely.
        self._times = {j for j, name in enumerate(self.names) if columns[name].kind == "time"}
        texts = {j for j, _ in self._categories}
        numbers = [j for j in range(len(self.names)) if j not in texts]
        #: Whether rows are numbers that the detector takes as they are.
        self._is_plain = not texts and takes_numbers(detector)
        self._cells = _getter(self.names)
        self._numbers = _getter(numbers) if texts else tuple

    # -- reading ------------------------------------------------------------

    def plain(self, rows: Sequence[JSONRow]) -> list[Cells] | None:
        """Return the features of rows that need no closer look; None if any does.

        That is a number in every column of numbers and a known category in every other one,
        which is the usual case and a hundred times as quick as `read`.
        """
        found = []
        for row in rows:
            cells = self._plain(row)
            if cells is None:
                return None
            found.append(cells)
        return found

    def _plain(self, row: JSONRow) -> Cells | None:
        if self._times:
            return None
        try:
            if type(row) is dict:
                cells: Cells = self._cells(row)
                if not row.keys() <= self._known:
                    return None
            elif len(row) == len(self.names):
                cells = tuple(row)
            else:
                return None
            numbers = self._numbers(cells)
            # a sum that is not finite may come of finite numbers: that, too, is looked at closely
            if not {float, int}.issuperset(map(type, numbers)) or not math.isfinite(sum(numbers)):
                return None
            if any(cells[j] not in known for j, known in self._categories):
                return None
        except (KeyError, OverflowError, TypeError):
            return None
        return cells

    def read(self, rows: Rows) -> Frame:
        """Return the features of any rows as the model knows them, or say what is wrong."""
        if isinstance(rows, list):
            rows = named_frame([self._named(row) for row in rows], self._needed, self.schema)
        return asked_of(self.schema, rows).features_of(rows, gaps=self.detector.encoder_.gaps)

    def _named(self, row: JSONRow) -> dict[str, Any]:
        if isinstance(row, dict):
            return row
        if len(row) != len(self.names):
            raise InvalidInputError(
                f"A row that is a list must have {len(self.names)} values, in the order of the "
                f"model's columns. Got {len(row)}."
            )
        return dict(zip(self.names, row, strict=True))

    def cells_of(self, features: Frame) -> list[Cells]:
        """Return the features of a frame that `read` gave, row by row."""
        return list(zip(*(features[name].tolist() for name in self.names), strict=True))

    # -- scoring ------------------------------------------------------------

    def score_cells(self, rows: Sequence[Cells]) -> Scores:
        """Score rows."""
        numbers = np.array(rows, dtype=np.float64) if self._is_plain and rows else None
        if numbers is None or not np.isfinite(numbers).all():
            return self._score(self._table_of(rows))
        with cell_warnings_off():
            return self._judged(score_numbers(self.detector, numbers), numbers)

    def score(self, features: Frame) -> Scores:
        """Score the features that `read` gave."""
        return self._score(self._table(features))

    def _score(self, table: Any) -> Scores:
        with cell_warnings_off():
            scores = score_in_blocks(self.detector, table)
        return self._judged(scores, table)

    def _judged(self, scores: FloatArray, table: Any) -> Scores:
        is_alarm, rules = scores < self.threshold, None
        limits = self.detector.limits_
        if limits is not None:
            found = limits.broken(read_numbers(table, limits.places.tolist(), "limits"))
            is_alarm |= np.array([bool(rule) for rule in found], dtype=bool)
            rules = [rule or None for rule in found]
        return Scores(
            scores.tolist(),
            self.detector.conformal_.p_values(scores).tolist() if len(scores) else [],
            is_alarm.tolist(),
            rule=rules,
        )

    def slow_change(self, settings: SlowSettings) -> SlowChange:
        """Return what follows slow changes of one stream."""
        return SlowChange.of(self.detector, settings)

    def tracker(self, min_rows: int | None) -> EventTracker:
        """Return what makes events of scores: by default of each row below the threshold."""
        end = leave_score(self.threshold, self.detector.normal_scores_)
        return EventTracker(self.threshold, end, 1 if min_rows is None else min_rows)

    def explain(self, features: Frame) -> Explanation:
        """Return what lies behind the scores of the features that `read` gave."""
        with cell_warnings_off():
            return self.detector.explain(self._table(features))

    def explain_cells(self, rows: Sequence[Cells]) -> Explanation:
        """Return what lies behind the scores of rows."""
        with cell_warnings_off():
            return self.detector.explain(self._table_of(rows))

    def channels(self, most: int) -> list[dict[str, Any]]:
        """Return the names of the first columns."""
        return [{"name": name} for name in self.names[:most]]

    @property
    def members(self) -> list[str]:
        """Names of the members."""
        return list(self.detector.pool_.names_)

    def try_row(self, row: dict[str, Any]) -> None:
        """Score one row that has all columns."""
        self.score_cells([tuple(row.values())])

    def shares(self, rows: Sequence[Cells]) -> tuple[FloatArray, FloatArray]:
        """Return what each member adds to the scores of rows, and the norm of the fusion there."""
        return shares(self.detector, self._table_of(rows))

    def _table_of(self, rows: Sequence[Cells]) -> Any:
        """Return rows as the detector takes them."""
        if not (self._categories or self._times):
            numbers = np.array(rows, dtype=np.float64)
            if not self.is_named:
                return numbers
            return self._table(pandas().DataFrame(numbers, columns=self.names))
        others = {j for j, _ in self._categories} | self._times
        columns = {
            self.names[j]: np.array(cells, dtype=object if j in others else np.float64)
            for j, cells in enumerate(zip(*rows, strict=True))
        }
        return self._table(pandas().DataFrame(columns))

    def _table(self, features: Frame) -> Any:
        """Return features as the detector takes them: with columns that it does not learn from."""
        if not self.is_named:
            return features.to_numpy()
        names = list(self.detector.feature_names_in_)
        return features if len(names) == len(self.names) else features.reindex(columns=names)


class RunScorer:
    """Score runs of sensors: a row is judged by those before it, too."""

    kind: Literal["runs"] = RUNS

    def __init__(self, model: StreamTable) -> None:
        self.model, self.detector, self.schema = model, model.detector_, model.schema_
        self.names = self.schema.features
        self.threshold = float(self.detector.offset_)

    @property
    def n_reach(self) -> int:
        """Rows before a row that its score depends on."""
        return int(self.model.stream_.view_.n_remembered)

    def live(self) -> StreamTable:
        """Return a model for one live stream, at its beginning."""
        fresh = copy(self.model)
        fresh.stream_ = copy(self.model.stream_)
        return fresh.restart()

    def slow_change(self, settings: SlowSettings) -> SlowChange:
        """Return what follows slow changes of one stream."""
        return self.model.stream_.slow_change(settings)

    def tracker(self, min_rows: int | None) -> EventTracker:
        """Return what makes events of scores: by default as the model says."""
        return self.model.stream_.tracker(min_rows)

    def frame(self, rows: Rows) -> Frame:
        """Return rows as a data frame."""
        if not isinstance(rows, list):
            return rows
        if not all(isinstance(row, dict) for row in rows):
            raise InvalidInputError(
                "Rows of sensors must be objects of names and values, such as "
                '{"flow": 1.5, "current": 0.2}.'
            )
        context = [] if self.model.context is None else [self.model.context]
        return named_frame(rows, [*self.names, *context], self.schema)

    def channels(self, most: int) -> list[dict[str, Any]]:
        """Return names of the first channels, and between what they usually are."""
        low, high = self.model.stream_.sensor_limits.band()
        columns = zip(self.names, low[0].tolist(), high[0].tolist(), strict=True)
        return [
            {"name": name, "low": finite(least), "high": finite(most_usual)}
            for name, least, most_usual in list(columns)[:most]
        ]

    def score(self, rows: Rows) -> Scores:
        """Score whole runs, from their beginning."""
        if not len(rows):
            return Scores([], [], [])
        frame = self.frame(rows)
        model = copy(self.model)
        model.schema_ = asked_of(self.schema, frame)
        return scores_of(model.score(frame), model.limits_ is not None)

    @property
    def members(self) -> list[str]:
        """Names of the members."""
        return list(self.detector.pool_.names_)

    def try_row(self, row: dict[str, Any]) -> None:
        """Score one row that has all channels."""
        context = self.model.context
        states = states_of(self.schema, context)
        self.score([row if context is None else row | {context: states[0] if states else 0.0}])

    def explain(self, rows: Rows, at: Sequence[int] | None) -> Explanation:
        """Return what lies behind the scores of some rows of whole runs."""
        chosen = None if at is None else list(at)
        return self.live().explain(self.frame(rows), chosen)


#: Scores by a model, of the kind `kind`.
Scorer: TypeAlias = RowScorer | RunScorer | PictureScorer


def named_frame(rows: list[JSONRow], names: Sequence[str], schema: Schema) -> Frame:
    """Return rows of JSON as a data frame; each must have all columns, if only as a gap.

    A frame would have gaps for what one row lacks and another has: what a row means must not
    depend on others.
    """
    wanted = frozenset(names)
    for row in rows:
        if isinstance(row, dict) and not wanted <= row.keys():
            schema.check(pandas().DataFrame([row], dtype=object).iloc[:0])  # says what is missing
            raise InvalidInputError(f"Missing: {', '.join(sorted(wanted - row.keys()))}.")
    if not rows:
        return pandas().DataFrame(columns=list(names), dtype=object)
    return pandas().DataFrame(rows, dtype=object)


def asked_of(schema: Schema, frame: Frame) -> Schema:
    """Return what is asked of some rows: ids and times only if they are there.

    A file of scores would be without them; an answer has no place for them in any case.
    """
    lost = [
        column
        for column in schema.columns
        if column.kind in ("id", "time") and not column.is_given and column.name not in frame
    ]
    if not lost:
        return schema
    return replace(schema, columns=[column for column in schema.columns if column not in lost])


def scores_of(frame: Frame, has_limits: bool = False) -> Scores:
    """Return the scores in a frame that a model returned, which may have limits."""
    flags = frame["is_anomaly"].astype(object).where(frame["is_anomaly"].notna(), None)
    rules = None
    if has_limits:
        rules = frame[RULE].astype(object).where(frame[RULE].notna(), None).tolist()
    columns = frame["score"].tolist(), frame["p_value"].tolist(), flags.tolist()
    return Scores(*columns, rule=rules)


def scorer_of(model: object) -> Scorer:
    """Return the scorer of a model, or refuse what is none."""
    if isinstance(model, StreamTable):
        return RunScorer(model)
    if isinstance(model, TableDetector):
        return RowScorer(model.detector_, model.schema_)
    if isinstance(model, FusedDetector):
        return _array_scorer(model)
    if isinstance(model, PictureDetector):
        return PictureScorer(model)
    raise ModelFileError(
        f"A {type(model).__name__} cannot be served. Expected a model of rows or pictures that "
        "`ocfuse fit` wrote, or the method save of such a detector."
    )


def _array_scorer(detector: FusedDetector) -> RowScorer:
    if detector.context_scale_ is not None:
        raise ModelFileError(
            "A FusedDetector that was fitted with context cannot be served, as rows have no place "
            "for it. Fit a StreamTable with context."
        )
    encoder = detector.encoder_
    is_named = hasattr(detector, "feature_names_in_")
    names = detector.feature_names_in_ if is_named else numbered_names(detector.n_features_in_)
    codes = iter(encoder.codes_)
    kinds = np.full(len(names), "number", dtype=object)
    kinds[encoder.categorical_], kinds[encoder.ignored_] = "category", "ignored"
    kinds[encoder.empty_] = "empty"
    kinds[list(encoder.by_)] = "by" if is_named else "number"
    if encoder.time_ is not None:
        kinds[encoder.time_] = "time"
    whose = dict(zip(encoder.by_, encoder.by_codes_, strict=True))
    columns = [
        Column(
            str(name),
            kind,
            "as in training",
            has_gaps=not is_complete,
            categories=list(next(codes) if kind == "category" else whose.get(j, ())),
            format=("number" if encoder.is_number_ else "ISO8601") if kind == "time" else "",
            utc=kind == "time" and bool(encoder.zone_),
            is_given=kind == "time",
        )
        for j, (name, kind, is_complete) in enumerate(
            zip(names, kinds, encoder.complete_, strict=True)
        )
    ]
    return RowScorer(detector, Schema(columns), is_named)


def shares(
    detector: FusedDetector, table: Any, context: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return what each member adds to the scores of rows, and the norm of the fusion there.

    Contributions have the shape (n_rows, n_members); a norm is NaN if the fusion has none. The
    context of the rows is in the units of the features.
    """
    return ScoreChain.of(detector).shares(detector.encoder_.transform(table), context)


def features_of(scorer: Scorer) -> list[Column]:
    """Return the columns that a model learned from."""
    return [column for column in scorer.schema.columns if column.is_feature]


def _getter(keys: Sequence[Any]) -> Any:
    """Return what takes some cells of a row, always as a tuple."""
    if len(keys) == 1:
        return lambda row, key=keys[0]: (row[key],)
    return itemgetter(*keys) if keys else lambda row: ()


@dataclass
class Waiting:
    """Rows of one request, and who waits for their scores."""

    rows: Sequence[Cells]
    future: asyncio.Future[Scores]
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """Score the rows that wait together.

    While a block of rows is scored, those that come wait for each other, and are the next
    block. So rows wait only when there is something to wait for, and blocks grow with the
    load. A block has at most `most_rows` rows, the first of which may wait `seconds` for others,
    and in any case for those that have come but not been read yet. Rows whose turn comes later
    than `most_wait` seconds after they did are refused: who is slow is told so in time.
    `report` is called with the numbers of rows and of requests of every block.
    """

    def __init__(
        self,
        score: Callable[[Sequence[Cells]], Scores],
        executor: Executor,
        most_rows: int,
        seconds: float = 0.0,
        report: Callable[[int, int], None] | None = None,
        most_wait: float = math.inf,
    ) -> None:
        self._score, self._executor = score, executor
        self.most_rows, self.seconds, self.most_wait = most_rows, seconds, most_wait
        self._report = report
        self._waiting: deque[Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    def apart(self, executor: Executor, most_rows: int, seconds: float = 0.0) -> "Batcher":
        """Return one that scores alike, but whose rows wait for none of these."""
        return Batcher(self._score, executor, most_rows, seconds, self._report)

    async def score(self, rows: Sequence[Cells]) -> Scores:
        """Return the scores of at most `most_rows` rows, as if scored alone but for rounding."""
        waiting = Waiting(rows, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await waiting.future

    async def _work(self) -> None:
        """Score until nobody waits."""
        try:
            await asyncio.sleep(self.seconds)
            while self._waiting:
                await self._let_in()
                block = self._take()
                if block:
                    await self._answer(block)
        finally:
            self._task = None

    async def _let_in(self) -> None:
        """Let in who is at the door, unless many rows wait: it takes two turns of the loop."""
        n, n_quiet = self._n_rows(), 0
        while n_quiet < 2 and n < self.most_rows // 4:
            await asyncio.sleep(0)
            before, n = n, self._n_rows()
            n_quiet = n_quiet + 1 if n == before else 0

    def _n_rows(self) -> int:
        return sum(len(waiting.rows) for waiting in self._waiting)

    def _take(self) -> list[Waiting]:
        """Return who is next; requests that were given up are passed over."""
        block: list[Waiting] = []
        n = 0
        while self._waiting:
            n += len(self._waiting[0].rows)
            if block and n > self.most_rows:
                break
            waiting = self._waiting.popleft()
            is_late = time.monotonic() - waiting.since > self.most_wait
            if waiting.future.done() or is_late:
                n -= len(waiting.rows)
                if not waiting.future.done():
                    waiting.future.set_exception(overloaded(self.most_wait))
            else:
                block.append(waiting)
        return block

    async def _answer(self, block: list[Waiting]) -> None:
        rows = [row for waiting in block for row in waiting.rows]
        if self._report is not None:
            self._report(len(rows), len(block))
        loop = asyncio.get_running_loop()
        try:
            scores = await loop.run_in_executor(self._executor, self._score, rows)
        except Exception as error:
            if len(block) > 1:
                for waiting in block:  # one of them is to blame: each alone
                    await self._answer([waiting])
            elif not block[0].future.done():
                block[0].future.set_exception(error)
            return
        begin = 0
        for waiting in block:
            end = begin + len(waiting.rows)
            if not waiting.future.done():
                waiting.future.set_result(scores.part(slice(begin, end)))
            begin = end
