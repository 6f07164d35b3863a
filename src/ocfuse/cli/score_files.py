"""Lines in, from stdin or a growing file; scored rows; score files out, complete or not at all."""

import codecs
import gzip
import io
import os
import queue
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, TypeAlias, cast

import pandas as pd

from ocfuse.cli.options import score_format
from ocfuse.cli.output import json_line, print_at_once
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.system.files import naming, opened, replacing
from ocfuse.tables import Source, TableDetector
from ocfuse.tables.cells import no_formula
from ocfuse.tables.dataframes import Frame, Series, free_name, pandas
from ocfuse.tables.source import ParquetWriter
from ocfuse.tables.text import FALLBACK, NO_TEXT, UTF16_MARKS

#: Bytes that are read at once.
BLOCK = 65_536
#: Bytes of a line beyond which the input is no table.
LONGEST_LINE = 2**22
#: Seconds between two looks at a file.
PAUSE = 0.2

#: Text that is a number, with a sign or without.
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
#: How dates are written.
DATE = "%Y-%m-%d %H:%M:%S.%f"
#: Writes the next rows.
Write: TypeAlias = Callable[[Frame], None]


def lines_of_stdin() -> Iterator[list[bytes]]:
    """Yield complete lines as soon as they are there, and the last one in any case.

    An empty list comes when there are none: who waits can look at the clock.
    """
    blocks: queue.Queue[bytes] = queue.Queue(maxsize=1)
    # somebody else waits: on no system can all kinds of input be asked whether there is more
    threading.Thread(target=_pass_on, args=(_stdin_reader(), blocks), daemon=True).start()
    rest = b""
    while True:
        try:
            block = blocks.get(timeout=PAUSE)
        except queue.Empty:
            yield []
            continue
        if not block:
            break
        lines, rest = _split(rest + block)
        yield lines
    if rest:
        yield [rest]


def _stdin_reader() -> Callable[[], bytes]:
    """Return what reads what is there, and nobody waits for a full block."""
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:  # not the real one
        return lambda: cast(io.BufferedReader, sys.stdin.buffer).read1(BLOCK)
    # not by sys.stdin: its lock would be held by the thread when the program ends
    return lambda: os.read(descriptor, BLOCK)


def _pass_on(read: Callable[[], bytes], blocks: "queue.Queue[bytes]") -> None:
    while True:
        try:
            block = read()
        except OSError:  # a terminal that was closed
            block = b""
        blocks.put(block)
        if not block:
            return


def lines_of_file(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of a file."""
    with path.open("rb") as file:
        yield from _lines(lambda: file.read(BLOCK))


def lines_of_growing_file(path: Path, tell: Callable[[str], None]) -> Iterator[list[bytes]]:
    """Yield complete lines as they are written, without end; an empty list when there are none.

    A last line without its end is waited for. When the name stands for another file,
    the old one is read to its end first; when a file was cut, it is read from its start.

    Parameters
    ----------
    path : Path
        The file.
    tell : callable
        Told when the file was replaced or cut.

    Yields
    ------
    list of bytes
        Lines.
    """
    while True:
        with path.open("rb", buffering=0) as file:
            yield from _until_replaced(path, file, tell)
        tell(f"{path} was replaced; reading the new file")


def _until_replaced(
    path: Path, file: BinaryIO, tell: Callable[[str], None]
) -> Iterator[list[bytes]]:
    rest = b""
    is_replaced = False
    while True:
        block = file.read(BLOCK)
        if block:
            lines, rest = _split(rest + block)
            yield lines
        elif is_replaced:
            yield [rest] if rest else []
            return
        elif os.fstat(file.fileno()).st_size < file.tell():
            tell(f"{path} was cut; reading it from its start")
            file.seek(0)
            rest = b""
        else:
            yield []
            # once more from the old file: it may have grown before it was replaced
            is_replaced = _is_other(path, file)
            if not is_replaced:
                time.sleep(PAUSE)


def _is_other(path: Path, file: BinaryIO) -> bool:
    """Tell whether the name stands for another file by now; not while there is none."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _lines(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    rest = b""
    while block := read():
        lines, rest = _split(rest + block)
        yield lines
    if rest:
        yield [rest]


def _split(text: bytes) -> tuple[list[bytes], bytes]:
    *lines, rest = text.split(b"\n")
    if len(rest) > LONGEST_LINE:
        raise InvalidInputError(
            f"A line is longer than {LONGEST_LINE:,} bytes. Expected a row of a table per line."
        )
    return lines, rest


def require_text(first: bytes) -> None:
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


def to_text(line: bytes) -> tuple[str, bool]:
    """Return a line without its end, and whether it is in UTF-8; else it is Windows-1252."""
    plain = line.removeprefix(codecs.BOM_UTF8).strip(b"\r\n")
    try:
        return plain.decode(), True
    except UnicodeDecodeError:
        return plain.decode(FALLBACK, errors="replace"), False


def scored(
    model: TableDetector,
    frame: pd.DataFrame,
    *,
    keep_going: bool = False,
    why: bool | str = False,
    most_explained: int | None = None,
) -> pd.DataFrame:
    """Return scores that begin with the numbers of the rows; a stream goes on with them."""
    scores = model.score_rows(frame, keep_going=keep_going, why=why, most_explained=most_explained)
    scores.insert(0, free_name("row", scores.columns), scores.index)
    return scores


def scored_chunks(
    model: TableDetector, source: Source, *, keep_going: bool = False, why: bool | str = False
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield rows and their scores, with reasons of as many rows as a table may have."""
    left = model.most_explained if why else 0
    for chunk in model.in_order(source.chunks()):
        scores = scored(model, chunk, keep_going=keep_going, why=why, most_explained=left)
        if why:
            explained = scores["score"].notna() if why == "all" else scores["is_anomaly"]
            left = max(left - int(explained.sum()), 0)
        yield chunk, scores


class Writer(Protocol):
    """What writes frames to an open file."""

    def write(self, frame: Frame) -> None:
        """Write the next rows."""

    def close(self) -> None:
        """Write what belongs at the end."""


class TextWriter:
    """Write frames as text.

    Parameters
    ----------
    put : callable
        Takes text.
    to_text : callable
        Makes text of a frame, told whether it is the first.
    """

    def __init__(self, put: Callable[[str], Any], to_text: Callable[[Frame, bool], str]) -> None:
        self.put = put
        self.to_text = to_text
        self.is_first = True

    def write(self, frame: Frame) -> None:
        """Write the next rows, the first ones below a header if there is one."""
        self.put(self.to_text(frame, self.is_first))
        self.is_first = False

    def close(self) -> None:
        """Write nothing: text has no end."""


def to_csv(frame: Frame, is_first: bool, delimiter: str = ",") -> str:
    """Return rows as CSV; text that a spreadsheet would take for a formula begins with '."""
    rows = frame.apply(_as_text).rename(columns=no_formula)
    return str(rows.to_csv(index=False, header=is_first, sep=delimiter, lineterminator="\n"))


def _as_text(column: Series) -> Series:
    """Return dates as text in one form; pandas would look which one suits all rows of a chunk."""
    types = pandas().api.types
    if not types.is_datetime64_any_dtype(column.dtype):
        is_number = types.is_numeric_dtype(column.dtype)  # so is truth
        return column if is_number else column.map(_safe)
    if column.dt.tz is None:
        return column.dt.strftime(DATE)
    return column.dt.tz_convert("UTC").dt.strftime(f"{DATE}+00:00")


def _safe(cell: object) -> object:
    """Return text that is no formula; text that is a number, such as -1.5, says no more."""
    if not isinstance(cell, str) or NUMBER.fullmatch(cell):
        return cell
    return no_formula(cell)


def to_tsv(frame: Frame, is_first: bool) -> str:
    """Return rows separated by tabs."""
    return to_csv(frame, is_first, "\t")


def to_json_lines(frame: Frame, is_first: bool) -> str:
    """Return a line of JSON per row."""
    clean = frame.astype(object).where(frame.notna(), None)
    return "".join(json_line(row) for row in clean.to_dict("records"))


TEXT = {".csv": to_csv, ".tsv": to_tsv, ".jsonl": to_json_lines, ".ndjson": to_json_lines}


@contextmanager
def to_stdout(as_json: bool) -> Iterator[Write]:
    """Give what writes rows to stdout, flushed with every chunk.

    Parameters
    ----------
    as_json : bool
        Lines of JSON instead of CSV.

    Yields
    ------
    callable
        Writes the next rows.
    """
    yield TextWriter(print_at_once, to_json_lines if as_json else to_csv).write


@contextmanager
def to_file(path: Path) -> Iterator[Write]:
    """Give what writes rows to a file, which appears under its name when it is complete."""
    target = Path(os.path.realpath(path))
    # a pipe or a device is written to; what is renamed onto it would replace it
    place = opened(target, "wb", path) if _is_special(target) else replacing(target, path)
    with place as file:
        writer = _writer(path, file)

        def write(frame: Frame) -> None:
            with naming(path):
                writer.write(frame)

        try:
            yield write
        except BaseException:
            with suppress(Exception):
                writer.close()
            raise
        with naming(path):
            writer.close()


def _writer(path: Path, file: IO[bytes]) -> Writer:
    kind = score_format(path)
    if kind == ".parquet":
        return ParquetWriter(file)
    if path.suffix.lower() == ".gz":
        return TextWriter(
            lambda text: file.write(gzip.compress(text.encode(), mtime=0)), TEXT[kind]
        )
    return TextWriter(lambda text: file.write(text.encode()), TEXT[kind])


def _is_special(path: Path) -> bool:
    return path.exists() and not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
