"""FusedDetector with `tune`."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import ocfuse
from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, KPCA, SVDD
from ocfuse.ensemble.fit import Learned, Recipe, Table
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion import LabelledFusion, LpFusion
from ocfuse.system.progress import silent
from ocfuse.tuning import RPAU, LabelledAUC, Search
from ocfuse.tuning.splits import keep_members

FEW = [("knn-5", KNN()), ("gmm-1", GMM(n_components=1)), ("kpca-1", KPCA())]
WIDTHS = [(f"svdd-{width}", SVDD(width=width)) for width in (0.25, 1.0)] + FEW
pytestmark = [
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.EqualWeightsWarning"),
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning"),
    pytest.mark.filterwarnings("ignore::ocfuse.exceptions.ThresholdWarning"),
]


@pytest.fixture(scope="module", name="X")
def normal_rows():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 120)
    return 3 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.2, (120, 2))


@pytest.fixture(scope="module", name="labelled")
def labelled_rows(X):
    anomalies = np.random.default_rng(1).normal(size=(12, 2))
    return np.vstack([X, anomalies]), np.repeat([1, -1], [len(X), 12])


class Counting(BaseEstimator):
    """A member that counts its fits."""

    fits = 0

    def fit(self, X, y=None):
        type(self).fits += 1
        self.centre_ = X.mean(axis=0)
        return self

    def score_samples(self, X):
        return -np.linalg.norm(X - self.centre_, axis=1)


def test_untuned(X):
    assert FusedDetector(FEW, random_state=0).fit(X).search_ is None


@pytest.mark.parametrize("tune", ["pseudo-negatives", "rpau", "stability", RPAU("percent")])
def test_detector_has_what_was_picked(X, tune):
    detector = FusedDetector(FEW, tune=tune, random_state=0).fit(X)
    search = detector.search_
    assert len(search.results_["value"]) == 9
    assert detector.fusion_.p == search.best_params_["fusion__p"]
    assert detector.tune is tune


def test_same_as_asking_for_what_was_picked(X):
    tuned = FusedDetector(FEW, fusion=LpFusion(), tune="rpau", random_state=0).fit(X)
    p = tuned.search_.best_params_["fusion__p"]
    asked = FusedDetector(FEW, fusion=LpFusion(p=p), random_state=0).fit(X)
    np.testing.assert_array_equal(tuned.score_samples(X), asked.score_samples(X))
    np.testing.assert_array_equal(tuned.training_scores_, asked.training_scores_)
    assert tuned.offset_ == asked.offset_


@pytest.mark.slow
def test_labels(labelled):
    X, y = labelled
    tune = Search("labels", grid={"p": [1.5, 4]})
    detector = FusedDetector(FEW, tune=tune, random_state=0).fit(X, y)
    assert isinstance(detector.search_.criterion_, LabelledAUC)
    assert isinstance(detector.fusion_, LabelledFusion)
    assert detector.search_.best_value_ > 0.9


@pytest.mark.slow
def test_stability_with_a_lone_anomaly_in_a_fold(labelled):
    rows, y = labelled
    groups = np.r_[np.arange(120) // 30, np.full(11, 20), 21]
    tune = Search("stability", grid={"p": [1.5, 4]})
    search = FusedDetector(FEW, tune=tune, random_state=0).fit(rows, y, groups).search_
    assert np.isfinite(search.results_["value"]).all()


def test_what_is_missing(X):
    with pytest.raises(InvalidInputError, match="needs labelled anomalies"):
        FusedDetector(FEW, tune="labels").fit(X)
    with pytest.raises(InvalidInputError, match="needs pseudo-negatives"):
        FusedDetector(FEW, tune="pseudo-negatives", negatives=None).fit(X)
    with pytest.raises(InvalidInputError, match="SumRule has no parameter p"):
        FusedDetector(FEW, tune="rpau", fusion="sum").fit(X)
    with pytest.raises(InvalidTypeError, match="tune must be"):
        FusedDetector(FEW, tune=3).fit(X)


def test_members_are_fitted_as_often_as_without(X):
    members = [*FEW, ("counting", Counting())]
    counts = []
    for tune in (None, Search("rpau", grid={"p": [1.5, 2, 4], "rho": [1, 5]})):
        Counting.fits = 0
        FusedDetector(members, tune=tune, random_state=0).fit(X)
        counts.append(Counting.fits)
    assert counts[0] == counts[1] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.PseudoNegativeWarning")
def test_nothing_is_searched_again_in_folds():
    """Few rows for the columns: everything is learned again in folds, with one choice."""
    X = np.random.default_rng(0).normal(size=(60, 30))
    members = [*FEW, ("counting-1", Counting()), ("counting-2", Counting())]
    search = Search("rpau", select_members=True)
    Counting.fits = 0
    tuned = FusedDetector(members, tune=search, fusion=LpFusion(), random_state=0).fit(X)
    assert Counting.fits == 2 * 5 + 5 * 5  # two members at first, one of them in five folds
    p = tuned.search_.best_params_["fusion__p"]
    kept = [pair for pair in members if pair[0] in tuned.pool_.names_]
    asked = FusedDetector(kept, fusion=LpFusion(p=p), random_state=0).fit(X)
    np.testing.assert_array_equal(tuned.training_scores_, asked.training_scores_)


@pytest.mark.slow
def test_one_member_of_every_family_is_kept(X):
    search = Search(select_members=True)
    detector = FusedDetector(WIDTHS, tune=search, random_state=0).fit(X)
    names = detector.search_.members_
    assert len(names) == 4
    assert detector.pool_.names_ == names
    assert detector.get_feature_names_out().tolist() == names
    assert detector.transform(X).shape == (120, 4)
    assert detector.weights(X).shape == (120, 4)
    assert detector.explain(X[:1]).member_names == names
    asked = [pair for pair in WIDTHS if pair[0] in names]
    p = detector.search_.best_params_["fusion__p"]
    fusion = clone(detector.fusion_).set_params(p=p)
    alone = FusedDetector(asked, fusion=fusion, random_state=0).fit(X)
    np.testing.assert_allclose(detector.score_samples(X), alone.score_samples(X), atol=1e-10)


@pytest.mark.slow
def test_a_smaller_pool_scores_as_the_whole(X):
    recipe = Recipe("default", None, "min-max", "mixture", 0, None, silent)
    pool = Learned(Table(X, np.zeros(len(X), dtype=np.int64), None), recipe).pool
    for kept in (["lof-30"], ["kpca-1", "knn-5"], pool.names_[::2]):
        smaller = keep_members(pool, kept)
        columns = [pool.names_.index(name) for name in kept]
        whole = pool.score_samples(X[:7])
        np.testing.assert_allclose(smaller.score_samples(X[:7]), whole[:, columns], atol=1e-10)
        np.testing.assert_array_equal(
            smaller.out_of_fold_scores_, pool.out_of_fold_scores_[:, columns]
        )
    assert len(pool.names_) == 16


@pytest.mark.slow
def test_saved(X, tmp_path):
    search = Search("rpau", grid={"p": [4 / 3, 2, 4], "rho": [1, 5]}, select_members=True)
    detector = FusedDetector(WIDTHS, tune=search, random_state=0).fit(X)
    again = ocfuse.load(detector.save(tmp_path / "tuned.ocf"))
    np.testing.assert_array_equal(again.score_samples(X), detector.score_samples(X))
    assert again.search_.best_params_ == detector.search_.best_params_
    assert again.search_.to_markdown() == detector.search_.to_markdown()
    assert again.search_.results_["params"] == detector.search_.results_["params"]


def test_deterministic_and_clonable(X):
    detector = FusedDetector(FEW, tune=Search("stability", grid={"p": [4 / 3, 2]}), random_state=0)
    scores = [clone(detector).fit(X).score_samples(X) for _ in range(2)]
    np.testing.assert_array_equal(*scores)
    assert detector.get_params()["tune__criterion"] == "stability"
    assert detector.set_params(tune__criterion="rpau").tune.criterion == "rpau"
    assert not hasattr(detector.fit(X).tune, "results_")
