"""Messages of a recording by ROS 1 or ROS 2: bags, and MCAP files."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import needed

#: The time of recording in ns, and what returns the message.
Message: TypeAlias = tuple[int, Callable[[], Any]]


def is_recording(path: Path) -> bool:
    """Return whether a file or folder is a bag, or an MCAP file."""
    if path.is_dir():
        return (path / "metadata.yaml").is_file()
    return path.suffix.lower() in (".bag", ".mcap")


def is_picture(kind: str | None) -> bool:
    """Return whether messages of a type are pictures."""
    return kind in ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")


def open_recording(path: Path) -> "Recording":
    """Return a bag, or an MCAP file, having looked at its topics."""
    is_mcap = path.suffix.lower() == ".mcap" and not path.is_dir()
    return Mcap(path) if is_mcap else Bag(path)


class Recording(ABC):
    """Messages by topic; `topics` holds the type of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rosbags = needed("rosbags.highlevel", "to read bags", "bags")
        try:
            self.topics = self._topics()
        except Exception as error:  # each storage has errors of its own
            raise InvalidInputError(
                f"{path.name} cannot be read as a recording: {error}."
            ) from error

    @abstractmethod
    def _topics(self) -> dict[str, str]:
        """Return the type of every topic."""

    @abstractmethod
    def messages(self, topic: str) -> Iterator[Message]:
        """Yield the messages of a topic."""


class Bag(Recording):
    """A `.bag` file of ROS 1, or the folder of a ROS 2 bag."""

    def _reader(self) -> Any:
        typesys = needed("rosbags.typesys", "to read bags", "bags")
        store = typesys.get_typestore(typesys.Stores.LATEST)
        return self.rosbags.AnyReader([self.path], default_typestore=store)

    def _topics(self) -> dict[str, str]:
        with self._reader() as reader:
            return {name: str(topic.msgtype) for name, topic in reader.topics.items()}

    def messages(self, topic: str) -> Iterator[Message]:
        """Yield the messages of a topic."""
        with self._reader() as reader:
            chosen = [c for c in reader.connections if c.topic == topic]
            for connection, recorded, raw in reader.messages(connections=chosen):
                yield recorded, partial(reader.deserialize, raw, connection.msgtype)


class Mcap(Recording):
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

    def messages(self, topic: str) -> Iterator[Message]:
        """Yield the messages of a topic."""
        typesys = needed("rosbags.typesys", "to read bags", "bags")
        stores = {
            "cdr": typesys.get_typestore(typesys.Stores.LATEST).deserialize_cdr,
            "ros1": typesys.get_typestore(typesys.Stores.ROS1_NOETIC).deserialize_ros1,
        }
        kind = self.topics[topic]
        with self.path.open("rb") as file:
            for _, channel, message in self._reader(file).iter_messages(topics=[topic]):
                if channel.message_encoding not in stores:
                    raise InvalidInputError(
                        f"{self.path.name} ({topic}) has messages encoded as "
                        f"{channel.message_encoding!r}. Expected those of ROS 2 ('cdr') or ROS 1 "
                        "('ros1')."
                    )
                read = stores[channel.message_encoding]
                yield message.log_time, partial(read, message.data, kind)


def _ros2_name(name: str) -> str:
    """Return the name that ROS 2 has for a type of ROS 1."""
    package, _, kind = name.rpartition("/")
    return name if "/msg" in package else f"{package}/msg/{kind}"


def seconds_of(message: Any, recorded: int) -> float:
    """Return when a message was made by its header, in seconds, or else when it was recorded."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    made = 0.0 if stamp is None else float(stamp.sec + stamp.nanosec * 1e-9)
    return made if made > 0 else recorded * 1e-9
