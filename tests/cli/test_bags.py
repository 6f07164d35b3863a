"""Recordings by ROS at the command line: their topics tell whether they hold pictures."""

import json

import numpy as np
import pandas as pd
import pytest

from ocfuse.cli.kinds import holds_pictures
from tests.tables.test_bags import JOINTS, PICTURE, joints, picture, write
from tests.vision.cases import needs

needs("rosbags", "mcap")
from rosbags.rosbag2 import StoragePlugin  # noqa: E402

STATES = [("/joint_states", JOINTS, joints(i * 7 % 60, seconds=100 + i)) for i in range(200)]
FRAMES = [("/camera", PICTURE, picture())]


def recorded(path, *messages):
    """Write a bag whose messages are in an MCAP file."""
    path.parent.mkdir(exist_ok=True)
    write(path, *messages, plugin=StoragePlugin.MCAP)


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    """Return a folder of recordings of numbers, of pictures, and of both."""
    folder = tmp_path_factory.mktemp("bags")
    for name in ("run0", "run1", "run2"):
        recorded(folder / "numbers" / name, *STATES)
    recorded(folder / "pictures", *FRAMES)
    recorded(folder / "both", *STATES, *FRAMES)
    return folder


def test_topics_tell_what_a_recording_holds(bags, tmp_path):
    assert not holds_pictures(bags / "numbers" / "run0")
    assert not holds_pictures(bags / "numbers")
    (file,) = (bags / "numbers" / "run0").glob("*.mcap")
    assert not holds_pictures(file)
    assert holds_pictures(bags / "pictures")
    assert holds_pictures(bags / "both")
    assert holds_pictures(bags / "both", "/camera")
    assert not holds_pictures(bags / "both", "/joint_states")
    (tmp_path / "cut.mcap").touch()
    assert holds_pictures(tmp_path / "cut.mcap")
    assert holds_pictures("not/there.bag")


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")
def test_numbers_of_bags_are_learned_scored_and_watched(bags, tmp_path, run_command):
    model, scores = tmp_path / "arm.ocf", tmp_path / "scores.csv"
    fit = ("fit", bags / "numbers", "--stream", "-o", model, "--members", "light")
    code, _, err = run_command(*fit)
    assert code == 0, err
    for where in (bags / "numbers" / "run1", *(bags / "numbers" / "run1").glob("*.mcap")):
        code, _, err = run_command("score", model, where, "-o", scores)
        assert code == 0, err
        assert len(pd.read_csv(scores)) == 200
        code, out, err = run_command("watch", model, where, "--json")
        assert code == 0, err
        assert json.loads(out.splitlines()[-1])["rows"] == 200
    with_both = ("watch", model, bags / "both", "--topic", "/joint_states", "--json")
    code, out, err = run_command(*with_both)
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["rows"] == 200
    code, _, err = run_command("score", model, bags / "both", "-o", scores)
    assert code == 0, err


def test_a_model_of_rows_is_told_that_a_bag_has_no_numbers(bags, tmp_path, run_command):
    table, model = tmp_path / "rows.csv", tmp_path / "rows.ocf"
    pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"]).to_csv(table)
    assert run_command("fit", table, "-o", model, "--members", "light")[0] == 0
    code, _, err = run_command("score", model, bags / "pictures", "-o", tmp_path / "s.csv")
    assert code == 3
    assert "has numbers in these topics: none" in err
