"""Weighted averages by a particle swarm, after Fatemifar et al. (2022), and by stages."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.detectors.base import interleaved_folds, require_count
from ocfuse.fusion.base import BaseFusion
from ocfuse.scores import MinMax

#: Weights of shape (v, d) in, v values out; less is better.
Objective: TypeAlias = Callable[[FloatArray], FloatArray]


class Fitness:
    """Relative percentage above unity (RPAU) of weighted averages; less is better.

    The formula is that of ``ocfuse.tuning.RPAU("power")``, itself a reconstruction,
    for many weight vectors at once. With a = 1 - z of held-out normals and
    ``A_i = sum_j w_j a_ij``::

        sum_{A_i > 1} (A_i - 1)^2 / sum_i A_i^2  +  1e-6 mean_i A_i

    The last term, `tightness`, prefers the tighter description of equal ones. The two-sided
    min-max of each fold, between the percentiles rho and 100 - rho, is learned from the other
    folds. Z, of shape (n, d), are out-of-fold scores of normals, c their positive weights.
    """

    def __init__(self, Z: FloatArray, c: FloatArray, rho: float, tightness: float = 1e-6) -> None:
        self.tightness = tightness
        self._c = c / c.sum()
        self._a = np.empty_like(Z)
        for train, test in interleaved_folds(len(Z)):
            learned = train if len(train) else test  # of a single row
            scale = MinMax(rho).fit(Z[learned], c[learned])
            self._a[test] = 1.0 - scale.transform(Z[test])

    @property
    def n_members(self) -> int:
        """Number of members d."""
        return int(self._a.shape[1])

    def __call__(self, W: FloatArray) -> FloatArray:
        """Return the fitness of each row of W, shape (v, d), weights that add up to one."""
        A = self._a @ W.T
        above = self._c @ np.maximum(A - 1.0, 0.0) ** 2
        total = np.maximum(self._c @ A**2, np.finfo(float).tiny)
        return np.asarray(above / total + self.tightness * (self._c @ A))


class SwarmAverage(BaseFusion):
    """Weighted average of normalised scores, with weights from a particle swarm.

    Known, from the abstract: Fatemifar, Awais, Akbari and Kittler, "Developing a
    generic framework for anomaly detection", Pattern Recognition 2022. A fitness
    function judges one-class classifiers without anomalous samples; a two-sided
    normalisation copes with long tails; the weights of the average come from particle
    swarm optimisation. Published for D1 to D3, D6 and D8 to D10, G-mean only.

    Ours, as the formulas are not public: the fitness is the reconstructed RPAU with a
    tie-break by tightness (`ocfuse.lab.rivals.swarm`), the normalisation a min-max
    between two percentiles, the swarm a plain one on the simplex, and members are
    pruned whose removal does not worsen the fitness.

    It learns from normal rows only; rows with y = -1 are not used.

    Parameters
    ----------
    n_particles : int, default=30
        Number of particles; at least one more than the number of members are used.
    n_steps : int, default=60
        Number of steps of the swarm.
    rho : float, default=5.0
        Percentage of normal scores that the normaliser trims on either side.
    random_state : int, RandomState or None, default=None
        Seed of the swarm.

    Attributes
    ----------
    w_ : ndarray of shape (d,)
        Weights, not negative, which add up to 1; 0 for removed members.
    fitness_ : float
        Fitness of the weights; less is better.
    normaliser_ : MinMax
        The fitted normaliser.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.lab.rivals import SwarmAverage
    >>> Z = np.random.default_rng(0).standard_t([30, 2], size=(200, 2))
    >>> SwarmAverage(random_state=0).fit(Z).w_.round(1)  # the second has a long tail
    array([0.8, 0.2])
    """

    def __init__(
        self,
        n_particles: int = 30,
        n_steps: int = 60,
        rho: float = 5.0,
        random_state: Any = None,
    ) -> None:
        self.n_particles = n_particles
        self.n_steps = n_steps
        self.rho = rho
        self.random_state = random_state

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        require_count("n_particles", self.n_particles, 1, "Use 30.")
        require_count("n_steps", self.n_steps, 1, "Use 60.")
        random = check_random_state(self.random_state)
        normals, weights = Z[y > 0], c[y > 0]
        self.normaliser_ = MinMax(self.rho).fit(normals, weights)
        fitness = Fitness(normals, weights, self.rho)
        self.w_ = self._weights_for(fitness, self._members(fitness, random), random)
        self.fitness_ = float(fitness(self.w_[np.newaxis])[0])

    def _members(self, fitness: Fitness, random: RandomState) -> Any:
        """Return the members among which the swarm divides the weight: all."""
        return np.arange(fitness.n_members)

    def _weights_for(self, fitness: Fitness, members: Any, random: RandomState) -> FloatArray:
        def among_members(W: FloatArray) -> FloatArray:
            return fitness(_spread(W, members, fitness.n_members))

        found = swarm_minimum(among_members, len(members), self.n_particles, self.n_steps, random)
        whole = _spread(pruned(found, among_members)[np.newaxis], members, fitness.n_members)
        return np.asarray(whole[0])

    def _trust(self) -> FloatArray:
        return self.w_

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray((self.normaliser_.transform(Z) * self.w_).sum(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), self.normaliser_.transform(Z) * self.w_


def _spread(W: FloatArray, members: Any, d: int) -> FloatArray:
    """Return the weights of some members as weights of all d."""
    whole = np.zeros((len(W), d))
    whole[:, members] = W
    return whole


class GeneticAverage(SwarmAverage):
    """Weighted average of members that a genetic algorithm chooses.

    Known, from the record: Fatemifar, Asadi, Awais, Akbari and Kittler, "Face spoofing
    detection ensemble via multistage optimisation and pruning", Pattern Recognition
    Letters 2022. Three stages of optimisation of a weighted average of anomaly
    detectors, a normalisation for their fusion, and a criterion to prune it. That the
    members are chosen by a genetic algorithm, and the weights tuned afterwards, is how
    the paper describes it.

    Reconstructed: in the first stage the value of a subset is the fitness (see `SwarmAverage`) of
    its unweighted average. The other stages, swarm and pruning, are those of `SwarmAverage`, with
    the chosen members.

    It learns from normal rows only; rows with y = -1 are not used.

    Parameters
    ----------
    n_particles : int, default=30
        Number of particles.
    n_steps : int, default=60
        Number of steps of the swarm.
    rho : float, default=5.0
        Percentage of normal scores that the normaliser trims on either side.
    n_genomes : int, default=20
        Number of subsets in each generation.
    n_generations : int, default=20
        Generations.
    random_state : int, RandomState or None, default=None
        Seed of the genetic algorithm and of the swarm.

    Attributes
    ----------
    members_ : ndarray
        Positions of the chosen members.
    w_ : ndarray of shape (d,)
        Weights, not negative, which add up to 1; 0 for members that were not chosen or removed.
    fitness_ : float
        Fitness of the weights; less is better.
    normaliser_ : MinMax
        The fitted normaliser.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.lab.rivals import GeneticAverage
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


def swarm_minimum(
    objective: Objective, d: int, n_particles: int, n_steps: int, random: RandomState
) -> FloatArray:
    """Return the best weights, not negative and of sum one, that a swarm has visited.

    It starts at every member alone, at equal weights, and at random places: what it
    returns is never worse than the best member or the plain average.
    """
    # the constriction of Clerc and Kennedy (2002), under which a swarm comes to rest
    inertia, pull = 0.7298, 1.4962
    fixed = np.vstack([np.eye(d), np.full((1, d), 1.0 / d)])
    n_random = max(n_particles - len(fixed), 0)
    place = np.vstack([fixed, random.dirichlet(np.ones(d), n_random)])
    speed = np.zeros_like(place)
    best, value = place.copy(), objective(place)
    for _ in range(n_steps):
        own, common = random.random_sample((2, *place.shape))
        leader = best[value.argmin()]
        speed = inertia * speed + pull * (own * (best - place) + common * (leader - place))
        moved = onto_simplex(place + speed)
        speed, place = moved - place, moved  # a wall takes the speed across it
        new = objective(place)
        better = new < value
        best[better], value[better] = place[better], new[better]
    return np.asarray(best[value.argmin()])


def onto_simplex(W: FloatArray) -> FloatArray:
    """Return the nearest weights that are not negative and add up to one, row by row."""
    descending = -np.sort(-W, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, W.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(W - excess[np.arange(len(W)), last, np.newaxis], 0.0)


def pruned(w: FloatArray, objective: Objective) -> FloatArray:
    """Take members out, one by one, as long as the rest is not worse without them."""
    value = float(objective(w[np.newaxis])[0])
    while np.count_nonzero(w) > 1:
        members = np.flatnonzero(w)
        without = np.tile(w, (len(members), 1))
        without[np.arange(len(members)), members] = 0.0
        without /= without.sum(axis=1, keepdims=True)
        values = objective(without)
        if values.min() > value:
            break
        w, value = without[values.argmin()], float(values.min())
    return w
