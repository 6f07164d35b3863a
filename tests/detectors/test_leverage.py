"""The choice of landmarks."""

import numpy as np

from ocfuse.detectors.landmarks import choose_landmarks, squared_distances


def rows(n, m=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def test_landmarks_are_chosen_by_leverage_without_chance():
    X = np.vstack([0.01 * rows(600, 2), [[5.0, 5.0], [-5.0, 5.0]]])
    chosen = choose_landmarks(X, 1.0, 30)
    assert 20 <= len(chosen) <= 30
    assert {600, 601} <= set(chosen)
    assert np.all(np.diff(chosen) > 0)
    np.testing.assert_array_equal(chosen, choose_landmarks(X.copy(), 1.0, 30))


def test_equal_rows_are_chosen_once():
    X = np.repeat(rows(10), 30, axis=0)
    np.testing.assert_array_equal(choose_landmarks(X, 6.0, 25), np.arange(0, 300, 30))


def test_the_place_of_the_rows_does_not_matter():
    X = rows(500)
    np.testing.assert_array_equal(choose_landmarks(X + 1e4, 6.0, 40), choose_landmarks(X, 6.0, 40))


def test_distances_keep_the_type_of_the_rows():
    X, Y = rows(20), rows(5, seed=1)
    expected = ((X[:, None] - Y) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(X, Y), expected, atol=1e-12)
    single = squared_distances(X.astype(np.float32), Y.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)
