"""One side only and limits in streams: channels, windows, sensors and events."""

from copy import copy

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.streaming import LiveMonitor, StreamDetector, StreamTable


def runs(n_runs=24, length=60, seed=0):
    rng = np.random.default_rng(seed)
    load_ = rng.normal(size=n_runs * length)
    current = 5 + load_ + 0.3 * rng.normal(size=len(load_))
    return pd.DataFrame(
        {"run": np.repeat(np.arange(n_runs), length), "current": current, "load": load_}
    )


def made(**settings):
    light = FusedDetector("light", random_state=0)
    return StreamTable(StreamDetector(light, windows=(5, 10), **settings), group="run")


@pytest.fixture(scope="module")
def model():
    return made(direction={"current": "high"}, limits={"current": (None, 40.0)}).fit(runs())


def n_alarms(model, table):
    return int(model.score(table)["is_anomaly"].fillna(False).sum())


def test_falls_of_a_channel_of_one_side_raise_no_alarm_and_rises_do(model):
    fresh = runs(4, seed=1)
    held = n_alarms(model, fresh)
    fall, rise = fresh.copy(), fresh.copy()
    fall.loc[120:180, "current"] -= 8.0
    rise.loc[120:180, "current"] += 8.0
    assert n_alarms(model, fall) <= held + 2
    assert n_alarms(model, rise) >= held + 50
    assert n_alarms(made().fit(runs()), fall) >= 50  # both sides count without


def test_a_fault_of_another_channel_is_found_behind_a_fall(model):
    fresh = runs(4, seed=1)
    fresh.loc[120:180, "current"] -= 8.0
    fresh.loc[120:180, "load"] += 8.0
    assert n_alarms(model, fresh) >= 50


def test_row_by_row_is_as_at_once_also_from_a_file(model, tmp_path):
    fresh = runs(1, seed=2)
    again = load(model.save(tmp_path / "model.ocf"))
    at_once = model.score(fresh)["score"].to_numpy()
    again.restart()
    by_row = [again.score_rows(fresh.iloc[[i]])["score"].iloc[0] for i in range(40)]
    np.testing.assert_allclose(by_row, at_once[:40], atol=1e-9)


def test_a_channel_out_of_its_range_on_the_harmless_side_is_no_failure(model):
    def kinds(value):
        monitor = LiveMonitor(load_copy(model), is_live=False)
        told = []
        for row in runs(1, seed=3).to_dict("records"):
            told += monitor.take(row | {"current": value + 0.1 * row["load"]})
        return {record["kind"] for record in told}

    assert "range" not in kinds(-30.0)
    assert "range" in kinds(30.0)


def load_copy(model):

    fresh = copy(model)
    fresh.stream_ = copy(model.stream_)
    return fresh.restart()


def test_limits_are_told_from_the_first_to_the_last_sample_beyond(model):
    monitor = LiveMonitor(load_copy(model), is_live=False)
    told = []
    for i, row in enumerate(runs(1, seed=3).to_dict("records")):
        told += monitor.take(row | ({"current": 50.0} if 20 <= i < 23 else {}))
    found = [record for record in told if record["kind"] == "limit"]
    assert [(record["state"], record["row"]) for record in found] == [("begin", 20), ("end", 23)]
    assert found[0]["text"] == "limit broken: current above 40: 50 since row 20"
    assert (monitor.n_limits, monitor.n_sensors) == (1, 0)


def test_score_files_of_streams_have_a_column_of_rules(model):
    fresh = runs(1, seed=3)
    fresh.loc[2, "current"] = 50.0  # before windows are full
    found = model.score(fresh)
    assert found.loc[2, "rule"] == "current above 40"
    assert found.loc[2, "is_anomaly"]
    assert np.isnan(found.loc[2, "score"])
    assert found["rule"].notna().sum() == 1


def test_names_that_are_no_channels_are_refused():
    with pytest.raises(InvalidInputError, match="Did you mean 'current'"):
        made(direction={"curent": "high"}).fit(runs())
    with pytest.raises(TableError, match="which holds text"):
        made(limits={"state": (0, 1)}).fit(runs().assign(state="on"))
    with pytest.raises(InvalidInputError, match="Did you mean 'load'"):
        StreamDetector(limits={"lod": (0, 1)}).fit(runs()[["current", "load"]])
