"""The threshold that follows slow changes, and the test that a source has changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import ChangeTest, ConformalCalibrator, RollingThreshold
from ocfuse.scores.slow import Bets, block_length

NORMAL = np.random.default_rng(0).normal(size=4000)
CALIBRATOR = ConformalCalibrator().fit(NORMAL)
OFFSET = CALIBRATOR.threshold(0.01)[0]


def rolling(**settings):
    return RollingThreshold(CALIBRATOR, OFFSET, **{"window": 500} | settings)


def play(threshold, scores, n_event=3):
    """Take scores, of which so many in a row below the threshold are an event; return its rows."""
    count, events = 0, []
    for i, score in enumerate(scores):
        count = count + 1 if threshold.adjusted(score) < OFFSET else 0
        threshold.take(score, in_event=count >= n_event)
        if count >= n_event:
            events.append(i)
    return events


# -- the threshold --------------------------------------------------------


def test_scores_as_in_training_move_nothing_to_speak_of():
    threshold = rolling()
    play(threshold, np.random.default_rng(1).normal(size=5000))
    assert abs(threshold.shift) < 0.12 * threshold.unit


@pytest.mark.parametrize("step", [-0.4, 0.4])
def test_a_small_lasting_change_is_followed(step):
    threshold = rolling()
    play(threshold, np.random.default_rng(1).normal(size=8000) + step)
    assert threshold.shift == pytest.approx(step, abs=0.1)
    # and so the rate holds again
    fresh = np.random.default_rng(2).normal(size=20_000) + step
    assert np.mean(fresh - threshold.shift < OFFSET) == pytest.approx(0.01, abs=0.004)


@settings(deadline=None, max_examples=25)
@given(
    slope=st.floats(-0.01, 0.01),
    jump=st.floats(-20, 20),
    seed=st.integers(0, 99),
    speed=st.floats(0.0, 2.0),
    limit=st.floats(0.0, 1.0),
)
def test_the_bounds_hold_whatever_comes(slope, jump, seed, speed, limit):
    threshold = rolling(window=100, speed=speed, limit=limit)
    scores = np.random.default_rng(seed).normal(size=600) + slope * np.arange(600)
    scores[300:] += jump
    shifts = [0.0]
    for score in scores:
        threshold.take(score, in_event=False)
        shifts.append(threshold.shift)
    unit = threshold.unit
    assert np.abs(np.diff(shifts)).max() <= speed * unit / 1000 + 1e-12
    assert np.abs(shifts).max() <= limit * unit + 1e-12


def test_a_fault_that_creeps_faster_than_the_bound_raises_its_alarm():
    unit, n = rolling().unit, 6000
    slope = -1.0 * unit / 1000  # ten times as fast as the threshold may move
    threshold = rolling(speed=0.1, limit=0.25)
    noise = 0.2 * np.random.default_rng(1).normal(size=n)
    events = play(threshold, np.arange(n) * slope + noise)
    assert events
    # it is at the threshold after 1,000 rows, and at the hard stop after 1,250
    assert 900 < events[0] < 1300
    assert events[-1] == n - 1
    assert threshold.shift > -0.25 * unit - 1e-9


def test_a_fault_however_slow_is_never_farther_than_the_hard_stop():
    threshold = rolling(speed=0.1, limit=0.25)
    unit, n = threshold.unit, 40_000
    slope = -0.05 * unit / 1000  # half as fast as the threshold may move
    noise = 0.1 * np.random.default_rng(1).normal(size=n)
    events = play(threshold, np.arange(n) * slope + noise)
    median = np.arange(n)[events[0]] * slope
    assert median > -1.3 * unit  # 1 + limit, and what noise takes


def test_rows_of_events_are_not_taken_in():
    threshold, quiet = rolling(), rolling()
    scores = np.random.default_rng(1).normal(size=3000)
    play(quiet, scores)
    with_fault = np.insert(scores, 1500, np.full(400, -9.0))
    play(threshold, with_fault)
    assert threshold.shift == pytest.approx(quiet.shift, abs=0.05 * threshold.unit)
    assert -9.0 not in threshold._sorted


def test_single_alarms_are_counted_and_long_stretches_of_them_left_out_whole():
    threshold = rolling(stretch=4)
    for score, in_event in ((0.1, False), (-5.0, True), (0.2, False), (0.3, False), (-6.0, True)):
        threshold.take(score, in_event)
    assert threshold._sorted == [-6.0, -5.0, 0.1, 0.2, 0.3]
    for score in (-7.0, -8.0, -9.0):
        threshold.take(score, in_event=True)
    assert threshold._sorted == [-5.0, 0.1, 0.2]
    assert threshold._n_left_out == 5
    for score in (0.4, 0.5, 0.6):  # the first of them is one of four with three alarms
        threshold.take(score, in_event=False)
    assert threshold._sorted == [-5.0, 0.1, 0.2, 0.5, 0.6]


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("least", [1, 3])
def test_its_own_alarms_do_not_move_the_threshold(rate, least):
    offset = CALIBRATOR.threshold(rate)[0]
    threshold, count, is_alarm = RollingThreshold(CALIBRATOR, offset), 0, []
    for score in np.random.default_rng(5).normal(size=20_000):
        is_alarm.append(threshold.adjusted(score) < offset)
        count = count + 1 if is_alarm[-1] else 0
        threshold.take(score, in_event=count >= least)
    assert abs(threshold.shift) < 0.1 * threshold.unit
    assert np.mean(is_alarm[-5000:]) == pytest.approx(rate, rel=0.2, abs=0.004)


def test_alarms_that_are_all_left_out_do_not_lift_the_threshold():
    # as of a stream whose normal scores are low for long: 100 of 2,000 rows at a stretch
    offset = CALIBRATOR.threshold(0.05)[0]
    threshold = RollingThreshold(CALIBRATOR, offset)
    rng = np.random.default_rng(6)
    for _ in range(10):
        scores = np.sort(rng.normal(size=2000))
        rng.shuffle(scores[100:])
        for score in scores:
            threshold.take(score, in_event=threshold.adjusted(score) < offset)
    assert threshold._n_left_out > 90
    assert abs(threshold.shift) < 0.1 * threshold.unit


def test_nothing_moves_before_half_of_the_window_is_full_and_without_a_score():
    threshold = rolling()
    for _ in range(249):
        threshold.take(-1.0, in_event=False)
    threshold.take(float("nan"), in_event=False)
    assert threshold.shift == 0.0
    threshold.take(-1.0, in_event=False)
    assert threshold.shift < 0.0


def test_runs_weigh_alike_where_the_usual_level_is_found():
    scores = np.concatenate([np.zeros(900), np.full(100, -3.0), np.linspace(-1, 1, 100)])
    run = np.repeat([0, 1, 2], [900, 100, 100])
    by_run = ConformalCalibrator().fit(scores, groups=run)
    threshold = RollingThreshold(by_run, -5.0, window=500)
    assert threshold.level == 0.2
    assert threshold.usual == -3.0  # a third of the weight


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 99},
        {"window": 1e3},
        {"speed": -1},
        {"limit": np.nan},
        {"window": True},
        {"stretch": 1},
    ],
)
def test_settings_of_the_threshold_are_checked(wrong):
    with pytest.raises(InvalidInputError):
        rolling(**wrong)


# -- the test -------------------------------------------------------------


def test_the_chance_of_a_false_change_is_no_more_than_stated_over_the_whole_stream():
    rng, bets = np.random.default_rng(0), Bets()
    highest = np.zeros(4000)  # streams
    for _ in range(2000):
        highest = np.maximum(highest, bets.take(rng.random(4000)))
    for chance in (0.2, 0.1, 0.05, 0.01):
        share = np.mean(highest >= 1 / chance)
        assert share <= chance
        assert share > 0.2 * chance  # and not far below, or it would find nothing


def test_the_capital_is_a_martingale():
    p = (np.arange(20_000) + 0.5) / 20_000
    bets = Bets()
    for value in (0.01, 0.5, 0.02, 0.9):
        before = bets.take(value)
        trial = Bets()
        trial.n, trial.made = bets.n, list(bets.made)
        assert np.mean(trial.take(p)) == pytest.approx(before, rel=2e-3)


def test_ranks_among_earlier_values_are_uniform_whatever_the_distribution():
    seen = []

    class Kept(Bets):
        def take(self, p):
            seen.append(p)
            return super().take(p)

    for make in (
        lambda rng: rng.standard_cauchy(size=1500),
        lambda rng: rng.integers(0, 3, size=1500).astype(float),
    ):
        seen.clear()
        test = ChangeTest(1e-9)
        test.bets = Kept()
        for value in make(np.random.default_rng(3)):
            test.take(value)
        counts = np.histogram(seen, bins=10, range=(0, 1))[0]
        assert np.abs(counts - 150).max() < 50
        assert abs(np.corrcoef(seen[:-1], seen[1:])[0, 1]) < 0.1


@pytest.mark.parametrize(("step", "most"), [(-1.0, 110), (-2.0, 35), (1.5, 90)])
def test_a_change_is_told_soon_and_which_way_it_went(step, most):
    delays = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        test = ChangeTest(0.01)
        assert not any(test.take(value) for value in rng.normal(size=1000))
        for i, value in enumerate(rng.normal(size=most) + step):
            change = test.take(value)
            if change:
                delays.append(i + 1)
                assert change.is_lower == (step < 0)
                assert (change.chance, change.n) == (0.01, 1000 + i + 1)
                # since about when
                assert abs(change.n_since - (i + 1)) < 60
                break
    assert len(delays) == 5


def test_after_a_change_the_test_begins_anew_and_tells_the_way_back():
    rng, test, told = np.random.default_rng(0), ChangeTest(0.01), []
    values = np.concatenate([rng.normal(size=500), rng.normal(size=800) - 2, rng.normal(size=300)])
    for i, value in enumerate(values):
        change = test.take(value)
        if change:
            told.append((i, change.is_lower))
    assert [is_lower for _, is_lower in told] == [True, False]
    assert 500 < told[0][0] < 540
    assert 1300 < told[1][0] < 1360
    assert test.n_changes == 2


def test_a_reference_lets_a_change_be_told_from_the_first_row_on():
    values = np.random.default_rng(1).normal(size=60) - 1.5
    alone, beside = ChangeTest(0.01), ChangeTest(0.01, reference=NORMAL)
    assert not any(alone.take(value) for value in values)
    assert any(beside.take(value) for value in values)


def test_means_of_blocks_are_tested_and_rows_without_a_score_left_out():
    rows = np.random.default_rng(0).normal(size=100)
    blocks, means = ChangeTest(0.01, block=10), ChangeTest(0.01)
    for value in np.insert(rows, [3, 50], np.nan):
        blocks.take(value)
    for mean in rows.reshape(10, 10).mean(axis=1):
        means.take(mean)
    assert blocks.bets.n == means.bets.n == 10
    assert blocks.capital == pytest.approx(means.capital, rel=1e-12)


def test_neighbouring_values_that_are_alike_would_be_false_changes_but_in_blocks():
    def slow(seed, n=20_000):
        noise = np.random.default_rng(seed).normal(size=n)
        found = np.empty(n)
        last = 0.0
        for i in range(n):
            last = found[i] = 0.95 * last + noise[i]
        return found

    length = block_length([slow(0)])
    assert 64 <= length <= 512
    told = {1: 0, length: 0}
    for block in told:
        for seed in range(1, 9):
            test = ChangeTest(0.05, block=block)
            told[block] += any(test.take(value) for value in slow(seed, 5000))
    assert told[1] == 8  # wrong each time
    assert told[length] <= 1


def test_blocks_are_as_short_as_a_window_where_rows_are_independent():
    runs = [np.random.default_rng(i).normal(size=500) for i in range(8)]
    assert block_length(runs) == 1
    assert block_length(runs, least=30) == 30
    assert block_length([np.zeros(0)], least=3) == 3
    steady = [np.zeros(500), np.full(3, np.nan)]
    assert block_length(steady, least=2) == 2


def test_after_many_values_the_test_begins_anew(monkeypatch):
    monkeypatch.setattr("ocfuse.scores.slow.MOST_COMPARED", 50)
    test = ChangeTest(0.01)
    for value in NORMAL[:130]:
        test.take(value)
    assert test.bets.n == 30


@pytest.mark.parametrize("wrong", [{"chance": 0}, {"chance": 1.5}, {"block": 0}, {"block": 2.5}])
def test_settings_of_the_test_are_checked(wrong):
    with pytest.raises(InvalidInputError):
        ChangeTest(**wrong)
