"""Lines of stdin or of a growing file, as they come."""

import io
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from ocfuse.exceptions import InvalidInputError

#: Bytes that are read at once.
BLOCK = 65_536
#: Bytes of a line beyond which the input is no table.
LONGEST_LINE = 2**22
#: Seconds between two looks at a file.
PAUSE = 0.2


def lines_of_stdin() -> Iterator[list[bytes]]:
    """Yield complete lines as soon as they are there, and the last one in any case.

    An empty list comes when there are none: who waits can look at the clock.
    """
    blocks: queue.Queue[bytes] = queue.Queue(maxsize=1)
    # somebody else waits: on no system can all kinds of input be asked whether there is more
    threading.Thread(target=_pass_on, args=(_stdin_reader(), blocks), daemon=True).start()
    rest = b""
    while True:
        try:
            block = blocks.get(timeout=PAUSE)
        except queue.Empty:
            yield []
            continue
        if not block:
            break
        lines, rest = _split(rest + block)
        yield lines
    if rest:
        yield [rest]


def _stdin_reader() -> Callable[[], bytes]:
    """Return what reads what is there, and nobody waits for a full block."""
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:  # not the real one
        return lambda: cast(io.BufferedReader, sys.stdin.buffer).read1(BLOCK)
    # not by sys.stdin: its lock would be held by the thread when the program ends
    return lambda: os.read(descriptor, BLOCK)


def _pass_on(read: Callable[[], bytes], blocks: "queue.Queue[bytes]") -> None:
    while True:
        try:
            block = read()
        except OSError:  # a terminal that was closed
            block = b""
        blocks.put(block)
        if not block:
            return


def lines_of_file(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of a file."""
    with path.open("rb") as file:
        yield from _lines(lambda: file.read(BLOCK))


def lines_of_growing_file(path: Path, tell: Callable[[str], None]) -> Iterator[list[bytes]]:
    """Yield complete lines as they are written, without end; an empty list when there are none.

    A last line without its end is waited for. When the name stands for another file,
    the old one is read to its end first; when a file was cut, it is read from its start.

    Parameters
    ----------
    path : Path
        The file.
    tell : callable
        Told when the file was replaced or cut.

    Yields
    ------
    list of bytes
        Lines.
    """
    while True:
        with path.open("rb", buffering=0) as file:
            yield from _until_replaced(path, file, tell)
        tell(f"{path} was replaced; reading the new file")


def _until_replaced(
    path: Path, file: BinaryIO, tell: Callable[[str], None]
) -> Iterator[list[bytes]]:
    rest = b""
    is_replaced = False
    while True:
        block = file.read(BLOCK)
        if block:
            lines, rest = _split(rest + block)
            yield lines
        elif is_replaced:
            yield [rest] if rest else []
            return
        elif os.fstat(file.fileno()).st_size < file.tell():
            tell(f"{path} was cut; reading it from its start")
            file.seek(0)
            rest = b""
        else:
            yield []
            # once more from the old file: it may have grown before it was replaced
            is_replaced = _is_other(path, file)
            if not is_replaced:
                time.sleep(PAUSE)


def _is_other(path: Path, file: BinaryIO) -> bool:
    """Tell whether the name stands for another file by now; not while there is none."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _lines(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    rest = b""
    while block := read():
        lines, rest = _split(rest + block)
        yield lines
    if rest:
        yield [rest]


def _split(text: bytes) -> tuple[list[bytes], bytes]:
    *lines, rest = text.split(b"\n")
    if len(rest) > LONGEST_LINE:
        raise InvalidInputError(
            f"A line is longer than {LONGEST_LINE:,} bytes. Expected a row of a table per line."
        )
    return lines, rest
