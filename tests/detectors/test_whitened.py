"""Detectors on whitened rows: what they compute, out-of-fold scores, parameters."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from ocfuse.detectors import GMM, KNN, KPCA, LOF, Mahalanobis, OneClassGP, Pool, Whitened
from ocfuse.detectors import views as module
from ocfuse.detectors.base import out_of_fold_scores
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.views import Whitening
from ocfuse.exceptions import InvalidInputError, InvalidTypeError


def table(n, m, seed=0):
    """Return correlated Gaussian rows, those of every seed from one distribution."""
    mix = np.random.default_rng(99).normal(size=(m, m)) * np.arange(1.0, m + 1) ** -0.3
    return np.random.default_rng(seed).normal(size=(n, m)) @ mix.T


def share_below(fresh, scores):
    """Return how often a score exceeds a fresh one: 0.5 if both are alike."""
    labels = np.repeat([0, 1], [len(fresh), len(scores)])
    return roc_auc_score(labels, np.concatenate([fresh, scores]))


@pytest.mark.parametrize(("n", "m"), [(200, 5), (60, 90)])
def test_mahalanobis_is_the_distance_by_the_shrunk_covariance(n, m):
    X, new = table(n, m), table(20, m, seed=1)
    covariance, shrinkage = ledoit_wolf(X)
    assert shrinkage > 1e-3
    gaps = new - X.mean(axis=0)
    expected = -np.einsum("qm,mk,qk->q", gaps, np.linalg.inv(covariance), gaps)
    detector = Mahalanobis().fit(X)
    np.testing.assert_allclose(detector.score_samples(new), expected, rtol=1e-9)
    assert detector.shrinkage_ == pytest.approx(shrinkage)


@pytest.mark.parametrize(("n", "m"), [(60, 10), (120, 60), (40, 100), (30, 1)])
def test_mahalanobis_leave_one_out_is_near_refits(n, m):
    X = table(n, m)
    gram = Gram(X)
    left_out = Mahalanobis().fit_gram(gram)._leave_one_out(gram)
    refits = [
        Mahalanobis().fit(np.delete(X, i, axis=0)).score_samples(X[i : i + 1])[0] for i in range(n)
    ]
    np.testing.assert_allclose(left_out, refits, rtol=0.05)


@pytest.mark.parametrize("inner", [KNN(5), LOF((10, 20, 40)), KPCA(), OneClassGP(width=0.25)])
def test_whitened_is_the_detector_on_whitened_rows(inner):
    X, new = table(150, 6), table(20, 6, seed=1)
    covariance, _ = ledoit_wolf(X)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors / np.sqrt(values)
    expected = clone(inner).fit(X @ root).score_samples(new @ root)
    scores = Whitened(inner).fit(X).score_samples(new)
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-10)


def test_linear_maps_do_not_matter_with_many_rows():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(3000, 3)), rng.normal(size=(50, 3))
    turn = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.3, 0.0, 2.0]])
    for detector in (Mahalanobis(), Whitened(KNN(5))):
        scores = clone(detector).fit(X).score_samples(new)
        turned = clone(detector).fit(X @ turn).score_samples(new @ turn)
        assert np.corrcoef(scores, turned)[0, 1] > 0.99


def test_out_of_fold_scores_are_no_better_than_those_of_fresh_rows():
    members = {
        "maha": Mahalanobis(),
        "wknn": Whitened(KNN(5)),
        "wlof": Whitened(LOF((10, 20, 40))),
        "wkpca": Whitened(KPCA()),
    }
    out_of_fold, closed = [], []
    for seed in range(3):
        X, fresh = table(120, 60, seed), table(1000, 60, seed + 10)
        pool = Pool(members).fit(X)
        scores = pool.score_samples(fresh)
        out_of_fold.append(
            [share_below(scores[:, j], pool.out_of_fold_scores_[:, j]) for j in range(4)]
        )
        white = Gram(X).view(Whitening)
        closed.append(
            [
                share_below(scores[:, j], clone(inner).fit_gram(white)._leave_one_out(white))
                for j, inner in enumerate((KNN(5), LOF((10, 20, 40)), KPCA()), start=1)
            ]
        )
    maha, wknn, wlof, wkpca = np.mean(out_of_fold, axis=0)
    assert abs(maha - 0.5) < 0.05
    assert abs(wknn - 0.5) < 0.1
    assert abs(wlof - 0.5) < 0.1
    # a quarter of the rows less costs KPCA in 60 directions more than the others
    assert 0.2 < wkpca < 0.55
    # the whitening has seen the rows that a closed form leaves out
    assert min(np.mean(closed, axis=0)) > 0.6


def test_the_detector_says_how_many_rows_and_which_rate():
    X = table(120, 3)
    assert Whitened(KPCA()).max_samples == 2000
    detector = Whitened(KNN(max_samples=50, false_alarm_rate=0.2)).fit(X)
    assert detector.reference_.n_rows == detector.detector_.reference_.n_rows == 50
    assert detector.offset_ > Whitened(KNN(max_samples=50)).fit(X).offset_


def test_parameters_reach_the_detector():
    detector = Whitened(KPCA())
    assert detector.set_params(detector__width=0.25) is detector
    assert detector.detector.width == 0.25
    assert clone(detector).get_params()["detector__width"] == 0.25
    pool = Pool({"wkpca": detector}).set_params(wkpca__detector__width=0.5)
    assert pool.get_params()["wkpca__detector__width"] == 0.5
    assert detector.detector.width == 0.25


def test_the_given_detector_is_untouched_and_seeded_by_the_pool():
    given = GMM(2)
    pool = Pool({"wgmm": Whitened(given)}).fit(table(60, 3), random_state=0)
    assert given.random_state is None
    assert not hasattr(given, "reference_")
    assert isinstance(pool.members_[0][1].detector.random_state, int)


@pytest.mark.parametrize("wrong", [None, KNN, "knn", KNeighborsClassifier()])
def test_other_estimators_are_refused(wrong):
    with pytest.raises(InvalidTypeError, match="detector must be a detector of this package"):
        Whitened(wrong).fit(table(20, 2))


def test_wrong_parameters_of_the_detector_are_refused():
    with pytest.raises(InvalidInputError, match="n_neighbors must be"):
        Whitened(KNN(0)).fit(table(20, 2))


@pytest.mark.parametrize("inner", [KNN(), LOF((10, 20)), KPCA(max_samples=100, landmarks=150)])
def test_many_rows_are_taken_out_of_the_whitening_one_by_one(monkeypatch, inner):
    X, fresh = table(400, 40), table(2000, 40, seed=1)
    gram = Gram(X)
    detector = Whitened(inner).fit_gram(gram)
    assert not detector.is_closed(*X.shape)
    monkeypatch.setattr(module, "MOST_FOLDED", 300)
    assert detector.is_closed(*X.shape)
    assert not detector.is_closed(399, 40)
    out_of_fold = out_of_fold_scores(detector, gram, [])
    rows = np.arange(0, 400, 40)
    refitted = []
    for i in rows:
        part = Gram(np.delete(X, i, axis=0))
        query = part.query(X[i : i + 1])
        refitted.append(Whitened(inner).fit_gram(part).score_query(query)[0])
    # each refit has landmarks of its own
    least = 0.97 if isinstance(inner, KPCA) else 0.995
    assert np.corrcoef(out_of_fold[rows], refitted)[0, 1] > least
    assert abs(share_below(detector.score_query(gram.query(fresh)), out_of_fold) - 0.5) < 0.05


@pytest.mark.parametrize("inner", [GMM(1), KPCA(), Whitened(KNN())])
def test_what_needs_more_than_distances_goes_by_folds(inner):
    assert not Whitened(inner).is_closed(10**6, 2)
