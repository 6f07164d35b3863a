"""How good a weighted average of one-class scores is, judged by normals alone."""

import numpy as np

from ocfuse.bench.rivals.base import FloatArray
from ocfuse.detectors.base import interleaved_folds
from ocfuse.scores import MinMax

#: Weight of the tie-break: it decides between averages whose RPAU is all but equal.
TIGHTNESS = 1e-6


class Fitness:
    """Relative percentage above unity (RPAU) of weighted averages; less is better.

    The formula is that of ``ocfuse.tuning.RPAU("power")``, itself a reconstruction,
    for many weight vectors at once. With a = 1 - z of held-out normals and
    ``A_i = sum_j w_j a_ij``::

        sum_{A_i > 1} (A_i - 1)^2 / sum_i A_i^2  +  1e-6 mean_i A_i

    The last term prefers, of equal ones, the tighter description. The two-sided
    min-max of each fold is learned from the other folds.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Scores of normals by members that have not seen them, higher = more normal.
    c : ndarray of shape (n,)
        Weights of the rows, positive.
    rho : float
        Percentile trimmed on either side by the min-max.
    """

    def __init__(self, Z: FloatArray, c: FloatArray, rho: float) -> None:
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
        return np.asarray(above / total + TIGHTNESS * (self._c @ A))
