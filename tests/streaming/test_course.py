"""The course: samples measured from what is usual where the task is."""

import numpy as np
import pytest
from sklearn.base import clone

from ocfuse.exceptions import InvalidInputError, SuspectInputWarning
from ocfuse.streaming import Course
from ocfuse.streaming.course import hats


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
