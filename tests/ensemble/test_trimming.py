"""Rows that most members agree on are found; normal ones stay."""

import numpy as np
import pytest

from ocfuse.ensemble.trimming import FEWEST_ROWS, LARGEST_SHARE, outlying_rows


def test_planted_rows_are_found_and_normal_ones_stay():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(500, 5))
    S[:10] -= 60
    np.testing.assert_array_equal(np.flatnonzero(outlying_rows(S)), np.arange(10))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.19])
def test_many_rows_far_outside_hide_none(share):
    S = np.random.default_rng(5).normal(size=(200, 4))
    n = int(share * 200)
    S[:n] -= 1e3 * np.arange(1, n + 1)[:, np.newaxis]
    np.testing.assert_array_equal(np.flatnonzero(outlying_rows(S)), np.arange(n))


def test_one_member_alone_cannot_trim():
    S = np.random.default_rng(1).normal(size=(200, 5))
    S[:10, 0] -= 1000
    assert not outlying_rows(S).any()


def test_high_scores_are_never_outlying():
    S = np.random.default_rng(2).normal(size=(200, 3))
    S[:10] += 1000
    assert not outlying_rows(S).any()


def test_never_more_than_a_share(monkeypatch):
    monkeypatch.setattr("ocfuse.ensemble.trimming.CUT", 0.1)
    S = np.random.default_rng(3).normal(size=(100, 3))
    found = outlying_rows(S)
    assert found.sum() == LARGEST_SHARE * 100
    agreed = np.median((S - np.median(S, 0)) / (np.median(S, 0) - np.percentile(S, 25, 0)), 1)
    assert agreed[found].max() < agreed[~found].min()


def test_too_few_rows_to_tell():
    S = np.random.default_rng(4).normal(size=(FEWEST_ROWS - 1, 3))
    S[0] -= 1e6
    assert not outlying_rows(S).any()


def test_equal_scores():
    assert not outlying_rows(np.zeros((20, 3))).any()
