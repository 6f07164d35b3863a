"""Kernel values are the same compiled and by NumPy."""

import numpy as np
import pytest

from ocfuse.detectors import gram


@pytest.fixture(params=[True, False])
def is_compiled(request, monkeypatch):
    if request.param and gram.kernel is None:
        pytest.skip("the kernel is not built")
    if not request.param:
        monkeypatch.setattr(gram, "kernel", None)


@pytest.mark.usefixtures("is_compiled")
def test_a_gaussian_kernel():
    D = np.random.default_rng(0).exponential(size=(5, 40))
    np.testing.assert_allclose(gram.decayed(D, 3.0), np.exp(-3.0 * D), rtol=4e-15)


@pytest.mark.usefixtures("is_compiled")
@pytest.mark.parametrize("order", ["C", "F"])
def test_squared_distances(order):
    X = np.random.default_rng(0).normal(size=(9, 3))
    norms = (X**2).sum(axis=1)
    D = gram.complete(np.array(-2.0 * X @ X.T, order=order), norms, norms)
    expected = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(D, expected, atol=1e-14)
    assert (D >= 0.0).all()
