"""Frames of a video file."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ocfuse.exceptions import InvalidInputError
from ocfuse.optional import needed
from ocfuse.vision.frames import CorruptFrameError, FrameSource, Picture, Undecoded, corrupt


class Video(FrameSource):
    """Frames of the first video stream of a file, by PyAV.

    Parameters
    ----------
    path : Path
        The file.
    """

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
                    yield time, _decoding(frame)


def _decoding(frame: Any) -> Any:
    def decode() -> Picture:
        if frame.is_corrupt:
            raise CorruptFrameError("the decoder calls it corrupt")
        pixels: Picture = frame.to_ndarray(format="rgb24")
        return pixels

    return decode
