"""The live page: its files, its requests and its WebSocket.

Over its WebSocket a page is sent states of streams, samples, changes of events, and troubles. It
says first
``{"type": "hello", "token", "store", "after", "source"}``: the token if the service has one,
the file of events and the number of the last change that it knows, and the stream that it
shows. It is sent every change after that, so that none is missed, however often the connection
is lost. Later it may say ``{"type": "watch", "source": [model, stream]}``.
"""

import asyncio
import hashlib
import hmac
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path, Query, Request, WebSocket
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocketDisconnect

from ocfuse import __version__
from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.database import Choice
from ocfuse.serve.errors import CloseCode, JSONAnswer, ServeError, to_json
from ocfuse.serve.event import StoredEvent
from ocfuse.serve.event_rows import as_csv
from ocfuse.serve.event_store import EventStore
from ocfuse.serve.overview import Overview
from ocfuse.serve.samples import Live, Sample, Source, Viewer
from ocfuse.serve.schemas import (
    Acknowledged,
    Acknowledgement,
    AcknowledgementOfAll,
    Comment,
    EventForm,
    EventList,
    EventRowList,
    StreamList,
    Verdict,
    VerdictCounts,
    refusals,
)

HEADERS = {
    # Nothing from elsewhere, nothing inline, shown in no page of others. Pictures of events are
    # fetched with the token, and shown from memory.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Headers of data: they are kept nowhere else.
PRIVATE = {**HEADERS, "Cache-Control": "no-store"}

Number = Annotated[int, Path(ge=1, le=2**53, description="Number of the event.")]
Name = Annotated[str | None, Query(max_length=200)]
State = Annotated[Literal["open", "ended", "interrupted"] | None, Query()]
Kind = Annotated[str | None, Query(max_length=200, description="Such as anomaly or silent.")]
IsKnown = Annotated[bool | None, Query(description="Acknowledged, or not.")]
IsFound = Annotated[
    Literal["real", "false alarm", "unknown"] | None, Query(description="By the last verdict.")
]
Edge = Annotated[int | None, Query(ge=0, le=2**53)]

#: Everything that a browser may ask for, with its type.
FILES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "docs.html": "text/html",
    "icon.svg": "image/svg+xml",
    **{
        f"{name}.js": "text/javascript"
        for name in (
            *("page", "chart", "connection", "docs", "events", "panels", "samples", "words"),
            "streams",
        )
    },
}


class PageFiles:
    """The files of the page, by name."""

    def __init__(self) -> None:
        folder = files("ocfuse.serve") / "static"
        self._contents = {name: (folder / name).read_bytes() for name in FILES}
        self._tags = {
            name: f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            for name, content in self._contents.items()
        }

    def answer(self, name: str, headers: Mapping[str, str]) -> Response:
        """Return a file, or that it has not changed since the headers of the request."""
        if name not in FILES:
            raise ServeError(404, "not_found", "There is no such file.")
        tag = self._tags[name]
        sent = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
        tags = headers.get("if-none-match", "").split(",")
        known = [part.strip().removeprefix("W/") for part in tags]
        if tag in known or "*" in known:
            return Response(status_code=304, headers=sent)
        return Response(self._contents[name], headers=sent, media_type=FILES[name])


def dashboard_router(
    live: Live,
    events: EventStore,
    overview: Overview,
    *,
    token: str | None = None,
    columns_of: Callable[[str], list[str]] = lambda model: [],
    shadows: Callable[[], list[dict[str, Any]]] = lambda: [],
    command_of: Callable[[str], str | None] = lambda model: None,
    can_learn: Callable[[str], bool] = lambda model: False,
) -> APIRouter:
    """Return the routes of the live page, of the page on the API, and of streams and events.

    `columns_of` returns the columns of a model by its name, `command_of` the command line that
    learns from verdicts on its events, `can_learn` whether the page may run it, and `shadows`
    what `Shadows.as_json` does. A page shows the token in the first message of its WebSocket, as
    a browser can send no header with it. `Guard` checks all other requests.
    """
    router, page_files, viewers = APIRouter(), PageFiles(), Viewers()

    @router.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        """Return the page."""
        return page_files.answer("page.html", request.headers)

    @router.get("/docs", include_in_schema=False)
    def docs(request: Request) -> Response:
        """Return the page that tells what the API knows."""
        return page_files.answer("docs.html", request.headers)

    @router.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        """Return a file of the page."""
        return page_files.answer(name, request.headers)

    @router.websocket("/v1/live")
    async def look_on(socket: WebSocket) -> None:
        """Send a page what happens."""
        await socket.accept()
        await viewers.run(DashboardConnection(socket, live, events, overview, token, shadows))

    @router.get(
        "/v1/streams",
        tags=["streams"],
        summary="List streams",
        response_model=StreamList,
        responses=refusals(),
    )
    def list_streams() -> Response:
        """Return the state of every stream that is there, or that somebody must know of."""
        streams = [_without(told, "words") for told in overview.streams()]
        return JSONAnswer({"streams": streams}, headers=PRIVATE)

    _add_lists(router, events, columns_of)
    _add_verdicts(router, events, command_of, can_learn)
    _add_notes(router, events)
    return router


def _add_lists(
    router: APIRouter, events: EventStore, columns_of: Callable[[str], list[str]]
) -> None:
    @router.get(
        "/v1/events",
        tags=["events"],
        summary="List events",
        response_model=EventList,
        responses=refusals(422),
    )
    def list_events(
        after: Edge = None,
        before: Edge = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        model: Name = None,
        stream: Name = None,
        state: State = None,
        acknowledged: IsKnown = None,
        kind: Kind = None,
        verdict: IsFound = None,
    ) -> Response:
        """Return events, the latest first; with `after`, those that follow it, in order.

        Read on with `before` as the number of the last event, until none comes.
        """
        choice = Choice(model, stream, state, acknowledged, kind, verdict)
        found = events.list(after, before, limit, choice)
        content = {"events": [event.as_json() for event in found], "trouble": events.trouble}
        return JSONAnswer(content, headers=PRIVATE)

    @router.get(
        "/v1/events.csv",
        tags=["events"],
        summary="Download events",
        response_class=Response,
        responses={
            200: {"content": {"text/csv": {}}, "description": "One line per event."},
            **refusals(422),
        },
    )
    def download(
        model: Name = None,
        stream: Name = None,
        state: State = None,
        acknowledged: IsKnown = None,
        kind: Kind = None,
        verdict: IsFound = None,
    ) -> Response:
        """Return events as a CSV file, the first one first."""
        lines = events.csv(Choice(model, stream, state, acknowledged, kind, verdict))
        named = {"Content-Disposition": 'attachment; filename="events.csv"'}
        return StreamingResponse(lines, headers=PRIVATE | named, media_type="text/csv")

    @router.get(
        "/v1/events/{number}/thumbnail",
        tags=["events"],
        summary="Show the picture of an event",
        response_class=Response,
        responses={
            200: {
                "content": {"image/jpeg": {}, "image/png": {}, "image/webp": {}},
                "description": "Picture of its lowest sample.",
            },
            **refusals(404, 422),
        },
    )
    def thumbnail(number: Number) -> Response:
        """Return the thumbnail of the sample with the lowest score."""
        found = events.thumbnail(number)
        if found is None:
            raise ServeError(404, "unknown_event", f"There is no picture of an event {number}.")
        return Response(found[1], headers=PRIVATE, media_type=found[0])

    @router.get(
        "/v1/events/{number}/rows",
        tags=["events"],
        summary="Show the rows around an event",
        response_model=EventRowList,
        responses={
            200: {"content": {"text/csv": {}}, "description": "The rows, in their order."},
            **refusals(404, 422),
        },
    )
    def rows(
        number: Number,
        format: Annotated[Literal["json", "csv"], Query(description="json or csv.")] = "json",
    ) -> Response:
        """Return the rows that are kept around an event, as they came."""
        found, event = events.rows(number), events.get(number)
        if not found or event is None:
            raise ServeError(404, "unknown_event", f"No rows of an event {number} are kept.")
        names = columns_of(event.model)
        if format == "csv":
            named = {"Content-Disposition": f'attachment; filename="event-{number}.csv"'}
            text = as_csv(found, names)
            return Response(text, headers=PRIVATE | named, media_type="text/csv")
        return JSONAnswer({"event": number, "columns": names, "rows": found}, headers=PRIVATE)


def _add_verdicts(
    router: APIRouter,
    events: EventStore,
    command_of: Callable[[str], str | None],
    can_learn: Callable[[str], bool],
) -> None:
    @router.get(
        "/v1/verdicts",
        tags=["events"],
        summary="Count verdicts",
        response_model=VerdictCounts,
        responses=refusals(),
    )
    def count_verdicts() -> Response:
        """Return how many alarms of every model have each verdict, and how to learn from them."""
        found = [
            {
                "model": model,
                "real": counts["real"],
                "false_alarm": counts["false alarm"],
                "unknown": counts["unknown"],
                "usable": counts["usable"],
                "command": command_of(model) if counts["usable"] else None,
                "can_learn": bool(counts["usable"]) and can_learn(model),
            }
            for model, counts in events.verdicts().items()
        ]
        return JSONAnswer({"models": found}, headers=PRIVATE)


def _add_notes(router: APIRouter, events: EventStore) -> None:
    documented: dict[str, Any] = {
        "response_model": EventForm,
        "responses": refusals(400, 403, 404, 413, 415, 422),
    }

    @router.post(
        "/v1/events/{number}/acknowledge",
        tags=["events"],
        summary="Acknowledge an event",
        **documented,
    )
    def acknowledge(number: Number, said: Acknowledgement) -> Response:
        """Record that somebody knows of an event; the first one who does counts."""
        try:
            return _answer(number, events.acknowledge(number, said.who))
        except InvalidInputError as error:
            raise ServeError(422, "bad_argument", str(error)) from None

    @router.post(
        "/v1/events/acknowledge",
        tags=["events"],
        summary="Acknowledge all events of a stream",
        response_model=Acknowledged,
        responses=documented["responses"],
    )
    def acknowledge_all(said: AcknowledgementOfAll) -> Response:
        """Record that somebody knows of all events of a stream up to one of them."""
        try:
            n = events.acknowledge_all((said.model, said.stream), said.up_to, said.who)
        except InvalidInputError as error:
            raise ServeError(422, "bad_argument", str(error)) from None
        return JSONAnswer({"acknowledged": n}, headers=PRIVATE)

    @router.post(
        "/v1/events/{number}/verdict",
        tags=["events"],
        summary="Say what an event was",
        **documented,
    )
    def judge(number: Number, said: Verdict) -> Response:
        """Record whether an event was real or a false alarm; it acknowledges the event.

        The last verdict counts, and those before it are kept.
        """
        try:
            return _answer(number, events.judge(number, said.verdict, said.who, said.comment))
        except InvalidInputError as error:
            raise ServeError(422, "bad_argument", str(error)) from None

    @router.post(
        "/v1/events/{number}/comment", tags=["events"], summary="Comment on an event", **documented
    )
    def comment(number: Number, said: Comment) -> Response:
        """Record what somebody says about an event; it cannot be changed later."""
        try:
            return _answer(number, events.comment(number, said.text, said.who))
        except InvalidInputError as error:
            raise ServeError(422, "bad_argument", str(error)) from None


def _answer(number: int, event: StoredEvent | None) -> Response:
    if event is None:
        raise ServeError(404, "unknown_event", f"There is no event {number}.")
    return JSONAnswer(event.as_json(), headers=PRIVATE)


class DashboardConnection:
    """One page that looks on, over a WebSocket that is accepted."""

    #: Seconds that a page has for its first message, and to take what it is sent.
    patience: ClassVar[float] = 15.0
    #: Latest events that a new page is sent, and changes sent at once.
    most_events: ClassVar[int] = 200
    #: Seconds between looks at streams that have had samples only.
    seconds: ClassVar[float] = 1.0
    #: Characters of a message of a page.
    longest_message: ClassVar[int] = 4096

    def __init__(
        self,
        socket: WebSocket,
        live: Live,
        events: EventStore,
        overview: Overview,
        token: str | None,
        shadows: Callable[[], list[dict[str, Any]]] = lambda: [],
    ) -> None:
        self.socket, self.live, self.events, self.token = socket, live, events, token
        self.overview, self._shadows = overview, shadows
        self._told_shadows: list[dict[str, Any]] = []
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._after = 0
        self._wanted: Source | None = None
        self._watched: Source | None = None
        self._sources: list[Source] | None = None
        self._streams = -1  # change up to which the page knows the streams, and all of them when
        self._whole, self._whole_at = -1, -math.inf
        self._trouble: str | None = None
        self._first: asyncio.Task[dict[str, Any] | None] | None = None

    async def greet(self) -> dict[str, Any] | None:
        """Return the first message of a page that may look on; close other connections."""
        hello = await self._said_first()
        if hello is None or hello.get("type") != "hello":
            await self.close(CloseCode.REFUSED, "Say hello first.")
            return None
        given = hello.get("token")
        known = given.encode("utf-8", "replace") if isinstance(given, str) else b""
        if self.token is not None and not hmac.compare_digest(known, self.token.encode()):
            await self.close(CloseCode.UNKNOWN_TOKEN, "A token is needed.")
            return None
        return hello

    def give_way(self) -> None:
        """Wait no longer for the first message: somebody else has come."""
        if self._first is not None:
            self._first.cancel()

    async def run(self, hello: dict[str, Any]) -> None:
        """Serve a page that has said hello until it leaves."""
        with suppress(WebSocketDisconnect, asyncio.TimeoutError, RuntimeError):
            viewer = self.live.join(self._notify)
            stops = [self.events.listen(self._notify), self.overview.listen(self._notify)]
            try:
                await self._serve(viewer, hello)
            finally:
                for stop in stops:
                    stop()
                self.live.leave(viewer)

    async def close(self, code: int, reason: str) -> None:
        """Part from a page, unless it has left already."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.socket.close(code, reason)

    async def _said_first(self) -> dict[str, Any] | None:
        """Return the first message; None if it is none, or does not come in time."""
        self._first = asyncio.create_task(self._heard())
        try:
            await asyncio.wait([self._first], timeout=self.patience)
            has_come = self._first.done() and not self._first.cancelled()
            return self._first.result() if has_come else None
        except WebSocketDisconnect:
            return None
        finally:
            self._first.cancel()

    async def _heard(self) -> dict[str, Any] | None:
        """Return the next message of the page, or None for what is none."""
        received = await self.socket.receive()
        if received["type"] != "websocket.receive":
            raise WebSocketDisconnect
        text = received.get("text") or ""
        if len(text) > self.longest_message:
            return None
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    async def _serve(self, viewer: Viewer, hello: dict[str, Any]) -> None:
        self._wanted = _source(hello.get("source"))
        await self._send_first(hello)
        tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._report(viewer))]
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for task in done:
            task.result()

    async def _send_first(self, hello: dict[str, Any]) -> None:
        """Send what the page missed, or the latest events to one that knows none."""
        after = hello.get("after")
        await self._send(type="welcome", store=self.events.name, version=__version__)
        if hello.get("store") == self.events.name and type(after) is int and after >= 0:
            self._after = after
            return
        self._after = self.events.change
        latest = await run_in_threadpool(self.events.list, None, None, self.most_events)
        await self._send(
            type="events",
            events=[event.as_json() for event in latest],
            change=self._after,
            is_first=True,
            has_older=len(latest) == self.most_events,
        )

    async def _listen(self) -> None:
        while True:
            message = await self._heard()
            if message is None or message.get("type") != "watch":
                await self.socket.close(CloseCode.REFUSED, "Unknown message.")
                return
            self._wanted = _source(message.get("source"))
            self._wake.set()

    async def _report(self, viewer: Viewer) -> None:
        while not viewer.is_lost:
            self._wake.clear()
            await self._send_state()
            await self._send_changes()
            await self._send_samples(viewer)
            try:
                await asyncio.wait_for(self._wake.wait(), self.seconds)
            except asyncio.TimeoutError:
                await self._send(type="beat")  # nothing has happened
            await asyncio.sleep(0.05)  # samples that come meanwhile are sent together
        await self.socket.close(CloseCode.TRY_LATER, "Too slow for what happens. Come back.")

    async def _send_state(self) -> None:
        is_whole = self._loop.time() - self._whole_at >= self.seconds
        if is_whole:
            self._whole_at = self._loop.time()
        since = self._whole if is_whole else self._streams
        self._streams, sources, streams = self.overview.since(since, is_whole)
        if is_whole:
            self._whole = self._streams
        if streams or sources != self._sources:
            self._sources = sources
            told = [_shown(stream) for stream in streams]
            now = self.overview.now()
            await self._send(type="streams", sources=sources, streams=told, now=now)
        shadows = [_without(shadow, "streams") for shadow in self._shadows()] if is_whole else None
        if shadows is not None and shadows != self._told_shadows:
            self._told_shadows = shadows
            await self._send(type="shadows", shadows=shadows)
        trouble = self.events.trouble
        if trouble != self._trouble:
            self._trouble = trouble
            await self._send(type="trouble", message=trouble)

    async def _send_changes(self) -> None:
        while self.events.change > self._after:
            changed = await run_in_threadpool(self.events.changes, self._after, self.most_events)
            if not changed:
                return
            self._after = changed[-1].change
            await self._send(
                type="events",
                events=[event.as_json() for event in changed],
                change=self._after,
                is_first=False,
            )

    async def _send_samples(self, viewer: Viewer) -> None:
        if self._wanted != self._watched:
            self._watched = self._wanted
            before = self.live.watch(viewer, self._watched)
            channels = self.live.channels(self._watched)
            told = _plain(before)
            await self._send(type="history", source=self._watched, channels=channels, samples=told)
        samples = self.live.drain(viewer)
        if samples:
            await self._send(type="samples", source=self._watched, samples=_plain(samples))

    async def _send(self, **message: Any) -> None:
        await asyncio.wait_for(self.socket.send_text(to_json(message).decode()), self.patience)

    def _notify(self) -> None:
        with suppress(RuntimeError):  # the service is stopping
            self._loop.call_soon_threadsafe(self._wake.set)


class Viewers:
    """The pages that look on, and who has not said yet to be one.

    Strangers keep nobody out: who has been silent for longest gives way to who comes.
    """

    #: Pages at a time, and connections that have not said yet who they are.
    most_viewers: ClassVar[int] = 100
    most_strangers: ClassVar[int] = 32

    def __init__(self) -> None:
        self._known: set[DashboardConnection] = set()
        self._strangers: dict[DashboardConnection, None] = {}  # in the order they came

    async def run(self, page: DashboardConnection) -> None:
        """Serve a page until it leaves."""
        if len(self._strangers) >= self.most_strangers:
            next(iter(self._strangers)).give_way()
        self._strangers[page] = None
        try:
            hello = await page.greet()
        finally:
            del self._strangers[page]
        if hello is None:
            return
        if len(self._known) >= self.most_viewers:
            await page.close(CloseCode.TRY_LATER, "Too many pages look on. Come back later.")
            return
        self._known.add(page)
        try:
            await page.run(hello)
        finally:
            self._known.remove(page)


def _source(value: Any) -> Source | None:
    is_pair = isinstance(value, list) and len(value) == 2
    return tuple(value) if is_pair and all(isinstance(part, str) for part in value) else None


def _shown(stream: dict[str, Any]) -> dict[str, Any]:
    """Return a stream as the page has it: its words with times that the reader's browser writes."""
    course = [_short(low) for low in stream["course"]]
    words: dict[str, Any] = stream["words"]
    return _without(stream, "words") | words | {"course": course}


def _without(content: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != name}


def _plain(samples: list[Sample]) -> list[dict[str, Any]]:
    return [
        {
            "seq": sample.seq,
            "time": sample.time,
            "score": _short(sample.score),
            "threshold": _short(sample.threshold),
            "p_value": _short(sample.p_value),
            "local_p": _short(sample.local_p),
            "drift": _short(sample.drift),
            "is_anomaly": sample.is_anomaly,
            "alarm": sample.alarm,
            "severity": _short(sample.severity),
            "readings": list(sample.readings),
            "values": [_short(value) for value in sample.values],
            "contributions": sample.contributions
            and {name: _short(value) for name, value in sample.contributions.items()},
        }
        for sample in samples
        if math.isfinite(sample.time)
    ]


def _short(value: float | None) -> float | None:
    """Return as many digits as a page can show; None for what is no number."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None
