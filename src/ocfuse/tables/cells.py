"""Cells of one column: numbers and how they are written, text, times.

Every cell is read alone, so that the result does not depend on how a table is cut into chunks.

Numbers may be written with a unit, marks for thousands, or parentheses. A column is read as
numbers only if all its cells are written in one way: one unit or none, one mark for thousands
and one for decimals. That way is kept as a pattern, such as ``$1,000.0``, and later tables are
read by it.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.column_kinds import UNITS, WRITTEN, category, cell_text
from ocfuse.exceptions import TableError
from ocfuse.system.packages import needed
from ocfuse.tables.dataframes import FILE, Frame, Series, pandas

#: Words that mean "no number here", in small letters.
GAP_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-"})
#: What a column may be.
ColumnKind: TypeAlias = Literal[
    "number", "category", "by", "time", "id", "label", "group", "ignored", "empty"
]


@dataclass(frozen=True)
class Notation:
    """One way of writing numbers: unit and mark between thousands, if any, and decimal point."""

    unit: str
    mark: str
    point: str

    @property
    def pattern(self) -> str:
        """The way to write one thousand."""
        is_after = self.unit in "%‰€"
        before, after = ("", self.unit) if is_after else (self.unit, "")
        return f"{before}1{self.mark}000{self.point}0{after}"

    @classmethod
    def of(cls, pattern: str) -> "Notation":
        """Return the notation that a pattern shows."""
        found = re.fullmatch(
            rf"(?P<before>[{UNITS}]?)1(?P<mark>\D?)000(?P<point>[.,])0(?P<after>[{UNITS}]?)",
            pattern,
        )
        if found is None:
            raise TableError(f"Numbers cannot be written as {pattern!r}. Use, say, '$1,000.0'.")
        return cls(found["before"] or found["after"], found["mark"], found["point"])

    def number(self, cell: str) -> float | None:
        """Return the number that a cell says, None if it is written in another way."""
        found = WRITTEN.fullmatch(cell)
        if found is None or _unit(found) != self.unit:
            return None
        whole, point, decimals = found["digits"].partition(self.point)
        if self.mark and self.mark in whole:
            first, *groups = whole.split(self.mark)
            if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
                return None
            whole = whole.replace(self.mark, "")
        if not whole.isdigit() or (point and not decimals.isdigit()):
            return None
        is_minus = found["open"] or "-" in (found["sign"], found["inner"])
        return math.copysign(float(f"{whole}.{decimals or 0}"), -1.0 if is_minus else 1.0)


def settled_notation(cells: Iterable[str]) -> Notation | None:
    """Return the one way in which all cells are written, or None; refuse what is not clear."""
    found = [WRITTEN.fullmatch(cell) for cell in cells]
    matches = [match for match in found if match is not None]
    if not matches or len(matches) < len(found):
        return None
    units = {_unit(match) for match in matches}
    if len(units) > 1 or any(match["before"] and match["after"] for match in matches):
        return None
    marks, points, is_open = _marks(match["digits"] for match in matches)
    unit = units.pop()
    if len(marks) > 1 or len(points) > 1 or marks & points:
        return None
    is_plain = not unit and not marks and not any(match["open"] for match in matches)
    if is_plain:
        return None  # decimal commas alone are for the reader of the file
    if is_open and not marks and not points:
        cell = next(m.group() for m in matches if set(".,") & set(m["digits"]))
        raise TableError(
            f"{cell!r} may mean thousands or decimals, and no other cell settles it. Write it "
            "without marks for thousands, or with decimals."
        )
    mark = marks.pop() if marks else ""
    point = points.pop() if points else ("," if mark == "." else ".")
    notation = Notation(unit, mark, point)
    is_read = all(notation.number(match.group()) is not None for match in matches)
    return notation if is_read else None


def _unit(found: re.Match[str]) -> str:
    return found["before"] or found["after"] or ""


def _marks(digits: Iterable[str]) -> tuple[set[str], set[str], bool]:
    """Return what marks thousands, what decimals, and whether some mark may be either."""
    marks, points, is_open = set(), set(), False
    for number in digits:
        used = re.sub(r"\d", "", number)
        if not used:
            continue
        last = used[-1]
        head, tail = number.rsplit(last, 1)
        if len(set(used)) > 1:  # 1,234.5: the last one is the point
            points.add(last)
            marks |= set(used[:-1])
        elif len(used) > 1 or last not in ".,":  # 1,234,567 and 1 234
            marks.add(last)
        elif len(tail) == 3 and 1 <= len(head) <= 3 and not head.startswith("0"):
            is_open = True  # 1,234
        else:
            points.add(last)
    return marks, points, is_open


def is_number_type(dtype: Any) -> bool:
    """Return whether a type holds real numbers; booleans are none here."""
    types = pandas().api.types
    return (
        types.is_numeric_dtype(dtype)
        and not types.is_bool_dtype(dtype)
        and not types.is_complex_dtype(dtype)
    )


def is_time_type(dtype: Any) -> bool:
    """Return whether a type holds dates or times of day with a date."""
    return bool(pandas().api.types.is_datetime64_any_dtype(dtype))


def numbers(column: Series, pattern: str = "") -> tuple[FloatArray, BoolArray]:
    """Return the numbers of a column, NaN for gaps, and which cells are no numbers.

    Text is read as the pattern shows, such as "$1,000.0", if there is one.
    """
    if is_number_type(column.dtype):
        values = column.to_numpy(np.float64, na_value=math.nan)
        return values, np.zeros(len(column), dtype=bool)
    if not pattern and str(column.dtype) == "string" and column.dtype.storage == "pyarrow":
        cast = _cast(column)
        if cast is not None:
            return cast, np.zeros(len(column), dtype=bool)
    notation = Notation.of(pattern) if pattern else None
    read = [_number(cell, notation) for cell in _objects(column)]
    values = np.array([math.nan if value is None else value for value in read], dtype=np.float64)
    return values, np.array([value is None for value in read], dtype=bool)


def is_number(cell: Any) -> bool:
    """Return whether a cell holds a number that is no gap."""
    value = _number(cell)
    return value is not None and not math.isnan(value)


def texts(column: Series) -> list[str | None]:
    """Return what the cells of a column say, None for gaps."""
    return [cell_text(cell) for cell in _objects(column)]


def rows_of_text(frame: Frame) -> list[list[str]]:
    """Return the cells of a table as they would stand in CSV, row by row."""
    columns = [_objects(frame[name]) for name in frame.columns]
    rows = zip(*columns, strict=True)
    return [["" if cell is None else str(cell) for cell in row] for row in rows]


def words(column: Series) -> list[str | None]:
    """Return what the cells of a column say, None for gaps and for words that mean a gap."""
    return [category(cell) for cell in _objects(column)]


def _cast(column: Series) -> FloatArray | None:
    """Return the numbers of a text column at once, or None if some cells need a closer look."""
    arrow, compute = needed("pyarrow", "to read tables"), needed("pyarrow.compute", "to read them")
    cells = compute.utf8_trim_whitespace(arrow.array(column))
    for with_gaps in (False, True):
        if with_gaps:
            gaps = arrow.array(sorted(GAP_WORDS))
            is_gap = compute.is_in(compute.utf8_lower(cells), value_set=gaps)
            cells = compute.if_else(is_gap, None, cells)
        try:
            cast: FloatArray = compute.cast(cells, arrow.float64()).to_numpy(zero_copy_only=False)
        except ValueError:  # ArrowInvalid
            continue
        return cast
    return None


def _objects(column: Series) -> list[Any]:
    """Return the cells as Python objects, None for what pandas takes for missing."""
    present = column.notna().to_numpy(bool)
    cells = column.astype(object).tolist()
    return [cell if here else None for cell, here in zip(cells, present, strict=True)]


def _number(cell: Any, notation: Notation | None = None) -> float | None:
    """Return a number, NaN for a gap, None for anything else."""
    if isinstance(cell, str):
        word = cell.strip()
        if word.lower() in GAP_WORDS:
            return math.nan
        if notation is not None:
            return notation.number(word)
        cell = None if "_" in word else word  # Python would read 1_000
    elif cell is None:
        return math.nan
    elif isinstance(cell, bool | np.bool_):
        return None
    try:
        return float(cell)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf
    except (TypeError, ValueError):
        return None


def no_formula(text: str) -> str:
    """Return text that no spreadsheet takes for a formula: after an apostrophe, if need be.

    Examples
    --------
    >>> from ocfuse.tables.cells import no_formula
    >>> no_formula("=1+1"), no_formula("pump")
    ("'=1+1", 'pump')
    """
    starts = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    return f"'{text}" if text.lstrip(" ").startswith(starts) else text


@dataclass(frozen=True)
class Column:
    """A column of a table, with its kind in training.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        "number", "category", "by" (names what a row belongs to), "time", "id", "label", "group"
        (of rows held out together), "ignored" or "empty".
    reason : str
        Why it has this kind, as text.
    has_gaps : bool
        Whether some training rows had no value here. If not, later gaps cause a warning, and are
        treated according to `gaps` of the encoder.
    categories : list of str
        Values in training of a "category" or "by" column, sorted.
    format : str
        Format of times: "ISO8601", "number" or codes of `strptime`. Format of numbers that are
        written as text, such as "$1,000.0"; empty for plain numbers.
    utc : bool
        Whether times have a time zone; they are then converted to UTC.
    is_constant : bool
        Whether all training rows had the same value.
    is_given : bool
        Whether the detector gets the times, for seasons.
    """

    name: str
    kind: ColumnKind
    reason: str
    has_gaps: bool = False
    categories: list[str] = field(default_factory=list)
    format: str = ""
    utc: bool = False
    is_constant: bool = False
    is_given: bool = False

    @property
    def is_feature(self) -> bool:
        """Whether the detector gets it; a later value in an empty column is a change."""
        return self.kind in ("number", "category", "by", "empty") or self.is_given


def times(column: Series, format: str, utc: bool) -> Series:
    """Return the times of a column, NaT (or NaN) where a cell holds none."""
    pd = pandas()
    if format == "number":
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
    if any(len(cell) > 100 for cell in cells):  # no time is as long
        return []
    if _is_format(cells, "ISO8601"):
        return ["ISO8601"]
    dates = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
    clocks = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
    formats = [date + clock for date in dates for clock in clocks]
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
    """Return which cells are tied to a time zone."""
    if is_time_type(column.dtype):
        return np.full(len(column), getattr(column.dtype, "tz", None) is not None)
    return np.array([word is not None and has_zone(word) for word in words(column)], dtype=bool)


def has_zone(cell: str) -> bool:
    """Return whether a time is tied to a time zone."""
    return _offset(cell) is not None


def _offset(cell: str) -> str | None:
    """Return the offset from UTC that a time is written with, such as "+02:00"; None for none."""
    # Z, +02, +0200 or +02:00 after a time of day
    pattern = r"(?::\d\d|T(?:\d\d)+)(?:[.,]\d+)?\s*(Z|[+-]\d\d(?::?\d\d)?)$"
    found = re.search(pattern, _plain(cell))
    if found is None:
        return None
    digits = found[1].replace(":", "").replace("Z", "+00")
    return f"{digits[:3]}:{digits[3:] or '00'}"


def zone_of(column: Series) -> str:
    """Return the time zone of a column of times, such as "Europe/Berlin" or "UTC+02:00".

    It is empty if they have none. Times with several offsets are of a zone that is not known.
    """
    if is_time_type(column.dtype):
        zone = getattr(column.dtype, "tz", None)
        return "" if zone is None else str(zone)
    offsets = sorted({_offset(word) or "" for word in words(column) if word is not None})
    if len(offsets) > 1:
        raise TableError(
            f"Column {str(column.name)!r} holds times with different offsets from UTC, "
            f"{', '.join(offsets[:4])}: which zone is theirs is not known, and what is usual "
            "depends on the local time. Name it, for instance zone='Europe/Berlin'."
        )
    found = offsets[0] if offsets else ""
    return "" if not found else "UTC" if found[1:] == "00:00" else f"UTC{found}"


def _parsed(cells: list[str | None] | list[str], format: str) -> Series:
    pd = pandas()
    plain = [cell if cell is None else _plain(cell) for cell in cells]
    return pd.to_datetime(pd.Series(plain, dtype=object), format=format, errors="coerce", utc=True)


def _plain(cell: str) -> str:
    """Write the name of the zone as pandas reads it."""
    return re.sub(r"(?<=\d)\s*(?:UTC|GMT|z)$", "Z", cell)


def _is_format(cells: list[str], format: str) -> bool:
    """Return whether all cells are times of a format; the first 50 are tried first."""
    return bool(cells) and all(_parsed(part, format).notna().all() for part in (cells[:50], cells))


class NotPlainError(Exception):
    """A cell that needs a closer look."""


@dataclass(frozen=True)
class PlainRows:
    """Rows as a detector takes them, and their cells that are shown beside the scores."""

    X: list[list[Any]]  # numbers, NaN for gaps of sensors, and categories
    runs: list[str] | None
    times: NDArray[Any] | None  # numbers, or dates in UTC
    context: FloatArray | None
    shown: list[list[Any]]

    def __len__(self) -> int:
        return len(self.X)


class PlainReader:
    """Read rows of text that need no closer look: a data frame of one takes longer than its score.

    Plain is a number that Python reads and that is finite, a category that training has seen,
    a date as in ISO 8601 with a time of day, any text that is only shown, and in a stream a gap.
    They are read to the bit as `Schema` and `TableDetector` read them.

    Parameters
    ----------
    columns : sequence of Column
        What the columns of training hold.
    header : list of str
        The columns of the rows, which are all different and hold all features.
    shown : dict of str to str
        The columns that are shown, by the name that they are shown under.
    is_stream : bool, default=False
        Whether rows are samples of sensors, which may have gaps and are of runs.
    context : str, default=None
        Column with the context of the samples.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        header: Sequence[str],
        shown: dict[str, str],
        *,
        is_stream: bool = False,
        context: str | None = None,
    ) -> None:
        places = {name: j for j, name in enumerate(header)}
        self.names = list(shown)
        self._is_stream = is_stream
        self._features = [(places[c.name], _reader(c, is_stream)) for c in columns if c.is_feature]
        times = [c for c in columns if c.kind == "time" and c.name in places]
        groups = [c.name for c in columns if c.kind == "group" and c.name in places]
        groups += [FILE] if not groups and FILE in places else []
        self._time = (places[times[0].name], _time_reader(times[0])) if times else None
        self._run = places[groups[0]] if is_stream and groups else None
        self._context = None if context is None else places[context]
        states = next((c.categories for c in columns if c.name == context), [])
        self._place = _state_reader(states) if states else _plain_number
        self._shown = [places[name] for name in shown.values()]

    def read(self, rows: Sequence[Sequence[str]]) -> PlainRows | None:
        """Return rows as a detector takes them; None if any of them is not plain."""
        try:
            return self._read(rows)
        except NotPlainError:
            return None

    def _read(self, rows: Sequence[Sequence[str]]) -> PlainRows:
        X = [[read(row[j]) for j, read in self._features] for row in rows]
        shown = [[row[j] for j in self._shown] for row in rows]
        times = runs = context = None
        if self._time is not None:
            place, read = self._time
            found = [read(row[place]) for row in rows]
            for k, j in enumerate(self._shown):
                if j == place:
                    for cells, time in zip(shown, found, strict=True):
                        cells[k] = time
            times = _as_array(found) if self._is_stream else None
        if self._run is not None:
            runs = [_run(row[self._run]) for row in rows]
        if self._context is not None:
            context = np.array([self._place(row[self._context]) for row in rows])
        return PlainRows(X, runs, times, context, shown)


def _reader(column: Column, is_stream: bool) -> Callable[[str], Any]:
    """Return what reads a cell of a feature."""
    if column.kind == "number" and not column.format:
        return _number_or_gap if is_stream else _plain_number
    if column.kind in ("category", "by") and not is_stream:
        known = frozenset(column.categories)

        def read(cell: str) -> str:
            text = category(cell)
            if text not in known:
                raise NotPlainError
            return text

        return read
    return _refuse


def _plain_number(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise NotPlainError from None
    if not math.isfinite(number) or "_" in cell:  # Python would read 1_000
        raise NotPlainError
    return number


def _number_or_gap(cell: str) -> float:
    try:
        return _plain_number(cell)
    except NotPlainError:
        if cell.strip().lower() in GAP_WORDS:
            return math.nan
        raise


def _state_reader(states: Sequence[str]) -> Callable[[str], float]:
    """Return what reads a state as its number among those that training has seen."""
    codes = {state: float(i) for i, state in enumerate(states)}

    def read(cell: str) -> float:
        code = codes.get(category(cell) or "")
        if code is None:
            raise NotPlainError
        return code

    return read


def _time_reader(column: Column) -> Callable[[str], Any]:
    """Return what reads a time."""
    if column.format == "number":
        return _plain_number
    if column.format != "ISO8601":
        return _refuse
    date = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(Z|[+-]\d\d:\d\d)?"

    def read(cell: str) -> datetime:
        found = re.fullmatch(date, cell, re.ASCII)
        if found is None or (found[1] is not None) != column.utc:
            raise NotPlainError
        try:
            time = datetime.fromisoformat(cell.replace("Z", "+00:00"))
        except ValueError:
            raise NotPlainError from None
        return time.astimezone(timezone.utc) if column.utc else time

    return read


def _run(cell: str) -> str:
    text = cell_text(cell)
    if text is None:
        raise NotPlainError
    return text


def _refuse(cell: str) -> Any:
    raise NotPlainError


def _as_array(times: list[Any]) -> NDArray[Any]:
    if isinstance(times[0], datetime):
        return np.array([time.replace(tzinfo=None) for time in times], dtype="datetime64[us]")
    return np.array(times)
