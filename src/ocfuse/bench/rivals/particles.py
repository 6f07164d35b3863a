"""A particle swarm on the simplex of weights."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.random import RandomState

from ocfuse.bench.rivals.base import FloatArray

#: Weights of shape (v, d) in, v values out; less is better.
Objective: TypeAlias = Callable[[FloatArray], FloatArray]

#: Share of its speed that a particle keeps, and the pull of the best places known: the
#: constriction of Clerc and Kennedy (2002), under which a swarm comes to rest.
INERTIA, PULL = 0.7298, 1.4962


def swarm_minimum(
    objective: Objective, d: int, n_particles: int, n_steps: int, random: RandomState
) -> FloatArray:
    """Return the best weights, not negative and of sum one, that a swarm has visited.

    It starts at every member alone, at equal weights, and at random places: what it
    returns is never worse than the best member or the plain average.
    """
    fixed = np.vstack([np.eye(d), np.full((1, d), 1.0 / d)])
    n_random = max(n_particles - len(fixed), 0)
    place = np.vstack([fixed, random.dirichlet(np.ones(d), n_random)])
    speed = np.zeros_like(place)
    best, value = place.copy(), objective(place)
    for _ in range(n_steps):
        own, common = random.random_sample((2, *place.shape))
        leader = best[value.argmin()]
        speed = INERTIA * speed + PULL * (own * (best - place) + common * (leader - place))
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
