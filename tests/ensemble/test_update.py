"""FusedDetector.update: more normal rows without a fit."""

import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.svm import OneClassSVM

from ocfuse import FusedDetector, load
from ocfuse.detectors import GMM, KNN, KPCA, LOF, Marginal
from ocfuse.detectors.pool import Pool, make_pool
from ocfuse.exceptions import InvalidInputError, SuspectRowsWarning
from ocfuse.fusion import TrustFusion
from ocfuse.paper import PaperDetector

QUICK = {"gmm": GMM(1), "knn": KNN(5), "tails": Marginal()}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3)) @ RNG.normal(size=(3, 3))
NEW = X[400:]


@pytest.fixture(scope="module")
def fitted():
    return FusedDetector(QUICK, random_state=0).fit(X[:300])


def test_rows_are_counted_and_scored_before_they_are_learned(fitted):
    after = deepcopy(fitted).update(X[300:340])
    before = fitted.score_samples(X[300:340])
    np.testing.assert_array_equal(after.training_scores_[300:], before)
    assert len(after.training_) == len(fitted.training_) + 40
    assert (after.n_updates_, after.n_added_, after.n_dropped_) == (1, 40, 0)
    assert set(before) <= set(after.normal_scores_)
    np.testing.assert_array_equal(after.normal_scores_, np.sort(after.normal_scores_))
    # each by its number
    encoded = after.encoder_.transform(X[:340])
    np.testing.assert_allclose(after.training_, encoded[after.training_rows_])
    numbers = after.training_rows_[after.calibration_rows_]
    held_out = after.training_scores_[numbers]
    is_new = numbers >= 300
    np.testing.assert_array_equal(after.normal_scores_[is_new], held_out[is_new])
    assert (after.normal_scores_ <= held_out).all()


def test_the_threshold_keeps_its_rate(fitted):
    after = deepcopy(fitted).update(X[300:500])
    assert np.mean(after.normal_scores_ < after.offset_) <= 0.05
    assert after.threshold_rate_ == pytest.approx(0.05, abs=0.005)
    assert after.conformal_.is_out_of_fold_


@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4), memory=st.integers(100, 400))
def test_numbers_of_rows_stay_in_step(fitted, sizes, memory):
    after, place = deepcopy(fitted), 300
    for size in sizes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspectRowsWarning)
            after.update(X[place : place + size], memory=memory)
        place += size
    n = len(after.training_)
    assert n == min(memory, 300 - len(fitted.trimmed_rows_) + after.n_added_)
    assert after.n_dropped_ == len(fitted.training_) + after.n_added_ - n
    first = place - len(after.training_scores_)
    encoded = after.encoder_.transform(X[first:place])
    np.testing.assert_allclose(after.training_, encoded[after.training_rows_])
    at = after.training_place_
    np.testing.assert_array_equal(at[after.training_rows_], np.arange(n))
    assert len(at) == place - first
    assert len(after.pool_.out_of_fold_scores_) == len(after.pool_.fold_) == n
    assert len(after.calibration_rows_) == len(after.normal_scores_) == n
    assert ((after.trimmed_rows_ >= 0) & (after.trimmed_rows_ < place - first)).all()


def test_one_update_or_several_know_the_same_rows(fitted):
    once = deepcopy(fitted).update(X[300:380], memory=250)
    twice = deepcopy(fitted).update(X[300:340], memory=250).update(X[340:380], memory=250)
    np.testing.assert_array_equal(np.sort(once.training_, axis=0), np.sort(twice.training_, axis=0))
    S = [d.pool_.score_samples(d.encoder_.transform(NEW)) for d in (once, twice)]
    np.testing.assert_allclose(S[0], S[1], rtol=1e-9)


def test_an_update_is_the_same_each_time(fitted):
    first, second = (deepcopy(fitted).update(X[300:340]) for _ in range(2))
    np.testing.assert_array_equal(first.score_samples(NEW), second.score_samples(NEW))
    assert first.offset_ == second.offset_


def test_a_new_normal_is_learned_and_an_anomaly_is_not(fitted):
    moved = X[300:360] + np.array([0, 0, 2.0])
    after = deepcopy(fitted)
    with pytest.warns(SuspectRowsWarning, match="below the threshold"):
        after.update(moved, y=np.ones(60))
    assert after.score_samples(moved + 0.01).mean() > fitted.score_samples(moved + 0.01).mean()
    odd = X[300:330].copy()
    odd[:2] += 90
    with pytest.warns(SuspectRowsWarning, match="2 of 30 rows are far outside"):
        after = deepcopy(fitted).update(odd)
    assert after.n_added_ == 28
    assert after.trimmed_rows_[-2:].tolist() == [300, 301]
    assert (after.training_place_[[300, 301]] == -1).all()
    assert (after.predict(odd[:2]) == -1).all()
    assert after.conformal_.n_left_out_ >= 2
    # unless they are known to be normal, or known not to be
    known = deepcopy(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspectRowsWarning)
        known.update(odd, y=np.ones(30))
        assert known.n_added_ == 30
        labelled = deepcopy(fitted).update(odd, y=np.where(np.arange(30) < 2, -1, 0))
    assert labelled.n_added_ == 28
    assert len(labelled.trimmed_rows_) == len(fitted.trimmed_rows_)


def test_rows_most_of_which_are_far_are_refused_and_nothing_changes(fitted):
    after = deepcopy(fitted)
    with pytest.raises(InvalidInputError, match="30 of 30 rows are far outside"):
        after.update(X[300:330] + 90)
    assert after.n_updates_ == 0
    np.testing.assert_array_equal(after.score_samples(NEW), fitted.score_samples(NEW))


def test_copies_are_learned_once(fitted):
    twice = np.vstack([X[10:20], X[300:310], X[300:310]])
    after = deepcopy(fitted).update(twice)
    assert after.n_added_ == 10
    assert len(after.copied_rows_) == 20
    # of a row that was learned, and of one of the same update
    assert after.training_place_[300] == fitted.training_place_[10]
    assert after.training_place_[320] == after.training_place_[310]
    same = deepcopy(fitted).update(X[:50])
    np.testing.assert_array_equal(same.score_samples(NEW), fitted.score_samples(NEW))
    assert same.n_updates_ == 0


def test_equal_rows_of_a_discrete_table_are_no_copies():
    votes = np.random.default_rng(0).integers(0, 2, size=(500, 4)).astype(float)
    detector = FusedDetector(QUICK, random_state=0).fit(votes[:400])
    assert detector.update(votes[400:]).n_added_ == 100


def test_members_of_others_are_kept_and_named():
    members = [("knn", KNN(5)), ("svm", OneClassSVM(gamma=0.5))]
    detector = FusedDetector(members, random_state=0).fit(X[:300])
    before = detector.pool_.score_samples(detector.encoder_.transform(NEW))[:, 1]
    detector.update(X[300:340])
    assert detector.unchanged_members_ == ["svm"]
    after = detector.pool_.score_samples(detector.encoder_.transform(NEW))[:, 1]
    np.testing.assert_array_equal(before, after)


def test_rows_that_have_moved_ask_for_a_fit(fitted):
    after = deepcopy(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspectRowsWarning)
        after.update(X[300:340], memory=300)
        assert after.refit_reason_ == ""
        after.update(X[340:540], memory=300)
    assert after.refit_reason_ == "80% of the rows have come since the fit."
    moved = deepcopy(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspectRowsWarning)
        moved.update(X[300:440] + X.std(axis=0), y=np.ones(140), memory=150)
    assert "have moved by more than 0.5 of their spread" in moved.refit_reason_
    again = moved.fit(X[:300])
    assert (again.n_updates_, again.refit_reason_, again.start_) == (0, "", None)


def test_what_is_usual_goes_along(fitted):
    far = X[300:340].copy()
    far[0] = X[:300].max(axis=0) * 1.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspectRowsWarning)
        after = deepcopy(fitted).update(far, y=np.ones(40))
    assert after.usual_.n_rows == fitted.usual_.n_rows + 40
    np.testing.assert_allclose(after.usual_.most, far[0])


def test_calibration_by_other_rows_stays_and_new_ones_join(fitted):
    calibrated = deepcopy(fitted).calibrate(X[300:400])
    assert calibrated.certificate().is_exact
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspectRowsWarning)
        after = deepcopy(calibrated).update(X[400:440]).update(X[440:500], memory=100)
        assert set(calibrated.normal_scores_) <= set(after.normal_scores_)
        assert len(after.normal_scores_) == 200
        later = after.update(X[500:580], memory=100)
    # those of the first update are forgotten, and those of the second in part
    assert len(later.normal_scores_) == 100 + 100
    assert not later.certificate().is_exact


def test_adapt_prune_explain_and_report_know_the_rows(fitted):
    detector = FusedDetector(QUICK, fusion=TrustFusion(), random_state=0).fit(X[:300])
    detector.update(X[300:360], memory=320)
    detector.adapt(NEW)
    detector.prune(0.2)
    found = detector.explain(NEW[:3])
    assert len(found) == 3
    assert "<html" in str(detector.report(NEW).html)[:200].lower()


def test_a_file_keeps_what_an_update_has_learned(tmp_path):
    members = [
        ("kpca", KPCA(20, max_samples=60, landmarks=60)),
        ("lof", LOF(10)),
        *((name, m) for name, m in make_pool("default") if name in ("maha", "iforest", "gmm-3")),
    ]
    detector = FusedDetector(members, random_state=0).fit(X[:550]).update(X[550:580])
    loaded = load(detector.save(tmp_path / "updated.ocf"))
    np.testing.assert_array_equal(loaded.score_samples(NEW), detector.score_samples(NEW))
    assert (loaded.n_updates_, loaded.n_added_) == (1, 30)
    both = [one.update(X[580:600]).score_samples(NEW) for one in (loaded, detector)]
    np.testing.assert_array_equal(*both)


def test_what_cannot_be_updated_is_refused(fitted):
    grouped = FusedDetector(QUICK, random_state=0).fit(X[:300], groups=np.arange(300) // 10)
    with pytest.raises(InvalidInputError, match="counts groups"):
        grouped.update(NEW)
    for memory in (0, 99, 1.5, True):
        with pytest.raises(InvalidInputError, match="memory must be"):
            deepcopy(fitted).update(NEW, memory=memory)
    with pytest.raises(ValueError, match="features"):
        deepcopy(fitted).update(NEW[:, :2])
    paper = PaperDetector(random_state=0)
    paper.fit(X[:200])
    with pytest.raises(InvalidInputError, match="PaperDetector holds rows back"):
        paper.update(NEW)


def test_frames_with_categories_and_gaps_are_read_as_in_fit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": rng.choice(["x", "y"], 400)})
    detector = FusedDetector(QUICK, random_state=0).fit(frame[:300])
    after = deepcopy(detector).update(frame[300:])
    assert after.usual_.levels[1]["x"] == int((frame["b"] == "x").sum())
    with pytest.raises(ValueError, match="feature names"):
        deepcopy(detector).update(frame[300:].rename(columns={"a": "c"}))


def test_rows_of_machines_are_measured_from_what_is_usual_for_each():
    rng = np.random.default_rng(0)
    machine = rng.integers(0, 4, 500)
    frame = pd.DataFrame({"machine": [f"m{i}" for i in machine], "a": rng.normal(size=500)})
    frame["a"] += 20 * machine
    frame["b"] = frame["a"] / 2 + rng.normal(size=500)
    detector = FusedDetector(QUICK, random_state=0, by="machine").fit(frame[:400])
    detector.update(frame[400:])
    assert detector.n_added_ == 100
    wrong = frame[:1].assign(machine="m3", a=0.0, b=0.0)
    assert detector.predict(wrong)[0] == -1


#: What an update is held to, on rows of real tables: agreement of the ranks of the scores with a
#: fit of the same seed, of the alarms, and how far the share of false alarms may be off.
RANKS, ALARMS, RATE = 0.95, 0.97, 0.03


@pytest.mark.parametrize("name", ["2_annthyroid", "28_pendigits"])
def test_an_update_agrees_with_a_fit_on_real_tables(name, data):
    table = np.load(data / "adbench" / f"{name}.npz")
    N, A = (table["X"][table["y"] == y].astype(float) for y in (0, 1))
    N = N[np.random.default_rng(0).permutation(len(N))[:1000]]
    rows, fresh = N[:600], np.vstack([N[600:], A[:80]])
    pool = Pool([pair for pair in make_pool("large") if pair[0] not in ("ckpca-0.25", "iforest")])
    updated = FusedDetector(pool, random_state=0).fit(rows[:570])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspectRowsWarning)
        for part in np.array_split(rows[570:], 3):
            updated.update(part)
    fit = FusedDetector(pool, random_state=0).fit(rows)
    scores = [detector.score_samples(fresh) for detector in (updated, fit)]
    alarms = [s < d.offset_ for s, d in zip(scores, (updated, fit), strict=True)]
    assert spearmanr(*scores)[0] > RANKS
    assert np.mean(alarms[0] == alarms[1]) > ALARMS
    rates = [a[:400].mean() for a in alarms]
    assert abs(rates[0] - rates[1]) < RATE
