"""Rows that members and distances agree on are found; normal ones stay."""

import numpy as np
import pytest

from ocfuse.detectors import Pool
from ocfuse.ensemble import outliers
from ocfuse.ensemble.outliers import FEWEST_ROWS, outlying_rows, remote_groups, remote_rows


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pool", "n", "m"),
    [
        *(("default", n, m) for n, m in ((150, 1), (200, 2), (200, 5))),
        *(("light", 150, 1), ("paper", 200, 2), ("paper-all", 200, 5)),
    ],
)
def test_gaussian_rows_stay(pool, n, m):
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=(n, m))
        S = Pool(pool).fit(X, random_state=0).out_of_fold_scores_
        assert outlying_rows(S, X).sum() <= 1


class TestGroups:
    @pytest.mark.parametrize("share", [0.005, 0.05, 0.15])
    @pytest.mark.parametrize("m", [2, 10, 60])
    def test_a_tight_group_far_away_cannot_hide(self, share, m):
        rng = np.random.default_rng(m)
        X = rng.normal(size=(400, m))
        n = round(share * 400)
        X[:n] = 40 + 0.01 * rng.normal(size=(n, m))
        np.testing.assert_array_equal(np.flatnonzero(remote_groups(X)), np.arange(n))

    def test_units_and_glitches_do_not_matter(self):
        X = np.random.default_rng(0).normal(size=(300, 4)) * [1e-6, 1, 1e3, 1e9]
        X[:3] *= 1e5
        np.testing.assert_array_equal(np.flatnonzero(remote_groups(X)), np.arange(3))

    @pytest.mark.parametrize("m", [1, 2, 5, 20])
    @pytest.mark.parametrize(
        "draw",
        [
            lambda rng, size: rng.normal(size=size),
            lambda rng, size: rng.exponential(size=size),
            lambda rng, size: rng.standard_t(3, size=size),
            lambda rng, size: rng.lognormal(size=size),
            lambda rng, size: rng.poisson(1, size=size).astype(float),
            lambda rng, size: rng.exponential(size=size) * (rng.random(size) < 0.1),
            lambda rng, size: np.zeros(size),
        ],
        ids=["normal", "exponential", "t3", "lognormal", "counts", "sparse", "constant"],
    )
    def test_normal_rows_stay(self, draw, m):
        for seed in range(3):
            found = remote_groups(draw(np.random.default_rng(seed), (300, m)))
            assert found.mean() <= 0.005

    def test_too_few_rows_to_tell(self):
        X = np.random.default_rng(0).normal(size=(FEWEST_ROWS - 1, 3))
        X[0] = 1e6
        assert not remote_groups(X).any()

    @pytest.mark.parametrize("m", [1, 2, 10, 60])
    @pytest.mark.parametrize(
        "draw",
        [
            lambda rng, size: rng.normal(size=size),
            lambda rng, size: rng.standard_t(2, size=size),
            lambda rng, size: rng.exponential(size=size) * (rng.random(size) < 0.1),
            lambda rng, size: np.zeros(size),
        ],
        ids=["normal", "t2", "sparse", "constant"],
    )
    def test_many_rows_are_judged_as_few_are(self, monkeypatch, draw, m):
        rng = np.random.default_rng(m)
        X = draw(rng, (700, m))
        X[:20] = 40 + 0.01 * rng.normal(size=(20, m))
        X[20] = 1e30
        few = remote_groups(X)
        monkeypatch.setattr(outliers, "MANY_ROWS", 600)
        many = remote_groups(X)
        # the units come from fewer rows: one at the edge may change sides
        assert (few != many).sum() <= 2
        assert (many[:21] == few[:21]).all()


def test_remote_rows_are_those_that_members_may_find_outlying():
    S, X = normal_table(3000, 0)
    X[:10] += 500
    np.testing.assert_array_equal(np.flatnonzero(remote_rows(X)), np.arange(10))
    S[:5] -= 60
    S[20:25] -= 60
    # both are needed
    np.testing.assert_array_equal(np.flatnonzero(outlying_rows(S, X)), np.arange(5))
