"""Scorers for scikit-learn, and labels in other codings."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.model_selection import StratifiedKFold, cross_val_score

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.metrics import as_labels, auc, average_precision, gmean, missed_alarm_rate, scorer

X, SPECIES = load_iris(return_X_y=True)
FOREST = IsolationForest(random_state=0).fit(X[SPECIES == 0])
SIGNS = np.where(SPECIES == 0, 1, -1)


@pytest.mark.parametrize(
    ("y", "meaning", "expected"),
    [
        ([0, 1, 1], {"anomaly": 1}, [1, -1, -1]),
        ([0, 1, 1], {"normal": 1}, [-1, 1, 1]),
        ([0.0, np.nan, 1.0], {"anomaly": 1}, [1, 0, -1]),
        (["ok", "", "dent"], {"normal": "ok"}, [1, 0, -1]),
        (["a", "b", "c"], {"anomaly": {"b", "c"}}, [1, -1, -1]),
        (["a", "b", "c"], {"normal": "a", "anomaly": ["b"]}, [1, -1, 0]),
        (pd.Series([True, None, False], dtype="boolean"), {"normal": False}, [-1, 0, 1]),
        (pd.Series(["x", None], dtype="category"), {"anomaly": "x"}, [-1, 0]),
    ],
)
def test_labels(y, meaning, expected):
    np.testing.assert_array_equal(as_labels(y, **meaning), expected)


@pytest.mark.parametrize(
    ("y", "meaning", "words"),
    [
        ([0, 1], {}, "as_labels\\(y, anomaly=1\\)"),
        ([0, 1], {"anomaly": 2}, "No label is anomaly=2. y holds 0, 1"),
        ([0, 1], {"anomaly": 1, "normal": [0, 1]}, "normal or an anomaly, not both. Got 1"),
        ([[0], [1]], {"anomaly": 1}, r"shape \(n,\). Got shape \(2, 1\)"),
    ],
)
def test_labels_that_are_not_clear_are_refused(y, meaning, words):
    with pytest.raises(InvalidInputError, match=words):
        as_labels(y, **meaning)


def test_scorers_are_the_measures():
    scores, predicted = FOREST.score_samples(X), FOREST.predict(X)
    assert scorer()(FOREST, X, SIGNS) == auc(SIGNS, scores)
    assert scorer("average_precision")(FOREST, X, SIGNS) == average_precision(SIGNS, scores)
    assert scorer("gmean")(FOREST, X, SIGNS) == gmean(SIGNS, predicted)
    missed = scorer("missed_alarm_rate")(FOREST, X, SIGNS)
    assert missed == -missed_alarm_rate(SIGNS, predicted)


def test_labels_of_others_are_read_as_they_are_said_to_be():
    expected = scorer()(FOREST, X, SIGNS)
    assert scorer(normal=0)(FOREST, X, SPECIES) == expected
    assert scorer(anomaly=[1, 2])(FOREST, X, SPECIES) == expected
    assert scorer(anomaly=1)(FOREST, X, (SPECIES > 0).astype(int)) == expected


def test_labels_of_others_are_refused_if_nothing_is_said():
    with pytest.raises(InvalidInputError, match="1 - 2 \\* y"):
        scorer()(FOREST, X, (SPECIES > 0).astype(int))


def test_rows_without_a_label_are_not_judged():
    some = np.where(np.arange(150) % 3 == 0, 0, SIGNS)
    assert scorer()(FOREST, X, some) == auc(some[some != 0], FOREST.score_samples(X)[some != 0])


def test_an_outlier_detector_without_score_samples_is_scored_by_its_decisions():
    class Plain(OutlierMixin, BaseEstimator):
        def decision_function(self, X):
            return -X[:, 2]

    assert scorer()(Plain(), X, SIGNS) == auc(SIGNS, -X[:, 2])


def test_a_detector_whose_scores_may_be_the_other_way_round_is_refused():
    class Strange:
        def decision_function(self, X):
            return -np.ones(len(X))

    with pytest.raises(InvalidTypeError, match="Strange has no score_samples"):
        scorer()(Strange(), X, SIGNS)


def test_bad_measures_and_missing_labels_are_refused():
    with pytest.raises(InvalidInputError, match="measure must be"):
        scorer("accuracy")
    with pytest.raises(InvalidInputError, match="judges by labels"):
        scorer()(FOREST, X, None)


def test_scorers_go_to_other_processes_and_into_scikit_learn():
    sent = pickle.loads(pickle.dumps(scorer("auc", normal=0)))
    folds = StratifiedKFold(3)
    found = cross_val_score(IsolationForest(random_state=0), X, SPECIES, scoring=sent, cv=folds)
    assert found.shape == (3,)
    assert np.isfinite(found).all()
