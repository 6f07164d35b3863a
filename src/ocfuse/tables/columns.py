"""Infer the kinds of columns, and read later tables accordingly."""

import difflib
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import compress
from typing import Any

import numpy as np

from ocfuse import column_kinds as rules
from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.encoder import NEW_GROUPS, NEW_VALUES, NO_GROUP, NO_TIME, WAS_EMPTY, describe_gaps
from ocfuse.exceptions import CellsWarning, ColumnMismatchError, RowsWarning, TableError
from ocfuse.tables import cells
from ocfuse.tables.cells import Column
from ocfuse.tables.dataframes import FILE, Series, listed, pandas
from ocfuse.tables.text import DECIMAL_COMMA, GROUPED

#: Share of numbers from which on a column is meant to hold numbers.
MOSTLY = 0.9
#: What is likely the matter with a table of one column.
ONE_COLUMN = (
    "Only one column was found: values are probably separated by something else. Say so, for "
    "instance delimiter=' '; only comma, semicolon, tab and bar are found without it."
)
#: Why a column that is named so must hold numbers.
WHY_NUMBERS = {
    "direction": "have a high and a low side",
    "limits": "can be above or below a limit",
}


def infer_column(column: Series) -> Column:
    """Return what a column of training rows holds, and why."""
    name = str(column.name)
    n_gaps = int(column.isna().sum())
    if n_gaps == len(column):
        return Column(name, "empty", rules.EMPTY)
    if cells.is_time_type(column.dtype):
        utc = getattr(column.dtype, "tz", None) is not None
        cells.times(column, "ISO8601", utc)  # refuses those that are too far away
        return Column(name, "time", "dates or times", n_gaps > 0, format="ISO8601", utc=utc)
    odd = odd_type(column)
    if odd:
        return Column(name, "ignored", f"neither numbers nor text: {odd}")
    if str(column.dtype) == "category":  # declared, whatever the values look like
        return _text(column, column.notna().to_numpy(bool), column.isna().to_numpy(bool))
    values, is_text = cells.numbers(column)
    if not is_text.any():
        return _numbers(column, values)
    return _text(column, is_text, np.isnan(values) & ~is_text)


def time_column(column: Series) -> Column:
    """Return a column that the user says is the time."""
    found = infer_column(column)
    if found.kind == "time":
        return replace(found, reason="as asked for")
    if found.kind == "ignored" or cells.numbers(column)[1].any():
        raise TableError(
            f"Column {found.name!r} cannot be read as a time: {found.reason}. "
            "Write times as 2024-12-31 23:59:59, all with a time zone or none, or as numbers."
        )
    return Column(found.name, "time", "as asked for", found.has_gaps, format="number")


def shown_rows(column: Series, chosen: BoolArray, most: int = 3) -> str:
    """Return some cells of a column with their rows, to show."""
    rows = np.flatnonzero(chosen)
    parts = [shown_row(column, i) for i in rows[:most]]
    return listed(parts) + (f" and {len(rows) - most} more rows" if len(rows) > most else "")


def shown_row(column: Series, place: int) -> str:
    """Return a cell of a column with its row, to show."""
    cell = column.iloc[place]
    text = repr(cell.item() if isinstance(cell, np.generic) else cell)
    return f"row {column.index[place]} ({text if len(text) <= 40 else text[:37] + '...'})"


def first_row(column: Series, chosen: BoolArray) -> str:
    """Return the first of the chosen cells of a column with its row, to show."""
    return shown_row(column, int(np.flatnonzero(chosen)[0]))


def about_infinity(column: Series, values: FloatArray) -> str:
    """Return a sentence about infinite numbers, or nothing."""
    infinite = np.isinf(values)
    if not infinite.any():
        return ""
    return f"Column {str(column.name)!r} holds infinity in {shown_rows(column, infinite)}."


def odd_type(column: Series) -> str:
    """Return what is neither a number nor text, in words, or nothing."""
    if str(column.dtype).startswith(("timedelta", "duration", "period", "interval")):
        return f"{column.dtype}; convert it to numbers"
    if column.dtype != object:
        return "complex numbers" if column.dtype.kind == "c" else ""
    types = {type(cell) for cell in column.dropna()}
    others = {kind for kind in types if not issubclass(kind, str | bool | np.bool_ | date)}
    is_odd = [issubclass(kind, np.ndarray) or not hasattr(kind, "__float__") for kind in others]
    return listed(sorted(kind.__name__ for kind in compress(others, is_odd)))


def category_column(column: Series) -> Column:
    """Return a column that the user says holds categories."""
    words = cells.words(column)
    counts = rules.counted(words)
    if not counts:
        return Column(str(column.name), "empty", rules.EMPTY)
    found = _category(str(column.name), counts, words.count(None))
    return replace(found, reason=f"as asked for: {found.reason}")


def by_column(column: Series) -> Column:
    """Return a column that the user says tells whose a row is."""
    name, words = str(column.name), cells.words(column)
    counts = rules.counted(words)
    if not counts or max(counts.values()) < 2:
        what = "another value in every row" if counts else "no value in any row"
        raise TableError(
            f"by={name!r} has {what}: nothing is usual for a single row. Name a column whose "
            "values come twice or more, such as the machine, or leave it out."
        )
    sizes = sorted(counts.values())
    n_gaps = words.count(None)
    middle = sizes[len(sizes) // 2]
    rows = f"{sizes[0]:,} to {sizes[-1]:,} rows, {middle:,} in the middle"
    rows = f"{middle:,} rows each" if sizes[0] == sizes[-1] else rows
    reason = f"as asked for: {len(sizes):,} of them with {rows}"
    reason += f", {n_gaps:,} cells empty" if n_gaps else ""
    return Column(name, "by", reason, n_gaps > 0, sorted(counts))


def number_column(column: Series, asked: str = "number") -> Column:
    """Return a column that the user says holds numbers, or of which that follows."""
    name = str(column.name)
    if cells.is_time_type(column.dtype) or odd_type(column):
        raise TableError(f"Column {name!r} cannot be read as numbers: {column.dtype}.")
    values, is_text = cells.numbers(column)
    pattern = _pattern(column, is_text)
    if pattern:
        values = cells.numbers(column, pattern)[0]
    elif is_text.all() or is_text.sum() > len(column) / 2:
        raise TableError(
            f"{asked} names column {name!r}, which holds text, not numbers: "
            f"{shown_rows(column, is_text, most=1)}. Only numbers "
            f"{WHY_NUMBERS.get(asked, 'can be read so')}. Leave it out."
        )
    elif is_text.any():
        raise mixed(column, is_text)
    mistake = about_infinity(column, values)
    if mistake:
        raise TableError(f"{mistake} Leave such rows out, or such cells empty.")
    if np.isnan(values).all():
        return Column(name, "empty", rules.EMPTY)
    found = _plain_numbers(name, values, pattern)
    return replace(found, reason=f"as asked for: {found.reason}")


def _numbers(column: Series, values: FloatArray, pattern: str = "") -> Column:
    """Return a column of numbers, or what numbers may also be: times and counters."""
    name = str(column.name)
    mistake = about_infinity(column, values)
    if mistake:
        raise TableError(f"{mistake} Leave such rows out, or such cells empty.")
    missing = np.isnan(values)
    if missing.all():
        return Column(name, "empty", rules.EMPTY)
    present = values[~missing]
    if is_time_name(name) and len(present) > 2:
        steps = np.diff(present)
        # back only where another run starts
        if (steps > 0).any() and (steps < 0).mean() <= 0.1:
            reason = "numbers that rise from row to row, named like a time"
            return Column(name, "time", reason, bool(missing.any()), format="number")
    named = rules.about_whole_numbers(name, values)
    if named:
        return Column(name, "id", named)
    return _plain_numbers(name, values, pattern)


def _plain_numbers(name: str, values: FloatArray, pattern: str) -> Column:
    """Return a column of numbers, some of which may be NaN."""
    missing = np.isnan(values)
    present = values[~missing]
    is_single, has_gaps = bool((present == present[0]).all()), bool(missing.any())
    reason = f"always {present[0]:g}; only a change of it will count" if is_single else "numbers"
    if has_gaps:
        reason += f", {missing.sum()} of {len(values)} cells empty"
    is_constant = is_single and not has_gaps
    if pattern:
        reason += f", written as {pattern}"
    return Column(name, "number", reason, has_gaps, format=pattern, is_constant=is_constant)


def _text(column: Series, is_text: BoolArray, is_gap: BoolArray) -> Column:
    """Return a column of categories, times or ids, or one to ignore."""
    name = str(column.name)
    words = [word for word in cells.words(column) if word is not None]
    counts = rules.counted(words)
    n_rows, is_few = counts.total(), rules.is_few(counts)
    pattern = _pattern(column, is_text)
    if pattern:
        return _numbers(column, cells.numbers(column, pattern)[0], pattern)
    n_numbers = len(column) - int(is_text.sum()) - int(is_gap.sum())
    if n_numbers >= MOSTLY * n_rows or (n_numbers > n_rows / 2 and not is_few):
        raise mixed(column, is_text)
    if name == FILE:
        return Column(name, "ignored", "names the file of every row")
    has_digits = any(map(str.isdigit, next(iter(counts))))  # are dates worth looking for?
    formats = cells.settled_formats(words) if has_digits else []
    if formats:
        return _times(name, list(counts), formats, n_rows < len(column))
    named = rules.about_names(name, counts, len(column))
    if named:
        return Column(name, "id", named)
    _refuse_commas(column[is_text], is_few)
    if not is_few:
        return Column(name, "ignored", rules.about_free_text(counts))
    return _category(name, counts, len(column) - n_rows)


def _pattern(column: Series, is_text: BoolArray) -> str:
    """Return how numbers are written that have units or marks in every cell, or nothing."""
    if not is_text.any() or str(column.dtype) == "category":
        return ""
    words = ["" if cell is None else cell for cell in cells.texts(column)]
    says = np.array([word.lower() not in cells.GAP_WORDS for word in words])
    written = np.array([rules.WRITTEN.fullmatch(word) is not None for word in words]) & says
    # one "$-" among prices: the others are still numbers, as of text among plain numbers
    if written.sum() < MOSTLY * says.sum():
        return ""
    try:
        notation = cells.settled_notation(compress(words, written))
    except TableError as error:
        raise TableError(f"Column {str(column.name)!r} holds numbers: {error}") from None
    if notation is not None and (says & ~written).any():
        raise mixed(column, says & ~written)
    return "" if notation is None else notation.pattern


def _times(name: str, found: list[str], formats: list[str], has_gaps: bool) -> Column:
    """Return a column of times, or one to ignore if it is not clear which times these are."""
    if len(formats) > 1:
        reason = (
            f"dates whose days may be months, such as {found[0]!r}; a day after the 12th, or rows "
            "that go on over midnight, would settle it"
        )
        return Column(name, "ignored", reason)
    n_zones = sum(map(cells.has_zone, found))
    if 0 < n_zones < len(found):
        return Column(name, "ignored", "times of which only some have a time zone")
    return Column(name, "time", "dates or times", has_gaps, format=formats[0], utc=n_zones > 0)


def _category(name: str, counts: Counter[str], n_gaps: int) -> Column:
    n = len(counts)
    reason = f"text with {n:,} different values" if n > 1 else f"always {next(iter(counts))!r}"
    rare = rules.about_rare(counts)
    reason += f"; {rare}" if rare else ""
    if n_gaps:
        reason += f", {n_gaps} of {counts.total() + n_gaps} cells empty"
    is_constant = n == 1 and not n_gaps
    return Column(name, "category", reason, n_gaps > 0, sorted(counts), is_constant=is_constant)


def _refuse_commas(text: Series, is_few: bool) -> None:
    """Refuse text that would be numbers, had it points in place of commas, or no other marks."""
    found = [str(cell).strip() for cell in text]
    has_marks = any(map(GROUPED.fullmatch, found))
    # 1,5 may be one of a few categories; 1.234,56 is a number
    if (has_marks or not is_few) and all(
        DECIMAL_COMMA.fullmatch(cell) or GROUPED.fullmatch(cell) for cell in found
    ):
        advice = "Write them without marks for thousands, or ignore the column."
        if not has_marks:
            advice = (
                "If they are decimal commas, say decimal=','; otherwise write them without, or "
                "ignore the column."
            )
        raise TableError(
            f"Column {str(text.name)!r} holds numbers with commas: {shown_row(text, 0)}. {advice}"
        )


def mixed(column: Series, is_text: BoolArray) -> TableError:
    """Return the error for text among numbers."""
    return TableError(
        f"Column {str(column.name)!r} holds numbers, but not in {shown_rows(column, is_text)}. "
        f"{advice(column, is_text)}Correct or empty these cells, or ignore the column."
    )


def advice(column: Series, is_text: BoolArray, pattern: str = "") -> str:
    """Return what to do about commas and marks for thousands, if these are the matter."""
    if pattern:
        return f"Training had numbers written as {pattern}. "
    first = column.iloc[int(np.flatnonzero(is_text)[0])]
    word = first.strip() if isinstance(first, str) else ""
    if GROUPED.fullmatch(word):
        return "Write numbers without marks for thousands. "
    return "If it is a decimal comma, say decimal=','. " if DECIMAL_COMMA.fullmatch(word) else ""


def is_time_name(name: str) -> bool:
    """Return whether a column is named as times usually are."""
    known = r"(?:time|datetime|date|ts|epoch|unix_?time|.*timestamp)(?:_(?:s|ms|us|ns|utc))?$"
    return re.match(known, name.lower()) is not None


@dataclass(frozen=True)
class ReadColumn:
    """What was read from a column: values, what is wrong in words, and what has changed."""

    values: Any
    mistake: str = ""
    changes: list[CellsWarning.Change] = field(default_factory=list)


def read_cells(values: Series, column: Column, gaps: str = "judge") -> ReadColumn:
    """Return the numbers or texts of a column; changes name the policy of gaps."""
    if column.kind == "number":
        return _read_numbers(values, column, describe_gaps(gaps))
    if column.kind == "category":
        return _read_categories(values, column, describe_gaps(gaps))
    if column.kind == "by":
        return _read_groups(values, column)
    if column.kind == "time":
        found, _, is_other, _ = read_times(values, column)
        if is_other.any():
            have, shown = "without" if column.utc else "with", shown_rows(values, is_other, most=1)
            return ReadColumn(
                None,
                f"{column.name} holds times {have} a time zone, unlike in training, and what is "
                f"usual depends on the local time: {shown}. Write them as in training",
            )
        changes = _changes(values, NO_TIME, found.isna().to_numpy() & (not column.has_gaps))
        if not column.utc:
            return ReadColumn(found.to_numpy(), changes=changes)
        naive = found.dt.tz_convert(None).to_numpy().astype("datetime64[us]")
        seconds = np.where(np.isnat(naive), np.nan, naive.astype(np.int64) / 1e6)
        return ReadColumn(seconds, changes=changes)
    words = cells.words(values)  # of a column that was empty in training
    is_new = np.array([word is not None for word in words], dtype=bool)
    changes = _changes(values, WAS_EMPTY, is_new, words)
    return ReadColumn(np.array(words, dtype=object), changes=changes)


def _read_numbers(values: Series, column: Column, gap: str) -> ReadColumn:
    if cells.is_time_type(values.dtype):
        return ReadColumn(None, f"{column.name} holds times, expected numbers")
    found, is_text = cells.numbers(values, column.format)
    if is_text.any():
        where = f"{column.name} holds no number in {shown_rows(values, is_text)}"
        return ReadColumn(None, f"{where}. {advice(values, is_text, column.format)}".rstrip(". "))
    is_gap = np.isnan(found) & (not column.has_gaps)
    return ReadColumn(found, changes=_changes(values, gap, is_gap))


def _read_categories(values: Series, column: Column, gap: str) -> ReadColumn:
    is_code = all(category.lstrip("-").isdigit() for category in column.categories)
    if cells.is_time_type(values.dtype) or (cells.is_number_type(values.dtype) and not is_code):
        shown = shown_rows(values, values.notna().to_numpy(bool), most=1)
        return ReadColumn(None, f"{column.name} holds {values.dtype}, expected text: {shown}")
    found = cells.words(values)
    known = set(column.categories)
    is_new = np.array([text is not None and text not in known for text in found], dtype=bool)
    if _are_numbers(values[is_new], column) and is_new.sum() == values.notna().sum():
        first = first_row(values, is_new)
        return ReadColumn(None, f"{column.name} holds numbers, expected text: {first}")
    is_gap = np.array([text is None for text in found], dtype=bool) & (not column.has_gaps)
    changes = _changes(values, NEW_VALUES, is_new, found) + _changes(values, gap, is_gap)
    return ReadColumn(np.array(found, dtype=object), changes=changes)


def _read_groups(values: Series, column: Column) -> ReadColumn:
    found = cells.words(values)
    known = set(column.categories)
    is_new = np.array([text is not None and text not in known for text in found], dtype=bool)
    is_gap = np.array([text is None for text in found], dtype=bool) & (not column.has_gaps)
    changes = _changes(values, NEW_GROUPS, is_new, found) + _changes(values, NO_GROUP, is_gap)
    return ReadColumn(np.array(found, dtype=object), changes=changes)


def _are_numbers(new: Series, column: Column) -> bool:
    """Return whether cells of a category are of another type: 20 or more, all numbers."""
    if len(new) < 20 or cells.numbers(new)[1].any():
        return False
    return bool(cells.numbers(pandas().Series(column.categories, dtype=object))[1].all())


def _changes(
    values: Series, what: str, chosen: BoolArray, words: list[str | None] | None = None
) -> list[CellsWarning.Change]:
    """Return the change that some cells of a column are, or nothing."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return []
    seen = () if words is None else tuple(sorted({str(words[i]) for i in rows}))
    first = f"row {values.index[rows[0]]}"
    return [CellsWarning.Change(str(values.name), what, seen, len(rows), first)]


def new_gaps(values: Series, column: Column) -> BoolArray:
    """Return which cells are gaps where training had none."""
    is_judged = column.kind in ("by", "time", "empty")  # gaps there are no gaps of a feature
    if column.has_gaps or is_judged or cells.is_time_type(values.dtype):
        return np.zeros(len(values), dtype=bool)
    if column.kind == "number":
        found, is_text = cells.numbers(values, column.format)
        return np.isnan(found) & ~is_text
    return np.array([text is None for text in cells.words(values)], dtype=bool)


def not_placed(values: Series, column: Column) -> BoolArray:
    """Return which cells of groups or times do not say whose or when their rows are."""
    if column.kind == "by":
        known = {*column.categories, *([None] if column.has_gaps else [])}
        return np.array([word not in known for word in cells.words(values)], dtype=bool)
    if column.kind == "time" and not column.has_gaps:
        return np.array(read_times(values, column)[0].isna(), dtype=bool)
    return np.zeros(len(values), dtype=bool)


def unusable(values: Series, column: Column, gaps: bool) -> BoolArray:
    """Return which cells keep their rows from being scored: text, infinity, perhaps new gaps."""
    is_refused = new_gaps(values, column) if gaps else np.zeros(len(values), dtype=bool)
    if column.kind == "time":
        return read_times(values, column)[2]
    if column.kind != "number" or cells.is_time_type(values.dtype):
        return is_refused  # times are another column altogether, not some cells
    found, is_text = cells.numbers(values, column.format)
    return is_refused | is_text | np.isinf(found)


def read_times(
    values: Series, column: Column
) -> tuple[Series, BoolArray, BoolArray, list[RowsWarning]]:
    """Return times, which cells hold something else, which have another zone, what is odd."""
    words = cells.words(values)
    said = np.array([word is not None for word in words], dtype=bool)
    found = cells.times(values, column.format, column.utc)
    if said.any() and bool(found[said].isna().all()):  # not written as in training
        formats = cells.settled_formats([word for word in words if word is not None])
        if len(formats) == 1:
            found = cells.times(values, formats[0], column.utc)
    lost = said & found.isna().to_numpy()
    is_other = said & ~lost & (cells.zones(values) != column.utc) & (column.format != "number")
    odd = {
        "cells that are no times as in training; they are shown as they are": lost,
        f"times {'without' if column.utc else 'with'} a time zone, unlike in training; they are "
        f"{'taken for' if column.utc else 'shown in'} UTC": is_other,
    }
    news = [
        RowsWarning(
            f"Column {column.name!r} holds {what}", int(rows.sum()), first_row(values, rows)
        )
        for what, rows in odd.items()
        if rows.any()
    ]
    return found, lost, np.asarray(is_other, dtype=bool), news


def unread_times(values: Series, column: Column) -> BoolArray:
    """Return which cells hold something that is no time as in training."""
    said = np.array([word is not None for word in cells.words(values)], dtype=bool)
    return np.asarray(said & cells.times(values, column.format, column.utc).isna().to_numpy())


def mismatch(
    missing: list[str], extra: list[str], wrong: list[str], n_columns: int
) -> ColumnMismatchError:
    """Return the error that lists all that does not fit."""
    parts = ["The columns of the table are not those of training."]
    parts += [f"Missing: {listed(missing)}."] if missing else []
    parts += [f"Of another type: {listed(wrong)}."] if wrong else []
    parts += [f"Extra: {listed(extra)}."] if extra else []
    is_one = n_columns == 1 < len(missing) and extra and holds_several(extra[0])
    parts += [ONE_COLUMN] if is_one else _likely_names(missing, extra)
    error = ColumnMismatchError(" ".join(parts))
    error.missing, error.extra, error.wrong = tuple(missing), tuple(extra), tuple(wrong)
    return error


def holds_several(name: str) -> bool:
    """Return whether the name of the only column may be several, with another separator."""
    return re.search(r"[^\w.\-]", name) is not None


def _likely_names(missing: list[str], extra: list[str]) -> list[str]:
    """Return questions about columns that may have got another name; a few are enough."""
    by_small = {name.lower(): name for name in extra[:8]}
    return [
        f"Is {by_small[other]!r} the column {name!r}? Then rename it."
        for name in missing[:8]
        for other in difflib.get_close_matches(name.lower(), list(by_small), n=1)
    ]
