"""Rows measured from what is usual at their time: `season` of FusedDetector and TableDetector."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector, load
from ocfuse.exceptions import (
    CellsWarning,
    IgnoredColumnsWarning,
    InvalidInputError,
    SuspectInputWarning,
    TableError,
)
from ocfuse.tables import TableDetector


def hours_of(days, seed, start="2026-02-02", *, zone=None, step="1h"):
    """Return flow with a wave and a job at 6, and temperature, which knows no time."""
    rng = np.random.default_rng(seed)
    n = int(pd.Timedelta(days=days) / pd.Timedelta(step))
    when = pd.date_range(start, periods=n, freq=step, tz=zone)
    hour = when.hour + when.minute / 60
    spread = np.where((hour > 8) & (hour < 18), 5.0, 1.5)
    flow = 50 + 20 * np.sin(hour * np.pi / 12) + 60 * (when.hour == 6)
    flow = flow + spread * rng.normal(size=n)
    return pd.DataFrame({"when": when, "flow": flow, "temp": 20 + rng.normal(size=n)})


def detector_of(**settings):
    rate = settings.pop("false_alarm_rate", 0.1)
    return FusedDetector("light", time="when", false_alarm_rate=rate, random_state=0, **settings)


@pytest.fixture(scope="module")
def detector():
    return detector_of(season="day").fit(hours_of(42, 1, step="30min"))


def rates_by_hour(is_alarm, rows):
    return pd.Series(is_alarm).groupby(rows["when"].dt.hour).mean()


def test_false_alarms_are_even_over_the_day_where_they_were_not(detector):
    rows = hours_of(120, 2, "2026-04-06", step="30min")
    is_alarm = detector.predict(rows) < 0
    rates = rates_by_hour(is_alarm, rows)
    assert 0.08 <= is_alarm.mean() <= 0.12
    assert rates.min() >= 0.05
    assert rates.max() <= 0.2
    plain = FusedDetector("light", false_alarm_rate=0.1, random_state=0)
    plain.fit(hours_of(42, 1, step="30min").drop(columns="when"))
    others = rates_by_hour(plain.predict(rows.drop(columns="when")) < 0, rows)
    assert others.min() < 0.05
    assert others.max() > 0.2


def test_what_is_normal_at_six_is_an_anomaly_at_noon_and_nothing_at_six_is_one_too(detector):
    rows = pd.DataFrame(
        {
            "when": pd.to_datetime(["2026-05-05 06:10", "2026-05-05 00:10", "2026-05-05 06:10"]),
            "flow": [130.0, 130.0, 70.0],
            "temp": 20.0,
        }
    )
    assert detector.predict(rows).tolist() == [1, -1, -1]
    reasons = [detector.explain(rows).reason(i) for i in (1, 2)]
    assert reasons[0].startswith("flow 130, high at ")
    assert "at 00:10" in reasons[0]
    assert "at 06:10" in reasons[1]


def test_daylight_saving_and_gaps_in_time_raise_no_alarms():
    model = detector_of(season="day").fit(hours_of(42, 1, zone="Europe/Berlin"))
    rows = hours_of(60, 3, "2026-03-20", zone="Europe/Berlin")  # clocks change on the 29th
    rows = rows[(rows.index < 450) | (rows.index > 550)].reset_index(drop=True)
    assert (model.predict(rows) < 0).mean() <= 0.14
    moved = rows.assign(when=rows["when"].dt.tz_convert("America/New_York"))
    assert np.array_equal(model.predict(moved), model.predict(rows))


def test_a_column_that_knows_no_time_is_not_measured_by_it(detector):
    assert detector.encoder_.usual_.seasons.counts("day").tolist() == [True, False]


def test_a_season_that_foretells_nothing_is_left_out_and_said_so():
    rows = hours_of(30, 1)[["when", "temp"]]
    with pytest.warns(IgnoredColumnsWarning, match="time of day foretells no column"):
        model = detector_of(season="day").fit(rows)
    plain = FusedDetector("light", false_alarm_rate=0.1, random_state=0).fit(rows[["temp"]])
    assert np.mean(model.predict(rows) != plain.predict(rows[["temp"]])) < 0.01


def test_a_time_that_is_missing_is_judged_by_any_time(detector):
    row = pd.DataFrame({"when": [pd.NaT], "flow": [70.0], "temp": [20.0]})
    with pytest.warns(CellsWarning, match="usual at any time"):
        assert detector.predict(row).tolist() == [1]


def test_a_model_file_keeps_the_seasons(detector, tmp_path):
    rows = hours_of(3, 5)
    loaded = load(detector.save(tmp_path / "m.ocf"))
    assert np.array_equal(loaded.score_samples(rows), detector.score_samples(rows))


def test_a_time_without_a_season_does_nothing_and_that_is_said():
    with pytest.warns(SuspectInputWarning, match="time='when' has no effect without season"):
        detector_of().fit(hours_of(9, 1, step="2h"))


def test_seconds_are_times_too():
    rows, fresh = hours_of(42, 1), hours_of(9, 6)
    by_date = detector_of(season="day").fit(rows).score_samples(fresh)
    for table in (rows, fresh):
        table["when"] = table["when"].astype("datetime64[s]").astype(np.int64)
    assert np.allclose(detector_of(season="day").fit(rows).score_samples(fresh), by_date)
    arrays = [table.to_numpy(np.float64) for table in (rows, fresh)]
    model = FusedDetector("light", time=0, season="day", random_state=0).fit(arrays[0])
    assert np.allclose(model.score_samples(arrays[1]), by_date)


def test_groups_and_seasons_together():
    rng = np.random.default_rng(0)
    level, size = 100.0 * rng.normal(size=8), np.exp(rng.normal(size=8))

    def plant(days, seed):
        rows = hours_of(days, seed, step="1h")
        machine = np.random.default_rng(seed + 50).integers(0, 8, size=len(rows))
        flow = level[machine] + size[machine] * (rows["flow"] - 50)
        return rows.assign(machine=[f"m{i}" for i in machine], flow=flow)

    model = detector_of(season="day", by="machine").fit(plant(120, 1))
    rows = plant(120, 2)
    is_alarm = model.predict(rows) < 0
    assert 0.07 <= is_alarm.mean() <= 0.14
    assert rates_by_hour(is_alarm, rows).max() <= 0.25
    row = rows.iloc[[12]].assign(flow=1e4)
    words = model.explain(row).readings(0, 1)[0].words
    assert f"for machine {row['machine'].iloc[0]} at 12:00" in words


def test_new_groups_have_the_season_of_all_whatever_their_level():
    def sites(prefix, n_sites, days, seed):
        rng = np.random.default_rng(seed)
        when = pd.date_range("2026-02-02", periods=24 * days, freq="1h")
        at = np.repeat(np.arange(n_sites), len(when))
        wave = np.tile(5.0 * np.sin(when.hour * np.pi / 12), n_sites)
        flow = 10.0 * rng.normal(size=n_sites)[at] + wave + rng.normal(size=len(at))
        names = [f"{prefix}{i}" for i in at]
        return pd.DataFrame({"machine": names, "when": np.tile(when, n_sites), "flow": flow})

    model = detector_of(season="day", by="machine", false_alarm_rate=0.05)
    model.fit(sites("a", 60, 14, 1))
    rows = sites("b", 300, 1, 2)
    with pytest.warns(CellsWarning):
        is_alarm = model.predict(rows) < 0
    assert 0.02 <= is_alarm.mean() <= 0.1
    assert rates_by_hour(is_alarm, rows).max() <= 0.12
    with pytest.warns(CellsWarning):
        assert (model.predict(rows.assign(machine=None)) < 0).mean() == is_alarm.mean()
    with pytest.warns(CellsWarning):
        assert (model.predict(rows.assign(flow=rows["flow"] + 60.0)) < 0).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"season": "day", "time": None}, "needs the times of rows"),
        ({"season": "fortnight"}, "season must be one of.*Got 'fortnight'"),
        ({"season": "year"}, "two years or more"),
        ({"season": "day", "holidays": ["2026-02-03"]}, "season='week'"),
        ({"season": "week", "holidays": ["Easter"]}, "holidays must be dates"),
        ({"season": "week", "holidays": pd.to_datetime(["2026-02-03"])}, "strftime"),
        ({"season": "day", "zone": "Berlin"}, "time zone 'Berlin' is not known"),
        ({"zone": "UTC"}, "Give it with a season"),
        ({"season": "day", "time": "ms"}, "Got 1769990400000, .* divide them by 1,000"),
        ({"season": "day", "time": "mode"}, "holds text"),
        ({"season": "day", "time": "flow"}, "time='flow' does not look like times"),
        ({"season": "year", "time": "seconds"}, "two years or more"),
    ],
)
def test_seasons_that_cannot_be_learned_are_refused(settings, words):
    rows = hours_of(21, 1, step="2h").assign(mode="a")
    rows["ms"] = rows["when"].astype("datetime64[ms]").astype(np.int64)
    rows["seconds"] = rows["ms"] // 1000
    with pytest.raises((InvalidInputError, TypeError), match=words):
        FusedDetector("light", **({"time": "when"} | settings)).fit(rows)


@pytest.mark.parametrize(("learned", "asked"), [(None, "UTC"), ("UTC", None)])
def test_times_must_be_local_or_not_as_in_training(learned, asked):
    model = detector_of(season="day").fit(hours_of(21, 1, zone=learned))
    with pytest.raises(InvalidInputError, match="time zone"):
        model.predict(hours_of(2, 2, zone=asked))


def test_milliseconds_are_no_seconds():
    rows = hours_of(21, 1)
    rows["when"] = rows["when"].astype("datetime64[s]").astype(np.int64)
    model = detector_of(season="day").fit(rows)
    with pytest.raises(InvalidInputError, match="If they are milliseconds, divide them by 1,000"):
        model.predict(rows.assign(when=1000 * rows["when"]))


# -- tables, whose times are read from text ----


def text_of(rows, shape="%Y-%m-%d %H:%M:%S%z"):
    return rows.assign(when=[time.strftime(shape) for time in rows["when"]])


def test_a_table_finds_its_times_and_text_is_read_in_its_zone():
    settings = {"season": "day"}
    inner = FusedDetector("light", random_state=0)
    fresh = hours_of(5, 2, "2026-02-03", zone="UTC+02:00")
    model = TableDetector(inner, **settings).fit(text_of(hours_of(42, 1, zone="UTC+02:00")))
    assert model.detector_.encoder_.usual_.seasons.calendar.zone == "UTC+02:00"
    scores = model.score(text_of(fresh))["score"]
    in_utc = fresh.assign(when=fresh["when"].dt.tz_convert("UTC"))
    assert np.array_equal(model.score(text_of(in_utc))["score"], scores)
    local = TableDetector(inner, **settings).fit(hours_of(42, 1))
    naive = fresh.assign(when=fresh["when"].dt.tz_localize(None))
    assert np.allclose(local.score(naive)["score"], scores)


def test_offsets_that_change_need_the_name_of_their_zone():
    rows = text_of(hours_of(42, 1, "2026-03-10", zone="Europe/Berlin"))
    inner = FusedDetector("light", random_state=0)
    with pytest.raises(TableError, match=r"different offsets.*zone='Europe/Berlin'"):
        TableDetector(inner, season="day").fit(rows)
    model = TableDetector(inner, season="day", zone="Europe/Berlin").fit(rows)
    summer = hours_of(20, 2, "2026-07-01", zone="Europe/Berlin")
    assert (model.score(text_of(summer))["is_anomaly"]).mean() <= 0.1


def test_holidays_reach_the_seasons():
    rows = hours_of(42, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnsWarning)
        model = TableDetector(
            FusedDetector("light", random_state=0), season=("day", "week"), holidays="2026-02-16"
        ).fit(rows)
    assert model.detector_.encoder_.usual_.seasons.calendar.holidays == [20500]


def test_a_table_without_times_has_no_season():
    rows = hours_of(21, 1).drop(columns="when")
    with pytest.raises(TableError, match="needs the times of the rows"):
        TableDetector(FusedDetector("light"), season="day").fit(rows)
