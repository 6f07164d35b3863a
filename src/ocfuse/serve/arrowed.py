"""Rows of Arrow's stream format, from somebody who is not trusted.

What arrives is a few megabytes, and must not become much more: compressed buffers, nested
types and views are refused, and so are texts that a dictionary repeats too often. Offsets are
checked before anything follows them, as in files.
"""

import struct
from typing import Any

from ocfuse.exceptions import InvalidInputError
from ocfuse.optional import needed
from ocfuse.serve.errors import ServeError, unusable
from ocfuse.tables.arrow import DAMAGE, checked, to_frame
from ocfuse.tables.frames import Frame, require_distinct

#: Positions of fields in the tables of Arrow's metadata (Message.fbs).
HEADER_TYPE, HEADER, COMPRESSION, DATA = 1, 2, 3, 1
#: Kinds of messages that carry buffers.
DICTIONARY_BATCH, RECORD_BATCH = 2, 3
#: Bytes of a cell in a data frame at least; in the stream it may take a bit, or nothing.
CELL_BYTES = 8


def read_arrow(body: bytes, most_rows: int, most_columns: int, most_bytes: int) -> Frame:
    """Return the rows of an Arrow stream.

    Parameters
    ----------
    body : bytes
        The stream.
    most_rows, most_columns : int
        More are refused.
    most_bytes : int
        Bytes that the cells may take, as columns.

    Returns
    -------
    pandas.DataFrame
        The rows.
    """
    ipc = needed("pyarrow.ipc", "to read Arrow streams")
    try:
        _refuse_compressed(ipc.MessageReader.open_stream(body))
        with ipc.open_stream(body) as reader:
            _check_schema(reader.schema, most_columns)
            table = _read(reader, most_rows, most_bytes)
        require_distinct(table.column_names, "The table")
        return to_frame(table)
    except InvalidInputError as error:
        raise unusable(error) from None
    except DAMAGE:
        raise ServeError(400, "not_arrow", "The content is no Arrow stream, or cut off.") from None


def _read(reader: Any, most_rows: int, most_bytes: int) -> Any:
    arrow = needed("pyarrow", "to read Arrow streams")
    batches, n_rows, n_bytes = [], 0, 0
    for batch in reader:
        n_rows += batch.num_rows  # told by the metadata: nothing of a stranger is followed yet
        if n_rows > most_rows:
            raise ServeError(
                413, "too_many_rows", f"At most {most_rows} rows are allowed. Send them in parts."
            )
        batches.append(checked(batch))
        n_bytes += max(batch.nbytes, CELL_BYTES * batch.num_rows * batch.num_columns)
        n_bytes += sum(_repeated_bytes(column) for column in batch.columns)
        if n_bytes > most_bytes:
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
    for message in _each(messages):
        if _is_compressed(message.metadata.to_pybytes()):
            raise ServeError(
                415, "compressed", "Buffers of the Arrow stream must not be compressed."
            )


def _each(messages: Any) -> Any:
    while True:
        try:
            yield messages.read_next_message()
        except StopIteration:
            return


def _is_compressed(metadata: bytes) -> bool:
    try:
        message = _follow(metadata, 0)
        header = _field(metadata, message, HEADER)
        kind = _field(metadata, message, HEADER_TYPE)
        number = metadata[kind] if kind else 0
        if number not in (DICTIONARY_BATCH, RECORD_BATCH) or not header:
            return False
        batch = _follow(metadata, header)
        if number == DICTIONARY_BATCH:
            batch = _follow(metadata, _field(metadata, batch, DATA))
        return bool(_field(metadata, batch, COMPRESSION))
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
