"""Rows of a request as JSON, CSV or Arrow, within limits.

Rows of Arrow's stream format come from somebody who is not trusted. What arrives is a few
megabytes, and must not become much more: compressed buffers, nested types and views are
refused, and so are texts that a dictionary repeats too often. Offsets are checked before
anything follows them, as in files.
"""

import io
import json
import re
import struct
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from ocfuse.exceptions import InvalidInputError
from ocfuse.serve.errors import ServeError, unusable
from ocfuse.serve.settings import Limits
from ocfuse.system.packages import needed
from ocfuse.tables import open_source
from ocfuse.tables.dataframes import Frame, pandas, require_distinct
from ocfuse.tables.source import DAMAGE, checked, to_frame

#: Rows as JSON has them: an object by name, or values in the order of the model's columns.
JSONRow: TypeAlias = dict[str, Any] | list[Any]
#: What is decoded: rows of JSON, or a data frame.
Rows: TypeAlias = list[JSONRow] | Frame


def decode(body: bytes, media_type: str, limits: Limits) -> Rows:
    """Return the rows of a request of no more than `Limits.body_bytes`.

    Its media type, without parameters and in lower case, alone decides how it is read.
    """
    readers: dict[str, Callable[[bytes, Limits], Rows]] = {
        "application/json": _read_json,
        "text/csv": _read_csv,
        "application/vnd.apache.arrow.stream": _read_arrow,
    }
    if media_type not in readers:
        raise ServeError(
            415,
            "unknown_content_type",
            f"The Content-Type of rows must be one of {', '.join(readers)}.",
        )
    return readers[media_type](body, limits)


def _read_json(body: bytes, limits: Limits) -> list[JSONRow]:
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
    cell_types = {float, int, str, bool, type(None)}
    for i, row in enumerate(rows):
        if type(row) is not dict and type(row) is not list:
            raise ServeError(
                422, "not_rows", f"Row {i} must be an object of names and values, or a list."
            )
        require_columns(len(row), limits)
        cells = row.values() if type(row) is dict else row
        if not cell_types.issuperset(map(type, cells)):
            raise ServeError(
                422,
                "nested_cells",
                f"Row {i} has a list or an object for a cell. Cells are numbers, text, true, "
                "false or null.",
            )
    return rows


def parse_json(body: bytes, limits: Limits) -> Any:
    """Return the content of JSON in UTF-8.

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
        found = _DECODER.decode(text)
        # half of a character: two have become one by now
        if "\\u" in text and re.search(r"\\u[dD][89a-fA-F]", text):
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


#: Made once: it takes as long as to read a row.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_to_object)


def _is_deep(body: bytes, most: int) -> bool:
    """Return whether lists and objects are deeper inside each other than is allowed."""
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    depth = 0
    without_text = re.sub(rb'"(?:[^"\\]|\\.)*"?', b"", body, flags=re.DOTALL)
    for bracket in re.findall(rb"[\[\]{}]", without_text):
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


def _read_arrow(body: bytes, limits: Limits) -> Frame:
    """Return the rows of an Arrow stream."""
    ipc = needed("pyarrow.ipc", "to read Arrow streams")
    try:
        _refuse_compressed(ipc.MessageReader.open_stream(body))
        with ipc.open_stream(body) as reader:
            _check_schema(reader.schema, limits.columns)
            table = _read_batches(reader, limits)
        require_distinct(table.column_names, "The table")
        return to_frame(table)
    except InvalidInputError as error:
        raise unusable(error) from None
    except DAMAGE:
        raise ServeError(400, "not_arrow", "The content is no Arrow stream, or cut off.") from None


def _read_batches(reader: Any, limits: Limits) -> Any:
    arrow = needed("pyarrow", "to read Arrow streams")
    batches, n_rows, n_bytes = [], 0, 0
    for batch in reader:
        n_rows += batch.num_rows  # from the metadata: nothing of a stranger is followed yet
        require_rows(n_rows, limits)
        batches.append(checked(batch))
        # a cell of a data frame has 8 bytes at least; in the stream it may take a bit, or nothing
        n_bytes += max(batch.nbytes, 8 * batch.num_rows * batch.num_columns)
        n_bytes += sum(_repeated_bytes(column) for column in batch.columns)
        if n_bytes > 4 * limits.body_bytes:
            raise ServeError(
                413, "cells_too_large", "The cells take too much memory. Send rows in parts."
            )
    return arrow.Table.from_batches(batches, schema=reader.schema)


def _repeated_bytes(column: Any) -> int:
    """Return the bytes that the texts of a dictionary take when every row has its own."""
    arrow = needed("pyarrow", "to read Arrow streams")
    kind = column.type
    if not arrow.types.is_dictionary(kind) or not _is_text(kind.value_type):
        return 0
    compute = needed("pyarrow.compute", "to read Arrow streams")
    lengths = compute.binary_length(column.dictionary).take(column.indices)
    return int(compute.sum(lengths).as_py() or 0)


def _check_schema(schema: Any, most_columns: int) -> None:
    if len(schema.names) > most_columns:
        raise ServeError(422, "too_many_columns", f"At most {most_columns} columns are allowed.")
    odd = [f"{field.name} ({field.type})" for field in schema if not _is_plain(field.type)]
    if odd:
        raise ServeError(
            422,
            "unusable_rows",
            f"Columns must hold numbers, text, truth, dates or times. These do not: {odd[0]}"
            + (f" and {len(odd) - 1} more." if len(odd) > 1 else "."),
        )


def _is_plain(kind: Any) -> bool:
    types = needed("pyarrow", "to read Arrow streams").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    others = (types.is_timestamp, types.is_date, types.is_decimal, _is_text)
    return any(test(kind) for test in (*tests, *others))


def _is_text(kind: Any) -> bool:
    types = needed("pyarrow", "to read Arrow streams").types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _refuse_compressed(messages: Any) -> None:
    """Refuse compressed buffers before they are unpacked: few bytes could become gigabytes."""
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if _is_compressed(message.metadata.to_pybytes()):
            raise ServeError(
                415, "compressed", "Buffers of the Arrow stream must not be compressed."
            )


def _is_compressed(metadata: bytes) -> bool:
    """Return whether a message has compressed buffers; positions of fields as in Message.fbs."""
    try:
        message = _follow(metadata, 0)
        header, kind = _field(metadata, message, 2), _field(metadata, message, 1)
        dictionary_batch, record_batch = 2, 3  # the kinds of messages that carry buffers
        number = metadata[kind] if kind else 0
        if number not in (dictionary_batch, record_batch) or not header:
            return False
        batch = _follow(metadata, header)
        if number == dictionary_batch:
            batch = _follow(metadata, _field(metadata, batch, 1))
        return bool(_field(metadata, batch, 3))
    except (struct.error, IndexError):
        raise ValueError("metadata is cut off") from None


def _follow(data: bytes, place: int) -> int:
    """Return where an offset of a flat buffer leads."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return the place of a field of a table of a flat buffer; 0 if it is not there."""
    names = table - int(struct.unpack_from("<i", data, table)[0])
    if names < 0:
        raise IndexError
    entry = 4 + 2 * number
    if entry + 2 > int(struct.unpack_from("<H", data, names)[0]):
        return 0
    offset = int(struct.unpack_from("<H", data, names + entry)[0])
    return table + offset if offset else 0
