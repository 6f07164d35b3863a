"""The server: an address, TLS, and an end that loses nothing."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import uvicorn

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.app import Service
from ocfuse.serve.settings import Settings

if sys.platform != "win32":
    import resource

#: Connections that are taken at once.
AT_ONCE = 64
#: Seconds for the headers of the first request of a connection, and for a handshake of TLS.
HEADER_SECONDS = 10.0


class Connections(set[Any]):
    """The connections of a server; who asks nothing gives way to who comes.

    At most `most` are open at a time, as long as some of them are silent.
    """

    #: Connections without a request; the next one closes one of them.
    most_silent: ClassVar[int] = 512

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self._in_order: dict[Any, None] = {}

    def add(self, connection: Any) -> None:
        """Take a connection in; close a silent one if there are too many."""
        super().add(connection)
        self._in_order[connection] = None
        if len(self) <= min(self.most_silent, self.most):
            return  # the usual case, without a closer look
        silent = [one for one in self._in_order if one is not connection and is_silent(one)]
        if silent and (len(self) > self.most or len(silent) >= self.most_silent):
            self._close_one(silent)

    def discard(self, connection: Any) -> None:
        """Let a connection go."""
        super().discard(connection)
        self._in_order.pop(connection, None)

    def _close_one(self, silent: list[Any]) -> None:
        """Close the oldest one of the client that has most; of those that never asked, if any."""
        strangers = [one for one in silent if one.cycle is None] or silent
        clients = Counter(client_of(one) for one in strangers)
        ((greedy, _),) = clients.most_common(1)
        closed = next(one for one in strangers if client_of(one) == greedy)
        self.discard(closed)
        closed.transport.abort()


def is_silent(connection: Any) -> bool:
    """Return whether no request of a connection is under way; a stream always is."""
    if not hasattr(connection, "cycle"):
        return False
    return connection.cycle is None or bool(connection.cycle.response_complete)


def client_of(connection: Any) -> str:
    """Return the address that a connection comes from."""
    return connection.client[0] if connection.client else ""


class Server(uvicorn.Server):
    """Serve until a signal asks for an end; then take nothing new, and finish what has come.

    `announce` is called with the address once requests are taken.
    """

    #: Bytes that may wait for a stream that does not read: scores wait, answers to pings do not.
    most_unread: ClassVar[int] = 8 * 2**20

    def __init__(self, service: Service, announce: Callable[[str], None]) -> None:
        super().__init__(_config(service))
        self.service, self.announce = service, announce
        # some open files are the service's own
        self.server_state.connections = Connections(most_files() - 64 - 2 * AT_ONCE)
        #: The signal that asked for the end.
        self.signal = 0
        self._idle: dict[Any, tuple[Any, float]] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and announce the address."""
        with _short_handshakes():
            await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(2048)  # asyncio would take as many at once as may wait
        if self.started and sockets:
            self.announce(address_of(sockets[0], self.service.settings))

    async def on_tick(self, counter: int) -> bool:
        """Look after connections, ten times a second."""
        if counter % 5 == 0:
            self._close_idle(time.monotonic())
            self._close_deaf()
        return await super().on_tick(counter)

    def _close_idle(self, now: float) -> None:
        """Close connections on which no request is complete for too long, headers included."""
        idle: dict[Any, tuple[Any, float]] = {}
        connections: set[Any] = set(self.server_state.connections)
        for connection in filter(is_silent, connections):
            last, since = self._idle.get(connection, (connection.cycle, now))
            idle[connection] = connection.cycle, since if last is connection.cycle else now
        self._idle = idle
        seconds = self.service.settings.limits.seconds
        for connection, (cycle, since) in idle.items():
            if now - since > (min(seconds, HEADER_SECONDS) if cycle is None else seconds):
                connection.transport.abort()

    def _close_deaf(self) -> None:
        """Close streams that ask and ask, and do not read."""
        for connection in list(self.server_state.connections):
            is_stream = not hasattr(connection, "cycle")
            if is_stream and connection.transport.get_write_buffer_size() > self.most_unread:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the door, let streams and requests finish, and end."""
        for server in self.servers:
            server.close()
        await self.service.drain()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals as a wish for an end; unlike its base, do not raise them again."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may set handlers
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: object) -> None:
        """Take note of a signal; who sends two has no patience left."""
        self.signal = sig
        self.force_exit = self.should_exit
        self.should_exit = True


def run_server(service: Service, announce: Callable[[str], None]) -> int:
    """Serve until a signal comes; return its number.

    `announce` is called with the address, such as ``"http://127.0.0.1:8000"``, once requests
    are taken.
    """
    server = Server(service, announce)
    listening = open_socket(service.settings)
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
    return server.signal


def most_files(enough: int = 4096) -> int:
    """Return how many files the process may open, having asked for enough where that is known."""
    if sys.platform == "win32":
        return enough
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return enough if soft == resource.RLIM_INFINITY else min(enough, int(soft))


@contextlib.contextmanager
def _short_handshakes() -> Iterator[None]:
    """Let servers that are started inside give up handshakes of TLS that take long."""
    loop: Any = asyncio.get_running_loop()
    create = loop.create_server

    async def short(*given: Any, ssl: Any = None, **more: Any) -> Any:
        seconds = {"ssl_handshake_timeout": HEADER_SECONDS} if ssl else {}
        return await create(*given, ssl=ssl, **seconds, **more)

    with contextlib.suppress(AttributeError):  # a loop of another making may take none
        loop.create_server = short
    try:
        yield
    finally:
        with contextlib.suppress(AttributeError):
            del loop.create_server


def open_socket(settings: Settings) -> socket.socket:
    """Return a socket that is bound to the address of a service."""
    try:
        family, _, _, _, where = socket.getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM
        )[0]
        # its protocol is named, or asyncio would not switch off Nagle's delay of small answers
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # give up a peer that takes nothing any more
                milliseconds = 60_000
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            found.bind(where)
        except OSError:
            found.close()
            raise
        return found
    except OSError as error:
        raise InvalidInputError(
            f"Cannot listen on {settings.host}, port {settings.port}: "
            f"{error.strerror or error}. Give another --host or --port; port 0 takes a free one."
        ) from None


def address_of(listening: socket.socket, settings: Settings) -> str:
    """Return the address of a service, to be shown."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    return f"{'https' if settings.is_encrypted else 'http'}://{shown}:{port}"


def _config(service: Service) -> uvicorn.Config:
    settings = service.settings
    config = uvicorn.Config(
        service,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        http="h11",  # unlike others it has a bound for headers
        h11_max_incomplete_event_size=64 * 2**10,
        ws="websockets-sansio",
        ws_max_size=settings.limits.message_bytes,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        ws_per_message_deflate=False,  # few bytes could become many
        backlog=AT_ONCE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise InvalidInputError(
            f"The certificate or its key cannot be used: {error.strerror or error}. Both must be "
            "PEM files, and the key without a password."
        ) from None
    return config
