"""Rows from an MQTT broker: a message of one topic holds a row, or lines of rows.

A broker that goes away is waited for, longer each time up to a minute. Messages are asked for with
quality of service 1. Those that are published while nobody listens are lost, unless the address
names a client, `?client=line-9`, for which the broker keeps them. A message that the broker has
retained is not new, and left out.
"""

import os
import queue
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import needed

#: Environment variables that hold the password, or name a file that does.
PASSWORD, PASSWORD_FILE = "OCFUSE_MQTT_PASSWORD", "OCFUSE_MQTT_PASSWORD_FILE"
#: Messages that may wait to be scored; more wait at the broker.
MOST_WAITING = 100_000


@dataclass(frozen=True)
class Topic:
    """A topic of a broker."""

    host: str
    port: int
    topic: str
    user: str | None = None
    client: str = ""  # for whom the broker keeps messages; empty for nobody
    is_encrypted: bool = False

    @classmethod
    def of(cls, address: str) -> "Topic":
        """Return the topic that an address such as mqtt://user@host:1883/line/9 names."""
        expected = "Expected mqtt://[user@]host[:port]/topic, or mqtts:// for TLS."
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError as error:
            raise InvalidInputError(f"{address!r} is no address: {error}. {expected}") from None
        if parts.password is not None:
            raise InvalidInputError(
                "A password on the command line can be read by everybody on this machine. Put it "
                f"into the environment as {PASSWORD}, or into a file that {PASSWORD_FILE} names."
            )
        topic = unquote(parts.path.removeprefix("/"))
        if "+" in topic or "#" in address:
            raise InvalidInputError(
                f"The topic of {address!r} stands for several ones, and each of them is a stream "
                "of its own. Start one ocfuse watch for each."
            )
        options = parse_qs(parts.query)
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or not topic:
            raise InvalidInputError(f"Got {address!r}. {expected}")
        if set(options) - {"client"}:
            raise InvalidInputError(f"Got {address!r}. The only option behind ? is client=NAME.")
        is_encrypted = parts.scheme == "mqtts"
        return cls(
            parts.hostname,
            port or (8883 if is_encrypted else 1883),
            topic,
            None if parts.username is None else unquote(parts.username),
            options.get("client", [""])[0],
            is_encrypted,
        )

    def __str__(self) -> str:
        return f"broker {self.host}:{self.port}"


def lines_of_topic(
    address: str, notify: Callable[[str], None], pause: float = 0.2
) -> Iterator[list[bytes]]:
    """Yield the lines of the messages of a topic without end; an empty list when there are none.

    Parameters
    ----------
    address : str
        As of `Topic.of`.
    notify : callable
        Called with a sentence when the broker is gone, and when it is back.
    pause : float, default=0.2
        Seconds to wait for a message.

    Yields
    ------
    list of bytes
        Lines.
    """
    listener = _Listener(Topic.of(address), notify)
    try:
        yield from listener.connect(pause)
        lines: list[bytes] = []
        while True:
            # what waits belongs together: only if nothing came is there time to wait
            came = islice(listener.waiting(0.0 if lines else pause), 256)
            lines = [line for message in came for line in split_message(message)]
            yield lines
    finally:
        listener.close()


def split_message(message: bytes) -> list[bytes]:
    """Return the rows of a message: its lines, or one if it is an object over several lines."""
    lines = [line for line in message.splitlines() if not line.isspace() and line]
    is_json = message.lstrip().startswith(b"{")
    if is_json and not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        return [b" ".join(lines)]
    return lines


def _password() -> str | None:
    path = os.environ.get(PASSWORD_FILE)
    if path is None:
        return os.environ.get(PASSWORD)
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{PASSWORD_FILE} names {path}, which cannot be read: {error}."
        ) from None


class _Listener:
    """A connection to a broker, whose messages and news come in the order in which they came."""

    def __init__(self, topic: Topic, notify: Callable[[str], None]) -> None:
        mqtt = needed("paho.mqtt.client", "to listen to a broker", "mqtt")
        self.topic, self.notify = topic, notify
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=topic.client,
            clean_session=not topic.client,
        )
        if topic.user is not None:
            self.client.username_pw_set(topic.user, _password())
        if topic.is_encrypted:
            self.client.tls_set_context(ssl.create_default_context())
        self.client.reconnect_delay_set(1, 60)
        self.client.on_connect, self.client.on_message = self._connected, self._heard
        self.client.on_disconnect, self.client.on_subscribe = self._lost, self._subscribed
        #: Messages, sentences and errors.
        self._came: queue.Queue[bytes | str | InvalidInputError] = queue.Queue(MOST_WAITING)
        self._is_lost = self._is_closed = False

    def connect(self, pause: float) -> Iterator[list[bytes]]:
        """Connect; yield empty lists while that does not succeed."""
        delay = 1.0
        while True:
            try:
                self.client.connect(self.topic.host, self.topic.port, keepalive=30)
                break
            except ssl.SSLCertVerificationError as error:
                raise InvalidInputError(
                    f"The certificate of {self.topic} is not trusted: {error.verify_message}. Name "
                    "the file of its authority by the environment variable SSL_CERT_FILE."
                ) from None
            except OSError as error:
                if not self._is_lost:
                    self.notify(f"The {self.topic} cannot be reached ({error}); trying again")
                self._is_lost = True
            until = time.monotonic() + delay
            while time.monotonic() < until:
                yield []
                time.sleep(pause)
            delay = min(2 * delay, 60.0)
        self.client.loop_start()

    def waiting(self, pause: float) -> Iterator[bytes]:
        """Yield the messages that wait; if there are none, those of the next moment."""
        while True:
            try:
                came = self._came.get(timeout=pause)
            except queue.Empty:
                return
            if isinstance(came, InvalidInputError):
                raise came
            if isinstance(came, str):
                self.notify(came)
            else:
                pause = 0.0
                yield came

    def close(self) -> None:
        """Leave the broker."""
        self._is_closed = True
        self.client.disconnect()
        self.client.loop_stop()

    def _put(self, what: bytes | str | InvalidInputError) -> None:
        while not self._is_closed:
            try:
                self._came.put(what, timeout=0.1)
            except queue.Full:
                continue
            return

    def _connected(self, client: Any, data: Any, flags: Any, code: Any, more: Any) -> None:
        if code.is_failure:
            self._refused(str(code))
            return
        client.subscribe(self.topic.topic, qos=1)
        if self._is_lost:
            self._put(f"The {self.topic} is back")
        self._is_lost = False

    def _subscribed(self, client: Any, data: Any, number: Any, codes: Any, more: Any) -> None:
        for code in codes:
            if code.is_failure:
                self._refused(str(code))

    def _refused(self, reason: str) -> None:
        """Give up where it is no use to try again."""
        if any(word in reason for word in ("uthorized", "password", "not valid", "Banned")):
            advice = f"Give the user as in mqtt://user@host, and the password by {PASSWORD}."
            self._put(InvalidInputError(f"The {self.topic} refuses us: {reason}. {advice}"))
        elif not self._is_lost:
            self._put(f"The {self.topic} refuses us for now ({reason}); trying again")

    def _lost(self, client: Any, data: Any, flags: Any, code: Any, more: Any) -> None:
        if not self._is_closed and not self._is_lost:
            self._put(f"The {self.topic} is gone ({code}); waiting for it")
        self._is_lost = True

    def _heard(self, client: Any, data: Any, message: Any) -> None:
        if not message.retain:
            self._put(bytes(message.payload))
