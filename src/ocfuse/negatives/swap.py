"""Pseudo-anomalies that are normal but for some features."""

from typing import ClassVar

import numpy as np
from numpy.random import RandomState

from ocfuse.negatives.base import FloatArray, Generator, random_rows


class Swap(Generator):
    """Normals some of whose features come from another random normal.

    Each of the m features that are not constant is replaced with probability
    max(0.3, 1.5 / m), at most 1, by that of another row, each from one of its
    own. A row that this leaves as it was gets another value in one feature.
    Every value occurs in its column: discrete columns keep their levels.
    One feature, or one row, gives normals again.

    Examples
    --------
    >>> from ocfuse.negatives import Swap
    >>> Swap().sample([[0.0, 5.0, 1.0], [1.0, 6.0, 1.0]], 2, random_state=0)
    array([[0., 6., 1.],
           [0., 6., 1.]])
    """

    keeps_values: ClassVar[bool] = True

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        rows = random_rows(len(X), n, random)
        drawn = X[rows]
        varying = np.flatnonzero((X[0] != X).any(axis=0))
        if len(varying) == 0:
            return drawn
        # steps of 1 to n_rows - 1 from a row lead to any row but itself
        step = 1 + random.randint(len(X) - 1, size=(n, len(varying)))
        others = X[(rows[:, np.newaxis] + step) % len(X), varying]
        swapped = random.random_sample(step.shape) < max(0.3, 1.5 / len(varying))
        drawn[:, varying] = np.where(swapped, others, drawn[:, varying])
        for i in np.flatnonzero((drawn == X[rows]).all(axis=1)):
            j = random.choice(varying)
            drawn[i, j] = random.choice(X[X[:, j] != drawn[i, j], j])
        return drawn
