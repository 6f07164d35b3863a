"""Alarms per hour: counts at any threshold, thresholds for a rate, and what runs can promise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse import load
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError
from ocfuse.streaming import AlarmRate, StreamTable, events
from ocfuse.streaming.alarm_rate import Alarms, HeldOutRuns, held_out_runs
from ocfuse.streaming.events import EventRule
from tests.streaming.cases import normal, quick

NAN = float("nan")
RUN = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, NAN]), min_size=1, max_size=30)


def joined(runs):
    starts = np.cumsum([0, *map(len, runs)])[:-1]
    return np.concatenate([np.array(run, dtype=float) for run in runs]), starts


@given(
    runs=st.lists(RUN, min_size=1, max_size=3),
    gap=st.integers(0, 14),
    m=st.integers(1, 3),
    leave=st.sampled_from([0.0, 0.7]),
    hold=st.integers(0, 8),
)
def test_the_quick_count_is_that_of_the_tracker(runs, gap, m, leave, hold):
    runs = [[*run, *[NAN] * gap, *run] for run in runs]
    alarms = Alarms(*joined(runs))
    expected = sum(len(events(run, 0.0, leave, m, hold=hold)) for run in runs)
    assert alarms.count(alarms.highest(m), 0.0, leave, hold) == expected


def held_out(n_runs=12, n=600, seed=0, are_whole=True, seconds=True):
    rng = np.random.default_rng(seed)
    scores = np.convolve(rng.normal(size=n_runs * n + 9), np.ones(10) / 3.2, "valid")
    scores[::n] = NAN
    times = np.tile(np.arange(n, dtype=float), n_runs) if seconds else None
    slices = [slice(i * n, (i + 1) * n) for i in range(n_runs)]
    return held_out_runs(scores, slices, times, are_whole)


def test_events_of_fresh_runs_are_about_as_rare_as_was_asked_for():
    rates = []
    for seed in range(6):
        known, fresh = held_out(24, seed=seed), held_out(60, seed=100 + seed)
        middle = known.scores[~np.isnan(known.scores)]
        offset, rule = known.choose(AlarmRate(2.0), middle, 30)
        rates.append(fresh.n_events(offset, rule, middle) / fresh.units("hour"))
    assert 1.0 < np.mean(rates) < 4.0


@given(seed=st.integers(0, 50), low=st.floats(0.5, 20), more=st.floats(1, 4))
def test_a_higher_rate_never_lowers_the_threshold(seed, low, more):
    held = held_out(6, 300, seed)
    alarms = Alarms(held.scores, held.starts)
    highest, normal_scores = alarms.highest(3), alarms.scores
    allowed = [int(rate * held.units("hour")) for rate in (low, low * more)]
    one, two = (alarms.threshold(highest, 60, n, normal_scores) for n in allowed)
    assert one <= two


@given(seed=st.integers(0, 50), allowed=st.integers(0, 9))
def test_a_threshold_keeps_to_what_is_allowed(seed, allowed):
    held = held_out(6, 300, seed)
    alarms = Alarms(held.scores, held.starts)
    offset = alarms.threshold(alarms.highest(3), 60, allowed, alarms.scores)
    assert held.n_events(offset, EventRule(3, 60), alarms.scores) <= allowed


@given(falls=st.tuples(st.floats(0, 2), st.floats(0, 2)))
def test_a_larger_fall_is_found_no_later(falls):
    held = held_out(3, 300)
    alarms = Alarms(held.scores, held.starts)
    small, large = sorted(falls)
    delays = [alarms.mean_delay(alarms.highest(3), 3, -2.0, fall, 50) for fall in (small, large)]
    assert delays[1] <= delays[0]
    assert delays[1] >= 3
    assert delays[0] <= 50


def test_what_runs_can_promise():
    held = HeldOutRuns(np.zeros(24), np.arange(24), np.full(24, 1080.0), are_whole=True)
    assert held.units("hour") == pytest.approx(7.2)
    assert held.expected(0, "hour") == pytest.approx(1 / 7.5)
    assert held.expected(0, "run") == pytest.approx(1 / 25)
    assert held.highest_likely(0, "hour") == pytest.approx(0.416, abs=0.001)


def test_less_than_runs_can_promise_is_said_and_the_least_is_set():
    held = held_out(5)
    with pytest.warns(FewSamplesWarning, match=r"no less than 1 can.*Learn from 599 such runs"):
        offset, rule = held.choose(AlarmRate(0.01), held.scores[1:9], 30)
    assert held.n_events(offset, rule, held.scores[1:9]) == 0


def test_without_a_rate_the_shortest_rule_that_promises_an_event_an_hour_is_taken():
    held = held_out(24)
    middle = held.scores[~np.isnan(held.scores)]
    offsets = np.quantile(middle, [1e-6, 0.002, 0.02])
    chosen = [held.choose_rule(offset, middle, 30) for offset in offsets]
    assert chosen[0] == EventRule(3, 120)
    assert [rule.min_duration for rule in chosen] == sorted(rule.min_duration for rule in chosen)
    assert chosen[-1].min_duration > 3
    short = held_out(3)  # no hour, in which one event could be promised
    assert short.choose_rule(offsets[-1], middle, 30) == EventRule(3, 120)


def test_of_few_runs_the_shortest_rule_that_raises_nothing_in_their_blocks_is_taken():
    held = held_out(1, n=1200, are_whole=False)
    middle = held.scores[~np.isnan(held.scores)]
    offsets = np.quantile(middle, [0.001, 0.02, 0.05, 0.1, 0.3])
    chosen = [held.choose_rule(offset, middle, 30) for offset in offsets]
    for offset, rule in zip(offsets, chosen, strict=True):
        counts = {m: held.n_events(offset, EventRule(m, 120), middle) for m in (3, 5, 8, 12)}
        assert rule.min_duration == next((m for m, count in counts.items() if not count), 12)
    assert len({rule.min_duration for rule in chosen}) > 2


def test_hours_need_times():
    held = held_out(5, seconds=False)
    with pytest.raises(InvalidInputError, match='per="run"'):
        held.choose(AlarmRate(1.0), held.scores[1:9], 30)
    held.choose(AlarmRate(1.0, per="run"), held.scores[1:9], 30)


@pytest.mark.parametrize("given", [{"rate": -1}, {"rate": "often"}, {"per": "week"}])
def test_unusable_rates_are_refused(given):
    with pytest.raises(InvalidInputError):
        AlarmRate(**given)


def table(n_runs, n=150, seed=0):
    time = pd.date_range("2026-01-01", periods=n_runs * n, freq="s")
    channels = dict(zip("abc", normal(n_runs * n, seed).T, strict=True))
    return pd.DataFrame(
        {"time": time, "run": np.repeat(np.arange(n_runs), n).astype(str)} | channels
    )


@pytest.fixture(scope="module")
def model():
    stream = quick(fusion="sum", alarm_rate=AlarmRate(4.0, per="hour"))
    with warnings.catch_warnings(action="ignore"):
        return StreamTable(stream, group="run", time="time").fit(table(6, 300))


def test_the_choice_is_kept_in_the_model_file(model, tmp_path):
    model.save(tmp_path / "m.ocf")
    again = load(tmp_path / "m.ocf")
    one, two = model.stream_, again.stream_
    assert (one.event_rule_, one.offset_) == (two.event_rule_, two.offset_)
    assert one.alarm_facts() == two.alarm_facts()
    trackers = one.tracker(), two.tracker()
    assert vars(trackers[0]) == vars(trackers[1])
    two.set_alarm_rate(20.0)
    assert two.offset_ >= one.offset_


def test_what_is_stated_of_held_out_runs(model):
    facts = model.facts()["stream"]["events"]
    assert (facts["runs"], facts["per"], facts["asked"]) == (6, "hour", 4.0)
    assert facts["events"] == 0 or facts["promised"] <= 4.0


def test_a_report_has_the_events_of_the_tracker(model):
    odd = table(1, 900, seed=9)
    for start in (200, 230, 700):
        odd.loc[start : start + 15, "a"] += 20
    scores = model.score(odd)["score"].to_numpy()
    found = model.stream_.tracker().run(scores)
    assert len([event for event in found if 195 < event.start < 300]) == 1  # by the hold
    assert f"{len(found)} events" in model.report(odd).html


def test_one_run_states_nothing_of_others():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stream = quick(fusion="sum", alarm_rate=AlarmRate(1.0)).fit(
            normal(300, 0), np.ones(300), time=np.arange(300.0)
        )
    assert "1 alarms per hour cannot be promised of others" in str(told[-1].message)
    assert stream.alarm_facts()["promised"] is None


def test_without_a_rate_nothing_is_held_out_again():
    with warnings.catch_warnings(action="ignore"):
        stream = quick(fusion="sum").fit(normal(300, 0), np.ones(300))
    assert stream.held_out_ is None
    assert stream.event_rule_ == EventRule(3, 4 * 5)
    with pytest.raises(InvalidInputError, match="alarm_rate"):
        stream.set_alarm_rate(1.0)


def test_a_plan_is_that_of_the_rows_that_are_taken():
    many, few = (quick(max_rows=rows).plan((40_000, 6), runs=24) for rows in (4000, 400))
    assert many.fit_seconds > few.fit_seconds
    assert quick(max_rows=400).plan((400, 6), runs=24).fit_seconds == few.fit_seconds
    assert quick().plan(np.zeros((300, 3)), runs=np.arange(300) // 50).fit_seconds > 0
    counting = quick(max_rows=4000, alarm_rate=AlarmRate()).plan((40_000, 6), runs=24)
    assert 3 * many.fit_seconds < counting.fit_seconds < 10 * many.fit_seconds
    assert counting.fit_bytes == many.fit_bytes


def test_fresh_runs_set_the_rate_anew(model):
    before = model.stream_.offset_
    with warnings.catch_warnings(action="ignore"):
        model.calibrate(table(5, 200, seed=3))
    assert model.stream_.held_out_.n_runs == 5
    assert model.stream_.offset_ != before
