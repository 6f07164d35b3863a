"""What we promise of FusedDetector, each promise a test.

Scoring is deterministic, changes no state and does not depend on the batch;
`random_state` fixes everything; the order of the training rows, `n_jobs` and
the units of a column change nothing; the caller's estimators are never fitted;
the false-alarm rate holds on fresh normals; the threshold moves without a fit.
"""

import copy
import pickle

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor

from ocfuse import FusedDetector, load
from ocfuse.detectors import GMM, KNN, KPCA, LOF, SVDD, OneClassGP, Pool
from ocfuse.exceptions import CopiedRowsWarning, FewSamplesWarning
from ocfuse.fusion import LpFusion, SumRule
from ocfuse.fusion.stacking import StackedFusion

MEMBERS = [
    ("svdd", SVDD()),
    ("gp", OneClassGP()),
    ("kpca", KPCA(width=0.5)),
    ("gmm", GMM(n_components=2)),
    ("knn", KNN()),
    ("lof", LOF(n_neighbors=10)),
    ("forest", IsolationForest(n_estimators=20)),
    ("sklof", LocalOutlierFactor(n_neighbors=10, novelty=True)),
]
pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.ThresholdWarning")
FUSIONS = [None, LpFusion(p=2.0), SumRule(), "max", "vote", "cascade", "stacking", "single-best"]


def two_blobs(n, seed, m=4):
    rng = np.random.default_rng(seed)
    centre = np.where(rng.random(n) < 0.5, 3.0, -3.0)[:, np.newaxis]
    return rng.normal(size=(n, m)) * [1, 2, 0.5, 1][:m] + centre


@pytest.fixture(scope="module", name="X")
def normal_rows():
    return two_blobs(150, 0)


@pytest.fixture(scope="module")
def queries(X):
    rng = np.random.default_rng(1)
    return np.vstack([two_blobs(30, 2), rng.uniform(-9, 9, (30, 4)), X[:10], X[:1] * 1e6])


@pytest.fixture(scope="module")
def fitted(X):
    return FusedDetector(MEMBERS, random_state=0).fit(X)


@pytest.fixture(scope="module", params=FUSIONS, ids=str)
def detector(request, X):
    """Return a detector with each of the fusions."""
    return FusedDetector(MEMBERS, fusion=request.param, random_state=0).fit(X)


@pytest.mark.slow
def test_one_by_one_equals_batch(detector, queries):
    batch = detector.score_samples(queries)
    assert np.isfinite(batch).all()
    some = slice(1, None, 3)  # of every kind
    one_by_one = [detector.score_samples(row[np.newaxis])[0] for row in queries[some]]
    np.testing.assert_allclose(one_by_one, batch[some], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(detector.score_samples(queries[::-1]), batch[::-1], rtol=1e-10)


def test_contributions_add_up(detector, queries):
    why = detector.explain(queries[:5])
    total = why.base + why.contributions.sum(1)
    np.testing.assert_allclose(total, why.score, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(why.score, detector.score_samples(queries[:5]))


@pytest.mark.slow
def test_scoring_changes_no_state(X, queries):
    # without scikit-learn's LOF, whose tree counts its own calls
    fitted = FusedDetector(MEMBERS[:-1], random_state=0).fit(X)
    before = pickle.dumps(fitted)
    first = fitted.score_samples(queries)
    fitted.predict(queries)
    fitted.explain(queries[:2])
    fitted.p_values(queries)
    np.testing.assert_array_equal(fitted.score_samples(queries), first)
    assert pickle.dumps(fitted) == before


@pytest.mark.slow
def test_random_state_fixes_the_parts_of_a_fusion_too(X, queries):
    fusion = StackedFusion(RandomForestClassifier(10))
    first, second = (
        FusedDetector(MEMBERS[:3], fusion=fusion, random_state=0).fit(X).score_samples(queries)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_random_state_fixes_everything(X, queries, fitted):
    again = FusedDetector(MEMBERS, random_state=0).fit(X)
    np.testing.assert_array_equal(again.score_samples(queries), fitted.score_samples(queries))
    assert again.offset_ == fitted.offset_
    other = FusedDetector(MEMBERS, random_state=1).fit(X)
    assert (other.score_samples(queries) != fitted.score_samples(queries)).any()


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs_changes_nothing(X, queries, fitted, n_jobs):
    parallel = FusedDetector(MEMBERS, random_state=0, n_jobs=n_jobs).fit(X)
    np.testing.assert_array_equal(parallel.score_samples(queries), fitted.score_samples(queries))
    assert parallel.offset_ == fitted.offset_


@pytest.mark.slow
def test_the_order_of_the_training_rows_changes_nothing(X, queries, fitted):
    order = np.random.default_rng(3).permutation(len(X))
    shuffled = FusedDetector(MEMBERS, random_state=0).fit(X[order])
    np.testing.assert_array_equal(shuffled.score_samples(queries), fitted.score_samples(queries))
    assert shuffled.offset_ == fitted.offset_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
@pytest.mark.parametrize(("members", "with_labels"), [("light", False), (MEMBERS[:6], True)])
def test_the_order_changes_nothing_in_wide_tables_with_glitches(members, with_labels):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(60, 60))
    rows[:2] *= 1e3
    y = np.r_[np.full(50, np.nan), -np.ones(10)] if with_labels else np.full(60, np.nan)
    order = rng.permutation(60)
    first = FusedDetector(members, random_state=0).fit(rows, y)
    second = FusedDetector(members, random_state=0).fit(rows[order], y[order])
    np.testing.assert_array_equal(first.training_scores_[order], second.training_scores_)
    assert first.offset_ == second.offset_


def test_the_units_of_a_column_change_nothing(X, queries, fitted):
    scale, shift = np.array([1e3, 1e-3, 7.0, 0.1]), np.array([5.0, 0.0, -1e2, 3.0])
    scaled = FusedDetector(MEMBERS, random_state=0).fit(X * scale + shift)
    near = queries[:60]
    first, second = fitted.score_samples(near), scaled.score_samples(near * scale + shift)
    # the last bits differ, and weights are solved to 1e-4
    np.testing.assert_allclose(second, first, rtol=1e-2, atol=1e-3)


def test_the_callers_estimators_are_never_fitted(X):
    members = [("forest", IsolationForest(n_estimators=5)), ("knn", KNN())]
    fusion = LpFusion(p=2.0)
    before = [vars(copy.deepcopy(e)) for _, e in members] + [vars(copy.deepcopy(fusion))]
    FusedDetector(members, fusion=fusion, random_state=0).fit(X).predict(X)
    after = [vars(e) for _, e in members] + [vars(fusion)]
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_the_false_alarm_rate_holds_on_fresh_normals(rate):
    """Mean over draws, with its Monte-Carlo error; threshold from held-out training rows."""
    rates = []
    for seed in range(12):
        detector = FusedDetector("light", false_alarm_rate=rate, random_state=seed)
        detector.fit(two_blobs(200, seed))
        rates.append(np.mean(detector.predict(two_blobs(1000, 1000 + seed)) == -1))
    error = np.std(rates) / np.sqrt(len(rates))
    assert np.mean(rates) <= rate + 2.5 * error
    assert np.mean(rates) >= rate / 4  # and it is not vacuous


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("pool", ["default", "paper"])
def test_the_rate_holds_on_smooth_data(pool, m):
    rates = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        detector = FusedDetector(pool, random_state=seed).fit(rng.normal(size=(200, m)))
        rates.append(np.mean(detector.predict(rng.normal(size=(1000, m))) == -1))
    assert np.mean(rates) <= 0.05 + 2.5 * np.std(rates) / np.sqrt(len(rates))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
@pytest.mark.parametrize(("n", "m"), [(30, 60), (30, 13)])
def test_the_rate_holds_with_few_rows_for_the_columns(n, m):
    """Standardising by the training rows makes them look nearer: it must be held out too."""
    rates = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        detector = FusedDetector("light", false_alarm_rate=0.1, random_state=seed)
        detector.fit(rng.normal(size=(n, m)))
        rates.append(np.mean(detector.predict(rng.normal(size=(500, m))) == -1))
    assert np.mean(rates) <= 0.1 + 2.5 * np.std(rates) / np.sqrt(len(rates))


@pytest.mark.slow
def test_calibration_on_fresh_normals_gives_the_exact_rate():
    detector = FusedDetector("light", false_alarm_rate=0.1, random_state=0).fit(two_blobs(100, 0))
    rates = []
    for seed in range(100):
        detector.calibrate(two_blobs(99, 10 + seed))
        rates.append(np.mean(detector.predict(two_blobs(500, 5000 + seed)) == -1))
    assert detector.threshold_rate_ == pytest.approx(0.1)
    assert np.mean(rates) == pytest.approx(0.1, abs=3 * np.std(rates) / 10)


def test_p_values_are_uniform_on_normals_and_small_on_anomalies(fitted):
    p = fitted.p_values(two_blobs(2000, 7))
    for level in (0.05, 0.2, 0.5):
        # 150 training rows: their own scatter around the level
        assert np.mean(p <= level) <= level + 3 * np.sqrt(level * (1 - level) / 150)
    assert fitted.p_values(np.full((1, 4), 50.0)) == 1 / 151


def test_discoveries_keep_the_share_of_false_ones():
    detector = FusedDetector("light", random_state=0).fit(two_blobs(400, 0))
    shares = []
    for seed in range(20):
        batch = np.vstack([two_blobs(90, 100 + seed), np.full((10, 4), 40.0)])
        picked = detector.discoveries(batch, fdr=0.2)
        assert picked[90:].all()
        shares.append(picked[:90].sum() / picked.sum())
    assert np.mean(shares) <= 0.2 + 2.5 * np.std(shares) / np.sqrt(20)


def test_the_threshold_moves_without_a_fit(fitted, queries):
    detector = copy.deepcopy(fitted)
    scores = detector.score_samples(queries)
    alarms = [
        np.sum(detector.set_threshold(rate).predict(queries) == -1) for rate in (0.01, 0.1, 0.5)
    ]
    assert alarms == sorted(alarms)
    assert alarms[0] < alarms[2]
    np.testing.assert_array_equal(detector.score_samples(queries), scores)
    detector.set_threshold(offset=float(np.median(scores)))
    np.testing.assert_array_equal(detector.predict(queries) == -1, scores < np.median(scores))


def test_a_rate_below_what_the_rows_can_guarantee_warns():
    with pytest.warns(FewSamplesWarning, match="0.01"):
        detector = FusedDetector("light", false_alarm_rate=0.01, random_state=0).fit(
            two_blobs(30, 0)
        )
    assert detector.threshold_rate_ == pytest.approx(1 / 31)


@pytest.mark.slow
def test_a_saved_detector_scores_the_same_bits(fitted, queries, tmp_path):
    loaded = load(fitted.save(tmp_path / "model.ocf"))
    np.testing.assert_array_equal(loaded.score_samples(queries), fitted.score_samples(queries))
    np.testing.assert_array_equal(loaded.p_values(queries), fitted.p_values(queries))
    np.testing.assert_array_equal(loaded.predict_proba(queries), fitted.predict_proba(queries))
    np.testing.assert_array_equal(
        loaded.explain(queries[:2]).attributions, fitted.explain(queries[:2]).attributions
    )


def test_duplicates_of_every_row_change_nothing(X, queries):
    members = [("gmm", GMM(n_components=1)), ("kpca", KPCA(subspace=10))]
    first = FusedDetector(Pool(members), fusion="sum", negatives=None).fit(X)
    second = FusedDetector(Pool(members), fusion="sum", negatives=None)
    with pytest.warns(CopiedRowsWarning, match="50% of the"):
        second.fit(np.repeat(X, 2, axis=0))
    np.testing.assert_array_equal(
        first.score_samples(queries[:60]), second.score_samples(queries[:60])
    )
    assert first.offset_ == second.offset_


@pytest.mark.slow
def test_rows_left_out_still_count_for_the_threshold():
    """Of heavy-tailed normals a few are left out; the rate must hold for fresh ones too."""

    def heavy(n, seed):
        rng = np.random.default_rng(seed)
        return two_blobs(n, seed) * np.where(rng.random(n) < 0.015, 60.0, 1.0)[:, np.newaxis]

    rates, trimmed = [], 0
    for seed in range(10):
        detector = FusedDetector("light", false_alarm_rate=0.05, random_state=seed)
        detector.fit(heavy(200, seed))
        trimmed += len(detector.trimmed_rows_)
        rates.append(np.mean(detector.predict(heavy(1000, 100 + seed)) == -1))
    assert trimmed > 0
    assert np.mean(rates) <= 0.05 + 2.5 * np.std(rates) / np.sqrt(len(rates))
