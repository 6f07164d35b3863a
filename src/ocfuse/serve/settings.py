"""Settings of a service: addresses, secrets, limits, and names of models."""

import ipaddress
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

from ocfuse.exceptions import InvalidInputError
from ocfuse.notify import Route
from ocfuse.streaming.slow import SlowSettings

#: Fewest characters of a token: shorter ones can be guessed.
SHORTEST_TOKEN = 16
#: Names of models, as they stand in addresses.
MODEL_NAME = "[A-Za-z0-9._-]{1,64}"


@dataclass(frozen=True)
class Limits:
    """Limits for one client. Requests beyond a limit are refused.

    Attributes
    ----------
    body_bytes : int
        Bytes of a request.
    message_bytes : int
        Bytes of a message of a stream.
    rows : int
        Rows of a request or of a message.
    columns : int
        Columns of a row.
    nesting : int
        Lists and objects of JSON inside each other.
    explained_rows : int
        Rows of a request for explanations, which take longer.
    seconds : float
        Time from the first byte of a request to its answer.
    requests : int
        Requests at a time.
    streams : int
        Open streams at a time.
    explained_cells : int
        Rows times columns of a request for explanations.
    explanations : int
        Requests for explanations at a time; one is computed, the others wait.
    wait_seconds : float
        Longest time that a request waits for a thread or a block before it is refused.
    pixels : int
        Pixels of a picture.
    pictures : int
        Pictures of a request.
    """

    body_bytes: int = 8 * 2**20
    message_bytes: int = 2**20
    rows: int = 10_000
    columns: int = 2_000
    nesting: int = 8
    explained_rows: int = 100
    seconds: float = 30.0
    requests: int = 256
    streams: int = 64
    explained_cells: int = 2_000
    explanations: int = 8
    wait_seconds: float = 5.0
    pixels: int = 25_000_000
    pictures: int = 64

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not value > 0:
                raise InvalidInputError(f"The limit {limit.name} must be above 0. Got {value!r}.")


@dataclass(frozen=True)
class Retention:
    """How many events are kept, and for how long. The oldest are deleted first, open ones never.

    Parameters
    ----------
    days : float, optional
        Largest age of an event; None has no limit.
    events : int, default=100_000
        Events.
    picture_bytes : int, default=268_435_456
        Most bytes of all pictures of events.
    row_bytes : int, default=67_108_864
        Most bytes of the rows around events, compressed. Rows of events with a verdict are deleted
        last. 0 keeps none.
    """

    days: float | None = None
    events: int = 100_000
    picture_bytes: int = 256 * 1024**2
    row_bytes: int = 64 * 1024**2

    def __post_init__(self) -> None:
        for bound in fields(self):
            value = getattr(self, bound.name)
            is_none = bound.name == "row_bytes" and value == 0
            if value is not None and not value > 0 and not is_none:
                raise InvalidInputError(
                    f"What is kept, {bound.name}, must be above 0. Got {value!r}."
                )


@dataclass(frozen=True)
class Settings:
    """Settings of a service.

    Attributes
    ----------
    models : mapping of str to Path
        Files of the models by name. The first is used if a request names none.
    host, port : str, int
        Address and port to listen on; port 0 takes a free one.
    token : str or None
        Token that clients must send. It may be None only if other machines cannot reach the
        service.
    tls_cert, tls_key : Path or None
        TLS certificate and its private key; both or none.
    limits : Limits
        Limits for one client.
    batch_rows : int
        Most rows of different requests that are scored together.
    batch_seconds : float
        How long a row waits for others to be scored with, if nothing is being scored. Rows that
        arrive while others are scored wait for these in any case.
    threads : int
        Number of blocks of rows of requests that are scored at the same time; also of requests
        that are read or large, and of blocks of streams. Explanations and loading have one thread
        each.
    reload_seconds : float
        Seconds between checks whether a model file has changed; 0 never checks.
    drain_seconds : float
        Seconds that open requests and streams have to finish when the service stops.
    events : Path or None
        File of the events of streams; None keeps them in memory.
    keep : Retention
        How many events are kept, and for how long.
    publish_scores : bool
        Whether the dashboard also shows rows of ``/v1/score``.
    routes : sequence of Route
        Addresses to which events are sent.
    silence_seconds : float or None
        Seconds without a sample after which a stream is reported as silent; None takes five times
        its usual step.
    state : Path or None
        Folder that keeps the states of streams of sensors, so that they continue after a restart.
    shadows : mapping of str to Path
        Files of models to try out beside the model with this name; they raise no alarms.
    slow : SlowSettings
        Whether thresholds of streams follow slow changes, and changes of sources are reported.
    training : mapping of str to Path
        Training data of models by name, from which the page can learn a new model with the
        verdicts. Needs `events`.
    """

    models: Mapping[str, Path]
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    limits: Limits = field(default_factory=Limits)
    batch_rows: int = 256
    batch_seconds: float = 0.0
    threads: int = 2
    reload_seconds: float = 1.0
    drain_seconds: float = 10.0
    events: Path | None = None
    keep: Retention = field(default_factory=Retention)
    publish_scores: bool = False
    routes: Sequence[Route] = ()
    silence_seconds: float | None = None
    state: Path | None = None
    shadows: Mapping[str, Path] = field(default_factory=dict)
    slow: SlowSettings = field(default_factory=SlowSettings)
    training: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.models:
            raise InvalidInputError("A service needs a model. Name at least one model file.")
        for name in self.models:
            check_name(name)
        if self.silence_seconds is not None and not 0 < self.silence_seconds < math.inf:
            raise InvalidInputError(
                "A stream is silent after a number of seconds above 0. "
                f"Got silence_seconds={self.silence_seconds!r}."
            )
        self._check_training()
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInputError("TLS needs a certificate and its key: give both, or none.")
        if self.token is not None:
            # what headers and cookies carry without quotes
            if not re.fullmatch(f"[!-~]{{{SHORTEST_TOKEN},}}", self.token):
                raise InvalidInputError(  # without showing it
                    f"The token must have at least {SHORTEST_TOKEN} letters, digits and signs of "
                    "ASCII, without spaces. Make one with: python -c 'import secrets; "
                    "print(secrets.token_urlsafe(32))'"
                )
        elif not is_loopback(self.host):
            raise InvalidInputError(
                f"The address {self.host} can be reached from other machines, which needs a "
                f"token. Put one of at least {SHORTEST_TOKEN} characters into a file or into "
                "OCFUSE_TOKEN, or listen on 127.0.0.1."
            )

    def _check_training(self) -> None:
        """Refuse training data of models that are not served, or that are not there."""
        for name, path in self.training.items():
            if name not in self.models:
                known = ", ".join(self.models)
                raise InvalidInputError(
                    f"Training data are given of a model {name!r}, which is not served. Expected "
                    f"NAME=DATA with a name of: {known}."
                )
            if not path.exists():
                raise InvalidInputError(f"There are no training data {path} of {name!r}.")
        if self.training and self.events is None:
            raise InvalidInputError(
                "Verdicts are learned from in a file of events. Give one, too: --events FILE."
            )

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self.tls_cert is not None


@lru_cache(1000)  # asked for with every request
def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(path: Path | None = None) -> str | None:
    """Return the token of a file, or else of OCFUSE_TOKEN; None if there is none."""
    if path is None:
        return os.environ.get("OCFUSE_TOKEN") or None
    try:
        return path.read_text("ascii").strip()
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"The token in {path} must be letters, digits and signs of ASCII."
        ) from None


def named_models(words: Iterable[str]) -> dict[str, Path]:
    """Return files by name, from words such as ``pump=models/pump.ocf`` or ``pump.ocf``.

    Without a name a model is called as its file, without the ending.
    """
    found: dict[str, Path] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        path = Path(rest if equals else word)
        name = name if equals else path.stem
        check_name(name)
        if name in found:
            raise InvalidInputError(
                f"Two models are called {name!r}. Give one of them another name: other={path}."
            )
        found[name] = path
    return found


def paths_by_model(words: Iterable[str], first: str) -> dict[str, Path]:
    """Return paths by the model that they are for; without a name it is the first."""
    return named_models(word if "=" in word else f"{first}={word}" for word in words)


def check_name(name: str) -> None:
    """Refuse the name of a model that cannot stand in an address."""
    if not re.fullmatch(MODEL_NAME, name):
        raise InvalidInputError(
            "A model may be called by letters, digits, '.', '_' and '-', at most 64. "
            f"Got {name!r}. Name it so: pump=path/to/the/file.ocf."
        )
