"""Files that scores are written to, chunk by chunk: complete in the end, or not there at all."""

import gzip
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

from ocfuse.cli.output import json_line, print_at_once
from ocfuse.cli.targets import score_format
from ocfuse.files import naming, opened, replacing
from ocfuse.tables.cells import no_formula
from ocfuse.tables.frames import Frame, Series, pandas
from ocfuse.tables.writing import ParquetWriter

#: Text that is a number, with a sign or without.
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
#: How dates are written.
DATE = "%Y-%m-%d %H:%M:%S.%f"
#: Writes the next rows.
Write: TypeAlias = Callable[[Frame], None]


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
