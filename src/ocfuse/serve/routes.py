"""The routes of the service: scores, explanations, models, health, metrics."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from fastapi import APIRouter, Query, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation
from ocfuse.serve import schemas
from ocfuse.serve.decoding import Rows, decode
from ocfuse.serve.errors import JSONAnswer, ServeError, finite, overloaded, unusable
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.models import ModelRegistry, Served, batcher_of
from ocfuse.serve.overview import Overview
from ocfuse.serve.pictures import JudgedPicture, PictureScorer, read_pictures
from ocfuse.serve.samples import Live, Sample
from ocfuse.serve.schemas import refusals
from ocfuse.serve.scoring import RowScorer, RunScorer, Scores, features_of, is_low
from ocfuse.serve.settings import MODEL_NAME, Limits
from ocfuse.serve.telemetry import Metrics, noted, with_notes
from ocfuse.serve.workers import Workers
from ocfuse.tables.detector import RUNS

T = TypeVar("T")

#: Name of the stream that rows of requests are shown as.
REQUESTS = "requests"

Name = Annotated[
    str | None,
    Query(
        pattern=f"^{MODEL_NAME}$",
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
    """Answer requests; with `live`, show their rows to those who look on."""

    #: Rows times columns that are explained at once; in between it is checked that anybody waits.
    explained_part: ClassVar[int] = 200

    def __init__(
        self,
        registry: ModelRegistry,
        limits: Limits,
        workers: Workers,
        metrics: Metrics,
        live: Live | None = None,
        overview: Overview | None = None,
    ) -> None:
        self.registry, self.limits, self.metrics, self.live = registry, limits, metrics, live
        self._overview = overview
        self._workers = workers
        self._n_shown = 0

    async def score(self, request: Request, name: str | None) -> Response:
        """Score the rows of a request."""
        served = self.registry.get(name)
        if isinstance(served.scorer, PictureScorer):
            return await self._judge_pictures(request, served, served.scorer)
        rows = await self._rows(request)
        try:
            scores = await self._scores(served, rows)
        except InvalidInputError as error:
            raise unusable(error) from None
        rules = scores.rule or [None] * len(scores)
        of_all = zip(scores.score, scores.is_anomaly, rules, strict=True)
        flags = [is_low(*one, served.scorer.threshold) for one in of_all]
        self.metrics.count_rows(served.name, "request", flags, sum(map(bool, rules)))
        if self.live is not None:
            self._show(self.live, served, scores)
        columns = zip(scores.score, scores.p_value, scores.is_anomaly, strict=True)
        results: list[dict[str, Any]] = [
            {"score": finite(score), "p_value": finite(p_value), "is_anomaly": flag}
            for score, p_value, flag in columns
        ]
        if scores.rule is not None:
            results = [one | {"rule": rule} for one, rule in zip(results, scores.rule, strict=True)]
        return JSONAnswer(_about(served) | {"results": results, "notes": scores.notes})

    async def explain(
        self, request: Request, name: str | None, at: Sequence[int] | None
    ) -> Response:
        """Say what lies behind the scores of the rows of a request."""
        served = self.registry.get(name)
        if isinstance(served.scorer, PictureScorer):
            scorer = served.scorer
            return await self._judge_pictures(request, served, scorer, at, with_reasons=True)
        rows = await self._rows(request)
        self._check_chosen(at, len(rows), len(served.scorer.names))
        try:
            task = partial(self._explanations, served, rows, at)
            work = self._workers.explanations.run(task)
            results, notes = await _unless_left(request, work)
        except InvalidInputError as error:
            raise unusable(error) from None
        return JSONAnswer(_about(served) | {"results": results, "notes": notes})

    async def _judge_pictures(
        self,
        request: Request,
        served: Served,
        scorer: PictureScorer,
        at: Sequence[int] | None = None,
        with_reasons: bool = False,
    ) -> Response:
        """Score the pictures of a request, or say what lies behind the scores of some."""
        body, media = await request.body(), _media_type(request)
        files, _ = await self._elsewhere(read_pictures, body, media, self.limits)
        if at is not None:
            self._check_chosen(at, len(files), 1)
            files = [files[i] for i in at]
        kept = JudgedPicture.explained if with_reasons else JudgedPicture.as_json
        results, notes = await self._elsewhere(scorer.judge_all, files, media, self.limits, kept)
        if not with_reasons:
            flags = [result["is_anomaly"] for result in results]
            self.metrics.count_rows(served.name, "request", flags)
        return JSONAnswer(_about(served) | {"results": results, "notes": notes})

    async def _rows(self, request: Request) -> Rows:
        body, kind = await request.body(), _media_type(request)
        if kind == "application/json" and len(body) < 32 * 1024:
            return decode(body, kind, self.limits)
        rows, _ = await self._elsewhere(decode, body, kind, self.limits)  # so that none need wait
        return rows

    async def _scores(self, served: Served, rows: Rows) -> Scores:
        scorer = rows_scorer(served)
        notes: list[str] = []
        if scorer.kind == RUNS:
            scores, notes = await self._elsewhere(scorer.score, rows)
            scores.notes.extend(notes)
            return scores
        batcher = batcher_of(served)
        cells = scorer.plain(rows) if isinstance(rows, list) else None
        if cells is None:
            features, notes = await self._elsewhere(scorer.read, rows)
            if len(features) > batcher.most_rows:
                scores, _ = await self._elsewhere(scorer.score, features)
                scores.notes.extend(notes)
                return scores
            cells = scorer.cells_of(features)
        if not cells:
            return Scores([], [], [], notes)
        if len(cells) > batcher.most_rows:
            scores, _ = await self._elsewhere(scorer.score_cells, cells)
            return scores
        scores = await batcher.score(cells)
        scores.notes.extend(notes)
        return scores

    async def _elsewhere(self, task: Callable[..., T], *given: Any) -> tuple[T, list[str]]:
        """Return the result of a task in another thread, and notes on it, if its turn comes."""
        since, most = time.monotonic(), self.limits.wait_seconds

        def run() -> tuple[T, list[str]]:
            if time.monotonic() - since > most:
                raise overloaded(most)
            return with_notes(task, *given)

        return await asyncio.get_running_loop().run_in_executor(self._workers.rows, run)

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

    def _show(self, live: Live, served: Served, scores: Scores) -> None:
        """Show rows of requests to those who look on, as a stream."""
        columns = zip(scores.score, scores.p_value, scores.is_anomaly, strict=True)
        for score, p_value, flag in columns:
            live.publish(
                Sample(
                    model=served.name,
                    stream=REQUESTS,
                    seq=self._n_shown,
                    time=time.time(),
                    score=finite(score),
                    threshold=served.scorer.threshold,
                    p_value=finite(p_value),
                    is_anomaly=flag,
                )
            )
            self._n_shown += 1
        if self._overview is not None and len(scores):
            source, low = (served.name, REQUESTS), min(scores.score)
            if self._n_shown == len(scores):
                self._overview.connect(source, is_expected=False)
            last = scores.score[-1]
            self._overview.sample(source, time.time(), last, served.scorer.threshold, low)

    def _explanations(
        self, served: Served, rows: Rows, at: Sequence[int] | None, is_given_up: threading.Event
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Return what lies behind some rows, and notes; stop once nobody waits."""
        scorer = rows_scorer(served)
        results: list[dict[str, Any]] = []
        with noted() as notes:
            if not len(rows) or at == []:
                return results, notes
            if scorer.kind == RUNS:
                found = scorer.explain(rows, at)
                return [_explained(found, i) for i in range(len(found))], notes
            features = scorer.read(rows)
            chosen = features if at is None else features.iloc[list(at)]
            n_part = max(1, self.explained_part // max(1, chosen.shape[1]))
            for begin in range(0, len(chosen), n_part):
                if is_given_up.is_set():
                    break
                found = scorer.explain(chosen.iloc[begin : begin + n_part])
                results += [_explained(found, i) for i in range(len(found))]
        return results, notes


def rows_scorer(served: Served) -> RowScorer | RunScorer:
    """Return what scores the rows of a model that is not of pictures."""
    if isinstance(served.scorer, PictureScorer):
        raise TypeError("Pictures are no rows.")
    return served.scorer


def _media_type(request: Request) -> str:
    """Return the type of the content of a request, without parameters, in lower case."""
    header = request.headers.get("content-type", "application/json")
    return header.partition(";")[0].strip().lower()


async def _unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of some work; give it up as soon as nobody waits for it."""
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


def api_router(handler: RequestHandler, events: EventStore) -> APIRouter:
    """Return the routes for programs."""
    router, registry = APIRouter(), handler.registry
    refused = refusals(400, 403, 404, 413, 415, 422, 503)
    body = {"requestBody": schemas.request_body()}

    @router.post(
        "/v1/score",
        summary="Score rows",
        tags=["rows"],
        response_model=schemas.ScoreAnswer,
        responses=refused,
        openapi_extra=body,
    )
    async def score(request: Request, model: Name = None) -> Response:
        """Return score, p-value and verdict of every row, in the order of the rows."""
        return await handler.score(request, model)

    @router.post(
        "/v1/explain",
        summary="Explain rows",
        tags=["rows"],
        response_model=schemas.ExplainAnswer,
        responses=refused,
        openapi_extra=body,
    )
    async def explain(request: Request, model: Name = None, at: At = None) -> Response:
        """Return what members and features add to the score of every row."""
        return await handler.explain(request, model, at)

    @router.get(
        "/v1/model",
        summary="Describe a model",
        tags=["models"],
        response_model=schemas.ModelAnswer,
        responses=refusals(404, 422),
    )
    async def model(model: Name = None) -> Response:
        """Return the columns, members, threshold and training of a model."""
        return JSONAnswer(_described(registry, registry.get(model)))

    @router.get(
        "/v1/models",
        summary="List models",
        tags=["models"],
        response_model=schemas.ModelList,
        responses=refusals(),
    )
    async def models() -> Response:
        """Return all models, the one that is used by default first."""
        return JSONAnswer(
            {"models": [_described(registry, registry.get(n)) for n in registry.names]}
        )

    @router.get(
        "/healthz",
        summary="Tell that the service lives",
        response_model=schemas.Status,
        responses=refusals(),
    )
    async def healthz() -> Response:
        """Answer, as long as the service can."""
        return JSONAnswer({"status": "ok"})

    @router.get(
        "/readyz",
        summary="Tell whether requests are taken",
        response_model=schemas.Readiness,
        responses=refusals(503),
    )
    async def readyz(request: Request) -> Response:
        """Answer 200 once all models are loaded, and 503 when the service is to stop."""
        if not registry.is_ready or getattr(request.app.state, "is_closing", False):
            raise ServeError(503, "not_ready", "The service starts or stops.")
        return JSONAnswer({"status": "ready", "events": events.state})

    @router.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={
            **refusals(),
            200: {"description": "Counters.", "content": {"text/plain": {}}},
        },
    )
    async def metrics() -> Response:
        """Return all counters in the text format of Prometheus."""
        counters = generate_latest(handler.metrics.registry)
        return Response(counters, media_type=CONTENT_TYPE_LATEST)

    return router


def _explained(found: Explanation, row: int) -> dict[str, Any]:
    trusted = np.argsort(-np.abs(found.weights[row]), kind="stable").tolist()
    return {
        "score": finite(found.score[row]),
        "p_value": finite(found.p_value[row]),
        "is_anomaly": bool(found.is_anomaly[row]),
        **({"rule": found.rule(row) or None} if found.rules else {}),
        "members": [
            {
                "name": found.member_names[j],
                "weight": finite(found.weights[row, j]),
                "score": finite(found.normalised_scores[row, j]),
                "contribution": finite(found.contributions[row, j]),
            }
            for j in trusted
        ],
        "features": [{**one.as_dict(), "cost": finite(one.cost)} for one in found.readings(row)],
        "reference_score": finite(found.reference_score[row]),
        "reason": found.reason(row),
        "local_p": finite(found.local_p[row]),
        "words": found.describe(row),
    }


def _about(served: Served) -> dict[str, Any]:
    return {"model": served.name, "version": served.version, "threshold": served.scorer.threshold}


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
        "members": scorer.members,
        "card": {name: _plain(value) for name, value in served.card.items()},
    }


def _plain(value: Any) -> Any:
    """Return what JSON knows."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return finite(value)
    return value if isinstance(value, str | int | None) else str(value)
