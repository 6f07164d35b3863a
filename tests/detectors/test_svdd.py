"""SVDD: the sphere is optimal, agrees with the one-class SVM, and leaves rows out."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.svm import OneClassSVM

from ocfuse.detectors.base import out_of_fold_scores
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.svdd import SVDD

#: Scores within it of 0 are 0: ten times the tolerance of the solver.
RESOLUTION = 1e-7


def rows(n, m=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


@pytest.mark.parametrize("width", [1.0, 0.25])
@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_scores_are_a_positive_affine_map_of_the_one_class_svm(width, nu):
    X, Q = rows(200), 1.5 * rows(100, seed=1)
    ours = SVDD(width=width, nu=nu).fit(X)
    gamma = 1.0 / (width * ours.reference_.scale)
    theirs = OneClassSVM(gamma=gamma, nu=nu, tol=1e-8).fit(X).decision_function(Q)
    scores = ours.score_samples(Q)
    slope, level = np.polyfit(theirs, scores, 1)
    assert slope > 0
    np.testing.assert_allclose(slope * theirs + level, scores, atol=2 * RESOLUTION)
    assert spearmanr(scores, theirs).statistic == pytest.approx(1.0, abs=1e-6)
    # Zero is the border of both.
    np.testing.assert_allclose(level, 0.0, atol=2 * RESOLUTION)


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_sphere_satisfies_the_optimality_conditions(nu):
    n = 150
    gram = Gram(rows(n))
    fitted = SVDD(nu=nu).fit_gram(gram)
    alpha = np.zeros(n)
    alpha[fitted.support_] = fitted.dual_coef_
    bound = 1.0 / (nu * n)
    assert alpha.sum() == pytest.approx(1.0)
    assert alpha.min() >= 0.0
    assert alpha.max() <= bound * (1 + 1e-12)
    scores = fitted.score_query(gram)
    assert np.all(scores[alpha == 0] >= -1e-7)
    assert np.all(scores[alpha >= bound * (1 - 1e-9)] <= 1e-7)
    border = (alpha > 0) & (alpha < bound * (1 - 1e-9))
    np.testing.assert_allclose(scores[border], 0.0, atol=1e-7)
    # nu bounds the rows outside and the support vectors
    assert np.mean(scores < -1e-7) <= nu <= np.mean(alpha > 0)


def test_score_is_radius_less_distance_to_the_centre():
    X, Q = rows(80), rows(10, seed=1)
    gram = Gram(X)
    fitted = SVDD().fit_gram(gram)
    K = gram.kernel(1.0)[np.ix_(fitted.support_, fitted.support_)]
    centre = fitted.dual_coef_ @ K @ fitted.dual_coef_
    reached = gram.query(Q).kernel(1.0)[:, fitted.support_] @ fitted.dual_coef_
    squared_radius = 1.0 - 2.0 * fitted.level_ + centre
    expected = squared_radius - (1.0 - 2.0 * reached + centre)
    expected -= RESOLUTION * np.sign(expected)
    np.testing.assert_allclose(fitted.score_query(gram.query(Q)), expected, atol=1e-12)


def refitted_scores(detector, gram):
    """Scores of the support vectors by detectors that were fitted without them."""
    folds = [gram.fold(np.delete(np.arange(gram.n_rows), [i]), [i]) for i in detector.support_]
    return np.array([clone(detector).fit_gram(p).score_query(q)[0] for p, q in folds])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "farthest"), [(1.0, 0.25), (0.5, 0.5)])
def test_span_predicts_refits(width, farthest):
    gram = Gram(rows(600, 5))
    detector = SVDD(width=width).fit_gram(gram)
    support = detector.support_
    found = out_of_fold_scores(detector, gram, [])
    refitted = refitted_scores(detector, gram)
    assert spearmanr(found[support], refitted).statistic > 0.95
    assert np.abs(found[support] - refitted).max() < farthest * found.std()
    in_sample = detector.score_query(gram)[support]
    assert np.abs(found[support] - refitted).mean() < 0.3 * np.abs(in_sample - refitted).mean()


@pytest.mark.parametrize("n", [2, 3, 30, 150])
def test_few_rows_are_left_out_exactly(n):
    gram = Gram(rows(n))
    detector = SVDD(width=0.25).fit_gram(gram)
    found = out_of_fold_scores(detector, gram, [])[detector.support_]
    np.testing.assert_array_equal(found, refitted_scores(detector, gram))


def test_rows_that_are_no_support_vectors_keep_their_score():
    gram = Gram(rows(300))
    detector = SVDD().fit_gram(gram)
    others = np.setdiff1d(np.arange(300), detector.support_)
    found, scores = out_of_fold_scores(detector, gram, []), detector.score_query(gram)
    np.testing.assert_array_equal(found[others], scores[others])
    assert np.all(found[detector.support_] <= scores[detector.support_])


def test_rows_on_the_border_tie_though_the_solver_stops_early():
    X = np.random.default_rng(0).integers(0, 2, size=(300, 3)).astype(float)
    gram = Gram(X)
    detector = SVDD(width=0.25).fit_gram(gram)
    # Eight different rows, all of them on the border.
    np.testing.assert_array_equal(detector.score_query(gram), 0.0)
    assert np.mean(out_of_fold_scores(detector, gram, []) == 0.0) > 0.9
    assert detector.score_query(gram.query(np.full((1, 3), 0.5)))[0] != 0.0
