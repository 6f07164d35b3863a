"""Rows of a table as a stream detector takes them."""

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import RowsWarning, TableError
from ocfuse.streaming.view import MOST_MISSING
from ocfuse.tables.cells import numbers
from ocfuse.tables.frames import Frame, Series
from ocfuse.tables.kinds import shown_rows
from ocfuse.tables.names import FILE
from ocfuse.tables.schema import Schema

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

#: Rows from which on a channel without any number is another column, and not a sensor that fails.
SEVERAL = 20
#: What is told of cells that a sensor wrote while it could not measure.
UNREADABLE = "Rows with cells that are no numbers, which count as missing"
#: What is told of rows that nobody knows where to compare.
WITHOUT_CONTEXT = "Rows without a context, which have no score"


@dataclass(frozen=True)
class Samples:
    """Rows of a table as a stream detector takes them.

    Attributes
    ----------
    X : ndarray of shape (n, c)
        Values of the channels, NaN for gaps.
    runs : list of str or None
        Run of each row.
    times : Series or None
        Numbers or dates, as they are shown.
    context : ndarray of shape (n,) or None
        Context of each row, NaN where it is not known.
    unreadable : int
        Rows with cells that hold something, but no number.
    """

    X: FloatArray
    runs: list[str] | None
    times: Series | None
    context: FloatArray | None
    unreadable: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Rows with cells that are no numbers, with most channels empty, without a context."""
        context = np.zeros(0) if self.context is None else self.context
        empty = np.isnan(self.X).sum(axis=1) > MOST_MISSING * self.X.shape[1]
        return {
            "unreadable": self.unreadable,
            "empty": int(np.sum(empty)),
            "context": int(np.isnan(context).sum()),
        }

    @property
    def time(self) -> Any:
        """Times as an array."""
        return as_times(self.times)

    @property
    def beside(self) -> tuple[Any, Any, Any]:
        """Runs, times and context, in the order of `StreamDetector.fit`."""
        return self.runs, self.time, self.context

    def stretch(self, rows: slice) -> tuple[Any, Any, Any]:
        """Return channels, times and context of some rows."""
        time = self.time
        return (
            self.X[rows],
            None if time is None else time[rows],
            None if self.context is None else self.context[rows],
        )


def as_times(times: Series | None) -> Any:
    """Return times as an array, dates in UTC; None if there are none."""
    if times is None:
        return None
    is_tied = getattr(times.dtype, "tz", None) is not None
    return (times.dt.tz_convert(None) if is_tied else times).to_numpy()


def read_samples(
    schema: Schema, context: str | None, table: Frame, *, to_learn: bool = False
) -> Samples:
    """Return the rows of a table; a cell that holds no number counts as missing."""
    X, is_strange = _channels(schema, table)
    _tell(UNREADABLE, table, is_strange)
    return Samples(
        X,
        runs_of(schema, table),
        schema.times_of(table),
        None if context is None else _context_of(table, context, to_learn),
        int(is_strange.sum()),
    )


def _tell(what: str, table: Frame, chosen: BoolArray) -> None:
    if chosen.any():
        first = f"row {table.index[int(np.flatnonzero(chosen)[0])]}"
        warnings.warn(RowsWarning(what, int(chosen.sum()), first), stacklevel=4)


def runs_of(schema: Schema, table: Frame) -> list[str] | None:
    """Return the run of every row, or None if nothing tells it: then all are one."""
    groups = schema.groups_of(table)
    if groups is None and FILE in table.columns:
        return [str(name) for name in table[FILE]]
    return groups


def _channels(schema: Schema, table: Frame) -> tuple[FloatArray, BoolArray]:
    """Return the values of the channels, and which rows have cells that are no numbers."""
    columns = table.columns.get_indexer(schema.features)
    if (columns < 0).any():
        schema.check(table.iloc[:0])  # says which are missing
    try:
        # at once: row by row, a column at a time would take longer than the score
        X = table.to_numpy(object)[:, columns].astype(np.float64)
        is_text = np.zeros(X.shape, dtype=bool)
    except (TypeError, ValueError):
        read = [numbers(table[name]) for name in schema.features]
        X = np.column_stack([values for values, _ in read])
        is_text = np.column_stack([text for _, text in read])
        if len(X) >= SEVERAL and (is_text.any(axis=0) & np.isnan(X).all(axis=0)).any():
            schema.check(table)  # says which columns are of another type
    is_strange = is_text | np.isinf(X)
    return np.where(is_strange, np.nan, X), is_strange.any(axis=1)


def _context_of(table: Frame, name: str, to_learn: bool) -> FloatArray:
    """Return the context of the rows; to learn from, every one needs it."""
    if name not in table.columns:
        raise TableError(
            f"The column {name!r} is missing, which the model takes for the context of the rows."
        )
    values, _ = numbers(table[name])
    gone = ~np.isfinite(values)
    if to_learn and gone.any():
        raise TableError(
            f"Column {name!r} is the context of the rows, but holds no number in "
            f"{shown_rows(table[name], gone)}. Every row that is learned from needs one."
        )
    _tell(WITHOUT_CONTEXT, table, gone)
    return np.where(gone, np.nan, values)
