"""Models that are tried beside those that are served: they score the same rows, and raise nothing.

A stream waits for none of it. What a shadow finds is counted only: the rows on which the two
models differ, and the events that each of them begins.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from fastapi import APIRouter
from starlette.responses import Response

from ocfuse.exceptions import InvalidInputError
from ocfuse.persistence import load, read_header
from ocfuse.serve.dashboard import PRIVATE
from ocfuse.serve.errors import JSONAnswer
from ocfuse.serve.models import Served
from ocfuse.serve.pictures import PICTURES
from ocfuse.serve.samples import Source
from ocfuse.serve.schemas import ShadowList, refusals
from ocfuse.serve.scoring import Batcher, scorer_of
from ocfuse.serve.settings import Limits
from ocfuse.serve.stream import Feed, JudgedRow, PictureFeed, RowFeed, RunFeed, Scored
from ocfuse.serve.telemetry import Metrics, fault, log_event
from ocfuse.tables.detector import RUNS


@dataclass
class ShadowCounts:
    """What a shadow and the model that is served have found in the same rows of a stream."""

    #: Rows that both have scored or found to have no score.
    rows: int = 0
    #: Rows that are below the threshold of one of them only.
    only_served: int = 0
    only_shadow: int = 0
    #: Events that each began.
    events_served: int = 0
    events_shadow: int = 0
    #: Rows that the shadow could not score, and those that came faster than it scores.
    refused: int = 0
    left_out: int = 0

    def add(self, other: "ShadowCounts") -> None:
        """Count what another stream has found, too."""
        for name, n in asdict(other).items():
            setattr(self, name, getattr(self, name) + n)


class Shadows:
    """The models that are tried, by the name of the model beside which each of them is.

    Parameters
    ----------
    files : mapping of str to Path
        Their files, which are read once.
    models : sequence of str
        Names of the models that are served.
    executor : Executor
        Where they score.
    limits : Limits
        Of pictures.
    metrics : Metrics
        Where differences are counted.
    """

    #: Streams of which differences are told one by one; of more, those of before are forgotten.
    most_streams: ClassVar[int] = 200

    def __init__(
        self,
        files: dict[str, Path],
        models: Sequence[str],
        executor: Executor,
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self._executor, self._limits, self._metrics = executor, limits, metrics
        self._files = files
        self._models: dict[str, Served] = {}
        self._found: dict[Source, ShadowCounts] = {}
        self._totals: dict[str, ShadowCounts] = {}
        for name, path in files.items():
            if name not in models:
                raise InvalidInputError(
                    f"A shadow needs the name of a model that is served. There are: "
                    f"{', '.join(models)}. Got {name}={path}."
                )
            scorer = scorer_of(load(path))
            self._models[name] = Served(name, read_header(path).sha256[:16], scorer, None)
            self._totals[name] = ShadowCounts()

    def stream(self, served: Served, name: str, min_rows: int | None) -> "ShadowStream | None":
        """Return what scores the rows of a stream once more, if its model has a shadow."""
        shadow = self._models.get(served.name)
        if shadow is None:
            return None
        source = served.name, name
        if source not in self._found and len(self._found) >= self.most_streams:
            del self._found[next(iter(self._found))]
        found = self._found.setdefault(source, ShadowCounts())
        return ShadowStream(self, shadow, self._feed(shadow), found, min_rows)

    def _feed(self, shadow: Served) -> Feed:
        scorer = shadow.scorer
        if scorer.kind == PICTURES:
            return PictureFeed(scorer, self._executor, self._limits)
        if scorer.kind == RUNS:
            return RunFeed(scorer, self._executor)
        return RowFeed(scorer, Batcher(scorer.score_cells, self._executor, 256), self._executor)

    def count(self, model: str, found: ShadowCounts) -> None:
        """Count what was found in some rows."""
        self._totals[model].add(found)
        for name, n in asdict(found).items():
            if n:
                self._metrics.shadow.labels(model, name).inc(n)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the shadows with what they have found as plain data."""
        return [
            {
                "model": name,
                "version": shadow.version,
                "file": self._files[name].name,
                **asdict(self._totals[name]),
                "streams": [
                    {"stream": stream, **asdict(found)}
                    for (model, stream), found in sorted(self._found.items())
                    if model == name
                ],
            }
            for name, shadow in self._models.items()
        ]


class ShadowStream:
    """Score the rows of one stream once more, after those that wait for nothing."""

    #: Rows that may wait; what is beyond is left out.
    most_waiting: ClassVar[int] = 4096

    def __init__(
        self,
        shadows: Shadows,
        model: Served,
        feed: Feed,
        found: ShadowCounts,
        min_rows: int | None,
    ) -> None:
        self._shadows, self._model, self._feed, self._found = shadows, model, feed, found
        self._tracker = model.scorer.tracker(min_rows)
        self._run: str | None = None
        self._waiting: deque[JudgedRow] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, rows: Sequence[JudgedRow]) -> None:
        """Let rows wait to be scored, which the model that is served has scored."""
        room = self.most_waiting - len(self._waiting)
        self._waiting.extend(rows[:room])
        if len(rows) > room:
            self._count(ShadowCounts(left_out=len(rows) - room))
        if self._task is None and self._waiting:
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        """Score until nothing waits; a fault ends it, and the stream goes on."""
        try:
            while self._waiting:
                rows = [self._waiting.popleft() for _ in range(min(len(self._waiting), 256))]
                outcomes, _ = await self._feed.score([row.content for row in rows])
                found = ShadowCounts()
                for row, outcome in zip(rows, outcomes, strict=True):
                    self._compare(row, outcome, found)
                self._count(found)
        except RuntimeError:
            self._waiting.clear()  # the service stops
        except Exception as error:
            self._waiting.clear()
            log_event("fault", level=logging.ERROR, model=self._model.name, **fault(error))
        finally:
            self._task = None

    def _compare(self, row: JudgedRow, outcome: Any, found: ShadowCounts) -> None:
        found.events_served += row.begins
        if not isinstance(outcome, Scored):
            found.refused += 1
            self._tracker.update(math.nan)
            return
        found.rows += 1
        found.only_served += bool(row.is_anomaly) and not outcome.is_anomaly
        found.only_shadow += bool(outcome.is_anomaly) and not row.is_anomaly
        if outcome.run != self._run:
            self._tracker.finish()
            self._run = outcome.run
        was_on = self._tracker.is_on
        self._tracker.update(outcome.score)
        found.events_shadow += self._tracker.is_on and not was_on

    def _count(self, found: ShadowCounts) -> None:
        self._found.add(found)
        self._shadows.count(self._model.name, found)


def shadow_router(shadows: Shadows) -> APIRouter:
    """Return the route that tells what shadows have found."""
    router = APIRouter()

    @router.get(
        "/v1/shadow",
        tags=["models"],
        summary="Compare models that are tried",
        response_model=ShadowList,
        responses=refusals(),
    )
    async def list_shadows() -> Response:
        """Return how the models of --shadow differ from those that are served, since the start."""
        return JSONAnswer({"shadows": shadows.as_json()}, headers=PRIVATE)

    return router
