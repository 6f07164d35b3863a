"""The work of `ocfuse watch`: lines scored row by row, whatever comes."""

import csv
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import pandas as pd
import typer

from ocfuse.cli.decoding import require_text, to_text
from ocfuse.cli.lines import lines_of_file, lines_of_growing_file, lines_of_stdin
from ocfuse.cli.models import load_model
from ocfuse.cli.output import warn
from ocfuse.cli.scored import scored
from ocfuse.cli.signals import Terminated
from ocfuse.cli.streamtelling import StreamTeller, Wishes
from ocfuse.cli.telling import WITHOUT, Flags, Teller
from ocfuse.exceptions import (
    DriftWarning,
    InvalidInputError,
    OcfuseWarning,
    TableError,
    TableWarning,
)
from ocfuse.streaming import StreamTable
from ocfuse.tables import TableDetector
from ocfuse.tables.detector import ROWS
from ocfuse.tables.dialect import (
    DELIMITERS,
    head_records,
    records,
    separator_line,
    sniff_decimal,
    sniff_delimiter,
    with_point,
)
from ocfuse.tables.frames import require_distinct
from ocfuse.tables.names import free_name

__all__ = ["Flags", "Watch", "Wishes", "load_model", "run", "teller_of"]

#: Told once, at whatever line it shows.
NOT_UTF8 = (
    "The input is not in UTF-8 and is read as Windows-1252. If letters come out wrong, feed it in "
    "UTF-8."
)
#: Number and fields of a row.
Row: TypeAlias = tuple[int, list[str]]


class Observer(Protocol):
    """Who is told what comes."""

    @property
    def n_alarms(self) -> int:
        """Alarms so far."""

    @property
    def n_unknown(self) -> int:
        """Rows so far that may be anomalies, and were not watched."""

    def tell(self, scores: pd.DataFrame) -> None:
        """Take the scores of the next rows."""

    def complain(self, number: int, error: InvalidInputError) -> None:
        """Take the number of a row that cannot be scored, and why."""

    def begin(self) -> None:
        """Take note of another header."""

    def listen(self, has_come: bool) -> None:
        """Take note of whether something has come."""

    def end(self, n_rows: int, n_bad: int) -> None:
        """Take the number of rows, and of those that could not be scored."""


@dataclass
class Watch:
    """Score the lines of a table; the first one names the columns.

    A later line that names all columns of the model is a header again: files are replaced.

    Attributes
    ----------
    model : TableDetector
        Scores the rows.
    teller : Observer
        Is told what comes.
    delimiter, decimal : str or None
        What separates values, and what separates decimals; None to find out.
    header : list of str
        Names of the columns.
    is_utf8 : bool
        Whether all lines so far were.
    n_rows, n_bad : int
        Rows seen, and those among them that could not be scored.
    """

    model: TableDetector
    teller: Observer
    delimiter: str | None = None
    decimal: str | None = None
    header: list[str] = field(default_factory=list)
    is_utf8: bool = True
    n_rows: int = 0
    n_bad: int = 0

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
                fields = self._fields(line)
            except TableError as error:
                self._score(rows)  # in the order in which they came
                rows = []
                if not skip:
                    self._refuse(self.n_rows, error)
            else:
                if self._names_columns(fields):
                    self._score(rows)
                    self.header, rows = _names(fields), []
                    self.teller.begin()
                    continue
                if not skip:
                    rows.append((self.n_rows, fields))
            self.n_rows += 1
        self._score(rows)

    def _begin(self, line: bytes) -> None:
        """Take the first line, which has to name the columns; another one may name a separator."""
        require_text(line)
        text = self._text(line)
        named = separator_line(text)
        if named is not None:
            self.delimiter = self.delimiter or named
            return
        self.delimiter = self.delimiter or self._find_delimiter(text)
        names = _names(_split(text, self.delimiter))
        require_distinct(names, "The first line")
        if not self._names_columns(names):
            # the model says which columns it misses
            self.model.schema_.check(pd.DataFrame(columns=names))
        self.header = names

    def _fields(self, line: bytes) -> list[str]:
        fields = _split(self._text(line), str(self.delimiter))
        if len(fields) != len(self.header):
            raise TableError(f"It has {len(fields)} values, the header {len(self.header)} names.")
        return fields

    def _text(self, line: bytes) -> str:
        text, is_utf8 = to_text(line)
        if self.is_utf8 and not is_utf8:
            self.is_utf8 = False
            warnings.warn(NOT_UTF8, OcfuseWarning, stacklevel=2)
        return text

    def _find_delimiter(self, header: str) -> str:
        """Return the separator by which most names are columns of the model."""
        known = {column.name for column in self.model.schema_.columns}

        def n_known(delimiter: str) -> int:
            return len(known.intersection(*map(_names, head_records([header], delimiter))))

        best = max(DELIMITERS, key=n_known)
        return best if n_known(best) else sniff_delimiter([header])

    def _names_columns(self, fields: list[str]) -> bool:
        """Tell whether this is a header."""
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
        self.teller.tell(scores)

    def _scored(self, rows: list[Row]) -> pd.DataFrame:
        """Return scores, and beside them which columns a row is judged without."""
        frame = self._frame(rows)
        scores = scored(self.model, frame)
        if self.model.kind == ROWS:  # gaps of sensors are usual
            without = [names or None for names in self.model.judged_without(frame)]
            scores[free_name(WITHOUT, scores)] = pd.Series(without, scores.index, dtype=object)
        return scores

    def _frame(self, rows: list[Row]) -> pd.DataFrame:
        cells = [fields for _, fields in rows]
        if self.decimal is None and sniff_decimal(cells, str(self.delimiter), "The row") == ",":
            self.decimal = ","  # for good: not every row shows it
        if self.decimal == ",":
            cells = [with_point(fields) for fields in cells]
        numbers = [number for number, _ in rows]
        return pd.DataFrame(cells, columns=self.header, index=numbers, dtype="string")

    def _refuse(self, number: int, error: InvalidInputError) -> None:
        self.n_bad += 1
        self.teller.complain(number, error)


def _split(text: str, delimiter: str) -> list[str]:
    try:
        (fields,) = records([text], delimiter)
    except csv.Error as error:
        raise TableError(f"It cannot be read: {error}.") from None
    return list(fields)


def _names(fields: list[str]) -> list[str]:
    """Return the names of columns, as `open_source` has them."""
    return [name.strip() or f"Unnamed: {j}" for j, name in enumerate(fields)]


def teller_of(model: TableDetector, wishes: Wishes, flags: Flags, is_live: bool) -> Observer:
    """Return who tells of the rows: alarms one by one, or events of a stream."""
    if isinstance(model, StreamTable):
        return StreamTeller(model, wishes, flags, is_live)
    if wishes != Wishes():
        raise typer.BadParameter(
            "--leave, --min-rows, --timeout and --events are for streams of sensors. The model "
            "knows rows that stand alone; learn one with ocfuse fit --stream."
        )
    return Teller(model, flags)


def run(watch: Watch, data: str, *, follow: bool, only_new: bool, quiet: bool) -> None:
    """Score what comes until it ends, and say how much it was."""
    try:
        _take_all(watch, _source(data, follow, quiet), only_new)
    except Terminated:
        pass  # this is how a service is stopped
    finally:
        watch.teller.end(watch.n_rows, watch.n_bad)


def _source(data: str, follow: bool, quiet: bool) -> Iterator[list[bytes]]:
    if data == "-":
        return lines_of_stdin()
    if follow:
        return lines_of_growing_file(Path(data), lambda text: None if quiet else warn(text))
    return lines_of_file(Path(data))


def _take_all(watch: Watch, source: Iterator[list[bytes]], only_new: bool) -> None:
    skip = only_new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)  # one of the things that are told
        for lines in source:
            # an empty list: what was there has been read
            skip = skip and bool(lines)
            watch.teller.listen(bool(lines))
            watch.take(lines, skip=skip)
            if lines:
                watch.teller.listen(True)  # to score them is not to wait
            if watch.n_rows:
                # what is odd about the table has been told; odd rows are alarms
                warnings.simplefilter("ignore", TableWarning)
    if not watch.header:
        raise TableError("There is no header line. Expected the names of the columns first.")
