"""Tables in text files: encodings, lines, dialects and rows.

Cells stay text: what a column holds is for the schema to say, once for all chunks.

Encodings are UTF-8 with or without a byte order mark, and UTF-16 with one. A line that is
not UTF-8 is read as Windows-1252, as spreadsheets in western Europe write it,
and a warning says so. That is settled line by line, so that it does not depend
on how the file is cut into chunks.
"""

import codecs
import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from ocfuse.exceptions import InvalidInputError, TableError, TableWarning
from ocfuse.system.packages import needed
from ocfuse.tables.dataframes import Frame
from ocfuse.tables.source import Source, to_frame

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FALLBACK = "cp1252"
#: How files that are no text begin, and what they are.
NO_TEXT = {
    b"\x1f\x8b": "is compressed. Give it a name that ends in .gz, or decompress it",
    b"PK\x03\x04": "is an archive or a workbook. Save the table as CSV",
    b"PAR1": "is a Parquet file. Give it a name that ends in .parquet",
}

#: Separators that are tried, in this order.
DELIMITERS = (",", ";", "\t", "|")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
#: Numbers with marks for thousands as well as decimals: 1.234,56 or 1,234.56.
GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?:[.' ]\d{3})+,|(?:[,' ]\d{3})+\.)\d+")


class TextSource(Source):
    """A table in a text file or stream, whose first line holds the column names.

    Delimiter and decimal sign that are None are inferred from the first 100 lines.
    """

    def __init__(
        self, where: Any, name: str, delimiter: str | None, decimal: str | None, chunk_rows: int
    ) -> None:
        check_dialect(delimiter, decimal)
        self._lines = Lines(where, name)
        self._stream: Iterator[str] | None = None
        lines = iter(self._lines)
        # A stream that delivers row by row must not be waited for longer than one chunk.
        head = list(islice(lines, 1 + min(100, chunk_rows)))
        if not isinstance(where, Path):
            self._stream = chain(head, lines)
        if not any(line.strip() for line in head):
            raise TableError(f"{name} is empty. A line of column names and rows are expected.")
        named = separator_line(head[0])
        if named is not None:
            head[0] = "\n"
        delimiter = named if delimiter is None else delimiter
        self._has_separator_line = named is not None
        n_above = preamble_lines(head, delimiter)
        if n_above:
            raise TableError(
                f"{name} does not begin with column names, but with {head[0].strip()[:60]!r}. They "
                f"seem to be in line {n_above + 1}: delete what stands above."
            )
        self.delimiter = sniff_delimiter(head) if delimiter is None else delimiter
        header, *rows = head_records(head, self.delimiter) or [[]]
        if not header:
            raise TableError(f"{name} has no line of column names that can be read.")
        self.decimal = sniff_decimal(rows, self.delimiter, name) if decimal is None else decimal
        _warn_of_numbers(header, name)
        # columns that have no name are called as pandas calls them
        names = [cell.strip() or f"Unnamed: {j}" for j, cell in enumerate(header)]
        known = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
        self._separator = known.get(self.delimiter, repr(self.delimiter))
        comma = ", decimal comma" if self.decimal == "," else ""
        description = f"text, separated by {self._separator}{comma}"
        super().__init__(name, names, description, chunk_rows, self._lines.n_bytes)

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
        lines = iter(self._lines)
        if not isinstance(self._lines.where, Path):
            if self._stream is None:
                raise TableError(f"{self.name} can be read only once. Write it to a file first.")
            lines, self._stream = self._stream, None
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
                    raise TableError(
                        f"Line {reader.line_num} of {self.name} has {len(row)} values, but there "
                        f"are {width} column names. Values are separated by {self._separator}: "
                        "give another delimiter if that is wrong; otherwise correct the line, or, "
                        "if it is the last one, copy the file again: it may be cut off."
                    )
        except csv.Error as error:
            reason = str(error)
            if "unexpected end" in reason or "field limit" in reason:
                reason = "a quote was opened and not closed; the file may be cut off"
            elif "new-line" in reason:
                reason = "its lines end in CR alone. Save it with usual line ends"
            raise TableError(
                f"{self.name} cannot be read as a table, line {reader.line_num}: {reason}."
            ) from error

    def _frame(self, batch: list[list[str]]) -> Frame:
        self.bytes_read = self._lines.bytes_read
        arrow = needed("pyarrow", "to read tables")
        columns = zip(*batch, strict=True)
        if self.decimal == ",":
            columns = map(with_point, columns)  # type: ignore[assignment]
        arrays = [arrow.array(cells, type=arrow.string()) for cells in columns]
        return to_frame(arrow.table(arrays, names=self.columns))


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


class Lines:
    """The lines of a file (also one compressed by gzip), or of a stream, which is read once."""

    #: Bytes of the longest line that is decompressed.
    longest_line: ClassVar[int] = 2**26

    def __init__(self, where: Any, name: str) -> None:
        self.where = where
        self.name = name
        self.n_bytes = where.stat().st_size if isinstance(where, Path) else None
        self.bytes_read = 0
        self._has_warned = False

    def __iter__(self) -> Iterator[str]:
        try:
            if isinstance(self.where, Path):
                yield from self._of_file(self.where)
            else:
                yield from self._decoded(self._counted(self.where))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{self.name} is cut off or damaged ({error}).") from error
        except UnicodeDecodeError as error:
            raise TableError(f"{self.name} is not the UTF-16 that it begins with.") from error
        except OSError as error:
            raise TableError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def _of_file(self, path: Path) -> Iterator[str]:
        with path.open("rb") as file:
            if path.suffix.lower() != ".gz":
                yield from self._decoded(self._counted(file))
                return
            with gzip.open(file) as plain:
                for line in self._decoded(self._bounded(plain)):
                    self.bytes_read = file.tell()
                    yield line

    def _bounded(self, plain: Any) -> Iterator[bytes]:
        """Yield lines; a small file could hold one that takes all memory."""
        for raw in iter(partial(plain.readline, self.longest_line + 1), b""):
            if len(raw) > self.longest_line:
                raise TableError(
                    f"{self.name} has a line of more than {self.longest_line:,} bytes, which no "
                    "table has. Decompress the file and look at it."
                )
            yield raw

    def _counted(self, stream: Any) -> Iterator[bytes]:
        self.bytes_read = 0
        for raw in iter(stream.readline, b""):
            self.bytes_read += len(raw)
            yield raw

    def _decoded(self, raws: Any) -> Iterator[str]:
        raws = iter(raws)
        first = next(raws, b"")
        if first.startswith(UTF16_MARKS):
            yield from _from_utf16(chain([first], raws))
            return
        first = first.removeprefix(codecs.BOM_UTF8)
        self._require_text(first)
        for number, raw in enumerate(chain([first], raws), start=1):
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                if not self._has_warned:
                    self._has_warned = True
                    warnings.warn(
                        f"{self.name} is not in UTF-8 (line {number}) and is read as "
                        "Windows-1252. If letters come out wrong, save it in UTF-8.",
                        TableWarning,
                        stacklevel=1,
                    )
                yield raw.decode(FALLBACK, errors="replace")

    def _require_text(self, first: bytes) -> None:
        for start, what in NO_TEXT.items():
            if first.startswith(start):
                raise TableError(f"{self.name} is no text: it {what}.")
        if b"\0" in first:
            raise TableError(
                f"{self.name} holds zero bytes: it is no text, or not in UTF-8. "
                "Save it as CSV in UTF-8."
            )


def _from_utf16(raws: Iterator[bytes]) -> Iterator[str]:
    """Split at line ends after decoding: their bytes occur within other letters too."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    rest = ""
    for raw in raws:
        *lines, rest = (rest + decoder.decode(raw)).split("\n")
        yield from (line + "\n" for line in lines)
    last = rest + decoder.decode(b"", final=True)
    if last:
        yield last


def records(lines: Iterable[str], delimiter: str) -> Any:
    """Return a reader of rows; what is quoted wrongly is an error."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def head_records(head: list[str], delimiter: str) -> list[list[str]]:
    """Return the rows of the first lines, as far as these can be read."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        for row in records(head, delimiter):
            rows += [row] if row else []
    return rows


def separator_line(line: str) -> str | None:
    """Return the separator that a line names for spreadsheets, or None if it is another line."""
    found = re.fullmatch(r'"?sep=([^"])"?', line.strip("\r\n "), re.IGNORECASE)
    return None if found is None else found[1]


def sniff_delimiter(head: list[str]) -> str:
    """Return the separator that gives most rows the width of the header; "," if none does."""
    return max(DELIMITERS, key=lambda delimiter: _fit(head, delimiter))


def preamble_lines(head: list[str], delimiter: str | None) -> int:
    """Return how many lines stand above the column names, up to 10, as far as it shows."""
    for n in range(min(11, len(head) - 1)):
        below = head[n:]
        best = sniff_delimiter(below) if delimiter is None else delimiter
        share, _ = _fit(below, best)
        if n == 0 and share > 0.5:
            return 0
        names = chain.from_iterable(head_records([head[n]], best))
        has_numbers = any(cell.strip().isdecimal() for cell in names)
        if head[n].strip() and share >= 0.9 and not has_numbers:
            return n
    return 0


def _fit(head: list[str], delimiter: str) -> tuple[float, int]:
    """Return the share of rows that have the width of the first, and this; 0 for one column."""
    rows = head_records(head, delimiter)
    width = len(rows[0]) if rows else 0
    if width < 2:
        return 0.0, 0
    return sum(len(row) == width for row in rows) / len(rows), width


def sniff_decimal(rows: list[list[str]], delimiter: str, name: str) -> str:
    """Return the sign before the decimals, "," or ".", from the first rows of a file."""
    cells = [cell.strip() for cell in chain.from_iterable(rows)]
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    decimal_point = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
    if delimiter == "," or not commas or any(map(decimal_point.fullmatch, cells)):
        return "."
    # a comma before three digits may also mark thousands
    if all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", cell) for cell in commas):
        number = commas[0]
        raise TableError(
            f"{name} holds {number!r}, which may mean {number.replace(',', '.')} or "
            f"{number.replace(',', '')}. Say decimal=',' for the first; for the second write "
            "numbers without marks for thousands."
        )
    return ","


def with_point(cells: Iterable[str]) -> list[str]:
    """Write decimal commas as points, 1.234,5 as 1234.5; what is no number stays as it is."""
    # where a comma stands before decimals, points before three digits mark thousands
    grouped = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
    result = []
    for cell in cells:
        number = cell.strip()
        if grouped.fullmatch(number):
            result.append(number.replace(".", "").replace(",", "."))
        else:
            result.append(cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(number) else cell)
    return result


def check_dialect(delimiter: Any, decimal: Any) -> None:
    """Refuse settings that cannot be meant."""
    is_character = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n'
    if delimiter is not None and not is_character:
        raise InvalidInputError(
            f"delimiter must be one character, such as ';' or '\\t'. Got delimiter={delimiter!r}."
        )
    if decimal not in (None, ".", ","):
        raise InvalidInputError(f"decimal must be '.' or ','. Got decimal={decimal!r}.")
