"""Archives that `save` would not write: names, sizes, places, compression."""

import json
import pickle
import struct
import zipfile
from collections.abc import Callable

from benchmarks.hardening.parts import Parts, Random, directory, pick, zipped
from benchmarks.hardening.words import Bomb
from ocfuse.persistence.archive import SCHEMA


def _entries(parts: Parts) -> list[tuple[str, bytes]]:
    return [*parts.entries.items(), (SCHEMA, json.dumps(parts.schema).encode())]


def _named(rng: Random, parts: Parts) -> bytes:
    entries = _entries(parts)
    name = pick(
        rng,
        (
            "../x",
            "/etc/x",
            "C:\\x",
            "..\\x",
            "a/../../x",
            SCHEMA,
            "",
            "x" * 60000,
            "\x1b[31m",
            "aux",
            "x/",
            entries[0][0],
        ),
    )
    return zipped([*entries, (name, b"x")])


def _compressed(rng: Random, parts: Parts) -> bytes:
    how = pick(rng, (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    entries = _entries(parts)
    if rng.random() < 0.5:
        entries.append(("bomb.npy", bytes(10**6)))
    return zipped(entries, how)


def _appended(rng: Random, parts: Parts) -> bytes:
    extra = rng.bytes(int(rng.integers(1, 1000)))
    archive = parts.archive()
    return archive + extra if rng.random() < 0.5 else extra + archive


def _missing(rng: Random, parts: Parts) -> bytes:
    entries = _entries(parts)
    del entries[int(rng.integers(len(entries)))]
    return zipped(entries)


def _field(rng: Random, parts: Parts) -> bytes:
    """Change a field of the directory: flags, method, checksum, sizes, offsets, attributes."""
    archive = bytearray(parts.archive())
    at = pick(rng, directory(archive)) + int(
        pick(rng, (6, 8, 10, 16, 20, 24, 28, 30, 32, 36, 38, 42))
    )
    value = int(pick(rng, (0, 1, 8, 12, 99, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF, 10**6, 0xA1FF0000)))
    width = int(pick(rng, (2, 4)))
    archive[at : at + width] = (value % 256**width).to_bytes(width, "little")
    return bytes(archive)


def _end(rng: Random, parts: Parts) -> bytes:
    """Change the end of the directory, or claim that it is one of 64 bits."""
    archive = bytearray(parts.archive())
    at = len(archive) - 22 + int(pick(rng, (4, 6, 8, 10, 12, 16, 20)))
    archive[at : at + 2] = b"\xff\xff"
    if rng.random() < 0.5:
        locator = struct.pack("<IIQI", 0x07064B50, 0, int(rng.integers(2**40)), 1)
        archive[-22:-22] = locator
    return bytes(archive)


def _overlapping(rng: Random, parts: Parts) -> bytes:
    """Let two entries of the directory begin at the same place."""
    archive = bytearray(parts.archive())
    starts = directory(archive)
    one, other = pick(rng, starts), pick(rng, starts)
    archive[one + 42 : one + 46] = archive[other + 42 : other + 46]
    if rng.random() < 0.5:
        archive[one + 16 : one + 28] = archive[other + 16 : other + 28]
    return bytes(archive)


def _nested(rng: Random, parts: Parts) -> bytes:
    return zipped([(SCHEMA, parts.archive()), ("inner.zip", parts.archive())])


def _other_schema(rng: Random, parts: Parts) -> bytes:
    text = pick(
        rng,
        (
            b"",
            b"{}",
            b"[]",
            b"null",
            b"7",
            b"\xff\xfe{",
            b"[" * 10**5,
            pickle.dumps(Bomb()),
            b'{"__loader__": "ObjectNode"}',
            b'{"a":' * 5000 + b"1" + b"}" * 5000,
        ),
    )
    return zipped([*parts.entries.items(), (SCHEMA, text)])


ARCHIVES: tuple[Callable[[Random, Parts], bytes], ...] = (
    _named,
    _compressed,
    _appended,
    _missing,
    _field,
    _field,
    _end,
    _overlapping,
    _nested,
    _other_schema,
)
