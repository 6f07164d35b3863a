"""Features kept on disk, found again by what each picture holds."""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from ocfuse.files import write_atomically
from ocfuse.vision.backbone import Backbone
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Picture

#: Files that are held while pictures are looked up: neighbours are in one file.
HELD = 4

#: A file, and the place of a picture in it.
Entry = tuple[Path, int]


class FeatureStore:
    """Features of pictures, many in a file, in 16 bits.

    A picture is known by a checksum of the backbone and of all its bytes, so
    that nothing is ever out of date and it is found wherever it stands. A file
    that is damaged is removed, and computed again. Nothing else is ever
    removed: delete the folder to clear the store.

    Parameters
    ----------
    folder : str or path-like
        Where the files are; made if it is not there.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._entries: dict[str, dict[bytes, Entry]] = {}
        self._opened = lru_cache(maxsize=HELD)(_read)

    def extract(self, backbone: Backbone, pictures: Sequence[Picture]) -> Features:
        """Return the features of pictures in 16 bits, from disk if they are there."""
        prefix = hashlib.sha256(backbone.digest.encode()).hexdigest()[:16]
        keys = [_key(prefix, picture) for picture in pictures]
        known = self._known(prefix)
        parts = {key: part for key in keys if (part := self._find(known, key)) is not None}
        missing = {k: p for k, p in zip(keys, pictures, strict=True) if k not in parts}
        if missing:
            made = backbone.extract(list(missing.values())).halved()
            known.update(self._written(prefix, list(missing), made))
            parts |= {key: made.take(slice(i, i + 1)) for i, key in enumerate(missing)}
        return Features.joined([parts[key] for key in keys])

    def _known(self, prefix: str) -> dict[bytes, Entry]:
        """Return where the pictures of a backbone are, as all files tell it."""
        if prefix not in self._entries:
            entries = {}
            for path in self.folder.glob(f"{prefix}-*.npz"):
                for row, key in enumerate(_keys(path)):
                    entries[key] = (path, row)
            self._entries[prefix] = entries
        return self._entries[prefix]

    def _find(self, known: dict[bytes, Entry], key: bytes) -> Features | None:
        if key not in known:
            return None
        path, row = known[key]
        try:
            return self._opened(path).take(slice(row, row + 1))
        except (*_DAMAGED, OSError) as error:
            _remove_damaged(path, error)
            return None

    def _written(self, prefix: str, keys: list[bytes], features: Features) -> dict[bytes, Entry]:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(b"".join(keys)).hexdigest()[:32]
        path = self.folder / f"{prefix}-{name}.npz"
        write_atomically(path, _packed(keys, features))
        return {key: (path, row) for row, key in enumerate(keys)}


_DAMAGED = (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile)


def _remove_damaged(path: Path, error: Exception) -> None:
    """Remove a file because of what is in it; a disk that fails says nothing about it."""
    if not isinstance(error, OSError):
        with suppress(OSError):  # a folder may be there to be read only
            path.unlink()


def _key(prefix: str, picture: Picture) -> bytes:
    checksum = hashlib.sha256(f"{prefix} {picture.shape}".encode())
    checksum.update(np.ascontiguousarray(picture).data)
    return checksum.digest()


def _packed(keys: list[bytes], features: Features) -> bytes:
    arrays = {f"map{stride}": values for stride, values in features.maps.items()}
    table = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), -1)
    file = io.BytesIO()
    np.savez(file, keys=table, pooled=features.pooled, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _keys(path: Path) -> list[bytes]:
    """Return the pictures that a file holds: none if it is damaged, which removes it."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return [row.tobytes() for row in arrays["keys"]]
    except (*_DAMAGED, OSError) as error:
        _remove_damaged(path, error)
        return []


def _read(path: Path) -> Features:
    # the archive has a checksum for each array
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        maps = {int(name[3:]): arrays[name] for name in arrays.files if name.startswith("map")}
        return Features(arrays["pooled"], maps)
