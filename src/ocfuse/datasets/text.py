"""Read the lines of a file, zipped or not, and the numbers in them."""

import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from ocfuse.datasets.dataset import FloatArray
from ocfuse.exceptions import DatasetError

#: How sources write a gap.
GAPS = frozenset({"", "?"})


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
    except (UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{path} is neither text nor a whole zip archive: {error}.") from error


def numbers(cells: Sequence[Sequence[str]], columns: Sequence[str], origin: str) -> FloatArray:
    """Turn rows of text into numbers; gaps become NaN."""
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
    return table
