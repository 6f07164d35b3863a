"""Pseudo-anomalies everywhere around the normals."""

import numpy as np
from numpy.random import RandomState

from ocfuse.exceptions import InvalidInputError
from ocfuse.negatives.base import FloatArray, Generator


class Uniform(Generator):
    """Rows uniform in the box of the normals, widened on every side.

    A constant column has a box of no width and stays as it is: how far an
    anomaly would leave it cannot be known from the normals. A discrete column
    gets values between its levels.

    Parameters
    ----------
    margin : float, default=0.25
        What each side of the box is moved out by, as a share of its width.

    Examples
    --------
    >>> from ocfuse.negatives import Uniform
    >>> Uniform().sample([[0.0, 1.0], [4.0, 1.0]], 2, random_state=0).round(2)
    array([[2.29, 1.  ],
           [2.62, 1.  ]])
    """

    def __init__(self, margin: float = 0.25) -> None:
        self.margin = margin

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        if not 0.0 <= self.margin < np.inf:
            raise InvalidInputError(
                f"margin must be in [0, inf). Got margin={self.margin!r}. "
                "Use margin=0.25 to widen the box by a quarter of its width on every side."
            )
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        place = random.random_sample((n, X.shape[1]))
        return np.asarray(low + width * (place * (1.0 + 2.0 * self.margin) - self.margin))
