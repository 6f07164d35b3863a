"""Detectors on filtered rows."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ocfuse.detectors import KNN, LOF
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals import FilteredEnsemble
from tests.bench.rivals.cases import islands


def spoilt(seed, n=150, share=0.08):
    """Return islands with scattered outliers among its first rows."""
    X, rows, is_normal = islands(seed, n=n)
    count = int(share * n)
    X[:count] = np.random.default_rng(seed).uniform(-1, 1, (count, 2)) + 6.0
    X[:count] *= np.linspace(1.0, 4.0, count)[:, None]
    return X, count, rows, is_normal


@pytest.mark.parametrize("seed", range(3))
def test_planted_outliers_are_removed_and_few_others(seed):
    X, count, _, _ = spoilt(seed)
    removed = FilteredEnsemble(random_state=0).fit(X).removed_
    assert set(range(count)) <= set(removed)
    assert len(removed) <= count + 0.05 * len(X)


def test_they_are_removed_gradually():
    X, count, _, _ = spoilt(0)
    assert count > 0.05 * len(X)
    assert len(FilteredEnsemble(n_iterations=1, random_state=0).fit(X).removed_) <= 8
    assert len(FilteredEnsemble(n_iterations=3, random_state=0).fit(X).removed_) >= count


def test_removing_them_helps_where_they_would_be_repeated():
    X, count, rows, is_normal = spoilt(1)
    # anomalies of the kind that is among the training rows
    rows = np.vstack([rows[is_normal], X[:count] + 0.05])
    labels = np.arange(len(rows)) < is_normal.sum()
    model = FilteredEnsemble(random_state=0).fit(X)
    plain = KNN().fit(X)
    assert roc_auc_score(labels, model.score_samples(rows)) >= roc_auc_score(
        labels, plain.score_samples(rows)
    )


def test_no_more_than_allowed_is_removed():
    X, _, _, _ = spoilt(2, share=0.3)
    removed = FilteredEnsemble(max_removed=0.1, random_state=0).fit(X).removed_
    assert len(removed) <= 15


@pytest.mark.parametrize("detector", [None, LOF(15)])
def test_weights_of_the_iterations_add_up_to_one(detector):
    X, _, _, _ = spoilt(3)
    model = FilteredEnsemble(detector, n_iterations=6, random_state=0).fit(X)
    assert model.weights_.shape == (6,)
    assert model.weights_.min() > 0
    assert model.weights_.sum() == pytest.approx(1.0)


def test_the_detector_given_is_not_fitted():
    detector = KNN(3)
    FilteredEnsemble(detector, random_state=0).fit(islands(0)[0])
    assert not hasattr(detector, "reference_")


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_iterations": 0},
        {"flexibility": 1.5},
        {"flexibility": None},
        {"flexibility": "x"},
        {"max_removed": 1.0},
        {"max_removed": None},
    ],
    ids=str,
)
def test_parameters_that_cannot_be_used(parameters):
    with pytest.raises(InvalidInputError, match=r"must be .* Got"):
        FilteredEnsemble(**parameters).fit(islands(0)[0])
