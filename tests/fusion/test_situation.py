"""Context counts where it tells something about the scores of other normals, and only there."""

import numpy as np
import pytest

from ocfuse.fusion import CompetenceFusion
from ocfuse.fusion.local_scale import LocalScale, learned_scale
from ocfuse.groups import Groups

PRIORS = (20, 60.0, 3.0, 1)


def rows_of(context, seed, n=400):
    return np.column_stack([np.random.default_rng(seed).normal(size=(n, 3)), context])


def wandering(seed, n_runs=6):
    """Scores that wander within each run, whatever the progress."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(scale=0.31, size=(n_runs, 100, 4))
    Z = np.zeros_like(steps)
    for t in range(1, 100):
        Z[:, t] = 0.95 * Z[:, t - 1] + steps[:, t]
    X = rows_of(np.tile(np.linspace(0, 5, 100), n_runs), seed, 100 * n_runs)
    return X, Z.reshape(-1, 4), Groups(np.repeat(np.arange(n_runs), 100))


def test_context_that_tells_nothing_is_ignored():
    weights = []
    for seed in range(8):
        rng = np.random.default_rng(100 + seed)
        X, Z = rows_of(3 * rng.random(400), seed), rng.normal(size=(400, 3))
        weights.append(learned_scale(X, Z, *PRIORS, None).context_weight)
    assert np.count_nonzero(weights) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_context_that_tells_the_spread_or_the_mean_counts(seed):
    rng = np.random.default_rng(seed)
    context = 3 * rng.random(400)
    X, noise = rows_of(context, seed), rng.normal(size=(400, 3))
    restless = noise * np.where(context < 1.5, 0.3, 1.4)[:, np.newaxis]
    shifted = (noise + 2 * np.sign(context - 1.5)[:, np.newaxis]) / np.sqrt(5)
    for Z in (restless, shifted):
        assert learned_scale(X, Z, *PRIORS, None).context_weight > 0


@pytest.mark.slow
def test_rows_of_the_same_run_do_not_vouch_for_context():
    """Neighbours in time are alike; that says nothing of a fresh run at the same progress."""
    blind, told, priors = [], [], []
    for seed in range(4):
        X, Z, groups = wandering(seed)
        blind.append(learned_scale(X, Z, *PRIORS, None).context_weight)
        told.append(learned_scale(X, Z, *PRIORS, groups).context_weight)
        priors.append(LocalScale(X, Z, *PRIORS, groups=groups).shift_prior)
    assert np.all(blind)
    assert np.count_nonzero(told) <= 1
    assert np.median(priors) == 60.0
    assert LocalScale(X, Z, *PRIORS).shift_prior < 30


def test_width_is_that_of_other_groups():
    """Rows come in tight clumps: the nearest rows of another group are far."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 2)), 10, axis=0) + 1e-3 * rng.normal(size=(400, 2))
    Z, groups = rng.normal(size=(400, 2)), Groups(np.repeat(np.arange(40), 10))
    within = LocalScale(X, Z, 5, 60.0, 3.0).width
    between = LocalScale(X, Z, 5, 60.0, 3.0, groups=groups).width
    assert within < 0.01 < 0.05 < between
    # one group has no others: then it does not count
    alone = LocalScale(X, Z, 5, 60.0, 3.0, groups=Groups(np.zeros(400, dtype=int)))
    assert alone.width == within


def test_the_purge_counts_too():
    place = np.arange(400)
    X, Z = place[:, np.newaxis] / 100.0, np.random.default_rng(0).normal(size=(400, 2))
    groups = Groups(place // 10, place, purge=50)
    assert LocalScale(X, Z, 5, 60.0, 3.0, groups=groups).width > 0.5
    assert groups.same_group(np.array([0, 200])).sum(axis=1).tolist() == [51, 101]


def test_weight_nought_is_no_context():
    rng = np.random.default_rng(0)
    X, Z = rows_of(rng.random(400), 0), rng.normal(size=(400, 3))
    zero = LocalScale(X, Z, *PRIORS, 0.0)
    blind = LocalScale(X[:, :3], Z, *PRIORS[:3])
    np.testing.assert_allclose(zero.at(X), blind.at(X[:, :3]))


def test_a_given_weight_is_taken():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    fusion = CompetenceFusion(context_weight=2.0).fit(Z, X=X, context=rng.random(100))
    assert fusion.scale_.context_weight == 2.0
    assert CompetenceFusion().fit(Z, X=X).scale_.context_weight == 1.0
