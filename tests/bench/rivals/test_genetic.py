"""The genetic algorithm that chooses members."""

from itertools import product

import numpy as np
import pytest

from ocfuse.lab.rivals import GeneticAverage
from ocfuse.lab.rivals.swarm import fittest_subset


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
