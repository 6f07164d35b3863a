"""Pictures one after another, wherever they come from."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError, MissingPackageError, OcfuseWarning

Picture: TypeAlias = NDArray[np.uint8]


class FrameWarning(OcfuseWarning):
    """Tell how many frames of a recording could not be used, and why."""


class CorruptFrameError(InvalidInputError):
    """Say why one frame cannot be used; the source goes on with the next."""


@dataclass(frozen=True)
class Frame:
    """One picture of a recording.

    Parameters
    ----------
    index : int
        Position in the recording; frames that were skipped count.
    time : float
        Seconds, as the recording tells them; NaN if it does not.
    image : ndarray of shape (height, width, 3)
        Red, green, blue, 0 to 255.
    progress : float, optional
        Progress of the task when it was taken, if somebody tells it.
    n_dropped : int, default=0
        Frames right before it that were not looked at for want of time.
    """

    index: int
    time: float
    image: Picture
    progress: float | None = None
    n_dropped: int = 0


#: When a frame was taken, and what decodes it.
Undecoded: TypeAlias = tuple[float, Callable[[], Picture]]
#: Progress of the task: a number for every frame, or what returns that of now.
Progress: TypeAlias = NDArray[np.float64] | Callable[[], float]

Source = TypeVar("Source", bound="FrameSource")


class FrameSource(ABC):
    """Frames of one recording, decoded one at a time while it is iterated over.

    Every iteration starts from the beginning. Frames that cannot be decoded
    are left out; at the end one warning tells how many.

    Attributes
    ----------
    progress : ndarray of shape (n_frames,), callable or None
        Progress of the task, if it is known (`open_frames`).
    n_frames_ : int
        Frames that the last iteration has met, those left out included.
    skipped_ : list of int
        Those of them that it left out.
    groups_ : ndarray of shape (n_frames,) or None
        Run of every frame, if there are several (`Runs`).
    """

    #: Neighbouring frames are alike: of one camera, one after another.
    is_sequence: bool = False
    #: Frames that nobody takes are lost.
    is_live: bool = False

    progress: Progress | None = None
    groups_: NDArray[np.intp] | None = None
    n_frames_: int = 0
    skipped_: list[int]

    def __iter__(self) -> Iterator[Frame]:
        """Decode the frames in order."""
        self.n_frames_, self.skipped_, reason = 0, [], ""
        for index, (time, decode) in enumerate(self._undecoded()):
            self.n_frames_ = index + 1
            progress = self._progress_at(index)  # that of now, before decoding takes its time
            try:
                image = decode()
            except MissingPackageError:
                raise
            except Exception as error:  # what a damaged file does to a decoder, nobody knows
                self.skipped_.append(index)
                reason = reason or f"frame {index}: {error}"
                continue
            yield Frame(index, time, image, progress)
        self._require_told(self.n_frames_)
        if self.skipped_:
            warnings.warn(
                f"{len(self.skipped_)} of {self.n_frames_} frames of {self} could not be decoded "
                f"and were left out ({reason}).",
                FrameWarning,
                stacklevel=2,
            )

    def with_progress(self: Source, progress: Any) -> Source:
        """Return the same frames with another progress of the task, or None for none."""
        other = copy(self)
        other.progress = _checked(progress)
        return other

    def _progress_at(self, index: int) -> float | None:
        if callable(self.progress):
            return float(self.progress())
        if self.progress is None:
            return None
        if index >= len(self.progress):
            self._require_told(index + 1)
        return float(self.progress[index])

    def _require_told(self, n_frames: int) -> None:
        """Refuse progress that was told for more frames than there are, or fewer."""
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
    return partial(_refuse, str(reason))


def to_picture(array: Any) -> Picture:
    """Return an array as red, green and blue bytes, or refuse it.

    Parameters
    ----------
    array : array-like
        Grey (h, w) or (h, w, 1), colour (h, w, 3) or with transparency (h, w, 4);
        bytes, or 16-bit numbers, of which the upper byte is taken.

    Returns
    -------
    ndarray of shape (h, w, 3)
        The picture.
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


def _refuse(reason: str) -> Picture:
    raise CorruptFrameError(reason)


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
