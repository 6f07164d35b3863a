"""Pictures of a recording by ROS 1 or ROS 2: bags, and MCAP files."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.bags import is_picture, open_recording, seconds_of
from ocfuse.vision.frames import (
    CorruptFrameError,
    FrameSource,
    Picture,
    Undecoded,
    corrupt,
    decode_picture,
    to_picture,
)

#: Bytes per number, numbers per pixel, and the order that makes them red, green, blue.
ENCODINGS: dict[str, tuple[int, int, list[int]]] = {
    "mono8": (1, 1, [0]),
    "8UC1": (1, 1, [0]),
    "mono16": (2, 1, [0]),
    "16UC1": (2, 1, [0]),
    "rgb8": (1, 3, [0, 1, 2]),
    "8UC3": (1, 3, [2, 1, 0]),  # OpenCV's order
    "bgr8": (1, 3, [2, 1, 0]),
    "rgba8": (1, 4, [0, 1, 2]),
    "bgra8": (1, 4, [2, 1, 0]),
    "8UC4": (1, 4, [2, 1, 0]),
}


class BagSource(FrameSource):
    """Pictures of one topic of a recording, which may be None if only one has pictures."""

    is_sequence = True

    def __init__(self, path: Path, topic: str | None) -> None:
        self.path = Path(path)
        self.recording = open_recording(self.path)
        topics = self.recording.topics.items()
        known = {name: kind for name, kind in topics if is_picture(kind)}
        if topic is None and len(known) == 1:
            topic = next(iter(known))
        if topic not in known:
            raise InvalidInputError(
                f"{self.path.name} has pictures in these topics: "
                f"{', '.join(sorted(known)) or 'none'}. Got topic={topic!r}. Choose one of them."
            )
        self.topic, self.kind = topic, known[topic]

    def __str__(self) -> str:
        return f"{self.path.name} ({self.topic})"

    def _undecoded(self) -> Iterator[Undecoded]:
        for recorded, read in self.recording.messages(self.topic):
            try:
                message = read()
            except Exception as error:  # a damaged message raises whatever it likes
                yield recorded * 1e-9, corrupt(error)
                continue
            yield seconds_of(message, recorded), partial(_decode, self.kind, message)


def _decode(kind: str, message: Any) -> Picture:
    """Return the picture of a message, raw or compressed."""
    if kind == "sensor_msgs/msg/CompressedImage":
        return decode_picture(bytes(message.data))
    if message.encoding not in ENCODINGS:
        raise CorruptFrameError(
            f"its encoding is {message.encoding!r}; known are {', '.join(ENCODINGS)}"
        )
    size, channels, order = ENCODINGS[message.encoding]
    height, width, step = int(message.height), int(message.width), int(message.step)
    row = width * channels * size
    data = np.asarray(message.data, dtype=np.uint8)
    if height < 1 or row < 1 or step < row or len(data) < height * step:
        raise CorruptFrameError(
            f"{len(data)} bytes are not enough for {height} rows of {step}, {row} of them used"
        )
    rows = np.ascontiguousarray(data[: height * step].reshape(height, step)[:, :row])
    if size == 2:
        rows = rows.view(np.dtype(">u2" if message.is_bigendian else "<u2")).astype(np.uint16)
    return to_picture(rows.reshape(height, width, channels)[:, :, order])
