"""The archive in a model file: never compressed, nothing in it read twice.

What is read takes no more memory than the file has bytes: entries have the size that they
say, and none lies upon another.
"""

import io
import json
import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ocfuse.exceptions import ModelFileError
from ocfuse.persistence.budget import Budget

SCHEMA = "schema.json"
#: What stands before an entry: its length, and the lengths of name and extra field at its end.
LOCAL_HEADER = struct.Struct("<26xHH")


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
    """Return an archive with another description.

    Parameters
    ----------
    payload : bytes
        An archive that we wrote, not one of a stranger.
    change : function
        Changes the description in place.

    Returns
    -------
    bytes
        The archive, without the times at which its entries were written.
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
    """Tell whether every entry, with what stands before it, ends where the next one begins."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        begin = entry.header_offset
        if not end <= begin <= len(payload) - LOCAL_HEADER.size:
            return False
        end = begin + LOCAL_HEADER.size + sum(LOCAL_HEADER.unpack_from(payload, begin))
        end += entry.file_size
    return end <= len(payload)
