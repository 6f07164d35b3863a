"""Detectors on compressed rows: what they compute, out-of-fold scores, parameters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from ocfuse.detectors import GMM, KNN, KPCA, LOF, Compressed, OneClassGP, Pool, Whitened
from ocfuse.detectors import views as module
from ocfuse.detectors.gram import Gram, Reference
from ocfuse.detectors.views import Compression
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, MemberError


def table(n, m, seed=0):
    """Return rows with heavy tails."""
    return np.random.default_rng(seed).standard_t(2, size=(n, m))


@pytest.mark.parametrize("inner", [KNN(5), LOF((10, 20)), KPCA(), OneClassGP(width=0.25), GMM(1)])
def test_compressed_is_the_detector_on_compressed_rows(inner):
    X, new = table(150, 4), table(20, 4, seed=1)
    rows, fresh = np.arcsinh(X), np.arcsinh(new)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    expected = clone(inner).fit((rows - mean) / deviation)
    detector = Compressed(inner).fit(X)
    np.testing.assert_allclose(
        detector.score_samples(new),
        expected.score_samples((fresh - mean) / deviation),
        rtol=1e-8,
        atol=1e-10,
    )
    if inner.closed_form:
        assert detector.offset_ == pytest.approx(expected.offset_, rel=1e-8)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    m=st.integers(1, 9),
    size=st.sampled_from([1e-12, 1.0, 1e9, 1e140]),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_standardised_finite_and_the_same_bits_in_every_batch(seed, n, m, size):
    X = size * np.random.default_rng(seed).normal(size=(n, m))
    compression = Compression(Reference(X))
    rows = compression.transform(np.vstack([X, X[::-1], -3.0 * X]))
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows[:n].mean(axis=0), 0.0, atol=1e-9)
    if n > 1 and size >= 1.0:
        np.testing.assert_allclose(rows[:n].std(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(rows[:n], rows[n : 2 * n][::-1])
    for i in range(n):
        np.testing.assert_array_equal(compression.transform(X[i : i + 1])[0], rows[i])


def test_constant_columns_keep_the_unit_of_arcsinh():
    compression = Compression(Reference(np.full((5, 2), 0.1)))
    rows = compression.transform(np.array([[0.1, 0.1], [0.1, np.sinh(2.0)]]))
    np.testing.assert_array_equal(rows[:, 0], 0.0)
    np.testing.assert_allclose(rows[:, 1], [0.0, 2.0 - np.arcsinh(0.1)])


def test_a_long_tail_is_drawn_in_and_no_order_changes():
    X = table(500, 3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = Compression(Reference(X)).transform(X)
    np.testing.assert_array_equal(np.argsort(rows, axis=0), np.argsort(X, axis=0))
    assert (np.abs(rows).max(axis=0) < 0.7 * np.abs(X).max(axis=0)).all()


@pytest.mark.parametrize("inner", [KNN(5), LOF((10, 20, 40)), KPCA()])
def test_closed_forms_say_what_refits_without_the_row_say(inner):
    X = table(60, 4)
    gram = Gram(X)
    detector = Compressed(inner)
    assert detector.is_closed(*X.shape)
    closed = detector.fit_gram(gram)._leave_one_out(gram)
    refits = []
    for i in range(60):
        others = Gram(np.delete(X, i, axis=0))
        refits.append(clone(detector).fit_gram(others).score_query(others.query(X[i : i + 1]))[0])
    assert np.corrcoef(closed, refits)[0, 1] > 0.97


@pytest.mark.parametrize("inner", [GMM(2), Whitened(KNN())])
def test_without_a_closed_form_it_goes_by_folds(inner):
    assert not Compressed(inner).is_closed(60, 4)
    pool = Pool([Compressed(inner)]).fit(table(60, 3), random_state=0)
    assert np.isfinite(pool.out_of_fold_scores_).all()


def test_the_detector_says_how_many_rows_and_which_rate():
    X = table(120, 3)
    assert Compressed(KPCA()).max_samples == 2000
    detector = Compressed(KNN(max_samples=50, false_alarm_rate=0.2)).fit(X)
    assert detector.reference_.n_rows == detector.detector_.reference_.n_rows == 50
    assert detector.offset_ > Compressed(KNN(max_samples=50)).fit(X).offset_


def test_parameters_reach_the_detector_and_the_given_one_is_untouched():
    given = KPCA()
    detector = Compressed(given)
    assert detector.set_params(detector__width=0.25) is detector
    assert clone(detector).get_params()["detector__width"] == 0.25
    pool = Pool({"ckpca": detector}).set_params(ckpca__detector__width=0.5).fit(table(40, 3))
    assert pool.members_[0][1].detector_.width == 0.5
    assert given.width == 0.25
    assert not hasattr(given, "reference_")


@pytest.mark.parametrize("wrong", [None, KNN, "knn"])
def test_other_estimators_are_refused(wrong):
    with pytest.raises(InvalidTypeError, match="detector must be a detector of this package"):
        Compressed(wrong).fit(table(20, 2))
    with pytest.raises(MemberError, match="detector must be a detector of this package"):
        Pool([Compressed(wrong)]).fit(table(20, 2))


def test_wrong_parameters_of_the_detector_are_refused():
    with pytest.raises(InvalidInputError, match="n_neighbors must be"):
        Compressed(KNN(0)).fit(table(20, 2))


def test_many_rows_are_compressed_by_a_logarithm(monkeypatch):
    X = np.column_stack([table(500, 3), np.full(500, 0.7), np.zeros(500)])
    X[0, 0], X[1, 1] = 1e140, -1e140
    new = np.vstack([table(40, 5, seed=1), X[:3], 1e-9 * X[5:8]])
    few = Reference(X).view(Compression)
    monkeypatch.setattr(module, "MANY_ROWS", 100)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 64)
    many = Reference(X).view(Compression)
    assert many.coordinates.by_logarithm
    assert not few.coordinates.by_logarithm
    assert (many.X[:, 3:] == 0).all()
    expected = few.coordinates.transform(new)
    np.testing.assert_allclose(many.coordinates.transform(new), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many.X, few.X, rtol=1e-12, atol=1e-12)
