"""Arrays with other numbers, shapes, types and headers."""

import pickle
import zipfile
from collections.abc import Callable

import numpy as np

from benchmarks.hardening.damage import flip
from benchmarks.hardening.parts import Parts, Random, from_npy, headed, pick, to_npy, zipped
from benchmarks.hardening.words import NUMBERS, REALS, Bomb


def _array(rng: Random, parts: Parts) -> str:
    return pick(rng, [name for name in parts.entries if name.endswith(".npy")])


def _numbers(rng: Random, parts: Parts) -> None:
    """Change some numbers, in what stays an array of the same shape."""
    name = _array(rng, parts)
    array = from_npy(parts.entries[name])
    flat = array.reshape(-1)
    if not flat.size:
        return
    field = flat[pick(rng, array.dtype.names)] if array.dtype.names else flat
    at = rng.integers(field.size, size=int(rng.integers(1, 4)))
    with np.errstate(all="ignore"):
        if field.dtype.kind in "iu":
            info = np.iinfo(field.dtype)
            field[at] = np.clip(
                pick(rng, (*NUMBERS, len(flat), -2)), info.min, min(info.max, 2**62)
            )
        elif field.dtype.kind == "f":
            field[at] = pick(rng, REALS)
        elif field.dtype.kind == "b":
            field[at] = ~field[at]
    parts.entries[name] = to_npy(flat.reshape(array.shape))


def _shuffled(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    array = from_npy(parts.entries[name])
    parts.entries[name] = to_npy(rng.permutation(array) if array.ndim else array)


def _shaped(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    array = np.atleast_1d(from_npy(parts.entries[name]))
    parts.entries[name] = to_npy(
        pick(
            rng,
            (
                array[:0],
                array[:-1],
                array[:1],
                np.concatenate([array, array]),
                array.T,
                array[None],
                array[..., :0],
                array[..., :-1],
                array.ravel(),
                array[0],
                np.repeat(array, 2, axis=-1),
                np.asfortranarray(array),
                np.empty((0, *array.shape[1:]), dtype=array.dtype),
            ),
        )
    )


def _typed(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    array = from_npy(parts.entries[name])
    if array.dtype.names is None:
        kind = pick(
            rng, ("f2", "f4", ">f8", "i1", "i4", "i8", "u8", "?", "U5", "S3", "c16", "M8[s]")
        )
        with np.errstate(all="ignore"):
            parts.entries[name] = to_npy(array.astype(kind))


def _header(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    shape = pick(
        rng,
        (
            "(10000000000,)",
            "(-1,)",
            "(2, -8)",
            "(0, 99999999999)",
            "(1.5,)",
            "7",
            "()",
            "(" + "1," * 70 + ")",
            "(18446744073709551615, 2)",
            "(True,)",
        ),
    )
    kind = pick(
        rng,
        (
            "'<f8'",
            "'|O'",
            "'|V0'",
            "'<U0'",
            "'<U999999999'",
            "[('a', '|O')]",
            "'bad'",
            "[('a', '<f8', (999999999,))]",
            "'<f8'",
            "__import__('os')",
        ),
    )
    order = pick(rng, ("True", "False", "2"))
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}"
    parts.entries[name] = headed(text, rng.bytes(int(rng.integers(0, 64))))


def _pickled_array(rng: Random, parts: Parts) -> None:
    bombs = np.array([Bomb()], dtype=object)
    parts.entries[_array(rng, parts)] = pick(
        rng, (to_npy(bombs, allow_pickle=True), pickle.dumps(Bomb()), pickle.dumps(bombs))
    )


def _npz(rng: Random, parts: Parts) -> None:
    parts.entries[_array(rng, parts)] = zipped([("a.npy", bytes(10**6))], zipfile.ZIP_DEFLATED)


def _cut_array(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    content = parts.entries[name]
    parts.entries[name] = pick(
        rng, (content[: int(rng.integers(len(content)))], content + rng.bytes(8), b"", content[:8])
    )


def _flip_array(rng: Random, parts: Parts) -> None:
    name = _array(rng, parts)
    parts.entries[name] = flip(rng, parts.entries[name])


ARRAYS: tuple[Callable[[Random, Parts], None], ...] = (
    _numbers,
    _numbers,
    _numbers,
    _numbers,
    _shuffled,
    _shaped,
    _shaped,
    _shaped,
    _typed,
    _header,
    _pickled_array,
    _npz,
    _cut_array,
    _flip_array,
)
