"""GMM: scikit-learn's density, any shape of table, deviations off the subspace."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from ocfuse.detectors import mixture as module
from ocfuse.detectors.base import interleaved_folds, out_of_fold_scores
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.mixture import GMM
from ocfuse.exceptions import InvalidInputError
from tests.counting import peak_bytes


def clusters(n, m, seed=0, apart=6.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) + apart * rng.integers(0, 3, size=(n, 1))


@pytest.mark.parametrize("c", [1, 2, 4])
@pytest.mark.parametrize(("n", "m"), [(40, 1), (300, 5), (400, 60)])
def test_density_equals_scikit_learn(c, n, m):
    X, new = clusters(n, m), clusters(50, m, seed=1)
    detector = GMM(c, random_state=3).fit(X)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    unit, centre = detector.unit_, detector.reference_.centre
    theirs = GaussianMixture(c, reg_covar=1e-3, max_iter=GMM.most_iterations, random_state=seed)
    theirs.fit((X - centre) / unit)
    expected = theirs.score_samples((new - centre) / unit) - m * np.log(unit)
    np.testing.assert_allclose(detector.score_samples(new), expected, rtol=1e-9, atol=1e-9)
    assert detector.n_components_ == c
    assert detector.converged_


def test_one_component_is_the_normal_density():
    X = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 10.0, 100.0] + 5.0
    detector = GMM(1, reg_covar=1e-9).fit(X)
    normal = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(detector.score_samples(X), normal.logpdf(X), rtol=1e-5)


@pytest.mark.slow
def test_criterion_finds_the_number_of_components():
    assert GMM(random_state=0).fit(clusters(400, 2, apart=12.0)).n_components_ == 3
    assert (
        GMM(random_state=0).fit(np.random.default_rng(0).normal(size=(400, 2))).n_components_ == 1
    )
    two = GMM(max_components=2, random_state=0).fit(clusters(400, 2, apart=12.0))
    assert two.n_components_ == 2


@pytest.mark.parametrize(("n", "most"), [(2, 1), (3, 1), (5, 2), (9, 4)])
def test_few_rows_cut_the_components(n, most):
    X = np.random.default_rng(0).normal(size=(n, 2))
    detector = GMM(7, random_state=0).fit(X)
    assert detector.n_components_ == most
    assert np.isfinite(detector.score_samples(X)).all()


@pytest.mark.parametrize(
    ("c", "n", "m"),
    [
        *((c, *size) for c in (1, 3, None) for size in [(5, 50), (30, 30), (60, 2000), (280, 150)]),
        # So many rows that a single component meets its limit too.
        (1, 1032, 260),
    ],
)
def test_more_columns_than_directions(c, n, m):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, m)) + 0.1 * rng.normal(size=(n, m))
    detector = GMM(c, random_state=0).fit(X)
    assert detector.n_directions_ == min(m, 256 if c == 1 else 64, max(1, n // 4))
    inside = X[:3]
    off = inside + rng.normal(size=(3, m))
    assert np.isfinite(detector.score_samples(inside)).all()
    assert detector.score_samples(off).max() < detector.score_samples(inside).min()


def test_subspace_is_the_exact_density_of_its_model():
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(40, 25)) * np.linspace(3, 0.3, 25), rng.normal(size=(6, 25))
    detector = GMM(1).fit(X)
    unit, mean = detector.unit_, X.mean(axis=0)
    rows = (X - mean) / unit
    _, _, V = np.linalg.svd(rows)
    inner, outer = rows @ V[:10].T, rows @ V[10:].T
    noise = (outer**2).sum() / (40 * 15) + 1e-3
    S = np.zeros((25, 25))
    S[:10, :10] = inner.T @ inner / 40 + 1e-3 * np.eye(10)
    S[10:, 10:] = noise * np.eye(15)
    expected = multivariate_normal(np.zeros(25), S).logpdf((new - mean) / unit @ V.T)
    np.testing.assert_allclose(detector.score_samples(new) + 25 * np.log(unit), expected, rtol=1e-9)


def test_many_columns_without_the_square_of_their_number():
    X = np.random.default_rng(0).normal(size=(100, 6_000))

    def fit_and_score():
        assert np.isfinite(GMM(1, random_state=0).fit(X).score_samples(X[:5])).all()

    assert peak_bytes(fit_and_score) < 8 * 6_000**2 / 3


@pytest.mark.parametrize("factor", [1e-8, 1e6])
def test_unit_of_features_only_shifts_the_score(factor):
    X, new = clusters(200, 3), clusters(20, 3, seed=1)
    plain = GMM(3, random_state=0).fit(X).score_samples(new)
    scaled = GMM(3, random_state=0).fit(factor * X).score_samples(factor * new)
    np.testing.assert_allclose(plain, scaled + 3 * np.log(factor), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("c", [1, 3, None])
@pytest.mark.parametrize("m", [2, 20])
def test_equal_rows(c, m):
    detector = GMM(c, random_state=0).fit(np.full((30, m), 7.0))
    scores = detector.score_samples([np.full(m, 7.0), np.full(m, 8.0)])
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


def test_few_distinct_rows_give_no_warning():
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 3)), 20, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector = GMM(4, random_state=0).fit(X)
    assert np.isfinite(detector.score_samples(X)).all()


def test_convergence_is_told_without_a_warning(monkeypatch):
    monkeypatch.setattr(GMM, "most_iterations", 1)
    detector = GMM(4, random_state=0).fit(clusters(200, 3, apart=1.0))
    assert not detector.converged_


@pytest.mark.parametrize("m", [3, 300])
def test_batch_equals_one_by_one(m):
    X, new = clusters(120, m), 4 * clusters(30, m, seed=1)
    detector = GMM(3, random_state=0).fit(X)
    batch = detector.score_samples(new)
    single = np.concatenate([detector.score_samples(row[None]) for row in new])
    np.testing.assert_allclose(batch, single, rtol=1e-11)


def test_random_state_fixes_everything():
    X = clusters(150, 4, apart=1.5)
    first, second = (GMM(4, random_state=7).fit(X).score_samples(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_one_row_of_a_fold_is_enough():
    X = np.random.default_rng(0).normal(size=(2, 5))
    part, query = Gram(X).fold(np.array([0]), np.array([1]))
    scores = GMM().fit_gram(part).score_query(query)
    assert np.isfinite(scores).all()


def test_huge_values_stay_finite():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert np.isfinite(GMM(2, random_state=0).fit(X).score_samples([[1e200, -1e200, 0.0]])).all()


def test_false_alarm_rate_holds_on_fresh_rows():
    rng = np.random.default_rng(0)
    detector = GMM(1, false_alarm_rate=0.1).fit(rng.normal(size=(1000, 3)))
    assert 0.07 < (detector.predict(rng.normal(size=(4000, 3))) == -1).mean() < 0.13


@pytest.mark.parametrize("c", [3, None])
@pytest.mark.parametrize("seed", range(3))
def test_rate_holds_where_gaussians_have_many_optima(c, seed):
    """A table of nine machines: folds that began anew ended in others, and gave 0 to 67 %."""
    rng = np.random.default_rng(seed)

    def rows(n):
        machine = rng.integers(0, 9, n)
        volume = np.exp(machine * 3 / 8 + rng.normal(size=n) / 10)
        return np.column_stack([volume / 5, rng.normal(size=n), 2 * np.eye(9)[machine]])

    detector = GMM(c, random_state=0).fit(rows(960))
    assert 0.03 < (detector.predict(rows(6000)) == -1).mean() < 0.07


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"max_components": 2.0}, "max_components must be a whole number"),
        ({"reg_covar": 0.0}, "reg_covar must be a number"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(InvalidInputError, match=message):
        GMM(**params).fit(clusters(20, 2))


def test_many_rows_are_taken_out_of_one_gaussian_one_by_one(monkeypatch):
    monkeypatch.setattr(module, "MANY_ROWS", 200)
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(700, 20)) * np.linspace(3.0, 0.2, 20)
    gram = Gram(X)
    detector = GMM(1).fit_gram(gram)
    assert detector.is_closed(*X.shape)
    out_of_fold = out_of_fold_scores(detector, gram, [])
    seen = detector.score_query(gram.query(X))
    for i in (0, 300, 699):
        part = Gram(np.delete(X, i, axis=0))
        refitted = GMM(1).fit_gram(part).score_query(part.query(X[i : i + 1]))[0]
        assert abs(out_of_fold[i] - refitted) < 0.3 * abs(seen[i] - refitted)


@pytest.mark.parametrize("m", [20, 40])
def test_folds_of_one_gaussian_follow_from_sums(monkeypatch, m):
    rng = np.random.default_rng(0)
    X = rng.standard_t(5, size=(500, m)) @ rng.normal(size=(m, m))
    gram, folds = Gram(X), interleaved_folds(500)
    monkeypatch.setattr(GMM, "most_directions", 25)
    refitted = out_of_fold_scores(GMM(1).fit_gram(gram), gram, folds)
    monkeypatch.setattr(module, "MANY_ROWS", 200)
    monkeypatch.setattr(GMM, "rows_per_column", 100)
    detector = GMM(1).fit_gram(Gram(X))
    assert detector.is_closed(500, m)
    np.testing.assert_allclose(out_of_fold_scores(detector, Gram(X), []), refitted, rtol=1e-9)


def test_many_rows_change_one_gaussian_by_rounding_only(monkeypatch):
    X, new = clusters(400, 40), 3 * clusters(20, 40, seed=1)
    monkeypatch.setattr(GMM, "most_directions", 25)
    few = GMM(1).fit(X).score_samples(new)
    monkeypatch.setattr(module, "MANY_ROWS", 200)
    np.testing.assert_allclose(GMM(1).fit(X).score_samples(new), few, rtol=1e-9)
    constant = GMM(1).fit(np.ones((300, 40)))
    assert np.isfinite(constant.score_samples(new)).all()


def test_other_mixtures_go_by_folds():
    assert not GMM(2).is_closed(10**6, 2)
    assert not GMM().is_closed(10**6, 2)
    assert not GMM(1).is_closed(2000, 2)
    assert not GMM(1).is_closed(10**6, 4001)
    assert GMM(1).is_closed(2001, 2)
    assert GMM(1).is_closed(10**4, 334)


def test_a_gaussian_on_equal_rows_keeps_the_spread_of_all():
    """Else a row of few values that differs in one of them would have no density."""
    X = (np.random.default_rng(0).random((100, 10)) < 0.1).astype(float)
    fresh = (np.random.default_rng(1).random((500, 10)) < 0.1).astype(float)
    model = GMM(n_components=3, random_state=0).fit(X)
    seen, unseen = model.score_samples(X), model.score_samples(fresh)
    assert unseen.min() > seen.min() - 20 * (np.median(seen) - seen.min())
