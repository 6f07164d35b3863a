"""Extraction of features from frames, in batches, and storage of features on disk."""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.files import write_atomically
from ocfuse.system.memory import available_bytes
from ocfuse.vision.backbone import Backbone, resized
from ocfuse.vision.features import Features
from ocfuse.vision.frames import Frame, Picture

#: Pictures of one batch, and of one file of the store.
CHUNK = 64
#: A file, and the place of a picture in it.
Entry = tuple[Path, int]

_DAMAGED = (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile)


class FeatureStore:
    """Store of features of pictures on disk, in 16 bits.

    A picture is identified by a checksum of the backbone and of all its bytes, so that features
    are never out of date, and the file name of the picture does not matter. A damaged file is
    removed and its features are computed again. Nothing else is removed: delete the folder to
    clear the store.

    Parameters
    ----------
    folder : str or path-like
        Folder of the files; created if it does not exist.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._entries: dict[str, dict[bytes, Entry]] = {}
        self._opened = lru_cache(maxsize=4)(_read)  # neighbours are in one file

    def extract(self, backbone: Backbone, pictures: Sequence[Picture]) -> Features:
        """Return the features of pictures in 16 bits, from disk if they are stored."""
        prefix = hashlib.sha256(backbone.digest.encode()).hexdigest()[:16]
        keys = [_key(prefix, picture) for picture in pictures]
        known = self._known(prefix)
        parts = {key: part for key in keys if (part := self._find(known, key)) is not None}
        missing = {k: p for k, p in zip(keys, pictures, strict=True) if k not in parts}
        if missing:
            made = backbone.extract(list(missing.values())).halved()
            path = self._write(prefix, list(missing), made)
            known.update({key: (path, row) for row, key in enumerate(missing)})
            parts |= {key: made.take(slice(i, i + 1)) for i, key in enumerate(missing)}
        return Features.joined([parts[key] for key in keys])

    def _known(self, prefix: str) -> dict[bytes, Entry]:
        """Return where the pictures of a backbone are, by their keys in all files."""
        if prefix not in self._entries:
            self._entries[prefix] = {
                key: (path, row)
                for path in self.folder.glob(f"{prefix}-*.npz")
                for row, key in enumerate(_keys(path))
            }
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

    def _write(self, prefix: str, keys: list[bytes], features: Features) -> Path:
        """Write features to a file, and return it."""
        arrays = {f"map{stride}": values for stride, values in features.maps.items()}
        table = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), -1)
        file = io.BytesIO()
        np.savez(file, keys=table, pooled=features.pooled, **arrays)  # type: ignore[arg-type]
        self.folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(b"".join(keys)).hexdigest()[:32]
        path = self.folder / f"{prefix}-{name}.npz"
        write_atomically(path, file.getvalue())
        return path


def _remove_damaged(path: Path, error: Exception) -> None:
    """Remove a file because of what is in it; a disk that fails says nothing about it."""
    if not isinstance(error, OSError):
        with suppress(OSError):  # a folder may be there to be read only
            path.unlink()


def _key(prefix: str, picture: Picture) -> bytes:
    checksum = hashlib.sha256(f"{prefix} {picture.shape}".encode())
    checksum.update(np.ascontiguousarray(picture).data)
    return checksum.digest()


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


@dataclass(frozen=True)
class Batch:
    """Features of n frames by the names of the backbones, their positions, and times in seconds."""

    features: dict[str, Features]
    index: IntArray
    time: FloatArray

    def __len__(self) -> int:
        return len(self.index)


class PictureSample:
    """A few pictures of a recording of unknown length, each as likely as any other.

    `count` of them are kept, as squares of `size` pixels.
    """

    def __init__(self, count: int, size: int, random: np.random.Generator) -> None:
        self.count, self.size, self.random = count, size, random
        self.kept: dict[int, tuple[int, Picture]] = {}
        self.n_seen = 0

    def offer(self, picture: Picture) -> None:
        """Keep a picture, or not."""
        place = self.n_seen
        if self.n_seen >= self.count:
            place = int(self.random.integers(self.n_seen + 1))
        if place < self.count:
            self.kept[place] = (self.n_seen, resized(picture, self.size))
        self.n_seen += 1

    def pictures(self) -> tuple[IntArray, list[Picture]]:
        """Return the numbers of the pictures kept, and these, in the order they came."""
        ordered = sorted(self.kept.values(), key=lambda pair: pair[0])
        rows = np.array([row for row, _ in ordered], dtype=np.intp)
        return rows, [picture for _, picture in ordered]


def read_batches(
    frames: Iterable[Frame],
    backbones: Mapping[str, Backbone],
    store: FeatureStore | None = None,
    sample: PictureSample | None = None,
) -> Iterator[Batch]:
    """Yield the features of frames, 64 at a time, so that memory is bounded.

    Every picture is offered to the sample.
    """
    remaining = iter(frames)
    while some := list(islice(remaining, CHUNK)):
        pictures = [frame.image for frame in some]
        if sample is not None:
            for picture in pictures:
                sample.offer(picture)
        features = {
            name: b.extract(pictures) if store is None else store.extract(b, pictures)
            for name, b in backbones.items()
        }
        index = np.array([frame.index for frame in some], dtype=np.intp)
        yield Batch(features, index, np.array([frame.time for frame in some]))


def read_all(frames: Any, backbones: Mapping[str, Backbone], **options: Any) -> Batch:
    """Return the features of all frames, in 16 bits, held once."""
    pile = _Pile(len(frames) if hasattr(frames, "__len__") else 0)
    for batch in read_batches(frames, backbones, **options):
        pile.add(batch)
    if not pile.index:
        raise InvalidInputError(f"No picture of {frames} could be read.")
    return pile.batch()


def require_memory(n_pictures: int, n_held: int, bytes_each: float) -> None:
    """Refuse to begin, or to go on, with more features than there is memory for.

    `n_pictures` are all, or those so far if it is not known how many will come; the features
    of `n_held` of them are in memory already.
    """
    free, working = available_bytes(), working_memory(bytes_each)
    if free is not None and (n_pictures - n_held) * bytes_each + working > free:
        most = max(int((free - working) / bytes_each) + n_held, 0)
        raise InvalidInputError(
            f"The features of {n_pictures:,} pictures take {n_pictures * bytes_each / 1e9:.2f} GB, "
            f"learning {working / 1e9:.2f} GB more, and {free / 1e9:.2f} GB of memory are free: "
            f"enough for about {most:,} pictures. Learn from fewer (every second frame of each "
            "run, say) or at a smaller size of the network's input."
        )


def working_memory(bytes_each: float) -> float:
    """Return what a fit needs beside the features, from the bytes of those of one picture.

    Models and their copies are as large as the maps are.
    """
    return max(8000 * bytes_each, 100e6)


class _Pile:
    """Batches one upon the other, in arrays that grow in place; `expected` frames, or 0."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.index: list[IntArray] = []
        self.time: list[FloatArray] = []
        self.arrays: dict[str, dict[int, Any]] = {}  # by backbone and stride; 0 is pooled
        self.n_held = 0

    def add(self, batch: Batch) -> None:
        halved = {name: features.halved() for name, features in batch.features.items()}
        total = self.n_held + len(batch)
        each = sum(features.n_bytes for features in halved.values()) / len(batch)
        require_memory(max(total, self.expected), self.n_held, each)
        for name, features in halved.items():
            parts = {0: features.pooled} | features.maps
            held = self.arrays.setdefault(name, {})
            for key, part in parts.items():
                if key not in held:
                    held[key] = np.empty((0, *part.shape[1:]), dtype=part.dtype)
                # in place: nobody else refers to it, and it may be most of the memory
                held[key].resize((total, *part.shape[1:]), refcheck=False)
                held[key][self.n_held :] = part
        self.n_held = total
        self.index.append(batch.index)
        self.time.append(batch.time)

    def batch(self) -> Batch:
        features = {
            name: Features(held[0], {key: held[key] for key in held if key != 0})
            for name, held in self.arrays.items()
        }
        return Batch(features, np.concatenate(self.index), np.concatenate(self.time))
