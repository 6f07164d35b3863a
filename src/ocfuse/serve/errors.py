"""Refusals: one form of error for clients, in words and without a trace."""

import json
import math
from enum import IntEnum
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ocfuse.exceptions import InvalidInputError


class CloseCode(IntEnum):
    """Reasons to close a WebSocket, as its standard and this service number them."""

    NORMAL = 1000
    POLICY = 1008
    TOO_BIG = 1009
    FAULT = 1011
    RESTART = 1012
    TRY_LATER = 1013
    REFUSED = 4400
    UNKNOWN_TOKEN = 4401


class ServeError(HTTPException):
    """Refuse a request with a status of HTTP, a code for programs and a message for people.

    It is one of the framework's own, which lets it through wherever a body is read.
    """

    def __init__(
        self, status: int, code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.status, self.code, self.message = status, code, message

    @property
    def content(self) -> dict[str, Any]:
        """The body of the answer."""
        return {"error": {"code": self.code, "message": self.message}}


def unusable(error: InvalidInputError, longest: int = 2000) -> ServeError:
    """Return the refusal of rows that do not fit the model; long quotations are cut off."""
    words = " ".join(str(error).split())
    if len(words) > longest:
        words = f"{words[:longest]}..."
    return ServeError(422, "unusable_rows", words)


def overloaded(seconds: float) -> ServeError:
    """Return the refusal of what has waited for its turn for too long."""
    return ServeError(
        503,
        "overloaded",
        f"The service has more to do than it can: this request has waited {seconds:g} s for its "
        "turn. Send it again later, or fewer at a time.",
        {"Retry-After": "1"},
    )


def internal() -> ServeError:
    """Return the answer to a fault of the service; what happened is for the log alone."""
    return ServeError(
        500,
        "internal",
        "The service failed on this request. Its log says more under the id of the request.",
    )


def finite(value: float | None) -> float | None:
    """Return a number as JSON knows it: None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


#: Made once: it takes as long as to write one answer.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def to_json(content: Any) -> bytes:
    """Return JSON in ASCII: text of a client may hold what UTF-8 cannot carry."""
    return _ENCODER.encode(content).encode("ascii")


class JSONAnswer(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of an answer."""
        return to_json(content)


def answer(error: ServeError) -> JSONAnswer:
    """Return an error as the answer to a request."""
    return JSONAnswer(error.content, error.status, error.headers)
