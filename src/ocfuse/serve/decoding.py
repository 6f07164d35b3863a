"""The rows of a request, in whatever form they are sent, within limits."""

import io
import json
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.arrowed import read_arrow
from ocfuse.serve.errors import ServeError, unusable
from ocfuse.serve.settings import Limits
from ocfuse.tables import open_source
from ocfuse.tables.frames import Frame, pandas

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"

#: Rows as JSON has them: an object by name, or values in the order of the model's columns.
JSONRow: TypeAlias = dict[str, Any] | list[Any]
#: What is decoded: rows of JSON, or a data frame.
Rows: TypeAlias = list[JSONRow] | Frame

#: Times the size of a request that its cells may take as columns.
EXPANSION = 4
#: Text of JSON, in which brackets mean nothing; and what then is a bracket.
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
#: How JSON writes halves of characters.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def decode(body: bytes, media_type: str, limits: Limits) -> Rows:
    """Return the rows of a request.

    Parameters
    ----------
    body : bytes
        The request, of no more than `Limits.body_bytes`.
    media_type : str
        Its type, without parameters and in small letters; it alone decides.
    limits : Limits
        What is refused.

    Returns
    -------
    list or pandas.DataFrame
        Rows of JSON, or a data frame.
    """
    if media_type not in READERS:
        raise ServeError(
            415,
            "unknown_content_type",
            f"The Content-Type of rows must be one of {', '.join(READERS)}.",
        )
    return READERS[media_type](body, limits)


def read_json(body: bytes, limits: Limits) -> list[JSONRow]:
    """Return the rows of ``{"rows": [...]}``, or of a list of rows alone."""
    content = parse_json(body, limits)
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise ServeError(
            422,
            "not_rows",
            'Expected {"rows": [...]} with one object per row, such as '
            '{"rows": [{"flow": 1.5, "state": "on"}]}.',
        )
    return check_rows(rows, limits)


def check_rows(rows: list[Any], limits: Limits) -> list[JSONRow]:
    """Return rows of JSON that hold nothing but cells, and no more than is allowed."""
    require_rows(len(rows), limits)
    for i, row in enumerate(rows):
        if type(row) is not dict and type(row) is not list:
            raise ServeError(
                422, "not_rows", f"Row {i} must be an object of names and values, or a list."
            )
        require_columns(len(row), limits)
        cells = row.values() if type(row) is dict else row
        if not _CELLS.issuperset(map(type, cells)):
            raise ServeError(
                422,
                "nested_cells",
                f"Row {i} has a list or an object for a cell. Cells are numbers, text, true, "
                "false or null.",
            )
    return rows


_CELLS = frozenset({float, int, str, bool, type(None)})


def parse_json(body: bytes, limits: Limits) -> Any:
    """Return what JSON says, in UTF-8 and without doubt.

    Refused are numbers that JSON does not know, names that are given twice, deep nesting, and
    halves of characters, which no text can hold.
    """
    if _is_deep(body, limits.nesting):
        raise ServeError(
            422,
            "nested_too_deep",
            f"Lists and objects may be {limits.nesting} deep inside each other. Rows are 3 deep.",
        )
    try:
        text = body.decode("utf-8-sig")
        found = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_to_object)
        if _HALF.search(text):  # both halves of one character are none by now
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except UnicodeEncodeError:
        raise ServeError(
            422,
            "broken_text",
            "The text holds half of a character, such as \\ud83d without \\ude00 behind it. Send "
            "whole characters of Unicode.",
        ) from None
    except (ValueError, RecursionError):
        raise ServeError(
            400,
            "not_json",
            "The content is no JSON in UTF-8. NaN and infinity are not known to JSON: use null for "
            "a gap.",
        ) from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ServeError(
            422, "named_twice", "An object has two values of the same name: which one is meant?"
        )
    return found


def _is_deep(body: bytes, most: int) -> bool:
    """Tell whether lists and objects are deeper inside each other than is allowed."""
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > most:
            return True
    return False


def _read_csv(body: bytes, limits: Limits) -> Frame:
    """Return the rows of a table with a header line."""
    try:
        source = open_source(io.BytesIO(body), chunk_rows=limits.rows + 1)
        require_columns(len(source.columns), limits)
        frames, n_rows = [], 0
        for frame in source.frames():
            n_rows += len(frame)
            require_rows(n_rows, limits)
            frames.append(frame)
    except InvalidInputError as error:
        raise unusable(error) from None
    if not frames:
        raise ServeError(422, "not_rows", "The table has a line of column names, but no rows.")
    return pandas().concat(frames, ignore_index=True)


def _read_arrow(body: bytes, limits: Limits) -> Frame:
    return read_arrow(body, limits.rows, limits.columns, EXPANSION * limits.body_bytes)


def require_rows(n: int, limits: Limits) -> None:
    """Refuse more rows than are allowed."""
    if n > limits.rows:
        raise ServeError(
            413, "too_many_rows", f"At most {limits.rows} rows are allowed. Send them in parts."
        )


def require_columns(n: int, limits: Limits) -> None:
    """Refuse more columns than are allowed."""
    if n > limits.columns:
        raise ServeError(
            422,
            "too_many_columns",
            f"At most {limits.columns} columns are allowed. Send those of the model only.",
        )


READERS: dict[str, Callable[[bytes, Limits], Rows]] = {
    JSON: read_json,
    CSV: _read_csv,
    ARROW: _read_arrow,
}
