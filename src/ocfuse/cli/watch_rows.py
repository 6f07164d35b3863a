"""Rows as `ocfuse watch` has them: lines from stdin or a growing file, scored as they come.

Lines hold CSV, or a JSON object each; rows of a Parquet file come as the text of their cells.

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
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import numpy as np
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
from ocfuse.system.bags import is_recording
from ocfuse.tables import TableDetector, open_source
from ocfuse.tables.cells import PlainReader, rows_of_text
from ocfuse.tables.dataframes import free_name, require_distinct
from ocfuse.tables.detector import RESULTS, RULE
from ocfuse.tables.json_lines import read_object
from ocfuse.tables.mqtt import lines_of_topic
from ocfuse.tables.open import BINARY, kind
from ocfuse.tables.text import (
    CUT_OFF,
    DELIMITERS,
    FALLBACK,
    NO_TEXT,
    UTF16_MARKS,
    decompressed,
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
#: A line of text, or the values of a row of a file that has no lines.
Line: TypeAlias = bytes | list[str]


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
    with path.open("rb") as raw, decompressed(raw, path) as file:
        try:
            while block := file.read(BLOCK):
                lines, rest = _split_lines(rest + block)
                yield lines
        except CUT_OFF as error:
            raise TableError(f"{path.name} is cut off or damaged ({error}).") from None
    if rest:
        yield [rest]


def rows_of_table(path: Path, topic: str | None) -> Iterator[list[list[str]]]:
    """Yield the column names of a table that is no text, or of a folder, and then its rows.

    Yields
    ------
    list of list of str
        Rows as cells; at first the names alone.
    """
    source = open_source(path, chunk_rows=MOST_ROWS, topic=topic)
    yield [source.columns]
    for frame in source.chunks():
        yield rows_of_text(frame)


def has_lines(path: Path) -> bool:
    """Return whether a file is read line by line, as text is."""
    return not path.is_dir() and kind(path) not in BINARY and not is_recording(path)


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


def batches(source: Iterator[Sequence[Line]]) -> Iterator[list[Line]]:
    """Yield lines that wait together, at most `MOST_ROWS` of them; an empty list for none.

    An empty list of the source says that all that is there has been read.
    """
    waiting: list[Line] = []
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
    """Score the lines of a table; the first one names the columns, unless they are given.

    A later line that names all columns of the model is a header again: files are replaced. JSON
    objects name their columns each; a name that one does not have is a gap.
    """

    model: TableDetector
    reporter: Reporter | StreamReporter
    delimiter: str | None = None  # None finds it out, as of the decimal separator
    decimal: str | None = None
    columns: Sequence[str] | None = None  # of CSV without a line of names
    topic: str | None = None  # of a recording by ROS
    form: Literal["CSV", "JSON", "values"] | None = None  # None until the first line
    header: list[str] = field(default_factory=list)
    wanted: frozenset[str] | None = None  # names that make a line a header
    absent: frozenset[str] = frozenset()  # names of the model that the header has not
    plain: tuple[list[str], PlainReader | None] | None = None  # for rows below a header
    is_utf8: bool = True  # all lines so far
    n_rows: int = 0
    n_bad: int = 0  # rows that could not be scored

    def run(self, data: str, *, follow: bool, only_new: bool, quiet: bool) -> None:
        """Score all rows of a file, of an address, or of stdin for ``-``, and report the sum."""
        self.watch(self._source(data, follow, quiet), only_new=only_new)

    def _source(self, data: str, follow: bool, quiet: bool) -> Iterator[Sequence[Line]]:
        is_table = data != "-" and "://" not in data and not has_lines(Path(data))
        if self.topic is not None and not is_table:
            raise InvalidInputError(
                f"--topic is for recordings by ROS, or pictures (--video). Got {data!r}: leave it "
                "out."
            )
        notify: Callable[[str], None] = (lambda text: None) if quiet else warn
        if data == "-":
            return lines_of_stdin()
        if "://" in data:
            return lines_of_topic(data, notify, PAUSE)
        if is_table:
            if follow or self.columns is not None:
                flag = "--follow" if follow else "--columns"
                raise InvalidInputError(
                    f"{data} is no text: it does not grow, and names its columns. Leave {flag} out."
                )
            return rows_of_table(Path(data), self.topic)
        if follow:
            return lines_of_growing_file(Path(data), notify)
        return lines_of_file(Path(data))

    def watch(self, source: Iterator[Sequence[Line]], *, only_new: bool = False) -> None:
        """Score all rows of lines as they come, until they end, and report the sum."""
        has_failed = False
        try:
            self._take_all(source, only_new)
        except Terminated:
            pass  # this is how a service is stopped
        except (InvalidInputError, OSError):
            has_failed = True
            raise
        finally:
            self.reporter.end(self.n_rows, self.n_bad, has_failed=has_failed)

    def _take_all(self, source: Iterator[Sequence[Line]], only_new: bool) -> None:
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
        if not self.header and self.form == "JSON":
            raise TableError("No row has the columns of the model. See what is said of each.")
        if not self.header:
            raise TableError("There is no header line. Expected the names of the columns first.")

    def _parts(self, lines: list[Line]) -> Iterator[list[Line]]:
        """Yield lines, one by one up to the first row: warnings on the table are on that one."""
        n = 0
        while n < len(lines) and not self.n_rows:
            yield lines[n : n + 1]
            n += 1
        yield lines[n:]

    def take(self, lines: Iterable[Line], *, skip: bool = False) -> None:
        """Score the next lines at once, or only count them."""
        rows: list[Row] = []
        for line in lines:
            if not line or (isinstance(line, bytes) and line.isspace()):
                continue
            if not self.header and self._begin(line):
                continue
            if self.is_utf8 and isinstance(line, bytes) and not _is_utf8(line):
                self._score(rows)  # what is told of them comes before the warning
                rows.clear()
            try:
                fields = self._fields(line)
            except InvalidInputError as error:
                self._score(rows)  # in the order in which they came
                rows.clear()
                if not skip:
                    self._refuse(self.n_rows, error)
                self.n_rows += 1
                continue
            for _, earlier in rows:  # of JSON objects with fewer names
                earlier += [""] * (len(fields) - len(earlier))
            if self.form == "CSV" and self._names_columns(fields):
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

    def _begin(self, line: Line) -> bool:
        """Find out how rows are written; return whether the line is none, but names columns."""
        if isinstance(line, list):
            self.form = "values"
            self._name_columns(line)
            return True
        _require_text(line)
        text = self._text(line)
        if self.form == "JSON" or text.lstrip().startswith("{"):
            self.form = "JSON"
            if self.columns is not None:
                raise TableError("JSON objects name their columns each. Leave --columns out.")
            return False
        self.form = "CSV"
        named = separator_line(text)
        if named is not None:
            self.delimiter = self.delimiter or named
            return True
        self.delimiter = self.delimiter or self._find_delimiter(text)
        if self.columns is not None:
            self._name_columns(list(self.columns))
            return False
        self._name_columns(_names(_fields(text, self.delimiter)))
        return True

    def _name_columns(self, names: list[str]) -> None:
        require_distinct(names, "The first line" if self.columns is None else "--columns")
        if not self._names_columns(names):
            # raises an error that names the missing columns
            self.model.schema_.check(pd.DataFrame(columns=names))
        self.header = names
        known = (column.name for column in self.model.schema_.columns)
        self.absent = frozenset(known).difference(names)

    def _fields(self, line: Line) -> list[str]:
        """Return the values of a row, in the order of the columns."""
        if isinstance(line, list):
            return line
        text = self._text(line)
        if self.form == "JSON":
            return self._cells(read_object(text))
        fields = _fields(text, str(self.delimiter))
        if len(fields) != len(self.header):
            n_names = len(self.header)
            what = "the header" if self.columns is None else "--columns"
            raise TableError(f"It has {len(fields)} values, {what} {n_names} names.")
        return fields

    def _cells(self, row: dict[str, str]) -> list[str]:
        """Return the cells of a JSON object; the first that has all columns settles these."""
        if not self.header:
            self._name_columns(list(row))
        elif self.wanted is not None and self.wanted.isdisjoint(row):
            self.model.schema_.check(pd.DataFrame(columns=list(row)))  # says what is missing
        new = self.absent.intersection(row)
        if new:  # such as a time that not all rows have
            self._name_columns([*self.header, *sorted(new)])
        return [row.get(name, "") for name in self.header]

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
        """Return the separator by which most names are columns of the model, if it has names."""
        known = {column.name for column in self.model.schema_.columns}

        def n_known(delimiter: str) -> int:
            return len(known.intersection(*map(_names, head_records([header], delimiter))))

        if self.columns is not None:
            wanted = [len(self.columns)]
            widths = ((d, [len(row) for row in head_records([header], d)]) for d in DELIMITERS)
            return next((d for d, width in widths if width == wanted), ",")
        best = max(DELIMITERS, key=n_known)
        return best if n_known(best) else sniff_delimiter([header])

    def _names_columns(self, fields: list[str]) -> bool:
        """Return whether this is a header."""
        if self.wanted is None:
            self.wanted = frozenset(self.model.schema_.features)
        return self.wanted.issubset(_names(fields))

    def _with_point(self, fields: list[str]) -> list[str]:
        """Return the values of a row with decimal points; by the first comma all are read."""
        if self.form != "CSV":
            return fields
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
        limits = self.model.limits_
        if limits is not None:
            values = np.array([[row[j] for j in limits.places] for row in rows.X], dtype=np.float64)
            for result, rule in zip(results, limits.broken(values), strict=True):
                result |= {RULE: rule or None} | ({"is_anomaly": True} if rule else {})
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
        known = self.model.result_names
        names = [name for name in scores.columns if name not in known]
        beside = [{name: record[name] for name in names} for record in records]
        results = [{name: record[name] for name in known} for record in records]
        if RULE in known:
            for result in results:
                result[RULE] = None if pd.isna(result[RULE]) else result[RULE]
        return Judged(beside, results, without, runs, log)

    def _report(self, numbers: list[int], judged: "Judged") -> None:
        pairs = zip(numbers, judged.beside, judged.results, strict=True)
        if isinstance(self.reporter, StreamReporter) and judged.log is not None:
            rows = [{"row": n, "columns": beside, **results} for n, beside, results in pairs]
            self.reporter.report(rows, judged.runs, judged.log)
        elif isinstance(self.reporter, Reporter):
            taken = (*judged.beside[0], *self.model.result_names)
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
