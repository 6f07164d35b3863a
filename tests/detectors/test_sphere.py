"""The soft sphere: the solution of another solver, rows left out, border cases."""

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from ocfuse.detectors.landmark_models import LEAST_OWN, SoftSphere


def coordinates(n, m=6, seed=0):
    """Return rows of different lengths below 1."""
    rng = np.random.default_rng(seed)
    phi = np.abs(rng.normal(size=(n, m))) + 0.3
    return phi * (rng.uniform(0.6, 0.95, n) / np.linalg.norm(phi, axis=1))[:, None]


def kernel(phi):
    K = phi @ phi.T
    return K + np.diag(np.maximum(1.0 - K.diagonal(), LEAST_OWN))


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5, 0.9])
def test_the_dual_has_the_rest_of_each_row_on_its_diagonal(nu):
    phi = coordinates(300)
    sphere = SoftSphere(phi, nu)
    solver = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(kernel(phi))
    total = solver.dual_coef_.sum()
    centre = solver.dual_coef_[0] @ phi[solver.support_] / total
    np.testing.assert_allclose(sphere.centre, centre, rtol=1e-6)
    assert sphere.level == pytest.approx(-solver.intercept_[0] / total, rel=1e-6)
    np.testing.assert_array_equal(sphere.support, np.sort(solver.support_))


def test_single_precision_moves_little():
    phi = coordinates(2000, 30)
    double, single = SoftSphere(phi, 0.1), SoftSphere(phi.astype(np.float32), 0.1)
    np.testing.assert_allclose(single.centre, double.centre, atol=1e-5)
    assert single.level == pytest.approx(double.level, abs=1e-5)


def test_a_row_that_is_left_out_is_where_a_sphere_without_it_has_it():
    phi = coordinates(400)
    sphere = SoftSphere(phi, 0.1)
    rows = phi[sphere.support] - sphere.middle
    spans = np.einsum("sm,sm->s", rows, np.linalg.solve(sphere.factor @ sphere.factor.T, rows.T).T)
    seen = phi[sphere.support] @ sphere.centre - sphere.level
    left_out = seen - sphere.lost(slice(None), spans, spans)
    expected = []
    for row in sphere.support:
        # the bound of the weights stays that of 400 rows
        others = SoftSphere(np.delete(phi, row, axis=0), 0.1 * 400 / 399)
        expected.append(phi[row] @ others.centre - others.level)
    assert np.abs(left_out - expected).max() < 0.2 * np.abs(seen - expected).max()
    assert np.corrcoef(left_out, expected)[0, 1] > 0.999


@pytest.mark.parametrize(
    "phi",
    [
        np.tile(coordinates(1), (50, 1)),
        np.repeat(coordinates(5), 40, axis=0),
        np.vstack([np.tile([[0.9, 0.0]], (99, 1)), [[0.0, 0.9]]]),
        np.zeros((30, 2)),
    ],
    ids=["one", "five", "one and another", "none"],
)
@pytest.mark.parametrize("nu", [1e-4, 0.1, 0.2, 0.99])
def test_equal_rows_and_hardly_any_outside(phi, nu):
    sphere = SoftSphere(phi, nu)
    solver = OneClassSVM(kernel="precomputed", nu=max(nu, 1 / len(phi)), tol=1e-10)
    total = solver.fit(kernel(phi)).dual_coef_.sum()
    centre = solver.dual_coef_[0] @ phi[solver.support_] / total
    np.testing.assert_allclose(sphere.centre, centre, atol=1e-5)
    spans = np.zeros(len(sphere.support))
    assert np.isfinite(sphere.lost(slice(None), spans, spans)).all()
