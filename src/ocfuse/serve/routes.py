"""The routes of the service: scores, explanations, models, health, metrics."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, Query, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation
from ocfuse.serve import schemas
from ocfuse.serve.decoding import JSON, Rows, decode
from ocfuse.serve.errors import JSONAnswer, ServeError, unusable
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.models import ModelRegistry, Served, batcher_of
from ocfuse.serve.samples import Live, Sample
from ocfuse.serve.schemas import responses
from ocfuse.serve.scoring import RowScorer, RunScorer, Scores, features_of
from ocfuse.serve.settings import Limits
from ocfuse.serve.telemetry import Metrics, noted
from ocfuse.serve.workers import Workers
from ocfuse.tables.dataframes import Frame
from ocfuse.tables.detector import RUNS

T = TypeVar("T")

#: Bytes from which on a body is decoded in another thread, so that others need not wait.
LARGE_BODY = 32 * 1024
#: Rows times columns that are explained at once; between them it is seen whether anybody waits.
EXPLAINED_PART = 200
#: The stream that rows of single requests are shown as, if they are.
REQUESTS = "requests"

Name = Annotated[
    str | None,
    Query(
        pattern=schemas.NAME_PATTERN,
        description="Name of the model; by default the first one.",
        openapi_examples={"the first": {"value": None}},
    ),
]
At = Annotated[
    list[int] | None,
    Query(
        max_length=1000,
        description="Positions of the rows to explain, from 0 on; by default all. For models of "
        "runs all rows of a run are needed, whichever is explained.",
    ),
]


class RequestHandler:
    """Answer requests.

    Parameters
    ----------
    registry : ModelRegistry
        The models.
    limits : Limits
        What is refused.
    workers : Workers
        Where rows are read, scored and explained.
    metrics : Metrics
        What counts.
    live : Live or None
        Whom to show the rows of requests, if at all.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        limits: Limits,
        workers: Workers,
        metrics: Metrics,
        live: Live | None = None,
    ) -> None:
        self.registry, self.limits, self.metrics, self.live = registry, limits, metrics, live
        self._workers = workers
        self._n_shown = 0

    async def score(self, request: Request, name: str | None) -> Response:
        """Score the rows of a request."""
        served, rows = await self._rows(request, name)
        try:
            scores = await self._scores(served, rows)
        except InvalidInputError as error:
            raise unusable(error) from None
        self.metrics.count_rows(served.name, "request", scores.is_anomaly)
        if self.live is not None:
            self._show(served, scores)
        columns = zip(scores.score, scores.p_value, scores.is_anomaly, strict=True)
        results = [
            {"score": _or_none(score), "p_value": _or_none(p_value), "is_anomaly": flag}
            for score, p_value, flag in columns
        ]
        return JSONAnswer(_about(served) | {"results": results, "notes": scores.notes})

    async def explain(
        self, request: Request, name: str | None, at: Sequence[int] | None
    ) -> Response:
        """Say what lies behind the scores of the rows of a request."""
        served, rows = await self._rows(request, name)
        self._check_chosen(at, len(rows), len(served.scorer.names))
        try:
            task = partial(_explanations, served, rows, at)
            work = self._workers.explanations.run(task)
            results, notes = await _unless_left(request, work)
        except InvalidInputError as error:
            raise unusable(error) from None
        return JSONAnswer(_about(served) | {"results": results, "notes": notes})

    async def _rows(self, request: Request, name: str | None) -> tuple[Served, Rows]:
        body = await request.body()
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        served = self.registry.get(name)
        if kind == JSON and len(body) < LARGE_BODY:
            return served, decode(body, kind, self.limits)
        return served, await self._elsewhere(partial(_decoded, body, kind, self.limits))

    async def _scores(self, served: Served, rows: Rows) -> Scores:
        scorer = served.scorer
        if scorer.kind == RUNS:
            return await self._elsewhere(partial(_scored_runs, scorer, rows))
        batcher = batcher_of(served)
        notes: list[str] = []
        cells = scorer.plain(rows) if isinstance(rows, list) else None
        if cells is None:
            features, notes = await self._elsewhere(partial(_features, scorer, rows))
            if len(features) > batcher.most_rows:
                scores = await self._elsewhere(partial(scorer.score, features))
                scores.notes.extend(notes)
                return scores
            cells = scorer.cells_of(features)
        if not cells:
            return Scores([], [], [], notes)
        if len(cells) > batcher.most_rows:
            return await self._elsewhere(partial(scorer.score_cells, cells))
        scores = await batcher.score(cells)
        scores.notes.extend(notes)
        return scores

    async def _elsewhere(self, task: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers.rows, task)

    def _check_chosen(self, at: Sequence[int] | None, n_rows: int, n_columns: int) -> None:
        if at is not None and not all(0 <= i < n_rows for i in at):
            raise ServeError(
                422,
                "bad_argument",
                f"at must name rows from 0 on, and there are {n_rows}.",
            )
        limits = self.limits
        most = min(limits.explained_rows, max(1, limits.explained_cells // max(1, n_columns)))
        if (n_rows if at is None else len(at)) > most:
            raise ServeError(
                413,
                "too_many_rows",
                f"At most {most} rows of this model's {n_columns} columns are explained at a "
                f"time: {limits.explained_rows} rows, and {limits.explained_cells} values. Send "
                "fewer, or choose some by at=...",
            )

    def _show(self, served: Served, scores: Scores) -> None:
        """Show rows of requests to those who look on."""
        if self.live is None:
            return
        columns = zip(scores.score, scores.p_value, scores.is_anomaly, strict=True)
        for score, p_value, flag in columns:
            self.live.publish(_sample(served, self._n_shown, score, p_value, flag))
            self._n_shown += 1


async def _unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what a work gives; give it up as soon as nobody waits for it."""
    doing, leaving = asyncio.create_task(work), asyncio.create_task(_left(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ServeError(499, "client_left", "Nobody waits for the answer any more.")
        return await doing
    finally:
        doing.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    """Wait until the client of a request, whose body has been read, has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def api_router(desk: RequestHandler, events: EventStore) -> APIRouter:
    """Return the routes for programs.

    Parameters
    ----------
    desk : RequestHandler
        Answers.
    events : EventStore
        What is asked whether events can be written.

    Returns
    -------
    APIRouter
        ``/v1/score``, ``/v1/explain``, ``/v1/model``, ``/v1/models``, ``/healthz``, ``/readyz``
        and ``/metrics``.
    """
    router = APIRouter()
    refused = (400, 403, 404, 413, 415, 422)

    @router.post(
        "/v1/score",
        summary="Score rows",
        tags=["rows"],
        responses=responses(schemas.SCORES, *refused),
        openapi_extra={"requestBody": schemas.BODY},
    )
    async def score(request: Request, model: Name = None) -> Response:
        """Return score, p-value and verdict of every row, in the order of the rows."""
        return await desk.score(request, model)

    @router.post(
        "/v1/explain",
        summary="Explain rows",
        tags=["rows"],
        responses=responses(schemas.EXPLANATIONS, *refused),
        openapi_extra={"requestBody": schemas.BODY},
    )
    async def explain(request: Request, model: Name = None, at: At = None) -> Response:
        """Return what members and features add to the score of every row."""
        return await desk.explain(request, model, at)

    @router.get(
        "/v1/model",
        summary="Describe a model",
        tags=["models"],
        responses=responses(schemas.MODEL, 404, 422),
    )
    async def model(model: Name = None) -> Response:
        """Return the columns, members, threshold and training of a model."""
        return JSONAnswer(_described(desk.registry, desk.registry.get(model)))

    @router.get(
        "/v1/models", summary="List models", tags=["models"], responses=responses(schemas.MODELS)
    )
    async def models() -> Response:
        """Return all models, the one that is used by default first."""
        registry = desk.registry
        return JSONAnswer(
            {"models": [_described(registry, registry.get(n)) for n in registry.names]}
        )

    _add_health(router, desk, events)
    return router


def _add_health(router: APIRouter, desk: RequestHandler, events: EventStore) -> None:
    @router.get(
        "/healthz", summary="Tell that the service lives", responses=responses(schemas.STATUS)
    )
    async def healthz() -> Response:
        """Answer, as long as the service can."""
        return JSONAnswer({"status": "ok"})

    @router.get(
        "/readyz",
        summary="Tell whether requests are taken",
        responses=responses(schemas.READY, 503),
    )
    async def readyz(request: Request) -> Response:
        """Answer 200 once all models are loaded, and 503 when the service is to stop."""
        if not desk.registry.is_ready or getattr(request.app.state, "is_closing", False):
            raise ServeError(503, "not_ready", "The service starts or stops.")
        return JSONAnswer({"status": "ready", "events": events.state})

    @router.get(
        "/metrics",
        summary="Counters for Prometheus",
        responses={
            **responses(schemas.STATUS),
            200: {"description": "Counters.", "content": {"text/plain": {}}},
        },
    )
    async def metrics() -> Response:
        """Return all counters in the text format of Prometheus."""
        return Response(desk.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


def _decoded(body: bytes, kind: str, limits: Limits) -> Rows:
    with noted():
        return decode(body, kind, limits)


def _features(scorer: RowScorer, rows: Rows) -> tuple[Frame, list[str]]:
    with noted() as notes:
        features = scorer.read(rows)
    return features, notes


def _scored_runs(scorer: RunScorer, rows: Rows) -> Scores:
    with noted() as notes:
        scores = scorer.score(rows)
    scores.notes.extend(notes)
    return scores


def _explanations(
    served: Served, rows: Rows, at: Sequence[int] | None, is_given_up: threading.Event
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what lies behind some rows, in the form of the answer; stop once nobody waits."""
    scorer = served.scorer
    results: list[dict[str, Any]] = []
    with noted() as notes:
        if not len(rows) or at == []:
            return results, notes
        if scorer.kind == RUNS:
            return _explained_all(scorer.explain(rows, at)), notes
        features = scorer.read(rows)
        chosen = features if at is None else features.iloc[list(at)]
        n_part = max(1, EXPLAINED_PART // max(1, chosen.shape[1]))
        for begin in range(0, len(chosen), n_part):
            if is_given_up.is_set():
                break
            part = chosen.iloc[begin : begin + n_part]
            results += _explained_all(scorer.explain(part))
    return results, notes


def _explained_all(found: Explanation) -> list[dict[str, Any]]:
    return [_explained(found, i) for i in range(len(found))]


def _explained(found: Explanation, row: int) -> dict[str, Any]:
    trusted = np.argsort(-np.abs(found.weights[row]), kind="stable").tolist()
    return {
        "score": _or_none(found.score[row]),
        "p_value": _or_none(found.p_value[row]),
        "is_anomaly": bool(found.is_anomaly[row]),
        "members": [
            {
                "name": found.member_names[j],
                "weight": _or_none(found.weights[row, j]),
                "score": _or_none(found.normalised_scores[row, j]),
                "contribution": _or_none(found.contributions[row, j]),
            }
            for j in trusted
        ],
        "features": [{**one.as_dict(), "cost": _or_none(one.cost)} for one in found.readings(row)],
        "reference_score": _or_none(found.reference_score[row]),
        "reason": found.reason(row),
        "local_p": _or_none(found.local_p[row]),
        "words": found.describe(row),
    }


def _about(served: Served) -> dict[str, Any]:
    return {"model": served.name, "version": served.version, "offset": served.scorer.offset}


def _described(registry: ModelRegistry, served: Served) -> dict[str, Any]:
    scorer = served.scorer
    return _about(served) | {
        "kind": scorer.kind,
        "false_alarm_rate": float(scorer.detector.threshold_rate_),
        "loaded": served.loaded,
        "newer_file_failed": registry.has_failed(served.name),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "may_be_missing": column.has_gaps,
                "categories": column.categories,
            }
            for column in features_of(scorer)
        ],
        "members": list(scorer.detector.pool_.names_),
        "card": {name: _plain(value) for name, value in served.card.items()},
    }


def _plain(value: Any) -> Any:
    """Return what JSON knows."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return _or_none(value)
    return value if isinstance(value, str | int | None) else str(value)


def _sample(served: Served, seq: int, score: float, p_value: float, flag: bool | None) -> Sample:
    return Sample(
        model=served.name,
        stream=REQUESTS,
        seq=seq,
        time=time.time(),
        score=_or_none(score),
        offset=served.scorer.offset,
        p_value=_or_none(p_value),
        is_anomaly=flag,
    )


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
