"""A model file taken apart, and put together again with a header that fits."""

import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.persistence.archive import SCHEMA
from ocfuse.persistence.header import sealed, split

Node = dict[str, Any]
Random = np.random.Generator


@dataclass
class Parts:
    """Entries of the archive by name, and the description of the model."""

    entries: dict[str, bytes]
    schema: Node

    @classmethod
    def of(cls, content: bytes, source: Any) -> "Parts":
        """Take a file apart."""
        with zipfile.ZipFile(io.BytesIO(split(content, source)[1])) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        return cls(entries, json.loads(entries.pop(SCHEMA)))

    def copy(self) -> "Parts":
        """Return parts that can be changed."""
        return Parts(dict(self.entries), json.loads(json.dumps(self.schema)))

    def nodes(self) -> list[Node]:
        """Return every part of the description, the whole first."""
        return list(_nodes(self.schema))

    def archive(self) -> bytes:
        """Return the archive, as `save` would write it."""
        return zipped([*self.entries.items(), (SCHEMA, json.dumps(self.schema).encode())])


def _nodes(item: Any) -> Iterator[Node]:
    if isinstance(item, dict):
        if "__loader__" in item:
            yield item
        for value in item.values():
            yield from _nodes(value)
    elif isinstance(item, list):
        for value in item:
            yield from _nodes(value)


def zipped(entries: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of any entries."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # about duplicate names
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def directory(archive: bytes | bytearray) -> list[int]:
    """Return where the entries of the directory of an archive begin."""
    return [found.start() for found in re.finditer(rb"PK\x01\x02", archive)]


def seal(payload: bytes) -> bytes:
    """Return a file whose header fits its payload."""
    return sealed(payload) + payload


def to_npy(array: Any, allow_pickle: bool = False) -> bytes:
    """Return the bytes of an array."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def from_npy(content: bytes) -> Any:
    """Return the array of such bytes."""
    return np.load(io.BytesIO(content), allow_pickle=False)


def headed(header: str, data: bytes) -> bytes:
    """Return bytes of an array with any header."""
    line = header.encode("latin1")
    line += b" " * (-(10 + len(line) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line + data


def pick(rng: Random, choices: Any) -> Any:
    """Return one of some things."""
    return choices[int(rng.integers(len(choices)))]
