"""What the cells of one column say: numbers or text.

Every function looks at one cell at a time, so that the result does not depend
on how a table is cut into chunks.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.optional import needed
from ocfuse.tables.frames import Series, pandas

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

#: Words that mean "no number here", in small letters.
GAP_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-"})
#: Of these, spellings that say nothing among text either; "NA" may be a name.
TEXT_GAPS = frozenset({"nan", "NaN", "NaT", "<NA>", "null", "NULL", "None", "n/a", "N/A", "#N/A"})
#: Truth has one spelling, whether a file has types or not.
TRUTH = frozenset({"true", "false"})


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


def numbers(column: Series) -> tuple[FloatArray, BoolArray]:
    """Return the numbers of a column, NaN for gaps, and which cells are no numbers."""
    if is_number_type(column.dtype):
        values = column.to_numpy(np.float64, na_value=math.nan)
        return values, np.zeros(len(column), dtype=bool)
    if str(column.dtype) == "string" and column.dtype.storage == "pyarrow":
        cast = _cast(column)
        if cast is not None:
            return cast, np.zeros(len(column), dtype=bool)
    read = [_number(cell) for cell in _objects(column)]
    values = np.array([math.nan if value is None else value for value in read], dtype=np.float64)
    return values, np.array([value is None for value in read], dtype=bool)


def texts(column: Series) -> list[str | None]:
    """Return what the cells of a column say, None for gaps."""
    return [_text(cell) for cell in _objects(column)]


def words(column: Series) -> list[str | None]:
    """Return what the cells of a column say, None for gaps and for words that mean a gap."""
    return [None if text in TEXT_GAPS else text for text in texts(column)]


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


def _number(cell: Any) -> float | None:
    """Return a number, NaN for a gap, None for anything else."""
    if isinstance(cell, str):
        word = cell.strip()
        if word.lower() in GAP_WORDS:
            return math.nan
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


def _text(cell: Any) -> str | None:
    """Return a cell as text that is the same whether a file has types or not."""
    if cell is None:
        return None
    is_whole = isinstance(cell, float | np.floating) and cell.is_integer()
    text = str(int(cell) if is_whole else cell).strip()
    return text.lower() if text.lower() in TRUTH else text or None
