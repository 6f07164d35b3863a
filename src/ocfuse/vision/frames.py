"""Frames, sources of frames, still pictures and video files."""

import io
import math
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError, MissingPackageError, OcfuseWarning
from ocfuse.system.files import PICTURE_ENDINGS, natural
from ocfuse.system.packages import needed
from ocfuse.tables.source import RowsFile

Picture: TypeAlias = NDArray[np.uint8]

#: When a frame was taken, and what decodes it.
Undecoded: TypeAlias = tuple[float, Callable[[], Picture]]
#: Progress of the task: a number for every frame, or what returns that of now.
Progress: TypeAlias = NDArray[np.float64] | Callable[[], float]

Source = TypeVar("Source", bound="FrameSource")


class FrameWarning(OcfuseWarning):
    """Some frames of a recording could not be used."""


class CorruptFrameError(InvalidInputError):
    """One frame cannot be used; the source continues with the next one."""


@dataclass(frozen=True)
class Frame:
    """One picture of a recording.

    Parameters
    ----------
    index : int
        Position in the recording, including skipped frames.
    time : float
        Time in seconds, from the recording; NaN if it has no times.
    image : ndarray of shape (height, width, 3)
        Red, green and blue, 0 to 255.
    progress : float, optional
        Progress of the task at this frame, if known.
    n_dropped : int, default=0
        Number of frames directly before it that were dropped, as scoring was too slow.
    """

    index: int
    time: float
    image: Picture
    progress: float | None = None
    n_dropped: int = 0


class FrameSource(ABC):
    """Frames of one recording; iteration decodes them one at a time.

    Every iteration starts at the beginning. Frames that cannot be decoded are skipped; one warning
    at the end counts them.

    Attributes
    ----------
    progress : ndarray of shape (n_frames,), callable or None
        Progress of the task, if known (see `open_frames`).
    n_frames_ : int
        Number of frames in the last iteration, including skipped ones.
    skipped_ : list of int
        Numbers of the skipped frames.
    reasons_ : dict of int to str
        Numbers of skipped frames, each with the reason.
    groups_ : ndarray of shape (n_frames,) or None
        Run of each frame, if there are several runs (`Runs`).
    """

    #: Neighbouring frames are alike: of one camera, one after another.
    is_sequence: bool = False
    #: Frames that nobody takes are lost.
    is_live: bool = False

    progress: Progress | None = None
    groups_: NDArray[np.intp] | None = None
    n_frames_: int = 0
    skipped_: list[int]
    reasons_: dict[int, str]

    def __iter__(self) -> Iterator[Frame]:
        """Decode the frames in order."""
        self.n_frames_, self.skipped_, self.reasons_ = 0, [], {}
        for index, (time, decode) in enumerate(self._undecoded()):
            self.n_frames_ = index + 1
            progress = self._progress_at(index)  # that of now, before decoding takes its time
            try:
                image = decode()
            except MissingPackageError:
                raise
            except Exception as error:  # what a damaged file does to a decoder, nobody knows
                self.skipped_.append(index)
                self.reasons_[index] = str(error)
                continue
            yield Frame(index, time, image, progress)
        self._require_progress(self.n_frames_)
        if self.skipped_:
            first = self.skipped_[0]
            warnings.warn(
                f"{len(self.skipped_)} of {self.n_frames_} frames of {self} could not be decoded "
                f"and were left out (frame {first}: {self.reasons_[first]}).",
                FrameWarning,
                stacklevel=2,
            )

    def count(self) -> int:
        """Return the number of frames, without decoding them."""
        return sum(1 for _ in self._undecoded())

    def with_progress(self: Source, progress: Any) -> Source:
        """Return the same frames with another progress of the task; None for none."""
        other = copy(self)
        other.progress = _checked(progress)
        return other

    def _progress_at(self, index: int) -> float | None:
        if callable(self.progress):
            return float(self.progress())
        if self.progress is None:
            return None
        if index >= len(self.progress):
            self._require_progress(index + 1)
        return float(self.progress[index])

    def _require_progress(self, n_frames: int) -> None:
        """Refuse progress that is given for more frames than there are, or fewer."""
        if isinstance(self.progress, np.ndarray) and len(self.progress) != n_frames:
            there = f"{n_frames} or more" if len(self.progress) < n_frames else f"{n_frames}"
            raise InvalidInputError(
                f"The progress of the task is told for {len(self.progress)} frames of {self}, "
                f"which has {there}. Expected a number for every frame."
            )

    @abstractmethod
    def _undecoded(self) -> Iterator[Undecoded]:
        """Yield the time of every frame and what decodes it."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the name of the recording, for messages."""


def corrupt(reason: object) -> Callable[[], Picture]:
    """Return what takes the place of a decoder where there is nothing to decode."""

    def _refuse() -> Picture:
        raise CorruptFrameError(str(reason))

    return _refuse


def to_picture(array: Any) -> Picture:
    """Return an array as red, green and blue bytes, or refuse it.

    It may be grey (h, w) or (h, w, 1), colour (h, w, 3) or with transparency (h, w, 4), and hold
    bytes, or 16-bit numbers, of which the upper byte is taken.
    """
    pixels = np.asarray(array)
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise InvalidInputError(
            f"A picture must hold bytes (uint8, 0 to 255). Got {pixels.dtype}. "
            "Scale it to 0 to 255 and use .astype('uint8')."
        )
    if pixels.ndim == 2:
        pixels = pixels[:, :, np.newaxis]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4) or 0 in pixels.shape:
        raise InvalidInputError(
            "A picture must have shape (height, width) or (height, width, 1, 3 or 4). "
            f"Got {np.shape(array)}."
        )
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])


def _checked(progress: Any) -> Progress | None:
    if progress is None or callable(progress):
        return progress  # type: ignore[no-any-return]
    try:
        numbers = np.asarray(progress, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"progress must hold a number per frame: {error}.") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"progress must hold one finite number per frame. Got shape {numbers.shape}"
            f"{'' if np.isfinite(numbers).all() else ', with NaN or infinity'}."
        )
    return numbers


class PictureFiles(FrameSource):
    """Picture files in the order given, called `name` in messages.

    `times`, in seconds, are given if they are frames of one camera, one after another.
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

    It has shape (n, h, w) or (n, h, w, 1, 3 or 4), and holds bytes or 16-bit numbers.
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


def decode_picture(
    content: bytes, formats: Sequence[str] | None = None, most_pixels: int | None = None
) -> Picture:
    """Return the picture that a JPEG, PNG or other file holds.

    Of files of strangers only some formats are read, and no more than so many pixels: their
    number is in the header, which is read before anything is decoded.
    """
    image = needed("PIL.Image", "to read pictures", "video")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", image.DecompressionBombWarning)
            file = image.open(io.BytesIO(content), formats=formats)
    except image.UnidentifiedImageError:
        expected = "" if formats is None else f"; expected is {' or '.join(formats)}"
        raise CorruptFrameError(f"it is no picture, or a damaged one{expected}") from None
    except (image.DecompressionBombError, image.DecompressionBombWarning):
        raise CorruptFrameError("the picture has too many pixels to be decoded") from None
    with file as opened:
        width, height = opened.size
        if most_pixels is not None and width * height > most_pixels:
            raise CorruptFrameError(
                f"the picture has {width} x {height} pixels, and {most_pixels:,} are allowed"
            )
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


class Video(FrameSource):
    """Frames of the first video stream of a file, by PyAV."""

    is_sequence = True

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.av = needed("av", "to read videos", "video")
        with self._open():
            pass  # what is no video is refused at once

    def __str__(self) -> str:
        return self.path.name

    def _open(self) -> Any:
        try:
            container = self.av.open(str(self.path))
        except (self.av.error.FFmpegError, OSError) as error:
            raise InvalidInputError(
                f"{self.path.name} cannot be read as a video: {error}."
            ) from error
        if not container.streams.video:
            container.close()
            raise InvalidInputError(f"{self.path.name} has no video stream.")
        return container

    def _undecoded(self) -> Iterator[Undecoded]:
        with self._open() as container:
            stream = container.streams.video[0]
            stream.thread_type = "SLICE"  # frame threads hide which packet was damaged
            for packet in container.demux(stream):
                try:
                    frames = packet.decode()
                except self.av.error.FFmpegError as error:
                    yield math.nan, corrupt(error)
                    continue
                for frame in frames:
                    time = math.nan if frame.time is None else float(frame.time)
                    yield time, partial(_decode, frame)


def _decode(frame: Any) -> Picture:
    if frame.is_corrupt:
        raise CorruptFrameError("the decoder calls it corrupt")
    pixels: Picture = frame.to_ndarray(format="rgb24")
    return pixels
