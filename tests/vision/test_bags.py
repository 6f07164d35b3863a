import io
import warnings

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.vision import FrameWarning, open_frames
from tests.vision.cases import needs, scene

needs("rosbags", "mcap", "PIL.Image")
from mcap.writer import Writer as McapWriter  # noqa: E402
from PIL import Image  # noqa: E402
from rosbags.rosbag1 import Writer as Writer1  # noqa: E402
from rosbags.rosbag2 import StoragePlugin  # noqa: E402
from rosbags.rosbag2 import Writer as Writer2  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

RAW, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
ROS1, ROS2 = get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_HUMBLE)
N = 4


def header(store, i):
    stamp = store.types["builtin_interfaces/msg/Time"](sec=100 + i, nanosec=500_000_000)
    fields = {"stamp": stamp, "frame_id": "camera"}
    if store is ROS1:
        fields["seq"] = i
    return store.types["std_msgs/msg/Header"](**fields)


def raw(store, i, encoding="bgr8"):
    picture = scene(i / N, size=16)
    channels = {"bgr8": picture[:, :, ::-1], "rgb8": picture, "mono8": picture[:, :, :1]}[encoding]
    rows = channels.reshape(16, -1)
    padded = np.pad(rows, ((0, 0), (0, 5)))  # rows may be longer than their pixels
    return store.types[RAW](
        header=header(store, i),
        height=16,
        width=16,
        encoding=encoding,
        is_bigendian=0,
        step=padded.shape[1],
        data=padded.ravel(),
    )


def compressed(store, i):
    file = io.BytesIO()
    Image.fromarray(scene(i / N, size=16)).save(file, "png")
    data = np.frombuffer(file.getvalue(), np.uint8)
    if i == 2:
        data = data[:30]  # a message that was cut off
    return store.types[COMPRESSED](header=header(store, i), format="png", data=data)


def messages(store):
    for i in range(N):
        time = (100 + i) * 10**9
        yield "/raw", RAW, time, raw(store, i)
        yield "/small", COMPRESSED, time, compressed(store, i)


def write_ros1(folder):
    path = folder / "run.bag"
    with Writer1(path) as writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=ROS1)
            for topic, kind in (("/raw", RAW), ("/small", COMPRESSED))
        }
        for topic, kind, time, message in messages(ROS1):
            writer.write(connections[topic], time, ROS1.serialize_ros1(message, kind))
    return path


def write_ros2(folder, plugin=StoragePlugin.SQLITE3):
    path = folder / "run"
    with Writer2(path, version=9, storage_plugin=plugin) as writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=ROS2)
            for topic, kind in (("/raw", RAW), ("/small", COMPRESSED))
        }
        for topic, kind, time, message in messages(ROS2):
            writer.write(connections[topic], time, ROS2.serialize_cdr(message, kind))
    return path


def write_mcap(folder):
    path = folder / "run.mcap"
    with path.open("wb") as file:
        writer = McapWriter(file)
        writer.start(profile="ros2", library="test")
        channels = {}
        for topic, kind in (("/raw", RAW), ("/small", COMPRESSED)):
            schema = writer.register_schema(kind, "ros2msg", b"")
            channels[topic] = writer.register_channel(topic, "cdr", schema)
        for topic, kind, time, message in messages(ROS2):
            content = bytes(ROS2.serialize_cdr(message, kind))
            writer.add_message(channels[topic], time, content, time)
        writer.finish()
    return path


def write_ros2_mcap(folder):
    return write_ros2(folder, StoragePlugin.MCAP)


@pytest.fixture(params=[write_ros1, write_ros2, write_ros2_mcap, write_mcap])
def recording(request, tmp_path):
    return request.param(tmp_path)


def test_raw_pictures_and_their_times(recording):
    frames = list(open_frames(recording, "/raw"))
    assert [frame.time for frame in frames] == [100.5, 101.5, 102.5, 103.5]
    for i, frame in enumerate(frames):
        assert (frame.image == scene(i / N, size=16)).all()


def test_compressed_pictures_and_the_damaged_one(recording):
    source = open_frames(recording, "/small")
    with pytest.warns(FrameWarning, match="1 of 4"):
        frames = list(source)
    assert [frame.index for frame in frames] == [0, 1, 3]
    assert [frame.time for frame in frames] == [100.5, 101.5, 103.5]
    assert (frames[2].image == scene(3 / N, size=16)).all()


def test_topics_are_listed_when_one_must_be_chosen(recording):
    with pytest.raises(InvalidInputError, match=r"/raw, /small\. Got topic=None"):
        open_frames(recording)
    with pytest.raises(InvalidInputError, match=r"/raw, /small\. Got topic='/other'"):
        open_frames(recording, "/other")


def test_a_bag_is_a_sequence(recording):
    assert open_frames(recording, "/raw").is_sequence


@pytest.mark.parametrize("encoding", ["rgb8", "mono8"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "one"
    with Writer2(path, version=9) as writer:
        connection = writer.add_connection("/only", RAW, typestore=ROS2)
        writer.write(connection, 1, ROS2.serialize_cdr(raw(ROS2, 0, encoding), RAW))
    (frame,) = open_frames(path)
    expected = scene(0, size=16)
    assert (frame.image == (expected if encoding == "rgb8" else expected[:, :, :1])).all()


def test_an_unknown_encoding_is_named(tmp_path):
    path = tmp_path / "one"
    message = raw(ROS2, 0)
    message.encoding = "bayer_rggb8"
    with Writer2(path, version=9) as writer:
        connection = writer.add_connection("/only", RAW, typestore=ROS2)
        writer.write(connection, 1, ROS2.serialize_cdr(message, RAW))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert list(open_frames(path)) == []
    assert "bayer_rggb8" in str(caught[0].message)
