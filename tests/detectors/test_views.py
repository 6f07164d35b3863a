"""Rows whitened and compressed, the Mahalanobis distance, and detectors on such rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf, ledoit_wolf_shrinkage
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from ocfuse.detectors import (
    GMM,
    KNN,
    KPCA,
    LOF,
    Compressed,
    Mahalanobis,
    OneClassGP,
    Pool,
    Whitened,
)
from ocfuse.detectors import views as module
from ocfuse.detectors.base import out_of_fold_scores
from ocfuse.detectors.gram import Gram, Reference
from ocfuse.detectors.views import Compression, LeftOut, Whitening
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, MemberError

both = pytest.mark.parametrize("kind", [Whitened, Compressed])

SHAPES = [(300, 6), (80, 60), (60, 60), (61, 60), (40, 90), (3, 5), (2, 1)]


def table(n, m, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(m, m)) * np.arange(1.0, m + 1) ** -power
    return rng.normal(size=(n, m)) @ mix.T + 5.0


def whitening_of(X):
    return Whitening(Reference(X))


def plain_root(X):
    """Return W as the formula has it."""
    m = X.shape[1]
    C = np.atleast_2d(np.cov(X.T, bias=True))
    a = max(1e-3, ledoit_wolf_shrinkage(X))
    values, vectors = np.linalg.eigh((1 - a) * C + a * np.trace(C) / m * np.eye(m))
    return (vectors / np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_norms_and_distances_are_those_of_the_formula(n, m):
    X, new = table(n, m), 2 * table(20, m, seed=1) + np.random.default_rng(2).normal(size=(20, m))
    W, centre = plain_root(X), X.mean(axis=0)
    whitening = whitening_of(X)
    white, white_new = whitening.transform(X), whitening.transform(new)
    plain, plain_new = (X - centre) @ W, (new - centre) @ W
    np.testing.assert_allclose((white_new**2).sum(axis=1), (plain_new**2).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(cdist(white_new, white), cdist(plain_new, plain), rtol=1e-9)
    np.testing.assert_allclose(cdist(white, white), cdist(plain, plain), rtol=1e-9, atol=1e-9)
    assert white.shape[1] == min(m, n)


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("n", "m"), [(300, 6), (80, 60), (40, 90), (2, 7)])
def test_shrinkage_equals_scikit_learn(n, m, power):
    X = table(n, m, power=power)
    expected = max(1e-3, ledoit_wolf_shrinkage(X))
    assert whitening_of(X).shrinkage == pytest.approx(expected, rel=1e-9)


def test_both_decompositions_agree():
    X, new = table(60, 59), table(9, 59, seed=1)
    # one row more than columns goes by the covariance, a duplicate column less by the rows
    wide = np.hstack([X, X[:, :2]])
    by_rows, by_covariance = whitening_of(wide[:60]), whitening_of(np.vstack([wide, wide]))
    new = np.hstack([new, new[:, :2] + 1.0])
    values = [(w.transform(new) ** 2).sum(axis=1) for w in (by_rows, by_covariance)]
    # twice the rows: the same covariance, less shrinkage
    assert by_covariance.shrinkage < by_rows.shrinkage
    assert (values[0] < values[1]).all()
    assert by_rows.directions.shape == by_covariance.directions.shape == (59, 61)


def test_many_gaussian_rows_become_white():
    white = whitening_of(table(5000, 5, power=0.0)).transform(table(5000, 5, power=0.0))
    np.testing.assert_allclose(np.cov(white.T), np.eye(5), atol=0.1)


def test_constant_columns_and_rows_off_the_span():
    X = np.column_stack([table(50, 3), np.full(50, 0.1), table(50, 3) @ [1.0, 2.0, 3.0]])
    whitening = whitening_of(X)
    assert whitening.directions.shape == (3, 5)
    white = whitening.transform(X)
    assert white.shape == (50, 4)
    assert not white[:, -1].any()
    off = X[:1] + np.array([0.0, 0.0, 0.0, 2.0, 0.0])
    moved = whitening.transform(off)
    np.testing.assert_allclose(moved[0, :-1], white[0, :-1], atol=1e-12)
    assert moved[0, -1] == pytest.approx(2.0 * whitening.rest_factor, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_rows_without_spread_are_measured_in_the_unit_given(n):
    # a mean squared distance of 24 is a variance of 4 in each of three columns
    whitening = Whitening(Reference(np.full((n, 3), 0.1), 24.0))
    white = whitening.transform(np.array([[0.1, 0.1, 0.1], [0.1, 6.1, 8.1]]))
    np.testing.assert_allclose(white, [[0.0], [5.0]], rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-140, 1e-6, 1e145])
def test_unit_of_features_does_not_matter_to_a_whitening(factor):
    X, new = table(30, 4), table(9, 4, seed=1)
    white, scaled = whitening_of(X).transform(new), whitening_of(factor * X).transform(factor * new)
    np.testing.assert_allclose((white**2).sum(axis=1), (scaled**2).sum(axis=1), rtol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    m=st.integers(1, 60),
    decimals=st.sampled_from([0, 1, 12]),
)
def test_a_row_has_the_same_bits_in_every_batch(seed, n, m, decimals):
    X = table(n, m, seed).round(decimals)
    whitening = whitening_of(X)
    rows = np.vstack([X, 10 * X, X[::-1]])
    white = whitening.transform(rows)
    np.testing.assert_array_equal(white[:n], white[: -n - 1 : -1])
    for i in range(0, len(rows), 7):
        np.testing.assert_array_equal(whitening.transform(rows[i : i + 1])[0], white[i])
    assert np.isfinite(white).all()


def test_many_columns_cost_no_square_of_them(monkeypatch):
    monkeypatch.delattr(module, "eigenpairs")
    whitening = whitening_of(np.random.default_rng(0).normal(size=(20, 6000)))
    assert whitening.directions.shape == (19, 6000)


def test_a_row_left_out_has_the_distances_of_the_covariance_without_it():
    X = table(60, 4)
    gram = Gram(X)
    white = gram.view(Whitening)
    a = white.reference.coordinates.shrinkage
    left_out = LeftOut(white, a)
    n, Y = len(X), X - X.mean(axis=0)
    S = (1 - a) * Y.T @ Y / n + a * np.mean(Y**2) * np.eye(4)
    distances, index = left_out.neighbours(7)
    assert np.all(np.diff(distances, axis=1) >= 0)
    for i in (0, 30, 59):
        S_i = n / (n - 1) * (S - (1 - a) / (n - 1) * np.outer(Y[i], Y[i]))
        gaps = X[i] - X[index[i]]
        expected = np.sqrt(np.einsum("km,km->k", gaps @ np.linalg.inv(S_i), gaps))
        np.testing.assert_allclose(distances[i], expected, rtol=1e-9)


def correlated(n, m, seed=0):
    """Return correlated Gaussian rows, those of every seed from one distribution."""
    mix = np.random.default_rng(99).normal(size=(m, m)) * np.arange(1.0, m + 1) ** -0.3
    return np.random.default_rng(seed).normal(size=(n, m)) @ mix.T


def share_below(fresh, scores):
    """Return how often a score exceeds a fresh one: 0.5 if both are alike."""
    labels = np.repeat([0, 1], [len(fresh), len(scores)])
    return roc_auc_score(labels, np.concatenate([fresh, scores]))


@pytest.mark.parametrize(("n", "m"), [(200, 5), (60, 90)])
def test_mahalanobis_is_the_distance_by_the_shrunk_covariance(n, m):
    X, new = correlated(n, m), correlated(20, m, seed=1)
    covariance, shrinkage = ledoit_wolf(X)
    assert shrinkage > 1e-3
    gaps = new - X.mean(axis=0)
    expected = -np.einsum("qm,mk,qk->q", gaps, np.linalg.inv(covariance), gaps)
    detector = Mahalanobis().fit(X)
    np.testing.assert_allclose(detector.score_samples(new), expected, rtol=1e-9)
    assert detector.shrinkage_ == pytest.approx(shrinkage)


@pytest.mark.parametrize(("n", "m"), [(60, 10), (120, 60), (40, 100), (30, 1)])
def test_mahalanobis_leave_one_out_is_near_refits(n, m):
    X = correlated(n, m)
    gram = Gram(X)
    left_out = Mahalanobis().fit_gram(gram)._leave_one_out(gram)
    refits = [
        Mahalanobis().fit(np.delete(X, i, axis=0)).score_samples(X[i : i + 1])[0] for i in range(n)
    ]
    np.testing.assert_allclose(left_out, refits, rtol=0.05)


@pytest.mark.parametrize("inner", [KNN(5), LOF((10, 20, 40)), KPCA(), OneClassGP(width=0.25)])
def test_whitened_is_the_detector_on_whitened_rows(inner):
    X, new = correlated(150, 6), correlated(20, 6, seed=1)
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
        X, fresh = correlated(120, 60, seed), correlated(1000, 60, seed + 10)
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


def test_parameters_reach_a_whitened_detector():
    detector = Whitened(KPCA())
    assert detector.set_params(detector__width=0.25) is detector
    assert detector.detector.width == 0.25
    assert clone(detector).get_params()["detector__width"] == 0.25
    pool = Pool({"wkpca": detector}).set_params(wkpca__detector__width=0.5)
    assert pool.get_params()["wkpca__detector__width"] == 0.5
    assert detector.detector.width == 0.25


def test_the_given_detector_is_untouched_and_seeded_by_the_pool():
    given = GMM(2)
    pool = Pool({"wgmm": Whitened(given)}).fit(correlated(60, 3), random_state=0)
    assert given.random_state is None
    assert not hasattr(given, "reference_")
    assert isinstance(pool.members_[0][1].detector.random_state, int)


@pytest.mark.parametrize("inner", [KNN(), LOF((10, 20)), KPCA(max_samples=100, landmarks=150)])
def test_many_rows_are_taken_out_of_the_whitening_one_by_one(monkeypatch, inner):
    X, fresh = correlated(400, 40), correlated(2000, 40, seed=1)
    gram = Gram(X)
    detector = Whitened(inner).fit_gram(gram)
    assert not detector.is_closed(*X.shape)
    monkeypatch.setattr(Whitened, "folded_rows", 300)
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


def heavy_tailed(n, m, seed=0):
    """Return rows with heavy tails."""
    return np.random.default_rng(seed).standard_t(2, size=(n, m))


@pytest.mark.parametrize("inner", [KNN(5), LOF((10, 20)), KPCA(), OneClassGP(width=0.25), GMM(1)])
def test_compressed_is_the_detector_on_compressed_rows(inner):
    X, new = heavy_tailed(150, 4), heavy_tailed(20, 4, seed=1)
    rows, fresh = np.arcsinh(X), np.arcsinh(new)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    expected = clone(inner).fit((rows - mean) / deviation)
    detector = Compressed(inner).fit(X)
    np.testing.assert_allclose(
        detector.score_samples(new),
        expected.score_samples((fresh - mean) / deviation),
        rtol=1e-8,
        atol=1e-10,
    )
    if inner.closed_form:
        assert detector.offset_ == pytest.approx(expected.offset_, rel=1e-8)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    m=st.integers(1, 9),
    size=st.sampled_from([1e-12, 1.0, 1e9, 1e140]),
)
@settings(max_examples=60, deadline=None)
def test_compressed_rows_are_standardised_finite_and_the_same_bits_in_every_batch(seed, n, m, size):
    X = size * np.random.default_rng(seed).normal(size=(n, m))
    compression = Compression(Reference(X))
    rows = compression.transform(np.vstack([X, X[::-1], -3.0 * X]))
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows[:n].mean(axis=0), 0.0, atol=1e-9)
    if n > 1 and size >= 1.0:
        np.testing.assert_allclose(rows[:n].std(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(rows[:n], rows[n : 2 * n][::-1])
    for i in range(n):
        np.testing.assert_array_equal(compression.transform(X[i : i + 1])[0], rows[i])


def test_constant_columns_keep_the_unit_of_arcsinh():
    compression = Compression(Reference(np.full((5, 2), 0.1)))
    rows = compression.transform(np.array([[0.1, 0.1], [0.1, np.sinh(2.0)]]))
    np.testing.assert_array_equal(rows[:, 0], 0.0)
    np.testing.assert_allclose(rows[:, 1], [0.0, 2.0 - np.arcsinh(0.1)])


def test_a_long_tail_is_drawn_in_and_no_order_changes():
    X = heavy_tailed(500, 3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = Compression(Reference(X)).transform(X)
    np.testing.assert_array_equal(np.argsort(rows, axis=0), np.argsort(X, axis=0))
    assert (np.abs(rows).max(axis=0) < 0.7 * np.abs(X).max(axis=0)).all()


@pytest.mark.parametrize("inner", [KNN(5), LOF((10, 20, 40)), KPCA()])
def test_closed_forms_on_compressed_rows_agree_with_refits(inner):
    X = heavy_tailed(60, 4)
    gram = Gram(X)
    detector = Compressed(inner)
    assert detector.is_closed(*X.shape)
    closed = detector.fit_gram(gram)._leave_one_out(gram)
    refits = []
    for i in range(60):
        others = Gram(np.delete(X, i, axis=0))
        refits.append(clone(detector).fit_gram(others).score_query(others.query(X[i : i + 1]))[0])
    assert np.corrcoef(closed, refits)[0, 1] > 0.97


@pytest.mark.parametrize("inner", [GMM(2), Whitened(KNN())])
def test_compressed_without_a_closed_form_goes_by_folds(inner):
    assert not Compressed(inner).is_closed(60, 4)
    pool = Pool([Compressed(inner)]).fit(heavy_tailed(60, 3), random_state=0)
    assert np.isfinite(pool.out_of_fold_scores_).all()


def test_parameters_reach_a_compressed_detector_and_the_given_one_is_untouched():
    given = KPCA()
    detector = Compressed(given)
    assert detector.set_params(detector__width=0.25) is detector
    assert clone(detector).get_params()["detector__width"] == 0.25
    pool = Pool({"ckpca": detector}).set_params(ckpca__detector__width=0.5).fit(heavy_tailed(40, 3))
    assert pool.members_[0][1].detector_.width == 0.5
    assert given.width == 0.25
    assert not hasattr(given, "reference_")


def test_many_rows_are_compressed_by_a_logarithm(monkeypatch):
    X = np.column_stack([heavy_tailed(1500, 3), np.full(1500, 0.7), np.zeros(1500)])
    X[0, 0], X[1, 1] = 1e140, -1e140
    new = np.vstack([heavy_tailed(40, 5, seed=1), X[:3], 1e-9 * X[5:8]])
    few = Reference(X).view(Compression)
    monkeypatch.setattr(module, "MANY_ROWS", 100)
    many = Reference(X).view(Compression)
    assert many.coordinates.by_logarithm
    assert not few.coordinates.by_logarithm
    assert (many.X[:, 3:] == 0).all()
    expected = few.coordinates.transform(new)
    np.testing.assert_allclose(many.coordinates.transform(new), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many.X, few.X, rtol=1e-12, atol=1e-12)


@both
def test_the_detector_says_how_many_rows_and_which_rate(kind):
    X = heavy_tailed(120, 3)
    assert kind(KPCA()).max_samples == 2000
    detector = kind(KNN(max_samples=50, false_alarm_rate=0.2)).fit(X)
    assert detector.reference_.n_rows == detector.detector_.reference_.n_rows == 50
    assert detector.offset_ > kind(KNN(max_samples=50)).fit(X).offset_


@both
@pytest.mark.parametrize("wrong", [None, KNN, "knn", KNeighborsClassifier()])
def test_other_estimators_are_refused(kind, wrong):
    with pytest.raises(InvalidTypeError, match="detector must be a detector of this package"):
        kind(wrong).fit(heavy_tailed(20, 2))
    with pytest.raises(MemberError, match="detector must be a detector of this package"):
        Pool([kind(wrong)]).fit(heavy_tailed(20, 2))


@both
def test_wrong_parameters_of_the_detector_are_refused(kind):
    with pytest.raises(InvalidInputError, match="n_neighbors must be"):
        kind(KNN(0)).fit(heavy_tailed(20, 2))
