"""The runs of SKAB."""

import numpy as np
import pytest

from ocfuse.datasets import load, load_skab, locate
from ocfuse.datasets.sequences import COLUMNS, RUNS
from ocfuse.exceptions import DatasetError, DatasetUnavailableError, InvalidInputError


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
def test_bad_file(folder, text, message):
    path = folder / "sequences" / "skab" / "valve2" / "1.csv"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        load("skab/valve2/1")
