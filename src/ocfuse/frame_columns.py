"""Data frames of any library, as narwhals knows them.

pandas' and polars' frames are taken as they are. A frame of another library, such as
pyarrow.Table, becomes its columns as NumPy holds them; a query, such as a LazyFrame of polars or
a relation of DuckDB, is run first. The same values give the same columns, whoever holds them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.system.packages import slow

#: Frames that are somewhere else, as narwhals calls them, and how their rows are scored.
ELSEWHERE = {
    "DASK": "ocfuse.distributed learns and scores where they are; or give X.compute()",
    "PYSPARK": "mapInPandas scores them where they are; or give X.toPandas()",
    "PYSPARK_CONNECT": "mapInPandas scores them where they are; or give X.toPandas()",
}


class FrameColumns:
    """The columns of a frame, with as much of its interface as encoders need.

    Parameters
    ----------
    columns : list
        Names of the columns.
    dtypes : list
        Their types: "category", or anything else, perhaps with a `time_zone`.
    arrays : list of ndarray
        Their values; None or NaN where there is none.
    native : data frame
        The frame itself.
    """

    def __init__(
        self, columns: list[Any], dtypes: list[Any], arrays: list[NDArray[Any]], native: Any
    ) -> None:
        self.columns = columns
        self.dtypes = dtypes
        self.native = native
        self._arrays = arrays

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(self._arrays[0]) if self._arrays else 0

    def __getitem__(self, rows: Any) -> "FrameColumns":
        """Return the chosen rows."""
        taken = [array[rows] for array in self._arrays]
        return FrameColumns(self.columns, self.dtypes, taken, self.native)

    def isna(self) -> NDArray[np.bool_]:
        """Return which cells are gaps."""
        gaps = np.zeros(self.shape, dtype=bool)
        for j, array in enumerate(self._arrays):
            gaps[:, j] = [value is None or value != value for value in array.tolist()]
        return gaps

    def iter_columns(self) -> Iterator[NDArray[Any]]:
        """Yield the values, column by column."""
        yield from self._arrays


def read_frame(X: Any) -> Any:
    """Return a frame that can be read by position; what is no frame is returned as it is.

    Parameters
    ----------
    X : object
        A data frame of any library, an array or anything else.

    Returns
    -------
    object
        A pandas or polars data frame, `FrameColumns`, or X itself.
    """
    local = local_frame(X)
    if local is None or type(local).__module__.split(".")[0] in ("pandas", "polars"):
        return X if local is None else local
    frame = slow("narwhals.stable.v2").from_native(local, eager_only=True)
    columns = list(frame.iter_columns())
    is_category = [str(column.dtype).startswith(("Categorical", "Enum")) for column in columns]
    return FrameColumns(
        list(frame.columns),
        ["category" if yes else c.dtype for c, yes in zip(columns, is_category, strict=True)],
        [_array(column, yes) for column, yes in zip(columns, is_category, strict=True)],
        local,
    )


def local_frame(X: Any) -> Any:
    """Return a frame of its own library, run if it is a query; None if X is no frame.

    Parameters
    ----------
    X : object
        A data frame of any library, an array or anything else.

    Returns
    -------
    object
        A data frame whose rows are in memory, or None.
    """
    if X is None or isinstance(X, np.ndarray | list | tuple | FrameColumns | str):
        return None
    if type(X).__module__.startswith("narwhals."):
        X = X.to_native()
    library, name = type(X).__module__.split(".")[0], type(X).__name__
    if library in ("pandas", "polars") and name == "DataFrame":
        return X
    if library == "pyarrow" and name == "RecordBatch":  # narwhals knows tables only
        return slow("pyarrow").Table.from_batches([X])
    if library == "pyarrow" and name == "RecordBatchReader":
        raise InvalidTypeError(
            "X must be a table in memory. Got pyarrow.RecordBatchReader, whose rows can be read "
            "only once. Call .read_all(), which returns a table."
        )
    nw = slow("narwhals.stable.v2")
    try:
        frame = nw.from_native(X, pass_through=True)
    except slow("narwhals.exceptions").DuplicateError as error:
        raise InvalidInputError(f"Column names must be unique. {error}") from error
    if isinstance(frame, nw.LazyFrame):
        source = str(frame.implementation.name)
        if source in ELSEWHERE:
            raise InvalidTypeError(
                f"X must be in the memory of this machine. Got {library}.{name}, whose rows are "
                f"elsewhere. {ELSEWHERE[source]}."
            )
        frame = frame.collect()
    return frame.to_native() if isinstance(frame, nw.DataFrame) else None


def in_memory(X: Any) -> Any:
    """Return rows that do not change: a query is run, and anything else is returned as it is."""
    frame = local_frame(X)
    return X if frame is None else frame


def native_frame(X: Any) -> Any:
    """Return the frame that `FrameColumns` were read from; anything else as it is."""
    return X.native if isinstance(X, FrameColumns) else X


def _array(column: Any, is_category: bool) -> NDArray[Any]:
    """Return the values of a column of narwhals."""
    if not is_category:
        return np.asarray(column.to_numpy())
    # as an array, a gap of an Arrow dictionary would have the value of a category
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_list()
    return values
