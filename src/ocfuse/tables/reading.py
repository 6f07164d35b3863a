"""Read later tables as training has settled it, and say what does not fit."""

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.exceptions import ColumnMismatchError, RowsWarning
from ocfuse.tables import cells, times
from ocfuse.tables.cells import BoolArray
from ocfuse.tables.column import NUMBER, Column
from ocfuse.tables.frames import Series, listed, pandas
from ocfuse.tables.kinds import about_infinity, advice, shown_row, shown_rows

#: Names, missing and new ones, that are compared in search of new spellings.
MOST_ASKED = 8
#: Cells of a category from which on numbers alone are another type, and not new categories.
SEVERAL = 20
#: What to do about such cells, in however many columns they are.
FILL = "Leave such rows out or fill such cells by a rule of your own, or train on rows with gaps."
#: What is likely the matter with a table of one column.
ONE_COLUMN = (
    "Only one column was found: values are probably separated by something else. Say so, for "
    "instance delimiter=' '; only comma, semicolon, tab and bar are found without it."
)


@dataclass(frozen=True)
class Cells:
    """What was read from a column: values, what is wrong in words, and what is new."""

    values: Any
    mistake: str = ""
    news: RowsWarning | None = None


def read_cells(values: Series, column: Column) -> Cells:
    """Return the numbers or texts of a column."""
    return _numbers(values, column) if column.kind == NUMBER else _categories(values, column)


def _numbers(values: Series, column: Column) -> Cells:
    if cells.is_time_type(values.dtype):
        return Cells(None, f"{column.name} holds times, expected numbers")
    found, is_text = cells.numbers(values)
    if is_text.any():
        where = f"{column.name} holds no number in {shown_rows(values, is_text)}"
        return Cells(None, f"{where}. {advice(values, is_text)}".rstrip(". "))
    return Cells(found)


def _categories(values: Series, column: Column) -> Cells:
    is_code = all(category.lstrip("-").isdigit() for category in column.categories)
    if cells.is_time_type(values.dtype) or (cells.is_number_type(values.dtype) and not is_code):
        shown = shown_rows(values, values.notna().to_numpy(bool), most=1)
        return Cells(None, f"{column.name} holds {values.dtype}, expected text: {shown}")
    found = cells.words(values)
    known = set(column.categories)
    is_new = np.array([text is not None and text not in known for text in found], dtype=bool)
    if _are_numbers(values[is_new], column) and is_new.sum() == values.notna().sum():
        return Cells(None, f"{column.name} holds numbers, expected text: {_first(values, is_new)}")
    return Cells(np.array(found, dtype=object), news=_news(values, is_new))


def _are_numbers(new: Series, column: Column) -> bool:
    """Tell whether cells of a category are of another type: several, and numbers throughout."""
    if len(new) < SEVERAL or cells.numbers(new)[1].any():
        return False
    return bool(cells.numbers(pandas().Series(column.categories, dtype=object))[1].all())


def _news(values: Series, is_new: BoolArray) -> RowsWarning | None:
    if not is_new.any():
        return None
    what = (
        f"Column {str(values.name)!r} holds categories that were not there in training, which "
        "makes their rows unusual"
    )
    return RowsWarning(what, int(is_new.sum()), _first(values, is_new))


def _first(values: Series, chosen: BoolArray) -> str:
    return shown_row(values, int(np.flatnonzero(chosen)[0]))


def about_cells(values: Series, found: Any, column: Column) -> str:
    """Return what is to be said of infinity, and of gaps where training had none; or nothing."""
    is_number = column.kind == NUMBER
    mistake = about_infinity(values, found) if is_number else ""
    is_gap = np.isnan(found) if is_number else np.array([text is None for text in found])
    if mistake or column.has_gaps or not is_gap.any():
        return mistake
    return (
        f"Column {column.name!r} has no value in {shown_rows(values, is_gap)}, but had no gaps in "
        "training."
    )


def unusable(values: Series, column: Column) -> BoolArray:
    """Tell which cells keep their rows from being scored: text, infinity, unexpected gaps."""
    if column.kind != NUMBER:
        is_gap = np.array([text is None for text in cells.words(values)], dtype=bool)
        return is_gap & (not column.has_gaps)
    if cells.is_time_type(values.dtype):
        return np.zeros(len(values), dtype=bool)  # another column altogether, not some cells
    found, is_text = cells.numbers(values)
    is_gap = np.isnan(found) & ~is_text & (not column.has_gaps)
    return is_text | np.isinf(found) | is_gap


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
