"""What is usual when: rings of bins, calendars, and whether a season counts."""

from datetime import date, datetime, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.usual import Calendar, Seasons, Usual, check_seasons, to_days
from ocfuse.usual.seasons import n_bins, parts_of_time

DAY = 86_400.0
MONDAY = datetime(2026, 1, 5, tzinfo=timezone.utc).timestamp()
SHAPES = {
    "wave": lambda hour, weekday: (3.0 * np.sin(hour * np.pi / 12), 1.0),
    "job at 6": lambda hour, weekday: (10.0 * (hour // 1 == 6), 1.0 + 2.0 * (hour // 1 == 6)),
    "spread": lambda hour, weekday: (0.0, np.where((hour > 8) & (hour < 18), 3.0, 1.0)),
    "work days": lambda hour, weekday: (5.0 * (weekday < 5) * (np.abs(hour - 12) < 4), 1.0),
    "nothing": lambda hour, weekday: (0.0, 1.0),
}


def draw(shape, days, seed, step=1800.0, start=MONDAY):
    """Return times, numbers and hours of some days."""
    times = start + np.arange(0.0, days * DAY, step)
    hour, weekday = times % DAY / 3600.0, (times // DAY + 3) % 7
    centre, spread = SHAPES[shape](hour, weekday)
    noise = np.random.default_rng(seed).normal(size=len(times))
    return times, (centre + spread * noise)[:, np.newaxis], hour


def usual_of(*names, zone="", holidays=()):
    return Usual(Seasons(names, Calendar(zone, to_days(holidays))))


def nobody(times):
    return np.empty((len(times), 0))


@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_are_even_over_the_hours_of_the_day(shape):
    times, X, _ = draw(shape, 112, 1, step=900.0)
    usual = usual_of("day", "week")
    limit = np.quantile(np.abs(usual.fit_measured(nobody(times), times, X)), 0.95)
    times, X, hour = draw(shape, 364, 2, start=MONDAY + 700 * DAY)
    is_far = np.abs(usual.measure(nobody(times), times, X))[:, 0] > limit
    rates = np.array([is_far[hour // 1 == h].mean() for h in range(24)])
    assert 0.04 <= is_far.mean() <= 0.06
    assert rates.min() >= 0.02  # half, or at a jump a little less
    assert rates.max() <= 0.1


@pytest.mark.parametrize(
    ("shape", "counts"),
    [("wave", True), ("job at 6", True), ("spread", True), ("nothing", False)],
)
def test_a_season_counts_where_it_foretells_held_out_days(shape, counts):
    times, X, _ = draw(shape, 28, 1)
    seasons = Seasons(["day"], Calendar())
    seasons.fit_measured(times, X)
    assert seasons.counts("day").tolist() == [counts]


def test_each_column_has_its_own_season():
    times, wave, _ = draw("wave", 28, 1)
    _, nothing, _ = draw("nothing", 28, 2)
    nothing[::7] = np.nan
    seasons = Seasons(["day"], Calendar())
    seasons.fit_measured(times, np.hstack([wave, nothing, np.full_like(wave, 3.0)]))
    assert seasons.counts("day").tolist() == [True, False, False]


def test_a_season_that_does_not_count_changes_nothing():
    times, X, _ = draw("nothing", 28, 1)
    Y = Seasons(["day"], Calendar()).fit_measured(times, X)
    assert np.array_equal(Y, X)


def test_just_before_and_after_midnight_much_the_same_is_usual():
    times, X, _ = draw("wave", 28, 1)
    usual = usual_of("day")
    usual.fit_measured(nobody(times), times, X)
    near = MONDAY + np.array([-600.0, -1.0, 0.0, 600.0])
    low, high, *_ = usual.ranges(nobody(near), near)
    assert np.ptp(low) < 0.5
    assert np.ptp(high) < 0.5


@pytest.mark.parametrize("name", ["day", "week", "month", "year"])
@given(st.floats(0, 4e9), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_near_times_are_near_on_the_ring(name, time, share):
    step = {"day": 600, "week": 1800, "month": DAY, "year": 5 * DAY}[name] * share
    values = np.sin(np.arange(n_bins(name, False)) * 2 * np.pi / n_bins(name, False))
    both = Calendar().places(name, np.array([time, time + step])).values(values[:, np.newaxis])
    assert abs(both[1] - both[0]) <= 4 * np.pi / n_bins(name, False) + 1e-9


@given(st.integers(-500, 500), st.sampled_from(["day", "week"]))
@settings(max_examples=8, deadline=None)
def test_whole_periods_do_not_matter(n, name):
    times, X, _ = draw("work days", 21, 1, step=7200.0)
    shift = n * DAY * (7 if name == "week" else 1)
    first = usual_of(name).fit_measured(nobody(times), times, X)
    moved = usual_of(name).fit_measured(nobody(times), times + shift, X)
    assert np.allclose(first, moved, rtol=1e-6, atol=1e-6)


@given(st.randoms(use_true_random=False))
@settings(max_examples=10, deadline=None)
def test_the_order_of_rows_does_not_matter(random):
    times, X, _ = draw("wave", 7, 1)
    order = list(range(len(times)))
    random.shuffle(order)
    measured = usual_of("day").fit_measured(nobody(times), times, X)
    shuffled = usual_of("day").fit_measured(nobody(times), times[order], X[order])
    assert np.allclose(shuffled, measured[order], rtol=1e-9, atol=1e-9)


def test_the_fifteenth_is_half_a_month_whatever_the_month_and_its_end_is_its_end():
    days = pd.to_datetime(["2026-01-31", "2026-02-28", "2024-02-29", "2026-04-30"])
    places = Calendar().places("month", days.as_unit("s").asi8.astype(float) + DAY / 2)
    assert (places.low == 30).sum() + (places.high == 30).sum() >= 4


def test_daylight_saving_keeps_the_local_hour():
    calendar = Calendar("Europe/Berlin")
    when = pd.date_range("2026-03-27", "2026-03-31", freq="1h", tz="Europe/Berlin")
    local = calendar.local(when.tz_convert("UTC").tz_localize(None).as_unit("s").asi8.astype(float))
    assert np.array_equal(local % DAY / 3600.0, when.hour.to_numpy(float))
    autumn = pd.date_range("2026-10-24", "2026-10-27", freq="30min", tz="Europe/Berlin")
    local = calendar.local(autumn.tz_convert("UTC").tz_localize(None).as_unit("s").asi8 + 0.0)
    assert np.array_equal(local % DAY // 3600.0, autumn.hour.to_numpy(float))
    assert calendar.clock(when[6].timestamp()) == "06:00"


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC+02:00", 2.0), ("-03:30", -3.5), ("pytz.FixedOffset(60)", 1.0), ("Asia/Tokyo", 9.0)],
)
def test_zones_have_several_names(zone, hours):
    assert Calendar(zone).local(np.array([MONDAY])).tolist() == [MONDAY + 3600.0 * hours]


def test_a_zone_that_is_not_known_is_refused():
    with pytest.raises(InvalidInputError, match="Europe/Berlin"):
        Calendar("Mars/Olympus").local(np.array([MONDAY]))


def test_holidays_are_like_sundays():
    times, X, _ = draw("work days", 42, 1)
    christmas = "2026-01-14"
    day = np.datetime64(christmas).astype("datetime64[s]").astype(float)
    free = (times >= day) & (times < day + DAY)
    X[free, 0] = np.random.default_rng(5).normal(size=free.sum())
    other = "2026-06-10"  # a Wednesday to come
    usual = usual_of("week", holidays=[christmas, other])
    usual.fit_measured(nobody(times), times, X)
    noon = datetime(2026, 6, 10, 12, tzinfo=timezone.utc).timestamp()
    at = np.array([noon, noon + DAY])
    low, high, *_ = usual.ranges(nobody(at), at)
    assert high[0, 0] < 3.5
    assert low[1, 0] > 2.0
    assert usual.seasons.describe(at)[0] == "at 12:00 on a holiday"
    assert usual.seasons.describe(at)[1] == "at 12:00 on a Thursday"


def test_rows_of_a_group_that_are_of_some_hours_only():
    times, X, hour = draw("wave", 56, 1)
    rng = np.random.default_rng(0)
    group = rng.integers(0, 6, size=len(times))
    group[(hour > 6) & (group == 0)] = 1  # one works at night
    level = 20.0 * rng.normal(size=6)
    X = X + level[group][:, np.newaxis]
    usual = usual_of("day")
    usual.fit_measured(group[:, np.newaxis].astype(float), times, X)
    centre, _ = usual.usual(np.array([[0.0], [1.0]]), np.full(2, MONDAY + 12 * 3600.0))
    assert np.allclose(centre[:, 0] - level[:2], 0.0, atol=0.7)


def test_a_time_that_is_not_known_is_judged_by_any_time():
    times, X, _ = draw("wave", 28, 1)
    usual = usual_of("day")
    usual.fit_measured(nobody(times), times, X)
    gap = np.array([np.nan, MONDAY])
    low, high, *_ = usual.ranges(nobody(gap), gap)
    assert high[0, 0] - low[0, 0] > 1.5 * (high[1, 0] - low[1, 0])
    assert np.isfinite(usual.measure(nobody(gap), gap, X[:2])).all()


def test_gaps_in_time_and_times_in_training_that_are_not_known():
    times, X, _ = draw("wave", 28, 1)
    kept = (times < MONDAY + 9 * DAY) | (times > MONDAY + 12.3 * DAY)
    times, X = times[kept], X[kept]
    times[::50] = np.nan
    usual = usual_of("day")
    measured = usual.fit_measured(nobody(times), times, X)
    assert np.isfinite(measured).all()
    assert usual.seasons.counts("day").all()


@pytest.mark.parametrize(
    ("name", "days", "words"),
    [
        ("week", 12, "two weeks or more.*12 days"),
        ("year", 400, "two years"),
        ("day", 1, "23 hours"),
    ],
)
def test_a_season_longer_than_the_data_is_refused(name, days, words):
    times, X, _ = draw("wave", days, 1, step=3600.0)
    with pytest.raises(InvalidInputError, match=words):
        usual_of(name).fit_measured(nobody(times), times, X)


def test_names_of_seasons():
    assert check_seasons("week") == ("week",)
    assert check_seasons(["year", "day"]) == ("day", "year")
    assert check_seasons(None) == ()
    with pytest.raises(InvalidInputError, match=r"season.*fortnight"):
        check_seasons("fortnight")


@pytest.mark.parametrize("given", ["2026-12-25", [" 2026-12-25 "], ("2026-12-25",) * 2])
def test_holidays_are_dates(given):
    assert to_days(given) == [20812]


@pytest.mark.parametrize("given", ["christmas", ["2026-13-01"], [None], [25], [date(2026, 12, 25)]])
def test_what_is_no_date_is_refused(given):
    with pytest.raises(InvalidInputError, match="holidays must be dates"):
        to_days(given)


def test_parts_of_time_are_whole_periods():
    times = MONDAY + np.arange(0.0, 10 * DAY, 3600.0)
    part = parts_of_time(times, DAY)
    assert len(np.unique(part)) == 5
    assert np.array_equal(np.flatnonzero(np.diff(part)) + 1, 48 * np.arange(1, 5))
