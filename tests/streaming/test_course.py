"""Samples measured from their course, and the drift of channels."""

import numpy as np
import pytest
from sklearn.base import clone

from ocfuse.exceptions import DriftWarning, InvalidInputError, SuspectInputWarning
from ocfuse.streaming import Course, drift_ratio
from ocfuse.streaming.course import hats, warn_of_drift


def task(seed, n_runs=10, n=200):
    """Two channels along a task: a level that rises, and unrest in the second half."""
    rng = np.random.default_rng(seed)
    progress = np.tile(np.linspace(0, 1, n), n_runs)
    noise = rng.normal(size=(len(progress), 2))
    wobble = np.where(progress < 0.5, 0.2, 2.0)
    return np.column_stack([10 * progress + 0.3 * noise[:, 0], wobble * noise[:, 1]]), progress


def test_normal_samples_have_mean_0_and_spread_1_everywhere():
    course = Course().fit(*task(0))
    X, progress = task(1)
    measured = course.transform(X, progress)
    for part in (progress < 0.2, (progress > 0.2) & (progress < 0.45), progress > 0.55):
        np.testing.assert_allclose(measured[part].mean(axis=0), 0, atol=0.15)
        np.testing.assert_allclose(measured[part].std(axis=0), 1, atol=0.35)


def test_a_usual_reading_at_the_wrong_place_stands_out():
    course = Course().fit(*task(0))
    assert (np.abs(course.transform([[8.0, 0.0], [2.0, 1.5]], [0.2, 0.2])).max(axis=1) > 5).all()


def test_a_straight_line_is_followed():
    place = np.linspace(3, 7, 4001)
    course = Course(5).fit((2 * place)[:, np.newaxis], place)
    rest = course.residuals((2 * place)[:, np.newaxis], place)
    assert np.abs(rest).max() < 0.02 * 8


def test_rows_alone_and_in_batches_agree_to_the_bit():
    X, progress = task(2)
    course = Course().fit(X, progress)
    alone = [course.transform(X[[i]], progress[[i]])[0] for i in range(len(X))]
    np.testing.assert_array_equal(alone, course.transform(X, progress))


def test_gaps_are_left_out_and_stay():
    X, progress = task(3)
    gaps = X.copy()
    gaps[::3, 0] = np.nan
    full, partial = Course().fit(X, progress), Course().fit(gaps, progress)
    np.testing.assert_allclose(partial.mean_, full.mean_, atol=0.4)
    np.testing.assert_array_equal(np.isnan(partial.transform(gaps, progress)), np.isnan(gaps))


def test_beyond_the_range_the_ends_count():
    course = Course().fit(*task(4))
    inside = course.transform([[1.0, 1.0]] * 2, [0.0, 1.0])
    np.testing.assert_array_equal(course.transform([[1.0, 1.0]] * 2, [-0.9, 1.9]), inside)
    with pytest.warns(SuspectInputWarning, match=r"0 to 1 in training, and is 9 now"):
        far = course.transform([[1.0, 1.0]] * 2, [0.0, 9.0])
    np.testing.assert_array_equal(far, inside)


def test_constant_channels_and_constant_context():
    X = np.column_stack([np.full(50, 3.0), np.arange(50.0)])
    course = Course().fit(X, np.zeros(50))
    measured = course.transform(X, np.zeros(50))
    np.testing.assert_allclose(measured[:, 0], 0, atol=1e-12)
    assert measured[:, 1].std() == pytest.approx(1, rel=0.05)


def test_units_do_not_matter():
    X, progress = task(5)
    one = Course().fit(X, progress).transform(X, progress)
    other = Course().fit(1e4 * X + 7, 100 * progress).transform(1e4 * X + 7, 100 * progress)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_hats_share_every_place_among_two_knots():
    np.testing.assert_allclose(hats([0.0, 0.1, 0.5, 1.0, 2.0], 3).sum(axis=1), 1)
    np.testing.assert_allclose(hats([0.25], 3), [[0.5, 0.5, 0.0]])


@pytest.mark.parametrize(
    ("params", "context", "message"),
    [
        ({}, np.zeros((5, 2)), "one column"),
        ({}, np.zeros(4), "5 rows"),
        ({"n_knots": 0}, np.zeros(5), "n_knots"),
    ],
)
def test_unusable_input_is_refused(params, context, message):
    with pytest.raises(InvalidInputError, match=message):
        Course(**params).fit(np.zeros((5, 1)), context)


def test_other_channels_are_refused_and_parameters_cloned():
    course = Course(7).fit(*task(0))
    with pytest.raises(InvalidInputError, match="2 channels"):
        course.transform([[1.0]], [0.1])
    assert clone(course).n_knots == 7


def test_by_hand():
    x = np.array([0.0, 2.0, 4.0, 6.0])[:, np.newaxis]
    # block means 1 and 5, their variance 4; variance within the blocks 1
    assert drift_ratio(x, n_blocks=2)[0] == pytest.approx(4.0)


def test_noise_stays_and_walks_wander():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 3))
    assert (drift_ratio(noise) < 0.05).all()
    assert (drift_ratio(np.cumsum(noise, axis=0)) > 0.5).all()


def test_units_do_not_matter_and_gaps_are_left_out():
    X = np.cumsum(np.random.default_rng(1).normal(size=(200, 2)), axis=0)
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    np.testing.assert_allclose(drift_ratio(1e6 * X - 5), drift_ratio(X), rtol=1e-6)
    np.testing.assert_allclose(drift_ratio(gaps), drift_ratio(X), rtol=0.2)


def test_constant_channels():
    steps = np.repeat([0.0, 1.0], 50)
    ratio = drift_ratio(np.column_stack([np.full(100, 0.1), steps]), n_blocks=2)
    assert ratio[0] == 0
    assert np.isinf(ratio[1])


def test_the_warning_names_channels():
    with pytest.warns(DriftWarning, match=r"above 0.3.*: warm \(2\)\. Do something\."):
        warn_of_drift(np.array([0.1, 2.0]), ["calm", "warm"], 0.3, "Do something.")


def phases(seed, n_runs=8, n=300, wander=0.0):
    """Runs of a machine whose load doubles half-way, one channel of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_runs, n, 3))
    X[:, n // 2 :, :2] += 20
    X[:, :, 1] += wander * rng.normal(size=(n_runs, 1))
    return X.reshape(-1, 3), np.repeat(np.arange(n_runs), n)


@pytest.mark.parametrize("n_runs", [2, 3, 8])
def test_phases_that_all_runs_have_are_no_drift(n_runs):
    X, runs = phases(0, n_runs)
    assert (drift_ratio(X[:300])[:2] > 10).all()  # one run cannot tell
    assert (drift_ratio(X, runs) < 0.3).all()


def test_phases_that_come_early_or_late_are_no_drift_by_context():
    rng = np.random.default_rng(1)
    lengths = rng.integers(200, 400, size=8)
    progress = np.concatenate([np.linspace(0, 1, n) for n in lengths])
    X = rng.normal(size=(len(progress), 2)) + 20 * (progress > 0.5)[:, np.newaxis]
    runs = np.repeat(np.arange(8), lengths)
    assert (drift_ratio(X, runs, context=progress) < 0.3).all()


@pytest.mark.parametrize("seed", range(5))
def test_levels_that_differ_from_run_to_run_are_drift(seed):
    ratio = drift_ratio(*phases(seed, wander=2.0))
    assert ratio[1] > 0.3 > max(ratio[0], ratio[2])


@pytest.mark.slow
def test_the_number_of_runs_does_not_matter():
    few, many = (
        np.mean([drift_ratio(*phases(seed, n_runs, wander=2.0))[1] for seed in range(60)])
        for n_runs in (2, 16)
    )
    assert few == pytest.approx(many, rel=0.3)


def test_constant_channels_of_several_runs():
    X = np.full((100, 1), 0.1)
    assert drift_ratio(X, np.repeat([0, 1], 50))[0] == 0
