"""Measures: the threshold comes from validation normals, and AUC >= G^2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocfuse.exceptions import InconsistentMeasuresError, InvalidInputError, InvalidTypeError
from ocfuse.lab.paper import runner
from ocfuse.lab.paper.runner import measure, require_consistent
from ocfuse.metrics import auc


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    m=st.integers(1, 30),
    levels=st.sampled_from([2, 5, 1000]),
    shift=st.floats(-2, 2),
)
def test_auc_is_at_least_the_square_of_the_gmean(seed, n, m, levels, shift):
    rng = np.random.default_rng(seed)
    is_normal = rng.permutation(np.arange(n + m) < n)
    # few levels: ties within and across the classes
    test = np.round(levels * (rng.normal(size=n + m) + shift * is_normal)) / levels
    found = measure(rng.normal(size=20), test, is_normal)
    assert found["auc"] >= found["gmean"] ** 2 / 100 - 1e-5
    assert found["auc"] >= found["best_gmean"] ** 2 / 100 - 1e-5
    assert found["best_gmean"] >= found["gmean"] - 1e-5
    assert found["auc"] == pytest.approx(100 * auc(np.where(is_normal, 1, -1), test), abs=1e-6)
    assert found["prevalence"] == pytest.approx(100 * m / (n + m), abs=1e-6)


def test_bound_is_reached():
    # normals at 1 and 0, anomalies at 0.5: AUC 1/2; above 0.25: TPR 1/2, TNR 0
    found = measure(np.zeros(20), np.array([1.0, -1.0, -1.0, 1.0]), np.array([1, 1, 0, 0]) > 0)
    assert found["auc"] == 50.0
    assert found["gmean"] == 50.0


@pytest.mark.parametrize(("area", "mean"), [(0.9220, 0.9788), (0.24, 0.5), (0.25 - 1e-6, 0.5)])
def test_contradiction_is_raised(area, mean):
    with pytest.raises(InconsistentMeasuresError, match="not of the same scores"):
        require_consistent(area, mean)


def test_consistent_figures_pass():
    require_consistent(0.25, 0.5)
    require_consistent(1.0, 1.0)


def test_inconsistent_measures_are_not_returned(monkeypatch):
    monkeypatch.setattr(runner, "gmean", lambda y, predicted: 1.0)
    with pytest.raises(InconsistentMeasuresError):
        measure(np.zeros(5), np.array([0.0, 1.0]), np.array([True, False]))


@pytest.mark.parametrize("is_normal", [[1, 1, -1, -1], [1, 1, 0, 0], [1.0, 1.0, 0.0, 0.0]])
def test_truth_must_be_boolean(is_normal):
    # of +1 and -1 all would count as normal
    with pytest.raises(InvalidTypeError, match=r"is_normal must be booleans.*y > 0"):
        measure(np.zeros(5), np.arange(4.0), np.array(is_normal))


def test_truth_must_fit_the_scores():
    with pytest.raises(InvalidInputError, match="one shape"):
        measure(np.zeros(5), np.arange(4.0), np.array([True, False]))


def test_truth_may_be_a_list():
    truth = [True, True, False, False]
    found = measure(np.zeros(5), np.arange(4.0), truth)
    assert found == measure(np.zeros(5), np.arange(4.0), np.array(truth))


def test_threshold_comes_from_validation_normals():
    is_normal = np.array([True] * 4 + [False] * 4)
    test = np.array([4.0, 3.0, 2.0, 1.0, 2.5, 0.5, 0.0, -1.0])
    low, high = (measure(np.full(99, value), test, is_normal) for value in (0.2, 2.2))
    assert low["false_alarms"] == 0.0
    assert high["false_alarms"] == 50.0
    assert low["gmean"] != high["gmean"]
    for name in ("auc", "ap", "best_gmean", "prevalence"):
        assert low[name] == high[name]


@pytest.mark.parametrize("where", [0, 1])
def test_scores_must_be_finite(where):
    scores = [np.zeros(5), np.zeros(4)]
    scores[where][2] = np.nan
    with pytest.raises(InvalidInputError, match="finite"):
        measure(*scores, np.array([True, True, False, False]))
