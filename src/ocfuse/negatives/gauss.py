"""Pseudo-anomalies from a normal distribution."""

import numpy as np
from numpy.random import RandomState

from ocfuse.negatives.base import FloatArray, Generator
from ocfuse.negatives.blocks import Blocks


class Gauss(Generator):
    """Rows from the normal distribution with the normals' mean and covariance.

    x = mu + U diag(sd) e with e ~ N(0, I), the principal directions U of the
    normals and their spread sd along them. Directions of less than 0.001 of the
    largest spread are left out. What is not linear is lost; normals that are
    normally distributed give normals again. Constant columns stay constant, a
    discrete column gets values between and beyond its levels.

    Examples
    --------
    >>> from ocfuse.negatives import Gauss
    >>> Gauss().sample([[0.0, 1.0], [4.0, 1.0]], 2, random_state=0).round(2)
    array([[5.53, 1.  ],
           [2.8 , 1.  ]])
    """

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return self._draw_from(Blocks(X), X, n, random)

    def _draw_from(self, blocks: Blocks, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        normals = blocks.principal
        spread = np.sqrt((normals.t**2).mean(axis=0))
        return normals.rows(spread * random.standard_normal((n, len(spread))))
