"""Rows as `ocfuse watch` has them: lines from stdin or a growing file, scored as they come.

Rows that wait, because input is faster than scores, are scored together, at most `MOST_ROWS` at
a time. Nothing waits for others to come: a row that comes alone is scored at once, and one that
comes while others are scored waits for those before it. What is printed is what would be
printed row by row, but for the rounding of scores.
"""

import codecs
import csv
import io
import math
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import pandas as pd

from ocfuse.cli.output import warn
from ocfuse.cli.runtime import Terminated
from ocfuse.cli.watch_events import Reporter, StreamReporter
from ocfuse.exceptions import (
    DriftWarning,
    InvalidInputError,
    OcfuseWarning,
    TableError,
    TableWarning,
)
from ocfuse.scores.threshold import p_values_of
from ocfuse.streaming import StreamTable
from ocfuse.streaming.clock import ChunkLog
from ocfuse.tables import TableDetector
from ocfuse.tables.cells import PlainReader
from ocfuse.tables.dataframes import free_name, require_distinct
from ocfuse.tables.detector import RESULTS
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

#: Rows that are scored at once, at most.
MOST_ROWS = 256
#: Bytes that are read at once, and blocks of stdin that are read ahead of the scores.
BLOCK, MOST_BLOCKS = 65_536, 16
#: Seconds between two looks at a file.
PAUSE = 0.2
#: Number and fields of a row.
Row: TypeAlias = tuple[int, list[str]]


def lines_of_stdin() -> Iterator[list[bytes]]:
    """Yield complete lines as soon as they are there, and the last one in any case.

    An empty list comes when there are none: who waits can look at the clock.
    """
    blocks: queue.Queue[bytes] = queue.Queue(maxsize=MOST_BLOCKS)
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
    rest, pause = b"", 0.0
    while True:
        try:
            block = blocks.get(timeout=pause)
        except queue.Empty:
            yield []
            pause = PAUSE
            continue
        if not block:
            break
        lines, rest = _split_lines(rest + block)
        yield lines
        pause = 0.0  # what waits belongs to these lines, see `batches`
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


def batches(source: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield lines that wait together, at most `MOST_ROWS` of them; an empty list for none.

    An empty list of the source says that all that is there has been read.
    """
    waiting: list[bytes] = []
    try:
        for lines in source:
            waiting += lines
            while len(waiting) >= MOST_ROWS:
                batch = waiting[:MOST_ROWS]
                del waiting[:MOST_ROWS]
                yield batch
            if not lines:
                if waiting:
                    batch, waiting = waiting, []
                    yield batch
                yield []
    except (InvalidInputError, OSError, KeyboardInterrupt, Terminated):
        yield waiting  # came before what cannot be read, or before the end was asked for
        raise
    if waiting:
        yield waiting


def _split_lines(text: bytes, longest: int = 2**22) -> tuple[list[bytes], bytes]:
    """Return complete lines, and the beginning of the next one."""
    *lines, rest = text.split(b"\n")
    if len(rest) > longest:
        raise InvalidInputError(
            f"A line is longer than {longest:,} bytes. Expected a row of a table per line."
        )
    return lines, rest


@dataclass(frozen=True)
class Judged:
    """Rows that were scored together."""

    beside: list[dict[str, Any]]  # run, file, id and time
    results: list[dict[str, Any]]  # the columns `RESULTS`
    without: list[str | None]  # names of columns that a row is judged without
    runs: Sequence[str] | None = None  # of a stream that has several
    log: ChunkLog | None = None  # what happened in a stream


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
    wanted: frozenset[str] | None = None  # names that make a line a header
    plain: tuple[list[str], PlainReader | None] | None = None  # for rows below a header
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
        skip, is_told = only_new, False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)  # the reporter prints it
            for lines in batches(source):
                # an empty list: what was there has been read
                skip = skip and bool(lines)
                self.reporter.listen(bool(lines))
                for part in self._parts(lines):
                    self.take(part, skip=skip)
                    if self.n_rows and not is_told:
                        # warnings on the table have been printed; odd rows are alarms
                        warnings.simplefilter("ignore", TableWarning)
                        is_told = True
                if lines:
                    self.reporter.listen(True)  # the time of scoring is no silence
        if not self.header:
            raise TableError("There is no header line. Expected the names of the columns first.")

    def _parts(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        """Yield lines, one by one up to the first row: warnings on the table are on that one."""
        n = 0
        while n < len(lines) and not self.n_rows:
            yield lines[n : n + 1]
            n += 1
        yield lines[n:]

    def take(self, lines: Iterable[bytes], *, skip: bool = False) -> None:
        """Score the next lines at once, or only count them."""
        rows: list[Row] = []
        for line in lines:
            if not line.strip():
                continue
            if not self.header:
                self._begin(line)
                continue
            if self.is_utf8 and not _is_utf8(line):
                self._score(rows)  # what is told of them comes before the warning
                rows.clear()
            try:
                fields = _fields(self._text(line), str(self.delimiter))
                if len(fields) != len(self.header):
                    n_names = len(self.header)
                    raise TableError(f"It has {len(fields)} values, the header {n_names} names.")
            except TableError as error:
                self._score(rows)  # in the order in which they came
                rows.clear()
                if not skip:
                    self._refuse(self.n_rows, error)
                self.n_rows += 1
                continue
            if self._names_columns(fields):
                self._score(rows)
                rows.clear()
                self.header = _names(fields)
                self.reporter.begin()
            elif skip:
                self.n_rows += 1
            else:
                try:
                    rows.append((self.n_rows + len(rows), self._with_point(fields)))
                except TableError as error:
                    self._score(rows)
                    rows.clear()
                    self.n_rows += 1
                    self._refuse(self.n_rows - 1, error)
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
        if _is_utf8(plain):
            return plain.decode()
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
        if self.wanted is None:
            self.wanted = frozenset(self.model.schema_.features)
        return self.wanted.issubset(_names(fields))

    def _with_point(self, fields: list[str]) -> list[str]:
        """Return the values of a row with decimal points; by the first comma all are read."""
        may_be = self.decimal is None and self.delimiter != "," and any("," in f for f in fields)
        if may_be and sniff_decimal([fields], str(self.delimiter), "The row") == ",":
            self.decimal = ","  # for good: not every row shows it
        return with_point(fields) if self.decimal == "," else fields

    def _score(self, rows: list[Row]) -> None:
        """Score rows at once; if that fails, find those that cannot be scored by halves."""
        if not rows:
            return
        numbers, cells = [number for number, _ in rows], [fields for _, fields in rows]
        try:
            judged = self._plainly(cells) or self._closely(numbers, cells)
        except InvalidInputError as error:
            if len(rows) == 1:
                self.n_rows += 1
                self._refuse(numbers[0], error)
                return
            self._score(rows[: len(rows) // 2])
            self._score(rows[len(rows) // 2 :])
            return
        self.n_rows += len(rows)
        self._report(numbers, judged)

    def _plainly(self, cells: list[list[str]]) -> "Judged | None":
        """Score rows whose cells need no closer look; return None for others."""
        if not self.n_rows:
            return None  # warnings on the table are still to come
        if self.plain is None or self.plain[0] is not self.header:
            self.plain = self.header, self.model.plain_reader(self.header)
        reader = self.plain[1]
        rows = None if reader is None else reader.read(cells)
        if reader is None or rows is None:
            return None
        log = None
        if isinstance(self.model, StreamTable):
            scores, log = self.model.follow_plain(rows)
        else:
            scores = self.model.score_plain(rows)
        detector = self.model.detector_
        p_values, offset = p_values_of(scores, detector.conformal_), float(detector.offset_)
        results = [
            dict(
                zip(RESULTS, (score, p, None if math.isnan(score) else score < offset), strict=True)
            )
            for score, p in zip(scores.tolist(), p_values.tolist(), strict=True)
        ]
        beside = [dict(zip(reader.names, shown, strict=True)) for shown in rows.shown]
        return Judged(beside, results, [None] * len(cells), rows.runs, log)

    def _closely(self, numbers: list[int], cells: list[list[str]]) -> "Judged":
        """Score any rows, or raise an error if some cannot be scored."""
        frame = pd.DataFrame(cells, columns=self.header, index=numbers, dtype="string")
        if len(cells) > 1 and not self.model.schema_.reads_times(frame):
            raise TableError("Times that are not written as in training are read one by one.")
        without: list[str | None] = [None] * len(cells)
        runs = log = None
        if isinstance(self.model, StreamTable):
            scores, log = self.model.follow(frame)
            found = self.model.runs_in(scores)
            runs = None if found is None else found.tolist()
        else:
            scores = self.model.score_rows(frame)
            without = [names or None for names in self.model.judged_without(frame)]
        records = scores.to_dict("records")
        names = [name for name in scores.columns if name not in RESULTS]
        beside = [{name: record[name] for name in names} for record in records]
        results = [{name: record[name] for name in RESULTS} for record in records]
        return Judged(beside, results, without, runs, log)

    def _report(self, numbers: list[int], judged: "Judged") -> None:
        pairs = zip(numbers, judged.beside, judged.results, strict=True)
        if isinstance(self.reporter, StreamReporter) and judged.log is not None:
            rows = [{"row": n, "columns": beside, **results} for n, beside, results in pairs]
            self.reporter.report(rows, judged.runs, judged.log)
        elif isinstance(self.reporter, Reporter):
            taken = (*judged.beside[0], *RESULTS)
            row, without = free_name("row", taken), free_name("judged_without", taken)
            rows = [{row: n, **beside, **results} for n, beside, results in pairs]
            lost = zip(rows, judged.without, strict=True)
            self.reporter.report([one | {without: names} for one, names in lost], without)

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


def _is_utf8(line: bytes) -> bool:
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


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
