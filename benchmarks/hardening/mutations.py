"""Mutants of a model file, each told by a seed.

Most would be stopped by the checksum: these are sealed again, as a stranger with a
text editor could do.
"""

from contextlib import suppress

import numpy as np

from benchmarks.hardening.archives import ARCHIVES
from benchmarks.hardening.arrays import ARRAYS
from benchmarks.hardening.damage import RAW
from benchmarks.hardening.descriptions import SCHEMAS
from benchmarks.hardening.parts import Parts, pick, seal

#: How often each kind, against the others.
KINDS = {"bytes": 2, "archive": 1, "description": 4, "arrays": 4, "both": 1}


def mutant(seed: int, kind: str, content: bytes, parts: Parts) -> bytes:
    """Return a mutated file."""
    rng = np.random.default_rng(seed)
    if kind == "bytes":
        return pick(rng, RAW)(rng, content)
    if kind == "archive":
        return seal(pick(rng, ARCHIVES)(rng, parts))
    changed = parts.copy()
    changes = {"description": SCHEMAS, "arrays": ARRAYS, "both": (*SCHEMAS, *ARRAYS)}[kind]
    for _ in range(int(rng.integers(1, 4))):
        # What an earlier change left may be no array, or no node, any more.
        with suppress(Exception):
            pick(rng, changes)(rng, changed)
    return seal(changed.archive())
