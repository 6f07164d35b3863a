"""Scored rows, chunk by chunk, and score files, complete or not at all."""

import gzip
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import pandas as pd

from ocfuse.cli.options import score_format
from ocfuse.cli.output import json_line, print_at_once
from ocfuse.system.files import naming, opened, replacing
from ocfuse.tables import Source, TableDetector
from ocfuse.tables.cells import no_formula
from ocfuse.tables.dataframes import Frame, Series, free_name, pandas
from ocfuse.tables.source import ParquetWriter

#: Writes the next rows.
Write: TypeAlias = Callable[[Frame], None]


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


def to_csv(frame: Frame, is_first: bool, delimiter: str = ",") -> str:
    """Return rows as CSV; text that a spreadsheet would take for a formula begins with '."""
    rows = frame.apply(_as_text).rename(columns=no_formula)
    return str(rows.to_csv(index=False, header=is_first, sep=delimiter, lineterminator="\n"))


def _as_text(column: Series) -> Series:
    """Return dates as text in one form; pandas would look which one suits all rows of a chunk."""
    types = pandas().api.types
    if types.is_datetime64_any_dtype(column.dtype):
        form = "%Y-%m-%d %H:%M:%S.%f"
        if column.dt.tz is None:
            return column.dt.strftime(form)
        return column.dt.tz_convert("UTC").dt.strftime(f"{form}+00:00")
    is_number = types.is_numeric_dtype(column.dtype)  # so is truth
    return column if is_number else column.map(_safe)


def _safe(cell: object) -> object:
    """Return text that is no formula; text that is a number, such as -1.5, stays as it is."""
    number = r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?"
    if not isinstance(cell, str) or re.fullmatch(number, cell, re.ASCII):
        return cell
    return no_formula(cell)


def to_json_lines(frame: Frame, is_first: bool = False) -> str:
    """Return a line of JSON per row."""
    clean = frame.astype(object).where(frame.notna(), None)
    return "".join(json_line(row) for row in clean.to_dict("records"))


def to_stdout(as_json: bool) -> AbstractContextManager[Write]:
    """Return a context with what writes rows to stdout as JSON lines or CSV, flushed."""
    return nullcontext(TextWriter(print_at_once, to_json_lines if as_json else to_csv).write)


@contextmanager
def to_file(path: Path) -> Iterator[Write]:
    """Yield what writes rows to a file, which appears under its name when it is complete."""
    target = Path(os.path.realpath(path))
    is_there = target.exists() and not target.is_dir()
    # a pipe or a device is written to; what is renamed onto it would replace it
    is_special = is_there and not stat.S_ISREG(target.stat().st_mode)
    with opened(target, "wb", path) if is_special else replacing(target, path) as file:
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


def _writer(path: Path, file: IO[bytes]) -> "TextWriter | ParquetWriter":
    kind = score_format(path)
    if kind == ".parquet":
        return ParquetWriter(file)

    def put(text: str) -> None:
        content = text.encode()
        is_compressed = path.suffix.lower() == ".gz"
        file.write(gzip.compress(content, mtime=0) if is_compressed else content)

    if kind == ".tsv":
        return TextWriter(put, partial(to_csv, delimiter="\t"))
    return TextWriter(put, to_csv if kind == ".csv" else to_json_lines)


class TextWriter:
    """Write frames as text, which `to_text` makes of a frame and whether it is the first."""

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
