"""Find out what kind of table is meant."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.system.files import natural
from ocfuse.tables.dataframes import listed
from ocfuse.tables.source import ArraySource, FeatherSource, FolderSource, ParquetSource, Source
from ocfuse.tables.text import TextSource

TEXT = (".csv", ".tsv", ".txt")
BINARY = {
    ".parquet": ParquetSource,
    ".feather": FeatherSource,
    ".npy": ArraySource,
    ".npz": ArraySource,
}


def open_source(
    where: Any,
    delimiter: str | None = None,
    chunk_rows: int = 10_000,
    *,
    decimal: str | None = None,
) -> Source:
    """Open a table for reading, some rows at a time.

    Text is taken as it stands; whether a column holds numbers is for the schema
    to say. The first line of a text file holds the column names.

    Parameters
    ----------
    where : path-like, "-" or binary stream
        A file that ends in .csv, .tsv, .txt (each also with .gz), .parquet,
        .feather, .npy or .npz; a folder of such files with the same columns, to
        which a column `file` with their names is added;
        "-" for CSV from standard input; or an object with `readline`, for CSV.
    delimiter : str, default=None
        What separates the values of a text file. None infers it from the first
        lines: comma, semicolon, tab or bar.
    chunk_rows : int, default=10000
        Most rows that are held at a time.
    decimal : str, default=None
        What separates decimals in a text file, "." or ",". None infers it from
        the first lines; with commas between the values it is ".".

    Returns
    -------
    Source
        The table.
    """
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or chunk_rows < 1:
        raise InvalidInputError(f"chunk_rows must be at least 1. Got chunk_rows={chunk_rows!r}.")
    if isinstance(where, str | Path) and str(where) == "-":
        return TextSource(sys.stdin.buffer, "standard input", delimiter, decimal, chunk_rows)
    if hasattr(where, "readline"):
        name = str(getattr(where, "name", "the stream"))
        return TextSource(where, name, delimiter, decimal, chunk_rows)
    path = Path(os.fspath(where))
    open_file = partial(_open_file, delimiter=delimiter, decimal=decimal, chunk_rows=chunk_rows)
    if path.is_dir():
        return FolderSource(path, _tables_in(path), open_file, chunk_rows)
    return open_file(path)


def _open_file(
    path: Path, *, delimiter: str | None, decimal: str | None, chunk_rows: int
) -> Source:
    if not path.exists():
        raise TableError(f"There is no file {path}.")
    if not path.is_file():
        raise TableError(f"{path} is no file. Feed it to standard input instead, and give '-'.")
    kind = _kind(path)
    if kind in TEXT:
        return TextSource(path, path.name, delimiter, decimal, chunk_rows)
    if kind in BINARY:
        return BINARY[kind](path, chunk_rows)
    advice = "Save the sheet as CSV." if kind.startswith(".xls") else "Convert or rename it."
    raise TableError(
        f"{path.name} must end in {', '.join((*TEXT, *BINARY))}, or in .gz after one of the first "
        f"three. {advice}"
    )


def _kind(path: Path) -> str:
    """Return the ending that names the format, in small letters."""
    inner = Path(path.stem).suffix.lower()
    is_compressed_text = path.suffix.lower() == ".gz" and inner in TEXT
    return inner if is_compressed_text else path.suffix.lower()


def _tables_in(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if not path.name.startswith(".")]
    visible.sort(key=lambda path: natural(path.name))
    files = [path for path in visible if path.is_file() and _kind(path) in (*TEXT, *BINARY)]
    if not files:
        there = listed([path.name for path in visible]) or "nothing"
        raise TableError(
            f"{folder} must hold files that end in {', '.join((*TEXT, *BINARY))}. Got {there}."
        )
    return files
