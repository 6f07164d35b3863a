"""Principal coordinates of the normals."""

import numpy as np
import pytest
from hypothesis import given, settings

from ocfuse.negatives.base import principal_coordinates
from tests.negatives.cases import TABLES, normals


@given(X=TABLES)
@settings(deadline=None, max_examples=50)
def test_coordinates_are_uncorrelated_and_give_the_rows_back(X):
    found = principal_coordinates(X)
    r = found.U.shape[1]
    assert r < len(X) or len(X) == 1
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(r), atol=1e-8)
    products = found.t.T @ found.t
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-7 * max(1, X.size))
    # what is lost lies in directions of less than 0.001 of the largest spread
    lost = (X - found.rows(found.t)) / np.where(found.scale > 0, found.scale, 1.0)
    assert np.sqrt((lost**2).sum()) <= 1e-3 * np.sqrt(X.size * min(X.shape)) + 1e-9


@pytest.mark.parametrize(("n", "m"), [(40, 5), (5, 40)])
def test_signs_are_settled(n, m):
    U = principal_coordinates(normals(n, m)).U
    assert np.all(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] > 0)


def test_rows_that_differ_by_rounding_are_centred():
    above = np.nextafter(1.0, 2.0)
    found = principal_coordinates(np.array([[1.0, above], [above, 1.0], [1.0, 1.0]]))
    assert found.U.shape == (2, 2)
    np.testing.assert_allclose(found.t.mean(axis=0), 0.0, atol=1e-12)
