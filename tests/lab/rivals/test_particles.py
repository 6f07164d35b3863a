"""The swarm on the simplex."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ocfuse.lab.rivals.swarm import onto_simplex, pruned, swarm_minimum

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
