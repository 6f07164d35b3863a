"""Files: written so that nobody finds half of one, and what their names tell."""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: Endings of names of pictures.
PICTURE_ENDINGS = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def natural(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts 2 before 10.

    Examples
    --------
    >>> sorted(["run10", "run2"], key=natural)
    ['run2', 'run10']
    """
    parts = re.split(r"(\d+)", name)
    return [(int(part) if part.isdecimal() else -1, part) for part in parts]


def write_atomically(target: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    with replacing(target) as file, naming(target):
        file.write(content)


@contextmanager
def replacing(
    target: Path, shown: Path | None = None, within: Path | None = None
) -> Iterator[IO[bytes]]:
    """Give a file that takes the place of the target when it is complete, and only then.

    Parameters
    ----------
    target : Path
        Where the file will be.
    shown : Path, default=None
        How errors name it; None is the target.
    within : Path, default=None
        Folder for it until then, of the same file system; None is that of the target.

    Yields
    ------
    binary file
        Open for writing.
    """
    folder = target.parent if within is None else within
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}. Create it first.")
    name = target if shown is None else shown
    part = folder / f".{uuid.uuid4().hex}.part"
    try:
        with opened(part, "xb", name) as file:
            yield file
            with naming(name):
                file.flush()
                os.fsync(file.fileno())
        with naming(name):
            os.replace(part, target)
    finally:
        # where nothing can be written, nothing can be removed either
        with suppress(OSError):
            part.unlink()


@contextmanager
def opened(place: Path, mode: str, shown: Path) -> Iterator[IO[bytes]]:
    """Give an open file, whose failures are told of the file that is shown."""
    with naming(shown):
        file = place.open(mode)
    try:
        yield file
        with naming(shown):
            file.close()
    finally:
        # what could not be written fails again: it has been told
        with suppress(OSError):
            file.close()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say of a failure inside which file it was, as the user knows it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
