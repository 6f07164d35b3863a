"""Opening of recordings and pictures as frames."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.system.bags import is_recording
from ocfuse.system.files import PICTURE_ENDINGS
from ocfuse.vision.bags import BagSource
from ocfuse.vision.frames import (
    FrameSource,
    PictureArray,
    PictureFiles,
    Undecoded,
    Video,
    picture_array,
    picture_folder,
    to_picture,
)
from ocfuse.vision.live import is_live_name, open_live


def open_frames(where: Any, topic: str | None = None, progress: Any = None) -> FrameSource:
    """Return the frames of a folder, video, bag, array, list or camera.

    Iteration decodes one frame at a time, so that memory does not grow with the recording. Frames
    that cannot be decoded are skipped, with one warning.

    Parameters
    ----------
    where : str, path, array, list, int or FrameSource
        A folder of pictures, taken in natural order with its subfolders; a picture; a video; an
        `.mcap` file; a ROS 1 `.bag` file or the folder of a ROS 2 bag; a `.npy` or `.npz` file; an
        array of shape (n, h, w) or (n, h, w, 3) of bytes; a list of picture files, or of pictures,
        which may differ in size. Sources that can be read only once are the number of a camera, an
        address such as "rtsp://...", and "-" for a video on stdin.
    topic : str, default=None
        Topic of a recording, or name of an array in an `.npz` file. None is possible if only one
        of them has pictures.
    progress : array-like of shape (n,) or callable, default=None
        Progress of the task at each frame, or a function that returns the current progress. It
        becomes `Frame.progress`.

    Returns
    -------
    FrameSource
        An iterable of `Frame`.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.vision import open_frames
    >>> for frame in open_frames(np.zeros((2, 4, 4), dtype=np.uint8)):
    ...     print(frame.index, frame.image.shape)
    0 (4, 4, 3)
    1 (4, 4, 3)
    """
    source = _opened(where, topic)
    return source if progress is None else source.with_progress(progress)


def _opened(where: Any, topic: str | None) -> FrameSource:
    if isinstance(where, FrameSource):
        return where
    if isinstance(where, int) and not isinstance(where, bool):
        return open_live(where)
    if isinstance(where, str | os.PathLike):
        is_live = isinstance(where, str) and is_live_name(where)
        return open_live(str(where)) if is_live else _open_path(Path(where), topic)
    if isinstance(where, np.ndarray):
        return PictureArray(where)
    if isinstance(where, Sequence) and len(where):
        if all(isinstance(entry, str | os.PathLike) for entry in where):
            return PictureFiles([Path(entry) for entry in where])
        return _Pictures([to_picture(entry) for entry in where])
    raise InvalidTypeError(
        "Pictures must be a folder, a file, an array, a list of pictures that is not empty, or the "
        f"number of a camera. Got {type(where).__name__}."
    )


def _open_path(path: Path, topic: str | None) -> FrameSource:
    if not path.exists():
        raise InvalidInputError(f"There is no file or folder {path}.")
    ending = path.suffix.lower()
    if is_recording(path):
        return BagSource(path, topic)
    if path.is_dir():
        return picture_folder(path)
    if ending in (".npy", ".npz"):
        return picture_array(path, topic)
    if ending in PICTURE_ENDINGS:
        return PictureFiles([path], path.name)
    return Video(path)


class _Pictures(PictureArray):
    """Pictures of different sizes, in memory."""

    def __init__(self, pictures: list[Any]) -> None:
        self.pictures = pictures
        self.name = "the list"


class Runs(FrameSource):
    """Frames of several runs, one run after another, each decoded once.

    It provides the run of each frame (`groups_`) and, if known for all runs, the progress of the
    task to `PictureDetector.fit`.

    Parameters
    ----------
    runs : sequence
        For each run an argument of `open_frames`.

    Attributes
    ----------
    counts_ : list of int
        Number of frames of each run in the last iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.vision.sources import Runs
    >>> runs = Runs([np.zeros((2, 4, 4), dtype=np.uint8), np.zeros((3, 4, 4), dtype=np.uint8)])
    >>> len(list(runs)), runs.groups_
    (5, array([0, 0, 1, 1, 1]))
    """

    is_sequence = True

    def __init__(self, runs: Sequence[Any]) -> None:
        self.runs = [open_frames(run) for run in runs]
        self.counts_: list[int] = []
        self.progress = self._joined_progress()
        for run in self.runs:
            if run.is_live:
                raise InvalidInputError(f"{run} has no end. Expected recordings: record it first.")

    def __str__(self) -> str:
        return f"{len(self.runs)} runs" if len(self.runs) != 1 else str(self.runs[0])

    @property
    def groups_(self) -> Any:  # type: ignore[override]
        """Number of the run of each frame; None if there is only one run."""
        several = len(self.runs) > 1
        return np.repeat(np.arange(len(self.runs)), self.counts_) if several else None

    def _joined_progress(self) -> Any:
        known = [run.progress for run in self.runs if isinstance(run.progress, np.ndarray)]
        silent = [run for run in self.runs if not isinstance(run.progress, np.ndarray)]
        if known and silent:
            raise InvalidInputError(
                f"{silent[0]} tells no progress of the task, and others do. Expected it of every "
                "run, or of none."
            )
        return np.concatenate(known) if known else None

    def _undecoded(self) -> Iterator[Undecoded]:
        self.counts_ = [0] * len(self.runs)
        for i, run in enumerate(self.runs):
            for index, undecoded in enumerate(run._undecoded()):
                run._progress_at(index)  # refuses a frame that has none
                self.counts_[i] = index + 1
                yield undecoded
            run._require_progress(self.counts_[i])
