"""Scored rows, chunk by chunk, and score files, complete or not at all."""

import gzip
import math
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
from ocfuse.streaming import StreamTable
from ocfuse.streaming.clock import check_times
from ocfuse.streaming.table import as_times
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


class EventCount:
    """Count events, runs and hours of the scored rows of a stream; events as in `ocfuse watch`."""

    def __init__(self, model: StreamTable) -> None:
        self._model, self._tracker = model, model.stream_.tracker()
        clock = (c.name for c in model.schema_.columns if c.kind == "time")
        self._clock, self._run = next(clock, None), ""
        self._span: list[float] = []  # first and last time of the run
        self._n_events = self._n_runs = 0
        self._seconds = 0.0

    def add(self, scores: Frame) -> None:
        """Count the next rows."""
        column, n = self._model.runs_in(scores), len(scores)
        runs = [""] * n if column is None else column.astype(str).tolist()
        has_times = self._clock in scores.columns
        times = check_times(as_times(scores[self._clock]) if has_times else None, n)
        seconds = [math.nan] * n if times is None else times.tolist()
        for run, time, score in zip(runs, seconds, scores["score"].tolist(), strict=True):
            if run != self._run or not self._n_runs:
                self._run, self._tracker = run, self._model.stream_.tracker()
                self._n_runs += 1
                self._end_run()
            if math.isfinite(time):
                low, high = self._span or (time, time)
                self._span = [min(low, time), max(high, time)]
            was_on = self._tracker.is_on
            self._tracker.update(score)
            self._n_events += self._tracker.is_on and not was_on

    def summary(self) -> dict[str, Any]:
        """Return the numbers; `hours` is None without times."""
        self._end_run()
        hours = round(self._seconds / 3600, 4) if self._clock is not None else None
        return {"events": self._n_events, "runs": self._n_runs, "hours": hours}

    def _end_run(self) -> None:
        if self._span:
            self._seconds += self._span[1] - self._span[0]
        self._span = []


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
