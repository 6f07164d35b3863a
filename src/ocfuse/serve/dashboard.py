"""The live page and what it asks for: events, what is said about them, samples as they come."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, WebSocket
from starlette.responses import Response, StreamingResponse

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.errors import JSONAnswer, ServeError
from ocfuse.serve.event import Event
from ocfuse.serve.eventforms import Acknowledgement, Comment, EventForm, EventList
from ocfuse.serve.events import EventStore
from ocfuse.serve.forms import responses
from ocfuse.serve.live import Live
from ocfuse.serve.looking import Look, Lookers
from ocfuse.serve.pagefiles import HEADERS, PageFiles

#: What is sent with data: they are kept nowhere else.
PRIVATE = {**HEADERS, "Cache-Control": "no-store"}

Number = Annotated[int, Path(ge=1, le=2**53, description="Number of the event.")]
Name = Annotated[str | None, Query(max_length=200)]
State = Annotated[Literal["open", "ended", "interrupted"] | None, Query()]
IsKnown = Annotated[bool | None, Query(description="Acknowledged, or not.")]
Edge = Annotated[int | None, Query(ge=0, le=2**53)]


def dashboard_router(live: Live, events: EventStore, *, token: str | None = None) -> APIRouter:
    """Return the routes of the live page.

    Parameters
    ----------
    live : Live
        Samples as they come.
    events : EventStore
        Events.
    token : str, optional
        What a page must show in the first message of its WebSocket, as a browser can send no
        header with it. All else about who may come in is a matter of the guard at the door.

    Returns
    -------
    APIRouter
        Routes ``/``, ``/static``, ``/v1/live``, ``/v1/events`` and below, ``/v1/events.csv``.
    """
    router = APIRouter()
    _add_page(router)
    _add_socket(router, live, events, token)
    _add_lists(router, events)
    _add_notes(router, events)
    return router


def _add_page(router: APIRouter) -> None:
    files = PageFiles()

    @router.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        return _file(files, "page.html", request)

    @router.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        return _file(files, name, request)


def _file(files: PageFiles, name: str, request: Request) -> Response:
    answer = files.answer(name, request.headers)
    if answer is None:
        raise ServeError(404, "not_found", "There is no such file.")
    return answer


def _add_socket(router: APIRouter, live: Live, events: EventStore, token: str | None) -> None:
    lookers = Lookers()

    @router.websocket("/v1/live")
    async def look_on(socket: WebSocket) -> None:
        await socket.accept()
        await lookers.run(Look(socket, live, events, token))


def _add_lists(router: APIRouter, events: EventStore) -> None:
    @router.get(
        "/v1/events",
        tags=["events"],
        summary="List events",
        response_model=EventList,
        responses=_refusals(422),
    )
    def list_events(
        after: Edge = None,
        before: Edge = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        model: Name = None,
        stream: Name = None,
        state: State = None,
        acknowledged: IsKnown = None,
    ) -> Response:
        """Return events, the latest first; with `after`, those that follow it, in order.

        Read on with `before` as the number of the last event, until none comes.
        """
        found = events.list(
            after,
            before,
            limit,
            model=model,
            stream=stream,
            state=state,
            acknowledged=acknowledged,
        )
        content = {"events": [event.as_json() for event in found], "trouble": events.trouble}
        return JSONAnswer(content, headers=PRIVATE)

    @router.get(
        "/v1/events.csv",
        tags=["events"],
        summary="Download events",
        response_class=Response,
        responses={
            200: {"content": {"text/csv": {}}, "description": "One line per event."},
            **_refusals(422),
        },
    )
    def download(
        model: Name = None,
        stream: Name = None,
        state: State = None,
        acknowledged: IsKnown = None,
    ) -> Response:
        """Return events as a CSV file, the first one first."""
        lines = events.csv(model=model, stream=stream, state=state, acknowledged=acknowledged)
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
            **_refusals(404, 422),
        },
    )
    def thumbnail(number: Number) -> Response:
        """Return the thumbnail of the sample with the lowest score."""
        found = events.thumbnail(number)
        if found is None:
            raise ServeError(404, "unknown_event", f"There is no picture of an event {number}.")
        return Response(found[1], headers=PRIVATE, media_type=found[0])


def _add_notes(router: APIRouter, events: EventStore) -> None:
    documented: dict[str, Any] = {
        "response_model": EventForm,
        "responses": _refusals(400, 403, 404, 413, 415, 422),
    }

    @router.post(
        "/v1/events/{number}/acknowledge",
        tags=["events"],
        summary="Acknowledge an event",
        **documented,
    )
    def acknowledge(number: Number, said: Acknowledgement) -> Response:
        """Record that somebody knows of an event; the first one who does counts."""
        return _told(number, events.acknowledge(number, said.who))

    @router.post(
        "/v1/events/{number}/comment", tags=["events"], summary="Comment on an event", **documented
    )
    def comment(number: Number, said: Comment) -> Response:
        """Record what somebody says about an event; it cannot be changed later."""
        try:
            return _told(number, events.comment(number, said.text, said.who))
        except InvalidInputError as error:
            raise ServeError(422, "bad_argument", str(error)) from None


def _told(number: int, event: Event | None) -> Response:
    if event is None:
        raise ServeError(404, "unknown_event", f"There is no event {number}.")
    return JSONAnswer(event.as_json(), headers=PRIVATE)


def _refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of all answers but the one that is asked for."""
    return {code: words for code, words in responses({}, *codes).items() if code != 200}
