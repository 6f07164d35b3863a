"""One WebSocket stream: rows in, scores and alarms out, in their order."""

import asyncio
import base64
import binascii
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import anyio
import numpy as np
from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.decoding import JSONRow, check_rows, parse_json
from ocfuse.serve.errors import CloseCode, ServeError, finite, to_json, unusable
from ocfuse.serve.event_rows import EventRows, kept_row, packed_within
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.models import Served, batcher_of
from ocfuse.serve.overview import Overview
from ocfuse.serve.pictures import PICTURES, JudgedPicture, PictureScorer, decoded, from_base64
from ocfuse.serve.samples import Live, Sample, Source
from ocfuse.serve.scoring import (
    Batcher,
    Cells,
    RowScorer,
    RunScorer,
    Scorer,
    asked_of,
    is_low,
    scores_of,
    shares,
)
from ocfuse.serve.settings import Limits
from ocfuse.serve.telemetry import MOST_NOTES, Metrics, log_event, with_notes
from ocfuse.serve.workers import Workers
from ocfuse.streaming.channels import row_readings
from ocfuse.streaming.clock import ChunkLog
from ocfuse.streaming.resume import StateFolder, resume_stream, save_stream
from ocfuse.streaming.sensors import SensorEvent
from ocfuse.streaming.slow import SlowSettings, change_words, judged_again
from ocfuse.streaming.status import CHANGED
from ocfuse.tables.detector import RULE, RUNS

T = TypeVar("T")
Row = TypeVar("Row")

#: Messages of a stream that wait to be answered together, at most: those that come while others
#: are answered.
MOST_WAITING = 256
#: Seconds between writes of the state of a stream.
SAVE_SECONDS = 5.0
#: Channels whose course a page can show.
MOST_CHANNELS = 32
#: Scores of one stream within a second whose channels are looked for, at most: to name them takes
#: as long as some twenty scores, and a burst of events must not keep the stream from going on.
MOST_NAMED = 20


@dataclass(frozen=True)
class Scored:
    """The score of one row of a stream, as in `Scores`, and the run that it is of, if known.

    What lies behind the score is computed by `why`, or of the features `cells`; `why` is told
    whether the channels are asked for, too. The sensors are those that fail or work again there.
    """

    score: float
    p_value: float
    is_anomaly: bool | None
    run: str | None = None
    why: Callable[[bool], "Why"] | None = None
    cells: Cells | None = None
    sensors: Sequence[SensorEvent] = ()
    picture: JudgedPicture | None = None
    rule: str | None = None  # the limits that a row which stands alone breaks


@dataclass(frozen=True)
class Why:
    """What each member adds to a score, the norm of the fusion there, the drift, and channels.

    Drift is how far the stream is from training; above 1 is more than chance explains. The
    channels are those that are most unusual, as `ChannelReading.as_dict` has them.
    """

    contributions: Mapping[str, float]
    local_p: float | None
    drift: float | None = None
    readings: Sequence[Mapping[str, Any]] = ()
    thumbnail: bytes | None = None


#: What becomes of a row: its score, or why it has none.
Outcome: TypeAlias = Scored | ServeError


class Batchers:
    """Batchers of streams, apart from those of requests: streams wait for streams alone."""

    def __init__(self, executor: Executor, most_rows: int, seconds: float = 0.0) -> None:
        self._executor, self._most_rows, self._seconds = executor, most_rows, seconds
        self._latest: dict[str, tuple[Scorer, Batcher]] = {}

    def of(self, served: Served) -> Batcher:
        """Return the batcher of the streams of one version of a model of rows."""
        before = batcher_of(served)
        scorer, batcher = self._latest.get(served.name, (None, None))
        if batcher is None or scorer is not served.scorer:
            batcher = before.apart(self._executor, self._most_rows, self._seconds)
            self._latest[served.name] = served.scorer, batcher
        return batcher


class RowFeed:
    """Rows that do not depend on each other; they are scored with those of other streams."""

    #: Rows that stand alone have no level.
    drift: ClassVar[float | None] = None

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

    def _read(self, rows: list[JSONRow]) -> list[Cells | ServeError]:
        """Read rows at once, or else in halves, and few of them one by one."""
        try:
            return [*self._scorer.cells_of(self._scorer.read(rows))]
        except InvalidInputError as error:
            if len(rows) == 1:
                return [unusable(error)]
        size = len(rows) // 2 if len(rows) > 8 else 1
        parts = [rows[i : i + size] for i in range(0, len(rows), size)]
        return [one for part in parts for one in self._read(part)]

    async def _score(self, rows: list[Cells]) -> list[Scored]:
        found: list[Scored] = []
        for begin in range(0, len(rows), self._batcher.most_rows):
            part = rows[begin : begin + self._batcher.most_rows]
            scores = await self._batcher.score(part)
            rules = scores.rule or [None] * len(part)
            columns = zip(part, scores.score, scores.p_value, scores.is_anomaly, rules, strict=True)
            for cells, score, p_value, flag, rule in columns:
                found.append(Scored(score, p_value, flag, cells=cells, rule=rule))
        return found

    def whys(self, asked: Sequence[Scored], named: Sequence[bool]) -> list[Why | None]:
        """Return what lies behind some scores, all at once; of those `named` the columns, too."""
        rows = [scored.cells for scored in asked if scored.cells is not None]
        found: list[Why | None] = [None] * len(rows)
        chosen, others = np.flatnonzero(named).tolist(), np.flatnonzero(~np.array(named)).tolist()
        detector = self._scorer.detector
        names = detector.pool_.names_
        if chosen:
            explained = self._scorer.explain_cells([rows[i] for i in chosen])
            for k, i in enumerate(chosen):
                readings = [one.as_dict() for one in row_readings(explained, detector, k)]
                shares_of, norm = explained.contributions[k], explained.local_p[k]
                found[i] = _why(names, shares_of, norm, readings=readings)
        if others:
            columns = self._scorer.shares([rows[i] for i in others])
            for i, shares_of, norm in zip(others, *columns, strict=True):
                found[i] = _why(names, shares_of, norm)
        return found


class RunFeed:
    """Rows of sensors, each of which depends on those before it."""

    def __init__(self, scorer: RunScorer, executor: Executor) -> None:
        self._scorer, self._executor = scorer, executor
        self.model = scorer.live()

    async def score(self, rows: Sequence[JSONRow]) -> tuple[list[Outcome], list[str]]:
        """Return what becomes of every row, and notes on them."""
        return await _by_parts(self._executor, self._score, rows)

    def _score(self, rows: list[JSONRow]) -> list[Outcome]:
        try:
            return [*self._next(rows)]
        except InvalidInputError as error:
            if len(rows) == 1:
                return [unusable(error)]
        # nothing has moved yet: one by one, to find the bad ones
        return [outcome for row in rows for outcome in self._score([row])]

    def _next(self, rows: list[JSONRow]) -> list[Scored]:
        given = self._scorer.frame(rows)
        self.model.schema_ = asked_of(self._scorer.schema, given)
        frame, log = self.model.follow(given)
        runs = self.model.runs_in(frame)
        names = [None] * len(rows) if runs is None else [str(run) for run in runs]
        scores = scores_of(frame, self.model.limits_ is not None)
        return [
            Scored(*values, why=partial(self._why, log, i), sensors=log.sensors.get(i, ()))
            for i, values in enumerate(
                zip(scores.score, scores.p_value, scores.is_anomaly, names, strict=True)
            )
        ]

    def whys(self, asked: Sequence[Scored], named: Sequence[bool]) -> list[Why | None]:
        """Return what lies behind some scores; of those that are `named` the channels, too."""
        return [
            None if scored.why is None else scored.why(is_named)
            for scored, is_named in zip(asked, named, strict=True)
        ]

    @property
    def drift(self) -> float | None:
        """How far the level of a channel is from training, the farthest; above 1 is drift."""
        view, state = self.model.stream_.view_, self.model.stream_.state_
        counted = view.is_watched & ~view.follows
        return finite(state.slow.distance(view.rest)[counted].max(initial=0.0))

    def _why(self, log: ChunkLog, sample: int, is_named: bool) -> Why:
        drift = self.drift
        made = log.made_of(sample)
        if made is None:
            return Why({}, None, drift)
        features, context, _ = made
        detector = self._scorer.detector
        scale = detector.context_scale_
        scaled = None if context is None or scale is None else scale.transform(context)
        contributions, local_p = shares(detector, features, scaled)
        found = self.model.readings(log, sample) if is_named else []
        readings = [reading.as_dict() for reading in found]
        names = detector.pool_.names_
        return _why(names, contributions[0], local_p[0], drift, readings)


class PictureFeed:
    """Pictures, or frames of a camera one after another."""

    drift: ClassVar[float | None] = None

    def __init__(self, scorer: PictureScorer, executor: Executor, limits: Limits) -> None:
        self._scorer, self._executor, self._limits = scorer, executor, limits

    async def score(self, contents: Sequence[bytes]) -> tuple[list[Outcome], list[str]]:
        """Return what becomes of the content of every file, and notes on them."""
        return await _by_parts(self._executor, self._score, contents, n_part=4)

    def _score(self, contents: list[bytes]) -> list[Outcome]:
        return [self._judged(content) for content in contents]

    def _judged(self, content: bytes) -> Outcome:
        try:
            found = self._scorer.judge(decoded(content, self._limits))
        except ServeError as error:
            return error
        return Scored(found.score, found.p_value, found.is_anomaly, picture=found)

    def whys(self, asked: Sequence[Scored], *_: Any) -> list[Why | None]:
        """Return what lies behind some scores, with small pictures."""
        found = [scored.picture for scored in asked]
        return [
            None if one is None else Why(one.contributions, None, thumbnail=one.thumbnail())
            for one in found
        ]


Feed: TypeAlias = RowFeed | RunFeed | PictureFeed


def feed_of(served: Served, executor: Executor, batchers: Batchers, limits: Limits) -> Feed:
    """Return what scores the rows, or pictures, of one stream by a model."""
    scorer = served.scorer
    if scorer.kind == PICTURES:
        return PictureFeed(scorer, executor, limits)
    if scorer.kind == RUNS:
        return RunFeed(scorer, executor)
    return RowFeed(scorer, batchers.of(served), executor)


async def _by_parts(
    executor: Executor,
    task: Callable[[list[Row]], list[T]],
    rows: Sequence[Row],
    n_part: int = 256,
) -> tuple[list[T], list[str]]:
    """Return what becomes of rows, some at a time: between them other streams have a turn."""
    loop = asyncio.get_running_loop()
    found: list[T] = []
    notes: dict[str, None] = {}
    for begin in range(0, len(rows), n_part):
        part = list(rows[begin : begin + n_part])
        some, some_notes = await loop.run_in_executor(executor, with_notes, task, part)
        found += some
        notes |= dict.fromkeys(some_notes)
    return found, list(notes)[:MOST_NOTES]


def _why(
    names: Sequence[str],
    contributions: FloatArray,
    local_p: float,
    drift: float | None = None,
    readings: Sequence[Mapping[str, Any]] = (),
) -> Why:
    shares_of = dict(zip(names, contributions.tolist(), strict=True))
    return Why(shares_of, finite(local_p), drift, readings)


@dataclass(frozen=True)
class JudgedRow:
    """A row that has been scored: its content, and what it means."""

    content: Any
    is_anomaly: bool | None
    begins: bool  # an event


class RowFollower(Protocol):
    """Who takes the rows of a stream after they have been scored."""

    def put(self, rows: Sequence[JudgedRow]) -> None:
        """Take the next rows."""


@dataclass(frozen=True)
class StreamServices:
    """What streams share; `beside` returns who takes the rows of one, too."""

    live: Live
    events: EventStore
    overview: Overview
    metrics: Metrics
    limits: Limits
    workers: Workers
    batchers: Batchers
    beside: Callable[[Served, str, int | None], RowFollower | None] = lambda *_: None
    states: StateFolder | None = None
    slow: SlowSettings = field(default_factory=SlowSettings)


@dataclass
class Item:
    """One row of a message, or why it is none."""

    seq: int
    row: JSONRow | None = None
    error: ServeError | None = None
    id: str | int | None = None
    time: float = 0.0
    thumbnail: bytes | None = None
    #: Content of a file, for models of pictures.
    picture: bytes | None = None

    @property
    def content(self) -> Any:
        """What is scored; None if there is nothing."""
        return self.row if self.picture is None else self.picture


@dataclass(frozen=True)
class Message:
    """The rows of one message; several are answered by a list."""

    items: Sequence[Item]
    is_list: bool


class Stream:
    """Score what a client sends, in order, and send back scores and alarms.

    It keeps its version of the model to its end. A client whose stream has no name of its own
    (`is_named`) cannot come back to it. An event begins after `min_rows` rows in a row
    below the threshold; by default those of the
    model of runs, and 1 of a model of rows.
    """

    def __init__(
        self,
        socket: WebSocket,
        served: Served,
        name: str,
        around: StreamServices,
        min_rows: int | None = None,
        is_named: bool = True,
    ) -> None:
        self.socket, self.served, self.name, self.around = socket, served, name, around
        self.is_named = is_named
        self._feed = feed_of(served, around.workers.streams, around.batchers, around.limits)
        self._tracker = served.scorer.tracker(min_rows)
        self._slow = served.scorer.slow_change(around.slow) if around.slow.is_on else None
        self._beside = around.beside(served, name, min_rows)
        # names that we give are given again after a restart, to others
        self._states = around.states if is_named and isinstance(self._feed, RunFeed) else None
        self._saved_at = -math.inf
        self._is_open = False  # an event, by the rows that have been judged
        self._seq = 0
        self._run: str | None = None
        self._event: int | None = None
        self._sensors: dict[tuple[str, str], int] = {}
        self._lowest = math.inf
        self._kept_at = -math.inf  # when rows around an event were written last
        self._rows = EventRows(len(served.scorer.names), served.scorer.n_reach)
        self._waiting: deque[str | bytes] = deque()
        self._n_bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._goodbye: tuple[int, str] | None = None
        self._how_left: Literal["closed", "lost"] = "lost"
        self._explained_at = -math.inf
        self._second, self._n_named = -math.inf, 0  # scores whose channels were looked for in it
        self._reader: asyncio.Task[None] | None = None
        self.is_over = asyncio.Event()

    # -- the connection -----------------------------------------------------

    async def run(self) -> None:
        """Serve the stream until the client leaves or `stop` is called."""
        try:
            await self.socket.accept()
            self.around.overview.connect(self.source)
            is_resumed = self._states is not None and await self._on_streams(self._resume)
            self.around.live.introduce(self.source, self.served.scorer.channels(MOST_CHANNELS))
            await self._send(
                {
                    "type": "ready",
                    "model": self.served.name,
                    "version": self.served.version,
                    "stream": self.name,
                    "threshold": self.served.scorer.threshold,
                    "columns": self.served.scorer.names,
                    "resumed": is_resumed,
                }
            )
            self._reader = asyncio.create_task(self._read())
            while await self._answer_next():
                pass
            code, reason = self._goodbye or (CloseCode.NORMAL, "")
            if reason:
                await self._send({"type": "bye", "reason": reason})
                await self.socket.close(code, reason)
        except (WebSocketDisconnect, OSError, TimeoutError):
            pass  # the client is gone, or has not read for too long
        finally:
            if self._reader is not None:
                self._reader.cancel()
            if self._states is not None:
                with suppress(RuntimeError):  # the service has stopped
                    await self._on_streams(self._save)
            await self._give_up_event()
            self.around.overview.leave(self.source, self._how_left, self.is_named)
            self.is_over.set()

    @property
    def source(self) -> Source:
        """Model and name."""
        return self.served.name, self.name

    def stop(self, code: int, reason: str) -> None:
        """Take nothing more; what has come is still answered."""
        if self._goodbye is None:
            self._goodbye = code, reason
        if self._reader is not None:
            self._reader.cancel()
        self._changed.set()

    async def _read(self) -> None:
        """Take messages, as long as few wait: what is not taken slows the sender down."""
        while True:
            while (
                len(self._waiting) >= MOST_WAITING
                or self._n_bytes > 2 * self.around.limits.message_bytes
            ):
                self._room.clear()
                await self._room.wait()
            message = await self.socket.receive()
            if message["type"] != "websocket.receive":
                if message.get("code") == CloseCode.NORMAL:
                    self._how_left = "closed"
                self.stop(CloseCode.NORMAL, "")
                return
            text = message.get("text")
            content = (message.get("bytes") if text is None else text) or ""
            if len(content) > self.around.limits.message_bytes:
                self.stop(CloseCode.TOO_BIG, "a message was too long")
                return
            self._waiting.append(content)
            self._n_bytes += len(content)
            self._changed.set()

    async def _answer_next(self) -> bool:
        """Answer all that waits; return whether more may come."""
        while not self._waiting:
            if self._goodbye is not None:
                return False
            self._changed.clear()
            await self._changed.wait()
        messages, n_rows = [], 0
        while self._waiting and n_rows < self.around.limits.rows:
            messages.append(self._parsed(self._waiting.popleft()))
            n_rows += len(messages[-1].items)
        if not self._waiting:
            self._n_bytes = 0
        found, notes = await self._answers([item for m in messages for item in m.items])
        self._room.set()
        answers = iter(found)
        contents = []
        for message in messages:
            results = [next(answers) for _ in message.items]
            content = {"type": "scores", "results": results} if message.is_list else results[0]
            if notes:
                content, notes = content | {"notes": notes}, []
            contents.append(content)
        await self._send(*contents)
        return True

    async def _send(self, *contents: dict[str, Any]) -> None:
        """Send answers; who does not read one in time is given up."""
        seconds, time_of = self.around.limits.seconds, asyncio.get_running_loop().time
        with anyio.fail_after(seconds) as patience:
            for content in contents:
                await self.socket.send_text(to_json(content).decode("ascii"))
                if patience.deadline - time_of() < 0.9 * seconds:  # to move it takes a while
                    patience.deadline = time_of() + seconds

    # -- what the client says -----------------------------------------------

    def _parsed(self, message: str | bytes) -> Message:
        """Return the rows of a message; one that is not understood counts as a bad row."""
        body = message.encode("utf-8", "replace") if isinstance(message, str) else message
        is_of_pictures = self.served.scorer.kind == PICTURES
        if is_of_pictures and isinstance(message, bytes):
            return Message([Item(self._next_seq(), time=time.time(), picture=message)], False)
        try:
            content = parse_json(body, self.around.limits)
            if is_of_pictures:
                return self._one_picture(content)
            if isinstance(content, dict) and "rows" in content:
                return self._several(content)
            if isinstance(content, dict) and "row" in content:
                return Message([self._one(content)], is_list=False)
            raise ServeError(
                422, "not_rows", 'Expected {"row": {...}} or {"rows": [{...}, ...]} as a message.'
            )
        except ServeError as error:
            return Message([Item(self._next_seq(), error=error)], is_list=False)

    def _several(self, content: dict[str, Any]) -> Message:
        rows, times = content["rows"], content.get("times")
        if not isinstance(rows, list):
            raise ServeError(422, "not_rows", "rows must be a list of rows.")
        check_rows(rows, self.around.limits)
        if times is None:
            times = [None] * len(rows)
        if not isinstance(times, list) or len(times) != len(rows):
            raise ServeError(422, "bad_time", "times must be a list with one time per row.")
        moments = [_time(moment) for moment in times]
        return Message(
            [
                Item(self._next_seq(), row, time=moment)
                for row, moment in zip(rows, moments, strict=True)
            ],
            is_list=True,
        )

    def _one_picture(self, content: Any) -> Message:
        """Return a picture that comes as JSON, with its time perhaps."""
        if not isinstance(content, dict) or "picture" not in content:
            raise ServeError(
                422,
                "not_pictures",
                "This model judges pictures. Expected the bytes of a JPEG, PNG or WebP file as a "
                'message, or {"picture": "...", "time": ...} with these in base64.',
            )
        moment, name = _time(content.get("time")), _id(content.get("id"))
        picture = from_base64(content["picture"])
        item = Item(self._next_seq(), id=name, time=moment, picture=picture)
        return Message([item], is_list=False)

    def _one(self, content: dict[str, Any]) -> Item:
        (row,) = check_rows([content["row"]], self.around.limits)
        moment, picture = _time(content.get("time")), _picture(content.get("thumbnail"))
        name = _id(content.get("id"))
        return Item(self._next_seq(), row, id=name, time=moment, thumbnail=picture)

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq - 1

    # -- what it means ------------------------------------------------------

    async def _answers(self, items: list[Item]) -> tuple[list[dict[str, Any]], list[str]]:
        rows = [item.content for item in items if item.content is not None]
        found, notes = await self._feed.score(rows) if rows else ([], [])
        of_rows = iter(found)
        outcomes = [item.error if item.content is None else next(of_rows) for item in items]
        outcomes, alarms, changes = self._judged(outcomes)
        scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
        name = self.served.name
        threshold = self.served.scorer.threshold
        flags = [is_low(one.score, one.is_anomaly, one.rule, threshold) for one in scored]
        n_broken = sum(bool(one.rule) for one in scored)
        self.around.metrics.count_rows(name, "stream", flags, n_broken)
        self.around.metrics.refused_rows.labels(name).inc(len(outcomes) - len(scored))
        if self._beside is not None:
            self._beside.put(
                [
                    JudgedRow(item.content, outcome.is_anomaly, alarm == "begin")
                    for item, outcome, alarm in zip(items, outcomes, alarms, strict=True)
                    if isinstance(outcome, Scored)
                ]
            )
        whys = await self._whys(outcomes, alarms)
        samples = self._samples(items, outcomes, alarms, whys)
        events = await self._recorded(items, outcomes, samples, alarms, changes)
        of_all = zip(items, outcomes, samples, alarms, events, strict=True)
        answers = [self._answer(*about) for about in of_all]
        self._tell_overview(items, outcomes, whys)
        now = asyncio.get_running_loop().time()
        if self._states is not None and now - self._saved_at >= SAVE_SECONDS:
            self._saved_at = now
            await self._on_streams(self._save)
        return answers, notes

    def _judged(
        self, outcomes: Sequence[Outcome | None]
    ) -> tuple[list[Outcome | None], list[str | None], dict[int, dict[str, Any]]]:
        """Return rows as they stand to the threshold of now, their alarms, and changes by row."""
        if self._slow is None:
            return list(outcomes), [self._alarm(outcome) for outcome in outcomes], {}
        scorer = self.served.scorer
        found: list[Outcome | None] = []
        alarms: list[str | None] = []
        changes = {}
        for i, outcome in enumerate(outcomes):
            score = outcome.score if isinstance(outcome, Scored) else math.nan
            if isinstance(outcome, Scored) and self._slow.rolling is not None:
                about = self._slow.shift, scorer.detector.conformal_, scorer.threshold
                now = judged_again({"score": score, RULE: outcome.rule}, *about)
                outcome = replace(outcome, **now)
            found.append(outcome)
            alarms.append(self._alarm(outcome))
            change = self._slow.take(score, in_event=self._tracker.is_alarm)
            if change is not None:
                changes[i] = self._slow.record(change)
        return found, alarms, changes

    async def _on_streams(self, task: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.around.workers.streams, task)

    def _resume(self) -> bool:
        """Go on where the stream was before a restart; return whether that was possible."""
        if self._states is None or not isinstance(self._feed, RunFeed):
            return False
        try:
            found = resume_stream(self._states.file(*self.source), self._feed.model)
        except InvalidInputError as error:
            name, stream = self.source
            log_event("state_left_out", model=name, stream=stream, reason=str(error))
            return False
        if found is None:
            return False
        self._tracker = found.tracker_like(self._tracker)
        if self._slow is not None:
            self._slow.go_on_from(found.slow)
        self._run = found.run  # its event was interrupted: the next row begins one
        return True

    def _save(self) -> None:
        """Write where the stream is; what keeps that from being written is logged."""
        if self._states is None or not isinstance(self._feed, RunFeed):
            return
        try:
            file, model = self._states.file(*self.source), self._feed.model
            save_stream(file, model, self._tracker, self._slow)
        except OSError as error:
            log_event("state_not_written", level=logging.ERROR, reason=str(error))

    def _tell_overview(
        self,
        items: Sequence[Item],
        outcomes: Sequence[Outcome | None],
        whys: Mapping[int, Why | None],
    ) -> None:
        """Tell the state of the stream after some rows; it is that of the last one."""
        last = outcomes[-1]
        scores = [one.score for one in outcomes if isinstance(one, Scored) and one.score < math.inf]
        known = [why.readings[0] for why in whys.values() if why is not None and why.readings]
        self.around.overview.sample(
            self.source,
            items[-1].time,
            last.score if isinstance(last, Scored) else None,
            self.served.scorer.threshold,
            min(scores, default=None),
            known[-1] if known else None,
            self._feed.drift,
        )

    async def _whys(
        self, outcomes: Sequence[Outcome | None], alarms: Sequence[str | None]
    ) -> dict[int, Why | None]:
        """Return by row what lies behind the scores that events and viewers ask for.

        That are those that begin an event, those that are its lowest, and the last one if
        somebody looks on. Channels take longer: for viewers they are looked for once a second,
        for events `MOST_NAMED` times.
        """
        asked: dict[int, Scored] = {}
        is_on, last = self._event is not None, -1
        for i, (outcome, alarm) in enumerate(zip(outcomes, alarms, strict=True)):
            if isinstance(outcome, Scored):
                last = i
                if alarm == "begin" or (is_on and outcome.score < self._lowest):
                    self._lowest, asked[i] = outcome.score, outcome
            is_on = alarm == "begin" or (is_on and alarm != "end")
        loop = asyncio.get_running_loop()
        if loop.time() - self._second >= 1.0:
            self._second, self._n_named = loop.time(), 0
        named = set(list(asked)[: max(MOST_NAMED - self._n_named, 0)])
        self._n_named += len(named)
        if last >= 0 and self.around.live.has_viewers:
            asked[last] = outcomes[last]  # type: ignore[assignment]
            if loop.time() - self._explained_at >= 1.0:
                self._explained_at = loop.time()
                named.add(last)
        if not asked:
            return {}
        whys = await loop.run_in_executor(
            self.around.workers.streams,
            self._feed.whys,
            list(asked.values()),
            [i in named for i in asked],
        )
        return dict(zip(asked, whys, strict=True))

    def _answer(
        self,
        item: Item,
        outcome: Outcome | None,
        sample: Sample | None,
        alarm: str | None,
        event: int | None,
    ) -> dict[str, Any]:
        about: dict[str, Any] = {"seq": item.seq}
        if item.id is not None:
            about["id"] = item.id
        if not isinstance(outcome, Scored):
            about |= {} if alarm is None else {"alarm": alarm, "event": event}
            return {"type": "error", **about} | ({} if outcome is None else outcome.content)
        if outcome.sensors:
            about["sensors"] = [sensor.as_dict() for sensor in outcome.sensors]
        return {
            "type": "score",
            **about,
            "score": finite(outcome.score),
            "p_value": finite(outcome.p_value),
            "is_anomaly": outcome.is_anomaly,
            **({} if outcome.rule is None else {"rule": outcome.rule}),
            "alarm": alarm,
            "event": event,
            **({} if outcome.picture is None else {"place": outcome.picture.place}),
            **_begun(sample),
        }

    def _alarm(self, outcome: Outcome | None) -> str | None:
        """Return "begin" or "end" if the row begins or ends an event. No run shares one.

        A row that is refused begins none; it ends one if too many rows have no score.
        """
        goes_on, score = self._is_open, math.nan
        if isinstance(outcome, Scored):
            score = outcome.score
            if outcome.run != self._run:
                self._tracker.finish()
                self._run, goes_on = outcome.run, False
            # a row that breaks a limit is part of an event, whatever its score is
            if outcome.rule is not None:
                score = min(score, self._tracker.enter - 1.0)
        self._tracker.update(score)
        was_open = self._is_open
        self._is_open = self._tracker.is_on and (was_open or isinstance(outcome, Scored))
        if self._is_open:
            return None if goes_on else "begin"
        return "end" if was_open else None

    async def _recorded(
        self,
        items: Sequence[Item],
        outcomes: Sequence[Outcome | None],
        samples: Sequence[Sample | None],
        alarms: Sequence[str | None],
        changes: Mapping[int, Mapping[str, Any]],
    ) -> list[int | None]:
        """Keep what rows mean for events, then show them; return the event that each is of.

        All rows have one turn of the thread that writes events.
        """
        sensors = [one.sensors if isinstance(one, Scored) else () for one in outcomes]
        task = partial(self._take, items, samples, alarms, sensors, changes)
        if self._event is None and not (any(alarms) or any(sensors) or changes):
            found = task()  # which writes nothing
        else:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self.around.workers.events, task)
        for sample in samples:
            if sample is not None:
                self.around.live.publish(sample)
        return found

    def _take(
        self,
        items: Sequence[Item],
        samples: Sequence[Sample | None],
        alarms: Sequence[str | None],
        sensors: Sequence[Sequence[SensorEvent]],
        changes: Mapping[int, Mapping[str, Any]],
    ) -> list[int | None]:
        """Record what rows mean for events, in their order, and keep those near an event."""
        found: list[int | None] = []
        of_all = zip(items, samples, alarms, sensors, strict=True)
        for i, (item, sample, alarm, of_row) in enumerate(of_all):
            found.append(self._record_alarm(item, sample, alarm))
            for sensor in of_row:
                self._record_sensor(item, sensor)
            if i in changes:
                self._record_change(item, changes[i])
        return found

    def _record_alarm(self, item: Item, sample: Sample | None, alarm: str | None) -> int | None:
        """Begin, go on with or end the event of scores; return that which the row is of."""
        event = None
        if sample is not None:
            if alarm is not None or self._event is not None:
                event = self.around.events.take(sample)
                self._event = None if alarm == "end" else event
            if isinstance(item.row, dict | list):
                self._keep(sample, item.row, event)
        elif alarm == "end" and self._event is not None:
            event, self._event = self._event, None
            self.around.events.end(event)  # at its last sample
            self._rows.end()
        if alarm is not None:
            self._note(f"alarm_{alarm}", alarm == "begin", number=event, seq=item.seq)
        return event

    def _record_sensor(self, item: Item, sensor: SensorEvent) -> None:
        """Begin or end the event of a sensor."""
        store, key = self.around.events, (sensor.kind, sensor.channel)
        is_new = sensor.state == "begin"
        if is_new:
            named = [{"name": sensor.channel, "words": sensor.text}] if sensor.channel else []
            event = store.raise_event(sensor.kind, self.source, item.time, sensor.text, named)
            self._sensors[key] = event
        else:
            event = self._sensors.pop(key, -1)
            store.end(event, item.time)
        about = {"kind": sensor.kind, "channel": sensor.channel, "number": event}
        self._note(f"sensor_{sensor.state}", is_new, **about)

    def _record_change(self, item: Item, record: Mapping[str, Any]) -> None:
        """Keep, and tell, that the source has changed: an event that is over at once."""
        store = self.around.events
        event = store.raise_event(CHANGED, self.source, item.time, change_words(record))
        store.end(event, item.time)
        self.around.metrics.changes.labels(self.served.name).inc()
        self._note("source_changed", True, number=event, seq=item.seq)

    def _note(self, what: str, is_new: bool, **about: Any) -> None:
        """Log what becomes of an event, and count it if it is new."""
        name, stream = self.source
        if is_new:
            self.around.metrics.events.labels(name).inc()
        log_event(what, model=name, stream=stream, **about)

    def _keep(self, sample: Sample, row: JSONRow, event: int | None) -> None:
        """Keep a row that is near an event."""
        alarm = sample.alarm
        if alarm == "begin" and event is not None:
            self._write_rows()  # of the event before
            self._rows.begin(event)
        elif alarm == "end":
            self._rows.end()
        in_event = event is not None and alarm != "end"
        kept = kept_row(sample.seq, sample.time, sample.score, row)
        is_complete = self._rows.add(kept, is_event=in_event)
        # at once, but for events within a second of each other: these are written when over
        is_first = alarm is not None and time.monotonic() - self._kept_at >= 1.0
        if is_complete or is_first:
            self._write_rows()
        if is_complete and not in_event:
            self._rows.forget()

    def _write_rows(self) -> None:
        """Write the rows around an event to its file."""
        kept, store = self._rows.kept(), self.around.events
        if kept is None or not store.keep.row_bytes:
            return
        self._kept_at = time.monotonic()
        data, n = packed_within(kept[1], store.most_row_bytes)
        if n:
            store.keep_rows(kept[0], data, n)

    def _samples(
        self,
        items: Sequence[Item],
        outcomes: Sequence[Outcome | None],
        alarms: Sequence[str | None],
        whys: Mapping[int, Why | None],
    ) -> list[Sample | None]:
        """Return what is told of rows; None of those without a score."""
        scores = [one.score if isinstance(one, Scored) else math.nan for one in outcomes]
        calibrator = getattr(self.served.scorer.detector, "conformal_", None)
        severities = np.full(len(scores), np.nan)
        if calibrator is not None and (self._event is not None or any(alarms)):
            severities = calibrator.severity(scores)
        is_on = self._event is not None
        found: list[Sample | None] = []
        for i, (item, scored, alarm) in enumerate(zip(items, outcomes, alarms, strict=True)):
            if isinstance(scored, Scored):
                severity = severities[i] if alarm is not None or is_on else math.nan
                found.append(self._sample(item, scored, alarm, whys.get(i), finite(severity)))
            else:
                found.append(None)
            is_on = alarm == "begin" or (is_on and alarm != "end")
        return found

    def _sample(
        self, item: Item, scored: Scored, alarm: Any, why: Why | None, severity: float | None
    ) -> Sample:
        why = Why({}, None) if why is None else why
        readings = list(why.readings)
        if scored.rule is not None:
            readings.insert(0, {"name": "limit", "words": f"limit broken: {scored.rule}"})
        return Sample(
            model=self.served.name,
            stream=self.name,
            seq=item.seq,
            time=item.time,
            score=finite(scored.score),
            threshold=self.served.scorer.threshold,
            p_value=finite(scored.p_value),
            is_anomaly=scored.is_anomaly,
            local_p=why.local_p,
            contributions=why.contributions or None,
            drift=why.drift,
            alarm=alarm,
            severity=severity,
            readings=readings,
            values=self._values(item.row),
            thumbnail=item.thumbnail if why.thumbnail is None else why.thumbnail,
        )

    def _values(self, row: JSONRow | None) -> list[float | None]:
        """Return the values of the channels that a page can show; None for what is no number."""
        names = self.served.scorer.names[:MOST_CHANNELS]
        cells = [row.get(name) for name in names] if isinstance(row, dict) else (row or [])
        return [
            finite(cell) if isinstance(cell, int | float) and abs(cell) < 1e300 else None
            for cell in cells[:MOST_CHANNELS]
        ]

    async def _give_up_event(self) -> None:
        """End the events that last when the stream is over: nobody sees their end."""
        last = [*self._sensors.values(), *([] if self._event is None else [self._event])]
        self._event, self._sensors = None, {}
        loop, store = asyncio.get_running_loop(), self.around.events
        await loop.run_in_executor(self.around.workers.events, self._write_rows)
        for event in last:
            task = partial(store.end, event, state="interrupted")
            await loop.run_in_executor(self.around.workers.events, task)


class Streams:
    """The open streams by model and name."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Stream] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._open)

    async def run(self, stream: Stream) -> None:
        """Run a stream; one of the same name before it must give way, as its client is back."""
        key = stream.served.name, stream.name
        while (before := self._open.get(key)) is not None:  # others may come back, too
            before.stop(CloseCode.POLICY, "another connection took over this stream")
            await before.is_over.wait()
        if self._is_closed:
            stream.stop(CloseCode.RESTART, "the service stops")
        self._open[key] = stream
        stream.around.metrics.streams.inc()
        try:
            await stream.run()
        finally:
            stream.around.metrics.streams.dec()
            if self._open.get(key) is stream:
                del self._open[key]

    async def close(self, seconds: float) -> None:
        """Answer what has come, and part from all clients."""
        self._is_closed = True
        streams = list(self._open.values())
        for stream in streams:
            stream.stop(CloseCode.RESTART, "the service stops")
        if streams:
            waits = [asyncio.create_task(stream.is_over.wait()) for stream in streams]
            _, late = await asyncio.wait(waits, timeout=seconds)
            for task in late:
                task.cancel()


def _begun(sample: Sample | None) -> dict[str, Any]:
    """Return what the answer to a row that begins an event says of it."""
    if sample is None or sample.alarm != "begin":
        return {}
    return {"severity": sample.severity, "channels": sample.readings}


def _time(given: Any) -> float:
    if given is None:
        return time.time()
    if type(given) not in (int, float) or not abs(given) < 1e15:
        raise ServeError(422, "bad_time", "time must be a number of seconds.")
    return float(given)


def _id(given: Any, longest: int = 200) -> str | int | None:
    is_number = type(given) is int and abs(given) < 2**63
    if given is None or is_number or (isinstance(given, str) and len(given) <= longest):
        return given  # type: ignore[no-any-return]
    raise ServeError(
        422, "bad_id", f"id must be a whole number, or text of at most {longest} characters."
    )


def _picture(given: Any) -> bytes | None:
    if given is None:
        return None
    try:
        return base64.b64decode(given, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ServeError(
            422, "bad_thumbnail", "thumbnail must be a JPEG, PNG or WebP picture in base64."
        ) from None
