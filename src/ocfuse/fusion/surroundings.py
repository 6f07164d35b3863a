"""How the members score around a point: their local mean and spread."""

import numpy as np

from ocfuse.fusion.inputs import FloatArray
from ocfuse.fusion.locality import neighbours, own_neighbours, representative_rows

#: Normals that stand for all where there are more.
MOST_REFERENCE_ROWS = 5000
#: Neighbours per row: with few rows a neighbourhood must not be half of them.
ROWS_PER_NEIGHBOUR, FEWEST_NEIGHBOURS = 15, 3
#: Rows that are measured together, so that memory is bounded.
ROWS_AT_ONCE = 1000
#: Share of the normals that have their k-th neighbour within the width of the kernel. At 0.9,
#: too, sparse and discrete data lose: their far rows then pass for local ones.
REACH = 0.5


class LocalScale:
    """Mean and standard deviation of the scores of normals near a point.

    Over the k nearest normals at distances r_i, with ``K_i = exp(-r_i^2 / 2 h^2)``
    and ``n = sum K_i``::

        mean_j(x)  = sum_i K_i z_ij / (n + shift_prior)
        sd_j(x)^2  = (sum_i K_i (z_ij - m_j)^2 + scale_prior) / (n + scale_prior)

    with m_j the plain local mean. Both are drawn to 0 and 1, the mean and the
    spread of all normals; far from all of them n is 0 and nothing is local.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Feature rows of the normals.
    Z : ndarray of shape (n, d)
        Their scores, with mean 0 and standard deviation 1.
    n_neighbors : int
        The number k, at most one per 15 normals but at least 3; 0 for none.
    shift_prior, scale_prior : float
        Strength of the global mean and spread, in rows.
    """

    def __init__(
        self,
        X: FloatArray,
        Z: FloatArray,
        n_neighbors: int,
        shift_prior: float,
        scale_prior: float,
    ) -> None:
        rows = representative_rows(len(X), MOST_REFERENCE_ROWS)
        self.X, self.Z = X[rows], Z[rows]
        self.shift_prior = float(shift_prior)
        self.scale_prior = float(scale_prior)
        affordable = max(FEWEST_NEIGHBOURS, len(rows) // ROWS_PER_NEIGHBOUR)
        self.k = min(n_neighbors, affordable, len(rows) - 1)
        self.width = self._kernel_width() if self.k else 1.0

    def at(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations, both (q, d)."""
        mean, sd = np.zeros((len(X), self.Z.shape[1])), np.ones((len(X), self.Z.shape[1]))
        if self.k:
            for start in range(0, len(X), ROWS_AT_ONCE):
                block = slice(start, start + ROWS_AT_ONCE)
                mean[block], sd[block] = self._near(X[block])
        return mean, sd

    def _near(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        distances, index = neighbours(X, self.X, self.k)
        K = np.exp(-0.5 * (distances / self.width) ** 2)[:, :, np.newaxis]
        n = K.sum(axis=1)
        near = self.Z[index]
        total = (K * near).sum(axis=1)
        # Where n underflows the sums do too, and the plain mean does not matter.
        plain = total / np.maximum(n, np.finfo(np.float64).tiny)
        spread = (K * (near - plain[:, np.newaxis]) ** 2).sum(axis=1)
        variance = (spread + self.scale_prior) / (n + self.scale_prior)
        return total / (n + self.shift_prior), np.sqrt(variance)

    def _kernel_width(self) -> float:
        distances, _ = own_neighbours(self.X, self.k)
        width = float(np.quantile(distances[:, -1], REACH))
        # Duplicates only: any other row is far.
        return width if width > 0 else 1.0
