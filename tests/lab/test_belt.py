"""The simulated belt: the same seed, the truth about faults, and what is written."""

import csv
import json

import numpy as np
import pytest

from ocfuse.cli.app import run as main
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.belt import FAULTS, SIZE, BeltPlan, belt_run, simulate


@pytest.fixture(scope="module")
def normal():
    return belt_run(3, n_frames=60)


def test_the_same_seed_is_the_same_run_to_the_bit(normal):
    same, other = belt_run(3, n_frames=60), belt_run(4, n_frames=60)
    np.testing.assert_array_equal(normal.frames, same.frames)
    assert not np.array_equal(normal.frames, other.frames)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_nothing_before_its_first_picture(normal, fault):
    run = belt_run(3, fault, n_frames=60)
    first, last = run.first, run.last
    assert 0 < first < last < 60
    np.testing.assert_array_equal(run.frames[:first], normal.frames[:first])
    differs = (run.frames != normal.frames).any(axis=(1, 2, 3))
    assert differs[first + 5 : last - 5].all()
    assert (run.place is not None) == FAULTS[fault]


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if FAULTS[fault]])
def test_what_is_wrong_lies_in_its_place(normal, fault):
    run = belt_run(3, fault, n_frames=60)
    i = (run.first + run.last) // 2
    changed = np.abs(run.frames[i].astype(int) - normal.frames[i]).max(axis=2) > 15
    y, x = np.nonzero(changed)
    moved = run.place.speed * (i - run.first)
    assert len(x) > 10
    assert x.min() / SIZE >= run.place.left + moved - 0.03
    assert x.max() / SIZE <= run.place.right + moved + 0.03
    assert y.min() / SIZE >= run.place.top - 0.03
    assert y.max() / SIZE <= run.place.bottom + 0.03


def test_a_frozen_picture_repeats_and_a_belt_that_is_stuck_does_not():
    frozen, stuck = (belt_run(5, f, n_frames=60) for f in ("picture frozen", "belt stuck"))
    assert (frozen.frames[frozen.first :] == frozen.frames[-1]).all()
    still = stuck.frames[stuck.first :].astype(int)
    assert 0 < np.abs(still[1] - still[0]).mean() < 6
    assert np.abs(np.diff(still.mean(axis=(1, 2, 3)))).max() < 10


def test_what_the_belt_does_not_know_is_refused():
    with pytest.raises(InvalidInputError, match="scratch"):
        belt_run(0, "rust")
    with pytest.raises(InvalidInputError, match="60"):
        belt_run(0, n_frames=10)


def test_files_and_their_truth(tmp_path):
    av = pytest.importorskip("av")
    truth = simulate(tmp_path, BeltPlan(train=1, normal=1, faulty=1, n_frames=60, long=60))
    with (tmp_path / "truth.csv").open() as file:
        assert list(csv.DictReader(file)) == truth
    assert [row["kind"] for row in truth] == list(FAULTS)
    assert {(row["left"] == "") == FAULTS[row["kind"]] for row in truth} == {False}
    with av.open(str(tmp_path / truth[0]["file"])) as video:
        assert sum(1 for _ in video.decode(video=0)) == 60


def test_the_command(tmp_path, monkeypatch, capsys):
    plans = []
    monkeypatch.setattr("ocfuse.lab.belt.simulate", lambda out, plan: plans.append(plan) or [])
    with pytest.raises(SystemExit) as caught:
        main(["simulate", "--belt", "-o", str(tmp_path), "--runs", "12", "--json"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out)["runs"] == {"train": 12, "normal": 3, "faults": 0}
    assert plans == [BeltPlan(train=12, normal=3, faulty=1)]
    with pytest.raises(SystemExit):
        main(["simulate", "--belt", "--motor", "-o", str(tmp_path)])
    assert "either" in capsys.readouterr().err
