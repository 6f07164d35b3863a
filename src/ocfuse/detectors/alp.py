"""Average localised proximity (Lenz, Peralta and Cornelis 2021)."""

from typing import ClassVar

import numpy as np

from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.base import BaseDetector, require_count
from ocfuse.detectors.gram import FloatArray, Gram, IntArray, Query, neighbours_cost
from ocfuse.detectors.neighbours import usable_count

#: Numbers held at once while distances are localised.
BLOCK = 2**20
#: Neighbours per natural logarithm of the number of training rows.
NEIGHBOURS_PER_LOG, LOCAL_PER_LOG = 5.5, 6.0


class ALP(BaseDetector):
    """Score rows by their average localised proximity, from 0 to 1.

    The distance d_i(x) to neighbour i is compared with D_i(x), the weighted
    mean of the same distance of the l nearest training rows; the proximities
    ``1 / (1 + d_i / D_i)`` of the first k neighbours are sorted, largest
    first, and averaged. Both means have linearly falling weights. About 0.5
    inside a cluster, less outside.

    Features are divided by their interquartile range first (left as they are
    where it is 0), so that its distances are its own, not those that the other
    members of an ensemble share.

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours k, by default ``int(5.5 ln n)``; cut to the number
        of training rows less one.
    n_local : int, optional
        Number of training rows l that D_i looks at, by default
        ``int(6 ln n)``; cut in the same way.
    max_samples : int, optional
        Learn from at most so many rows, evenly spaced.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    n_neighbors_, n_local_ : int
        k and l as used.
    unit_ : ndarray of shape (m,)
        What each feature is divided by.
    distances_ : ndarray of shape (n, k)
        Distances of every training row to its neighbours.
    offset_ : float
        Rows that score less are called anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ALP().fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        n_local: int | None = None,
        max_samples: int | None = None,
        false_alarm_rate: float = 0.05,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_local = n_local
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def cost(self, shape: Shape) -> Cost:
        """Return what it takes to learn from rows, and to score one."""
        k, n_local = self._counts_of(shape.rows)
        # neighbours in units of its own: nobody shares them, and rows left out need them again
        found = neighbours_cost(shape, max(k, n_local)).total()
        size = NUMBER * shape.cells
        return (
            found
            + Cost(fit_work=found.fit_work)
            + Cost(
                score_work={"neighbour": n_local},
                fit_bytes={"bytes": shape.held * 2 * size},
                scratch_bytes={"bytes": NUMBER * BLOCK},
                model_bytes={"bytes": size + NUMBER * shape.rows * k},
            )
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("n_neighbors", "n_local"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), 1, "Use None to derive it from n.")

    def _fit(self, gram: Gram) -> None:
        k, n_local = self._counts_of(gram.n_rows)
        self.n_neighbors_ = usable_count(k, gram)
        self.n_local_ = usable_count(n_local, gram)
        lower, upper = np.percentile(gram.X, [25, 75], axis=0)
        self.unit_ = np.where(upper > lower, upper - lower, 1.0)
        scaled = Gram(gram.X / self.unit_)
        self.scaled_ = scaled.reference
        distances, _ = scaled.neighbours(self.n_neighbors_)
        # A single row has no neighbour; the nearest it knows is itself.
        self.distances_ = distances if distances.size else np.zeros((1, 1))

    def _counts_of(self, n: int) -> tuple[int, int]:
        """Return k and l for n training rows."""
        log = np.log(n)
        k = NEIGHBOURS_PER_LOG * log if self.n_neighbors is None else self.n_neighbors
        n_local = LOCAL_PER_LOG * log if self.n_local is None else self.n_local
        return max(1, int(k)), max(1, int(n_local))

    def _score(self, query: Query) -> FloatArray:
        return self._average(self.scaled_.query(query.X / self.unit_))

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return self._average(Gram(gram.X / self.unit_))

    def _average(self, query: Query) -> FloatArray:
        k, n_local = self.n_neighbors_, self.n_local_
        distances, index = query.neighbours(max(k, n_local))
        proximity = _proximity(distances[:, :k], self._local(index[:, :n_local]))
        proximity.sort(axis=1)
        average: FloatArray = proximity[:, ::-1] @ _falling(k)
        return average

    def _local(self, index: IntArray) -> FloatArray:
        """Return D_i of rows whose nearest training rows are given, shape (q, k)."""
        q, n_local = index.shape
        weights = _falling(n_local)
        local = np.empty((q, self.n_neighbors_))
        step = max(1, BLOCK // (n_local * self.n_neighbors_))
        for begin in range(0, q, step):
            block = slice(begin, begin + step)
            local[block] = np.einsum("l,qlk->qk", weights, self.distances_[index[block]])
        return local


def _falling(size: int) -> FloatArray:
    """Return linearly falling weights with sum 1."""
    weights: FloatArray = np.arange(float(size), 0.0, -1.0) * (2.0 / (size * (size + 1)))
    return weights


def _proximity(distances: FloatArray, local: FloatArray) -> FloatArray:
    """Return ``1 / (1 + d / D)``; 0 / 0 counts as 1."""
    total = distances + local
    proximity: FloatArray = np.divide(local, total, out=np.full_like(total, 0.5), where=total > 0)
    return proximity
