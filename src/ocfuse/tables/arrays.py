"""Tables in NumPy's files: one array of rows, whose columns are called x0, x1, ..."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import TableError
from ocfuse.tables.frames import Frame, numbered_names, pandas
from ocfuse.tables.source import Source

#: Name of the array of rows in a file of several arrays.
ROWS = "X"
DAMAGE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)


class ArraySource(Source):
    """A table in a .npy or .npz file.

    In a file of several arrays X holds the rows; every other array of one value
    per row, such as labels, is a column under its own name.

    Parameters
    ----------
    path : Path
        The file.
    chunk_rows : int
        Most rows of one chunk.
    """

    def __init__(self, path: Path, chunk_rows: int) -> None:
        self._rows, self._others = _load(path)
        columns = [*numbered_names(self._rows.shape[1]), *self._others]
        super().__init__(path.name, columns, "NumPy", chunk_rows, path.stat().st_size)

    def frames(self) -> Iterator[Frame]:
        """Yield data frames of numbers."""
        names = numbered_names(self._rows.shape[1])
        n_rows = len(self._rows)
        for start in range(0, n_rows, self.chunk_rows):
            chosen = slice(start, start + self.chunk_rows)
            frame = pandas().DataFrame(np.array(self._rows[chosen]), columns=names)
            for name, values in self._others.items():
                frame[name] = values[chosen]
            self.bytes_read = (self.n_bytes or 0) * min(chosen.stop, n_rows) // n_rows
            yield frame


def _load(path: Path) -> tuple[NDArray[np.generic], dict[str, NDArray[np.generic]]]:
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {ROWS: loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except DAMAGE as error:
        raise TableError(
            f"{path.name} cannot be read; it may be cut off, or hold objects. ({error})"
        ) from error
    if len(arrays) == 1:
        arrays = {ROWS: next(iter(arrays.values()))}
    if ROWS not in arrays:
        raise TableError(
            f"{path.name} must hold the rows as array {ROWS!r}. Got {', '.join(arrays) or 'none'}."
        )
    rows = arrays.pop(ROWS)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise TableError(
            f"{path.name} must hold rows and columns of numbers. "
            f"Got an array of shape {rows.shape} and type {rows.dtype}."
        )
    return rows, {name: array for name, array in arrays.items() if array.shape == rows.shape[:1]}
