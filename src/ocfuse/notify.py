"""Tell others of alarms: webhooks, MQTT and mail, retried until they have arrived.

Alarms are read from where they are stored (a `Journal`: a file of events on disk). For every route
a small file beside it says how far they have been delivered. So nothing is lost while a receiver,
the network or this process is down; a message may arrive twice, with the same `id`.

A webhook is a POST of JSON. With a secret it is signed: `Ocfuse-Signature: t=TIME,v1=HEX`, the
HMAC-SHA256 of ``TIME.BODY``; receivers check it with `verify`.
"""

import email.message
import email.utils
import fnmatch
import hashlib
import hmac
import json
import logging
import math
import os
import random
import re
import smtplib
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from ocfuse.exceptions import InvalidInputError, OcfuseError, unknown_name
from ocfuse.system.files import write_atomically
from ocfuse.system.packages import needed

Phase: TypeAlias = Literal["begin", "end", "interrupted", "note"]

PHASES: tuple[Phase, ...] = ("begin", "end", "interrupted", "note")
#: Seconds that a receiver has for an answer.
PATIENCE = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alarm:
    """What is told of an event: that it begins or is over, or a note without a duration.

    Attributes
    ----------
    event : int or str
        Number of the event in its journal.
    phase : {"begin", "end", "interrupted", "note"}
        "interrupted" is an event whose end was not seen.
    kind : str
        "anomaly", or what is wrong with a sensor, such as "missing".
    model, stream : str
        Where it comes from.
    begin, end : str or float or None
        Times of its first and last sample, as the stream has them.
    severity : float or None
        Grade: minus the decimal logarithm of the p-value, extrapolated beyond the lowest.
    score, threshold, p_value : float or None
        Of the lowest score so far.
    text : str
        All of that in one line.
    channels : sequence of mappings
        The channels that speak most for an anomaly, each with its value and what is usual.
    members : mapping
        What the members that speak most for an anomaly add to the score.
    """

    event: int | str
    phase: Phase
    kind: str = "anomaly"
    model: str = ""
    stream: str = ""
    begin: str | float | None = None
    end: str | float | None = None
    severity: float | None = None
    score: float | None = None
    threshold: float | None = None
    p_value: float | None = None
    text: str = ""
    channels: Sequence[Mapping[str, Any]] = ()
    members: Mapping[str, float] = field(default_factory=dict)

    def as_json(self, journal: str = "") -> dict[str, Any]:
        """Return the message; `id` is the same whenever it is sent again."""
        moment = self.end if self.phase in ("end", "interrupted") else self.begin
        content = {
            "schema": "ocfuse.alarm/1",
            "id": f"{journal}-{self.event}-{self.phase}-{moment}",
        }
        return content | {name: _finite(value) for name, value in asdict(self).items()}


class Journal(Protocol):
    """Where alarms are stored, in the order in which they changed."""

    @property
    def name(self) -> str:
        """Identifies it, also after a restart."""

    @property
    def position(self) -> int:
        """Where it ends now."""

    def after(self, position: int) -> Sequence[tuple[int, Alarm]]:
        """Return some of the alarms behind a position, each with its own; none at the end.

        An event that has changed several times may come once, as it is now.
        """


class RefusedError(OcfuseError):
    """The receiver does not want this message, and would not want it later."""


@dataclass(frozen=True)
class Route:
    """Where alarms go, and which.

    Parameters
    ----------
    to : str
        ``https://...`` (or ``http://...``), ``mqtt://user@host:port/topic`` (``mqtts://...``), or
        ``smtp://user@host:port/?to=a@b.c&from=d@e.f`` (``smtps://...``).
    name : str, optional
        How messages and metrics name it; by default the kind and host of `to`.
    secret : str, optional
        Signs webhooks; the password for MQTT and mail.
    min_severity : float, default=0.0
        Less severe alarms are not told. One that becomes so severe later is told then.
    phases : sequence of str, default=("begin", "end", "interrupted", "note")
        What is told.
    kinds, models, streams : sequence of str, default=("*",)
        Patterns such as ``line-*``, of which one must fit.
    subject, text : str, optional
        Templates (Jinja) of a mail, with the fields of the message.
    body : str, optional
        Template of all that a webhook or MQTT receives, instead of the message as JSON.
    """

    to: str
    name: str = ""
    secret: str | None = field(default=None, repr=False)
    min_severity: float = 0.0
    phases: Sequence[str] = PHASES
    kinds: Sequence[str] = ("*",)
    models: Sequence[str] = ("*",)
    streams: Sequence[str] = ("*",)
    subject: str | None = None
    text: str | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        parts = _parts(self.to)
        if not self.name:
            object.__setattr__(self, "name", f"{parts.scheme}://{parts.hostname}")
        for phase in self.phases:
            if phase not in PHASES:
                raise unknown_name("A phase of an alarm", phase, PHASES)
        if not math.isfinite(self.min_severity):
            raise InvalidInputError(
                f"min-severity must be a finite number. Got {self.min_severity!r}."
            )

    def wants(self, alarm: Alarm) -> bool:
        """Return whether an alarm goes this way, whatever its phase."""
        severity = math.inf if alarm.severity is None else alarm.severity
        named = ((alarm.kind, self.kinds), (alarm.model, self.models), (alarm.stream, self.streams))
        return severity >= self.min_severity and all(
            any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
            for name, patterns in named
        )


def routes_of(tables: Iterable[Mapping[str, Any]]) -> list[Route]:
    """Return routes from tables, as a file of routes has them; keys have hyphens.

    A secret stands in a file of its own (`secret-file`) or in the environment (`secret-env`).
    """
    known = {name.replace("_", "-"): name for name in Route.__dataclass_fields__}
    del known["secret"]
    lists = ("phases", "kinds", "models", "streams")
    routes = []
    for table in tables:
        given: dict[str, Any] = {}
        for key, value in table.items():
            if key in ("secret-file", "secret-env"):
                given["secret"] = _read_secret(key, value)
                continue
            if key not in known:
                raise unknown_name("A key of a route", key, [*known, "secret-file", "secret-env"])
            if known[key] in lists:
                value = (value,) if isinstance(value, str) else tuple(value)
            elif not isinstance(value, float | int if key == "min-severity" else str):
                raise InvalidInputError(f"{key} of a route cannot be {value!r}.")
            given[known[key]] = value
        if "to" not in given:
            raise InvalidInputError(
                'A route needs to = "https://...", "mqtt://..." or "smtp://...".'
            )
        routes.append(Route(**given))
    return named_apart(routes)


def named_apart(routes: Iterable[Route]) -> list[Route]:
    """Return routes with names that differ: what has been delivered is kept by name."""
    found: dict[str, Route] = {}
    for route in routes:
        name, number = route.name, 2
        while name in found:
            name, number = f"{route.name} {number}", number + 1
        found[name] = replace(route, name=name)
    return list(found.values())


# Receivers


class Receiver(Protocol):
    """Takes one message, or raises; `RefusedError` where trying again would not help."""

    def deliver(self, message: Mapping[str, Any]) -> None:
        """Hand a message over; it has arrived when this returns."""


class Webhook:
    """POST to an address; redirections are not followed, as they would lose the signature."""

    #: Answers that may be others later: too slow, too early, too many.
    later: ClassVar[tuple[int, ...]] = (408, 425, 429)

    def __init__(self, route: Route) -> None:
        self._route = route
        self._body = _template(route.body)
        self._open = urllib.request.build_opener(_NoRedirection()).open

    def deliver(self, message: Mapping[str, Any]) -> None:
        """POST a message."""
        body = _payload(self._body, message)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "ocfuse",
            "Idempotency-Key": message["id"],
        }
        if self._route.secret:
            headers["Ocfuse-Signature"] = sign(body, self._route.secret)
        request = urllib.request.Request(self._route.to, body, headers, method="POST")
        try:
            with self._open(request, timeout=PATIENCE) as answer:
                answer.read(1)
        except urllib.error.HTTPError as error:
            with error:
                said = f"it answered {error.code} {error.reason}"
            if 300 <= error.code < 500 and error.code not in self.later:
                raise RefusedError(said) from None
            raise OSError(said) from None
        except urllib.error.URLError as error:
            raise OSError(str(error.reason)) from None


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> None:
        """Follow nothing."""


def sign(body: bytes, secret: str, now: float | None = None) -> str:
    """Return the signature of a body: the time, and the HMAC-SHA256 of both.

    Examples
    --------
    >>> from ocfuse.notify import sign, verify
    >>> signature = sign(b"{}", "a secret")
    >>> verify(b"{}", signature, "a secret"), verify(b"[]", signature, "a secret")
    (True, False)
    """
    moment = int(time.time() if now is None else now)
    code = hmac.new(secret.encode(), b"%d." % moment + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={code}"


def verify(body: bytes, signature: str, secret: str, tolerance: float = 300.0) -> bool:
    """Return whether a body was signed with the secret, within some seconds of now."""
    found = re.fullmatch(r"t=(\d{1,12}),v1=([0-9a-f]{64})", signature)
    if found is None or abs(time.time() - int(found[1])) > tolerance:
        return False
    return hmac.compare_digest(sign(body, secret, int(found[1])), signature)


class MqttTopic:
    """Publish to a topic, and wait until the broker has confirmed (quality of service 1)."""

    def __init__(self, route: Route) -> None:
        self._mqtt = needed("paho.mqtt.client", "to publish by MQTT", "mqtt")
        parts = _parts(route.to)
        self._topic = urllib.parse.unquote(parts.path.lstrip("/"))
        if not self._topic or "+" in self._topic or "#" in route.to:
            raise InvalidInputError(
                "An address for MQTT ends with a topic without + and #, such as "
                f"mqtt://broker/plant/alarms. Got {_shown(route.to)}."
            )
        self._is_safe = parts.scheme == "mqtts"
        self._host, self._port = parts.hostname, parts.port or (8883 if self._is_safe else 1883)
        self._user, self._password = parts.username, route.secret
        self._body = _template(route.body)

    def deliver(self, message: Mapping[str, Any]) -> None:
        """Publish a message."""
        client = self._mqtt.Client(self._mqtt.CallbackAPIVersion.VERSION2)
        client.connect_timeout = PATIENCE
        if self._user is not None:
            client.username_pw_set(self._user, self._password)
        if self._is_safe:
            client.tls_set()
        refused: list[str] = []

        def answered(client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
            """Keep why the broker does not want us."""
            if reason.is_failure:
                refused.append(str(reason))
                client.disconnect()

        client.on_connect = answered
        client.connect(self._host, self._port)
        client.loop_start()
        try:
            told = client.publish(self._topic, _payload(self._body, message), qos=1)
            end = time.monotonic() + PATIENCE
            while not told.is_published() and not refused and time.monotonic() < end:
                told.wait_for_publish(0.1)
            if not told.is_published():
                why = refused[0] if refused else f"no confirmation in {PATIENCE:g} s"
                raise OSError(f"the broker: {why}")
        finally:
            client.disconnect()
            client.loop_stop()


class Mail:
    """Send a mail by SMTP; ``smtps`` speaks TLS from the start, ``smtp`` where it is offered."""

    def __init__(self, route: Route) -> None:
        parts = _parts(route.to)
        asked = urllib.parse.parse_qs(parts.query)
        self._to, sender = asked.pop("to", []), asked.pop("from", [])
        if not self._to or asked:
            raise InvalidInputError(
                "An address for mail is smtp://user@host:port/?to=a@b.c&from=d@e.f. "
                f"Got {_shown(route.to)}."
            )
        self._from = sender[0] if sender else f"ocfuse@{parts.hostname}"
        self._is_safe = parts.scheme == "smtps"
        self._host, self._port = parts.hostname, parts.port or (465 if self._is_safe else 25)
        self._user, self._password = parts.username, route.secret
        self._subject = _template(route.subject or SUBJECT)
        self._text = _template(route.text or MAIL)

    def deliver(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        mail = email.message.EmailMessage()
        mail["From"], mail["To"] = self._from, ", ".join(self._to)
        mail["Subject"] = " ".join(self._subject.render(message).split())[:200]
        mail["Date"] = email.utils.localtime()
        digest = hashlib.sha256(str(message["id"]).encode()).hexdigest()[:32]
        mail["Message-ID"] = f"<{digest}@ocfuse>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(self._text.render(message))
        try:
            with self._connected() as server:
                if self._user is not None:
                    server.login(urllib.parse.unquote(self._user), self._password or "")
                server.send_message(mail)
        except smtplib.SMTPResponseException as error:
            said = f"it answered {error.smtp_code} {error.smtp_error!r}"
            is_final = error.smtp_code >= 500 and error.smtp_code != 535  # a password can be mended
            raise RefusedError(said) if is_final else OSError(said) from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            said = f"it refused every recipient ({', '.join(map(str, codes))})"
            raise RefusedError(said) if min(codes) >= 500 else OSError(said) from None

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self._is_safe:
            return smtplib.SMTP_SSL(self._host or "", self._port, timeout=PATIENCE, context=context)
        server = smtplib.SMTP(self._host or "", self._port, timeout=PATIENCE)
        try:
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=context)
            elif self._user is not None:
                raise OSError("it offers no TLS, and a password would be read on its way: smtps://")
        except BaseException:
            server.close()
            raise
        return server


#: What a mail says where no template does.
SUBJECT = """{{ stream or model }}
{%- if phase == "end" %}, over{% elif phase == "interrupted" %}, source gone during an alarm
{%- endif %}: {{ text }}"""
MAIL = """{{ text }}

model      {{ model }}
stream     {{ stream }}
kind       {{ kind }}
began      {{ begin }}{% if end is not none %}
last       {{ end }}{% endif %}{% if severity is not none %}
severity   {{ '%.1f' % severity }}{% endif %}{% if score is not none %}
score      {{ '%.4g' % score }}, threshold {{ '%.4g' % threshold }}{% endif %}
{% for channel in channels %}
{{ channel.words }}{% endfor %}
"""

RECEIVERS: Mapping[str, Callable[[Route], Receiver]] = {
    "http": Webhook,
    "https": Webhook,
    "mqtt": MqttTopic,
    "mqtts": MqttTopic,
    "smtp": Mail,
    "smtps": Mail,
}


# Delivery


class LineJournal:
    """The alarms of a file of events, a line of JSON each, as `ocfuse watch --events` appends them.

    Parameters
    ----------
    path : Path
        The file.
    read : callable
        Returns the alarm of a record, or None if it is none.
    """

    def __init__(self, path: Path, read: Callable[[Mapping[str, Any]], Alarm | None]) -> None:
        self._path, self._read = path, read

    @property
    def name(self) -> str:
        """Name of the file, and a number of its own."""
        return f"{self._path.name}-{self._path.stat().st_ino:x}"

    @property
    def position(self) -> int:
        """Bytes in the file."""
        return self._path.stat().st_size

    def after(self, position: int) -> Sequence[tuple[int, Alarm]]:
        """Return the alarms behind some bytes."""
        with self._path.open("rb") as file:
            file.seek(position)
            lines = file.read().split(b"\n")[:-1]  # what follows the last end is not whole yet
        found = []
        for line in lines:
            position += len(line) + 1
            with suppress(ValueError):
                alarm = self._read(json.loads(line))
                if alarm is not None:
                    found.append((position, alarm))
        return found


@dataclass
class Progress:
    """How far a route has come; stored beside the journal.

    Attributes
    ----------
    journal : str
        Name of the journal.
    position : int
        What is behind it has not been delivered yet.
    told : list of int or str
        Events whose begin was told, and whose end was not yet.
    over : list of int or str
        The latest events whose end was told: they may change once more, as somebody comments.
    """

    journal: str
    position: int
    told: list[int | str] = field(default_factory=list)
    over: list[int | str] = field(default_factory=list)


class Notifier:
    """Deliver what a journal has to one route, in order, from a thread of its own.

    Parameters
    ----------
    route : Route
        Where to.
    journal : Journal
        What to deliver.
    path : Path or None
        File that says how far the routes have come; made if there is none. None begins at the
        present end of the journal.
    on_result : callable, optional
        Called with the route's name and "delivered", "failed" (and tried again) or "refused".

    Attributes
    ----------
    trouble : str or None
        Why the last attempt failed; None if it did not.
    n_delivered, n_refused : int
        Messages that arrived, and that the receiver did not want.
    """

    #: Seconds before the second attempt; they double up to the longest.
    first_wait: ClassVar[float] = 1.0
    longest_wait: ClassVar[float] = 300.0
    #: Attempts after which a message that is refused is left out, so that others get through.
    most_refusals: ClassVar[int] = 5
    #: Events that are over and remembered.
    most_over: ClassVar[int] = 1000

    def __init__(
        self,
        route: Route,
        journal: Journal,
        path: Path | None,
        on_result: Callable[[str, str], None] | None = None,
    ) -> None:
        self.route, self.journal, self._path = route, journal, path
        self._receiver = RECEIVERS[_parts(route.to).scheme](route)
        self._on_result = on_result or (lambda name, result: None)
        self.trouble: str | None = None
        self.n_delivered = self.n_refused = 0
        self._progress = self._read_progress()
        self._wake, self._closing = threading.Event(), threading.Event()
        name = f"notify {route.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> "Notifier":
        """Begin to deliver."""
        self._thread.start()
        return self

    def wake(self) -> None:
        """Look at the journal: it has something new."""
        self._wake.set()

    def stop(self) -> None:
        """Try once more to deliver what is there, and end; the rest is told next time."""
        self._closing.set()
        self._wake.set()

    def join(self, seconds: float) -> None:
        """Wait for the end, some seconds at most."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        wait, n_refusals = self.first_wait, 0
        while True:
            self._wake.clear()
            try:
                self.deliver_all()
                wait, n_refusals, self.trouble = self.first_wait, 0, None
                if self._closing.is_set():
                    return
                self._wake.wait()
                continue
            except RefusedError as error:
                n_refusals += 1
                self._complain(error, "refused" if n_refusals >= self.most_refusals else "failed")
                if n_refusals >= self.most_refusals:
                    self._leave_out()
                    wait, n_refusals = self.first_wait, 0
                    continue
            except Exception as error:  # whatever it is, the next attempt may do
                self._complain(error, "failed")
            if self._closing.is_set():
                return
            # a new alarm does not shorten it: the receiver is down
            self._closing.wait(wait * random.uniform(0.8, 1.2))
            wait = min(2 * wait, self.longest_wait)

    def deliver_all(self) -> None:
        """Deliver all that is there, or raise at the first that does not arrive."""
        while found := self.journal.after(self._progress.position):
            for position, alarm in found:
                messages = self.due(alarm)
                for message in messages:
                    if message.phase in self.route.phases:
                        self._receiver.deliver(message.as_json(self.journal.name))
                        self.n_delivered += 1
                        self._on_result(self.route.name, "delivered")
                    if message is messages[-1]:
                        self._progress.position = position
                    self._keep(message)
                self._progress.position = position

    def due(self, alarm: Alarm) -> list[Alarm]:
        """Return what is to be told of an alarm, given what has been told of its event."""
        is_told = alarm.event in self._progress.told
        if is_told and alarm.phase == "begin":
            return []
        is_past = alarm.phase in ("end", "interrupted") and alarm.event in self._progress.over
        if not is_told and (is_past or not self.route.wants(alarm)):
            return []
        if is_told or alarm.phase in ("begin", "note"):
            return [alarm]
        return [replace(alarm, phase="begin"), alarm]  # both since this route looked last

    def _keep(self, message: Alarm) -> None:
        """Store that a message has arrived, before the next is sent."""
        progress = self._progress
        if message.phase == "begin":
            progress.told.append(message.event)
            progress.over = [event for event in progress.over if event != message.event]
        elif message.phase != "note":
            progress.told.remove(message.event)
            progress.over = [*progress.over, message.event][-self.most_over :]
        self.store()

    def _leave_out(self) -> None:
        """Go on behind the message that is refused."""
        self.n_refused += 1
        found = self.journal.after(self._progress.position)
        if found:
            self._progress.position = found[0][0]
            self.store()

    def _complain(self, error: Exception, result: str) -> None:
        self.trouble = str(error) or type(error).__name__
        about = {"route": self.route.name, "error": self.trouble}
        more = "is left out" if result == "refused" else "will be tried again"
        _log.warning("notification_%s", result, extra={"about": about | {"message": more}})
        self._on_result(self.route.name, result)

    # What is stored

    def _read_progress(self) -> Progress:
        stored = _read_json(self._path).get(self.route.name)
        journal = self.journal.name
        with suppress(TypeError):
            if stored and stored["journal"] == journal:
                return Progress(**stored)
        # a new route, or a new file of events: what was before is no news
        return Progress(journal, self.journal.position)

    def store(self) -> None:
        """Store how far the route has come."""
        if self._path is None:
            return
        with _files:
            stored = _read_json(self._path) | {self.route.name: asdict(self._progress)}
            write_atomically(self._path, json.dumps(stored, indent=1).encode())


#: One file says how far all routes have come: one thread at a time changes it.
_files = threading.Lock()


class Notifiers:
    """All routes of one journal.

    Parameters
    ----------
    routes : iterable of Route
        Where alarms go.
    journal : Journal
        Where they are stored.
    path : Path or None
        As in `Notifier`.
    on_result : callable, optional
        As in `Notifier`.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        journal: Journal,
        path: Path | None,
        on_result: Callable[[str, str], None] | None = None,
    ) -> None:
        self.all = [Notifier(route, journal, path, on_result) for route in named_apart(routes)]
        for notifier in self.all:
            notifier.store()  # a later start begins where this one did
            notifier.start()

    @property
    def troubles(self) -> list[str]:
        """Why routes could not deliver at their last attempt."""
        found = ((notifier.route.name, notifier.trouble) for notifier in self.all)
        return [f"{name}: {trouble}" for name, trouble in found if trouble is not None]

    def wake(self) -> None:
        """Look at the journal: it has something new."""
        for notifier in self.all:
            notifier.wake()

    def close(self, seconds: float = 5.0) -> None:
        """Deliver what is there for some seconds at most, and end."""
        for notifier in self.all:
            notifier.stop()
        for notifier in self.all:
            notifier.join(seconds)


# Small things


def progress_file(events: Path) -> Path:
    """Return the file, beside one of events, that says how far these have been delivered."""
    return events.with_name(f"{events.name}.notified.json")


def _parts(to: str) -> urllib.parse.SplitResult:
    """Return the parts of an address, checked."""
    try:
        parts = urllib.parse.urlsplit(to)
        is_good = parts.scheme in RECEIVERS and parts.hostname and (parts.port or 1)
    except ValueError:
        is_good = False
    if not is_good:
        raise InvalidInputError(
            "Alarms can be sent to https://..., mqtt://host/topic or smtp://host/?to=a@b.c. "
            f"Got {_shown(to)!r}."
        )
    if parts.password is not None:
        raise InvalidInputError(
            f"The address {_shown(to)} has a password in it, which others could read. Leave it "
            "out, and put it into OCFUSE_NOTIFY_SECRET, or name a file by secret-file in a file "
            "of routes."
        )
    return parts


def _shown(to: str) -> str:
    """Return an address for messages: what follows the host may be a secret, too."""
    found = re.match(r"\w+://[^/?#]*", to)
    return f"{re.sub('//.*@', '//', found[0])}/..." if found else to[:20]


def _read_secret(key: str, place: Any) -> str:
    try:
        if key == "secret-env":
            return os.environ[place]
        return Path(place).read_text("utf-8").strip()
    except KeyError:
        raise InvalidInputError(f"{key}: there is no {place} in the environment. Set it.") from None
    except (OSError, TypeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{key}: {place} cannot be read: {error}.") from None


def _template(text: str | None) -> Any:
    """Return a template; one that is wrong is refused now, not at the first alarm."""
    if text is None:
        return None
    jinja2 = needed("jinja2", "for templates of messages")
    sandbox = needed("jinja2.sandbox", "for templates of messages")
    environment = sandbox.SandboxedEnvironment(undefined=jinja2.StrictUndefined)
    example = Alarm(1, "begin", begin=0.0, end=1.0, severity=3.0, score=-1.0, threshold=0.0)
    try:
        template = environment.from_string(text)
        template.render(example.as_json())
    except jinja2.TemplateError as error:
        names = ", ".join(example.as_json())
        raise InvalidInputError(
            f"The template {text!r} cannot be used: {error}. A message has {names}."
        ) from None
    return template


def _payload(template: Any, message: Mapping[str, Any]) -> bytes:
    text = json.dumps(message) if template is None else template.render(message)
    return str(text).encode()


def _finite(value: Any) -> Any:
    """Return a value as JSON can have it: NaN and infinities are null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def _read_json(path: Path | None) -> dict[str, Any]:
    """Return what is stored; a file that is none of ours counts as empty."""
    if path is None:
        return {}
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
