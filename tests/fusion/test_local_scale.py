"""The local scale: drawn to the global one far from all normals, and to context that helps."""

import pickle
import warnings

import numpy as np
import pytest

from ocfuse.exceptions import SuspectInputWarning
from ocfuse.fusion import CompetenceFusion, local_scale
from ocfuse.fusion.local_scale import LocalScale, learned_scale, warn_if_far
from ocfuse.groups import Groups


def _normals(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = np.column_stack([X[:, 0], rng.normal(size=n)])
    return X, (Z - Z.mean(axis=0)) / Z.std(axis=0)


def test_formula_at_one_point():
    X, Z = _normals(60)
    scale = LocalScale(X, Z, n_neighbors=4, shift_prior=7.0, scale_prior=2.0)
    x = np.array([[0.3, -0.2]])
    r = np.sqrt(((X - x) ** 2).sum(axis=1))
    near = np.argsort(r)[:4]
    K = np.exp(-(r[near] ** 2) / (2 * scale.width**2))
    m = K @ Z[near] / K.sum()
    mean, sd = scale.at(x)
    np.testing.assert_allclose(mean[0], K.sum() * m / (K.sum() + 7.0))
    variance = (K @ (Z[near] - m) ** 2 + 2.0) / (K.sum() + 2.0)
    np.testing.assert_allclose(sd[0] ** 2, variance)


def test_width_reaches_the_neighbours_of_half():
    X, Z = _normals(200)
    scale = LocalScale(X, Z, 5, 60.0, 3.0)
    r = np.sort(np.sqrt(((X[:, None] - X) ** 2).sum(axis=2)), axis=1)[:, 5]
    assert scale.width == np.quantile(r, 0.5)


def test_follows_the_normals_nearby_and_is_global_far_away():
    X, Z = _normals()
    scale = LocalScale(X, Z, 20, 5.0, 3.0)
    mean, sd = scale.at(np.array([[1.0, 0.0], [-1.0, 0.0], [1e3, 0.0]]))
    assert mean[0, 0] > 0.5
    assert mean[1, 0] < -0.5
    assert sd[0, 0] < 0.7
    np.testing.assert_array_equal(mean[2], 0.0)
    np.testing.assert_array_equal(sd[2], 1.0)


def test_few_rows_have_few_neighbours_and_none_is_allowed():
    X, Z = _normals(30)
    assert LocalScale(X, Z, 20, 60.0, 3.0).k == 3
    mean, sd = LocalScale(X, Z, 0, 60.0, 3.0).at(X)
    assert not mean.any()
    assert (sd == 1).all()
    assert LocalScale(X[:1], Z[:1], 20, 60.0, 3.0).k == 0


def test_duplicates_and_batches():
    X, Z = np.zeros((50, 3)), np.random.default_rng(1).normal(size=(50, 2))
    mean, sd = LocalScale(X, Z, 20, 60.0, 3.0).at(np.zeros((1, 3)))
    assert np.isfinite(mean).all()
    assert (sd > 0).all()
    X, Z = _normals()
    scale = LocalScale(X, Z, 20, 60.0, 3.0)
    together = scale.at(X)
    for alone, row in zip(zip(*together, strict=True), X, strict=True):
        np.testing.assert_array_equal(np.vstack(scale.at(row[None])), np.vstack(alone))


def test_the_prior_is_learned_from_context():
    """Means that differ between contexts are trusted; where they do not the prior stays."""
    rng = np.random.default_rng(0)
    X, context = rng.normal(size=(400, 2)), rng.random((400, 1))
    noise = rng.normal(size=(400, 2))
    by_context = (noise + 3 * np.sign(context - 0.5)) / np.sqrt(10)
    rows = np.hstack([X, 3 * context])
    plain = LocalScale(rows, noise, 20, 60.0, 3.0, n_context=1)
    told = LocalScale(rows, by_context, 20, 60.0, 3.0, n_context=1)
    assert plain.shift_prior > 10
    # variance 1 within a context, 9 between them, and some neighbours across the border
    assert 1 / 9 < told.shift_prior < 2 / 9
    assert LocalScale(rows, by_context, 20, 60.0, 3.0).shift_prior == 60.0


def test_many_normals_are_searched_with_the_same_answer(monkeypatch):
    X, Z = _normals(2600)
    points = _normals(50, seed=3)[0]
    searched = LocalScale(X, Z, 20, 60.0, 3.0)
    monkeypatch.setattr(local_scale, "MOST_COMPARED", 5000)
    compared = LocalScale(X, Z, 20, 60.0, 3.0)
    # the width is told by fewer rows
    np.testing.assert_allclose(searched.width, compared.width, rtol=0.1)
    searched.width = compared.width
    for found, expected in zip(searched.at(points), compared.at(points), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(
        np.vstack(searched.at(points[7:8])), np.vstack([part[7] for part in searched.at(points)])
    )


def test_the_search_is_made_again_and_not_saved():
    X, Z = _normals(2100)
    scale = LocalScale(X, Z, 20, 60.0, 3.0)
    again = pickle.loads(pickle.dumps(scale))
    assert not [name for name in vars(again) if name.startswith("_")]
    np.testing.assert_array_equal(again.at(X[:9]), scale.at(X[:9]))


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


@pytest.mark.parametrize("context", [[2.0, 7.0], [-1.0, np.nan], [], [[0.5], [6.9]]])
def test_up_to_its_width_beyond_nothing_is_told(context):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_if_far(context, low=1.0, high=4.0)


@pytest.mark.parametrize(("value", "shown"), [(7.1, "7.1"), (-2.1, "-2.1"), (1e9, r"1e\+09")])
def test_farther_is_told(value, shown):
    with pytest.warns(SuspectInputWarning, match=f"was 1 to 4 in training, and is {shown} now"):
        assert warn_if_far([2.0, value], low=1.0, high=4.0)


def test_every_column_has_its_range():
    low, high = np.array([0.0, 100.0]), np.array([1.0, 200.0])
    assert not warn_if_far([[0.5, 150.0]], low, high)
    with pytest.warns(SuspectInputWarning, match="was 0 to 1 in training, and is 150 now"):
        assert warn_if_far([[0.5, 150.0], [150.0, 150.0]], low, high)
