"""Pseudo-anomalies opposite the normals."""

import numpy as np
from numpy.random import RandomState

from ocfuse.negatives.base import FloatArray, Generator, random_rows


class Mirror(Generator):
    """Normals mirrored at their mean c: 2 c - x.

    On standardised normals this is -x, the negative replicates of Roth (2006).
    No row is used twice before all have been used. Normals that are symmetric
    about their mean give pseudo-anomalies that are not anomalous. A constant
    column stays as it is, a discrete one gets its levels mirrored.

    Examples
    --------
    >>> from ocfuse.negatives import Mirror
    >>> Mirror().sample([[0.0, 1.0], [4.0, 1.0], [5.0, 1.0]], 3, random_state=0)
    array([[1., 1.],
           [2., 1.],
           [6., 1.]])
    """

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        # about the first row, so that a constant column is not moved by rounding
        twice_centre = X[0] + 2.0 * (X - X[0]).mean(axis=0)
        return np.asarray(twice_centre - (X[random_rows(len(X), n, random)] - X[0]))
