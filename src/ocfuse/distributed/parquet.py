"""Folders of Parquet files: one file is one piece of work; unfinished files."""

import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from ocfuse.exceptions import FolderInUseError, TableError, TableWarning
from ocfuse.system.files import naming, natural
from ocfuse.tables.dataframes import Frame, listed, pandas
from ocfuse.tables.source import FolderSource, ParquetSource

#: Rows that a worker holds at a time.
CHUNK_ROWS = 10_000


@dataclass(frozen=True)
class Piece:
    """A file, and the place of its rows among those of the folder."""

    path: str  # a name that every machine knows
    size: int  # bytes
    changed: int  # when it was last written to, in nanoseconds
    n_rows: int  # as its footer says; 0 if that cannot be read
    start: int = 0  # rows in the files before it
    mistake: str = ""  # why it cannot be read, if so

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.path).name

    def frames(self) -> Iterator[Frame]:
        """Yield its rows as `open_source` gives those of the folder, numbered alike."""
        path, n = Path(self.path), self.start
        for frame in _first(path).frames():
            frame.index = pandas().RangeIndex(n, n + len(frame))
            n += len(frame)
            yield frame


def pieces_of(where: Any, *, alike: bool = False) -> list[Piece]:
    """Return the Parquet files of a folder in the order in which they are one table.

    If they must be `alike`, other columns than those of the first file are a mistake.
    """
    folder = Path(os.path.abspath(os.fspath(where)))
    if not folder.is_dir():
        raise TableError(
            f"{where} must be a folder of Parquet files, which every worker can read under this "
            "name. Move a single file into a folder; convert other formats."
        )
    paths, others = _contents(folder)
    if not paths:
        raise TableError(
            f"{where} must hold files that end in .parquet; folders in it are not read. Got "
            f"{listed([path.name for path in others]) or 'nothing'}."
        )
    first = _first(paths[0]) if alike else None
    with ThreadPoolExecutor(16) as pool:
        pieces = list(pool.map(partial(_look_at, first=first), paths))
    starts = accumulate((piece.n_rows for piece in pieces), initial=0)
    return [replace(piece, start=start) for piece, start in zip(pieces, starts, strict=False)]


def unread_in(where: Any, out: Path | None = None) -> list[Warning]:
    """Warn of what is in a folder and looks like data, but is not read.

    Names that begin with a dot or an underscore, such as ``_SUCCESS``, are notes of other tools;
    `out` is the folder of scores, which may be there.
    """
    _, others = _contents(Path(os.path.abspath(where)))
    others = [path for path in others if not path.name.startswith("_") and path != out]
    if not others:
        return []
    name = f"{others[0].name}/" if others[0].is_dir() else others[0].name
    count = name if len(others) == 1 else f"{len(others):,} others, the first of them {name}"
    return [
        TableWarning(
            f"Of {where} only the files directly in it that end in .parquet are read, and not "
            f"{count}. Give such a folder by itself, or move what belongs to the data up."
        )
    ]


def _contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that are read, in their order, and what else can be seen."""
    visible = [path for path in folder.iterdir() if not path.name.startswith(".")]
    files: list[Path] = []
    others: list[Path] = []
    for path in sorted(visible, key=lambda path: natural(path.name)):
        is_read = path.name.lower().endswith(".parquet") and not path.is_dir()
        (files if is_read else others).append(path)
    return files, others


def _open(path: Path) -> ParquetSource:
    return ParquetSource(path, CHUNK_ROWS)


def _first(path: Path) -> FolderSource:
    """Return the folder as its first file describes it."""
    return FolderSource(path.parent, [path], _open, CHUNK_ROWS)


def _look_at(path: Path, first: FolderSource | None) -> Piece:
    about = path.stat()
    piece = Piece(str(path), about.st_size, about.st_mtime_ns, 0)
    try:
        source = _open(path)
        if first is not None:
            first.require_columns(source)
        return replace(piece, n_rows=source.n_rows)
    except TableError as error:
        return replace(piece, mistake=str(error))


@contextmanager
def desk_in(folder: Path, token: str) -> Iterator[Path]:
    """Yield a folder for unfinished files, the desk, and remove those of calls before.

    Workers may still be busy for a call that was killed. A file gets its name from the desk
    of its call only, so that nothing of theirs can appear any more. Only one call at a time may
    have a desk in a folder; `token` is a name that no other call has. Readers of Parquet files
    pass names by that begin with a dot.
    """
    for other in folder.glob(".*.part"):
        if other.is_dir():
            _clear(other)
    desk = folder / f".{token}.part"
    with naming(desk):
        desk.mkdir()
    try:
        yield desk
    finally:
        _clear(desk)


@contextmanager
def at_desk(desk: Path) -> Iterator[None]:
    """Raise an error that says why nothing can be written, if the desk is gone."""
    try:
        yield
    except FileNotFoundError as error:
        if desk.is_dir():
            raise
        raise FolderInUseError(
            f"What this call had begun in {desk.parent} is not there on {socket.gethostname()}: "
            "another call has taken the folder over, or that machine knows another folder by "
            "this name. See that all machines share it, and that one call at a time writes there."
        ) from error


def _clear(desk: Path) -> None:
    """Remove a folder that others may be writing into: its name is gone at once."""
    away = desk.with_name(f".{uuid.uuid4().hex}.part")
    with suppress(FileNotFoundError):
        desk.rename(away)
    shutil.rmtree(away, ignore_errors=True)
