import numpy as np
import pytest

from ocfuse.detectors.kernel_algebra import eigenpairs


@pytest.mark.parametrize("m", [1, 2, 30])
def test_pairs_rebuild_the_matrix(m):
    half = np.random.default_rng(m).normal(size=(m, m))
    A = half + half.T
    values, vectors = eigenpairs(A.copy(), overwrite=True)
    assert np.all(np.diff(values) >= 0)
    assert np.allclose((vectors * values) @ vectors.T, A)
    again = eigenpairs(A)
    assert np.array_equal(again[0], values)
