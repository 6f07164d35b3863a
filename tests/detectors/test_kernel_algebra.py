"""The spectrum of a centred kernel, whole or in part, rows left out of it, inverses."""

import numpy as np
import pytest

from ocfuse.detectors import kernel_algebra as module
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.kernel_algebra import (
    CholeskyInverse,
    SpectralInverse,
    centred_spectrum,
    eigenpairs,
)


@pytest.mark.parametrize("m", [1, 2, 30])
def test_pairs_rebuild_the_matrix(m):
    half = np.random.default_rng(m).normal(size=(m, m))
    A = half + half.T
    values, vectors = eigenpairs(A.copy(), overwrite=True)
    assert np.all(np.diff(values) >= 0)
    assert np.allclose((vectors * values) @ vectors.T, A)
    again = eigenpairs(A)
    assert np.array_equal(again[0], values)


def kernel(n=120, m=5, width=0.5, seed=0):
    return Gram(np.random.default_rng(seed).normal(size=(n, m))).kernel(width)


def centred(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


def left_out_error(K, i, size):
    """Learn from all rows but i, by the book, and reconstruct row i."""
    rest = np.delete(np.arange(len(K)), i)
    A, k = K[np.ix_(rest, rest)], K[i, rest]
    values, vectors = np.linalg.eigh(centred(A))
    values, vectors = values[::-1][:size], vectors[:, ::-1][:, :size]
    k_centred = k - k.mean() - A.mean(axis=0) + A.mean()
    return K[i, i] - 2 * k.mean() + A.mean() - np.sum((k_centred @ vectors) ** 2 / values)


@pytest.fixture
def in_part(monkeypatch):
    monkeypatch.setattr(module, "FULL_ROWS", 10)
    monkeypatch.setattr(module, "SPARE", 20)


def test_full_spectrum_rebuilds_the_centred_kernel():
    K = kernel()
    found = centred_spectrum(K, 5)
    assert found.is_full
    np.testing.assert_allclose(
        found.vectors * found.values @ found.vectors.T, centred(K), atol=1e-9
    )
    np.testing.assert_allclose(found.diagonal, centred(K).diagonal(), atol=1e-14)
    np.testing.assert_allclose(found.squares, (centred(K) @ centred(K)).diagonal(), atol=1e-12)


@pytest.mark.usefixtures("in_part")
@pytest.mark.parametrize("subspace", [7, 0.5])
def test_part_of_the_spectrum_is_that_of_the_whole(subspace):
    K = kernel()
    found = centred_spectrum(K, subspace)
    values = np.linalg.eigvalsh(centred(K))[::-1]
    size = found.size(subspace)
    assert not found.is_full
    assert found.has(size)
    assert found.vectors.shape == (120, size + 20)
    np.testing.assert_allclose(found.values, values, atol=1e-9)
    V = found.vectors
    np.testing.assert_allclose(V.T @ V, np.eye(size + 20), atol=1e-12)
    np.testing.assert_allclose(centred(K) @ V, V * found.values[: size + 20], atol=1e-12)


@pytest.mark.usefixtures("in_part")
@pytest.mark.parametrize("subspace", [60, 0.9999])
def test_many_directions_take_all(subspace):
    assert centred_spectrum(kernel(), subspace).is_full


def test_share_takes_the_fewest_directions_that_explain_it():
    found = centred_spectrum(kernel(), 1)
    for share in (0.1, 0.5, 0.9, 0.999):
        size = found.size(share)
        assert found.values[:size].sum() >= share * found.values.sum()
        assert found.values[: size - 1].sum() < share * found.values.sum()


def test_size_stops_at_the_numerical_rank():
    K = Gram(np.repeat(np.random.default_rng(0).normal(size=(6, 2)), 5, axis=0)).kernel(1.0)
    found = centred_spectrum(K, 30)
    assert found.rank == found.size(30) == found.size(0.9999999999999999) == 5
    assert centred_spectrum(np.ones((4, 4)), 2).size(2) == 0


@pytest.mark.parametrize("width", [1.0, 0.25])
@pytest.mark.parametrize("size", [1, 8, 40])
def test_left_out_errors_are_those_of_refits(width, size):
    K = kernel(90, 5, width)
    found = centred_spectrum(K, size).left_out_errors(size)
    expected = np.array([left_out_error(K, i, size) for i in range(len(K))])
    np.testing.assert_allclose(found, expected, atol=1e-8 * expected.std())


def test_left_out_errors_with_duplicates_and_a_flat_spectrum():
    K = Gram(np.repeat(np.random.default_rng(0).normal(size=(30, 4)), 3, axis=0)).kernel(0.02)
    expected = np.array([left_out_error(K, i, 10) for i in range(len(K))])
    np.testing.assert_allclose(centred_spectrum(K, 10).left_out_errors(10), expected, atol=1e-8)


def test_left_out_errors_of_two_rows():
    K = np.array([[1.0, 0.3], [0.3, 1.0]])
    np.testing.assert_allclose(centred_spectrum(K, 1).left_out_errors(1), 2 * (1 - 0.3))


@pytest.mark.usefixtures("in_part")
@pytest.mark.parametrize("width", [1.0, 0.25])
def test_left_out_errors_from_part_of_the_spectrum_are_close(width):
    K = kernel(300, 8, width)
    size = 60
    part = centred_spectrum(K, size)
    errors = part.left_out_errors(size)
    module.FULL_ROWS = 1000
    exact = centred_spectrum(K, size).left_out_errors(size)
    assert not part.is_full
    gaps = np.abs(errors - exact) / exact.std()
    assert np.sqrt(np.mean(gaps**2)) < 0.02
    assert gaps.max() < 0.15


@pytest.mark.parametrize("noise", [1e-4, 0.01, 1.0])
def test_inverse_from_the_spectrum_is_that_of_cholesky(noise):
    K = kernel()
    one, two = SpectralInverse(centred_spectrum(K, 1), noise), CholeskyInverse(K, noise)
    exact = np.linalg.inv(K + noise * np.eye(len(K)))
    scale = np.abs(exact).max()
    for inverse in (one, two):
        np.testing.assert_allclose(inverse.alpha, exact.sum(axis=1), atol=1e-9 * scale)
        np.testing.assert_allclose(inverse.diagonal, exact.diagonal(), atol=1e-9 * scale)
