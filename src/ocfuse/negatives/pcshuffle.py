"""Pseudo-anomalies whose principal coordinates are normal."""

import numpy as np
from numpy.random import RandomState

from ocfuse.negatives.base import FloatArray, Generator
from ocfuse.negatives.blocks import Blocks


class PCShuffle(Generator):
    """Every principal coordinate from another random normal, independently.

    Mean, covariance and the distribution along each principal direction are
    kept, what ties the directions together is lost. Directions of less than
    0.001 of the largest spread are left out; a single one gives normals again.
    Constant columns stay constant, a discrete column gets values between and
    beyond its levels.

    Examples
    --------
    >>> from ocfuse.negatives import PCShuffle
    >>> PCShuffle().sample([[0.0, 1.0], [4.0, 1.0]], 2, random_state=0).round(2)
    array([[0., 1.],
           [4., 1.]])
    """

    def _draw(self, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        return self._draw_from(Blocks(X), X, n, random)

    def _draw_from(self, blocks: Blocks, X: FloatArray, n: int, random: RandomState) -> FloatArray:
        normals = blocks.principal
        chosen = random.randint(len(X), size=(n, normals.t.shape[1]))
        return normals.rows(np.take_along_axis(normals.t, chosen, axis=0))
