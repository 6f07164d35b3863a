"""What a client is told when something is wrong: one form, in words, and no trace."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ocfuse.exceptions import InvalidInputError

#: Characters of a refusal: what it quotes of a request may be long.
LONGEST_MESSAGE = 2000
#: What happened inside is for the log alone.
INTERNAL = "The service failed on this request. Its log says more under the id of the request."


class ServeError(HTTPException):
    """Refuse a request.

    It is one of the framework's own, which lets it through wherever a body is read.

    Parameters
    ----------
    status : int
        Status of HTTP.
    code : str
        What programs may look for.
    message : str
        What is wrong and what to do, for people.
    headers : dict, optional
        Further headers of the answer.
    """

    def __init__(
        self, status: int, code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.status, self.code, self.message = status, code, message

    @property
    def content(self) -> dict[str, Any]:
        """What the client is told."""
        return {"error": {"code": self.code, "message": self.message}}


def unusable(error: InvalidInputError) -> ServeError:
    """Return the refusal of rows that do not fit the model."""
    words = " ".join(str(error).split())
    if len(words) > LONGEST_MESSAGE:
        words = f"{words[:LONGEST_MESSAGE]}..."
    return ServeError(422, "unusable_rows", words)


def internal() -> ServeError:
    """Return what is told of a fault of the service."""
    return ServeError(500, "internal", INTERNAL)


def to_json(content: Any) -> bytes:
    """Return JSON in ASCII: text of a client may hold what UTF-8 cannot carry."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


class JSONAnswer(Response):
    """An answer in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of an answer."""
        return to_json(content)


def answer(error: ServeError) -> JSONAnswer:
    """Return the answer that tells an error."""
    return JSONAnswer(error.content, error.status, error.headers)
