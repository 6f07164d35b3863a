"""FusedDetector among the tools of scikit-learn: searches, pipelines, cloning, routing."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_outlier_detector
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN
from ocfuse.exceptions import LabelsWarning
from ocfuse.metrics import as_labels, scorer
from ocfuse.paper import PaperDetector

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

X, TARGET = load_breast_cancer(return_X_y=True)
ROWS = np.r_[np.flatnonzero(TARGET == 1)[:90], np.flatnonzero(TARGET == 0)[:15]]
X, IS_ANOMALY = X[ROWS, :6], 1 - TARGET[ROWS]
y = as_labels(IS_ANOMALY, anomaly=1)
MEMBERS = [("knn", KNN()), ("gmm", GMM(n_components=1))]
DETECTOR = FusedDetector(MEMBERS, fusion="sum", random_state=0)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def test_cross_validation_with_our_labels_means_the_same_to_both_scorers():
    theirs = cross_val_score(DETECTOR, X, y, scoring="roc_auc", cv=FOLDS)
    ours = cross_val_score(DETECTOR, X, y, scoring=scorer("auc"), cv=FOLDS)
    np.testing.assert_allclose(theirs, ours)
    assert ours.mean() > 0.9


@pytest.mark.parametrize("detector", [DETECTOR, PaperDetector(p=2.0, rho=4.0)])
def test_cross_validation_with_0_and_1_is_refused_with_the_line_to_write(detector):
    with pytest.raises(ValueError, match="For 1 = anomaly use 1 - 2 \\* y"):
        cross_val_score(detector, X, IS_ANOMALY, scoring="roc_auc", cv=FOLDS)


def test_cross_validation_with_booleans_that_mean_anomaly_is_refused():
    with pytest.raises(ValueError, match="If True means anomaly, pass ~y"):
        cross_val_score(DETECTOR, X, IS_ANOMALY == 1, scoring="roc_auc", cv=FOLDS)
    found = cross_val_score(DETECTOR, X, IS_ANOMALY == 0, scoring="roc_auc", cv=FOLDS)
    assert found.mean() > 0.9


def test_classes_are_not_learned_from():
    some = np.arange(105) % 3
    with pytest.warns(LabelsWarning, match="y was not learned from"):
        told = clone(DETECTOR).fit(X, some)
    blind = clone(DETECTOR).fit(X)
    np.testing.assert_array_equal(told.score_samples(X), blind.score_samples(X))


def test_one_warning_for_one_fit():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        clone(DETECTOR).fit(X, np.arange(105) % 3)
    assert [w.category for w in told].count(LabelsWarning) == 1


def test_a_fit_on_normal_rows_alone_can_be_cross_validated():
    folds = [(train[y[train] == 1], test) for train, test in FOLDS.split(X, y)]
    found = cross_validate(
        DETECTOR,
        X,
        y,
        cv=folds,
        scoring={name: scorer(name) for name in ("auc", "average_precision", "false_alarm_rate")},
    )
    assert found["test_auc"].mean() > 0.9
    assert (found["test_false_alarm_rate"] <= 0).all()


def test_grid_search_sets_members_and_thresholds():
    grid = {"knn__n_neighbors": [1, 5], "false_alarm_rate": [0.05, 0.3]}
    search = GridSearchCV(DETECTOR, grid, scoring=scorer("gmean"), cv=FOLDS).fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.pool_.members[0][1].n_neighbors in (1, 5)
    assert set(search.predict(X)) == {1, -1}
    assert search.score(X, y) == scorer("gmean")(search.best_estimator_, X, y)


def test_halving_search_with_more_and_more_rows():
    many, target = load_breast_cancer(return_X_y=True)
    search = HalvingGridSearchCV(
        DETECTOR,
        {"knn__n_neighbors": [1, 3, 5]},
        scoring="roc_auc",
        cv=FOLDS,
        random_state=0,
        min_resources=80,
    ).fit(many[:240, :6], as_labels(target[:240], normal=1))
    assert search.n_resources_ == [80, 240]
    assert search.best_score_ > 0.8


def test_pipelines_search_and_are_pickled():
    pipe = make_pipeline(StandardScaler(), DETECTOR)
    search = GridSearchCV(
        pipe, {"fuseddetector__fusion": ["sum", "max"]}, scoring=scorer(), cv=FOLDS
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))


def test_columns_chosen_by_scikit_learn():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(X[:, 0] > 12, "u", "v"))
    pipe = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough"), DETECTOR
    ).fit(frame, y)
    assert pipe.score_samples(frame).shape == (105,)


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_member_scores_come_as_a_frame(library, kind):
    detector = clone(DETECTOR).set_output(transform=library).fit(X)
    found = detector.transform(X)
    assert isinstance(found, kind)
    assert list(found.columns) == ["knn", "gmm"]
    plain = clone(detector).set_output(transform="default").fit(X).transform(X)
    np.testing.assert_array_equal(found.to_numpy(), plain)


def test_clones_and_pickles_score_the_same_bits():
    detector = clone(DETECTOR).fit(X, y)
    expected = detector.score_samples(X)
    np.testing.assert_array_equal(clone(detector).fit(X, y).score_samples(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(detector)).score_samples(X), expected)


def test_tags_say_what_it_is():
    tags = DETECTOR.__sklearn_tags__()
    assert is_outlier_detector(DETECTOR)
    assert tags.input_tags.allow_nan
    assert not tags.target_tags.required


def test_groups_and_context_are_routed():
    runs = np.arange(105) // 5
    seen = []

    class Told(FusedDetector):
        def fit(self, X, y=None, groups=None, context=None):
            seen.append((len(X), len(set(groups)), len(context)))
            return super().fit(X, y, groups, context)

        def score_samples(self, X, context=None):
            seen.append(len(context))
            return super().score_samples(X, context)

    with sklearn.config_context(enable_metadata_routing=True):
        detector = Told(MEMBERS, random_state=0)
        detector.set_fit_request(groups=True, context=True).set_predict_request(context=True)
        pipe = make_pipeline(StandardScaler(), detector)
        pipe.fit(X, y, groups=runs, context=np.arange(105.0))
        pipe.predict(X[:7], context=np.arange(7.0))
    assert seen == [(105, 21, 105), 7]


def test_cross_validation_hands_groups_to_fit_and_to_the_splitter():
    runs = np.arange(105) % 21
    seen = []

    class Told(FusedDetector):
        def fit(self, X, y=None, groups=None, context=None):
            seen.append(set(groups))
            return super().fit(X, y, groups, context)

    with sklearn.config_context(enable_metadata_routing=True):
        detector = Told(MEMBERS, fusion="sum", random_state=0).set_fit_request(groups=True)
        found = cross_validate(
            detector, X, y, cv=GroupKFold(3), scoring=scorer(), params={"groups": runs}
        )
    assert [len(groups) for groups in seen] == [14, 14, 14]
    assert np.isfinite(found["test_score"]).all()
