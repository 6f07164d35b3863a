"""The simulated motor: the same seed, the truth about faults, and what a logger does."""

import csv
import json

import numpy as np
import pytest

from ocfuse.cli.app import run as main
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.motor import CHANNELS, FAULTS, MotorPlan, motor_run, simulate
from ocfuse.tables import open_source


def test_the_same_seed_is_the_same_run_to_the_bit():
    one, same, other = motor_run(3), motor_run(3), motor_run(4)
    np.testing.assert_array_equal(one.values, same.values)
    np.testing.assert_array_equal(one.time, same.time)
    assert len(one.time) != len(other.time) or not np.array_equal(one.time, other.time)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_nothing_before_its_onset_and_its_channel_after(fault):
    run, normal = motor_run(5, fault), motor_run(5)
    onset = run.onset
    np.testing.assert_array_equal(run.values[:onset], normal.values[:onset])
    channel = FAULTS[fault].channel
    after, usual = run.values[onset:, channel], normal.values[onset:, channel]
    assert not np.array_equal(after, usual, equal_nan=True)
    assert len(after) > 200


def test_dead_gone_and_frozen_sensors():
    dead, gone, frozen = (
        motor_run(6, fault) for fault in ("vibration reads 0", "vibration gone", "current frozen")
    )
    assert (dead.values[dead.onset :, CHANNELS.index("vibration_mm_s")] == 0).all()
    assert np.isnan(gone.values[gone.onset :, CHANNELS.index("vibration_mm_s")]).all()
    assert np.ptp(frozen.values[frozen.onset :, CHANNELS.index("current_A")]) == 0


def test_rows_come_about_once_a_second_and_some_are_lost():
    run = motor_run(7)
    steps = np.diff(run.time)
    assert 700 <= len(run.time) <= 1900
    assert (steps > 0).all()
    assert abs(np.median(steps) - 1.0) < 0.05
    assert (steps > 1.5).any()
    assert 0 < np.isnan(run.values).mean() < 0.01
    assert abs(np.median(np.diff(motor_run(7, step=4.0).time)) - 4.0) < 0.05


def test_what_the_motor_does_not_know_is_refused():
    with pytest.raises(InvalidInputError, match="slip"):
        motor_run(0, "rust")
    with pytest.raises(InvalidInputError, match="seconds"):
        motor_run(0, step=0.1)


def test_files_and_their_truth(tmp_path):
    truth = simulate(tmp_path, MotorPlan(train=2, normal=1, faulty=1, slow=1))
    with (tmp_path / "truth.csv").open() as file:
        assert list(csv.DictReader(file)) == truth
    assert [row["kind"] for row in truth] == list(FAULTS)
    for row in truth:
        frame = open_source(str(tmp_path / row["file"])).read()
        at_onset = frame.loc[int(row["row"])]
        assert str(at_onset["time"]).replace(" ", "T") == row["time"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("faults", "normal", "slow", "train", "truth.csv")
    ]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.csv")}
    simulate(tmp_path, MotorPlan(train=2, normal=1, faulty=1, slow=1))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.csv")} == before


def test_the_command(tmp_path, capsys):
    options = ["--motor", "-o", str(tmp_path), "--runs", "2", "--anomalous", "1", "--json"]
    with pytest.raises(SystemExit) as caught:
        main(["simulate", *options])
    assert caught.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == {"train": 2, "normal": 2, "faults": len(FAULTS), "slow": 2}
    assert len(list((tmp_path / "train").glob("*.csv"))) == 2
