"""Opening of tables: files, folders, addresses and streams."""

import codecs
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.system.bags import is_recording
from ocfuse.system.files import natural
from ocfuse.tables.bags import BagTable
from ocfuse.tables.dataframes import listed
from ocfuse.tables.excel import WORKBOOKS, ExcelSource
from ocfuse.tables.json_lines import JSON, JsonLinesSource
from ocfuse.tables.remote import open_remote, scheme
from ocfuse.tables.source import ArraySource, FeatherSource, FolderSource, ParquetSource, Source
from ocfuse.tables.text import COMPRESSED, TextSource

TEXT = (".csv", ".tsv", ".txt")
BINARY = {
    ".parquet": ParquetSource,
    ".feather": FeatherSource,
    ".npy": ArraySource,
    ".npz": ArraySource,
    **dict.fromkeys(WORKBOOKS, ExcelSource),
}
KNOWN = (*TEXT, *JSON, *BINARY)
#: Table of a folder that is a run of a robot, as `ocfuse simulate` writes it.
STATES = "states.parquet"


def open_source(
    where: Any,
    delimiter: str | None = None,
    chunk_rows: int = 10_000,
    *,
    decimal: str | None = None,
    columns: Sequence[str] | None = None,
    topic: str | None = None,
    sheet: str | None = None,
) -> Source:
    """Open a table to read it in chunks of rows.

    Cells of text files stay text; `Schema` decides which columns hold numbers. The first line of a
    text file holds the column names.

    Parameters
    ----------
    where : path-like, "-" or binary stream
        A file that ends in .csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz, .bz2, .xz
        or .zst), .parquet, .feather, .npy, .npz or .xlsx (also .xls, .xlsb, .ods); the address
        of one, https://, s3://, gs:// or another that fsspec knows; a folder of such files with
        the same columns, to which a column `file` with their names is added; a folder of
        runs of a robot, each a folder with `states.parquet` (its name is the `file`);
        an .mcap or .bag file, the folder of a ROS 2 bag, or a folder of these;
        "-" for CSV or JSON lines from standard input; or an object with `readline`,
        for CSV.
    delimiter : str, default=None
        Separator of the values in a text file. None infers it from the first lines: comma,
        semicolon, tab or bar.
    chunk_rows : int, default=10000
        Most rows of a chunk.
    decimal : str, default=None
        Decimal mark in a text file, "." or ",". None infers it from the first lines; if values are
        separated by commas it is ".".
    columns : sequence of str, default=None
        Names of the columns of a text file without a header line. None takes them from the first
        line.
    topic : str, default=None
        Topic of a ROS recording. None is possible if only one topic has numbers.
    sheet : str, default=None
        Sheet of a workbook. None takes the first one with a table.

    Returns
    -------
    Source
        The table.
    """
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or chunk_rows < 1:
        raise InvalidInputError(f"chunk_rows must be at least 1. Got chunk_rows={chunk_rows!r}.")
    text = partial(
        TextSource, delimiter=delimiter, decimal=decimal, chunk_rows=chunk_rows, columns=columns
    )
    if isinstance(where, str | Path) and str(where) == "-":
        if columns is None and _is_json(sys.stdin.buffer):
            return JsonLinesSource(sys.stdin.buffer, "standard input", chunk_rows)
        return text(sys.stdin.buffer, "standard input")
    if hasattr(where, "readline"):
        return text(where, str(getattr(where, "name", "the stream")))
    open_file = partial(_open_file, open_text=text, chunk_rows=chunk_rows, topic=topic, sheet=sheet)

    def open_local(path: Path) -> Source:
        """Return the source of a file or a folder."""
        if path.is_dir() and not is_recording(path):
            return FolderSource(path, _tables_in(path), open_file, chunk_rows)
        return open_file(path)

    if scheme(where):
        return open_remote(where, lambda path: kind(path) in KNOWN, open_local)
    return open_local(Path(os.fspath(where)))


def _open_file(
    path: Path,
    *,
    open_text: "partial[TextSource]",
    chunk_rows: int,
    topic: str | None,
    sheet: str | None,
) -> Source:
    if not path.exists():
        raise TableError(f"There is no file {path}.")
    if is_recording(path):
        return BagTable(path, topic, chunk_rows)
    if topic is not None:
        raise TableError(f"{path.name} is no recording and has no topics. Leave topic out.")
    if not path.is_file():
        raise TableError(f"{path} is no file. Feed it to standard input instead, and give '-'.")
    ending = kind(path)
    if sheet is not None and ending not in WORKBOOKS:
        raise TableError(f"{path.name} is no workbook and has no sheets. Leave sheet out.")
    if ending in TEXT:
        return open_text(path, path.name)
    if open_text.keywords["columns"] is not None and ending in KNOWN:
        raise TableError(
            f"{path.name} names its columns itself. Leave columns out, which is for CSV without "
            "names."
        )
    if ending in JSON:
        return JsonLinesSource(path, path.name, chunk_rows)
    if ending in WORKBOOKS:
        return ExcelSource(path, chunk_rows, sheet)
    if ending in BINARY:
        return BINARY[ending](path, chunk_rows)
    raise TableError(
        f"{path.name} must end in {', '.join(KNOWN)}, or in {', '.join(COMPRESSED)} after one of "
        f"the first {len(TEXT + JSON)}. Convert or rename it."
    )


def _is_json(stdin: Any) -> bool:
    """Return whether the first thing on standard input is an object; waits for it."""
    peek = getattr(stdin, "peek", None)
    start = b"" if peek is None else bytes(peek(1))
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")


def kind(path: Path) -> str:
    """Return the ending that names the format, in small letters."""
    inner = Path(path.stem).suffix.lower()
    is_compressed_text = path.suffix.lower() in COMPRESSED and inner in (*TEXT, *JSON)
    return inner if is_compressed_text else path.suffix.lower()


def _tables_in(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if not path.name.startswith(".")]
    visible.sort(key=lambda path: natural(path.name))
    files = [path for path in visible if path.is_file() and kind(path) in KNOWN]
    if not files:
        files = [path for path in visible if is_recording(path)]
    if not files:  # runs of a robot, a folder each
        files = [path / STATES for path in visible if (path / STATES).is_file()]
    if not files:
        there = listed([path.name for path in visible]) or "nothing"
        raise TableError(f"{folder} must hold files that end in {', '.join(KNOWN)}. Got {there}.")
    return files
