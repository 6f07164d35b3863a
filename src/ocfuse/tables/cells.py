"""What the cells of one column say: numbers or text.

Every function looks at one cell at a time, so that the result does not depend
on how a table is cut into chunks.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.columns import category, cell_text
from ocfuse.optional import needed
from ocfuse.tables.frames import Series, pandas
from ocfuse.tables.notation import Notation

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

#: Words that mean "no number here", in small letters.
GAP_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-"})
#: What a spreadsheet would take for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def is_number_type(dtype: Any) -> bool:
    """Tell whether a type holds real numbers; booleans are none here."""
    types = pandas().api.types
    return (
        types.is_numeric_dtype(dtype)
        and not types.is_bool_dtype(dtype)
        and not types.is_complex_dtype(dtype)
    )


def is_time_type(dtype: Any) -> bool:
    """Tell whether a type holds dates or times of day with a date."""
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
    """Tell whether a cell holds a number that is no gap."""
    value = _number(cell)
    return value is not None and not math.isnan(value)


def texts(column: Series) -> list[str | None]:
    """Return what the cells of a column say, None for gaps."""
    return [cell_text(cell) for cell in _objects(column)]


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
    """Return text that no spreadsheet takes for a formula.

    Parameters
    ----------
    text : str
        What a cell of a CSV file is to say.

    Returns
    -------
    str
        The text, after an apostrophe if it would begin a formula.

    Examples
    --------
    >>> from ocfuse.tables.cells import no_formula
    >>> no_formula("=1+1"), no_formula("pump")
    ("'=1+1", 'pump')
    """
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
