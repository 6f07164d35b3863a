"""Read later tables as training has settled it, and say what does not fit."""

import difflib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ocfuse.exceptions import CellsWarning, ColumnMismatchError, RowsWarning
from ocfuse.features import BECOMES, JUDGE, NEW_GAPS, NEW_VALUES, WAS_EMPTY
from ocfuse.tables import cells, times
from ocfuse.tables.cells import BoolArray
from ocfuse.tables.column import CATEGORY, EMPTY, NUMBER, Column
from ocfuse.tables.frames import Series, listed, pandas
from ocfuse.tables.kinds import about_infinity, advice, shown_row, shown_rows

#: Names, missing and new ones, that are compared in search of new spellings.
MOST_ASKED = 8
#: Cells of a category from which on numbers alone are another type, and not new categories.
SEVERAL = 20
#: What to do about such cells, in however many columns they are.
LEAVE_OUT = "Leave such rows out, or such cells empty: they are then judged by the others."
#: What is likely the matter with a table of one column.
ONE_COLUMN = (
    "Only one column was found: values are probably separated by something else. Say so, for "
    "instance delimiter=' '; only comma, semicolon, tab and bar are found without it."
)


@dataclass(frozen=True)
class Cells:
    """What was read from a column: values, what is wrong in words, and what has changed."""

    values: Any
    mistake: str = ""
    changes: list[CellsWarning.Change] = field(default_factory=list)


def read_cells(values: Series, column: Column, gaps: str = JUDGE) -> Cells:
    """Return the numbers or texts of a column; the policy of gaps is told with them."""
    readers = {NUMBER: _numbers, CATEGORY: _categories, EMPTY: _new_values}
    return readers[column.kind](values, column, NEW_GAPS + BECOMES[gaps])


def _new_values(values: Series, column: Column, gap: str) -> Cells:
    """Return the values of a column that had none in training."""
    words = cells.words(values)
    is_new = np.array([word is not None for word in words], dtype=bool)
    return Cells(np.array(words, dtype=object), changes=_changes(values, WAS_EMPTY, is_new, words))


def _numbers(values: Series, column: Column, gap: str) -> Cells:
    if cells.is_time_type(values.dtype):
        return Cells(None, f"{column.name} holds times, expected numbers")
    found, is_text = cells.numbers(values, column.format)
    if is_text.any():
        where = f"{column.name} holds no number in {shown_rows(values, is_text)}"
        return Cells(None, f"{where}. {advice(values, is_text, column.format)}".rstrip(". "))
    is_gap = np.isnan(found) & (not column.has_gaps)
    return Cells(found, changes=_changes(values, gap, is_gap))


def _categories(values: Series, column: Column, gap: str) -> Cells:
    is_code = all(category.lstrip("-").isdigit() for category in column.categories)
    if cells.is_time_type(values.dtype) or (cells.is_number_type(values.dtype) and not is_code):
        shown = shown_rows(values, values.notna().to_numpy(bool), most=1)
        return Cells(None, f"{column.name} holds {values.dtype}, expected text: {shown}")
    found = cells.words(values)
    known = set(column.categories)
    is_new = np.array([text is not None and text not in known for text in found], dtype=bool)
    if _are_numbers(values[is_new], column) and is_new.sum() == values.notna().sum():
        return Cells(None, f"{column.name} holds numbers, expected text: {_first(values, is_new)}")
    is_gap = np.array([text is None for text in found], dtype=bool) & (not column.has_gaps)
    changes = _changes(values, NEW_VALUES, is_new, found) + _changes(values, gap, is_gap)
    return Cells(np.array(found, dtype=object), changes=changes)


def _are_numbers(new: Series, column: Column) -> bool:
    """Tell whether cells of a category are of another type: several, and numbers throughout."""
    if len(new) < SEVERAL or cells.numbers(new)[1].any():
        return False
    return bool(cells.numbers(pandas().Series(column.categories, dtype=object))[1].all())


def _changes(
    values: Series, what: str, chosen: BoolArray, words: list[str | None] | None = None
) -> list[CellsWarning.Change]:
    """Return what is to be told of some cells of a column, or nothing."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return []
    told = () if words is None else tuple(sorted({str(words[i]) for i in rows}))
    first = f"row {values.index[rows[0]]}"
    return [CellsWarning.Change(str(values.name), what, told, len(rows), first)]


def _first(values: Series, chosen: BoolArray) -> str:
    return shown_row(values, int(np.flatnonzero(chosen)[0]))


def about_cells(values: Series, found: Any, column: Column) -> str:
    """Return what is to be said of infinity, or nothing."""
    return about_infinity(values, found) if column.kind == NUMBER else ""


def new_gaps(values: Series, column: Column) -> BoolArray:
    """Tell which cells are gaps where training had none."""
    if column.has_gaps or column.kind == EMPTY or cells.is_time_type(values.dtype):
        return np.zeros(len(values), dtype=bool)
    if column.kind == NUMBER:
        found, is_text = cells.numbers(values, column.format)
        return np.isnan(found) & ~is_text
    return np.array([text is None for text in cells.words(values)], dtype=bool)


def unusable(values: Series, column: Column, gaps: bool) -> BoolArray:
    """Tell which cells keep their rows from being scored: text, infinity, perhaps new gaps."""
    is_refused = new_gaps(values, column) if gaps else np.zeros(len(values), dtype=bool)
    if column.kind != NUMBER or cells.is_time_type(values.dtype):
        return is_refused  # times are another column altogether, not some cells
    found, is_text = cells.numbers(values, column.format)
    return is_refused | is_text | np.isinf(found)


def read_times(values: Series, column: Column) -> tuple[Series, BoolArray, list[RowsWarning]]:
    """Return times, which cells are none though they hold something, and what is odd."""
    said = np.array([word is not None for word in cells.words(values)], dtype=bool)
    found = times.times(values, column.format, column.utc)
    if said.any() and bool(found[said].isna().all()):
        found = _times_of_another_format(values, column, found)
    lost = said & found.isna().to_numpy()
    is_other = said & ~lost & (times.zones(values) != column.utc) & (column.format != times.NUMBER)
    odd = {
        "cells that are no times as in training; they are shown as they are": lost,
        f"times {'without' if column.utc else 'with'} a time zone, unlike in training; they are "
        f"{'taken for' if column.utc else 'shown in'} UTC": is_other,
    }
    news = [
        RowsWarning(f"Column {column.name!r} holds {what}", int(rows.sum()), _first(values, rows))
        for what, rows in odd.items()
        if rows.any()
    ]
    return found, lost, news


def _times_of_another_format(values: Series, column: Column, found: Series) -> Series:
    """Return times that are not written as in training, if it is clear how; else those found."""
    words = [word for word in cells.words(values) if word is not None]
    formats = times.settled_formats(words)
    return times.times(values, formats[0], column.utc) if len(formats) == 1 else found


def mismatch(
    missing: list[str], extra: list[str], wrong: list[str], n_columns: int
) -> ColumnMismatchError:
    """Return the error that tells at once all that does not fit."""
    parts = ["The columns of the table are not those of training."]
    parts += [f"Missing: {listed(missing)}."] if missing else []
    parts += [f"Of another type: {listed(wrong)}."] if wrong else []
    parts += [f"Extra: {listed(extra)}."] if extra else []
    parts += [ONE_COLUMN] if n_columns == 1 < len(missing) else _likely_names(missing, extra)
    error = ColumnMismatchError(" ".join(parts))
    error.missing, error.extra, error.wrong = tuple(missing), tuple(extra), tuple(wrong)
    return error


def _likely_names(missing: list[str], extra: list[str]) -> list[str]:
    """Return questions about columns that may have got another name; a few are enough."""
    by_small = {name.lower(): name for name in extra[:MOST_ASKED]}
    questions = []
    for name in missing[:MOST_ASKED]:
        near = difflib.get_close_matches(name.lower(), list(by_small), n=1)
        questions += [
            f"Is {by_small[other]!r} the column {name!r}? Then rename it." for other in near
        ]
    return questions
