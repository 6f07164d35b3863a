"""Kinds of columns: categories as text, numbers with units, ids, empty columns.

One rule for data frames in Python and for files on the command line.
"""

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Spellings that say nothing among text; "NA" may be a name.
TEXT_GAPS = frozenset({"nan", "NaN", "NaT", "<NA>", "null", "NULL", "None", "n/a", "N/A", "#N/A"})
#: Reason of a column that has no value at all.
EMPTY = "no value in any row"
#: Rows that a value needs to be a category of its own.
FEWEST_ROWS = 3
UNITS = "$€£¥₹%‰"
#: A number with what may stand around it; its marks are looked at afterwards.
WRITTEN = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-])?\s?(?P<before>[{UNITS}])?\s?(?P<inner>[+-])?"
    rf"(?P<digits>\d[\d.,' \u00a0]*\d|\d)\s?(?P<after>[{UNITS}])?(?(open)\))"
)


def is_id_name(name: str) -> bool:
    """Return whether a column is named as ids usually are."""
    usual = r"(?:^|[\s_.-])(?:id|uid|uuid|guid|index|idx|row|serial)$"
    return bool(
        re.search(r"[a-z]I[dD]$", name)
        or re.search(usual, name.lower())
        or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name)
    )


def category(cell: Any) -> str | None:
    """Return the text that stands for a category, None for a gap.

    It is the same whether a file has types or not: 1, 1.0 and " 1" are one category, True
    and "true" another. Words such as "NaN" and "null" are gaps.
    """
    text = cell_text(cell)
    return None if text in TEXT_GAPS else text


def cell_text(cell: Any) -> str | None:
    """Return what a cell says, None for one that is empty."""
    if cell is None:
        return None
    if not isinstance(cell, str):
        if isinstance(cell, Decimal):  # one that signals is no float
            cell = np.nan if cell.is_nan() else float(cell)
        is_whole = isinstance(cell, float | np.floating) and cell.is_integer()
        cell = int(cell) if is_whole else cell
        try:
            cell = str(cell)
        except ValueError:  # Python writes no whole number of more than 4,300 digits
            cell = hex(cell)
    text: str = cell.strip()
    # booleans have one spelling, whether a file has types or not
    return text.lower() if text.lower() in ("true", "false") else text or None


def are_booleans(cells: NDArray[Any]) -> bool:
    """Return whether a column holds True, False and gaps alone: categories, not numbers."""
    if cells.dtype.kind != "O":
        return cells.dtype.kind == "b"
    types = {type(cell) for cell in cells if cell_text(cell) not in (None, *TEXT_GAPS)}
    return bool(types) and types <= {bool, np.bool_}


def about_whole_numbers(name: str, values: NDArray[np.float64]) -> str:
    """Return why whole numbers name or count the rows, or nothing; NaN is a gap."""
    if not len(values) or not bool((values == np.floor(values)).all()):
        return ""  # NaN is not equal to itself
    if is_id_name(name) and len(np.unique(values)) == len(values) > 1:
        return "a different whole number in every row, named like an id"
    if len(values) >= 20 and bool((np.diff(values) == 1).all()):
        return "counts the rows"
    return ""


def about_names(name: str, counts: Counter[str], n_rows: int) -> str:
    """Return why text names the rows, or nothing."""
    is_different = len(counts) == counts.total() == n_rows > 1
    return "a different text in every row, named like an id" * (is_different and is_id_name(name))


def about_free_text(counts: Counter[str]) -> str:
    """Return why text is no category, or nothing."""
    n, n_rows = len(counts), counts.total()
    return f"text with {n} different values in {n_rows} rows" * (not is_few(counts))


def about_written_numbers(counts: Counter[str]) -> str:
    """Return that text is no category as it holds written numbers, or nothing."""
    if is_few(counts) or not all(map(WRITTEN.fullmatch, counts)):
        return ""
    first = next(iter(counts))
    return f"numbers written as text, such as {first!r}; TableDetector reads them, or convert them"


def is_few(counts: Counter[str]) -> bool:
    """Return whether the different values are few enough for categories.

    Up to 10 will do if one of them comes twice, and up to 50 need two rows each on average. Any
    number of them will do if four of five rows have a value that comes three times: others are
    one category, "other".
    """
    n, n_rows = len(counts), counts.total()
    if n <= 10:
        return n < n_rows or n <= 1
    if n <= 50:
        return n * 2 <= n_rows
    return n_rows - n_rare_rows(counts) >= 0.8 * n_rows


def n_rare_rows(counts: Counter[str]) -> int:
    """Return the number of rows whose value is too rare to be a category of its own."""
    return sum(n for n in counts.values() if n < FEWEST_ROWS)


def about_rare(counts: Counter[str]) -> str:
    """Say which values are one category, "other", as they are rare; nothing if that is clear."""
    n_rare = sum(n < FEWEST_ROWS for n in counts.values())
    if n_rare < 2 or len(counts) <= 10:
        return ""
    return f"{n_rare:,} of them, in {n_rare_rows(counts):,} rows, are rare and count as one: other"


def counted(texts: Iterable[str | None]) -> Counter[str]:
    """Count the categories of a column, without gaps."""
    return Counter(text for text in texts if text is not None)
