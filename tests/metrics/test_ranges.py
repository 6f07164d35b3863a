"""Measures of sequences against published code, their definitions, and laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InvalidInputError
from ocfuse.metrics import auc, event_scores, range_precision, range_recall, vus_pr, vus_roc

LAW = settings(deadline=None, max_examples=100)
#: Volumes of `sequence()` by `RangeAUC_volume_opt` of the authors' package vus 0.0.6, which
#: `TSB_AD` 1.5 has too, with its 250 thresholds: window, VUS-ROC, VUS-PR.
PUBLISHED = [
    (0, 0.8602477818108489, 0.5815064368892602),
    (1, 0.8602477818108489, 0.5815064368892602),
    (2, 0.8677579264040199, 0.5963148439428796),
    (15, 0.9096821437114061, 0.699104442610866),
    (40, 0.9325599582412472, 0.7554422028387882),
]
#: Recall and precision of its alarms by `range_recall_new` of the same package: alpha, value.
PUBLISHED_RANGES = {
    "recall": [(0.0, 0.33999999999999997), (0.2, 0.472), (1.0, 1.0)],
    "precision": 0.23051948051948054,
}
flags = st.lists(st.booleans(), min_size=2, max_size=24)


def sequence():
    """Make labels and scores without chance: ties, near events, one at the end."""
    i = np.arange(400)
    y = np.ones(400, dtype=int)
    for start, stop in ((50, 75), (120, 140), (150, 158), (395, 400)):
        y[start:stop] = -1
    late = np.roll(y, 4) == -1
    scores = -(np.sin(0.37 * i) + 0.5 * np.sin(1.9 * i) + 1.1 * late + 0.4 * (y < 0))
    return y, np.round(scores, 1)


@pytest.mark.parametrize(("window", "roc", "pr"), PUBLISHED)
def test_volumes_are_those_of_the_authors(window, roc, pr):
    y, scores = sequence()
    assert vus_roc(y, scores, window, n_thresholds=250) == pytest.approx(roc, abs=1e-12)
    assert vus_pr(y, scores, window, n_thresholds=250) == pytest.approx(pr, abs=1e-12)
    assert vus_roc(y, scores, window) == pytest.approx(roc, abs=0.01)


def test_ranges_are_those_of_the_authors():
    y, scores = sequence()
    alarms = np.where(scores < -1.0, -1, 1)
    for alpha, value in PUBLISHED_RANGES["recall"]:
        assert range_recall(y, alarms, alpha=alpha) == pytest.approx(value, abs=1e-12)
    assert range_precision(y, alarms) == pytest.approx(PUBLISHED_RANGES["precision"], abs=1e-12)


def signs(found):
    return np.where(found, -1, 1)


def by_hand(asked, others, is_on, weigh):
    """Tatbul's reward without alpha, sample by sample."""
    rewards = []
    for start, stop in asked:
        n = sum(a < stop and b > start for a, b in others)
        weights = [weigh(i - start, stop - start) for i in range(start, stop)]
        covered = sum(w for i, w in zip(range(start, stop), weights, strict=True) if is_on[i])
        rewards.append(covered / sum(weights) / max(n, 1))
    return np.mean(rewards)


def stretches(found):
    """Begin and end of stretches of True."""
    places, start = [], 0
    for on, group in itertools.groupby(found):
        stop = start + len(list(group))
        places += [(start, stop)] if on else []
        start = stop
    return places


@given(truth=flags.filter(any), data=st.data())
@LAW
def test_ranges_are_what_they_are_defined_to_be(truth, data):
    found = data.draw(st.lists(st.booleans(), min_size=len(truth), max_size=len(truth)))
    y, alarms = signs(truth), signs(found)
    weighs = {"flat": lambda i, n: 1, "front": lambda i, n: n - i, "back": lambda i, n: i + 1}
    for bias, weigh in weighs.items():
        wanted = by_hand(stretches(truth), stretches(found), found, weigh)
        assert range_recall(y, alarms, bias=bias) == pytest.approx(wanted)
        if any(found):
            wanted = by_hand(stretches(found), stretches(truth), truth, weigh)
            assert range_precision(y, alarms, bias=bias) == pytest.approx(wanted)


def test_alpha_rewards_that_an_event_is_met_at_all():
    y, alarms = [1, -1, -1, -1, -1, 1], [1, 1, -1, 1, 1, 1]
    assert range_recall(y, alarms) == 0.25
    assert range_recall(y, alarms, alpha=1.0) == 1.0


@given(
    truth=flags.filter(lambda f: any(f) and not all(f)), window=st.integers(0, 9), data=st.data()
)
@LAW
def test_volumes_depend_on_order_alone_and_perfect_scores_have_volume_1(truth, window, data):
    y = signs(truth)
    size = {"min_size": len(y), "max_size": len(y)}
    scores = np.array(data.draw(st.lists(st.integers(-4, 4), **size)), dtype=float)
    for volume in (vus_roc, vus_pr):
        value = volume(y, scores, window)
        assert 0 <= value <= 1 + 1e-12
        assert volume(y, np.exp(scores) * 3 - 7, window) == pytest.approx(value, abs=1e-12)
        assert volume(y, y.astype(float), 0) == pytest.approx(1.0)


def test_without_buffers_one_event_is_judged_by_samples_once_it_is_met():
    y, scores = [1, 1, 1, -1, 1, 1, 1, 1], [3, 2, 5, 1.5, 8, 1, 6, 7]
    assert vus_roc(y, scores, 0) == pytest.approx(auc(y, scores))


@pytest.mark.parametrize("volume", [vus_roc, vus_pr])
def test_an_alarm_beside_an_event_is_worth_something_with_buffers(volume):
    y = np.ones(60)
    y[30:36] = -1
    near, far = np.ones(60), np.ones(60)
    near[36:40], far[50:54] = 0.0, 0.0
    assert volume(y, near, 10) > volume(y, far, 10) + 0.02
    assert volume(y, near, 0) == volume(y, far, 0)


def test_runs_end_events_and_buffers():
    y = np.array([1, 1, -1, -1, -1, -1, 1, 1])
    alarms = np.array([1, 1, -1, 1, 1, 1, 1, 1])
    runs = list("aaaabbbb")
    assert event_scores(y, alarms).n_events == 1
    apart = event_scores(y, alarms, runs=runs)
    assert (apart.n_events, apart.n_found) == (2, 1)
    assert range_recall(y, alarms, runs=runs) == 0.25
    y[4:] = 1
    scores = np.where(np.arange(8) == 4, 0.0, 1.0)  # in the run after the event
    assert vus_roc(y, scores, 6) > vus_roc(y, scores, 6, runs=runs)


def test_one_run_is_as_no_runs():
    y, scores = sequence()
    assert vus_roc(y, scores, 12, runs=np.zeros(400)) == vus_roc(y, scores, 12)


def test_events_are_counted_as_an_operator_does():
    #         0  1  2   3   4   5  6  7   8  9  10 11
    y = [1, 1, 1, -1, -1, -1, 1, 1, -1, 1, 1, 1]
    alarms = [-1, 1, 1, 1, -1, -1, -1, 1, 1, 1, -1, 1]
    found = event_scores(y, alarms)
    assert (found.n_events, found.n_found, found.n_episodes, found.n_false) == (2, 1, 3, 2)
    np.testing.assert_array_equal(found.delays, [1, np.nan])
    assert (found.recall, found.precision, found.sample_precision) == (0.5, 1 / 3, 0.4)
    assert found.composite_f1 == pytest.approx(2 * 0.5 * 0.4 / 0.9)
    lenient = event_scores(y, alarms, tolerance=2)
    np.testing.assert_array_equal(lenient.delays, [1, 0])  # still on as the second begins
    assert (lenient.n_found, lenient.n_false) == (2, 1)


def test_delays_are_in_units_of_time():
    dates = np.datetime64("2024-01-01") + np.arange(4) * np.timedelta64(30, "s")
    assert event_scores([1, -1, -1, 1], [1, 1, -1, 1], time=dates).delays == [30.0]
    assert event_scores([1, -1, -1, 1], [1, 1, -1, 1], time=[0, 1, 1.5, 4]).delays == [0.5]


@pytest.mark.parametrize(
    ("time", "runs", "words"),
    [
        ([0, 1, np.nan, 3], None, "when every sample was. Got 1 gaps"),
        (np.array(["2024-01-01", "NaT", "2024-01-03", "NaT"], "M8[s]"), None, "Got 2 gaps"),
        ([0, 2, 1, 3], None, "not go back within a run. Got 1 after 2 at sample 2. Sort"),
        ([0, 1, 0, 1], ["a", "a", "a", "b"], "Got 0 after 1 at sample 2"),
        ([0, 1], None, r"time must have shape \(4,\). Got shape \(2,\)"),
        (None, [0, 0, 1, np.nan], "runs must name the run of every sample. Got NaN"),
    ],
)
def test_times_and_runs_that_cannot_be_are_refused(time, runs, words):
    with pytest.raises(InvalidInputError, match=words):
        event_scores([1, -1, -1, 1], [1, 1, -1, 1], time=time, runs=runs)


def test_time_may_begin_anew_with_a_run():
    found = event_scores([1, -1, -1, -1], [1, 1, -1, -1], time=[5, 6, 0, 1], runs=list("aabb"))
    np.testing.assert_array_equal(found.delays, [np.nan, 0])


def test_an_alarm_that_is_always_on_has_no_precision():
    y = np.ones(100)
    y[40:45] = -1
    always = event_scores(y, -np.ones(100))
    assert always.recall == 1.0
    assert always.composite_f1 == pytest.approx(2 * 0.05 / 1.05)
    never = event_scores(y, np.ones(100))
    assert (never.n_found, never.composite_f1) == (0, 0.0)
    assert np.isnan(never.precision)
    assert str(never) == "0 of 1 events found; 0 of 0 alarms false; composite F1 0.000"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: vus_roc([1, 1], [1, 2], 3), "at least one -1"),
        (lambda: vus_roc([1, -1], [1, 2], -1), "window must be 0 or a positive integer"),
        (lambda: vus_roc([1, -1], [1, 2], 2, n_thresholds=1), "n_thresholds must be at least 2"),
        (lambda: vus_pr([1, -1], [1, np.nan], 2), "scores must be finite"),
        (lambda: vus_pr([0, 1], [1, 2], 2), "1 - 2 \\* labels"),
        (lambda: range_precision([1, -1], [1, 1]), "predictions must hold at least one -1"),
        (lambda: range_recall([1, -1], [1, -1, 1]), r"predictions must have shape \(2,\)"),
        (lambda: range_recall([1, -1], [1, -1], bias="middle"), "bias must be"),
        (lambda: range_recall([1, -1], [1, -1], alpha=2), "alpha must be a number"),
        (lambda: event_scores([1, -1], [1, 1], runs=["a"]), r"runs must have shape \(2,\)"),
        (lambda: event_scores([1, -1, 1], [1, 1, 1], runs=["a", "b", "a"]), "follow each other"),
        (lambda: event_scores([1, -1], [1, 1], time=["noon", "x"]), "time must hold numbers"),
        (lambda: event_scores([1, -1], [1, 1], time=[1]), r"time must have shape \(2,\)"),
        (lambda: event_scores([1, -1], [1, 1], tolerance=-1), "tolerance must be 0"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()
