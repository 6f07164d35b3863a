"""One-class GP: the book's formulas, exact rows left out, every statistic finite."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from ocfuse.detectors.base import out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.kpca import KPCA


def rows(n, m=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def by_the_book(gram, query, width, noise):
    Kn = gram.kernel(width) + noise * np.eye(gram.n_rows)
    k = query.kernel(width)
    mean = k @ np.linalg.solve(Kn, np.ones(gram.n_rows))
    return mean, 1.0 + noise - np.einsum("qn,nq->q", k, np.linalg.solve(Kn, k.T))


@pytest.mark.parametrize("noise", [0.01, 0.5])
def test_statistics_are_those_of_the_book(noise):
    gram = Gram(rows(80))
    query = gram.query(rows(20, seed=1))
    mean, variance = by_the_book(gram, query, 0.5, noise)
    expected = {
        "mean": mean,
        "variance": -variance,
        "predictive": -((1 - mean) ** 2) / (2 * variance) - np.log(2 * np.pi * variance) / 2,
        "ratio": np.log(mean / np.sqrt(variance)),
    }
    assert mean.min() > 1e-3
    for statistic in expected:
        detector = OneClassGP(statistic=statistic, width=0.5, noise=noise).fit_gram(gram)
        np.testing.assert_allclose(detector.score_query(query), expected[statistic], atol=1e-10)


def test_agrees_with_gaussian_process_regression():
    X, Q = rows(60), rows(10, seed=1)
    ours = OneClassGP(noise=0.01).fit(X)
    kernel = RBF(np.sqrt(ours.reference_.scale / 2))
    theirs = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(X, np.ones(60))
    mean, sd = theirs.predict(Q, return_std=True)
    np.testing.assert_allclose(ours.score_samples(Q), mean, atol=1e-9)
    variance = -clone(ours).set_params(statistic="variance").fit(X).score_samples(Q)
    np.testing.assert_allclose(variance - 0.01, sd**2, atol=1e-9)


@pytest.mark.parametrize("after_kpca", [False, True])
@pytest.mark.parametrize("statistic", ["mean", "variance", "predictive", "ratio"])
@pytest.mark.parametrize("width", [1.0, 0.25])
def test_left_out_scores_are_those_of_refits(statistic, width, after_kpca):
    gram = Gram(rows(60))
    if after_kpca:
        KPCA(width=width).fit_gram(gram)
    detector = OneClassGP(statistic=statistic, width=width).fit_gram(gram)
    found = out_of_fold_scores(detector, gram, [])
    for i in range(60):
        part, query = gram.fold(np.delete(np.arange(60), i), np.array([i]))
        refitted = clone(detector).fit_gram(part).score_query(query)[0]
        assert found[i] == pytest.approx(refitted, abs=1e-8)


def test_mean_alone_pays_for_no_eigenvectors_and_keeps_no_matrix():
    gram = Gram(rows(60))
    detector = OneClassGP().fit_gram(gram)
    out_of_fold_scores(detector, gram, [])
    assert gram.counts["eigh"] == 0
    assert gram.counts["cholesky"] == 1
    assert detector.factor_ is None


def test_ratio_is_finite_and_increases_with_the_mean():
    mean = np.r_[-5.0, -1.0, -1e-9, 0.0, np.geomspace(1e-9, 2.0, 50)]
    found = OneClassGP(statistic="ratio")._combine(mean, np.ones(len(mean)))
    assert np.isfinite(found).all()
    assert np.all(np.diff(found) > 0)
    above = mean >= 1e-3
    np.testing.assert_allclose(found[above], np.log(mean[above]))


def test_far_from_all_rows_nothing_is_known():
    X = rows(50)
    far = np.full((1, 4), 1e6)
    assert OneClassGP().fit(X).score_samples(far)[0] == 0.0
    assert OneClassGP(statistic="variance").fit(X).score_samples(far)[0] == pytest.approx(-1.01)
