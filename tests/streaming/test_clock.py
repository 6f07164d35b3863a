"""The clock, which no time silences for ever, and the slow mean, which finds a shift."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocfuse.exceptions import DriftWarning
from ocfuse.streaming.clock import LEFT_OUT, Clock, Rest, SlowMean
from tests.streaming.cases import fitted, normal

TIMES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 50),
    st.sampled_from([1e9, 1e9 + 1, -5.0]),
)


def verdicts(times, clock=None):
    clock = clock or Clock(usual_step=1.0, max_gap=5.0)
    return [clock.read(float(time)) for time in times]


def test_order_gaps_and_repeats():
    assert verdicts([0, 1, 1, 0.5, 2, 8]) == ["next", "next", "repeated", "late", "next", "gap"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e9])
def test_one_bad_time_costs_one_sample(bad):
    assert verdicts([0, 1, bad, 3, 4]) == ["next", "next", "clock", "next", "next"]


def test_a_second_sample_confirms_a_jump():
    assert verdicts([0, 1, 1e9, 1e9 + 1, 1e9 + 2]) == ["next", "next", "clock", "gap", "next"]
    assert verdicts([0, 1, 1e9, 5e9, 2, 3])[2:] == ["clock", "clock", "next", "next"]


def test_a_clock_set_back_is_taken():
    times = [100, 101, *range(8)]
    assert verdicts(times)[2:] == ["late"] * 4 + ["new_clock"] + ["next"] * 3


def test_a_bad_first_time_is_outlived():
    assert verdicts([1e9, *range(6)]) == ["next"] + ["late"] * 4 + ["new_clock", "next"]


def test_late_samples_now_and_then_do_not_set_the_clock():
    times = [t for here in range(10, 30) for t in (here, here - 5)]
    assert set(verdicts(times)[1::2]) == {"late"}


def test_without_a_usual_step_there_are_no_gaps():
    times = [0, 1, 1e9, 1e12, 1]
    assert verdicts(times, Clock(math.inf, 5.0)) == ["next"] * 4 + ["late"]


@given(before=st.lists(TIMES, max_size=30), start=st.floats(-1e6, 1e6))
def test_whatever_came_before_a_steady_clock_is_taken(before, start):
    clock = Clock(usual_step=1.0, max_gap=5.0)
    verdicts(before, clock)
    steady = [clock.read(start + i) for i in range(12)]
    assert not set(steady[6:]) & set(LEFT_OUT)


def autocorrelated(n, seed, phi):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    for t in range(1, n):
        x[t] = phi * x[t - 1] + np.sqrt(1 - phi**2) * x[t]
    return x


def alarms(train, stream, half_life=100):
    """Tell, for every sample, which channels have left training."""
    rest = Rest(train, [slice(0, len(train))])
    slow = SlowMean(half_life, rest.spread)
    found = []
    for sample in stream:
        slow.follow(sample)
        found.append(slow.has_left(rest))
    return np.array(found)


def test_a_young_mean_is_the_mean():
    X = np.random.default_rng(0).normal(size=(20, 2))
    X[3, 0] = np.nan
    slow = SlowMean(1000, np.ones(2))
    before = [slow.follow(x) for x in X]
    np.testing.assert_allclose(slow.mean, np.nanmean(X, axis=0))
    np.testing.assert_allclose(slow.n_behind, [19, 20])
    np.testing.assert_allclose(before[1], X[0])


def test_an_old_mean_forgets_by_halves_and_says_how_sure_it_is():
    slow = SlowMean(10, np.ones(1))
    for _ in range(300):
        slow.follow(np.zeros(1))
    for _ in range(10):
        slow.follow(np.ones(1))
    assert slow.mean[0] == pytest.approx(0.5)
    assert slow.n_behind[0] == pytest.approx((2 - slow.rate) / slow.rate)


def test_one_glitch_does_not_carry_it_away():
    train, stream = autocorrelated(400, 0, 0.5), autocorrelated(600, 1, 0.5)
    stream[300] = 1e9
    assert not alarms(train, stream).any()


@pytest.mark.parametrize("phi", [0.0, 0.8, 0.97])
def test_a_shift_is_found_within_a_few_half_lives(phi):
    train, stream = autocorrelated(1000, 2, phi), autocorrelated(1000, 3, phi)
    stream[500:, 1] += 5
    found = alarms(train, stream)
    assert not found[:500].any()
    assert found[500 + 300 :, 1].all()
    assert not found[:, [0, 2, 3]].any()


@pytest.mark.parametrize("phi", [0.0, 0.8, 0.9])
def test_how_much_means_wander_is_rarely_underrated(phi):
    """An upper bound: means of few blocks, of part of the memory, would tell too little."""
    long_run = (1 + phi) / (1 - phi)
    rests = [Rest(autocorrelated(400, seed, phi), [slice(0, 400)]) for seed in range(15)]
    assert np.mean([rest.unrest >= long_run for rest in rests]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_a_long_stationary_stream_raises_none(phi):
    for seed in range(5):
        assert not alarms(
            autocorrelated(400, seed, phi), autocorrelated(5000, seed + 50, phi)
        ).any()


def test_a_constant_channel_may_not_move():
    train = np.full((100, 1), 0.1)
    assert not alarms(train, np.full((300, 1), 0.1), 50).any()
    assert alarms(train, np.full((300, 1), 0.2), 50)[100:].all()


def test_runs_that_differ_make_it_patient():
    levels = np.repeat(np.random.default_rng(5).normal(size=8), 100)[:, np.newaxis]
    X = levels + 0.1 * np.random.default_rng(6).normal(size=(800, 1))
    by_run = Rest(X, [slice(i, i + 100) for i in range(0, 800, 100)])
    assert by_run.unrest[0] > 30 * X.var()


def test_distance_is_above_one_where_a_channel_has_left():
    train = autocorrelated(2000, 0, 0.5)
    rest = Rest(train, [slice(0, len(train))])
    slow = SlowMean(50, rest.spread)
    shifted = autocorrelated(400, 1, 0.5) + np.array([0, 0, 3, 5])
    for sample in shifted:
        slow.follow(sample)
    np.testing.assert_array_equal(slow.distance(rest) > 1, slow.has_left(rest))
    assert slow.has_left(rest).tolist() == [False, False, True, True]
    constant = Rest(np.zeros((20, 1)), [slice(0, 20)])
    still = SlowMean(5, constant.spread)
    still.follow(np.zeros(1))
    assert still.distance(constant) == 0
    still.follow(np.ones(1))
    assert still.distance(constant) == np.inf


def test_a_log_tells_the_counts_after_every_sample():
    stream = fitted(time=np.arange(400.0), half_life=20)
    X, time = normal(120, 1), np.arange(120.0)
    X[30:50, :2] = np.nan
    X[80:] += np.linspace(0, 60, 40)[:, np.newaxis]
    time[60:] += 50
    time[70] = time[69]
    time[75] = np.nan
    one, drifted = [], {}
    for i in range(len(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)
            _, log = stream.follow(X[i : i + 1], time[i : i + 1])
        one.append(dict(stream.state_.counts))
        if log.drifted:
            drifted[i] = log.drifted[0]
    state = stream.state_
    stream.reset()
    with pytest.warns(DriftWarning):
        _, log = stream.follow(X, time)
    assert [log.counts_after(i, stream.state_.counts) for i in range(len(X))] == one
    assert log.drifted == drifted != {}
    assert stream.state_.drifted == state.drifted
    assert np.array_equal(stream.state_.samples, state.samples, equal_nan=True)
    assert np.array_equal(stream.state_.slow.mean, state.slow.mean)
