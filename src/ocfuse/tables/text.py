"""Tables in text files: CSV, TSV and their relatives.

Cells stay text: what a column holds is for the schema to say, once for all chunks.
"""

import csv
import warnings
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

from ocfuse.exceptions import TableError, TableWarning
from ocfuse.optional import needed
from ocfuse.tables.arrow import to_frame
from ocfuse.tables.dialect import (
    check_dialect,
    head_records,
    preamble_lines,
    records,
    separator_line,
    sniff_decimal,
    sniff_delimiter,
    with_point,
)
from ocfuse.tables.frames import Frame
from ocfuse.tables.lines import Lines
from ocfuse.tables.source import Source

#: Lines that delimiter and decimals are told from; fewer if chunks are smaller.
HEAD_LINES = 100
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}


class TextSource(Source):
    """A table in a text file or stream, whose first line holds the column names.

    Parameters
    ----------
    where : Path or binary stream
        What `Lines` takes.
    name : str
        Name for messages.
    delimiter, decimal : str or None
        What separates values, and what separates decimals; None tells it from
        the first lines.
    chunk_rows : int
        Most rows of one chunk.
    """

    def __init__(
        self, where: Any, name: str, delimiter: str | None, decimal: str | None, chunk_rows: int
    ) -> None:
        check_dialect(delimiter, decimal)
        self._lines = Lines(where, name)
        self._stream: Iterator[str] | None = None
        lines = iter(self._lines)
        # A stream that delivers row by row must not be waited for longer than one chunk.
        head = list(islice(lines, 1 + min(HEAD_LINES, chunk_rows)))
        if not isinstance(where, Path):
            self._stream = chain(head, lines)
        if not any(line.strip() for line in head):
            raise TableError(f"{name} is empty. A line of column names and rows are expected.")
        named = separator_line(head[0])
        if named is not None:
            head[0] = "\n"
        delimiter = named if delimiter is None else delimiter
        self._has_separator_line = named is not None
        _refuse_preamble(head, delimiter, name)
        self.delimiter = sniff_delimiter(head) if delimiter is None else delimiter
        header, *rows = head_records(head, self.delimiter) or [[]]
        if not header:
            raise TableError(f"{name} has no line of column names that can be read.")
        self.decimal = sniff_decimal(rows, self.delimiter, name) if decimal is None else decimal
        _warn_of_numbers(header, name)
        n_bytes = self._lines.n_bytes
        super().__init__(name, _names(header), self._describe(), chunk_rows, n_bytes)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of text."""
        batch: list[list[str]] = []
        for row in self._rows():
            batch.append(row)
            if len(batch) == self.chunk_rows:
                yield self._frame(batch)
                batch = []
        if batch:
            yield self._frame(batch)
        self.bytes_read = self._lines.bytes_read

    def _rows(self) -> Iterator[list[str]]:
        """Yield rows without the header, all of its width; blank lines are passed over."""
        lines = self._take_lines()
        if self._has_separator_line:
            next(lines)
            lines = chain(["\n"], lines)  # so that lines are counted right
        reader = records(lines, self.delimiter)
        width = len(self.columns)
        try:
            next(row for row in reader if row)
            for row in reader:
                if len(row) == width:
                    yield row
                elif row:
                    self._refuse(row, reader.line_num)
        except csv.Error as error:
            raise TableError(_why(error, self.name, reader.line_num)) from error

    def _take_lines(self) -> Iterator[str]:
        if isinstance(self._lines.where, Path):
            return iter(self._lines)
        if self._stream is None:
            raise TableError(f"{self.name} can be read only once. Write it to a file first.")
        stream, self._stream = self._stream, None
        return stream

    def _refuse(self, row: list[str], line: int) -> NoReturn:
        raise TableError(
            f"Line {line} of {self.name} has {len(row)} values, but there are "
            f"{len(self.columns)} column names. Values are separated by {self._separator()}: give "
            "another delimiter if that is wrong; otherwise correct the line, or, if it is the "
            "last one, copy the file again: it may be cut off."
        )

    def _frame(self, batch: list[list[str]]) -> Frame:
        self.bytes_read = self._lines.bytes_read
        arrow = needed("pyarrow", "to read tables")
        columns = zip(*batch, strict=True)
        if self.decimal == ",":
            columns = map(with_point, columns)  # type: ignore[assignment]
        arrays = [arrow.array(cells, type=arrow.string()) for cells in columns]
        return to_frame(arrow.table(arrays, names=self.columns))

    def _separator(self) -> str:
        return NAMES.get(self.delimiter, repr(self.delimiter))

    def _describe(self) -> str:
        comma = ", decimal comma" if self.decimal == "," else ""
        return f"text, separated by {self._separator()}{comma}"


def _names(header: list[str]) -> list[str]:
    """Return column names; those that have none are called as pandas calls them."""
    return [name.strip() or f"Unnamed: {j}" for j, name in enumerate(header)]


def _refuse_preamble(head: list[str], delimiter: str | None, name: str) -> None:
    n = preamble_lines(head, delimiter)
    if n:
        raise TableError(
            f"{name} does not begin with column names, but with {head[0].strip()[:60]!r}. They "
            f"seem to be in line {n + 1}: delete what stands above."
        )


def _warn_of_numbers(header: list[str], name: str) -> None:
    try:
        any(map(float, header))
    except ValueError:
        return
    warnings.warn(
        f"The first line of {name} holds numbers only and was taken as column names. "
        "If it is a row, put a line of names above it.",
        TableWarning,
        stacklevel=3,
    )


def _why(error: csv.Error, name: str, line: int) -> str:
    reason = str(error)
    if "unexpected end" in reason or "field limit" in reason:
        reason = "a quote was opened and not closed; the file may be cut off"
    elif "new-line" in reason:
        reason = "its lines end in CR alone. Save it with usual line ends"
    return f"{name} cannot be read as a table, line {line}: {reason}."
