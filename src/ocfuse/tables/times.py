"""How times are written, and reading them.

Every cell is read alone, so that the result does not depend on how a table is cut into chunks.
"""

import re

import numpy as np

from ocfuse.exceptions import TableError
from ocfuse.tables.cells import BoolArray, is_time_type, numbers, words
from ocfuse.tables.frames import Series, pandas

#: Format of times that are numbers, and of those that begin with the year.
NUMBER, ISO = "number", "ISO8601"
DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
#: Ends of times that are tied to a time zone: Z, +02, +0200 or +02:00.
OFFSET = re.compile(r"(?::\d\d|T(?:\d\d)+)(?:[.,]\d+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)$")
UTC_NAME = re.compile(r"(?<=\d)\s*(?:UTC|GMT|z)$")
#: Cells that a format is tried on before it is tried on all, and letters that a time may have.
FIRST_TRY = 50
LONGEST_TIME = 100


def times(column: Series, format: str, utc: bool) -> Series:
    """Return the times of a column, NaT (or NaN) where a cell holds none."""
    pd = pandas()
    if format == NUMBER:
        return pd.Series(numbers(column)[0], index=column.index, name=column.name)
    if is_time_type(column.dtype):
        parsed = pd.to_datetime(column, utc=True)
    else:
        parsed = _parsed(words(column), format)
    # Always by way of UTC: the type must not depend on what the cells of a chunk look like.
    try:
        parsed = parsed.dt.as_unit("us")
    except pd.errors.OutOfBoundsDatetime:
        raise TableError(
            f"Column {str(column.name)!r} holds times that are too far from now. Times may be up "
            "to 290,000 years away: correct or empty such cells, or ignore the column."
        ) from None
    parsed = parsed if utc else parsed.dt.tz_localize(None)
    return pd.Series(parsed.array, index=column.index, name=column.name)


def time_formats(cells: list[str]) -> list[str]:
    """Return the formats in which all cells are times: none, one, or two if days may be months."""
    if any(len(cell) > LONGEST_TIME for cell in cells):
        return []
    if _is_format(cells, ISO):
        return [ISO]
    formats = [date + clock for date in DATES for clock in CLOCKS]
    return [format for format in formats if _is_format(cells, format)]


def settled_formats(cells: list[str]) -> list[str]:
    """Return the formats of cells in the order of their rows, which may tell days from months."""
    formats = time_formats(cells)
    if len(formats) < 2:
        return formats
    day = pandas().Timedelta(days=1)
    steps = {format: _parsed(cells, format).diff().iloc[1:] for format in formats}
    rising = [format for format in formats if (steps[format] >= 0 * day).all()]
    if len(rising) == 1:
        return rising
    # a recording that goes on over midnight; read otherwise, it would pause for months just there
    dense = [format for format in rising if (steps[format] < day).all()]
    return dense if len(dense) == 1 else formats


def zones(column: Series) -> BoolArray:
    """Tell which cells are tied to a time zone."""
    if is_time_type(column.dtype):
        return np.full(len(column), getattr(column.dtype, "tz", None) is not None)
    return np.array([word is not None and has_zone(word) for word in words(column)], dtype=bool)


def has_zone(cell: str) -> bool:
    """Tell whether a time is tied to a time zone."""
    return OFFSET.search(_plain(cell)) is not None


def _parsed(cells: list[str | None] | list[str], format: str) -> Series:
    pd = pandas()
    plain = [cell if cell is None else _plain(cell) for cell in cells]
    return pd.to_datetime(pd.Series(plain, dtype=object), format=format, errors="coerce", utc=True)


def _plain(cell: str) -> str:
    """Write the name of the zone as pandas reads it."""
    return UTC_NAME.sub("Z", cell)


def _is_format(cells: list[str], format: str) -> bool:
    return bool(cells) and all(
        bool(_parsed(part, format).notna().all()) for part in (cells[:FIRST_TRY], cells)
    )
