"""Load a table of the user's: CSV, Parquet or npz, with a column of labels."""

import csv
import io
from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.datasets.dataset import Dataset, FloatArray, signs
from ocfuse.datasets.names import unknown
from ocfuse.datasets.optional import needed
from ocfuse.datasets.text import numbers, read_text
from ocfuse.exceptions import DatasetError, DatasetUnavailableError, InvalidInputError

Columns = tuple[FloatArray, list[str], tuple[str, ...]]


def load_table(
    path: str | PathLike[str],
    *,
    label: str,
    normal: str | int | Collection[str | int],
    delimiter: str = ",",
) -> Dataset:
    """Load a table with a column of labels from a file.

    Parameters
    ----------
    path : path-like
        File that ends in .csv, .parquet or .npz. A CSV file has a header line;
        an npz file has the array X, and the labels as another array.
    label : str
        Column (or array) with the class of each row.
    normal : str, int or collection of them
        Class, or classes, that count as normal. Classes are compared as text.
    delimiter : str, default ","
        What separates the values of a CSV file.

    Returns
    -------
    Dataset
        All columns but the label as numbers; NaN for cells that are empty or "?".
    """
    file = Path(path)
    if not file.is_file():
        raise DatasetUnavailableError(f"path must name a file. Got {file}, which is not one.")
    readers = {".parquet": _read_parquet, ".npz": read_npz}
    if file.suffix == ".csv":
        X, labels, names = _read_csv(file, label, delimiter)
    elif file.suffix in readers:
        X, labels, names = readers[file.suffix](file, label)
    else:
        raise InvalidInputError(
            f"path must end in .csv, .parquet or .npz. Got {file.name}. Rename or convert it."
        )
    if 0 in X.shape:
        raise DatasetError(f"{file} must hold rows and columns of values. Got shape {X.shape}.")
    _require_labels(labels, file)
    classes: NDArray[np.str_] = np.array(labels)
    return Dataset(file.stem, X, signs(_is_normal(classes, normal, file)), classes, names)


def read_npz(path: Path, label: str) -> Columns:
    """Return values, classes and names of an npz file with arrays X and labels."""
    try:
        with np.load(path) as arrays:
            missing = {"X", label} - set(arrays.files)
            if missing:
                raise DatasetError(
                    f"{path} must hold the arrays X and {label}. It holds "
                    f"{', '.join(arrays.files) or 'none'}."
                )
            X, y = np.asarray(arrays["X"]), np.asarray(arrays[label]).ravel()
    except (ValueError, OSError, EOFError) as error:
        raise DatasetError(f"{path} cannot be read as npz: {error}.") from error
    if X.ndim != 2 or len(X) != len(y) or X.dtype.kind not in "biuf":
        raise DatasetError(
            f"X of {path} must be a table of numbers with one label per row. Got shape {X.shape} "
            f"of {X.dtype} and {len(y)} labels."
        )
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    return X.astype(np.float64), [_as_text(value) for value in y.tolist()], names


def _read_csv(path: Path, label: str, delimiter: str) -> Columns:
    text = io.StringIO(read_text(path, path.name))
    rows = [row for row in csv.reader(text, delimiter=delimiter) if row]
    if not rows:
        raise DatasetError(f"{path} must hold a header line and rows. Got an empty file.")
    header, cells = rows[0], rows[1:]
    at = _position(header, label, path)
    for number, row in enumerate(cells, start=1):
        if len(row) != len(header):
            raise DatasetError(
                f"Each row of {path} must have {len(header)} values, as its header. "
                f"Got {len(row)} in row {number}. Is the delimiter {delimiter!r}?"
            )
    names = (*header[:at], *header[at + 1 :])
    values = [[*row[:at], *row[at + 1 :]] for row in cells]
    return numbers(values, names, str(path)), [row[at] for row in cells], names


def _read_parquet(path: Path, label: str) -> Columns:
    parquet = needed("pyarrow.parquet", "to read Parquet files")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise DatasetError(f"{path} cannot be read as Parquet: {error}.") from error
    at = _position(table.column_names, label, path)
    names = tuple(name for name in table.column_names if name != label)
    X = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        values = table.column(name).to_numpy()
        if values.dtype.kind not in "biuf":
            raise DatasetError(
                f"Column {name!r} of {path} must hold numbers. Got type "
                f"{table.column(name).type}. Encode it as numbers, or leave the column out."
            )
        X[:, j] = values
    return X, [_as_text(value) for value in table.column(at).to_pylist()], names


def _position(header: list[str], label: str, path: Path) -> int:
    if label not in header:
        raise unknown(f"label, a column of {path.name},", label, header)
    return header.index(label)


def _is_normal(classes: NDArray[np.str_], normal: Any, path: Path) -> NDArray[np.bool_]:
    several = isinstance(normal, Collection) and not isinstance(normal, str)
    wanted = [_as_text(value) for value in (normal if several else [normal])]
    if not wanted:
        raise InvalidInputError("normal must name at least one class. Got none.")
    known = sorted(set(classes.tolist()))
    for name in wanted:
        if name not in known:
            raise unknown(f"normal, a class of {path.name},", name, known)
    return np.isin(classes, wanted)


def _require_labels(labels: list[str], path: Path) -> None:
    for number, label in enumerate(labels, start=1):
        if label in ("", "None", "nan"):
            raise DatasetError(
                f"Each row of {path} must have a label. Row {number} has none. "
                "Leave out the rows whose class is not known."
            )


def _as_text(value: Any) -> str:
    """Write a class as text; 1.0 and True are written as 1."""
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if whole else str(value)
