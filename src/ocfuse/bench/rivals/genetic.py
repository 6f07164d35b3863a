"""Weighted averaging in stages: a genetic algorithm chooses members, a swarm weighs them."""

from typing import Any, TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from ocfuse.bench.rivals.base import FloatArray
from ocfuse.bench.rivals.fitness import Fitness
from ocfuse.bench.rivals.particles import Objective
from ocfuse.bench.rivals.swarm import SwarmAverage
from ocfuse.detectors.base import require_count

BoolArray: TypeAlias = NDArray[np.bool_]


class GeneticAverage(SwarmAverage):
    """Choose members by a genetic algorithm, then weigh those chosen.

    Known, from the record: Fatemifar, Asadi, Awais, Akbari and Kittler, "Face spoofing
    detection ensemble via multistage optimisation and pruning", Pattern Recognition
    Letters 2022. Three stages of optimisation of a weighted average of anomaly
    detectors, a normalisation for their fusion, and a criterion to prune it. That the
    members are chosen by a genetic algorithm, and the weights tuned afterwards, is how
    the paper describes it.

    Ours: in the first stage a subset counts as good as its plain average is by the
    fitness of `SwarmAverage`; the other stages, swarm and pruning, are those of
    `SwarmAverage`, among the members chosen.

    It learns from the normal rows only; rows with y = -1 are not looked at.

    Parameters
    ----------
    n_particles : int, default=30
        Size of the swarm.
    n_steps : int, default=60
        Moves of the swarm.
    rho : float, default=5.0
        Percentile of the normals trimmed on either side by the normalisation.
    n_genomes : int, default=20
        Subsets in each generation.
    n_generations : int, default=20
        Generations.
    random_state : int, RandomState or None, default=None
        Breeds the subsets and moves the swarm.

    Attributes
    ----------
    members_ : ndarray
        Members that the genetic algorithm has chosen.
    w_ : ndarray of shape (d,)
        Weights, not negative, of sum one; zero for members not chosen or pruned.
    fitness_ : float
        Their fitness; less is better.
    normaliser_ : MinMax
        The fitted normalisation.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.bench.rivals import GeneticAverage
    >>> Z = np.random.default_rng(0).standard_t([30, 2, 30], size=(200, 3))
    >>> GeneticAverage(random_state=0).fit(Z).members_  # the second has a long tail
    array([0, 2])
    """

    def __init__(
        self,
        n_particles: int = 30,
        n_steps: int = 60,
        rho: float = 5.0,
        n_genomes: int = 20,
        n_generations: int = 20,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_particles, n_steps, rho, random_state)
        self.n_genomes = n_genomes
        self.n_generations = n_generations

    def _members(self, fitness: Fitness, random: RandomState) -> Any:
        require_count("n_genomes", self.n_genomes, 2, "Use 20.")
        require_count("n_generations", self.n_generations, 1, "Use 20.")
        best = fittest_subset(
            fitness, fitness.n_members, self.n_genomes, self.n_generations, random
        )
        self.members_ = np.flatnonzero(best)
        return self.members_


def fittest_subset(
    objective: Objective, d: int, n_genomes: int, n_generations: int, random: RandomState
) -> BoolArray:
    """Return the subset of d members whose plain average has the least objective found."""
    genomes = _inhabited(random.random_sample((n_genomes, d)) < 0.5, random)
    genomes[0] = True
    value = objective(_plain(genomes))
    for _ in range(n_generations):
        elite = value.argmin()
        mothers, fathers = (_winners(value, random) for _ in range(2))
        from_mother = random.random_sample(genomes.shape) < 0.5
        children = np.where(from_mother, genomes[mothers], genomes[fathers])
        children ^= random.random_sample(children.shape) < 1.0 / d
        children[0] = genomes[elite]
        genomes = _inhabited(children, random)
        value = objective(_plain(genomes))
    return np.asarray(genomes[value.argmin()])


def _plain(genomes: BoolArray) -> FloatArray:
    return np.asarray(genomes / genomes.sum(axis=1, keepdims=True))


def _winners(value: FloatArray, random: RandomState) -> Any:
    """Draw two at a time and keep the better one."""
    first, second = random.randint(len(value), size=(2, len(value)))
    return np.where(value[first] <= value[second], first, second)


def _inhabited(genomes: BoolArray, random: RandomState) -> BoolArray:
    """Give a random member to every subset that has none."""
    empty = np.flatnonzero(~genomes.any(axis=1))
    genomes[empty, random.randint(genomes.shape[1], size=len(empty))] = True
    return genomes
