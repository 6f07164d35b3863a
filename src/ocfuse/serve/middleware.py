"""Middleware: limits, origins, and a log, counts and times of every request."""

import asyncio
import hashlib
import hmac
import itertools
import logging
import secrets
import time
from collections import Counter
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import urlsplit

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ocfuse.serve.errors import CloseCode, ServeError, answer, internal
from ocfuse.serve.settings import Settings, is_loopback
from ocfuse.serve.telemetry import Metrics, fault, log_event

#: Where no token is asked for, besides static files: probes have none and get no data, pages
#: hold none, and a socket that looks on shows its token in its first message.
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/", "/docs", "/v1/live"})
#: What is answered however busy the service is, and comes too often to be logged.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
#: Headers of every answer that does not say otherwise.
SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)

Headers: TypeAlias = dict[bytes, bytes]


class Guard:
    """Refuse what may not come in, and what is too much, before an ASGI application."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.limits = app, settings.limits
        self._token = settings.token
        self.n_requests = self.n_streams = 0
        self._arriving: dict[_Body, str] = {}  # by address, in the order they came

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer why not."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._stream(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _Reply(send)
        is_counted = scope["path"] not in PROBES
        try:
            headers: Headers = dict(scope["headers"])
            self._admit(scope, headers)
            if is_counted and self.n_requests >= self.limits.requests:
                self._make_room()
            if b"content-encoding" in headers:
                raise ServeError(415, "compressed", "The body must not be compressed.")
            body = _Body(receive, self.limits.body_bytes, self._arriving)
            body.check_length(headers.get(b"content-length"))
        except ServeError as error:
            await answer(error)(scope, receive, send)
            return
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        if is_counted and has_body:
            self._arriving[body] = (scope.get("client") or ("",))[0]
        self.n_requests += is_counted
        try:
            with anyio.move_on_after(self.limits.seconds) as body.patience:
                await self.app(scope, body, reply)
        finally:
            self._arriving.pop(body, None)
            self.n_requests -= is_counted
        if body.patience.cancelled_caught and not reply.has_begun:
            await answer(self._late(body))(scope, receive, send)

    def _make_room(self) -> None:
        """Let a request that has not come whole give way to one that comes, or refuse that one.

        It is the oldest one of the client that has most of them: who opens many and finishes
        none keeps nobody out.
        """
        if not self._arriving:
            raise ServeError(
                429,
                "too_many_requests",
                f"{self.limits.requests} requests are being answered. Try again soon.",
                {"Retry-After": "1"},
            )
        ((greedy, _),) = Counter(self._arriving.values()).most_common(1)
        body = next(body for body, client in self._arriving.items() if client == greedy)
        body.give_way()

    def _late(self, body: "_Body") -> ServeError:
        if body.gave_way:
            return ServeError(
                408,
                "gave_way",
                f"{self.limits.requests} requests were under way, and this one had not come "
                "whole. Send it again, at once.",
                {"Retry-After": "1"},
            )
        return ServeError(
            408,
            "took_too_long",
            f"The request took longer than {self.limits.seconds:g} s. Send it faster, or "
            "fewer rows at a time.",
        )

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_counted = scope["path"] not in OPEN_PATHS  # strangers there must keep no stream out
        try:
            self._admit(scope, dict(scope["headers"]))
            if is_counted and self.n_streams >= self.limits.streams:
                raise ServeError(
                    429,
                    "too_many_streams",
                    f"{self.limits.streams} streams are open. Close one, or try again later.",
                    {"Retry-After": "10"},
                )
        except ServeError as error:
            await refuse_stream(error, scope, receive, send)
            return
        self.n_streams += is_counted
        try:
            await self.app(scope, receive, send)
        finally:
            self.n_streams -= is_counted

    def _admit(self, scope: Scope, headers: Headers) -> None:
        """Refuse strangers, and pages of other sites that act through a user's browser."""
        host = headers.get(b"host", b"").decode("latin-1")
        if self._token is None and not is_loopback(_name_of(host)):
            raise ServeError(
                421,
                "wrong_host",
                "This service answers on this machine only, as localhost or 127.0.0.1.",
            )
        is_safe = scope["type"] == "http" and scope["method"] in ("GET", "HEAD", "OPTIONS")
        origin = headers.get(b"origin")
        if not is_safe and origin is not None and not is_own(origin.decode("latin-1"), host):
            raise ServeError(403, "wrong_origin", "Pages of other sites may not use this service.")
        path = scope["path"]
        if self._token is not None and path not in OPEN_PATHS and not path.startswith("/static/"):
            _check_token(headers.get(b"authorization", b""), self._token)


class _Body:
    """The body of a request, which is refused as soon as it is too long.

    As long as it has not come whole it is among those that arrive, and may have to give way.
    """

    def __init__(self, receive: Receive, most_bytes: int, arriving: "dict[_Body, str]") -> None:
        self._receive, self._most, self._arriving = receive, most_bytes, arriving
        self._n = 0
        self.gave_way = False
        self.patience = anyio.CancelScope()

    def give_way(self) -> None:
        """Wait no longer for the rest."""
        del self._arriving[self]
        self.gave_way = True
        self.patience.cancel()

    def check_length(self, promised: bytes | None) -> None:
        """Refuse a body that says of itself that it is too long."""
        if promised is not None and promised.isdigit() and int(promised[:20]) > self._most:
            raise self._refusal()

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._n += len(message.get("body", b""))
            if self._n > self._most:
                raise self._refusal()
            if not message.get("more_body", False):
                self._arriving.pop(self, None)
        return message

    def _refusal(self) -> ServeError:
        return ServeError(
            413, "body_too_large", f"A request may have {self._most} bytes. Send rows in parts."
        )


class _Reply:
    """The answer to a request, and whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


async def refuse_stream(error: ServeError, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a stream before it begins: by an answer of HTTP where the server can."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": CloseCode.POLICY, "reason": error.code})
        return
    response = answer(error)
    await send(
        {
            "type": "websocket.http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
    )
    await send({"type": "websocket.http.response.body", "body": response.body})
    await asyncio.sleep(0)  # until the connection is closed uvicorn takes the answer for none


def _check_token(shown: bytes, token: str) -> None:
    """Compare what is shown with the token, in a time that does not depend on it."""
    kind, _, word = shown.partition(b" ")
    digests = (hashlib.sha256(secret).digest() for secret in (word.strip(), token.encode()))
    if not hmac.compare_digest(*digests) or kind.lower() != b"bearer":
        raise ServeError(
            401,
            "no_token",
            "This service needs its token: send the header Authorization: Bearer <token>.",
            {"WWW-Authenticate": "Bearer"},
        )


def _name_of(host: str) -> str:
    """Return the name of a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_own(origin: str, host: str) -> bool:
    """Return whether the page that a request comes from is one of this service.

    Browsers name the origin of every request that may change something, and of every
    WebSocket; programs that are no browsers name none.

    Examples
    --------
    >>> from ocfuse.serve.middleware import is_own
    >>> is_own("http://pump:8000", "pump:8000"), is_own("https://evil.example", "pump:8000")
    (True, False)
    """
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:  # no address at all
        return False


class Observed:
    """Count, time and log the requests to an ASGI application; answer faults."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        about = _About(f"{self._prefix}-{next(self._numbers):x}", send)
        begin = time.perf_counter()
        self.metrics.under_way.inc()
        try:
            await self.app(scope, receive, about.send)
        except Exception as error:
            log_event("fault", level=logging.ERROR, request=about.id, **fault(error))
            if scope["type"] == "websocket":
                with suppress(Exception):  # it may be closed already
                    await about.send({"type": "websocket.close", "code": CloseCode.FAULT})
            elif not about.status:
                await answer(internal())(scope, receive, about.send)
        finally:
            self.metrics.under_way.dec()
            self._record(scope, about, time.perf_counter() - begin)

    def _record(self, scope: Scope, about: "_About", seconds: float) -> None:
        # clients choose other paths and methods: they may be anything
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope.get("method", "WEBSOCKET")
        known = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "WEBSOCKET")
        method = method if method in known else "unknown"
        self.metrics.requests.labels(route, method, str(about.status)).inc()
        if scope["type"] == "http":
            self.metrics.seconds.labels(route).observe(seconds)
        if route not in PROBES:
            log_event(
                "request",
                request=about.id,
                method=method,
                route=route,
                status=about.status,
                seconds=round(seconds, 6),
            )


class _About:
    """What is known of one request: its id, and the status of its answer (0 if none)."""

    def __init__(self, id: str, send: Send) -> None:
        self.id = id
        self.status = 0
        self._send = send

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            own = [(b"x-request-id", self.id.encode()), *SAFE_HEADERS]
            headers = list(message.get("headers", ()))
            present = {name for name, _ in headers}
            message["headers"] = headers + [pair for pair in own if pair[0] not in present]
        elif kind == "websocket.accept":
            self.status = 101
        await self._send(message)
