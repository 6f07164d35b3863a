"""The contract, on every rival that learns from rows."""

import os

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from benchmarks.estimator.tables import uci_task
from ocfuse.detectors import KNN
from ocfuse.lab.rivals import BoostedSVM, DynamicEnsemble, FilteredEnsemble
from tests.bench.rivals.cases import DETECTORS, islands

LIGHT = [
    BoostedSVM(n_rounds=2, random_state=0),
    DynamicEnsemble([KNN(1), KNN(5)], random_state=0),
    FilteredEnsemble(n_iterations=2, random_state=0),
]


@pytest.fixture(params=DETECTORS.values(), ids=DETECTORS.keys())
def detector(request):
    return clone(request.param)


@parametrize_with_checks(LIGHT)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_batch_equals_one_by_one_and_scoring_changes_nothing(detector):
    X, rows, _ = islands(0, n=80)
    rows = np.vstack([rows[::4], X[:5], 100 * rows[:3]])
    detector.fit(np.vstack([X, X[:20]]))
    state = {name: repr(value) for name, value in vars(detector).items()}
    batch = detector.score_samples(rows)
    single = np.concatenate([detector.score_samples(row[None]) for row in rows])
    assert np.abs(batch - single).max() <= 1e-10 * max(1.0, np.abs(batch).max())
    assert {name: repr(value) for name, value in vars(detector).items()} == state


@pytest.mark.slow
def test_ties_between_neighbours_do_not_depend_on_the_batch(detector):
    rng = np.random.default_rng(1)
    X, rows = rng.integers(0, 2, (60, 5)) / 3, rng.integers(0, 3, (25, 5)) / 3
    batch = detector.fit(X).score_samples(rows)
    single = np.concatenate([detector.score_samples(row[None]) for row in rows])
    assert np.abs(batch - single).max() <= 1e-10 * max(1.0, np.abs(batch).max())


@pytest.mark.slow
def test_equal_seeds_give_equal_scores(detector):
    X, rows, _ = islands(2, n=80)
    scores = detector.fit(X).score_samples(rows)
    np.testing.assert_array_equal(clone(detector).fit(X).score_samples(rows), scores)
    other = clone(detector).set_params(random_state=1).fit(X).score_samples(rows)
    assert not np.array_equal(other, scores)


def test_rows_on_islands_are_told_from_others(detector):
    X, rows, is_normal = islands(3)
    assert roc_auc_score(is_normal, detector.fit(X).score_samples(rows)) > 0.9


@pytest.mark.slow
@pytest.mark.skipif("OCFUSE_DATA" not in os.environ, reason="OCFUSE_DATA is not set")
def test_banknotes_are_told_from_forgeries(detector):
    task = uci_task("D1_banknotes", 0)
    scores = detector.fit(task.train).score_samples(task.test)
    assert roc_auc_score(task.is_normal, scores) > 0.95


@pytest.mark.parametrize("n", [5, 35])
def test_few_rows(detector, n):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3))
    near, far = detector.fit(X).score_samples([[0.0, 0.0, 0.0], [30.0, -30.0, 30.0]])
    assert near > far


def test_duplicates_and_constant_columns(detector):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, 2, (60, 2)), np.full(60, 3.0)])
    near, far = detector.fit(X).score_samples([[0.0, 1.0, 3.0], [9.0, 9.0, 3.0]])
    assert np.isfinite(near)
    assert near > far


def test_rows_that_are_all_equal(detector):
    assert np.isfinite(detector.fit(np.ones((20, 2))).score_samples([[1.0, 1.0]])).all()


def test_saved_and_loaded(detector):
    X, rows, _ = islands(6, n=60)
    detector.fit(X)
    data = skops.io.dumps(detector)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.score_samples(rows), detector.score_samples(rows))


def test_what_cannot_be_learned_from_is_refused(detector):
    with pytest.raises(NotFittedError):
        detector.score_samples([[0.0, 0.0]])
    with pytest.raises(ValueError, match="NaN"):
        detector.fit([[np.nan, 0.0]] * 9)
    with pytest.raises(ValueError, match="features"):
        detector.fit(islands(0)[0]).score_samples([[0.0, 0.0, 0.0]])


@pytest.mark.parametrize("detector", LIGHT[1:], ids=["dynamic", "filtered"])
def test_too_few_rows_are_refused(detector):
    with pytest.raises(ValueError, match="minimum of 5"):
        clone(detector).fit(np.zeros((4, 2)))
