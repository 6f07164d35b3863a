"""The application: models, routes, streams and the live page."""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any

from fastapi import FastAPI, Query, WebSocket
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ocfuse import __version__
from ocfuse.notify import Notifiers, progress_file
from ocfuse.serve.dashboard import dashboard_router
from ocfuse.serve.errors import ServeError, answer, internal
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.learning import Learning, learning_router
from ocfuse.serve.middleware import Guard, Observed, refuse_stream
from ocfuse.serve.models import ModelRegistry
from ocfuse.serve.overview import Overview, StreamGauges
from ocfuse.serve.routes import RequestHandler, api_router
from ocfuse.serve.samples import Live
from ocfuse.serve.settings import MODEL_NAME, Settings
from ocfuse.serve.shadow import Shadows, shadow_router
from ocfuse.serve.stream import Batchers, Stream, Streams, StreamServices
from ocfuse.serve.telemetry import Metrics
from ocfuse.serve.workers import Workers
from ocfuse.streaming.resume import StateFolder

DESCRIPTION = """
Scores of rows by models of ocfuse. Higher is more normal; below the threshold is an anomaly.

WebSocket `/v1/stream?model=...&stream=...` takes rows as messages, `{"row": {...}}` or
`{"rows": [...]}`, and answers each with score, p-value, verdict and the alarms that begin and end.
"""


#: Where rows are scored, as far as log and counters name it.
SCORE_ROUTE = SimpleNamespace(path="/v1/score")


class Service:
    """A service: an ASGI application that can be drained and closed.

    Parameters
    ----------
    settings : Settings
        Models, secrets and limits. The models are loaded at once; a file that cannot be used is an
        error.

    Attributes
    ----------
    app : FastAPI
        The routes, without middleware.
    registry : ModelRegistry
        The models.
    live : Live
        Latest samples, for the live page.
    events : EventStore
        Events of streams.
    overview : Overview
        States of streams.
    shadows : Shadows
        Models that are tried out beside served ones.
    notifiers : Notifiers
        Addresses to which events are sent.
    metrics : Metrics
        Counters.
    workers : Workers
        Threads.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.workers = Workers(settings.threads, settings.limits.explanations)
        self.registry = ModelRegistry(
            settings, self.workers.loading, self.workers.blocks, self.metrics
        )
        self.registry.load()
        self.shadows = Shadows(
            dict(settings.shadows),
            self.registry.names,
            self.workers.shadows,
            settings.limits,
            self.metrics,
        )
        self.live, self.events = Live(), EventStore(settings.events, settings.keep)
        self.overview = Overview(self.events, settings.silence_seconds)
        StreamGauges(self.overview, self.metrics.registry)
        self.metrics.unwritten_events.set_function(lambda: self.events.n_unwritten)
        self.notifiers = Notifiers(
            settings.routes,
            self.events,
            None if settings.events is None else progress_file(settings.events),
            self.metrics.count_notification,
        )
        self.events.listen(self.notifiers.wake)
        self.streams = Streams()
        self.learning = Learning(settings)
        self.app = self._build()
        self._guarded: ASGIApp = Observed(Guard(self._routed, settings), self.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._guarded(scope, receive, send)

    async def _routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that has been let in: for scores without the framework's own steps.

        They take longer than all else that the request of a row needs. Whatever is not the plain
        address of the route takes them.
        """
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        plain = rf"(?:model=({MODEL_NAME}))?".encode()
        found = None
        if is_post and scope["path"] == SCORE_ROUTE.path:
            found = re.fullmatch(plain, scope["query_string"])
        if found is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = SCORE_ROUTE
        name = None if found[1] is None else found[1].decode()
        try:
            answered = await self.handler.score(Request(scope, receive, send), name)
        except ServeError as error:
            answered = answer(error)
        except ClientDisconnect:
            answered = _gone()
        await answered(scope, receive, send)

    async def drain(self) -> None:
        """Accept no more streams, answer the messages of open ones, and close them."""
        self.app.state.is_closing = True
        await self.streams.close(self.settings.drain_seconds)

    def close(self) -> None:
        """Stop scoring, and close the file of events."""
        self.learning.close()
        self.registry.close()
        self.workers.close()
        if not self.events.is_closed:
            self.events.interrupt()
            self.notifiers.close()
        self.events.close()

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._tick())]
        if self.settings.reload_seconds:
            tasks.append(asyncio.create_task(self.registry.watch()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await self.drain()
            self.close()

    async def _tick(self, seconds: float = 0.5) -> None:
        """Look again and again which streams have fallen silent."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            await loop.run_in_executor(self.workers.events, self.overview.tick)

    def _build(self) -> FastAPI:
        app = FastAPI(
            title="ocfuse",
            version=__version__,
            description=DESCRIPTION,
            lifespan=self._lifespan,
            docs_url=None,  # its page would come from elsewhere
            redoc_url=None,
            redirect_slashes=False,  # the address would be made of what the client calls us
        )
        _answer_errors(app)
        settings = self.settings
        self.handler = RequestHandler(
            self.registry,
            settings.limits,
            self.workers,
            self.metrics,
            self.live if settings.publish_scores else None,
            self.overview,
        )
        app.include_router(api_router(self.handler, self.events))
        page = dashboard_router(
            *(self.live, self.events, self.overview),
            token=settings.token,
            columns_of=self.registry.columns,
            shadows=self.shadows.as_json,
            command_of=partial(learn_command, settings),
            can_learn=self.learning.can_learn,
        )
        app.include_router(page)
        app.include_router(learning_router(self.learning))
        app.include_router(shadow_router(self.shadows))
        self._add_stream(app)
        return app

    def _add_stream(self, app: FastAPI) -> None:
        settings = self.settings
        batchers = Batchers(self.workers.streams, settings.batch_rows, settings.batch_seconds)
        around = StreamServices(
            self.live,
            self.events,
            self.overview,
            self.metrics,
            settings.limits,
            self.workers,
            batchers,
            self.shadows.stream,
            None if settings.state is None else StateFolder(settings.state),
            settings.slow,
        )
        names = iter(range(1, 2**63))

        @app.websocket("/v1/stream")
        async def stream(
            socket: WebSocket,
            model: Annotated[str | None, Query()] = None,
            stream: Annotated[str | None, Query(max_length=100)] = None,
            min_rows: Annotated[int | None, Query(ge=1, le=10_000)] = None,
        ) -> None:
            try:
                served = self.registry.get(model)
            except ServeError as error:
                await refuse_stream(error, socket.scope, socket.receive, socket.send)
                return
            name = stream or f"stream-{next(names)}"
            one = Stream(socket, served, name, around, min_rows, is_named=bool(stream))
            await self.streams.run(one)


def create_app(settings: Settings) -> Service:
    """Return the service as an ASGI application, for any server or for tests.

    Parameters
    ----------
    settings : Settings
        Models, secrets and limits.

    Returns
    -------
    Service
        The application.
    """
    return Service(settings)


def learn_command(settings: Settings, model: str) -> str | None:
    """Return the command line that learns from the verdicts on events of a model.

    The training data are not known to the service, and their name is left open. Files are named
    without their folders, which are nobody's business who looks at a page.
    """
    path = settings.models.get(model)
    if path is None or settings.events is None:
        return None
    words = ["ocfuse", "fit", "TRAINING_DATA", "--events", settings.events.name]
    words += ["--model", path.name, "--out", f"{path.stem}-new{path.suffix}"]
    if path.stem != model:
        words += ["--served-as", model]
    return shlex.join(words)


def _gone() -> Response:
    """Return the answer to a client that left before all had come, for log and counters alone."""
    return Response(status_code=499)


def _answer_errors(app: FastAPI) -> None:
    """Let every refusal have the same form."""

    async def refused(request: Request, error: Any) -> Response:
        return answer(error)

    async def unknown(request: Request, error: Any) -> Response:
        codes = {400: "not_json", 404: "not_found", 405: "wrong_method"}
        code = codes.get(error.status_code, "refused")
        headers = dict(error.headers or {})
        return answer(ServeError(error.status_code, code, str(error.detail), headers))

    async def invalid(request: Request, error: Any) -> Response:
        found = error.errors()[0]
        where = ".".join(str(part) for part in found["loc"])
        return answer(ServeError(422, "bad_argument", f"{where}: {found['msg']}."))

    async def gone(request: Request, error: Any) -> Response:
        return _gone()

    async def failed(request: Request, error: Exception) -> Response:
        return answer(internal())

    app.add_exception_handler(ServeError, refused)
    app.add_exception_handler(HTTPException, unknown)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(Exception, failed)
