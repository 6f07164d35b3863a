"""From frames to features, a few at a time, and features kept on disk."""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.files import write_atomically
from ocfuse.system.memory import available_bytes
from ocfuse.vision.backbone import Backbone, resized
from ocfuse.vision.features import FeatureArray, Features
from ocfuse.vision.frames import Frame, Picture

#: Pictures of one batch, and of one file of the store.
CHUNK = 64
#: Stands for the pooled features among the strides of the maps.
POOLED = 0
#: What a fit needs beside the features: as much as those of so many pictures, and so many bytes
#: at least. Models and their copies are as large as the maps are.
WORKING_PICTURES, LEAST_WORKING = 8000, 100e6

#: Files that are held while pictures are looked up: neighbours are in one file.
HELD = 4

#: A file, and the place of a picture in it.
Entry = tuple[Path, int]

_DAMAGED = (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile)


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


@dataclass(frozen=True)
class Batch:
    """Features of some frames by every backbone, and where the frames come from.

    Parameters
    ----------
    features : dict of str to Features
        By the name of the backbone.
    index : ndarray of shape (n,)
        Positions in the recording.
    time : ndarray of shape (n,)
        Seconds.
    """

    features: dict[str, Features]
    index: IntArray
    time: FloatArray

    def __len__(self) -> int:
        return len(self.index)


class PictureSample:
    """A few pictures of a recording of unknown length, each as likely as any other.

    Parameters
    ----------
    count : int
        Pictures to keep.
    size : int
        They are kept as squares of so many pixels.
    random : Generator
        Where chance comes from.
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
    """Yield the features of frames, batch by batch, so that memory is bounded.

    Parameters
    ----------
    frames : iterable of Frame
        The frames.
    backbones : mapping of str to Backbone
        The networks.
    store : FeatureStore, optional
        Where features are kept.
    sample : PictureSample, optional
        To which every picture is offered.

    Yields
    ------
    Batch
        64 frames, the last one fewer.
    """
    waiting: list[Frame] = []
    for frame in frames:
        if sample is not None:
            sample.offer(frame.image)
        waiting.append(frame)
        if len(waiting) == CHUNK:
            yield _extracted(waiting, backbones, store)
            waiting = []
    if waiting:
        yield _extracted(waiting, backbones, store)


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

    Parameters
    ----------
    n_pictures : int
        All pictures, or those so far if nobody knows how many will come.
    n_held : int
        Those whose features are in memory already.
    bytes_each : float
        What the features of one picture take.
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
    """Return what a fit needs beside the features, from the bytes of those of one picture."""
    return max(WORKING_PICTURES * bytes_each, LEAST_WORKING)


class _Pile:
    """Batches one upon the other, in arrays that grow in place.

    Parameters
    ----------
    expected : int
        Frames to come, or 0 if nobody knows.
    """

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.index: list[IntArray] = []
        self.time: list[FloatArray] = []
        self.arrays: dict[str, dict[int, Any]] = {}
        self.n_held = 0

    def add(self, batch: Batch) -> None:
        halved = {name: features.halved() for name, features in batch.features.items()}
        total = self.n_held + len(batch)
        each = sum(features.n_bytes for features in halved.values()) / len(batch)
        require_memory(max(total, self.expected), self.n_held, each)
        for name, features in halved.items():
            parts = {POOLED: features.pooled} | features.maps
            held = self.arrays.setdefault(name, {key: _empty(part) for key, part in parts.items()})
            for key, part in parts.items():
                # in place: nobody else refers to it, and it may be most of the memory
                held[key].resize((total, *part.shape[1:]), refcheck=False)
                held[key][self.n_held :] = part
        self.n_held = total
        self.index.append(batch.index)
        self.time.append(batch.time)

    def batch(self) -> Batch:
        features = {
            name: Features(held[POOLED], {key: held[key] for key in held if key != POOLED})
            for name, held in self.arrays.items()
        }
        return Batch(features, np.concatenate(self.index), np.concatenate(self.time))


def _empty(part: FeatureArray) -> FeatureArray:
    return np.empty((0, *part.shape[1:]), dtype=part.dtype)


def _extracted(
    frames: list[Frame], backbones: Mapping[str, Backbone], store: FeatureStore | None
) -> Batch:
    pictures = [frame.image for frame in frames]
    features = {
        name: b.extract(pictures) if store is None else store.extract(b, pictures)
        for name, b in backbones.items()
    }
    index = np.array([frame.index for frame in frames], dtype=np.intp)
    return Batch(features, index, np.array([frame.time for frame in frames]))
