"""The two weighted averages: fusions of member scores."""

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from ocfuse import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals import GeneticAverage, SwarmAverage
from ocfuse.lab.rivals.swarm import Fitness
from tests.bench.rivals.cases import islands

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
