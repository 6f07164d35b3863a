"""Read text and npz files of data sets, and compute the checksum of their content.

The checksum is that of the values, whatever the format. A set comes as CSV, as the archive's
own text, zipped or from scikit-learn. What must agree is the content, in order: the same rows
at the same places make the same splits from the same seeds. The canonical text has one line per
row, the numbers as Python's shortest exact form (empty for a gap), then the class; the checksum
is its SHA-256.
"""

import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.datasets.dataset import DatasetInfo
from ocfuse.exceptions import DatasetError

#: What reading a damaged file, zipped or not, raises.
DAMAGE = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read_text(path: Path, member: str) -> str:
    """Return the text of a file, or of a member of a zip archive, wherever it lies in there."""
    try:
        # by content, not by name: a download in progress has no suffix yet
        if not zipfile.is_zipfile(path):
            return path.read_text(encoding="utf-8-sig")
        with zipfile.ZipFile(path) as archive:
            places = [name for name in archive.namelist() if PurePosixPath(name).name == member]
            if not places:
                raise DatasetError(
                    f"{path} must hold the file {member}. It holds {', '.join(archive.namelist())}."
                )
            return archive.read(places[0]).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{path} is neither text in UTF-8 nor a whole zip archive: {error}. Save text in the "
            "encoding UTF-8; fetch an archive again."
        ) from error
    except DAMAGE as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from error


def numbers(cells: Sequence[Sequence[str]], columns: Sequence[str], origin: str) -> FloatArray:
    """Turn rows of text into finite numbers; gaps become NaN."""
    table = np.empty((len(cells), len(columns)))
    for j, column in enumerate(columns):
        for i, row in enumerate(cells):
            try:
                table[i, j] = np.nan if row[j] in ("", "?") else float(row[j])
            except ValueError:
                raise DatasetError(
                    f"Column {column!r} of {origin} must hold numbers. Got {row[j]!r} in row "
                    f"{i + 1}. Encode it as numbers, or leave the column out."
                ) from None
    require_no_infinity(table, columns, origin)
    return table


def require_no_infinity(table: FloatArray, columns: Sequence[str], origin: str) -> None:
    """Refuse infinite values: NaN is the only gap."""
    at = np.argwhere(np.isinf(table))
    if len(at):
        i, j = at[0]
        raise DatasetError(
            f"Column {columns[j]!r} of {origin} must hold finite numbers. Got {table[i, j]} in "
            f"row {i + 1}. Leave the cell empty (NaN) if it is a gap."
        )


def as_text(value: Any) -> str:
    """Write a class as text; 1.0 and True are written as 1."""
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if whole else str(value)


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
            if file.read(6) == b"\x93NUMPY":
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


def content_sha256(blocks: Iterable[tuple[FloatArray, Iterable[str]]]) -> str:
    """Return the SHA-256 of tables and the classes of their rows."""
    digest = hashlib.sha256()
    for X, labels in blocks:
        for row, label in zip(X.tolist(), labels, strict=True):
            # v + 0.0 turns -0.0 into 0.0: they are one number
            cells = ["" if v != v else repr(v + 0.0) for v in row]
            digest.update((",".join([*cells, label]) + "\n").encode())
    return digest.hexdigest()


def require_content(info: DatasetInfo, got: str, origin: str) -> None:
    """Refuse a content whose checksum is not that of the registry."""
    if got != info.sha256:
        raise DatasetError(
            f"The rows of {origin} are not those of {info.name}. Expected content with "
            f"SHA-256 {info.sha256}. Got {got}. Replace the file by the one that "
            f"{info.source} offers, rows in its order."
        )
