"""Rows that members and distances agree on are found; normal ones stay."""

import numpy as np
import pytest

from ocfuse.detectors import Pool
from ocfuse.ensemble.trimming import FEWEST_ROWS, outlying_rows


def normal_table(n, seed, d=5, m=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, m))


def test_planted_rows_are_found_and_normal_ones_stay():
    S, X = normal_table(500, 0)
    S[:10] -= 60
    X[:10] += 500
    np.testing.assert_array_equal(np.flatnonzero(outlying_rows(S, X)), np.arange(10))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.19])
def test_many_rows_far_outside_hide_none(share):
    S, X = normal_table(200, 5, d=4)
    n = int(share * 200)
    S[:n] -= 1e3 * np.arange(1, n + 1)[:, np.newaxis]
    X[:n] *= 1e4
    np.testing.assert_array_equal(np.flatnonzero(outlying_rows(S, X)), np.arange(n))


def test_glitches_that_stick_are_found():
    S, X = normal_table(200, 6)
    S[:30] -= 1e3
    X[:30] = 1e4
    np.testing.assert_array_equal(np.flatnonzero(outlying_rows(S, X)), np.arange(30))


@pytest.mark.parametrize("n_against", [1, 2])
def test_half_of_the_members_cannot_trim(n_against):
    S, X = normal_table(200, 1, d=4)
    S[:10, :n_against] -= 1000
    X[:10] += 500
    assert not outlying_rows(S, X).any()


def test_members_alone_cannot_trim():
    S, X = normal_table(200, 2)
    S[:10] -= 1e6
    assert not outlying_rows(S, X).any()


def test_high_scores_are_never_outlying():
    S, X = normal_table(200, 2)
    S[:10] += 1000
    X[:10] += 500
    assert not outlying_rows(S, X).any()


def test_too_few_rows_to_tell():
    S, X = normal_table(FEWEST_ROWS - 1, 4)
    S[0] -= 1e6
    X[0] += 1e6
    assert not outlying_rows(S, X).any()


def test_equal_scores():
    assert not outlying_rows(np.zeros((20, 3)), np.zeros((20, 2))).any()


@pytest.mark.parametrize("pool", ["default", "light", "paper", "paper-all"])
@pytest.mark.parametrize(("n", "m"), [(150, 1), (200, 2), (200, 5)])
def test_gaussian_rows_stay(pool, n, m):
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(n, m))
        S = Pool(pool).fit(X, random_state=0).honest_scores_
        assert outlying_rows(S, X).sum() <= 1
