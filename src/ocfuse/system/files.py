"""Files: atomic writes, files of lines, names, and a lock on a folder."""

import errno
import json
import os
import platform
import re
import socket
import stat
import sys
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from ocfuse.exceptions import FolderInUseError

if sys.platform != "win32":
    import fcntl

#: Endings of names of pictures.
PICTURE_ENDINGS = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
#: How names of files begin that this machine has not completed yet; they end in ".part".
BEGUN_HERE = f".ocfuse-{zlib.crc32(platform.node().encode()):08x}-"
#: Name of the file that says who writes.
LOCK = ".ocfuse.lock"


def natural(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts 2 before 10.

    Examples
    --------
    >>> sorted(["run10", "run2"], key=natural)
    ['run2', 'run10']
    """
    parts = re.split(r"(\d+)", name)
    return [(int(part) if part.isdecimal() else -1, part) for part in parts]


def is_unicode(text: str) -> bool:
    """Return whether a text can be written to a file: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_whole(path: Path, most: int | None = None) -> bytes:
    """Return the content of a regular file of at most so many bytes, as it was when opened.

    A device or a pipe, which may never end, is refused before it is opened.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder says what it is
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, at most {most:,}", str(path))
        return file.read(size)


def write_atomically(target: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    with replacing(target) as file, naming(target):
        file.write(content)


@contextmanager
def replacing(
    target: Path, shown: Path | None = None, within: Path | None = None
) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of the target when it is complete, and only then.

    Errors name it as `shown`. Until then it is in the folder `within`, which must be of the same
    file system as the target.
    """
    name = target if shown is None else shown
    with unfinished(target.parent if within is None else within, name) as file:
        _keep_mode(file, target, stat.S_IWUSR)  # from the first byte on
        yield file
        with naming(name):
            finish(file, target)


@contextmanager
def unfinished(folder: Path, shown: Path) -> Iterator[IO[bytes]]:
    """Yield a new hidden file, which is removed in the end unless it got another name.

    Errors name it as `shown`. A program that is killed leaves it behind. The next one that writes
    into the folder on the same machine removes it: it sees that nobody has it locked.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}. Create it first.")
    _remove_abandoned(folder)
    with naming(shown):
        file, lock = _begun(folder)
    try:
        yield file
    finally:
        # what could not be written fails again, and has been reported; where nothing can be
        # written, nothing can be removed either
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            os.unlink(file.name)
        if lock is not None:
            os.close(lock)


def finish(file: IO[bytes], target: Path) -> None:
    """Let a file that is complete take the place of the target, and outlast a loss of power.

    Who may read and write the target may do so with the file that replaces it, and nobody else.
    """
    file.flush()
    _keep_mode(file, target)
    os.fsync(file.fileno())
    file.close()
    os.replace(file.name, target)
    with suppress(OSError):  # not every system can
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _keep_mode(file: IO[bytes], target: Path, more: int = 0) -> None:
    """Give a file the permissions of the one that it will replace, if there is one, and more."""
    with suppress(OSError):  # there is none, or the file system knows none
        os.chmod(file.name, stat.S_IMODE(os.stat(target).st_mode) | more)


def _begun(folder: Path) -> tuple[IO[bytes], int | None]:
    """Return a new file, and what keeps it locked when it has been closed, where that is known."""
    while True:
        file = (folder / f"{BEGUN_HERE}{uuid.uuid4().hex}.part").open("xb")
        if sys.platform == "win32":
            return file, None
        lock = os.dup(file.fileno())
        with suppress(OSError):  # not every file system can
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(file.name):
            return file, lock
        # somebody took it for abandoned, before it was locked
        file.close()
        os.close(lock)


def locked(file: int) -> bool | None:
    """Lock an open file till it is closed; False if another has it, None if nobody can."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True


def _remove_abandoned(folder: Path) -> None:
    """Remove files of writers that were killed, but not those of other machines."""
    with suppress(OSError), os.scandir(folder) as entries:
        for part in [entry.path for entry in entries if entry.name.startswith(BEGUN_HERE)]:
            # whoever writes has it locked; what may only be read cannot be locked everywhere
            with suppress(OSError), open(part, "r+b") as file:
                if locked(file.fileno()):
                    os.unlink(part)


class LineFile:
    """Append lines to a file, each of them whole.

    What a disk that is full took of a line is cut off again. A record of JSON that a program
    that was killed has left without its end is cut off when the file is opened again; below
    another last line without an end the next one begins.

    Parameters
    ----------
    path : Path
        The file; a pipe or a device will do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with naming(path):
            # without a buffer: what is written is there when the program is killed
            self._file = path.open("ab", buffering=0)
        rest = _last_line(path)
        if rest.startswith(b"{") and not _is_json(rest):
            self._file.truncate(self._file.tell() - len(rest))
        elif rest:
            self.write(b"\n")

    def write(self, line: bytes) -> None:
        """Write a line, or raise and leave the file as it was."""
        n_written = 0
        with naming(self.path):
            try:
                while n_written < len(line):
                    n_written += self._file.write(line[n_written:])
            except OSError:
                with suppress(OSError):  # what went into a pipe has gone
                    end = self._file.tell()
                    if end == os.fstat(self._file.fileno()).st_size:  # nobody else has written
                        self._file.truncate(end - n_written)
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _last_line(path: Path, longest: int = 2**20) -> bytes:
    """Return the last line if it has no end, or dots for one that is very long."""
    with suppress(OSError):  # who may write may not always read
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb") as file:
                start = file.seek(max(0, path.stat().st_size - longest))
                _, newline, rest = file.read().rpartition(b"\n")
                return rest if newline or start == 0 else b"..."
    return b""


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@contextmanager
def opened(place: Path, mode: str, shown: Path) -> Iterator[IO[bytes]]:
    """Yield an open file, whose errors name the file that is shown."""
    with naming(shown):
        file = place.open(mode)
    try:
        yield file
        with naming(shown):
            file.close()
    finally:
        # what could not be written fails again: it has been reported
        with suppress(OSError):
            file.close()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have errors inside name a file as the user knows it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@dataclass(frozen=True)
class Holder:
    """The process that has a folder to itself, on some machine since some time."""

    token: str  # a name that no other process has
    host: str
    pid: int
    since: str

    @classmethod
    def here(cls) -> "Holder":
        """Return this process."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        return cls(uuid.uuid4().hex, socket.gethostname(), os.getpid(), now)

    @classmethod
    def of(cls, content: bytes) -> "Holder | None":
        """Return who wrote this, or None if that cannot be told."""
        try:
            return cls(**json.loads(content))
        except (TypeError, ValueError):
            return None

    def __str__(self) -> str:
        return f"process {self.pid} of {self.host}, since {self.since}"


@contextmanager
def folder_lock(folder: Path) -> Iterator[Holder]:
    """Lock a folder that is there, or raise an error that names the process that has locked it.

    A file there names the process, and appears with its content at once. The system locks it
    while that process lives: what a process of this machine left when it was killed is taken
    over. Whether one of another machine lives is not known everywhere; the error says what to do.
    """
    mine, path = Holder.here(), folder / LOCK
    with naming(path):
        lock = _taken(path, mine)
    try:
        yield mine
    finally:
        # somebody may have removed it by hand, and others have begun
        with suppress(OSError):
            if Holder.of(path.read_bytes()) == mine:
                path.unlink()
        os.close(lock)


def _taken(path: Path, mine: Holder) -> int:
    """Put a file there that says who writes; return it, open and locked."""
    part = path.with_name(f"{path.name}.{mine.token}")
    lock = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        os.write(lock, json.dumps(asdict(mine)).encode())
        locked(lock)
        while not (_put(part, path) or _taken_over(part, path, mine)):
            pass
    except BaseException:
        os.close(lock)
        raise
    finally:
        part.unlink(missing_ok=True)
    return lock


def _put(part: Path, path: Path) -> bool:
    """Give a file its name, unless another has it."""
    try:
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # there are no links on this file system
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            os.replace(part, path)
    except FileExistsError:
        return False
    return True


def _taken_over(part: Path, path: Path, mine: Holder) -> bool:
    """Take the place of a process that has ended; raise an error if it may go on."""
    try:
        found = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
    except FileNotFoundError:  # it has just been given back
        return False
    try:
        holder, is_locked = Holder.of(os.read(found, 10_000)), locked(found)
        if is_locked and not _is_at(found, path):
            return False
        if not is_locked or holder is None or holder.host != mine.host:
            raise FolderInUseError(_refusal(path, holder, mine, is_locked))
        os.replace(part, path)
    finally:
        os.close(found)
    return True


def _is_at(file: int, path: Path) -> bool:
    """Return whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _refusal(path: Path, holder: Holder | None, mine: Holder, is_locked: bool | None) -> str:
    who = "another process" if holder is None else str(holder)
    said = f"{path.parent} is written to by {who}. Wait for its end, or give another folder."
    if is_locked is False:  # it lives
        return said
    where = "here" if holder is None or holder.host == mine.host else "there"
    return (
        f"{said} Whether it goes on cannot be told from this machine: if it does not run {where} "
        f"any more, remove {path} and start again."
    )
