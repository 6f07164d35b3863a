"""Weighted averages by a swarm and by a genetic algorithm: fitness, search, fusions."""

from itertools import product

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from ocfuse import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion import LpFusion
from ocfuse.fusion.crossfit import ScoredRows, ballot_for
from ocfuse.lab.rivals import GeneticAverage, SwarmAverage
from ocfuse.lab.rivals.swarm import Fitness, fittest_subset, onto_simplex, pruned, swarm_minimum
from ocfuse.tuning import RPAU
from ocfuse.tuning.splits import fold_splits
from tests.lab.rivals.cases import islands

both = pytest.mark.parametrize(
    "fusion",
    [SwarmAverage(random_state=0), GeneticAverage(random_state=0)],
    ids=["swarm", "genetic"],
)


def tailed(seed=0, n=200):
    """Scores of normals whose tails are short but for the first, which has the others in it."""
    Z = np.random.default_rng(seed).normal(size=(n, 4))
    Z[:, 0] = np.sinh(3.0 * Z[:, 1:].mean(axis=1))
    return Z


@both
def test_weights_are_on_the_simplex_and_the_long_tail_is_pruned(fusion):
    model = clone(fusion).fit(tailed())
    assert model.w_.min() >= 0
    assert model.w_.sum() == pytest.approx(1.0)
    assert model.w_[0] == 0.0
    alone = np.eye(4)
    assert model.fitness_ <= Fitness(tailed(), np.ones(200), 5.0)(alone).min()
    np.testing.assert_array_equal(model.weights(np.zeros((2, 1))), np.tile(model.w_, (2, 1)))


@both
def test_equal_seeds_give_equal_weights_and_parameters_stay(fusion):
    Z = tailed()
    first, second = clone(fusion).fit(Z), clone(fusion)
    before = repr(second.get_params())
    np.testing.assert_array_equal(first.w_, second.fit(Z).w_)
    assert repr(second.get_params()) == before


@both
def test_anomalies_are_not_looked_at(fusion):
    Z = tailed()
    alone = clone(fusion).fit(Z)
    strange = np.random.default_rng(1).normal(-50, 9, size=(30, 4))
    y = np.repeat([1, -1], [len(Z), 30])
    beside = clone(fusion).fit(np.vstack([Z, strange]), y)
    np.testing.assert_allclose(beside.w_, alone.w_)
    np.testing.assert_allclose(beside.fuse(strange), alone.fuse(strange))


@both
def test_units_of_the_members_do_not_matter(fusion):
    Z = tailed()
    a, b = np.array([1.0, 50.0, 0.01, 3.0]), np.array([0.0, -7.0, 2.0, 1e3])
    plain, changed = clone(fusion).fit(Z), clone(fusion).fit(a * Z + b)
    np.testing.assert_allclose(changed.fuse(a * Z + b), plain.fuse(Z), atol=1e-6)


@both
def test_a_row_does_not_depend_on_the_others(fusion):
    Z = tailed()
    model = clone(fusion).fit(Z)
    single = np.concatenate([model.fuse(z[None]) for z in Z])
    np.testing.assert_allclose(single, model.fuse(Z), rtol=1e-10, atol=1e-10)
    base, C = model.contributions(Z)
    np.testing.assert_allclose(base + C.sum(axis=1), model.fuse(Z))


@both
@pytest.mark.parametrize("d", [1, 12])
@pytest.mark.parametrize("n", [1, 3, 35])
def test_any_shape(fusion, n, d):
    Z = np.random.default_rng(2).normal(size=(n, d))
    model = clone(fusion).fit(Z)
    assert model.w_.sum() == pytest.approx(1.0)
    assert np.isfinite(model.fuse(Z)).all()


@both
def test_constant_and_duplicate_members(fusion):
    z = np.random.default_rng(3).normal(size=(50, 1))
    Z = np.hstack([z, z, np.ones((50, 1))])
    model = clone(fusion).fit(Z)
    assert np.isfinite(model.fuse(Z)).all()
    assert model.w_.sum() == pytest.approx(1.0)


@pytest.mark.slow
@both
def test_on_the_members_of_the_paper(fusion):
    X, rows, is_normal = islands(0)
    detector = FusedDetector("paper", fusion=fusion, random_state=0).fit(X)
    assert len(detector.fusion_.w_) == 4
    assert roc_auc_score(is_normal, detector.score_samples(rows)) > 0.9


@both
def test_saved_and_loaded(fusion):
    Z = tailed()
    model = clone(fusion).fit(Z)
    data = skops.io.dumps(model)
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.fuse(Z), model.fuse(Z))


@pytest.mark.parametrize(
    "fusion",
    [
        SwarmAverage(n_particles=0),
        SwarmAverage(n_steps=2.5),
        SwarmAverage(rho=50),
        GeneticAverage(n_genomes=1),
        GeneticAverage(n_generations=0),
    ],
)
def test_parameters_that_cannot_be_used(fusion):
    with pytest.raises(InvalidInputError, match=r"must be .* Got"):
        fusion.fit(tailed())


class Given(LpFusion):
    """A fusion with weights that are given."""

    def _fit(self, Z, y, X, c):
        self.w_ = np.array([0.2, 0.5, 0.3])


def scored(S):
    n = len(S)
    return ScoredRows(
        S=S,
        y=np.ones(n, dtype=int),
        X=np.zeros((n, 1)),
        fold=np.arange(n) % 4,
        kind=np.full(n, -1),
        seen=np.full(S.shape, np.nan),
        ballot=ballot_for([], n, 1),
    )


@pytest.mark.parametrize("n", [30, 41])
def test_it_is_the_rpau_of_our_tuning_and_prefers_the_tighter_of_equal_ones(n):
    S = np.random.default_rng(0).standard_t([2, 5, 30], size=(n, 3))
    rpau = RPAU("power", rho=5.0)
    parts = [split.scaled(_Same()).judged(Given()) for split in fold_splits(scored(S))]
    value, _ = rpau.judge(parts)
    fitness = Fitness(S, np.ones(n), 5.0)
    A = np.concatenate([rpau._averages(part) for part in parts])
    expected = -value + fitness.tightness * A.mean()
    assert fitness(np.array([[0.2, 0.5, 0.3]]))[0] == pytest.approx(expected, rel=1e-9)


def test_long_tails_are_unfit():
    S = np.random.default_rng(1).standard_t([1.5, 30], size=(400, 2))
    tailed, tame = Fitness(S, np.ones(400), 5.0)(np.eye(2))
    assert tailed > 2 * tame


def test_rows_count_by_their_weight():
    S = np.random.default_rng(2).normal(size=(40, 2))
    W = np.array([[0.4, 0.6]])
    equal = Fitness(S, np.ones(40), 5.0)(W)
    np.testing.assert_allclose(Fitness(S, np.full(40, 7.0), 5.0)(W), equal)
    assert Fitness(S, np.arange(1.0, 41.0), 5.0)(W)[0] != pytest.approx(equal[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    assert np.isfinite(Fitness(np.zeros((n, 2)), np.ones(n), 5.0)(np.eye(2))).all()


class _Same:
    """A normaliser that changes nothing."""

    def fit(self, S):
        return self

    def transform(self, S):
        return S

    def get_params(self, deep=True):
        return {}


TABLES = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-1e3, 1e3)
)


def squared_distance(target):
    return lambda W: ((W - target) ** 2).sum(axis=1)


@pytest.mark.slow
@given(TABLES)
@settings(deadline=None, max_examples=100)
def test_projection_is_on_the_simplex_and_nearest(W):
    P = onto_simplex(W)
    assert P.min() >= 0
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(onto_simplex(P), P, atol=1e-9)
    others = np.random.default_rng(0).dirichlet(np.ones(W.shape[1]), 50)
    for w, p in zip(W, P, strict=True):
        # the angle to every other point of a convex set is obtuse at the nearest one
        assert ((others - p) @ (w - p)).max() <= 1e-6 * (1 + np.abs(w).max())


@pytest.mark.parametrize(
    ("target", "optimum"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]),
        ([0.7, 0.7, -0.4, -1.0], [0.5, 0.5, 0.0, 0.0]),
        ([-5.0, 9.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_swarm_reaches_the_optimum_of_a_convex_function(target, optimum, seed):
    found = swarm_minimum(squared_distance(target), 4, 30, 100, np.random.RandomState(seed))
    np.testing.assert_allclose(found, optimum, atol=1e-3)


@given(st.integers(0, 1000), st.integers(1, 8))
@settings(deadline=None, max_examples=30)
def test_swarm_is_never_worse_than_a_member_or_the_average(seed, d):
    waves = np.random.default_rng(seed).normal(size=(2, d))

    def rugged(W):
        return np.sin(40 * W @ waves[0]) + W @ waves[1]

    found = swarm_minimum(rugged, d, 3, 2, np.random.RandomState(seed))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0)
    places = np.vstack([np.eye(d), np.full((1, d), 1 / d)])
    assert rugged(found[None])[0] <= rugged(places).min() + 1e-12


def test_members_that_do_not_help_are_pruned():
    w = pruned(np.array([0.5, 0.3, 0.2]), lambda W: W[:, 2])  # the last one only harms
    assert w[2] == 0.0
    assert w.sum() == pytest.approx(1.0)


def test_members_that_help_are_kept():
    w = np.array([0.5, 0.3, 0.2])
    np.testing.assert_array_equal(pruned(w, squared_distance(w)), w)


def test_one_member_is_always_left():
    w = pruned(np.array([0.5, 0.3, 0.2]), lambda W: np.zeros(len(W)))
    assert np.count_nonzero(w) == 1
    assert w.max() == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_subsets_is_found(seed):
    target = np.random.default_rng(seed).dirichlet(np.ones(6))

    def objective(W):
        return ((W - target) ** 2).sum(axis=1)

    subsets = np.array(list(product([0.0, 1.0], repeat=6))[1:])
    least = objective(subsets / subsets.sum(axis=1, keepdims=True)).min()
    found = fittest_subset(objective, 6, 20, 20, np.random.RandomState(seed))
    assert objective((found / found.sum())[None])[0] == pytest.approx(least)


def test_a_subset_is_never_empty():
    random = np.random.RandomState(0)
    for _ in range(20):
        found = fittest_subset(lambda W: np.zeros(len(W)), 1, 2, 5, random)
        assert found.tolist() == [True]


def test_members_not_chosen_have_no_weight():
    Z = np.random.default_rng(0).standard_t([30, 1.5, 30, 1.5], size=(200, 4))
    model = GeneticAverage(random_state=0).fit(Z)
    others = np.setdiff1d(np.arange(4), model.members_)
    assert len(others)
    assert not model.w_[others].any()
