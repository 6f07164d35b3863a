"""Pictures of a recording by ROS 1 or ROS 2: bags, and MCAP files."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import needed
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
        self.rosbags = needed("rosbags.highlevel", "to read bags", "bags")
        try:
            topics = self._topics()
        except Exception as error:  # each storage has errors of its own
            raise InvalidInputError(
                f"{self.path.name} cannot be read as a recording: {error}."
            ) from error
        pictures = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
        known = {name: kind for name, kind in topics.items() if kind in pictures}
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

    @abstractmethod
    def _topics(self) -> dict[str, str]:
        """Return the type of every topic."""

    @abstractmethod
    def _messages(self) -> Iterator[tuple[int, Any]]:
        """Yield the time of recording in ns, and what returns the message."""

    def _undecoded(self) -> Iterator[Undecoded]:
        for recorded, read in self._messages():
            try:
                message = read()
            except Exception as error:  # a damaged message raises whatever it likes
                yield recorded * 1e-9, corrupt(error)
                continue
            stamp = message.header.stamp
            taken = float(stamp.sec + stamp.nanosec * 1e-9)
            yield taken if taken > 0 else recorded * 1e-9, partial(_decode, self.kind, message)


class Bag(BagSource):
    """A `.bag` file of ROS 1, or the folder of a ROS 2 bag."""

    def _reader(self) -> Any:
        typesys = needed("rosbags.typesys", "to read bags", "bags")
        store = typesys.get_typestore(typesys.Stores.LATEST)
        return self.rosbags.AnyReader([self.path], default_typestore=store)

    def _topics(self) -> dict[str, str]:
        with self._reader() as reader:
            return {name: str(topic.msgtype) for name, topic in reader.topics.items()}

    def _messages(self) -> Iterator[tuple[int, Any]]:
        with self._reader() as reader:
            chosen = [c for c in reader.connections if c.topic == self.topic]
            for connection, recorded, raw in reader.messages(connections=chosen):
                yield recorded, lambda c=connection, raw=raw: reader.deserialize(raw, c.msgtype)


class Mcap(BagSource):
    """An MCAP file with messages of ROS 1 or ROS 2."""

    def _reader(self, file: Any) -> Any:
        return needed("mcap.reader", "to read MCAP files", "bags").make_reader(file)

    def _topics(self) -> dict[str, str]:
        with self.path.open("rb") as file:
            summary = self._reader(file).get_summary()
            if summary is None:
                raise ValueError("it has no summary; repair it with `mcap recover`")
            schemas = {key: _ros2_name(schema.name) for key, schema in summary.schemas.items()}
            channels = summary.channels.values()
            return {c.topic: schemas.get(c.schema_id, "unknown") for c in channels}

    def _messages(self) -> Iterator[tuple[int, Any]]:
        typesys = needed("rosbags.typesys", "to read bags", "bags")
        stores = {
            "cdr": typesys.get_typestore(typesys.Stores.LATEST).deserialize_cdr,
            "ros1": typesys.get_typestore(typesys.Stores.ROS1_NOETIC).deserialize_ros1,
        }
        with self.path.open("rb") as file:
            found = self._reader(file).iter_messages(topics=[self.topic])
            for _, channel, message in found:
                if channel.message_encoding not in stores:
                    raise InvalidInputError(
                        f"{self} has messages encoded as {channel.message_encoding!r}. "
                        "Expected those of ROS 2 ('cdr') or ROS 1 ('ros1')."
                    )
                read = stores[channel.message_encoding]
                yield message.log_time, lambda r=read, m=message: r(m.data, self.kind)


def _ros2_name(name: str) -> str:
    """Return the name that ROS 2 has for a type of ROS 1."""
    package, _, kind = name.rpartition("/")
    return name if "/msg" in package else f"{package}/msg/{kind}"


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
