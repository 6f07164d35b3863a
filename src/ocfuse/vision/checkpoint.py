"""Weights of a torch checkpoint as NumPy arrays, read without torch.

Both layouts of `torch.save` are known: the archive, and the older one of
several pickles followed by raw storages. The pickles may name four harmless
things only, so that a forged file cannot run code.
"""

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import ModelFileError

Weights = dict[str, NDArray[Any]]

#: What the older layout begins with, and the version of it that is known.
LEGACY_MAGIC, LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
DTYPES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}


def read_checkpoint(path: Path) -> Weights:
    """Return the arrays of a state dictionary by name.

    Parameters
    ----------
    path : Path
        A file that `torch.save` wrote.

    Returns
    -------
    dict of str to ndarray
        The weights.
    """
    try:
        if zipfile.is_zipfile(path):
            return _read_archive(path)
        with path.open("rb") as file:
            return _read_legacy(file)
    except (pickle.UnpicklingError, EOFError, KeyError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path.name} is no checkpoint of weights alone, or is damaged: {error}. "
            "Expected a state dictionary that torch.save wrote."
        ) from error


class _Storage:
    """A run of numbers; where it is in the file is known before what it holds."""

    def __init__(self, dtype: Any, size: int) -> None:
        self.values: NDArray[Any] = np.zeros(size, dtype)


class _Unpickler(pickle.Unpickler):
    """Build dictionaries of tensors, and refuse everything else."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few things that weights are made of."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _view
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _parameter
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """Return the storage of a name, made on first sight."""
        kind, dtype, key, _, size = pid[:5]
        if kind != "storage" or not isinstance(key, str) or dtype not in DTYPES.values():
            raise pickle.UnpicklingError(f"it refers to {kind!r}")
        return self.storages.setdefault(key, _Storage(dtype, int(size)))


class _View:
    """A tensor whose storage is not read yet."""

    def __init__(self, storage: _Storage, offset: int, shape: Any, stride: Any) -> None:
        self.storage, self.offset = storage, int(offset)
        self.shape, self.stride = tuple(map(int, shape)), tuple(map(int, stride))

    def array(self) -> NDArray[Any]:
        """Return the numbers, having seen that the storage holds them."""
        values = self.storage.values
        steps = zip(self.shape, self.stride, strict=True)
        last = self.offset + sum((n - 1) * step for n, step in steps)
        if min((self.offset, *self.shape, *self.stride), default=0) < 0 or last >= max(
            1, len(values)
        ):
            raise ValueError("a tensor reaches beyond its numbers")
        bytes_per_step = tuple(step * values.itemsize for step in self.stride)
        part = values[self.offset :]
        return np.lib.stride_tricks.as_strided(part, self.shape, bytes_per_step).copy()


def _view(storage: Any, offset: int, shape: Any, stride: Any, *rest: Any) -> _View:
    return _View(storage, offset, shape, stride)


def _parameter(view: Any, *rest: Any) -> Any:
    return view


def _read_archive(path: Path) -> Weights:
    with zipfile.ZipFile(path) as archive:
        main = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        unpickler = _Unpickler(io.BytesIO(archive.read(main)))
        found = unpickler.load()
        for key, storage in unpickler.storages.items():
            content = archive.read(f"{main.removesuffix('data.pkl')}data/{key}")
            storage.values = np.frombuffer(content, storage.values.dtype)
    return _arrays(found)


def _read_legacy(file: BinaryIO) -> Weights:
    beginning = [_Unpickler(file).load() for _ in range(2)]
    if beginning != [LEGACY_MAGIC, LEGACY_PROTOCOL]:
        raise ValueError("it does not begin as one")
    _Unpickler(file).load()  # sizes of C types on the machine that wrote it
    unpickler = _Unpickler(file)
    found = unpickler.load()
    for key in _Unpickler(file).load():
        storage = unpickler.storages[key]
        size = int.from_bytes(file.read(8), "little")
        content = file.read(size * storage.values.itemsize)
        if size != len(storage.values):
            raise ValueError(f"storage {key} has {size} numbers, not {len(storage.values)}")
        storage.values = np.frombuffer(content, storage.values.dtype, size)
    return _arrays(found)


def _arrays(found: Any) -> Weights:
    if not isinstance(found, dict) or not all(isinstance(v, _View) for v in found.values()):
        raise ValueError("it holds something else than named tensors")
    return {str(name): view.array() for name, view in found.items()}
