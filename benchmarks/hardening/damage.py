"""Bytes as they are in a damaged file, and in one that was sealed again."""

import pickle
from collections.abc import Callable

from benchmarks.hardening.parts import Random, pick, seal
from benchmarks.hardening.words import Bomb


def flip(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for at in rng.integers(len(changed), size=int(rng.integers(1, 9))):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _flip_in_header(rng: Random, content: bytes) -> bytes:
    return flip(rng, content[:300]) + content[300:]


def _cut(rng: Random, content: bytes) -> bytes:
    return content[: int(rng.integers(len(content)))]


def _cut_out(rng: Random, content: bytes) -> bytes:
    begin = int(rng.integers(len(content)))
    return content[:begin] + content[begin + int(rng.integers(1, 5000)) :]


def _insert(rng: Random, content: bytes) -> bytes:
    at = int(rng.integers(len(content)))
    return content[:at] + rng.bytes(int(rng.integers(1, 100))) + content[at:]


def _blank(rng: Random, content: bytes) -> bytes:
    begin, n = int(rng.integers(len(content))), int(rng.integers(1, 4096))
    return content[:begin] + bytes(len(content[begin : begin + n])) + content[begin + n :]


def _noise(rng: Random, content: bytes) -> bytes:
    return rng.bytes(int(rng.integers(0, 2000)))


def _pickled(rng: Random, content: bytes) -> bytes:
    return pickle.dumps(Bomb(), protocol=int(rng.integers(0, 6)))


def _flip_and_seal(rng: Random, content: bytes) -> bytes:
    return seal(flip(rng, content.split(b"\n", 2)[2]))


def _cut_and_seal(rng: Random, content: bytes) -> bytes:
    return seal(_cut(rng, content.split(b"\n", 2)[2]))


def _noise_and_seal(rng: Random, content: bytes) -> bytes:
    return seal(pick(rng, (_noise, _pickled, _blank))(rng, content))


RAW: tuple[Callable[[Random, bytes], bytes], ...] = (
    flip, _flip_in_header, _cut, _cut_out, _insert, _blank, _noise, _pickled,
    _flip_and_seal, _flip_and_seal, _flip_and_seal, _cut_and_seal, _noise_and_seal,
)  # fmt: skip
