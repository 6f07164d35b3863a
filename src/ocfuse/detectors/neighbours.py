"""Nearest-neighbour detectors: KNN, LOF and ALP."""

from copy import copy
from typing import ClassVar, Literal

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.base import BaseDetector, require_count
from ocfuse.detectors.gram import Gram, Query, RowChange, neighbours_cost
from ocfuse.exceptions import InvalidInputError
from ocfuse.nearest.exact import without_self

#: Distances held at once while neighbours that change are counted.
MOST_COMPARED = 2**22


class KNN(BaseDetector):
    """Nearest neighbours: the score is minus the distance to the nearest training rows.

    Parameters
    ----------
    n_neighbors : int, default 5
        Number of neighbours k, at most the number of training rows minus 1.
    method : {"largest", "mean"}, default "largest"
        Whether to take the distance to neighbour k, or the mean of the k distances.
    max_samples : int, optional
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    n_neighbors_ : int
        Number of neighbours used.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> KNN(n_neighbors=1).fit([[0.0], [1.0], [2.0]]).score_samples([[2.5], [9.0]])
    array([-0.5, -7. ])
    """

    closed_form: ClassVar[bool] = True

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        method: Literal["largest", "mean"] = "largest",
        max_samples: int | None = None,
        false_alarm_rate: float = 0.05,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.method = method
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_neighbors", self.n_neighbors, 1, "Use 5.")
        if self.method not in ("largest", "mean"):
            raise InvalidInputError(
                f"method must be 'largest' or 'mean'. Got method={self.method!r}."
            )

    def sharing_order(self) -> tuple[int, int]:
        """Return the order among detectors on one Gram: most neighbours first."""
        return self.fit_rank, -self.n_neighbors

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        return neighbours_cost(shape, self.n_neighbors)

    def _fit(self, gram: Gram) -> None:
        self.n_neighbors_ = usable_count(self.n_neighbors, gram)

    def updated(self, change: RowChange) -> "KNN":
        """Return a copy that knows the new rows: exactly what a fit to them would be."""
        fresh = copy(self)
        fresh.reference_ = change.new
        fresh.n_neighbors_ = min(self.n_neighbors, max(1, change.new.n_rows - 1))
        return fresh

    def _score(self, query: Query) -> FloatArray:
        distances, _ = query.neighbours(self.n_neighbors_)
        return -(distances[:, -1] if self.method == "largest" else distances.mean(axis=1))

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return self._score(gram)


class LOF(BaseDetector):
    """Local outlier factor: the score is minus the factor (Breunig et al. 2000).

    With r(x) the mean of ``max(d(x, y), d_k(y))`` over the k neighbours y of x, where d_k(y) is
    the distance of y to its own neighbour k, the score is the mean of ``-r(x) / r(y)``: about -1
    inside a cluster, less outside. With several k, the scores are averaged.

    It computes the same factor as scikit-learn's ``LocalOutlierFactor``. But in an ensemble it
    shares one neighbour graph with the other members, a row has the same score in every batch even
    if training rows have duplicates, and a single row is scored quickly.

    With more than k equal rows r = 0, and rows near them would have a score of -inf. So r is at
    least 1 % of its median over the training rows with r > 0.

    Parameters
    ----------
    n_neighbors : int or tuple of int, default 20
        Number of neighbours k, or several, at most the number of training rows minus 1.
    max_samples : int, optional
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    n_neighbors_ : int
        Number of neighbours used; with several k the largest.
    factors_ : list of LocalFactor
        Distances and densities of the training rows, for each k.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> LOF(n_neighbors=(10, 20)).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True

    def __init__(
        self,
        n_neighbors: int | tuple[int, ...] = 20,
        *,
        max_samples: int | None = None,
        false_alarm_rate: float = 0.05,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def sharing_order(self) -> tuple[int, int]:
        """Return the order among detectors on one Gram: most neighbours first."""
        return self.fit_rank, -max(self._counts)

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        k = max(self._counts)
        # of every neighbour its reach, and the larger of that and the distance
        reach = Cost(scratch_bytes={"neighbours": 2 * NUMBER * shape.rows * k})
        return neighbours_cost(shape, k) + reach

    @property
    def _counts(self) -> tuple[int, ...]:
        counts = self.n_neighbors
        return tuple(counts) if isinstance(counts, tuple | list) else (counts,)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._counts:
            raise InvalidInputError("n_neighbors must hold at least one number. Got none. Use 20.")
        for count in self._counts:
            require_count("n_neighbors", count, 1, "Use 20.")

    def _fit(self, gram: Gram) -> None:
        # The most neighbours first: the others are a part of them.
        self.n_neighbors_ = usable_count(max(self._counts), gram)
        gram.neighbours(self.n_neighbors_)
        self.factors_ = [LocalFactor(gram, usable_count(k, gram)) for k in self._counts]

    def updated(self, change: RowChange) -> "LOF":
        """Return a copy that knows the new rows.

        A row that was learned is looked at again once one in ten of its neighbours, and two at
        least, are others;
        what that does to rows that have it for a neighbour waits until they are.
        """
        fresh = copy(self)
        fresh.reference_ = change.new
        n_gone = 0 if change.kept is None else change.old.n_rows - len(change.kept)
        is_much = change.kept is None or 4 * n_gone > change.new.n_rows
        if is_much or self.n_neighbors_ >= change.new.n_rows - 1:
            fresh._fit(Gram.of(change.new))
            return fresh
        fresh.factors_ = [factor.carried_over(change) for factor in self.factors_]
        rows = np.flatnonzero(np.any([factor.is_stale for factor in fresh.factors_], axis=0))
        near = change.new.query(change.new.X[rows]).neighbours(self.n_neighbors_ + 1)
        distances, index = without_self(near, rows)
        for factor in fresh.factors_:
            factor.renew(rows, distances[:, : factor.k], index[:, : factor.k])
        return fresh

    def _score(self, query: Query) -> FloatArray:
        query.neighbours(self.n_neighbors_)
        found = [factor.score(query) for factor in self.factors_]
        return found[0] if len(found) == 1 else np.asarray(np.mean(found, axis=0))

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return self._score(gram)


class LocalFactor:
    """The local outlier factor for one number of neighbours k.

    `radii` and `density` are d_k and 1 / r of every training row; `floor` is the least that
    counts as r. `changes`, after an update, counts the neighbours of a row that have come or gone
    since these were computed.
    """

    changes: IntArray | None = None

    def __init__(self, gram: Gram, k: int) -> None:
        self.k = k
        distances, index = gram.neighbours(k)
        # A single row has no neighbour, and no reach of its own.
        self.radii = distances[:, -1].copy() if distances.size else np.zeros(gram.n_rows)
        reach = self._reach(distances, index) if distances.size else np.zeros(gram.n_rows)
        positive = reach[reach > 0]
        typical = np.median(positive) if positive.size else np.sqrt(gram.reference.scale)
        self.floor = float(0.01 * typical)
        if positive.size and not reach.all():
            # Rows with k copies have no reach; it is that to the nearest different row. Less
            # would make all others outliers as soon as there is one copy more.
            self.floor = max(self.floor, float(distances[distances > 0].min(initial=typical)))
        self.density = 1.0 / np.maximum(reach, self.floor)

    def score(self, query: Query) -> FloatArray:
        """Score the rows of `query`."""
        distances, index = query.neighbours(self.k)
        reach = np.maximum(self._reach(distances, index), self.floor)
        factor: FloatArray = reach * _row_means(self.density[index])
        return -factor

    def carried_over(self, change: RowChange) -> "LocalFactor":
        """Return what is known of the rows that stay, and how many of their neighbours change.

        Of rows that are new nothing is known yet.
        """
        fresh, n_new = copy(self), len(change.added)
        kept = change.new.X[: change.new.n_rows - n_new]
        fresh.radii = np.append(self.radii[change.kept], np.zeros(n_new))
        fresh.density = np.append(self.density[change.kept], np.zeros(n_new))
        before = np.zeros(len(self.radii), dtype=np.intp) if self.changes is None else self.changes
        fresh.changes = np.append(before[change.kept], np.full(n_new, self.k))
        squares = fresh.radii[: len(kept)] ** 2
        for moved in (change.added, change.dropped):
            step = max(1, MOST_COMPARED // max(len(kept), 1))
            for begin in range(0, len(moved), step):
                D = change.new.squared_distances(moved[begin : begin + step])
                fresh.changes[: len(kept)] += (D[:, : len(kept)] <= squares).sum(axis=0)
        return fresh

    @property
    def is_stale(self) -> BoolArray:
        """Which rows have so many other neighbours that they must be looked at again."""
        changes = np.zeros(len(self.radii), dtype=np.intp) if self.changes is None else self.changes
        stale: BoolArray = changes >= max(2, self.k // 10)
        return stale

    def renew(self, rows: IntArray, distances: FloatArray, index: IntArray) -> None:
        """Compute what is known of some rows again, from their neighbours."""
        self.radii[rows] = distances[:, -1]
        self.density[rows] = 1.0 / np.maximum(self._reach(distances, index), self.floor)
        if self.changes is not None:
            self.changes[rows] = 0

    def _reach(self, distances: FloatArray, index: IntArray) -> FloatArray:
        return _row_means(np.maximum(distances, self.radii[index]))


def _row_means(values: FloatArray) -> FloatArray:
    # The bits of numpy.mean, without what it takes longer over than over a single row.
    means: FloatArray = np.add.reduce(values, axis=1) / values.shape[1]
    return means


def usable_count(count: int, gram: Gram) -> int:
    """Return how many neighbours to use: no more than a training row has, at least 1."""
    return min(int(count), max(1, gram.n_rows - 1))


class ALP(BaseDetector):
    """Average localised proximity: a score from 0 to 1.

    The distance d_i(x) to neighbour i is compared with D_i(x), the weighted mean of the same
    distance of the l nearest training rows; the proximities ``1 / (1 + d_i / D_i)`` of the first k
    neighbours are sorted, largest first, and averaged. Both means have linearly decreasing
    weights. The score is about 0.5 inside a cluster, less outside.

    Features are divided by their interquartile range first, unless it is 0. So the distances are
    not those that other members of an ensemble share.

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours k, by default ``int(5.5 ln n)``; at most the number of training rows
        minus 1.
    n_local : int, optional
        Number of training rows l for D_i, by default ``int(6 ln n)``; with the same limit.
    max_samples : int, optional
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    n_neighbors_, n_local_ : int
        The numbers k and l that were used.
    unit_ : ndarray of shape (m,)
        Divisor of each feature.
    distances_ : ndarray of shape (n, k)
        Distances of each training row to its neighbours.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ALP().fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True
    #: Numbers held at once while distances are localised.
    values_at_once: ClassVar[int] = 2**20

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
        """Return the cost of learning from rows, and of scoring one."""
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
                scratch_bytes={"bytes": NUMBER * self.values_at_once},
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
        k = 5.5 * log if self.n_neighbors is None else self.n_neighbors
        n_local = 6.0 * log if self.n_local is None else self.n_local
        return max(1, int(k)), max(1, int(n_local))

    def _score(self, query: Query) -> FloatArray:
        return self._average(self.scaled_.query(query.X / self.unit_))

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return self._average(Gram(gram.X / self.unit_))

    def _average(self, query: Query) -> FloatArray:
        k, n_local = self.n_neighbors_, self.n_local_
        distances, index = query.neighbours(max(k, n_local))
        local = self._local(index[:, :n_local])
        total = distances[:, :k] + local
        # 1 / (1 + d / D), in which 0 / 0 counts as 1
        proximity = np.divide(local, total, out=np.full_like(total, 0.5), where=total > 0)
        proximity.sort(axis=1)
        average: FloatArray = proximity[:, ::-1] @ _falling(k)
        return average

    def _local(self, index: IntArray) -> FloatArray:
        """Return D_i of rows whose nearest training rows are given, shape (q, k)."""
        q, n_local = index.shape
        weights = _falling(n_local)
        local = np.empty((q, self.n_neighbors_))
        step = max(1, self.values_at_once // (n_local * self.n_neighbors_))
        for begin in range(0, q, step):
            block = slice(begin, begin + step)
            local[block] = np.einsum("l,qlk->qk", weights, self.distances_[index[block]])
        return local


def _falling(size: int) -> FloatArray:
    """Return linearly falling weights with sum 1."""
    weights: FloatArray = np.arange(float(size), 0.0, -1.0) * (2.0 / (size * (size + 1)))
    return weights
