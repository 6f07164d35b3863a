"""Pseudo-anomalies whose single features are normal."""

from typing import ClassVar

import numpy as np
from numpy.random import RandomState

from ocfuse.negatives.base import FloatArray, Generator


class Shuffle(Generator):
    """Every feature from another random normal, independently.

    The distribution of each feature is kept, what ties the features together
    is lost. Constant columns stay constant, discrete ones keep their levels.
    One feature, or one row, gives normals again: there is nothing to untie.

    Examples
    --------
    >>> from ocfuse.negatives import Shuffle
    >>> Shuffle().sample([[0.0, 5.0], [1.0, 6.0]], 3, random_state=0)
    array([[0., 6.],
           [1., 5.],
           [1., 6.]])
    """

    keeps_values: ClassVar[bool] = True

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        rows = random.randint(len(X), size=(n, X.shape[1]))
        return np.asarray(np.take_along_axis(X, rows, axis=0))
