"""Rows as `ocfuse watch` has them: lines from stdin or a growing file, scored as they come."""

import codecs
import csv
import io
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import pandas as pd

from ocfuse.cli.output import warn
from ocfuse.cli.runtime import Terminated
from ocfuse.cli.score_files import scored
from ocfuse.cli.watch_events import Reporter, StreamReporter
from ocfuse.exceptions import (
    DriftWarning,
    InvalidInputError,
    OcfuseWarning,
    TableError,
    TableWarning,
)
from ocfuse.tables import TableDetector
from ocfuse.tables.dataframes import free_name, require_distinct
from ocfuse.tables.detector import ROWS
from ocfuse.tables.text import (
    DELIMITERS,
    FALLBACK,
    NO_TEXT,
    UTF16_MARKS,
    head_records,
    records,
    separator_line,
    sniff_decimal,
    sniff_delimiter,
    with_point,
)

#: Bytes that are read at once.
BLOCK = 65_536
#: Seconds between two looks at a file.
PAUSE = 0.2
#: Number and fields of a row.
Row: TypeAlias = tuple[int, list[str]]


def lines_of_stdin() -> Iterator[list[bytes]]:
    """Yield complete lines as soon as they are there, and the last one in any case.

    An empty list comes when there are none: who waits can look at the clock.
    """
    blocks: queue.Queue[bytes] = queue.Queue(maxsize=1)
    read = _stdin_reader()

    def pass_on() -> None:
        """Put what is read into the queue, and at the end an empty block."""
        block = b"?"
        while block:
            try:
                block = read()
            except OSError:  # a terminal that was closed
                block = b""
            blocks.put(block)

    # a thread waits: on no system can all kinds of input be asked whether there is more
    threading.Thread(target=pass_on, daemon=True).start()
    rest = b""
    while True:
        try:
            block = blocks.get(timeout=PAUSE)
        except queue.Empty:
            yield []
            continue
        if not block:
            break
        lines, rest = _split_lines(rest + block)
        yield lines
    if rest:
        yield [rest]


def _stdin_reader() -> Callable[[], bytes]:
    """Return a function that reads what is there, without waiting for a full block."""
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:  # not the real one
        return lambda: cast(io.BufferedReader, sys.stdin.buffer).read1(BLOCK)
    # not by sys.stdin: its lock would be held by the thread when the program ends
    return lambda: os.read(descriptor, BLOCK)


def lines_of_file(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of a file."""
    rest = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            lines, rest = _split_lines(rest + block)
            yield lines
    if rest:
        yield [rest]


def lines_of_growing_file(path: Path, notify: Callable[[str], None]) -> Iterator[list[bytes]]:
    """Yield complete lines as they are written, without end; an empty list when there are none.

    A last line without its end is waited for. When the name stands for another file,
    the old one is read to its end first; when a file was cut, it is read from its start.
    `notify` is called with a sentence on that.
    """
    while True:
        with path.open("rb", buffering=0) as file:
            yield from _until_replaced(path, file, notify)
        notify(f"{path} was replaced; reading the new file")


def _until_replaced(
    path: Path, file: BinaryIO, notify: Callable[[str], None]
) -> Iterator[list[bytes]]:
    rest = b""
    is_replaced = False
    while True:
        block = file.read(BLOCK)
        if block:
            lines, rest = _split_lines(rest + block)
            yield lines
        elif is_replaced:
            yield [rest] if rest else []
            return
        elif os.fstat(file.fileno()).st_size < file.tell():
            notify(f"{path} was cut; reading it from its start")
            file.seek(0)
            rest = b""
        else:
            yield []
            # once more from the old file: it may have grown before it was replaced
            is_replaced = _is_other(path, file)
            if not is_replaced:
                time.sleep(PAUSE)


def _is_other(path: Path, file: BinaryIO) -> bool:
    """Return whether the name stands for another file by now; not while there is none."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _split_lines(text: bytes, longest: int = 2**22) -> tuple[list[bytes], bytes]:
    """Return complete lines, and the beginning of the next one."""
    *lines, rest = text.split(b"\n")
    if len(rest) > longest:
        raise InvalidInputError(
            f"A line is longer than {longest:,} bytes. Expected a row of a table per line."
        )
    return lines, rest


@dataclass
class Watch:
    """Score the lines of a table; the first one names the columns.

    A later line that names all columns of the model is a header again: files are replaced.
    """

    model: TableDetector
    reporter: Reporter | StreamReporter
    delimiter: str | None = None  # None finds it out, as of the decimal separator
    decimal: str | None = None
    header: list[str] = field(default_factory=list)
    is_utf8: bool = True  # all lines so far
    n_rows: int = 0
    n_bad: int = 0  # rows that could not be scored

    def run(self, data: str, *, follow: bool, only_new: bool, quiet: bool) -> None:
        """Score all rows of a file, or of stdin for ``-``, until they end, and report the sum."""
        if data == "-":
            source = lines_of_stdin()
        elif follow:
            source = lines_of_growing_file(Path(data), lambda text: None if quiet else warn(text))
        else:
            source = lines_of_file(Path(data))
        try:
            self._take_all(source, only_new)
        except Terminated:
            pass  # this is how a service is stopped
        finally:
            self.reporter.end(self.n_rows, self.n_bad)

    def _take_all(self, source: Iterator[list[bytes]], only_new: bool) -> None:
        skip = only_new
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)  # the reporter prints it
            for lines in source:
                # an empty list: what was there has been read
                skip = skip and bool(lines)
                self.reporter.listen(bool(lines))
                self.take(lines, skip=skip)
                if lines:
                    self.reporter.listen(True)  # the time of scoring is no silence
                if self.n_rows:
                    # warnings on the table have been printed; odd rows are alarms
                    warnings.simplefilter("ignore", TableWarning)
        if not self.header:
            raise TableError("There is no header line. Expected the names of the columns first.")

    def take(self, lines: Iterable[bytes], *, skip: bool = False) -> None:
        """Score the next lines, or only count them."""
        rows: list[Row] = []
        for line in lines:
            if not line.strip():
                continue
            if not self.header:
                self._begin(line)
                continue
            try:
                fields = _fields(self._text(line), str(self.delimiter))
                if len(fields) != len(self.header):
                    n_names = len(self.header)
                    raise TableError(f"It has {len(fields)} values, the header {n_names} names.")
            except TableError as error:
                self._score(rows)  # in the order in which they came
                rows = []
                if not skip:
                    self._refuse(self.n_rows, error)
            else:
                if self._names_columns(fields):
                    self._score(rows)
                    self.header, rows = _names(fields), []
                    self.reporter.begin()
                    continue
                if not skip:
                    rows.append((self.n_rows, fields))
            self.n_rows += 1
        self._score(rows)

    def _begin(self, line: bytes) -> None:
        """Take the first line, which has to name the columns; one before may name a separator."""
        _require_text(line)
        text = self._text(line)
        named = separator_line(text)
        if named is not None:
            self.delimiter = self.delimiter or named
            return
        self.delimiter = self.delimiter or self._find_delimiter(text)
        names = _names(_fields(text, self.delimiter))
        require_distinct(names, "The first line")
        if not self._names_columns(names):
            # raises an error that names the missing columns
            self.model.schema_.check(pd.DataFrame(columns=names))
        self.header = names

    def _text(self, line: bytes) -> str:
        """Return a line without its end."""
        plain = line.removeprefix(codecs.BOM_UTF8).strip(b"\r\n")
        try:
            return plain.decode()
        except UnicodeDecodeError:
            if self.is_utf8:
                self.is_utf8 = False
                warnings.warn(
                    "The input is not in UTF-8 and is read as Windows-1252. If letters come out "
                    "wrong, feed it in UTF-8.",
                    OcfuseWarning,
                    stacklevel=2,
                )
            return plain.decode(FALLBACK, errors="replace")

    def _find_delimiter(self, header: str) -> str:
        """Return the separator by which most names are columns of the model."""
        known = {column.name for column in self.model.schema_.columns}

        def n_known(delimiter: str) -> int:
            return len(known.intersection(*map(_names, head_records([header], delimiter))))

        best = max(DELIMITERS, key=n_known)
        return best if n_known(best) else sniff_delimiter([header])

    def _names_columns(self, fields: list[str]) -> bool:
        """Return whether this is a header."""
        return set(self.model.schema_.features) <= set(_names(fields))

    def _score(self, rows: list[Row]) -> None:
        """Score rows at once; if that fails, find those that cannot be scored by halves."""
        if not rows:
            return
        try:
            scores = self._scored(rows)
        except InvalidInputError as error:
            if len(rows) == 1:
                self._refuse(rows[0][0], error)
                return
            self._score(rows[: len(rows) // 2])
            self._score(rows[len(rows) // 2 :])
            return
        self.reporter.report(scores)

    def _scored(self, rows: list[Row]) -> pd.DataFrame:
        """Return scores, and in the last column which columns a row is judged without."""
        numbers, cells = [number for number, _ in rows], [fields for _, fields in rows]
        if self.decimal is None and sniff_decimal(cells, str(self.delimiter), "The row") == ",":
            self.decimal = ","  # for good: not every row shows it
        if self.decimal == ",":
            cells = [with_point(fields) for fields in cells]
        frame = pd.DataFrame(cells, columns=self.header, index=numbers, dtype="string")
        scores = scored(self.model, frame)
        if self.model.kind == ROWS:  # gaps of sensors are usual
            without = [names or None for names in self.model.judged_without(frame)]
            name = free_name("judged_without", scores)
            scores[name] = pd.Series(without, scores.index, dtype=object)
        return scores

    def _refuse(self, number: int, error: InvalidInputError) -> None:
        self.n_bad += 1
        self.reporter.complain(number, error)


def _require_text(first: bytes) -> None:
    """Refuse input whose first line shows that it is no text that comes line by line."""
    for start, what in NO_TEXT.items():
        if first.startswith(start):
            raise TableError(
                f"The input is no text: it {what.partition('.')[0]}. `ocfuse watch` reads CSV as "
                "it comes. Use `ocfuse score`, or feed it by a pipe, such as zcat."
            )
    if first.startswith(UTF16_MARKS) or b"\0" in first:
        raise TableError(
            "The input is no text in UTF-8: it holds zero bytes, or begins as UTF-16 does. Convert "
            "it, for instance by iconv -f UTF-16 -t UTF-8, or use `ocfuse score`."
        )


def _fields(text: str, delimiter: str) -> list[str]:
    """Return the values of a line."""
    try:
        (fields,) = records([text], delimiter)
    except csv.Error as error:
        raise TableError(f"It cannot be read: {error}.") from None
    return list(fields)


def _names(fields: list[str]) -> list[str]:
    """Return the names of columns, as `open_source` has them."""
    return [name.strip() or f"Unnamed: {j}" for j, name in enumerate(fields)]
