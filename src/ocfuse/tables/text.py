"""Tables in text files: encodings, lines, dialects and rows.

Cells stay text: what a column holds is for the schema to say, once for all chunks.

Encodings are UTF-8 with or without a byte order mark, and UTF-16 with one. A line that is
not UTF-8 is read as Windows-1252, as spreadsheets in western Europe write it,
and a warning says so. That is settled line by line, so that it does not depend
on how the file is cut into chunks.
"""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, ClassVar, cast

import numpy as np

from ocfuse.exceptions import InvalidInputError, TableError, TableWarning
from ocfuse.system.packages import needed
from ocfuse.tables.dataframes import Frame
from ocfuse.tables.source import Source, to_frame

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FALLBACK = "cp1252"
#: Endings of compressed files, which stand after that of the format.
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
#: What decompression raises for files that are cut off or something else, beside OSError.
CUT_OFF = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
#: How files that are no text begin, and what they are.
NO_TEXT = {
    b"\x1f\x8b": "is compressed. Give it a name that ends in .gz, or decompress it",
    b"BZh": "is compressed. Give it a name that ends in .bz2, or decompress it",
    b"\xfd7zXZ": "is compressed. Give it a name that ends in .xz, or decompress it",
    b"\x28\xb5\x2f\xfd": "is compressed. Give it a name that ends in .zst, or decompress it",
    b"PK\x03\x04": "is an archive, or a workbook. Give a workbook a name that ends in .xlsx",
    b"PAR1": "is a Parquet file. Give it a name that ends in .parquet",
}

#: Separators that are tried, in this order.
DELIMITERS = (",", ";", "\t", "|")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
#: Numbers with marks for thousands as well as decimals: 1.234,56 or 1,234.56.
GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?:[.' ]\d{3})+,|(?:[,' ]\d{3})+\.)\d+")


class TextSource(Source):
    """A table in a text file or stream, whose first line holds the column names, unless given.

    Delimiter and decimal sign that are None are inferred from the first 100 lines.

    A chunk is read by pyarrow where it reads the same cells as Python's csv module, and by that
    module otherwise: it is the one that says what is accepted, and what is wrong.
    """

    #: Lines from which on pyarrow is quicker.
    least_lines: ClassVar[int] = 16

    def __init__(
        self,
        where: Any,
        name: str,
        delimiter: str | None,
        decimal: str | None,
        chunk_rows: int,
        columns: Sequence[str] | None = None,
    ) -> None:
        check_dialect(delimiter, decimal)
        self._lines = Lines(where, name)
        lines = iter(self._lines)
        # A stream that delivers row by row must not be waited for longer than one chunk.
        raws: list[bytes] = []
        head = list(self._lines.decoded(kept(islice(lines, 1 + min(100, chunk_rows)), raws), 1))
        self._stream = None if isinstance(where, Path) else chain(raws, lines)
        if not any(line.strip() for line in head):
            raise TableError(f"{name} is empty. A line of column names and rows are expected.")
        named = separator_line(head[0])
        if named is not None:
            head[0] = "\n"
        delimiter = named if delimiter is None else delimiter
        self._has_separator_line = named is not None
        n_above = preamble_lines(head, delimiter)
        if n_above and columns is None:
            raise TableError(
                f"{name} does not begin with column names, but with {head[0].strip()[:60]!r}. They "
                f"seem to be in line {n_above + 1}: delete what stands above."
            )
        self.delimiter = sniff_delimiter(head) if delimiter is None else delimiter
        header, *rows = head_records(head, self.delimiter) or [[]]
        if not header:
            raise TableError(f"{name} has no line of column names that can be read.")
        self._has_header = columns is None or [cell.strip() for cell in header] == list(columns)
        if not self._has_header:
            header, rows = list(columns or ()), [header, *rows]
        self.decimal = sniff_decimal(rows, self.delimiter, name) if decimal is None else decimal
        if columns is None:
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
        lines = self._from_start()
        _, n_lines = self._read(lines, 0, 1) if self._has_header else ([], 0)
        tables: list[Any] = []
        missing = self.chunk_rows
        has_more = True
        n_refused = n_passed_over = 0
        while has_more:
            raws: list[bytes] = []
            table = None
            # where pyarrow is refused again and again, it is tried less often
            if n_passed_over < min(n_refused, 8):
                n_passed_over += 1
            elif missing >= self.least_lines:
                raws, lines = taken(lines, missing)
                if len(raws) >= self.least_lines:
                    table = block_table(raws, self.columns, self.delimiter)
                    n_refused = n_refused + 1 if table is None else 0
                    n_passed_over = 0
            n_read = len(raws)
            if table is None:
                table, n_read = self._rows_table(chain(raws, lines), n_lines, missing)
                has_more = table.num_rows == missing
            n_lines += n_read
            missing -= table.num_rows
            tables.append(table)
            del raws, table  # memory for those who work with the frame
            if missing == 0 or not has_more:
                self.bytes_read = self._lines.bytes_read
                frame = self._frame(tables)
                tables, missing = [], self.chunk_rows
                if len(frame):
                    yield frame

    def _from_start(self) -> Iterator[bytes]:
        """Return the lines from the first one on; one that names the separator is empty."""
        lines = iter(self._lines)
        if not isinstance(self._lines.where, Path):
            if self._stream is None:
                raise TableError(f"{self.name} can be read only once. Write it to a file first.")
            lines, self._stream = self._stream, None
        if self._has_separator_line:
            next(lines)
            lines = chain([b"\n"], lines)  # so that lines are counted right
        return lines

    def _rows_table(self, lines: Iterable[bytes], before: int, most: int) -> tuple[Any, int]:
        """Return rows as an Arrow table, and how many lines they take, as `_read` does."""
        arrow = needed("pyarrow", "to read tables")
        rows, n_lines = self._read(lines, before, most)
        columns = zip(*rows, strict=True) if rows else [()] * len(self.columns)
        cells = [arrow.array(column, type=arrow.string()) for column in columns]
        return arrow.table(cells, names=self.columns), n_lines

    def _read(self, lines: Iterable[bytes], before: int, most: int) -> tuple[list[list[str]], int]:
        """Return rows, all as wide as the header, and how many lines they take.

        Blank lines are passed over. The lines stand after so many others.
        """
        reader = records(self._lines.decoded(lines, before + 1), self.delimiter)
        width = len(self.columns)
        rows: list[list[str]] = []
        try:
            for row in reader:
                if len(row) == width:
                    rows.append(row)
                    if len(rows) == most:
                        break
                elif row:
                    raise TableError(
                        f"Line {before + reader.line_num} of {self.name} has {len(row)} values, "
                        f"but there are {width} column names. Values are separated by "
                        f"{self._separator}: give another delimiter if that is wrong; otherwise "
                        "correct the line, or, if it is the last one, copy the file again: it "
                        "may be cut off."
                    )
        except csv.Error as error:
            reason = str(error)
            if "unexpected end" in reason or "field limit" in reason:
                reason = "a quote was opened and not closed; the file may be cut off"
            elif "new-line" in reason:
                reason = "its lines end in CR alone. Save it with usual line ends"
            line = before + reader.line_num
            raise TableError(
                f"{self.name} cannot be read as a table, line {line}: {reason}."
            ) from error
        return rows, reader.line_num

    def _frame(self, tables: list[Any]) -> Frame:
        table = needed("pyarrow", "to read tables").concat_tables(tables)
        if self.decimal == ",":
            for j, column in enumerate(table.columns):
                table = table.set_column(j, self.columns[j], _column_with_point(column))
        return to_frame(table)


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
    """The lines of a file (also a compressed one), or of a stream, which is read once.

    Lines are bytes as they stand in the file, without a byte order mark; UTF-16 becomes UTF-8.
    """

    #: Bytes of the longest line that is decompressed.
    longest_line: ClassVar[int] = 2**26

    def __init__(self, where: Any, name: str) -> None:
        self.where = where
        self.name = name
        self.n_bytes = where.stat().st_size if isinstance(where, Path) else None
        self._n_read = 0
        self._file: IO[bytes] | None = None
        self._has_warned = False

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, of a compressed file as they are."""
        return self._n_read if self._file is None else self._file.tell()

    def __iter__(self) -> Iterator[bytes]:
        try:
            if not isinstance(self.where, Path):
                yield from self._plain(self._counted(self.where))
                return
            with self._opened(self.where) as file:
                if self.where.suffix.lower() not in COMPRESSED:
                    yield from self._plain(file)
                    return
                with decompressed(file, self.where) as plain:
                    yield from self._plain(self._bounded(plain))
        except CUT_OFF as error:
            raise TableError(f"{self.name} is cut off or damaged ({error}).") from error
        except UnicodeDecodeError as error:
            raise TableError(f"{self.name} is not the UTF-16 that it begins with.") from error
        except OSError as error:
            raise TableError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    @contextmanager
    def _opened(self, path: Path) -> Iterator[IO[bytes]]:
        with path.open("rb") as file:
            self._file = file
            try:
                yield file
            finally:
                if self._file is file:
                    self._file = None
                    if not file.closed:  # as it is where nobody reads on, and all is collected
                        self._n_read = file.tell()

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
        for raw in iter(stream.readline, b""):
            self._n_read += len(raw)
            yield raw

    def _plain(self, raws: Iterator[bytes]) -> Iterator[bytes]:
        first = next(raws, b"")
        if first.startswith(UTF16_MARKS):
            return _from_utf16(chain([first], raws))
        first = first.removeprefix(codecs.BOM_UTF8)
        self._require_text(first)
        return chain([first], raws)

    def decoded(self, raws: Iterable[bytes], number: int) -> Iterator[str]:
        """Yield lines as text; the number is that of the first one."""
        for line, raw in enumerate(raws, number):
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                if not self._has_warned:
                    self._has_warned = True
                    warnings.warn(
                        f"{self.name} is not in UTF-8 (line {line}) and is read as "
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


def decompressed(file: IO[bytes], path: Path) -> IO[bytes]:
    """Return what a file holds, decompressed if the ending of its name says so."""
    ending = path.suffix.lower()
    if ending == ".zst":
        arrow = needed("pyarrow", "to read files that end in .zst")
        return cast(IO[bytes], io.BufferedReader(arrow.CompressedInputStream(file, "zstd")))
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return cast(IO[bytes], openers[ending](file)) if ending in openers else file


def _from_utf16(raws: Iterator[bytes]) -> Iterator[bytes]:
    """Split at line ends after decoding: their bytes occur within other letters too."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    rest = ""
    for raw in raws:
        *lines, rest = (rest + decoder.decode(raw)).split("\n")
        yield from (f"{line}\n".encode() for line in lines)
    last = rest + decoder.decode(b"", final=True)
    if last:
        yield last.encode()


def kept(lines: Iterable[bytes], kept: list[bytes]) -> Iterator[bytes]:
    """Yield lines, and add them to a list."""
    for line in lines:
        kept.append(line)
        yield line


def taken(lines: Iterator[bytes], n: int) -> tuple[list[bytes], Iterator[bytes]]:
    """Return the next n lines, or all there are, and the further ones.

    An error comes with the further ones: what stands before it is read first.
    """
    raws: list[bytes] = []
    try:
        raws.extend(islice(lines, n))  # keeps those before the error
    except TableError as error:
        return raws, _raising(error)
    return raws, lines


def _raising(error: TableError) -> Iterator[bytes]:
    yield from ()
    raise error


def block_table(raws: list[bytes], columns: list[str], delimiter: str) -> Any | None:
    """Return lines as an Arrow table of text, or None where `records` may read other cells.

    Both take cells as they stand. pyarrow also takes what is no UTF-8, text after a closing quote,
    and CR as the end of a line; it passes over a byte order mark, and does not pass over spaces
    at the start of a cell. Lines with such things are left to `records`, and so are quoted line
    ends, zero bytes and lines that could hold a cell longer than the csv module takes.
    """
    if delimiter not in DELIMITERS or max(map(len, raws)) > csv.field_size_limit():
        return None
    block = b"".join(raws)
    if (
        block.startswith(codecs.BOM_UTF8)
        or b"\0" in block
        or (b"\r" in block and block.count(b"\r") != block.count(b"\r\n"))
        or not _is_utf8(block)
        or (b'"' in block and not _are_quoted_plainly(raws, block, delimiter))
    ):
        return None
    csv_reader = needed("pyarrow.csv", "to read tables")
    arrow = needed("pyarrow", "to read tables")
    text = dict.fromkeys(columns, arrow.string())
    try:
        table = csv_reader.read_csv(
            arrow.BufferReader(block),
            csv_reader.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=columns
            ),
            csv_reader.ParseOptions(delimiter=delimiter),
            csv_reader.ConvertOptions(
                column_types=text, strings_can_be_null=False, check_utf8=False
            ),
        )
    except ValueError:  # ArrowInvalid: a line that is too short or too long
        return None
    has_spaces = b'"' not in block and (
        block.startswith(b" ") or b"\n " in block or f"{delimiter} ".encode() in block
    )
    return _without_spaces(table) if has_spaces else table


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _are_quoted_plainly(raws: list[bytes], block: bytes, delimiter: str) -> bool:
    """Return whether all lines are quoted plainly; most tables show it by the first ones."""
    first = b"".join(raws[:100])
    return _is_quoted_plainly(first, delimiter) and _is_quoted_plainly(block, delimiter)


def _is_quoted_plainly(block: bytes, delimiter: str) -> bool:
    """Return whether quotes enclose whole cells, which end in their line, or are doubled in one.

    Nor may a cell without quotes begin with a space.
    """
    data = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    is_border = (data == ord(delimiter)) | (data == ord("\n"))
    quotes = np.flatnonzero(data == ord('"'))
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    is_start = is_border[opening - 1]
    is_end = is_border[closing + 1] | (data[closing + 1] == ord("\r"))
    is_doubled = opening[1:] == closing[:-1] + 1
    is_start[1:] |= is_doubled
    is_end[:-1] |= is_doubled
    is_space = (data == ord(" ")) & np.concatenate(([False], is_border[:-1]))
    # neither these spaces may be outside of quotes, nor line ends within
    n_before = np.searchsorted(quotes, np.flatnonzero(is_space))
    n_before_ends = np.searchsorted(quotes, np.flatnonzero(data == ord("\n")))
    return bool(
        is_start.all()
        and is_end.all()
        and (n_before % 2 == 1).all()
        and (n_before_ends % 2 == 0).all()
    )


def _without_spaces(table: Any) -> Any:
    """Return a table of text without spaces at the start of cells."""
    trim = needed("pyarrow.compute", "to read tables").utf8_ltrim
    for j, name in enumerate(table.column_names):
        table = table.set_column(j, name, trim(table.column(j), characters=" "))
    return table


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


def _column_with_point(column: Any) -> Any:
    """Return a column of an Arrow table with points for decimal commas, as `with_point` does."""
    arrow, compute = needed("pyarrow", "to read tables"), needed("pyarrow.compute", "to read them")
    # other cells that hold a point or a comma need a closer look
    number = r"\A(?:[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?|[^.,]*)\z"
    if compute.all(compute.match_substring_regex(column, number)).as_py():
        return compute.replace_substring(column, ",", ".")
    return arrow.array(with_point(column.to_pylist()), type=arrow.string())


def check_dialect(delimiter: Any, decimal: Any) -> None:
    """Refuse settings that cannot be meant."""
    is_character = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n'
    if delimiter is not None and not is_character:
        raise InvalidInputError(
            f"delimiter must be one character, such as ';' or '\\t'. Got delimiter={delimiter!r}."
        )
    if decimal not in (None, ".", ","):
        raise InvalidInputError(f"decimal must be '.' or ','. Got decimal={decimal!r}.")
