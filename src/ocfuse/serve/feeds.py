"""The rows of one stream, scored in their order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.batching import Batcher
from ocfuse.serve.decoding import JSONRow
from ocfuse.serve.errors import ServeError, unusable
from ocfuse.serve.models import Served, batcher_of
from ocfuse.serve.notes import MOST_NOTES, noted
from ocfuse.serve.scorers import Cells, FloatArray, RowScorer, RunScorer, Scorer, scores_of, shares
from ocfuse.tables.detector import RUNS

T = TypeVar("T")

#: Rows that are read one by one if one of them is bad: more may be bad, too.
FEW_ROWS = 8
#: Rows of one stream that are read, or scored as a run, before others have a turn.
PART_ROWS = 256


@dataclass(frozen=True)
class Scored:
    """What a model says of one row of a stream; the score is NaN if there is none.

    Attributes
    ----------
    score, p_value : float
        As in `Scores`.
    is_anomaly : bool or None
        Whether the row raises an alarm; None if there is no score.
    run : str or None
        Run that the row is of, if something tells it.
    why : callable or None
        Computes what lies behind the score; None where that is not known any more.
    """

    score: float
    p_value: float
    is_anomaly: bool | None
    run: str | None = None
    why: Callable[[], "Why"] | None = None


@dataclass(frozen=True)
class Why:
    """What lies behind a score.

    Attributes
    ----------
    contributions : mapping of str to float
        What each member adds to the score.
    local_p : float or None
        Norm of the fusion there.
    drift : float or None
        How far the stream is from training; above 1 is more than chance explains.
    """

    contributions: Mapping[str, float]
    local_p: float | None
    drift: float | None = None


#: What becomes of a row: its score, or why it has none.
Outcome: TypeAlias = Scored | ServeError


class Batchers:
    """What joins rows of streams, apart from those of requests: streams wait for streams alone.

    Parameters
    ----------
    executor : Executor
        Where blocks of rows are scored.
    most_rows : int
        Most rows of one block.
    seconds : float, default=0.0
        How long the first row may wait for others.
    """

    def __init__(self, executor: Executor, most_rows: int, seconds: float = 0.0) -> None:
        self._executor, self._most_rows, self._seconds = executor, most_rows, seconds
        self._latest: dict[str, tuple[Scorer, Batcher]] = {}

    def of(self, served: Served) -> Batcher:
        """Return what joins the rows of streams by one version of a model of rows."""
        before = batcher_of(served)
        scorer, batcher = self._latest.get(served.name, (None, None))
        if batcher is None or scorer is not served.scorer:
            batcher = before.apart(self._executor, self._most_rows, self._seconds)
            self._latest[served.name] = served.scorer, batcher
        return batcher


class RowFeed:
    """Rows that do not depend on each other; they are scored with those of other streams."""

    def __init__(self, scorer: RowScorer, batcher: Batcher, executor: Executor) -> None:
        self._scorer, self._batcher, self._executor = scorer, batcher, executor

    async def score(self, rows: Sequence[JSONRow]) -> tuple[list[Outcome], list[str]]:
        """Return what becomes of every row, and notes on them."""
        read = [self._scorer.plain([row]) for row in rows]
        odd = [i for i, cells in enumerate(read) if cells is None]
        errors: dict[int, ServeError] = {}
        notes: list[str] = []
        if odd:
            found, notes = await _by_parts(self._executor, self._read, [rows[i] for i in odd])
            for i, cells in zip(odd, found, strict=True):
                if isinstance(cells, ServeError):
                    errors[i] = cells
                else:
                    read[i] = [cells]
        good = [cells[0] for cells in read if cells is not None]
        scored = iter(await self._score(good))
        return [errors[i] if i in errors else next(scored) for i in range(len(rows))], notes

    def _read(self, rows: list[JSONRow]) -> tuple[list[Cells | ServeError], list[str]]:
        with noted() as notes:
            found = self._read_some(rows)
        return found, notes

    def _read_some(self, rows: list[JSONRow]) -> list[Cells | ServeError]:
        """Read rows at once, or else in halves, and few of them one by one."""
        try:
            return [*self._scorer.cells_of(self._scorer.read(rows))]
        except InvalidInputError as error:
            if len(rows) == 1:
                return [unusable(error)]
        size = len(rows) // 2 if len(rows) > FEW_ROWS else 1
        parts = [rows[i : i + size] for i in range(0, len(rows), size)]
        return [one for part in parts for one in self._read_some(part)]

    async def _score(self, rows: list[Cells]) -> list[Scored]:
        found: list[Scored] = []
        for begin in range(0, len(rows), self._batcher.most_rows):
            part = rows[begin : begin + self._batcher.most_rows]
            scores = await self._batcher.score(part)
            columns = zip(part, scores.score, scores.p_value, scores.is_anomaly, strict=True)
            for cells, score, p_value, flag in columns:
                found.append(Scored(score, p_value, flag, why=partial(self._why, cells)))
        return found

    def _why(self, cells: Cells) -> Why:
        return _why(self._scorer.detector, *self._scorer.shares([cells]))


class RunFeed:
    """Rows of sensors, each of which depends on those before it."""

    def __init__(self, scorer: RunScorer, executor: Executor) -> None:
        self._scorer, self._executor = scorer, executor
        self._model = scorer.live()

    async def score(self, rows: Sequence[JSONRow]) -> tuple[list[Outcome], list[str]]:
        """Return what becomes of every row, and notes on them."""
        return await _by_parts(self._executor, self._score, rows)

    def _score(self, rows: list[JSONRow]) -> tuple[list[Outcome], list[str]]:
        found: list[Outcome] = []
        with noted() as notes:
            try:
                found += self._next(rows)
            except InvalidInputError:  # nothing has moved yet: one by one, to find the bad ones
                for row in rows:
                    try:
                        found += self._next([row])
                    except InvalidInputError as error:
                        found.append(unusable(error))
        return found, notes

    def _next(self, rows: list[JSONRow]) -> list[Scored]:
        frame = self._model.score_rows(self._scorer.frame(rows))
        runs = self._model.runs_in(frame)
        names = [None] * len(rows) if runs is None else [str(run) for run in runs]
        scores = scores_of(frame)
        columns = (scores.score, scores.p_value, scores.is_anomaly)
        state = self._model.stream_.state_
        # only of the last row is still known what its score was made of
        features, context = state.features, state.context
        why = [None] * (len(rows) - 1) + [partial(self._why, features, context)]
        return [Scored(*values) for values in zip(*columns, names, why, strict=True)]

    def _why(self, features: FloatArray | None, context: FloatArray | None) -> Why:
        view, state = self._model.stream_.view_, self._model.stream_.state_
        counted = view.is_watched & ~view.follows
        drift = state.slow.distance(view.rest)[counted].max(initial=0.0)
        if features is None:
            return Why({}, None, _finite(drift))
        detector = self._scorer.detector
        scale = detector.context_scale_
        scaled = None if context is None or scale is None else scale.transform(context)
        return _why(detector, *shares(detector, features, scaled), _finite(drift))


Feed: TypeAlias = RowFeed | RunFeed


def feed_of(served: Served, executor: Executor, batchers: Batchers) -> Feed:
    """Return what scores the rows of one stream by a model."""
    scorer = served.scorer
    if scorer.kind == RUNS:
        return RunFeed(scorer, executor)
    return RowFeed(scorer, batchers.of(served), executor)


async def _by_parts(
    executor: Executor,
    work: Callable[[list[JSONRow]], tuple[list[T], list[str]]],
    rows: Sequence[JSONRow],
) -> tuple[list[T], list[str]]:
    """Return what becomes of rows, some at a time: between them other streams have a turn."""
    loop = asyncio.get_running_loop()
    found: list[T] = []
    notes: dict[str, None] = {}
    for begin in range(0, len(rows), PART_ROWS):
        part = list(rows[begin : begin + PART_ROWS])
        some, told = await loop.run_in_executor(executor, work, part)
        found += some
        notes |= dict.fromkeys(told)
    return found, list(notes)[:MOST_NOTES]


def _why(
    detector: Any, contributions: FloatArray, local_p: FloatArray, drift: float | None = None
) -> Why:
    named = dict(zip(detector.pool_.names_, contributions[0].tolist(), strict=True))
    return Why(named, _finite(local_p[0]), drift)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
