"""Weighted averaging by a particle swarm, after Fatemifar et al. (2022)."""

from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from ocfuse.bench.rivals.base import FloatArray
from ocfuse.bench.rivals.fitness import Fitness
from ocfuse.bench.rivals.particles import pruned, swarm_minimum
from ocfuse.detectors.base import require_count
from ocfuse.fusion.base import BaseFusion
from ocfuse.scores import MinMax


class SwarmAverage(BaseFusion):
    """Average two-sided normalised scores with weights that a particle swarm finds.

    Known, from the abstract: Fatemifar, Awais, Akbari and Kittler, "Developing a
    generic framework for anomaly detection", Pattern Recognition 2022. A fitness
    function judges one-class classifiers without anomalous samples; a two-sided
    normalisation copes with long tails; the weights of the average come from particle
    swarm optimisation. Published for D1 to D3, D6 and D8 to D10, G-mean only.

    Ours, as the formulas are not public: the fitness is the reconstructed RPAU with a
    tie-break by tightness (`ocfuse.bench.rivals.fitness`), the normalisation a min-max
    between two percentiles, the swarm a plain one on the simplex, and members are
    pruned whose removal does not worsen the fitness.

    It learns from the normal rows only; rows with y = -1 are not looked at.

    Parameters
    ----------
    n_particles : int, default=30
        Size of the swarm; at least one particle per member, and one more, are used.
    n_steps : int, default=60
        Moves of the swarm.
    rho : float, default=5.0
        Percentile of the normals trimmed on either side by the normalisation.
    random_state : int, RandomState or None, default=None
        Moves the swarm.

    Attributes
    ----------
    w_ : ndarray of shape (d,)
        Weights, not negative, of sum one; zero for members pruned.
    fitness_ : float
        Their fitness; less is better.
    normaliser_ : MinMax
        The fitted normalisation.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.bench.rivals import SwarmAverage
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
