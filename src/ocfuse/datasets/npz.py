"""Read npz files that hold a table X and its labels."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ocfuse.datasets.dataset import FloatArray
from ocfuse.datasets.text import DAMAGE, as_text, require_no_infinity
from ocfuse.exceptions import DatasetError

#: How a file of np.save starts.
ONE_ARRAY = b"\x93NUMPY"


def read_npz(path: Path, label: str) -> tuple[FloatArray, list[str], tuple[str, ...]]:
    """Return values, classes and names of an npz file with arrays X and labels."""
    with _opened(path) as arrays:
        _require_arrays(arrays, label, path)
        X, y = np.asarray(arrays["X"]), np.asarray(arrays[label]).ravel()
    if X.ndim != 2 or len(X) != len(y) or X.dtype.kind not in "biuf":
        raise DatasetError(
            f"X of {path} must be a table of numbers with one label per row. Got shape {X.shape} "
            f"of {X.dtype} and {len(y)} labels."
        )
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    values = X.astype(np.float64)
    require_no_infinity(values, names, str(path))
    return values, [as_text(value) for value in y.tolist()], names


def look_npz(path: Path, label: str) -> tuple[tuple[int, int], Any]:
    """Return the shape of X and the labels without reading X, which may be large."""
    with _opened(path) as arrays:
        _require_arrays(arrays, label, path)
        y = np.asarray(arrays[label]).ravel()
        with zipfile.ZipFile(path) as archive, archive.open("X.npy") as file:
            shape = _shape(cast(BinaryIO, file))
    if len(shape) != 2 or shape[0] != len(y):
        raise DatasetError(
            f"X of {path} must be a table with one label per row. Got shape {shape} and "
            f"{len(y)} labels."
        )
    return (shape[0], shape[1]), y


def _shape(file: BinaryIO) -> tuple[int, ...]:
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
        version, np.lib.format.read_array_header_2_0
    )
    return read(file)[0]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, and say which one it was if it cannot be read."""
    try:
        with open(path, "rb") as file:
            if file.read(len(ONE_ARRAY)) == ONE_ARRAY:
                raise DatasetError(
                    f"{path} must hold arrays by name, as np.savez writes them. Got one array, "
                    "as np.save writes it."
                )
            # NumPy takes what is not zipped for a pickle, and its advice would be a bad one
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is not a whole zip archive")
            file.seek(0)
            with np.load(file) as arrays:
                yield arrays
    except DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise DatasetError(f"{path} cannot be read as npz: {reason.rstrip('.')}.") from error


def _require_arrays(arrays: Any, label: str, path: Path) -> None:
    if {"X", label} - set(arrays.files):
        raise DatasetError(
            f"{path} must hold the arrays X and {label}. It holds "
            f"{', '.join(arrays.files) or 'none'}."
        )
