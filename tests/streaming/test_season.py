"""Streams measured from what is usual at their time: `season` of StreamDetector and StreamTable."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.exceptions import (
    FewSamplesWarning,
    IgnoredColumnsWarning,
    InvalidInputError,
    TableError,
)
from ocfuse.streaming import StreamDetector, StreamTable

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")


def load_of(days, seed, start="2026-02-02", *, zone=None):
    """Return the load of a plant every 20 minutes, with a job at 6, and a sensor beside it."""
    rng = np.random.default_rng(seed)
    when = pd.date_range(start, periods=72 * days, freq="20min", tz=zone)
    load = 50 + 20 * np.sin(when.hour * np.pi / 12) + 40 * (when.hour == 6)
    noise = rng.normal(size=(2, len(when)))
    return pd.DataFrame({"when": when, "load": load + noise[0], "temp": 20 + noise[1]})


def stream_of(**settings):
    inner = FusedDetector("light", random_state=0)
    return StreamDetector(inner, windows=(3,), n_blocks=8, **settings)


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewSamplesWarning)
        return StreamTable(stream_of(), season="day").fit(load_of(28, 1))


def test_false_alarms_are_even_over_the_day_and_a_missing_job_is_found(model):
    rows = load_of(40, 2, "2026-04-06")
    is_alarm = model.score(rows)["is_anomaly"].fillna(False).to_numpy(bool)
    assert is_alarm.mean() <= 0.1
    by_hour = pd.Series(is_alarm).groupby(rows["when"].dt.hour).mean()
    assert by_hour.max() <= 0.2
    missing = rows.copy()
    at_six = (rows["when"].dt.hour == 6) & (rows["when"].dt.day == 20)
    missing.loc[at_six, "load"] -= 40
    found = model.score(missing)["is_anomaly"].fillna(False).to_numpy(bool)
    assert found[at_six].all()
    noon = rows.copy()
    at_noon = (rows["when"].dt.hour == 12) & (rows["when"].dt.day == 20)
    noon.loc[at_noon, "load"] += 40
    assert model.score(noon)["is_anomaly"].fillna(False).to_numpy(bool)[at_noon].all()


def test_row_by_row_and_at_once_are_the_same(model):
    rows = load_of(3, 3)
    whole = model.score(rows)["score"]
    live = model.restart()
    parts = [live.score_rows(rows[i : i + 7])["score"] for i in range(0, len(rows), 7)]
    assert np.array_equal(pd.concat(parts), whole, equal_nan=True)


def test_readings_are_in_the_units_of_the_channel_and_usual_at_that_hour(model):
    rows = load_of(1, 4)
    rows.loc[36:38, "load"] = 95.0  # noon
    live = model.restart()
    live.follow(rows[:39])
    (reading, *_) = live.readings()
    assert reading.name == "load"
    assert reading.value == pytest.approx(95.0, abs=1.0)
    assert reading.usual == pytest.approx(50.0, abs=2.0)
    _, (by_frame,) = model.explained(rows, [38])
    assert by_frame[0].usual == pytest.approx(reading.usual, abs=0.5)
    assert "load" in model.report(rows).html


def test_a_model_file_and_a_checkpoint_keep_the_seasons(model, tmp_path):
    rows = load_of(2, 5)
    loaded = load(model.save(tmp_path / "m.ocf"))
    expected = model.score(rows)["score"]
    assert np.array_equal(loaded.score(rows)["score"], expected, equal_nan=True)
    assert loaded.facts()["usual"]["seasons"] == {"day": ["load"]}


def test_times_have_zones_and_daylight_saving():
    table = StreamTable(stream_of(), season="day").fit(load_of(28, 1, zone="Europe/Berlin"))
    assert table.stream_.view_.usual.seasons.calendar.zone == "Europe/Berlin"
    rows = load_of(10, 2, "2026-03-25", zone="Europe/Berlin")
    alarms = table.score(rows)["is_anomaly"].fillna(False)
    assert alarms.mean() <= 0.12
    in_utc = rows.assign(when=rows["when"].dt.tz_convert("UTC"))
    assert np.array_equal(table.score(in_utc)["score"], table.score(rows)["score"], equal_nan=True)


def test_a_gap_in_time_raises_no_alarm(model):
    rows = load_of(6, 6)
    rows = rows[(rows.index < 100) | (rows.index > 230)]
    scores = model.score(rows)
    assert scores["is_anomaly"].fillna(False).mean() <= 0.12


def test_arrays_with_seconds():
    rows = load_of(10, 1)
    seconds = rows["when"].astype("datetime64[s]").astype(np.int64).to_numpy(float)
    X = rows[["load", "temp"]].to_numpy()
    stream = stream_of(season="day").fit(X, time=seconds)
    dated = stream_of(season="day").fit(X, time=rows["when"])
    fresh = load_of(2, 2)
    when = fresh["when"].astype("datetime64[s]").astype(np.int64).to_numpy(float)
    found = stream.score_samples(fresh[["load", "temp"]].to_numpy(), time=when)
    expected = dated.score_samples(fresh[["load", "temp"]].to_numpy(), time=fresh["when"])
    assert np.allclose(found, expected, equal_nan=True)
    ones = [
        stream.score_one(x, t)
        for x, t in zip(fresh[["load", "temp"]].to_numpy(), when, strict=True)
    ]
    assert np.allclose(ones, found, equal_nan=True)


def test_a_season_that_foretells_nothing_is_left_out_and_said_so():
    rows = load_of(15, 1)
    with pytest.warns(IgnoredColumnsWarning, match="time of week"):
        StreamTable(stream_of(), season=("day", "week")).fit(rows)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"season": "year"}, "two years"),
        ({"season": "hour"}, "season must be one of"),
        ({"season": "day", "holidays": "2026-02-03"}, "season='week'"),
        ({"season": "day", "zone": "Berlin"}, "time zone 'Berlin'"),
    ],
)
def test_seasons_that_cannot_be_learned_are_refused(settings, words):
    rows = load_of(5, 1)
    with pytest.raises(InvalidInputError, match=words):
        stream_of(**settings).fit(rows[["load", "temp"]], time=rows["when"])


def test_seasons_need_times():
    rows = load_of(5, 1)
    with pytest.raises(InvalidInputError, match="needs the times"):
        stream_of(season="day").fit(rows[["load", "temp"]])
    with pytest.raises(TableError, match="needs the times"):
        StreamTable(stream_of(), season="day").fit(rows[["load", "temp"]])


def test_times_that_go_backwards_are_refused_where_order_matters():
    rows = load_of(5, 1)[::-1]
    with pytest.raises(InvalidInputError, match="Sort each run by time"):
        stream_of(season="day").fit(rows[["load", "temp"]], time=rows["when"])
