"""The archive in a model file, and what a load may cost.

The archive is never compressed, and nothing in it is read twice. What is read takes no more
memory than the file has bytes: entries have the size that they say, and none lies upon another.

A load may cost seconds and bytes in proportion to the file. Bytes are counted before they are
allocated. What is counted is an upper bound of what Python and NumPy take, within a small
factor; a file that `save` wrote stays far below.
"""

import io
import json
import math
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ocfuse.exceptions import ModelFileError

SCHEMA = "schema.json"
#: Bytes that Python takes for a letter, at most.
LETTER_BYTES = 4


class Archive:
    """The entries of an archive that `save` can have written; others are refused.

    Parameters
    ----------
    payload : bytes
        The archive.
    source : Path
        The model file, for messages.
    """

    def __init__(self, payload: bytes, source: Path) -> None:
        self.size = len(payload)
        self.budget = Budget(self.size)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(payload))
        except Exception as error:
            raise ModelFileError(
                f"{source.name} is damaged: it holds no archive. ({error})"
            ) from error
        entries = self._zip.infolist()
        names = [entry.filename for entry in entries]
        if len(set(names)) < len(names) or any(_leads_outside(name) for name in names):
            raise ModelFileError(f"{source.name} is damaged: names in its archive are not usable.")
        if any(
            entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size
            for entry in entries
        ):
            raise ModelFileError(
                f"{source.name} is damaged: its archive would expand, ours are never compressed."
            )
        if not _are_apart(entries, payload):
            raise ModelFileError(
                f"{source.name} is damaged: entries of its archive lie upon each other."
            )
        self._unread = set(names)

    def __enter__(self) -> "Archive":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Return an entry, once."""
        if name not in self._unread:
            raise ValueError(f"there is no entry {name!r}, or it is used twice")
        self._unread.remove(name)
        return self._zip.read(name)

    def schema(self) -> Any:
        """Return the description of the model."""
        text = self.read(SCHEMA)
        self.budget.spend_json(text)
        return json.loads(text)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, whose size must be that of its entry."""
        content = self.read(name)
        file = io.BytesIO(content)
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"the array {name!r} has an unknown format")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
        begin = file.tell()
        # The type of an item may be a whole array, which may be long too.
        if dtype.hasobject or dtype.subdtype or not 0 < dtype.itemsize <= self.size:
            raise ValueError(f"the array {name!r} is of type {dtype}, not of numbers or text")
        # A side may be long where another is zero: it costs nothing yet, but may later.
        if not all(0 <= side <= self.size for side in shape):
            raise ValueError(f"the array {name!r} cannot have the shape {shape}")
        if math.prod(shape) * dtype.itemsize != len(content) - begin:
            raise ValueError(f"the array {name!r} has not as many bytes as its shape tells")
        self.budget.spend(len(content))
        order: Literal["F", "C"] = "F" if is_fortran else "C"
        return np.ndarray(shape, dtype, buffer=content, offset=begin, order=order).copy(order="K")


def with_schema(payload: bytes, change: Callable[[Any], None]) -> bytes:
    """Return an archive of ours with a description that a function has changed in place.

    The times at which its entries were written are left out.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == SCHEMA:
                schema = json.loads(content)
                change(schema)
                # as skops does: without white space it would cost more than its bytes allow
                content = json.dumps(schema, indent=2).encode()
            new.writestr(zipfile.ZipInfo(name), content)
    return written.getvalue()


def _leads_outside(name: str) -> bool:
    # The Windows flavour knows both kinds of slashes, and drives.
    path = PureWindowsPath(name)
    return bool(path.anchor) or ".." in path.parts


def _are_apart(entries: list[zipfile.ZipInfo], payload: bytes) -> bool:
    """Return whether every entry, with what stands before it, ends where the next one begins."""
    local_header = struct.Struct("<26xHH")  # its end: the lengths of name and extra field
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        begin = entry.header_offset
        if not end <= begin <= len(payload) - local_header.size:
            return False
        end = begin + local_header.size + sum(local_header.unpack_from(payload, begin))
        end += entry.file_size
    return end <= len(payload)


class Budget:
    """Seconds and bytes that are left to load a file of some bytes."""

    def __init__(self, size: int) -> None:
        self._n_bytes = 2**28 + 12 * size
        # of this thread: what others do meanwhile is not the file's fault
        self._end = time.thread_time() + 30.0 + size / 1e6

    def spend(self, n_bytes: int) -> None:
        """Count bytes that are about to be allocated."""
        self._n_bytes -= n_bytes
        if self._n_bytes < 0:
            raise ValueError("it would take far more memory than it has bytes")

    def check_time(self) -> None:
        """Refuse to go on where more time went than the file is worth."""
        if time.thread_time() > self._end:
            raise ValueError("it takes far too long for a file of its size")

    def spend_json(self, text: bytes, deepest: int = 1000) -> None:
        """Count what a text of JSON becomes, and refuse one that is nested too deep."""
        self.spend(LETTER_BYTES * len(text))
        steps = np.zeros(256, dtype=np.int64)  # what every sign adds to the depth
        steps[list(b"[{")], steps[list(b"]}")] = 1, -1
        depth = 0
        for bare in _without_text(text):
            n_dicts, n_lists, n_commas = (int((bare == sign).sum()) for sign in b"{[,")
            # what Python takes for a dictionary, a list and a value
            self.spend(304 * n_dicts + 136 * n_lists + 64 * n_commas)
            levels = steps[bare].cumsum() + depth
            if levels.size:
                depth = int(levels[-1])
            if levels.max(initial=0) > deepest:
                raise ValueError(f"it is nested more than {deepest} deep")


def _without_text(json: bytes, n_at_once: int = 2**20) -> Iterator[NDArray[np.uint8]]:
    """Yield what stands outside of the strings of JSON, a piece at a time."""
    signs = json.replace(b"\\\\", b"").replace(b'\\"', b"")
    n_quotes = 0
    for begin in range(0, len(signs), n_at_once):
        piece = np.frombuffer(signs[begin : begin + n_at_once], dtype=np.uint8)
        quotes = (piece == ord('"')).cumsum() + n_quotes
        yield piece[quotes % 2 == 0]
        n_quotes = int(quotes[-1])
