"""Generators that keep mean and covariance: Gauss and PCShuffle."""

import numpy as np
import pytest
from scipy.stats import kstest

from ocfuse.negatives import Gauss, PCShuffle
from tests.negatives.cases import normals

MANY = 40000
second_order = pytest.mark.parametrize(
    "generator", [Gauss(), PCShuffle()], ids=lambda generator: generator.labels[0]
)


def skewed(n, m):
    """Return correlated rows, far from Gaussian, off the origin and in different units."""
    rng = np.random.default_rng(3)
    tied = rng.exponential(size=(n, m)) @ rng.standard_normal((m, m))
    return (tied + 10.0) * np.geomspace(0.1, 10.0, m)


def whitened(X, at):
    """Return the rows `at` in the coordinates in which X has mean 0 and covariance I."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(X.T, bias=True)))
    kept = values > 1e-9 * values[-1]
    return (at - X.mean(axis=0)) @ vectors[:, kept] / np.sqrt(values[kept])


@second_order
@pytest.mark.parametrize(("n", "m"), [(300, 1), (300, 5), (12, 5), (8, 20)])
def test_mean_and_covariance_are_kept(generator, n, m):
    X = skewed(n, m)
    drawn = whitened(X, generator.sample(X, MANY, 0))
    r = drawn.shape[1]
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5.0 / MANY**0.5)
    np.testing.assert_allclose(np.cov(drawn.T).reshape(r, r), np.eye(r), atol=0.1)


@second_order
def test_rows_stay_in_the_span_of_the_normals(generator):
    X = skewed(6, 15)
    left_over = generator.sample(X, 50, 0) - X.mean(axis=0)
    basis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5]
    left_over -= left_over @ basis.T @ basis
    assert np.abs(left_over).max() < 1e-9 * np.abs(X).max()


def test_gauss_is_gaussian():
    X = skewed(500, 3)
    drawn = whitened(X, Gauss().sample(X, 2000, 0))
    assert min(kstest(column, "norm").pvalue for column in drawn.T) > 0.001
    assert kstest((drawn**2).sum(axis=1), "chi2", args=(3,)).pvalue > 0.001


def test_pcshuffle_takes_every_coordinate_from_a_row():
    X = normals(30, 3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    U = np.linalg.svd(Z, full_matrices=False)[2].T
    drawn = (PCShuffle().sample(X, 200, 0) - X.mean(axis=0)) / X.std(axis=0) @ U
    nearest = np.abs(drawn[:, np.newaxis] - Z @ U)
    assert nearest.min(axis=1).max() < 1e-9
    rows = nearest.argmin(axis=1)
    assert np.mean(rows[:, 0] == rows[:, 1]) < 0.1


@second_order
def test_directions_of_next_to_no_spread_are_left_out(generator):
    rng = np.random.default_rng(4)
    x = rng.standard_normal(200)
    X = np.column_stack([x, x + 1e-5 * rng.standard_normal(200)])
    drawn = generator.sample(X, 100, 0)
    gap = np.diff((drawn - X.mean(axis=0)) / X.std(axis=0), axis=1)
    assert np.abs(gap).max() < 1e-9


@second_order
def test_one_row_gives_itself(generator):
    np.testing.assert_array_equal(generator.sample([[1.5, -2.0]], 3, 0), [[1.5, -2.0]] * 3)
