"""The lowest of several detectors' scores: units, order, missing scores, bad input."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores import join_lowest

RNG = np.random.default_rng(0)
NORMALS = [RNG.normal(size=50), RNG.normal(size=30)]
SCORES = RNG.normal(size=(2, 20))


def test_any_increasing_affine_change_of_a_detector_changes_nothing():
    changed = [SCORES[0], 1e3 * SCORES[1] + 5], [NORMALS[0], 1e3 * NORMALS[1] + 5]
    np.testing.assert_allclose(join_lowest(*changed), join_lowest(SCORES, NORMALS))


def test_it_is_the_lower_of_the_two():
    alone = [join_lowest([s], [n]) for s, n in zip(SCORES, NORMALS, strict=True)]
    np.testing.assert_array_equal(join_lowest(SCORES, NORMALS), np.minimum(*alone))


def test_one_strange_score_is_not_talked_away():
    usual = [normals.mean() + 9 * normals.std() for normals in NORMALS]
    joined = join_lowest([[usual[0]], [NORMALS[1].mean() - 8 * NORMALS[1].std()]], NORMALS)
    assert joined == pytest.approx([-8])


def test_who_has_no_score_leaves_it_to_the_others():
    scores = SCORES.copy()
    scores[0, :2] = np.nan
    scores[1, 1] = np.nan
    joined = join_lowest(scores, NORMALS)
    assert joined[0] == join_lowest(SCORES[1:], NORMALS[1:])[0]
    assert np.isnan(joined[1])
    np.testing.assert_array_equal(joined[2:], join_lowest(SCORES, NORMALS)[2:])


def test_normals_without_a_score_are_left_out():
    """Such as the first ones of a run in `StreamDetector.training_scores_`."""
    normals = [np.r_[np.nan, NORMALS[0], np.nan], NORMALS[1]]
    np.testing.assert_array_equal(join_lowest(SCORES, normals), join_lowest(SCORES, NORMALS))


def test_a_moment_does_not_depend_on_the_others():
    whole = join_lowest(SCORES, NORMALS)
    one_by_one = [join_lowest(SCORES[:, [i]], NORMALS)[0] for i in range(20)]
    assert whole.tolist() == one_by_one


@pytest.mark.parametrize(
    ("scores", "normals", "words"),
    [
        ([[1.0]], [[1.0], [2.0]], "one entry for each detector"),
        ([], [], "at least one"),
        ([[1.0], [1.0, 2.0]], [[1.0, 2.0]] * 2, "same moments.*1, 2 scores"),
        ([[[1.0]]], [[1.0]], "shape"),
        ([[np.inf]], [[1.0]], "finite"),
        ([[1.0]], [[np.inf, 1.0]], "normal_scores must be finite"),
        ([[1.0]], [[np.nan]], "normal_scores must hold at least one"),
        ([[1.0]], [[]], "at least one row"),
    ],
)
def test_wrong_input(scores, normals, words):
    with pytest.raises(InvalidInputError, match=words):
        join_lowest(scores, normals)
