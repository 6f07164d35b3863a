"""The runs of SKAB and the robot execution failures."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from ocfuse.datasets import find, load, load_robot_failures, load_skab, locate
from ocfuse.datasets.sequences import COLUMNS, INFOS, RUNS
from ocfuse.exceptions import DatasetError, DatasetUnavailableError, InvalidInputError
from tests.datasets.conftest import zipped


@pytest.mark.slow
def test_all_runs(data):
    runs = load_skab()
    assert [run.name for run in runs] == [f"skab/{name}" for name in RUNS]
    assert len(runs) == 35
    assert sum(len(run.X) for run in runs) == 46806
    for run in runs:
        assert run.X.shape == (len(run.y), len(COLUMNS)) == (len(run.time), len(run.columns))
        assert np.isfinite(run.X).all()
        assert set(run.y.tolist()) <= {1, -1}
        assert run.is_changepoint.dtype == bool
    free, labelled = runs[0], runs[1:]
    assert (free.y == 1).all()
    assert not free.is_changepoint.any()
    assert all((run.y == -1).any() and run.is_changepoint.any() for run in labelled)


def test_one_run(data):
    run = load("skab/other/2")
    assert (run.y[:400] == -1).sum() == 296
    assert run.time[0] == np.datetime64("2020-03-01T16:28:16")
    np.testing.assert_array_equal(
        load("skab/valve1/0").X[0],
        [0.0265878, 0.0401113, 1.3302, 0.054711, 79.3366, 26.0199, 233.062, 32.0],
    )


def test_where(data, folder, monkeypatch):
    assert locate("skab") is None
    with pytest.raises(DatasetUnavailableError, match=r"github.com/waico/SKAB and put it at"):
        load("skab")
    monkeypatch.setenv("OCFUSE_DATA", str(data))
    assert locate("skab") == str(data / "sequences" / "skab")
    assert locate("skab/valve1/3") == str(data / "sequences" / "skab" / "valve1" / "3.csv")


def test_unknown_run():
    with pytest.raises(InvalidInputError, match=r"Got 'skab/valve1/16'. Did you mean 'skab/valve1"):
        load("skab/valve1/16")


HEADER = ";".join(["datetime", *COLUMNS, "anomaly", "changepoint"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Got an empty file"),
        ("a;b\n1;2\n", "must have the columns datetime;Acc.* Got a;b"),
        (HEADER + "\n2020-01-01 00:00:00;1\n", "in each row"),
        (HEADER + "\nyesterday" + ";1" * 10 + "\n", "'datetime' .* must hold times"),
        (HEADER + "\n2020-01-01 00:00:00" + ";x" * 10 + "\n", "must hold numbers. Got 'x'"),
    ],
)
def test_bad_run(folder, text, message):
    path = folder / "sequences" / "skab" / "valve2" / "1.csv"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        load("skab/valve2/1")


@pytest.mark.parametrize("name", INFOS)
def test_recordings(data, name):
    runs, info = load_robot_failures(name), find(f"robot-failures/{name}")
    assert len(runs) == info.n_rows
    assert all(run.X.shape == (15, 6) for run in runs)
    normal = [run for run in runs if run.label == info.normal_class]
    assert len(normal) == info.n_normals
    assert all((run.y == 1).all() for run in normal)
    assert sum((run.y == -1).all() for run in runs) == info.n_rows - info.n_normals


def test_first_recording(data):
    runs = load("robot-failures/lp1")
    np.testing.assert_array_equal(runs[0].X[:2], [[-1, -1, 63, -3, -1, 0], [0, 0, 62, -3, -1, 0]])
    assert runs[0].columns == ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz")
    counts = Counter(run.label for run in runs)
    assert counts == {"normal": 21, "collision": 17, "fr_collision": 16, "obstruction": 34}


def test_three_sets_not_five(data):
    sets = {
        name: Counter(run.X.tobytes() for run in load_robot_failures(name))
        for name in ("lp2", "lp3", "lp4", "lp5")
    }
    assert sets["lp2"] == sets["lp3"]
    assert (sets["lp5"] - (sets["lp2"] + sets["lp4"])).total() <= 2


def test_file_is_the_archives_to_the_byte(data):
    """Of lp1 a public project states the SHA-256; only the last line end is missing here."""
    content = (data / "sequences" / "robot_failures" / "lp1.data").read_bytes() + b"\n"
    expected = "e146de5aeaffd864f0e57ce2fe0b58e98582c3e808e6c0e8deb9b25a54ef0cb5"
    assert hashlib.sha256(content).hexdigest() == expected


def test_download_serves_all_five(data, folder, server, monkeypatch):
    monkeypatch.setattr("ocfuse.datasets.sequences.URL", server.url("robot.zip"))
    source = data / "sequences" / "robot_failures"
    server.body = zipped({f"{n}.data": (source / f"{n}.data").read_text() for n in INFOS})
    for name in INFOS:
        assert len(load_robot_failures(name)) == INFOS[name].n_rows
    assert len(server.asked) == 1
    assert locate("robot-failures/lp4").endswith("robot+execution+failures.zip")


BLOCK = "normal\n" + "\t1\t2\t3\t4\t5\t6\n" * 15


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BLOCK + "\n\n", "Expected content with SHA-256"),
        (BLOCK + "normal\n1 2 3\n", "Recording 2 of .* Got lines of 1, 3 values"),
        (BLOCK.replace("6", "x"), "Column 'Tz' .* Got 'x'"),
        ("", "Expected content"),
    ],
)
def test_bad_file(folder, text, message):
    path = folder / "sequences" / "robot_failures" / "lp1.data"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        load_robot_failures("lp1")


def test_unknown_name():
    with pytest.raises(InvalidInputError, match=r"Got 'lp6'. Did you mean"):
        load_robot_failures("lp6")
