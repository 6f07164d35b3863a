"""Pictures in files, and in arrays."""

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.files import PICTURE_ENDINGS, natural
from ocfuse.optional import needed
from ocfuse.tables.arrays import RowsFile
from ocfuse.vision.frames import FrameSource, Picture, Undecoded, to_picture


class PictureFiles(FrameSource):
    """Picture files in the order given.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    name : str
        What to call them in messages.
    times : sequence of float, optional
        Seconds of each, if they are frames of one camera, one after another.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        name: str = "the pictures",
        times: Sequence[float] | None = None,
    ) -> None:
        self.paths = [Path(path) for path in paths]
        self.name = name
        self.times = [math.nan] * len(self.paths) if times is None else times
        self.is_sequence = times is not None

    def __len__(self) -> int:
        return len(self.paths)

    def __str__(self) -> str:
        return self.name

    def _undecoded(self) -> Iterator[Undecoded]:
        for time, path in zip(self.times, self.paths, strict=True):
            yield float(time), lambda path=path: decode_picture(path.read_bytes())  # type: ignore[misc]


class PictureArray(FrameSource):
    """Pictures of one array, which may be a file larger than memory.

    Parameters
    ----------
    pictures : ndarray of shape (n, h, w) or (n, h, w, 1, 3 or 4)
        Bytes, or 16-bit numbers.
    name : str
        What to call them in messages.
    """

    def __init__(self, pictures: Any, name: str = "the array") -> None:
        shape = np.shape(pictures)
        if len(shape) not in (3, 4):
            raise InvalidInputError(
                "Pictures must have shape (n, height, width) or (n, height, width, 3). "
                f"Got {shape} in {name}."
            )
        if len(pictures):
            to_picture(pictures[0])  # a wrong type is wrong everywhere: no frame is skipped for it
        self.pictures = pictures
        self.name = name

    def __len__(self) -> int:
        return len(self.pictures)

    def __str__(self) -> str:
        return self.name

    def _undecoded(self) -> Iterator[Undecoded]:
        for i in range(len(self.pictures)):
            yield math.nan, lambda i=i: to_picture(self.pictures[i])  # type: ignore[misc]


def picture_folder(folder: Path) -> PictureFiles:
    """Return the pictures of a folder and of those inside it, 2 before 10."""
    found = [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in PICTURE_ENDINGS and not path.name.startswith(".")
    ]
    if not found:
        raise InvalidInputError(
            f"There are no pictures in {folder}. Expected files that end with "
            f"{', '.join(PICTURE_ENDINGS)}."
        )
    return PictureFiles(sorted(found, key=lambda path: natural(path.as_posix())), str(folder))


def picture_array(path: Path, name: str | None) -> PictureArray:
    """Return the pictures of a `.npy` or `.npz` file; `name` chooses among several arrays."""
    try:
        if path.suffix.lower() == ".npy":
            return PictureArray(RowsFile(path), path.name)
        with np.load(path, allow_pickle=False) as arrays:
            return PictureArray(_chosen(arrays, name, path), path.name)
    except InvalidInputError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"{path.name} cannot be read: {error}.") from error


def decode_picture(content: bytes) -> Picture:
    """Return the picture that a JPEG, PNG or other file holds."""
    image = needed("PIL.Image", "to read pictures", "video")
    with image.open(io.BytesIO(content)) as opened:
        if opened.mode.startswith("I"):  # 16 bits, which Pillow would clip
            return to_picture(np.asarray(opened).astype(np.uint16))
        return np.asarray(opened.convert("RGB"))


def _chosen(arrays: Any, name: str | None, path: Path) -> NDArray[Any]:
    names = [key for key in arrays.files if arrays[key].ndim in (3, 4)]
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        raise InvalidInputError(
            f"{path.name} holds these arrays of pictures: {', '.join(names) or 'none'}. "
            f"Got topic={name!r}. Choose one of them."
        )
    chosen: NDArray[Any] = arrays[name]
    return chosen
