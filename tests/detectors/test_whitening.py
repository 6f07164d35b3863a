"""Whitening: the formula, few rows, constant columns, the same bits in every batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.covariance import ledoit_wolf_shrinkage

from ocfuse.detectors import views as module
from ocfuse.detectors.gram import Gram, Reference
from ocfuse.detectors.views import LEAST_SHRINKAGE, LeftOut, Whitening

SHAPES = [(300, 6), (80, 60), (60, 60), (61, 60), (40, 90), (3, 5), (2, 1)]


def table(n, m, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(m, m)) * np.arange(1.0, m + 1) ** -power
    return rng.normal(size=(n, m)) @ mix.T + 5.0


def whitening_of(X):
    return Whitening(Reference(X))


def plain_root(X):
    """Return W as the formula has it."""
    m = X.shape[1]
    C = np.atleast_2d(np.cov(X.T, bias=True))
    a = max(LEAST_SHRINKAGE, ledoit_wolf_shrinkage(X))
    values, vectors = np.linalg.eigh((1 - a) * C + a * np.trace(C) / m * np.eye(m))
    return (vectors / np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_norms_and_distances_are_those_of_the_formula(n, m):
    X, new = table(n, m), 2 * table(20, m, seed=1) + np.random.default_rng(2).normal(size=(20, m))
    W, centre = plain_root(X), X.mean(axis=0)
    whitening = whitening_of(X)
    white, white_new = whitening.transform(X), whitening.transform(new)
    plain, plain_new = (X - centre) @ W, (new - centre) @ W
    np.testing.assert_allclose((white_new**2).sum(axis=1), (plain_new**2).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(cdist(white_new, white), cdist(plain_new, plain), rtol=1e-9)
    np.testing.assert_allclose(cdist(white, white), cdist(plain, plain), rtol=1e-9, atol=1e-9)
    assert white.shape[1] == min(m, n)


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("n", "m"), [(300, 6), (80, 60), (40, 90), (2, 7)])
def test_shrinkage_equals_scikit_learn(n, m, power):
    X = table(n, m, power=power)
    expected = max(LEAST_SHRINKAGE, ledoit_wolf_shrinkage(X))
    assert whitening_of(X).shrinkage == pytest.approx(expected, rel=1e-9)


def test_both_decompositions_agree():
    X, new = table(60, 59), table(9, 59, seed=1)
    # one row more than columns goes by the covariance, a duplicate column less by the rows
    wide = np.hstack([X, X[:, :2]])
    by_rows, by_covariance = whitening_of(wide[:60]), whitening_of(np.vstack([wide, wide]))
    new = np.hstack([new, new[:, :2] + 1.0])
    values = [(w.transform(new) ** 2).sum(axis=1) for w in (by_rows, by_covariance)]
    # twice the rows: the same covariance, less shrinkage
    assert by_covariance.shrinkage < by_rows.shrinkage
    assert (values[0] < values[1]).all()
    assert by_rows.directions.shape == by_covariance.directions.shape == (59, 61)


def test_many_gaussian_rows_become_white():
    white = whitening_of(table(5000, 5, power=0.0)).transform(table(5000, 5, power=0.0))
    np.testing.assert_allclose(np.cov(white.T), np.eye(5), atol=0.1)


def test_constant_columns_and_rows_off_the_span():
    X = np.column_stack([table(50, 3), np.full(50, 0.1), table(50, 3) @ [1.0, 2.0, 3.0]])
    whitening = whitening_of(X)
    assert whitening.directions.shape == (3, 5)
    white = whitening.transform(X)
    assert white.shape == (50, 4)
    assert not white[:, -1].any()
    off = X[:1] + np.array([0.0, 0.0, 0.0, 2.0, 0.0])
    moved = whitening.transform(off)
    np.testing.assert_allclose(moved[0, :-1], white[0, :-1], atol=1e-12)
    assert moved[0, -1] == pytest.approx(2.0 * whitening.rest_factor, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_rows_without_spread_are_measured_in_the_unit_given(n):
    # a mean squared distance of 24 is a variance of 4 in each of three columns
    whitening = Whitening(Reference(np.full((n, 3), 0.1), 24.0))
    white = whitening.transform(np.array([[0.1, 0.1, 0.1], [0.1, 6.1, 8.1]]))
    np.testing.assert_allclose(white, [[0.0], [5.0]], rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-140, 1e-6, 1e145])
def test_unit_of_features_does_not_matter(factor):
    X, new = table(30, 4), table(9, 4, seed=1)
    white, scaled = whitening_of(X).transform(new), whitening_of(factor * X).transform(factor * new)
    np.testing.assert_allclose((white**2).sum(axis=1), (scaled**2).sum(axis=1), rtol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    m=st.integers(1, 60),
    decimals=st.sampled_from([0, 1, 12]),
)
def test_a_row_has_the_same_bits_in_every_batch(seed, n, m, decimals):
    X = table(n, m, seed).round(decimals)
    whitening = whitening_of(X)
    rows = np.vstack([X, 10 * X, X[::-1]])
    white = whitening.transform(rows)
    np.testing.assert_array_equal(white[:n], white[: -n - 1 : -1])
    for i in range(0, len(rows), 7):
        np.testing.assert_array_equal(whitening.transform(rows[i : i + 1])[0], white[i])
    assert np.isfinite(white).all()


def test_many_columns_cost_no_square_of_them(monkeypatch):
    monkeypatch.delattr(module, "eigenpairs")
    whitening = whitening_of(np.random.default_rng(0).normal(size=(20, 6000)))
    assert whitening.directions.shape == (19, 6000)


def test_a_row_left_out_has_the_distances_of_the_covariance_without_it():
    X = table(60, 4)
    gram = Gram(X)
    white = gram.view(Whitening)
    a = white.reference.coordinates.shrinkage
    left_out = LeftOut(white, a)
    n, Y = len(X), X - X.mean(axis=0)
    S = (1 - a) * Y.T @ Y / n + a * np.mean(Y**2) * np.eye(4)
    distances, index = left_out.neighbours(7)
    assert np.all(np.diff(distances, axis=1) >= 0)
    for i in (0, 30, 59):
        S_i = n / (n - 1) * (S - (1 - a) / (n - 1) * np.outer(Y[i], Y[i]))
        gaps = X[i] - X[index[i]]
        expected = np.sqrt(np.einsum("km,km->k", gaps @ np.linalg.inv(S_i), gaps))
        np.testing.assert_allclose(distances[i], expected, rtol=1e-9)
