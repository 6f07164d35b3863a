"""Numeric topics of ROS recordings as tables."""

import numpy as np
import pytest

from ocfuse.exceptions import TableError, TableWarning
from ocfuse.tables import open_source
from tests.vision.cases import needs

needs("rosbags", "mcap")
from rosbags.rosbag2 import StoragePlugin, Writer  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

ROS2 = get_typestore(Stores.ROS2_HUMBLE)
JOINTS, POINT = "sensor_msgs/msg/JointState", "geometry_msgs/msg/Point"
WORD, PICTURE = "std_msgs/msg/String", "sensor_msgs/msg/Image"


def header(seconds):
    stamp = ROS2.types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=500_000_000)
    return ROS2.types["std_msgs/msg/Header"](stamp=stamp, frame_id="base")


def joints(i, names=("shoulder", "elbow"), seconds=None):
    return ROS2.types[JOINTS](
        header=header(100 + i if seconds is None else seconds),
        name=list(names),
        position=np.array([i, i + 0.5])[: len(names)],
        velocity=np.array([]),
        effort=np.array([1.0, 2.0]),
    )


def picture():
    data = np.zeros(12, np.uint8)
    sizes = {"height": 2, "width": 2, "step": 6, "is_bigendian": 0}
    return ROS2.types[PICTURE](header=header(1), encoding="rgb8", data=data, **sizes)


def write(path, *messages, plugin=StoragePlugin.SQLITE3):
    """Write messages of topic, type and content, one a second."""
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        kinds = {topic: kind for topic, kind, _ in messages}
        known = {t: writer.add_connection(t, kinds[t], typestore=ROS2) for t in kinds}
        for i, (topic, kind, content) in enumerate(messages):
            data = content if isinstance(content, bytes) else ROS2.serialize_cdr(content, kind)
            writer.write(known[topic], i * 10**9, data)
    return path


def of_joints(*contents):
    return [("/joint_states", JOINTS, content) for content in contents]


@pytest.mark.parametrize("plugin", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_joints_are_columns_by_their_names(tmp_path, plugin):
    others = [("/camera", PICTURE, picture()), ("/mode", WORD, ROS2.types[WORD](data="AUTO"))]
    swapped = joints(2, ("elbow", "shoulder"))
    path = write(tmp_path / "run", *of_joints(joints(0), swapped), *others, plugin=plugin)
    for where in (path, *path.glob("*.mcap")):
        source = open_source(where, chunk_rows=1)
        frame = source.read()
        assert source.description == "topic /joint_states"
        assert frame.to_dict("list") == {
            "time": [100.5, 102.5],
            "position.shoulder": [0.0, 2.5],
            "position.elbow": [0.5, 2.0],
            "effort.shoulder": [1.0, 2.0],
            "effort.elbow": [2.0, 1.0],
        }


def test_topics_with_numbers_are_listed(tmp_path):
    point = ROS2.types[POINT](x=1.0, y=2.0, z=3.0)
    rest = [("/point", POINT, point), ("/camera", PICTURE, picture())]
    path = write(tmp_path / "run", *of_joints(joints(0)), *rest)
    with pytest.raises(TableError, match=r"topics: /joint_states, /point\. Got topic=None"):
        open_source(path)
    found = open_source(path, topic="/point").read()
    assert found.to_dict("list") == {"time": [1.0], "x": [1.0], "y": [2.0], "z": [3.0]}
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match="no recording"):
        open_source(tmp_path / "t.csv", topic="/point")


def test_a_folder_of_bags_is_a_table_of_runs(tmp_path):
    for i in range(2):
        write(tmp_path / f"run{i}", *of_joints(joints(i)))
    frame = open_source(tmp_path, topic="/joint_states").read()
    assert frame["file"].tolist() == ["run0", "run1"]


def test_what_a_message_lacks_is_a_gap_and_damaged_ones_are_told(tmp_path):
    path = write(tmp_path / "run", *of_joints(joints(0), b"\x00\x01", joints(1, ("elbow",))))
    with pytest.warns(TableWarning, match="1 messages of /joint_states cannot be decoded"):
        frame = open_source(path).read()
    assert np.isnan(frame["position.shoulder"]).tolist() == [False, True]
    assert frame["position.elbow"].tolist() == [0.5, 1.0]


def test_without_a_stamp_the_time_is_that_of_the_recording(tmp_path):
    stampless = joints(0, seconds=0)
    stampless.header.stamp.nanosec = 0
    path = write(tmp_path / "run", *of_joints(joints(0), stampless))
    assert open_source(path).read()["time"].tolist() == [100.5, 1.0]
