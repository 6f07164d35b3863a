"""Where files are written until they are complete, in sight of all workers."""

import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ocfuse.exceptions import FolderInUseError
from ocfuse.files import naming

#: How its name ends; with the dot before it, readers of Parquet files pass it by.
ENDING = ".part"


@contextmanager
def desk_in(folder: Path, token: str) -> Iterator[Path]:
    """Give a folder for files that are being written, and end those of calls before.

    Workers may still be busy for a call that was killed. A file gets its name from the desk
    of its call only, so that nothing of theirs can appear any more.

    Parameters
    ----------
    folder : Path
        Where the files belong; only one call at a time may have a desk there.
    token : str
        A name that no other call has.

    Yields
    ------
    Path
        The desk.
    """
    for other in folder.glob(f".*{ENDING}"):
        if other.is_dir():
            _clear(other)
    desk = folder / f".{token}{ENDING}"
    with naming(desk):
        desk.mkdir()
    try:
        yield desk
    finally:
        _clear(desk)


@contextmanager
def at_desk(desk: Path) -> Iterator[None]:
    """Say why nothing can be written, if the desk is gone."""
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
    away = desk.with_name(f".{uuid.uuid4().hex}{ENDING}")
    with suppress(FileNotFoundError):
        desk.rename(away)
    shutil.rmtree(away, ignore_errors=True)
