"""KPCA: the book's reconstruction error, its linear limit, and rows left out."""

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.decomposition import PCA

from ocfuse.detectors import kernel_algebra as spectra
from ocfuse.detectors.base import interleaved_folds, out_of_fold_scores
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.kpca import KPCA


def rows(n, m=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def by_the_book(K, k, size):
    """Centre explicitly, project, and subtract (Hoffmann 2007)."""
    n = len(K)
    H = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(H @ K @ H)
    alpha = vectors[:, ::-1][:, :size] / np.sqrt(values[::-1][:size])
    centred = (k - K.mean(axis=0)) @ H
    spherical = 1.0 - 2.0 * k.mean(axis=1) + K.mean()
    return spherical - np.sum((centred @ alpha) ** 2, axis=1)


@pytest.mark.parametrize("size", [1, 10, 60])
@pytest.mark.parametrize("width", [1.0, 0.25])
@pytest.mark.parametrize("full_rows", [10, 1000])
def test_score_is_the_reconstruction_error_of_the_book(monkeypatch, size, width, full_rows):
    monkeypatch.setattr(spectra, "FULL_ROWS", full_rows)
    monkeypatch.setattr(spectra, "SPARE", 10)
    gram = Gram(rows(150))
    query = gram.query(1.5 * rows(40, seed=1))
    detector = KPCA(subspace=size, width=width).fit_gram(gram)
    error = by_the_book(gram.kernel(width), query.kernel(width), size)
    expected = np.maximum(error - detector.resolution_, 0.0)
    assert detector.n_components_ == size
    assert detector.resolution_ < 1e-8
    np.testing.assert_allclose(detector.score_query(query), -expected, atol=1e-11)


def test_a_very_wide_kernel_is_linear():
    # k = 1 - d^2 / (w M) + ..., whose centred part is 2 x.y / (w M)
    X, Q = rows(100, 5) * [3.0, 2.0, 1.0, 0.5, 0.5], rows(30, 5, 1)
    width = 1e5
    detector = KPCA(subspace=2, width=width).fit(X)
    linear = PCA(2).fit(X)
    residual = np.sum((Q - linear.inverse_transform(linear.transform(Q))) ** 2, axis=1)
    expected = -2.0 * residual / (width * detector.reference_.scale)
    np.testing.assert_allclose(detector.score_samples(Q), expected, rtol=1e-3)


def test_all_directions_rebuild_the_training_rows():
    X = rows(40)
    detector = KPCA(subspace=1000, width=0.25).fit(X)
    assert detector.n_components_ == 39
    np.testing.assert_array_equal(detector.score_samples(X), 0.0)


@pytest.mark.parametrize("width", [0.25, 1.0, 1e3])
@pytest.mark.parametrize("n", [2, 20, 150])
def test_copies_have_no_error_with_or_without_themselves(n, width):
    gram = Gram(np.repeat(rows(n, 3), 4, axis=0))
    detector = KPCA(subspace=n, width=width).fit_gram(gram)
    # where the rank ends before the different rows do, they keep a part beyond it
    is_cut = detector.n_components_ < n - 1
    least = -is_cut * 1e-10 * gram.spectrum(width, n).values[0]
    for scores in (detector.score_query(gram), out_of_fold_scores(detector, gram, [])):
        assert scores.max() <= 0.0
        assert scores.min() >= least
    assert np.all(detector.score_query(gram.query(1e3 + rows(5, 3))) < -0.1)


def test_score_has_no_step_at_the_resolution():
    X = np.repeat(rows(20, 3), 4, axis=0)
    detector = KPCA(width=0.25).fit(X)
    path = X[:1] + np.logspace(-9, -2, 4000)[:, np.newaxis] * np.ones(3)
    scores = detector.score_samples(path)
    assert scores[0] == 0.0
    assert scores[-1] < -1e3 * detector.resolution_
    small = scores > -10 * detector.resolution_
    assert np.abs(np.diff(scores[small])).max() < 0.3 * detector.resolution_


@pytest.mark.parametrize("width", [1.0, 4.0])
def test_few_columns_leave_small_errors_which_are_told_apart(width):
    # the eigenvalues fall quickly, and what the directions kept miss is far below 1e-10 of them
    gram, fresh, off = Gram(rows(500, 2)), rows(500, 2, 1), 1.5 * rows(500, 2, 2)
    detector = KPCA(width=width).fit_gram(gram)
    scores = detector.score_query(gram.query(fresh))
    largest = gram.spectrum(width, 150).values[0]
    assert np.median(-scores) < 1e-10 * largest
    assert np.mean(scores == 0.0) < 0.2
    assert ks_2samp(out_of_fold_scores(detector, gram, []), scores).statistic < 0.1
    # the order of the rows changes no more than rounding does
    other = Gram(gram.X[::-1])
    again = clone(detector).fit_gram(other).score_query(other.query(fresh))
    np.testing.assert_allclose(again, scores, rtol=1e-3, atol=detector.resolution_)
    outside = np.abs(off).max(axis=1) > 3.5
    assert detector.score_query(gram.query(off[outside])).max() < np.median(scores)


def test_far_from_all_rows_the_error_is_known():
    gram = Gram(rows(40))
    detector = KPCA(subspace=5).fit_gram(gram)
    far = detector.score_query(gram.query(np.full((1, 4), 1e6)))
    mean = gram.kernel(1.0).mean()
    assert far[0] == pytest.approx(-(1.0 + mean - np.sum(detector.shift_**2)))


@pytest.mark.parametrize(
    ("n", "subspace", "size"), [(10, None, 3), (2, None, 1), (400, None, 120), (40, 7, 7)]
)
def test_size_of_the_subspace(n, subspace, size):
    assert KPCA(subspace=subspace, width=0.1).fit(rows(n)).n_components_ == size


def test_share_of_the_variance():
    gram = Gram(rows(100))
    size = KPCA(subspace=0.9).fit_gram(gram).n_components_
    H = np.eye(100) - 0.01
    values = np.linalg.eigvalsh(H @ gram.kernel(1.0) @ H)[::-1]
    assert values[:size].sum() >= 0.9 * values.sum() > values[: size - 1].sum()


@pytest.mark.parametrize("subspace", [None, 5, 0.8])
def test_left_out_scores_are_those_of_refits_of_the_same_size(subspace):
    gram = Gram(rows(60))
    detector = KPCA(subspace=subspace).fit_gram(gram)
    found = out_of_fold_scores(detector, gram, [])
    same = clone(detector).set_params(subspace=detector.n_components_)
    leave_one_out = [(np.delete(np.arange(60), i), np.array([i])) for i in range(60)]
    refitted = out_of_fold_scores(same, gram, leave_one_out, by_fold=True)
    np.testing.assert_allclose(found, refitted, atol=1e-8)


def test_left_out_scores_are_closer_to_fresh_ones_than_in_sample_and_folded_ones():
    X = rows(1300, 6)
    gram = Gram(X[:300])
    detector = KPCA().fit_gram(gram)
    fresh = np.median(detector.score_query(gram.query(X[300:])))
    left_out = np.median(out_of_fold_scores(detector, gram, []))
    folded = np.median(out_of_fold_scores(detector, gram, interleaved_folds(300), by_fold=True))
    in_sample = np.median(detector.score_query(gram))
    assert 5 * abs(left_out - fresh) < abs(folded - fresh)
    assert 5 * abs(left_out - fresh) < abs(in_sample - fresh)


def test_rows_that_alone_span_a_direction_are_left_out_in_full():
    """Of few different rows all directions are kept: without its row one of them is gone."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 6)) < 0.15).astype(float)
    gram = Gram(X)
    held_out = out_of_fold_scores(KPCA(width=1.0).fit_gram(gram), gram, ())
    M = gram.reference.scale
    for i in range(len(X)):
        others = np.delete(X, i, axis=0)
        width = M / Gram(others).reference.scale  # the same kernel
        expected = KPCA(width=width).fit(others).score_samples(X[[i]])[0]
        assert abs(held_out[i] - expected) < 1e-6
