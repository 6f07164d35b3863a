"""What a page is told over its WebSocket: samples, changes of events, troubles.

The page says first ``{"type": "hello", "token", "store", "after", "source"}``: the token if the
service has one, the file of events and the number of the last change that it knows, and the
stream that it shows. It is told every change after that, so that none is missed, however often
the connection is lost. Later it may say ``{"type": "watch", "source": [model, stream]}``.
"""

import asyncio
import hmac
import json
import math
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from ocfuse import __version__
from ocfuse.serve.errors import to_json
from ocfuse.serve.events import EventStore
from ocfuse.serve.live import Live, Sample, Source, Viewer

#: Seconds that samples are gathered for, before they are sent together.
PACE = 0.05
#: Seconds after which a page is told that nothing has happened.
BEAT = 2.0
#: Seconds that a page has for its first message, and to take what it is sent.
PATIENCE = 15.0
#: Latest events that a new page is sent, and changes sent at once.
FIRST_EVENTS, MOST_CHANGES = 200, 200
#: Pages at a time, and connections that have not said yet who they are.
MOST_VIEWERS, MOST_STRANGERS = 100, 32
#: Characters of a message of a page.
LONGEST_MESSAGE = 4096
#: Codes that a connection is closed with.
TRY_LATER, REFUSED, UNKNOWN_TOKEN = 1013, 4400, 4401


class Look:
    """One page that looks on.

    Parameters
    ----------
    socket : WebSocket
        Its connection, accepted.
    live : Live
        Samples.
    events : EventStore
        Events.
    token : str or None
        What the page must know.
    """

    def __init__(
        self, socket: WebSocket, live: Live, events: EventStore, token: str | None
    ) -> None:
        self.socket, self.live, self.events, self.token = socket, live, events, token
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._after = 0
        self._wanted: Source | None = None
        self._watched: Source | None = None
        self._sources: list[Source] | None = None
        self._trouble: str | None = None
        self._first: asyncio.Task[dict[str, Any] | None] | None = None

    async def greet(self) -> dict[str, Any] | None:
        """Return the first message of a page that may look on; close other connections."""
        hello = await self._said_first()
        if hello is None or hello.get("type") != "hello":
            await self.close(REFUSED, "Say hello first.")
            return None
        given = hello.get("token")
        known = given.encode("utf-8", "replace") if isinstance(given, str) else b""
        if self.token is not None and not hmac.compare_digest(known, self.token.encode()):
            await self.close(UNKNOWN_TOKEN, "A token is needed.")
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
            stop = self.events.listen(self._notify)
            try:
                await self._serve(viewer, hello)
            finally:
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
            await asyncio.wait([self._first], timeout=PATIENCE)
            has_come = self._first.done() and not self._first.cancelled()
            return self._first.result() if has_come else None
        except WebSocketDisconnect:
            return None
        finally:
            self._first.cancel()

    async def _heard(self) -> dict[str, Any] | None:
        """Return the next message of the page, or None for what is none."""
        message = await self.socket.receive()
        if message["type"] != "websocket.receive":
            raise WebSocketDisconnect
        return _read(message.get("text") or "")

    async def _serve(self, viewer: Viewer, hello: dict[str, Any]) -> None:
        self._wanted = _source(hello.get("source"))
        await self._send_first(hello)
        tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._tell(viewer))]
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
        latest = await run_in_threadpool(self.events.list, None, None, FIRST_EVENTS)
        await self._send(
            type="events",
            events=[event.as_json() for event in latest],
            change=self._after,
            is_first=True,
            has_older=len(latest) == FIRST_EVENTS,
        )

    async def _listen(self) -> None:
        while True:
            message = await self._heard()
            if message is None or message.get("type") != "watch":
                await self.socket.close(REFUSED, "Unknown message.")
                return
            self._wanted = _source(message.get("source"))
            self._wake.set()

    async def _tell(self, viewer: Viewer) -> None:
        while not viewer.is_lost:
            self._wake.clear()
            await self._send_state()
            await self._send_changes()
            await self._send_samples(viewer)
            try:
                await asyncio.wait_for(self._wake.wait(), BEAT)
            except asyncio.TimeoutError:
                await self._send(type="beat")
            await asyncio.sleep(PACE)
        await self.socket.close(TRY_LATER, "Too slow for what happens. Come back.")

    async def _send_state(self) -> None:
        sources = self.live.sources
        if sources != self._sources:
            self._sources = sources
            await self._send(type="sources", sources=sources)
        trouble = self.events.trouble
        if trouble != self._trouble:
            self._trouble = trouble
            await self._send(type="trouble", message=trouble)

    async def _send_changes(self) -> None:
        while self.events.change > self._after:
            changed = await run_in_threadpool(self.events.changes, self._after, MOST_CHANGES)
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
            await self._send(type="history", source=self._watched, samples=_plain(before))
        samples = self.live.drain(viewer)
        if samples:
            await self._send(type="samples", source=self._watched, samples=_plain(samples))

    async def _send(self, **message: Any) -> None:
        await asyncio.wait_for(self.socket.send_text(to_json(message).decode()), PATIENCE)

    def _notify(self) -> None:
        with suppress(RuntimeError):  # the service is stopping
            self._loop.call_soon_threadsafe(self._wake.set)


class Lookers:
    """The pages that look on, and who has not said yet to be one.

    Strangers keep nobody out: who has been silent for longest gives way to who comes.
    """

    def __init__(self) -> None:
        self._known: set[Look] = set()
        self._strangers: dict[Look, None] = {}  # in the order they came

    async def run(self, look: Look) -> None:
        """Serve a page until it leaves."""
        if len(self._strangers) >= MOST_STRANGERS:
            next(iter(self._strangers)).give_way()
        self._strangers[look] = None
        try:
            hello = await look.greet()
        finally:
            del self._strangers[look]
        if hello is None:
            return
        if len(self._known) >= MOST_VIEWERS:
            await look.close(TRY_LATER, "Too many pages look on. Come back later.")
            return
        self._known.add(look)
        try:
            await look.run(hello)
        finally:
            self._known.remove(look)


def _read(text: str) -> dict[str, Any] | None:
    """Return a message, or None for what is none."""
    if len(text) > LONGEST_MESSAGE:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _source(value: Any) -> Source | None:
    is_pair = isinstance(value, list) and len(value) == 2
    return tuple(value) if is_pair and all(isinstance(part, str) for part in value) else None


def _plain(samples: list[Sample]) -> list[dict[str, Any]]:
    return [
        {
            "seq": sample.seq,
            "time": sample.time,
            "score": _short(sample.score),
            "offset": _short(sample.offset),
            "p_value": _short(sample.p_value),
            "local_p": _short(sample.local_p),
            "drift": _short(sample.drift),
            "is_anomaly": sample.is_anomaly,
            "alarm": sample.alarm,
            "contributions": sample.contributions
            and {name: _short(value) for name, value in sample.contributions.items()},
        }
        for sample in samples
        if math.isfinite(sample.time)
    ]


def _short(value: float | None) -> float | None:
    """Return as many digits as a page can show; None for what is no number."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None
