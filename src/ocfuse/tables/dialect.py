"""How the values of a text file are separated, and how its numbers are written."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ocfuse.exceptions import InvalidInputError, TableError

#: Separators that are tried, in this order.
DELIMITERS = (",", ";", "\t", "|")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
#: A comma before three digits may also mark thousands.
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
#: Numbers with marks for thousands as well as decimals: 1.234,56 or 1,234.56.
GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?:[.' ]\d{3})+,|(?:[,' ]\d{3})+\.)\d+")
#: Where a comma stands before decimals, points before three digits mark thousands.
POINTED = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
#: First line by which spreadsheets are told the separator.
SEPARATOR_LINE = re.compile(r'"?sep=([^"])"?', re.IGNORECASE)
#: Lines above the column names that are looked for; share of rows of the same width that shows
#: where the table begins, and share from which on the first line is taken for its names.
MOST_PREAMBLE, ALIKE, HALF = 10, 0.9, 0.5


def records(lines: Iterable[str], delimiter: str) -> Any:
    """Return a reader of rows; what is quoted wrongly is an error."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def head_records(head: list[str], delimiter: str) -> list[list[str]]:
    """Return the rows of the first lines, as far as these can be read."""
    return list(_until_error(records(head, delimiter)))


def separator_line(line: str) -> str | None:
    """Return the separator that a line names for spreadsheets, or None if it is another line."""
    found = SEPARATOR_LINE.fullmatch(line.strip("\r\n "))
    return None if found is None else found[1]


def sniff_delimiter(head: list[str]) -> str:
    """Return the separator that gives most rows the width of the header; "," if none does."""
    return max(DELIMITERS, key=lambda delimiter: _fit(head, delimiter))


def preamble_lines(head: list[str], delimiter: str | None) -> int:
    """Return how many lines stand above the column names, as far as it shows."""
    for n in range(min(MOST_PREAMBLE + 1, len(head) - 1)):
        below = head[n:]
        best = sniff_delimiter(below) if delimiter is None else delimiter
        share, _ = _fit(below, best)
        if n == 0 and share > HALF:
            return 0
        if head[n].strip() and share >= ALIKE and not _has_numbers(head[n], best):
            return n
    return 0


def _has_numbers(line: str, delimiter: str) -> bool:
    return any(cell.strip().isdecimal() for row in head_records([line], delimiter) for cell in row)


def _fit(head: list[str], delimiter: str) -> tuple[float, int]:
    """Return the share of rows that have the width of the first, and this; 0 for one column."""
    rows = head_records(head, delimiter)
    width = len(rows[0]) if rows else 0
    if width < 2:
        return 0.0, 0
    return sum(len(row) == width for row in rows) / len(rows), width


def sniff_decimal(rows: list[list[str]], delimiter: str, name: str) -> str:
    """Return the sign before the decimals, "," or ".", from the first rows of a file."""
    cells = [cell.strip() for cell in chain.from_iterable(rows)]
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    if delimiter == "," or not commas or any(map(DECIMAL_POINT.fullmatch, cells)):
        return "."
    if all(map(THOUSANDS.fullmatch, commas)):
        number = commas[0]
        raise TableError(
            f"{name} holds {number!r}, which may mean {number.replace(',', '.')} or "
            f"{number.replace(',', '')}. Say decimal=',' for the first; for the second write "
            "numbers without marks for thousands."
        )
    return ","


def with_point(cells: Iterable[str]) -> list[str]:
    """Write decimal commas as points, 1.234,5 as 1234.5; what is no number stays as it is."""
    return [_with_point(cell) for cell in cells]


def _with_point(cell: str) -> str:
    number = cell.strip()
    if POINTED.fullmatch(number):
        return number.replace(".", "").replace(",", ".")
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(number) else cell


def check_dialect(delimiter: Any, decimal: Any) -> None:
    """Refuse settings that cannot be meant."""
    is_character = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n'
    if delimiter is not None and not is_character:
        raise InvalidInputError(
            f"delimiter must be one character, such as ';' or '\\t'. Got delimiter={delimiter!r}."
        )
    if decimal not in (None, ".", ","):
        raise InvalidInputError(f"decimal must be '.' or ','. Got decimal={decimal!r}.")


def _until_error(reader: Any) -> Iterator[list[str]]:
    try:
        yield from (row for row in reader if row)
    except csv.Error:
        return
