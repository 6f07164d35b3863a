"""Tables in NumPy's files: one array of rows, whose columns are called x0, x1, ..."""

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ocfuse.exceptions import TableError
from ocfuse.tables.frames import Frame, numbered_names, pandas
from ocfuse.tables.source import Source

#: Name of the array of rows in a file of several arrays.
ROWS = "X"
DAMAGE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)


class RowsFile:
    """The array of a .npy file, of which rows are read when they are asked for.

    The file is not mapped to memory: one that is cut meanwhile would end the program.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    shape : tuple of int
        As of an array.
    dtype : dtype
        Type of the values.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            version = npy.read_magic(file)
            known = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            if version not in known:
                raise ValueError(f"version {version} of the format is not known")
            self.shape, is_fortran, self.dtype = known[version](file)
            self._begin = file.tell()
        if self.dtype.hasobject:
            raise ValueError("it holds objects")
        if self._begin + math.prod(self.shape) * self.dtype.itemsize > path.stat().st_size:
            raise ValueError("it has fewer bytes than its shape tells")
        self._path = path
        # columns one after another: rows are everywhere in the file
        self._whole = np.load(path, allow_pickle=False) if is_fortran or not self.ndim else None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice) -> NDArray[Any]:
        """Return a row, or rows one after another."""
        if self._whole is not None:
            return np.asarray(self._whole[rows])
        if not isinstance(rows, slice):
            return np.asarray(self[rows : rows + 1][0])
        start, stop, _ = rows.indices(len(self))
        shape = (max(stop - start, 0), *self.shape[1:])
        n_values = math.prod(shape)
        with self._path.open("rb") as file:
            file.seek(self._begin + start * math.prod(self.shape[1:]) * self.dtype.itemsize)
            values = np.fromfile(file, self.dtype, n_values)
        if len(values) < n_values:
            raise ValueError("it was cut off while it was read")
        return values.reshape(shape)


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
            frame = pandas().DataFrame(self._read(chosen), columns=names)
            for name, values in self._others.items():
                frame[name] = values[chosen]
            self.bytes_read = (self.n_bytes or 0) * min(chosen.stop, n_rows) // n_rows
            yield frame

    def _read(self, rows: slice) -> NDArray[Any]:
        try:
            return np.array(self._rows[rows])
        except DAMAGE as error:
            raise _damaged(self.name, error) from error


def _damaged(name: str, error: Exception) -> TableError:
    return TableError(f"{name} cannot be read; it may be cut off, or hold objects. ({error})")


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of a file by name."""
    with path.open("rb") as file:
        is_one = file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX
    if is_one:
        return {ROWS: RowsFile(path)}
    loaded = np.load(path, allow_pickle=False)
    with loaded:
        return {name: loaded[name] for name in loaded.files}


def _load(path: Path) -> tuple[Any, dict[str, NDArray[np.generic]]]:
    try:
        arrays = _arrays(path)
    except DAMAGE as error:
        raise _damaged(path.name, error) from error
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
