"""Read the lines of a file, zipped or not, and the numbers in them."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ocfuse.datasets.dataset import FloatArray
from ocfuse.exceptions import DatasetError

#: How sources write a gap.
GAPS = frozenset({"", "?"})
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
                table[i, j] = np.nan if row[j] in GAPS else float(row[j])
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
