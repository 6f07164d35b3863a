"""Settings of a service: addresses, secrets, limits, and names of models."""

import ipaddress
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.database import Retention

#: Where the token is looked for, unless a file is named.
TOKEN_VARIABLE = "OCFUSE_TOKEN"
#: Fewest characters of a token: shorter ones can be guessed.
SHORTEST_TOKEN = 16
#: Characters that a token may consist of; what headers and cookies carry without quotes.
TOKEN_CHARACTERS = frozenset(map(chr, range(0x21, 0x7F)))

#: Characters of the name of a model.
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
LONGEST_NAME = 64


@dataclass(frozen=True)
class Limits:
    """The most that one client may ask for; what is beyond is refused.

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
        Requests for explanations at a time; one is worked on, the others wait.
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

    def __post_init__(self) -> None:
        for name in (limit.name for limit in fields(self)):
            if not getattr(self, name) > 0:
                raise InvalidInputError(
                    f"The limit {name} must be above 0. Got {getattr(self, name)!r}."
                )


@dataclass(frozen=True)
class Settings:
    """How a service runs.

    Attributes
    ----------
    models : mapping of str to Path
        Files of the models by name; the first is used where no name is given.
    host, port : str, int
        Where to listen; port 0 takes a free one.
    token : str or None
        What clients must show. Only a service of this machine alone may do without.
    tls_cert, tls_key : Path or None
        Certificate and key; both or none.
    limits : Limits
        What is refused.
    batch_rows : int
        Most rows of different requests that are scored together.
    batch_seconds : float
        How long a row may wait for others while nothing is being scored. The rows that
        come while others are scored wait for these in any case.
    threads : int
        Blocks of rows of requests that are scored at a time; as many requests that are read
        or large, and as many of streams. Explanations and loading have a thread each.
    reload_seconds : float
        How often to look for a changed model file; 0 never looks.
    drain_seconds : float
        How long what is under way may take once the service is to stop.
    events : Path or None
        File of the events of streams; None keeps them in memory.
    keep : Retention
        How many events, and for how long.
    publish_scores : bool
        Whether the dashboard also shows rows that came by ``/v1/score``.
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

    def __post_init__(self) -> None:
        if not self.models:
            raise InvalidInputError("A service needs a model. Name at least one model file.")
        for name in self.models:
            check_name(name)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInputError("TLS needs a certificate and its key: give both, or none.")
        if self.token is not None:
            _check_token(self.token)
        elif not is_loopback(self.host):
            raise InvalidInputError(
                f"The address {self.host} can be reached from other machines, which needs a "
                f"token. Put one of at least {SHORTEST_TOKEN} characters into a file or into "
                f"{TOKEN_VARIABLE}, or listen on 127.0.0.1."
            )

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self.tls_cert is not None


def is_loopback(host: str) -> bool:
    """Tell whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(path: Path | None = None) -> str | None:
    """Return the token of a file, or else of the environment; None if there is none."""
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return path.read_text("ascii").strip()
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"The token in {path} must be letters, digits and signs of ASCII."
        ) from None


def _check_token(token: str) -> None:
    """Refuse a token, without showing it."""
    if len(token) < SHORTEST_TOKEN or not TOKEN_CHARACTERS.issuperset(token):
        raise InvalidInputError(
            f"The token must have at least {SHORTEST_TOKEN} letters, digits and signs of ASCII, "
            "without spaces. Make one with: python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))'"
        )


def named_models(words: Iterable[str]) -> dict[str, Path]:
    """Return files by name, from words such as ``pump=models/pump.ocf`` or ``pump.ocf``.

    Parameters
    ----------
    words : iterable of str
        One per model; without a name a file has that of its own without the ending.

    Returns
    -------
    dict
        Paths by name, in this order.
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


def check_name(name: str) -> None:
    """Refuse the name of a model that cannot stand in an address."""
    if not 0 < len(name) <= LONGEST_NAME or not NAME_CHARACTERS.issuperset(name):
        raise InvalidInputError(
            f"A model may be called by letters, digits, '.', '_' and '-', at most {LONGEST_NAME}. "
            f"Got {name!r}. Name it so: pump=path/to/the/file.ocf."
        )
