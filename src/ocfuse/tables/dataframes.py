"""Data frames, the one shape in which tables travel, and names for new columns."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from ocfuse.exceptions import InvalidTypeError, TableError
from ocfuse.frame_columns import local_frame
from ocfuse.system.packages import needed, slow

#: `pandas.DataFrame` and `pandas.Series`; pandas itself is imported only when a table is met.
Frame: TypeAlias = Any
Series: TypeAlias = Any

#: Column that names the file of every row where a folder is read as one table.
FILE = "file"


def pandas() -> Any:
    """Return pandas, or say which extra brings it."""
    return needed("pandas", "to read tables")


def as_frame(table: Any) -> Frame:
    """Return a table as a pandas data frame whose column names are distinct text."""
    pd = pandas()
    if isinstance(table, np.ndarray) and table.ndim == 2:
        return pd.DataFrame(table, columns=numbered_names(table.shape[1]), copy=False)
    local = local_frame(table)
    frame = table if local is None else local
    if hasattr(frame, "to_pandas"):
        frame = frame.to_pandas()
    elif local is not None and not isinstance(local, pd.DataFrame):  # such as modin's
        frame = slow("narwhals.stable.v2").from_native(local, eager_only=True).to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(
            "A data frame or an array of rows and columns is expected. "
            f"Got {type(table).__name__}. pandas.DataFrame(...) makes a frame of lists by column "
            "name, or of rows."
        )
    names = [str(name) for name in frame.columns]
    require_distinct(names, "The table")
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)


def numbered_names(n: int) -> list[str]:
    """Return the names of n columns that have none: x0, x1, ..."""
    return [f"x{j}" for j in range(n)]


def require_distinct(names: Sequence[str], where: str) -> None:
    """Refuse column names that occur twice: it would not be clear which is meant."""
    if len(set(names)) < len(names):
        twice = listed(sorted(name for name, n in Counter(names).items() if n > 1))
        raise TableError(f"{where} has columns of the same name: {twice}. Rename them.")


def listed(words: Sequence[Any], most: int = 8) -> str:
    """Return words as a list to read, cut off where it gets long."""
    shown = ", ".join(map(str, words[:most]))
    return shown + (f" and {len(words) - most} others" if len(words) > most else "")


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: the wanted one, or `wanted_2`, `wanted_3`, ..."""
    name, n = wanted, 1
    while name in taken:
        n += 1
        name = f"{wanted}_{n}"
    return name
