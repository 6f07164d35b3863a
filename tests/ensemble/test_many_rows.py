"""Above 2,000 rows: another pool, landmarks, and the same promises."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.ensemble import IsolationForest

import ocfuse
from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, LOF, Marginal
from ocfuse.ensemble import score
from ocfuse.ensemble.fit import Learned

QUICK = [("knn", KNN(5)), ("gmm", GMM(1)), ("lof", LOF(20)), ("marginal", Marginal())]
pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.ThresholdWarning")


def small_chunks(monkeypatch, size):
    small = partial(score.in_chunks, most_alone=size, first_rows=1, most_rows=size)
    monkeypatch.setattr(score, "in_chunks", small)


def rows(n, seed, m=8):
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(7).normal(size=(4, m))
    return np.log1p(np.exp(rng.normal(size=(n, 4)) @ mixing)) + 0.1 * rng.normal(size=(n, m))


@pytest.fixture(scope="module", name="X")
def training():
    return rows(2300, 0)


@pytest.fixture(scope="module")
def fitted(X):
    return FusedDetector(random_state=0).fit(X)


@pytest.fixture(scope="module")
def fresh():
    return rows(1500, 1)


def test_the_pool_is_told(fitted, X):
    assert fitted.members == "default"
    assert fitted.pool_.pool_name_ == "large"
    assert len(fitted.pool_.names_) == 12
    assert fitted.plan(X).pool == "large"


@pytest.mark.slow
def test_few_rows_without_the_anomalies_are_few():
    X = rows(2050, 2)
    y = np.where(np.arange(2050) < 60, -1, 0)
    members = [("knn", KNN(5))]
    names = []
    for labels in (y, None):
        learned_from = 2050 if labels is None else 1990
        detector = FusedDetector(members, random_state=0).fit(X, labels)
        names.append(ocfuse.detectors.Pool("default").chosen(len(detector.training_))[0])
        assert len(detector.training_) + len(detector.trimmed_rows_) == learned_from
    assert names == ["default", "large"]


@pytest.mark.slow
def test_a_row_scores_the_same_in_every_batch(fitted, fresh):
    batch = fitted.score_samples(fresh)
    np.testing.assert_allclose(fitted.score_samples(fresh[::-1])[::-1], batch, rtol=1e-10)
    alone = np.concatenate([fitted.score_samples(row[None]) for row in fresh[:40]])
    np.testing.assert_allclose(alone, batch[:40], rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 130, 1500])
def test_chunks_do_not_show(fitted, fresh, monkeypatch, size):
    scores, members = fitted.score_samples(fresh[:300]), fitted.transform(fresh[:300])
    small_chunks(monkeypatch, size)
    np.testing.assert_allclose(fitted.score_samples(fresh[:300]), scores, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(fitted.transform(fresh[:300]), members, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, 3, None])
def test_threads_change_no_bit(fitted, fresh, monkeypatch, n_jobs):
    small_chunks(monkeypatch, 100)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    alone = fitted.set_params(n_jobs=1).score_samples(fresh)
    np.testing.assert_array_equal(fitted.set_params(n_jobs=n_jobs).score_samples(fresh), alone)


@pytest.mark.slow
def test_context_goes_with_its_rows(X, fresh, monkeypatch):
    detector = FusedDetector(QUICK, random_state=0).fit(X, context=X[:, 0])
    whole = detector.score_samples(fresh, fresh[:, 0])
    small_chunks(monkeypatch, 77)
    np.testing.assert_allclose(detector.score_samples(fresh, fresh[:, 0]), whole, rtol=1e-10)


def test_members_of_others_are_given_all_rows(X, fresh, monkeypatch):
    small_chunks(monkeypatch, 100)
    sizes = []

    class Counting(ocfuse.detectors.Pool):
        def score_samples(self, X):
            sizes.append(len(X))
            return super().score_samples(X)

    pool = Counting([("knn", KNN()), ("forest", IsolationForest(n_estimators=20))])
    detector = FusedDetector(pool, random_state=0).fit(X[:300])
    sizes.clear()
    detector.score_samples(fresh)
    assert sizes == [1500]


@pytest.mark.slow
def test_held_out_scores_are_those_of_fresh_rows(fitted, fresh):
    out_of_fold = fitted.training_scores_
    assert ks_2samp(out_of_fold, fitted.score_samples(fresh)).statistic < 0.06
    alarms = np.mean(fitted.predict(fresh) < 0)
    assert 0.02 < alarms < 0.085


@pytest.mark.slow
def test_neither_row_order_nor_units_change_the_scores(X, fresh):
    order = np.random.default_rng(3).permutation(len(X))
    unit = 10.0 ** np.arange(-3, 5)
    first = FusedDetector(QUICK, random_state=0).fit(X)
    second = FusedDetector(QUICK, random_state=0).fit(X[order])
    third = FusedDetector(QUICK, random_state=0).fit(X * unit)
    scores = first.score_samples(fresh)
    np.testing.assert_array_equal(second.score_samples(fresh), scores)
    np.testing.assert_allclose(third.score_samples(fresh * unit), scores, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_saved_and_loaded(fitted, fresh, tmp_path):
    again = ocfuse.load(fitted.save(tmp_path / "many.ocf"))
    assert again.pool_.pool_name_ == "large"
    np.testing.assert_array_equal(again.score_samples(fresh), fitted.score_samples(fresh))


class TestRowsFarOutside:
    @pytest.fixture
    def fits(self, monkeypatch):
        counted = []
        fit = Learned._fit_members

        def counting(learned, table):
            counted.append(len(learned.rows))
            fit(learned, table)

        monkeypatch.setattr(Learned, "_fit_members", counting)
        return counted

    @pytest.mark.slow
    def test_none_are_found_and_the_members_learn_once(self, X, fits):
        detector = FusedDetector(QUICK, random_state=0).fit(X)
        assert len(detector.trimmed_rows_) == 0
        assert fits == [2300]

    @pytest.mark.slow
    def test_glitches_are_left_out_before_the_members_learn(self, X, fits):
        spoilt = X.copy()
        spoilt[:5] += 1e3 * np.arange(1, 6)[:, np.newaxis]
        spoilt[5] *= 1e9  # hides the others until it is gone
        detector = FusedDetector(QUICK, random_state=0).fit(spoilt)
        np.testing.assert_array_equal(detector.trimmed_rows_, np.arange(6))
        assert fits == [2294]
        assert (detector.training_scores_[:6] < detector.offset_).all()

    @pytest.mark.slow
    def test_rows_that_somebody_vouches_for_stay(self, X, fits):
        spoilt = X.copy()
        spoilt[:5] += 1e3
        y = np.where(np.arange(len(X)) < 5, 1, np.nan)
        detector = FusedDetector(QUICK, random_state=0).fit(spoilt, y)
        assert len(detector.trimmed_rows_) == 0

    @pytest.mark.slow
    def test_rows_that_the_members_vouch_for_come_back(self, X, fits, monkeypatch):
        spoilt = X.copy()
        spoilt[:3] += 1e3
        vote = "ocfuse.ensemble.fit.is_voted_out"
        monkeypatch.setattr(vote, lambda S, out_of_fold: np.arange(len(S)) == 1)
        monkeypatch.setattr(
            "ocfuse.ensemble.fit.remote_groups", lambda X: np.zeros(len(X), dtype=bool)
        )
        detector = FusedDetector(QUICK, random_state=0).fit(spoilt)
        np.testing.assert_array_equal(detector.trimmed_rows_, [1])
        assert fits == [2297, 2299]

    @pytest.mark.slow
    def test_few_and_many_rows_lose_the_same(self, X, monkeypatch):
        spoilt = X[:1500].copy()
        spoilt[::300] *= -50
        few = FusedDetector(QUICK, random_state=0).fit(spoilt).trimmed_rows_
        monkeypatch.setattr("ocfuse.ensemble.fit.MANY_ROWS", 1000)
        monkeypatch.setattr("ocfuse.ensemble.outliers.MANY_ROWS", 1000)
        many = FusedDetector(QUICK, random_state=0).fit(spoilt).trimmed_rows_
        np.testing.assert_array_equal(few, np.arange(0, 1500, 300))
        np.testing.assert_array_equal(many, few)
