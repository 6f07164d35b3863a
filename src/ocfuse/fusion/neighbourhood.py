"""The neighbourhood of an anchor: how much each training row counts there."""

from math import ceil, sqrt
from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator

from ocfuse.fusion.inputs import FloatArray, check_choice, check_count

Kernel = Literal["gaussian", "knn"]


class Neighbourhood(BaseEstimator):  # type: ignore[misc]
    """Weigh training rows by their distance to an anchor, class by class.

    Of the rows of one class, with weights b that add up to B::

        c_j(a) = (1 - eta) B b_j K_j(a) / sum_i b_i K_i(a)  +  eta b_j

    so that each class keeps its total weight B at every anchor: few anomalies,
    even if far away, count as much as they do globally, the nearest ones most.
    With eta = 1 the weights are b itself, the global problem; with eta > 0 no row
    vanishes.

    Parameters
    ----------
    kernel : {"gaussian", "knn"}, default="gaussian"
        ``K = exp(-2 r^2 / r_k^2)`` with r_k the distance to the k-th neighbour of
        the class, which is thus two standard deviations away; or 1 for the k
        nearest (and all as near as the k-th), else 0.
    n_neighbors : int, optional
        The number k, at most the rows of the class; by default
        ``max(10, ceil(sqrt(n)))`` with n the rows of the class.
    """

    def __init__(self, kernel: Kernel = "gaussian", n_neighbors: int | None = None) -> None:
        self.kernel = kernel
        self.n_neighbors = n_neighbors

    def check(self) -> None:
        """Refuse parameters that cannot be used."""
        check_choice(self.kernel, "kernel", ("gaussian", "knn"))
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors", "None fits it to the number of rows.")

    def count(self, n: int) -> int:
        """Return the number of neighbours k in a class of n rows."""
        wanted = max(10, ceil(sqrt(n))) if self.n_neighbors is None else self.n_neighbors
        return min(wanted, n)

    def support(self, n: int) -> int:
        """Return how many nearest rows of n have all but a trifle of the weight."""
        reach = 1 if self.kernel == "knn" else 4
        return min(reach * self.count(n), n)

    def weigh(self, distances: FloatArray, b: FloatArray, k: int, total: float) -> FloatArray:
        """Share a total among the rows of one class by nearness times weight.

        Parameters
        ----------
        distances : ndarray of shape (a, n)
            Distances of the rows to the anchors.
        b : ndarray of shape (n,) or (a, n)
            Weights of the rows, positive.
        k : int
            The neighbour that sets the width.
        total : float
            What the weights of the class add up to.

        Returns
        -------
        ndarray of shape (a, n)
            Local weights; each row adds up to the total.
        """
        near = b * self._nearness(distances, np.partition(distances, k - 1, axis=1)[:, k - 1 : k])
        return np.asarray(total * near / near.sum(axis=1, keepdims=True))

    def _nearness(self, r: FloatArray, r_k: FloatArray) -> FloatArray:
        if self.kernel == "knn":
            return np.asarray(r <= r_k, dtype=np.float64)
        # Among duplicates r_k may be zero: then the nearest row that differs sets the width.
        other = np.where(r > 0, r, np.inf).min(axis=1, keepdims=True)
        width = np.where(r_k > 0, r_k, np.where(np.isfinite(other), other, 1.0))
        return np.asarray(np.exp(-2.0 * (r / width) ** 2))
