"""A number for every row that decides whether it is drawn: the same however rows are cut up."""

import hashlib
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

KeyArray: TypeAlias = NDArray[np.uint64]

#: Keys are spread evenly below this.
KEYS = 2.0**64
#: Of the generator splitmix64.
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def row_keys(start: int, n: int, seed: int) -> KeyArray:
    """Return the keys of n rows from number `start` on."""
    return keys_of(np.arange(start, start + n), seed)


def keys_of(numbers: NDArray[np.integer], seed: int) -> KeyArray:
    """Return the keys of the rows with these numbers."""
    first = np.uint64(text_key("rows", seed))
    places = numbers.astype(np.uint64) + np.uint64(1)
    return _mixed(first + places * np.uint64(STEP))


def text_key(text: str, seed: int) -> int:
    """Return the key of a name, such as that of a group."""
    digest = hashlib.blake2b(f"{seed} {text}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _mixed(keys: KeyArray) -> KeyArray:
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(FIRST)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(SECOND)
    return keys ^ (keys >> np.uint64(31))
