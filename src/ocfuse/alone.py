"""Be the only one that writes into a folder, on whichever machine."""

import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from ocfuse.exceptions import FolderInUseError
from ocfuse.files import locked, naming

#: Name of the file that says who writes.
LOCK = ".ocfuse.lock"


@dataclass(frozen=True)
class Holder:
    """Who has a folder to itself.

    Attributes
    ----------
    token : str
        A name that nobody else has.
    host : str
        The machine.
    pid : int
        The process there.
    since : str
        When it began.
    """

    token: str
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
def alone_in(folder: Path) -> Iterator[Holder]:
    """Have a folder to oneself inside, or say who else has it.

    A file there names the process, and appears with its content at once. The system locks it
    while that process lives: what a process of this machine left when it was killed is taken
    over. Of other machines that cannot be told everywhere, and the error says what to do.

    Parameters
    ----------
    folder : Path
        The folder, which is there.

    Yields
    ------
    Holder
        This process.
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
    """Tell whether an open file still has this name."""
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
