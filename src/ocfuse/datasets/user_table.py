"""Loading of a user's table, CSV, Parquet or npz, with a column of labels."""

import csv
import io
from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.datasets.dataset import Dataset, signs
from ocfuse.datasets.formats import (
    DAMAGE,
    as_text,
    numbers,
    read_npz,
    read_text,
    require_no_infinity,
)
from ocfuse.exceptions import (
    DatasetError,
    DatasetUnavailableError,
    InvalidInputError,
    InvalidTypeError,
    unknown_name,
)
from ocfuse.system.packages import needed

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
        File that ends in .csv, .parquet or .npz. A CSV file is in UTF-8 and has
        a header line; an npz file has the array X, and the labels as another array.
    label : str
        Column (or array) with the class of each row.
    normal : str, int or collection of them
        Class, or classes, that count as normal. Classes are compared as text.
    delimiter : str, default ","
        Character that separates the values of a CSV file.

    Returns
    -------
    Dataset
        All columns but the label as finite numbers; NaN for cells that are
        empty or "?".
    """
    file = Path(path)
    if not file.is_file():
        raise DatasetUnavailableError(f"path must name a file. Got {file}, which is not one.")
    suffix = file.suffix.lower()
    readers = {".parquet": _read_parquet, ".npz": read_npz}
    if suffix == ".csv":
        X, labels, names = _read_csv(file, label, delimiter)
    elif suffix in readers:
        X, labels, names = readers[suffix](file, label)
    else:
        raise InvalidInputError(
            f"path must end in .csv, .parquet or .npz. Got {file.name}. Rename or convert it."
        )
    if 0 in X.shape:
        raise DatasetError(f"{file} must hold rows and columns of values. Got shape {X.shape}.")
    _require_labels(labels, file)
    classes: NDArray[np.str_] = np.array(labels)
    return Dataset(file.stem, X, signs(_is_normal(classes, normal, file)), classes, names)


def _read_csv(path: Path, label: str, delimiter: str) -> Columns:
    _require_delimiter(delimiter)
    text = io.StringIO(read_text(path, path.name))
    try:
        rows = [row for row in csv.reader(text, delimiter=delimiter) if row]
    except csv.Error as error:
        raise DatasetError(f"{path} cannot be read as CSV: {error}.") from error
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


def _require_delimiter(delimiter: Any) -> None:
    if not isinstance(delimiter, str):
        raise InvalidTypeError(f"delimiter must be a character. Got delimiter={delimiter!r}.")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidInputError(
            f"delimiter must be one character, such as ',' or ';'. Got delimiter={delimiter!r}."
        )


def _read_parquet(path: Path, label: str) -> Columns:
    parquet = needed("pyarrow.parquet", "to read Parquet files")
    try:
        table = parquet.read_table(path)
    except DAMAGE as error:  # ArrowInvalid is a ValueError
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
    require_no_infinity(X, names, str(path))
    return X, [as_text(value) for value in table.column(at).to_pylist()], names


def _position(header: list[str], label: str, path: Path) -> int:
    if label not in header:
        raise unknown_name(f"label, a column of {path.name},", label, header)
    return header.index(label)


def _is_normal(classes: NDArray[np.str_], normal: Any, path: Path) -> NDArray[np.bool_]:
    several = isinstance(normal, Collection) and not isinstance(normal, str)
    wanted = [as_text(value) for value in (normal if several else [normal])]
    if not wanted:
        raise InvalidInputError("normal must name at least one class. Got none.")
    known = sorted(set(classes.tolist()))
    for name in wanted:
        if name not in known:
            raise unknown_name(f"normal, a class of {path.name},", name, known)
    return np.isin(classes, wanted)


def _require_labels(labels: list[str], path: Path) -> None:
    for number, label in enumerate(labels, start=1):
        if label in ("", "None", "nan"):
            raise DatasetError(
                f"Each row of {path} must have a label. Row {number} has none. "
                "Leave out the rows whose class is not known."
            )
