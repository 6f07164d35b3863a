"""Every request is counted, timed and logged, and every fault is answered in words."""

import itertools
import secrets
import time
from contextlib import suppress

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ocfuse.serve.errors import answer, internal
from ocfuse.serve.logs import fault, tell
from ocfuse.serve.metrics import Metrics

#: What paths are called that are none of the service's: they may be anything.
UNKNOWN = "unknown"
#: Methods that are told; others may be anything, too.
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
#: The routes whose requests come so often that they are counted, but not logged.
NOT_LOGGED = frozenset({"/healthz", "/readyz", "/metrics"})
#: How WebSocket numbers a fault of the service.
FAULT = 1011
#: What every answer says to browsers.
SAFETY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


class Observed:
    """Count, time and log requests; answer faults.

    Parameters
    ----------
    app : ASGI application
        What is observed.
    metrics : Metrics
        What counts.
    """

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
            tell("fault", level="error", request=about.id, **fault(error))
            if scope["type"] == "websocket":
                with suppress(Exception):  # it may be closed already
                    await about.send({"type": "websocket.close", "code": FAULT})
            elif not about.status:
                await answer(internal())(scope, receive, about.send)
        finally:
            self.metrics.under_way.dec()
            self._note(scope, about, time.perf_counter() - begin)

    def _note(self, scope: Scope, about: "_About", seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN)
        method = scope.get("method", "WEBSOCKET")
        method = method if method in METHODS or method == "WEBSOCKET" else UNKNOWN
        self.metrics.requests.labels(route, method, str(about.status)).inc()
        if scope["type"] == "http":
            self.metrics.seconds.labels(route).observe(seconds)
        if route not in NOT_LOGGED:
            tell(
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
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.id
            for name, value in SAFETY.items():
                headers.setdefault(name, value)
        elif kind == "websocket.accept":
            self.status = 101
        await self._send(message)
