"""What every kernel detector keeps: scikit-learn's contract, hostile tables, honest offsets."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocfuse.detectors.base import core_rows, interleaved_folds, lower_quantile, out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.svdd import SVDD
from ocfuse.exceptions import InvalidInputError

DETECTORS = [
    SVDD(),
    SVDD(width=0.25, nu=0.5),
    OneClassGP(),
    OneClassGP(statistic="variance"),
    OneClassGP(statistic="predictive"),
    OneClassGP(statistic="ratio"),
    KPCA(),
    KPCA(subspace=10_000),
    KPCA(subspace=0.99),
]
#: Further paths through the code: the defaults are checked with all other detectors
#: in test_conformance, and the rest differ in a formula only.
CONTRACT = [OneClassGP(statistic="ratio"), KPCA(subspace=0.99)]
every_detector = pytest.mark.parametrize("detector", DETECTORS, ids=str)


def rows(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


HOSTILE = {
    "two rows": rows(2, 3),
    "two equal rows": np.full((2, 1), 0.3),
    "one column": rows(3, 1),
    "equal rows": np.full((20, 3), 0.1),
    "constant column": np.c_[rows(30, 1), np.full(30, 0.1)],
    "duplicates": np.repeat(rows(5, 4), 10, axis=0),
    "two points": np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0),
    "more columns than rows": rows(10, 10_000),
    "huge": rows(20, 3) * 1e200,
    "tiny": rows(20, 3) * 1e-200,
    "far from the origin": rows(40, 3) + 1e9,
    "one row far away": np.r_[rows(40, 2), [[1e9, 1e9]]],
    "float32": rows(30, 3).astype(np.float32),
    "part of the spectrum": rows(1100, 4),
}


@parametrize_with_checks(CONTRACT)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@every_detector
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rows_get_finite_scores_whatever_the_batch(detector, name):
    X = HOSTILE[name]
    ends = np.full((3, X.shape[1]), [[0.0], [1e300], [-1e300]])
    Q = np.r_[X[:10], ends]
    fitted = clone(detector).fit(X)
    scores = fitted.score_samples(Q)
    assert np.isfinite(fitted.offset_)
    assert np.isfinite(scores).all()
    alone = np.concatenate([fitted.score_samples(Q[i : i + 1]) for i in range(len(Q))])
    np.testing.assert_allclose(alone, scores, rtol=0, atol=1e-10 * max(1, np.abs(scores).max()))


@every_detector
def test_scores_do_not_depend_on_the_order_or_scale_of_the_training_rows(detector):
    X, Q = rows(60, 3), rows(15, 3, 1)
    scores = clone(detector).fit(X).score_samples(Q)
    order = np.random.default_rng(2).permutation(60)
    np.testing.assert_allclose(clone(detector).fit(X[order]).score_samples(Q), scores, atol=1e-7)
    moved = clone(detector).fit(8.0 * X + 3.0).score_samples(8.0 * Q + 3.0)
    np.testing.assert_allclose(moved, scores, atol=1e-7)


@every_detector
def test_normal_rows_score_above_far_rows(detector):
    fitted = clone(detector).fit(rows(300, 3))
    inside, outside = fitted.predict(rows(200, 3, 1)), fitted.predict(rows(200, 3, 2) + 8.0)
    assert np.mean(inside == 1) > 0.85
    assert np.all(outside == -1)


@pytest.mark.slow
@every_detector
def test_offset_holds_its_false_alarm_rate_on_fresh_rows(detector):
    alarms = []
    for seed in range(8):
        X = rows(1150, 4, seed)
        fitted = clone(detector).set_params(false_alarm_rate=0.1).fit(X[:150])
        alarms.append(np.mean(fitted.predict(X[150:]) == -1))
    # Standard error of the mean over 8 fits: about 0.01.
    assert 0.06 < np.mean(alarms) < 0.135


@every_detector
def test_closed_form_is_near_the_folds(detector):
    gram = Gram(rows(200, 4))
    fitted = clone(detector).fit_gram(gram)
    exact = out_of_fold_scores(fitted, gram, [])
    folded = out_of_fold_scores(fitted, gram, interleaved_folds(200), by_fold=True)
    assert np.corrcoef(exact, folded)[0, 1] > 0.8


def test_out_of_fold_scores_by_fold_are_those_of_clones():
    X = rows(30, 3)
    gram = Gram(X)
    folds = interleaved_folds(30)
    scores = out_of_fold_scores(OneClassGP(), gram, folds, by_fold=True)
    for train, test in folds:
        part, query = gram.fold(train, test)
        np.testing.assert_array_equal(scores[test], OneClassGP().fit_gram(part).score_query(query))


def test_folds_that_leave_rows_out_are_refused():
    with pytest.raises(InvalidInputError, match="folds must test each of the 10 rows once"):
        out_of_fold_scores(OneClassGP(), Gram(rows(10, 2)), interleaved_folds(10)[:3], by_fold=True)


@pytest.mark.slow
@given(
    values=st.lists(st.integers(-1000, 1000), min_size=2, max_size=60, unique=True),
    rate=st.floats(0.01, 0.99),
)
@settings(max_examples=200, deadline=None)
def test_lower_quantile_is_conformal(values, rate):
    # Of n + 1 exchangeable scores each is the fresh one once.
    scores = np.array(values, dtype=float)
    below = [scores[i] < lower_quantile(np.delete(scores, i), rate) for i in range(len(scores))]
    allowed = np.floor(rate * len(scores) + 1e-9)
    assert sum(below) <= max(allowed, 1)
    assert sum(below) == max(allowed, 1)


def test_lower_quantile_forgives_the_rounding_of_the_rate():
    scores = np.arange(1.0, 30.0)
    assert [lower_quantile(scores, k / 30) for k in range(1, 30)] == list(scores)
    assert lower_quantile(scores, 0.001) == 1.0


def test_core_rows_are_spread_over_all():
    np.testing.assert_array_equal(core_rows(5, None), np.arange(5))
    np.testing.assert_array_equal(core_rows(5, 5), np.arange(5))
    found = core_rows(1001, 11)
    np.testing.assert_array_equal(found, np.arange(0, 1001, 100))
    assert len(np.unique(core_rows(2001, 2000))) == 2000


@pytest.mark.parametrize("n", [2, 3, 4, 11])
def test_interleaved_folds_test_every_row_once(n):
    folds = interleaved_folds(n)
    assert len(folds) == min(4, n)
    np.testing.assert_array_equal(np.sort(np.concatenate([t for _, t in folds])), np.arange(n))
    for train, test in folds:
        np.testing.assert_array_equal(np.union1d(train, test), np.arange(n))
        assert len(np.intersect1d(train, test)) == 0


@every_detector
def test_max_samples_bounds_what_is_learned_from(detector):
    X = rows(200, 3)
    fitted = clone(detector).set_params(max_samples=50).fit(X)
    np.testing.assert_array_equal(fitted.reference_.X, X[core_rows(200, 50)])


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (SVDD(width=0.0), "width must be a number in"),
        (SVDD(width="1"), "width must be a number in"),
        (SVDD(nu=1.0), "nu must be a number in"),
        (KPCA(width=np.nan), "width must be a number in"),
        (KPCA(subspace=0), "subspace must be"),
        (KPCA(subspace=1.5), "subspace must be"),
        (KPCA(subspace=True), "subspace must be"),
        (KPCA(max_samples=1), "max_samples must be a whole number of at least 2"),
        (OneClassGP(max_samples=10.0), "max_samples must be a whole number of at least 2"),
        (OneClassGP(noise=0.0), "noise must be a number in"),
        (OneClassGP(statistic="median"), "statistic must be one of 'mean'"),
        (OneClassGP(false_alarm_rate=0.0), "false_alarm_rate must be a number in"),
        (OneClassGP(false_alarm_rate=1), "false_alarm_rate must be a number in"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(detector, message):
    with pytest.raises(InvalidInputError, match=message):
        detector.fit(rows(10, 2))
    with pytest.raises(InvalidInputError, match=message):
        detector.fit_gram(Gram(rows(10, 2)))


@every_detector
def test_tables_that_cannot_be_used_are_refused(detector):
    detector = clone(detector)
    with pytest.raises(ValueError, match="1 sample"):
        detector.fit(rows(1, 3))
    with pytest.raises(ValueError, match="NaN"):
        detector.fit([[0.0, np.nan], [1.0, 2.0]])
    with pytest.raises(TypeError, match="parse"):
        detector.fit(csr_matrix(rows(5, 2)))


def test_names_of_columns_are_kept():
    frame = pd.DataFrame(rows(20, 2), columns=["a", "b"])
    fitted = KPCA().fit(frame)
    assert list(fitted.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["b", "a"]])
