"""FusedDetector in every situation that a user may bring."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, Pool
from ocfuse.ensemble.fit import Learned, Recipe, Table
from ocfuse.exceptions import (
    CellsWarning,
    FewSamplesWarning,
    InvalidInputError,
    MemberError,
    MemberWarning,
    PseudoNegativeWarning,
    SuspectRowsWarning,
    ThresholdWarning,
)
from ocfuse.fusion import LocalLpFusion, LpFusion
from ocfuse.fusion.stacking import StackedFusion
from ocfuse.groups import Groups
from ocfuse.negatives import Shuffle
from ocfuse.scores import MinMax, ZScore
from ocfuse.streaming import blocks
from ocfuse.system.progress import silent

FEW = [("knn", KNN()), ("gmm", GMM(n_components=1))]
pytestmark = [
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.EqualWeightsWarning"),
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning"),
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.ThresholdWarning"),
]


def ring(n, seed, radius=3.0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.2, (n, 2))


@pytest.fixture(scope="module", name="X")
def normal_rows():
    return ring(120, 0)


@pytest.fixture(scope="module")
def anomalies():
    return ring(40, 1, radius=1.2)


def auc(detector, normal, anomalies):
    scores = detector.score_samples(np.vstack([normal, anomalies]))
    return roc_auc_score(np.arange(len(scores)) < len(normal), scores)


class Broken(BaseEstimator):
    """A member that fails where it is told to."""

    def __init__(self, where="fit"):
        self.where = where

    def fit(self, X, y=None):
        if self.where == "fit":
            raise RuntimeError("the sensor is on fire")
        self.n_ = len(X)
        return self

    def score_samples(self, X):
        if self.where == "score":
            raise RuntimeError("the sensor is on fire")
        return np.full(len(X), np.nan)


class TestSituations:
    def test_pure(self, X, anomalies):
        detector = FusedDetector("light", random_state=0).fit(X)
        assert auc(detector, ring(100, 2), anomalies) > 0.95
        assert detector.predict(np.zeros((1, 2))) == -1

    @pytest.mark.slow
    def test_labels_help_where_the_pure_fusion_is_blind(self):
        """One member sees the anomalies, the others do not: ten labels find it."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        anomalies = rng.normal(size=(60, 3)) * [1, 1, 0.02]  # too close to 0 in the third feature

        class Inner(BaseEstimator):
            def fit(self, X, y=None):
                return self

            def score_samples(self, X):
                return np.abs(X[:, 2])

        members = [*FEW, ("inner", Inner())]
        test = rng.normal(size=(200, 3))
        pure = FusedDetector(members, random_state=0).fit(X)
        y = np.r_[np.ones(200), -np.ones(20)]
        labelled = FusedDetector(members, random_state=0).fit(np.vstack([X, anomalies[:20]]), y)
        assert auc(labelled, test, anomalies[20:]) > auc(pure, test, anomalies[20:]) + 0.2

    @pytest.mark.slow
    def test_unknown_rows_are_learned_from(self, X, anomalies):
        y = np.full(len(X) + 10, np.nan)
        y[:20], y[-10:] = 1, -1
        detector = FusedDetector(FEW, random_state=0).fit(np.vstack([X, anomalies[:10]]), y)
        assert len(detector.training_) == len(X)
        assert auc(detector, ring(100, 2), anomalies[10:]) > 0.9

    def test_anomalies_are_never_learned_as_normal(self, X, anomalies):
        y = np.r_[np.ones(len(X)), -np.ones(10)]
        labelled = FusedDetector(FEW, fusion="sum", random_state=0)
        labelled.fit(np.vstack([X, anomalies[:10]]), y)
        pure = FusedDetector(FEW, fusion="sum", random_state=0).fit(X, np.ones(len(X)))
        np.testing.assert_array_equal(labelled.score_samples(X), pure.score_samples(X))

    @pytest.mark.slow
    def test_boolean_labels_say_whether_a_row_is_normal(self, X, anomalies):
        both = np.vstack([X, anomalies[:10]])
        y = np.arange(len(both)) < len(X)
        first = FusedDetector(FEW, random_state=0).fit(both, y)
        second = FusedDetector(FEW, random_state=0).fit(both, np.where(y, 1, -1))
        np.testing.assert_array_equal(first.score_samples(both), second.score_samples(both))

    def test_dirty_training_data(self, X):
        far = np.random.default_rng(3).uniform(-400, 400, (6, 2))
        detector = FusedDetector("light", random_state=0).fit(np.vstack([X, far]))
        np.testing.assert_array_equal(detector.trimmed_rows_, np.arange(120, 126))
        clean = FusedDetector("light", random_state=0).fit(X)
        query = ring(50, 5)
        np.testing.assert_array_equal(detector.score_samples(query), clean.score_samples(query))

    def test_a_glitch_hides_no_other(self, X):
        far = np.array([[1e9, 0.0], [0.0, -1e4], [60.0, 60.0]])
        detector = FusedDetector(FEW, random_state=0).fit(np.vstack([X, far]))
        np.testing.assert_array_equal(detector.trimmed_rows_, [120, 121, 122])

    @pytest.mark.parametrize("share", [0.0, 0.03, 0.06, 0.09, 0.15])
    def test_glitches_neither_blind_nor_alarm(self, share):
        n = int(share * 200)
        glitches = np.random.default_rng(7).uniform(-400, 400, (n, 2))
        detector = FusedDetector(FEW, random_state=0).fit(np.vstack([ring(200, 0), glitches]))
        assert len(detector.trimmed_rows_) >= 0.9 * n
        assert np.mean(detector.predict(ring(500, 1)) == -1) < 0.1
        assert np.mean(detector.predict(ring(100, 2, radius=1.0)) == -1) > 0.9
        assert (detector.predict([[0.0, 0.0], [10.0, 10.0]]) == -1).all()

    def test_many_glitches_warn(self, X):
        glitches = np.random.default_rng(7).uniform(-400, 400, (20, 2))
        with pytest.warns(ThresholdWarning, match=r"20 of 140 .* y = \+1"):
            FusedDetector(FEW, random_state=0).fit(np.vstack([X, glitches]))

    def test_a_hidden_group_does_not_vouch_for_itself(self, X):
        rng = np.random.default_rng(7)
        group = 40 + 0.01 * rng.normal(size=(8, 2))
        with pytest.warns(ThresholdWarning, match="8 of 128"):
            detector = FusedDetector(FEW, random_state=0).fit(np.vstack([X, group]))
        np.testing.assert_array_equal(detector.trimmed_rows_, np.arange(120, 128))
        assert (detector.predict(40 + 0.01 * rng.normal(size=(5, 2))) == -1).all()

    def test_a_large_group_may_be_a_mode_and_is_learned(self, X):
        mode = 40 + np.random.default_rng(7).normal(size=(20, 2))
        rows = np.vstack([X, mode])
        with pytest.warns(SuspectRowsWarning, match=r"20 of 140 .* y = -1 .* y = \+1"):
            detector = FusedDetector(FEW, random_state=0).fit(rows)
        assert len(detector.trimmed_rows_) == 0
        assert np.mean(detector.predict(mode) == 1) > 0.5
        FusedDetector(FEW, random_state=0).fit(rows, np.ones(140))  # warns of nothing

    @pytest.mark.slow
    def test_glitches_do_not_spoil_probabilities(self, X, anomalies):
        glitches = np.random.default_rng(7).uniform(-400, 400, (3, 2))
        y = np.r_[np.zeros(123), -np.ones(20)]
        rows = np.vstack([X, glitches, anomalies[:20]])
        with pytest.warns(ThresholdWarning):
            detector = FusedDetector(FEW, false_alarm_rate=0.02, random_state=0).fit(rows, y)
        assert detector.predict_proba([[500.0, 500.0]])[0, 0] > 0.9

    def test_unknown_rows_do_not_set_the_threshold_where_enough_are_known(self, X, anomalies):
        """Half of the unknown rows are anomalies; the known ones are clean."""
        y = np.r_[np.ones(60), np.full(40, np.nan)]
        rows = np.vstack([X[:80], anomalies[:20]])
        detector = FusedDetector(FEW, fusion="sum", random_state=0).fit(rows, y)
        assert len(detector.normal_scores_) == 60

    def test_groups_of_anomalies_stay_together(self, X, anomalies):
        groups = np.r_[np.repeat(np.arange(12), 10), np.repeat(np.arange(20, 28), 5)]
        rows, y = np.vstack([X, anomalies]), np.r_[np.ones(120), -np.ones(40)]
        table = Table(rows, y.astype(int), Groups(groups))
        learned = Learned(table, Recipe(FEW, None, "min-max", None, 0, None, silent))
        fold = learned.scored.fold[120:]
        for group in range(20, 28):
            assert len(set(fold[groups[learned.anomalies] == group])) == 1

    def test_rows_that_somebody_vouches_for_are_never_trimmed(self, X):
        far = np.array([[40.0, 40.0], [41.0, 40.0], [40.0, 42.0]])
        both = np.vstack([X, far])
        with pytest.warns(ThresholdWarning):
            trimmed = FusedDetector(FEW, false_alarm_rate=0.02).fit(both).trimmed_rows_
        assert len(trimmed) == 3
        assert len(FusedDetector(FEW).fit(both, np.ones(len(both))).trimmed_rows_) == 0

    @pytest.mark.slow
    def test_clean_data_keeps_its_rows(self):
        for seed in range(5):
            X = np.random.default_rng(seed).standard_t(5, size=(300, 3))
            assert len(FusedDetector(FEW, random_state=seed).fit(X).trimmed_rows_) <= 3

    @pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
    def test_groups_stay_together(self, X):
        """Rows of one group are alike: only whole groups held out are honest about them."""
        noise = np.random.default_rng(0).normal(scale=0.02, size=(120, 2))
        alike = np.repeat(X[:30], 4, axis=0) + noise
        groups = np.repeat(np.arange(30), 4)
        plain = FusedDetector([KNN(n_neighbors=1)], fusion="sum").fit(alike)
        grouped = FusedDetector([KNN(n_neighbors=1)], fusion="sum").fit(alike, groups=groups)
        held_out = plain.pool_.out_of_fold_scores_, grouped.pool_.out_of_fold_scores_
        assert np.median(held_out[0]) > 3 * np.median(held_out[1])  # nearer to 0
        fresh = ring(400, 9)
        assert np.mean(grouped.predict(fresh) == -1) < np.mean(plain.predict(fresh) == -1)

    @pytest.mark.slow
    def test_the_threshold_counts_groups(self):
        """Runs differ: asked of rows the rate is exceeded, asked of runs it holds."""
        rng = np.random.default_rng(0)

        def draw(k):
            return np.repeat(rng.normal(size=(k, 2)), 10, axis=0) + rng.normal(0, 0.2, (10 * k, 2))

        run = np.repeat(np.arange(40), 10)
        detector = FusedDetector(FEW, random_state=0).fit(draw(40), np.ones(400), run)
        assert detector.n_groups_ == 40
        by_run, by_row, fresh = [], [], draw(200)
        scores = detector.score_samples(fresh)
        for _ in range(15):
            known = draw(40)
            by_run.append((scores < detector.calibrate(known, groups=run).offset_).mean())
            agrees = (detector.conformal_.p_values(scores) <= 0.05) == (scores < detector.offset_)
            assert agrees.all()
            by_row.append((scores < detector.calibrate(known).offset_).mean())
            assert detector.n_groups_ is None
        assert np.mean(by_run) < min(0.07, np.mean(by_row))

    def test_few_groups_are_told(self, X):
        run = np.arange(120) // 20
        with pytest.warns(FewSamplesWarning, match=r"6 groups are .* at least 19 .* least 0\.143;"):
            detector = FusedDetector(FEW, random_state=0).fit(X, np.ones(120), run)
        assert detector.offset_ == detector.normal_scores_[0]
        assert detector.threshold_rate_ == 1 / 7
        detector.set_threshold(offset=float(np.median(detector.normal_scores_)))
        assert 0.3 < detector.threshold_rate_ < 0.7
        with pytest.warns(FewSamplesWarning, match="One group cannot tell how groups differ"):
            detector.calibrate(X, groups=np.zeros(120))

    def test_blocks_of_one_run_are_no_sample_of_runs(self, X):
        detector = FusedDetector(FEW, random_state=0).fit(X, np.ones(120), blocks(120, 4, 5))
        assert detector.n_groups_ is None
        assert detector.threshold_rate_ <= 0.05

    @pytest.mark.slow
    def test_scikit_learn_members_as_they_are(self, X):
        members = [
            LocalOutlierFactor(novelty=True),
            IsolationForest(n_estimators=20),
            GaussianMixture(2),
            OneClassSVM(nu=0.1),
            make_pipeline(StandardScaler(), OneClassSVM()),
        ]
        detector = FusedDetector(members, random_state=0).fit(X)
        assert auc(detector, ring(100, 2), ring(40, 1, radius=5.0)) > 0.9


class TestEdges:
    @pytest.mark.slow
    @pytest.mark.parametrize("members", ["default", "light", "paper", "paper-all"])
    @pytest.mark.parametrize("n", [5, 12])
    def test_few_rows_many_members(self, members, n):
        X = np.random.default_rng(n).normal(size=(n, 3))
        detector = FusedDetector(members, random_state=0).fit(X)
        scores = detector.score_samples(np.vstack([X, np.full((1, 3), 50.0)]))
        assert np.isfinite(scores).all()
        assert scores[-1] < scores[:-1].min()

    @pytest.mark.parametrize("n", [0, 1, 4])
    def test_too_few_rows(self, n):
        with pytest.raises(ValueError, match=f"n_samples = {n}" if n else "0 sample"):
            FusedDetector().fit(np.ones((n, 2)))

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "X",
        [
            np.zeros((20, 3)),
            np.repeat(np.eye(3), 10, axis=0),
            np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float),
            np.random.default_rng(0).normal(size=(40, 1)),
            np.random.default_rng(0).normal(size=(20, 200)),
            np.random.default_rng(0).normal(size=(30, 3)) * [1, 1e-12, 1e12],
            np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32),
            np.column_stack([np.arange(30), np.full(30, 7)]),
        ],
        ids=["equal", "duplicates", "binary", "1 column", "wide", "scales", "float32", "int"],
    )
    def test_awkward_tables(self, X):
        detector = FusedDetector(random_state=0).fit(X)
        far = np.asarray(X[:1], dtype=float) + 1e3 * (1 + np.abs(X[:1]))
        scores = detector.score_samples(np.vstack([X, far]))
        assert np.isfinite(scores).all()
        assert scores[-1] < np.median(scores[:-1])
        assert detector.predict(far) == -1

    @pytest.mark.slow
    def test_more_than_a_thousand_columns(self):
        X = np.random.default_rng(0).normal(size=(20, 1_100))
        detector = FusedDetector(random_state=0).fit(X)
        assert np.isfinite(detector.score_samples(X[:3])).all()

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
    def test_a_glitch_may_have_the_only_gap(self):
        for m in (4, 60):
            X = np.random.default_rng(0).normal(size=(100, m))
            X[7] = 1e4
            X[7, 2] = np.nan
            detector = FusedDetector("light", random_state=0).fit(X)
            np.testing.assert_array_equal(detector.trimmed_rows_, [7])

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
    def test_a_constant_table_is_normal(self):
        for m in (2, 20):
            detector = FusedDetector(random_state=0).fit(np.ones((30, m)))
            assert detector.predict(np.ones((1, m))) == 1

    @pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
    def test_parts_too_small_for_a_member(self):
        class Picky(KNN):
            def _fit(self, gram):
                if gram.n_rows < 55:
                    raise ValueError("too few rows")
                super()._fit(gram)

        X = np.random.default_rng(0).normal(size=(60, 30))
        members = Pool([("knn", KNN()), ("picky", Picky())], on_error="drop")
        detector = FusedDetector(members, random_state=0).fit(X)
        assert np.isfinite(detector.training_scores_).all()

    @pytest.mark.slow
    def test_few_groups_of_normals_in_a_wide_table(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 30))
        y, groups = np.r_[np.ones(28), -np.ones(12)], np.r_[np.arange(28) % 2, np.arange(12) + 5]
        detector = FusedDetector("light", random_state=0).fit(X, y, groups)
        assert np.isfinite(detector.training_scores_).all()

    def test_gaps(self, X):
        gappy = X.copy()
        gappy[::7, 0] = np.nan
        detector = FusedDetector(FEW, random_state=0).fit(gappy)
        assert np.isfinite(detector.score_samples(gappy)).all()
        with pytest.warns(CellsWarning, match="1: no value, though training had no gaps"):
            assert np.isfinite(detector.score_samples([[0.0, np.nan]])).all()
        with pytest.raises(InvalidInputError, match="complete in training: 1 "):
            detector.set_gaps("refuse").score_samples([[0.0, np.nan]])

    @pytest.mark.parametrize("bad", [sparse.csr_matrix(np.eye(6)), np.full((6, 2), np.inf)])
    def test_refused_input(self, bad):
        with pytest.raises((TypeError, ValueError), match=r"[Ss]parse|infinity"):
            FusedDetector().fit(bad)

    @pytest.mark.slow
    def test_huge_and_tiny_values(self):
        X = np.random.default_rng(0).normal(size=(30, 2)) * [1e300, 1e-300]
        detector = FusedDetector(random_state=0).fit(X)
        assert np.isfinite(detector.score_samples([[1.7e308, 1.0], [0, 0]])).all()


class TestMembers:
    @pytest.mark.parametrize("where", ["fit", "score", "nan"])
    def test_a_failing_member_is_named(self, X, where):
        members = [*FEW, ("pump", Broken(where))]
        with pytest.raises(MemberError, match="pump"):
            FusedDetector(members).fit(X)
        with pytest.warns(MemberWarning, match="pump"):
            detector = FusedDetector(Pool(members, on_error="drop")).fit(X)
        assert list(detector.get_feature_names_out()) == ["knn", "gmm"]
        expected = FusedDetector(FEW).fit(X)
        assert detector.weights(X[:3]).shape == (3, 2)
        assert expected.weights(X[:3]).shape == (3, 2)

    def test_all_failing(self, X):
        with (
            pytest.raises(MemberError),
            warnings.catch_warnings(action="ignore", category=MemberWarning),
        ):
            FusedDetector(Pool([Broken()], on_error="drop")).fit(X)

    def test_fusions_that_need_anomalies_say_so(self, X):
        with pytest.raises(InvalidInputError, match="StackedFusion learns from anomalies"):
            FusedDetector(FEW, fusion=StackedFusion(), negatives=None).fit(X)

    @pytest.mark.parametrize("drawn", [np.zeros((5, 7)), np.full((5, 2), np.nan), np.zeros(3)])
    def test_negatives_of_ones_own_are_checked(self, X, drawn):
        class Own(BaseEstimator):
            def sample(self, X, n, random_state=None):
                return drawn

        with pytest.raises(InvalidInputError, match="own must draw finite rows"):
            FusedDetector(FEW, negatives=Own()).fit(X)

    def test_negatives_that_tell_nothing_apart(self):
        X = np.random.default_rng(0).normal(size=(200, 8))
        with pytest.warns(PseudoNegativeWarning, match=r"gauss \(like normals"):
            FusedDetector(FEW, negatives="gauss", random_state=0).fit(X)

    @pytest.mark.parametrize("normaliser", ["z-score", "robust-z", "tail", MinMax(rho=1), ZScore()])
    @pytest.mark.parametrize("negatives", ["shuffle", ["uniform", Shuffle()]])
    def test_parts_by_name_or_object(self, X, anomalies, normaliser, negatives):
        detector = FusedDetector(
            FEW, normaliser=normaliser, negatives=negatives, random_state=0
        ).fit(X)
        assert auc(detector, ring(100, 2), anomalies) > 0.7

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("members", "nonsense"),
            ("fusion", "nonsense"),
            ("normaliser", "nonsense"),
            ("negatives", "nonsense"),
            ("false_alarm_rate", 0),
            ("false_alarm_rate", "often"),
        ],
    )
    def test_unknown_options(self, X, option, value):
        with pytest.raises(ValueError, match=str(value)):
            FusedDetector(**{"members": FEW, option: value}).fit(X)


class TestScikitLearn:
    @pytest.mark.slow
    def test_grid_search_over_the_fusion_and_a_member(self, X, anomalies):
        both = np.vstack([X, anomalies])
        y = np.r_[np.ones(len(X)), -np.ones(len(anomalies))].astype(int)
        search = GridSearchCV(
            FusedDetector(FEW, fusion=LocalLpFusion(), random_state=0),
            {"fusion__p": [8 / 7, 4.0], "knn__n_neighbors": [1, 5]},
            scoring=lambda detector, X, y: roc_auc_score(y, detector.score_samples(X)),
            cv=StratifiedKFold(2, shuffle=True, random_state=0),
        ).fit(both, y)
        assert search.best_score_ > 0.9
        assert set(search.best_params_) == {"fusion__p", "knn__n_neighbors"}

    @pytest.mark.parametrize("members", ["light", dict(FEW), [KNN(), GMM(n_components=1)]])
    def test_parameters_of_members_by_name(self, members, X):
        detector = FusedDetector(members, fusion="sum", random_state=0)
        name = "knn-5" if members == "light" else "knn"
        assert detector.get_params()[f"{name}__n_neighbors"] == 5
        detector.set_params(**{f"{name}__n_neighbors": 3, "false_alarm_rate": 0.1})
        assert dict(clone(detector).fit(X).pool_.members_)[name].n_neighbors == 3
        with pytest.raises(ValueError, match=r"no parameter nonsense__p\. It has"):
            detector.set_params(nonsense__p=1)

    def test_a_failing_fit_changes_nothing(self, X):
        detector = FusedDetector(FEW, random_state=0).fit(X)
        before = detector.score_samples(X)
        detector.set_params(fusion=StackedFusion(), negatives=None)
        with pytest.raises(InvalidInputError, match="StackedFusion"):
            detector.fit(X * 5 + 3)
        np.testing.assert_array_equal(detector.score_samples(X), before)

    def test_training_rows_are_judged_by_held_out_scores(self, X):
        rows = np.vstack([X, 0.1 * np.eye(2), [[0.2, 0.2], [0.3, 0.3]]])
        detector = FusedDetector([("knn", KNN(n_neighbors=1))], fusion="sum", random_state=0)
        predicted = detector.fit_predict(rows)
        assert predicted.shape == detector.training_scores_.shape == (124,)
        np.testing.assert_array_equal(predicted == -1, detector.training_scores_ < detector.offset_)
        assert (detector.predict(rows) == 1).all()  # every row is its own neighbour

    def test_clone_and_params(self):
        detector = FusedDetector(FEW, fusion=LpFusion(p=3.0))
        copy = clone(detector).set_params(fusion__p=4.0, knn__n_neighbors=2)
        assert copy.get_params()["knn__n_neighbors"] == 2
        assert detector.get_params()["fusion__p"] == 3.0
        assert dict(detector.members)["knn"].n_neighbors == 5

    def test_pipeline(self, X):
        pipeline = make_pipeline(StandardScaler(), FusedDetector(FEW, random_state=0)).fit(X)
        assert pipeline.predict(X).shape == (len(X),)
        assert pipeline.score_samples(X).shape == (len(X),)

    @pytest.mark.parametrize("library", [pd, pl])
    def test_frames_keep_their_names(self, X, library):
        frame = library.DataFrame({"flow": X[:, 0], "pressure": X[:, 1]})
        detector = FusedDetector(FEW, random_state=0).fit(frame)
        assert list(detector.feature_names_in_) == ["flow", "pressure"]
        plain = FusedDetector(FEW, random_state=0).fit(X)
        np.testing.assert_array_equal(detector.score_samples(frame), plain.score_samples(X))
        assert detector.explain(frame[:1]).feature_names == ["flow", "pressure"]
        with pytest.raises(ValueError, match="feature names should match"):
            detector.predict(library.DataFrame({"flow": [1.0], "heat": [1.0]}))

    @pytest.mark.parametrize("library", [pd, pl])
    def test_categories(self, X, library):
        state = np.where(X[:, 0] > 0, "on", "off")
        frame = library.DataFrame({"flow": X[:, 0], "state": state.astype(object)})
        detector = FusedDetector(FEW, random_state=0).fit(frame)
        odd = library.DataFrame({"flow": [3.0, 3.0], "state": ["on", "off"]})
        scores = detector.score_samples(odd)
        assert scores[1] < scores[0]
        shares = detector.explain(odd).attributions
        assert shares.shape == (2, 2)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_set_output(self, X, library):
        detector = FusedDetector(FEW, random_state=0).set_output(transform=library).fit(X)
        table = detector.transform(X)
        assert list(table.columns) == ["knn", "gmm"]
        assert table.shape == (len(X), 2)


class TestAnswers:
    def test_probabilities(self, X, anomalies):
        detector = FusedDetector(FEW, random_state=0).fit(X)
        proba = detector.predict_proba(np.vstack([X, anomalies]))
        np.testing.assert_allclose(proba.sum(1), 1)
        assert list(detector.classes_) == [-1, 1]
        assert proba[:120, 1].mean() > 0.4 > 0.1 > proba[120:, 1].mean()

    @pytest.mark.slow
    def test_probabilities_with_labels(self, X, anomalies):
        both, y = np.vstack([X, anomalies[:20]]), np.r_[np.ones(120), -np.ones(20)]
        detector = FusedDetector(FEW, random_state=0).fit(both, y)
        proba = detector.predict_proba(np.vstack([ring(100, 8), anomalies[20:]]))
        assert proba[:100, 0].mean() < 0.2 < 0.8 < proba[100:, 0].mean()

    @pytest.mark.slow
    def test_weights_differ_between_regions(self):
        rng = np.random.default_rng(0)
        left = rng.normal(size=(150, 2)) * [0.1, 3] + [-10, 0]
        right = rng.normal(size=(150, 2)) * [3, 0.1] + [10, 0]
        detector = FusedDetector(fusion="competence", random_state=0)
        detector.fit(np.vstack([left, right]))
        weights = detector.weights([[-10.0, 0.0], [10.0, 0.0]])
        np.testing.assert_allclose(np.abs(weights).sum(1), 1)
        assert np.abs(weights[0] - weights[1]).max() > 0.01

    def test_explanation(self, X):
        detector = FusedDetector(FEW, random_state=0).fit(X)
        row = np.array([[3.0, 2.5]])
        why = detector.explain(row)
        assert len(why) == 1
        assert why.is_anomaly[0] == (detector.predict(row)[0] == -1)
        distances = np.linalg.norm((X - row) / X.std(0), axis=1)
        assert why.nearest_rows[0, 0] == np.argmin(distances)
        np.testing.assert_allclose(why.nearest_distances[0, 0], distances.min())
        # most like it: a feature counts up to one standard deviation at most
        unlike = np.minimum(((X - row) / X.std(0)) ** 2, 1.0).sum(axis=1)
        alike = X[np.argsort(unlike, kind="stable")[:3]]
        reference = np.clip(row, alike.min(axis=0), alike.max(axis=0))
        gain = detector.score_samples(reference) - detector.score_samples(row)
        np.testing.assert_allclose(why.attributions.sum(1), gain)
        np.testing.assert_allclose(why.reference_score, detector.score_samples(reference))
        assert why.describe().startswith("anomaly: score")
        assert "knn" in why.describe(0, n_features=1)

    def test_gmean_of_labelled_rows(self, X, anomalies):
        detector = FusedDetector(FEW, random_state=0).fit(X)
        both, y = np.vstack([ring(80, 4), anomalies]), np.r_[np.ones(80), -np.ones(40)]
        predicted = detector.fit_threshold(both, y).predict(both)
        rates = [np.mean(predicted[y == label] == label) for label in (1, -1)]
        assert np.sqrt(rates[0] * rates[1]) > 0.9


def test_few_rows_warn():
    with pytest.warns(FewSamplesWarning, match="10 normal rows are too few"):
        FusedDetector(FEW).fit(ring(10, 0))
