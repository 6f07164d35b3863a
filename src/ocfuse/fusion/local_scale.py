"""Local mean and spread of the scores, and whether context helps to predict them."""

import warnings
from abc import abstractmethod
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray
from ocfuse.cost import EXTRA, NUMBER, Cost, Shape
from ocfuse.exceptions import SuspectInputWarning
from ocfuse.fusion.base import BaseFusion
from ocfuse.nearest.exact import (
    neighbours,
    own_neighbours,
    representative_rows,
    without_self,
)
from ocfuse.nearest.index import NeighbourIndex
from ocfuse.system.cache import cached
from ocfuse.system.packages import slow
from ocfuse.validation import GroupsLike, check_number, check_whole

#: Normals that stand for all where there are more.
LOCAL_SCALE_ROWS = 5000
#: Up to so many each row is compared with all of them.
MOST_COMPARED = 2000
#: Rows whose neighbours in other groups are looked for, and of many that set the width.
MOST_QUERIES = 1000


class LocalScale:
    """Mean and standard deviation of the scores of normal rows near a point.

    Over the k nearest normal rows at distances r_i, with ``K_i = exp(-r_i^2 / 2 h^2)`` and
    ``n = sum K_i``::

        mean_j(x)  = sum_i K_i z_ij / (n + shift_prior)
        sd_j(x)^2  = (sum_i K_i (z_ij - m_j)^2 + scale_prior) / (n + scale_prior)

    with m_j the local mean without prior. Both are shrunk towards 0 and 1, the mean and the
    standard deviation of all normal rows. Far from all of them n is 0, and both are global.

    With context, the difference of means between contexts is learned: `shift_prior` is then at
    most the ratio of the variance of the scores in one context to that of their means. With
    groups, this and the width h are learned from neighbours of other groups, as future rows are of
    other groups, too.

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
    n_context : int, default=0
        Number of columns of X, the last ones, that are context.
    context_weight : float, default=1.0
        What these columns are multiplied by.
    groups : GroupsLike, optional
        Groups of the normals.
    """

    def __init__(
        self,
        X: FloatArray,
        Z: FloatArray,
        n_neighbors: int,
        shift_prior: float,
        scale_prior: float,
        n_context: int = 0,
        context_weight: float = 1.0,
        groups: GroupsLike | None = None,
    ) -> None:
        rows = representative_rows(len(X), LOCAL_SCALE_ROWS)
        self.n_context, self.context_weight = n_context, float(context_weight)
        self.X, self.Z = self._weighed(X[rows]), Z[rows]
        self.shift_prior = float(shift_prior)
        self.scale_prior = float(scale_prior)
        # with few rows a neighbourhood must not be half of them
        self.k = min(n_neighbors, max(3, len(rows) // 15), len(rows) - 1)
        taken = None if groups is None else groups.take(rows)
        self.width = self._kernel_width(taken) if self.k else 1.0
        if n_context and self.context_weight and self.k > 1:
            self.shift_prior = min(self.shift_prior, self._learned_prior(taken))

    def of_others(self, X: FloatArray, Z: FloatArray) -> "LocalScale":
        """Return the scale of other normals, with the width and the priors of these."""
        rows = representative_rows(len(X), LOCAL_SCALE_ROWS)
        fresh = copy(self)  # without what starts with an underscore
        fresh.X, fresh.Z = self._weighed(X[rows]), Z[rows]
        return fresh

    def at(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations, both (q, d)."""
        mean, sd = np.zeros((len(X), self.Z.shape[1])), np.ones((len(X), self.Z.shape[1]))
        if self.k:
            X = self._weighed(X)
            k = min(self.k, len(self.X))  # a forged file may say anything
            for start in range(0, len(X), 1000):  # memory is bounded
                block = slice(start, start + 1000)
                if self._search is None:
                    near = neighbours(X[block], self.X, k)
                else:
                    near = _found_nearest(X[block], self._search, k)
                mean[block], sd[block] = self._from(*near)
        return mean, sd

    def out_of_fold(self, groups: GroupsLike | None) -> FloatArray:
        """Return the local scores of the normals, each by its neighbours without itself.

        With groups they are neighbours of other groups; of many normals only some are returned.
        """
        if not self.k:
            return self.Z
        taken = (
            None
            if groups is None
            else groups.take(representative_rows(len(groups.label), LOCAL_SCALE_ROWS))
        )
        rows, distances, index = _others(self.X, self._search, self.k, taken)
        mean, sd = self._from(distances, index)
        return np.asarray((self.Z[rows] - mean) / sd)

    @cached_property
    def _search(self) -> NeighbourIndex | None:
        return _search(self.X)

    @staticmethod
    def cost(shape: Shape, n_neighbors: int) -> Cost:
        """Return what it takes to learn the local scale of normals, and to return it at one row."""
        near = min(shape.rows, LOCAL_SCALE_ROWS)
        size = NUMBER * near * shape.columns
        kept = Cost(fit_bytes={"reference": size}, model_bytes={"reference": size})
        if not n_neighbors:
            return kept
        kind = "fusion" if shape.rows <= MOST_COMPARED else "fusion of many"
        return kept + Cost(
            fit_work={kind: near * shape.cells},
            score_work={kind: near * (shape.columns + EXTRA)},
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _weighed(self, X: FloatArray) -> FloatArray:
        if not self.n_context:
            return X
        unit = np.ones(X.shape[1])
        unit[-self.n_context :] = self.context_weight
        return X * unit

    def _from(
        self, distances: FloatArray, index: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations from neighbours."""
        K = np.exp(-0.5 * (distances / self.width) ** 2)[:, :, np.newaxis]
        n = K.sum(axis=1)
        near = self.Z[index]
        total = (K * near).sum(axis=1)
        # Where n underflows the sums do too, and the plain mean does not matter.
        plain = total / np.maximum(n, np.finfo(np.float64).tiny)
        spread = (K * (near - plain[:, np.newaxis]) ** 2).sum(axis=1)
        variance = (spread + self.scale_prior) / (n + self.scale_prior)
        return total / (n + self.shift_prior), np.sqrt(variance)

    def _learned_prior(self, groups: GroupsLike | None) -> float:
        """Return the strength of the global mean by which means by context are best predicted.

        A row and the mean of its neighbours share nothing but the context: their covariance
        is the variance tau^2 of the means by context. With sigma^2 that of the scores in one
        context, ``sigma^2 / tau^2`` is the weight that a Gaussian prior would have.
        """
        context = np.ascontiguousarray(self.X[:, -self.n_context :])
        rows, _, index = _others(context, _search(context), self.k, groups)
        near, own = self.Z[index], self.Z[rows]
        sigma = float(near.var(axis=1, ddof=1).mean())
        tau = float(((own - own.mean(axis=0)) * near.mean(axis=1)).mean())
        return sigma / tau if tau > 0 else np.inf

    def _kernel_width(self, groups: GroupsLike | None) -> float:
        _, distances, _ = _others(self.X, self._search, self.k, groups, MOST_QUERIES)
        # Half of the normals have their k-th neighbour within it. At 0.9, too, sparse and discrete
        # data lose: their far rows then pass for local ones.
        width = float(np.quantile(distances[:, -1], 0.5))
        # Duplicates only: any other row is far.
        return width if width > 0 else 1.0


class LocalScaleFusion(BaseFusion):
    """Base class of fusions that sum up member scores on the local scale of normal rows.

    Subclasses have the parameters `n_neighbors`, `shift_prior`, `scale_prior` and
    `context_weight`, as `LocalScale` and `learned_scale` take them.

    Attributes
    ----------
    centre_, spread_ : ndarray of shape (d,)
        Mean and standard deviation of the scores of normal rows.
    scale_ : LocalScale
        Local mean and spread of their standardised scores.
    """

    needs_X = True  # noqa: N815

    n_neighbors: int
    shift_prior: float
    scale_prior: float
    context_weight: float | None

    def _fit_scale(self, Z: FloatArray, X: FloatArray, groups: GroupsLike | None) -> FloatArray:
        """Learn the local scale of normals, and return their standardised scores."""
        self.centre_, spread = Z.mean(axis=0), Z.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        standard = (Z - self.centre_) / self.spread_
        priors = self.n_neighbors, self.shift_prior, self.scale_prior
        if self.n_context_ and self.context_weight is None:
            self.scale_ = learned_scale(X, standard, *priors, self.n_context_, groups)
        else:
            weight = 1.0 if self.context_weight is None else self.context_weight
            self.scale_ = LocalScale(X, standard, *priors, self.n_context_, weight, groups)
        return np.asarray(standard)

    def with_normals(
        self, Z: ArrayLike, X: ArrayLike, context: ArrayLike | None = None
    ) -> "LocalScaleFusion":
        """Return a copy with the local scale of other normal rows; all else is the same.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Normalised scores of normal rows, from members that have not seen them.
        X : array-like of shape (n, m)
            Their features.
        context : array-like of shape (n,) or (n, k), optional
            Their context, if there was one in `fit`.

        Returns
        -------
        LocalScaleFusion
            The copy.
        """
        scores, rows = self._query(Z, X, context)
        fresh = copy(self)
        fresh.scale_ = self.scale_.of_others(rows, (scores - self.centre_) / self.spread_)
        return fresh

    @abstractmethod
    def _parts(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        """Return the part of each member in the score of every row."""

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        self._learn(Z, y, X, c, None, None)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray(self._parts(Z, X).sum(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), self._parts(Z, X)

    def _local(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        """Return scores on the local scale."""
        mean, sd = self.scale_.at(X)
        return np.asarray(((Z - self.centre_) / self.spread_ - mean) / sd)

    def _check_scale(self) -> None:
        """Refuse parameters of the local scale that make no sense."""
        advice = "It counts rows."
        check_number(self.shift_prior, "shift_prior", 0.0, 1e12, advice, open_low=True)
        check_number(self.scale_prior, "scale_prior", 0.0, 1e12, advice, open_low=True)
        if self.context_weight is not None:
            advice = "1 counts as much as all features; None learns it."
            check_number(self.context_weight, "context_weight", 0.0, 1e6, advice)
        check_whole(self.n_neighbors, "n_neighbors")


def normal_rows(y: FloatArray) -> slice | NDArray[np.bool_]:
    """Return the rows with y > 0; a slice where they come first, as then no copy is needed."""
    n = int(np.count_nonzero(y > 0))
    return slice(0, n) if (y[:n] > 0).all() else y > 0


def _search(X: FloatArray) -> NeighbourIndex | None:
    """Return what finds the nearest of many rows; few are compared with all."""
    return NeighbourIndex(X) if len(X) > MOST_COMPARED else None


@cached
def _found_nearest(
    points: FloatArray, search: NeighbourIndex, k: int
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return distances and indices of the k rows nearest to each point."""
    squares, index = search.of(points, k)
    return np.sqrt(squares), index


@cached
def _found_nearest_own(
    search: NeighbourIndex, rows: NDArray[np.intp], k: int
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return distances and indices of the k nearest other rows of some of the rows."""
    squares, index = without_self(search.of(search.X[rows], k + 1), rows)
    return np.sqrt(squares), index


def _others(
    X: FloatArray,
    search: NeighbourIndex | None,
    k: int,
    groups: GroupsLike | None,
    most: int = LOCAL_SCALE_ROWS,
) -> tuple[NDArray[np.intp], FloatArray, NDArray[np.intp]]:
    """Return rows, and distances and indices of the k nearest rows of other groups.

    Without groups each row is one. Rows with fewer others are left out; if that leaves
    none, as with one group, groups tell nothing and do not count.
    """
    if groups is not None:
        rows = representative_rows(len(X), MOST_QUERIES)
        D = slow("scipy.spatial.distance").cdist(X[rows], X)
        D[groups.same_group(rows)] = np.inf
        index = D.argpartition(k - 1, axis=1)[:, :k]
        distances = np.take_along_axis(D, index, axis=1)
        order = distances.argsort(axis=1, kind="stable")
        distances = np.take_along_axis(distances, order, 1)
        index = np.take_along_axis(index, order, 1)
        known = np.isfinite(distances[:, -1])
        if known.any():
            return rows[known], distances[known], index[known]
    if search is None:
        return np.arange(len(X)), *own_neighbours(X, k)
    rows = representative_rows(len(X), most)
    return rows, *_found_nearest_own(search, rows, k)


def learned_scale(
    X: FloatArray,
    Z: FloatArray,
    n_neighbors: int,
    shift_prior: float,
    scale_prior: float,
    n_context: int,
    groups: GroupsLike | None,
) -> LocalScale:
    """Return the local scale with weight 1 of the context if that helps, or with weight 0.

    Every normal is predicted by its neighbours, of other groups if there are groups, and no
    label is used. The context must do that clearly better than the same context shuffled,
    which makes neighbourhoods as wide but carries no information.
    """
    rows = representative_rows(len(X), LOCAL_SCALE_ROWS)
    X, Z = X[rows], Z[rows]
    taken = None if groups is None else groups.take(rows)
    priors = n_neighbors, shift_prior, scale_prior, n_context
    aware = LocalScale(X, Z, *priors, 1.0, taken)
    if aware.k > 1:
        shuffled = X.copy()
        shuffled[:, -n_context:] = np.random.RandomState(0).permutation(X[:, -n_context:])
        chance = LocalScale(shuffled, Z, *priors, 1.0, taken)
        gain = _by_group(aware, taken) - _by_group(chance, taken)
        # Rows share their neighbours: chance alone reaches 2 or 3 standard errors.
        if len(gain) > 1 and gain.mean() > 4.0 * gain.std(ddof=1) / np.sqrt(len(gain)):
            return aware
    return LocalScale(X, Z, *priors, 0.0, taken)


def _by_group(scale: LocalScale, groups: GroupsLike | None) -> FloatArray:
    """Return the predictive log-likelihood of the scores of each group, or of each row.

    The scores of some normals are predicted by their neighbours of other groups.
    """
    rows, distances, index = _others(scale.X, scale._search, scale.k, groups)
    mean, sd = scale._from(distances, index)
    residual = (scale.Z[rows] - mean) / sd
    log_likelihood = np.asarray(-(0.5 * residual**2 + np.log(sd)).mean(axis=1))
    if groups is None:
        return log_likelihood
    _, group = np.unique(groups.label[rows], return_inverse=True)
    return np.bincount(group, weights=log_likelihood) / np.bincount(group)


def warn_if_far(context: ArrayLike, low: Any, high: Any, stacklevel: int = 3) -> bool:
    """Warn of context that lies beyond the range of training by more than its width.

    It is most likely in other units.

    Parameters
    ----------
    context : array-like of shape (n,) or (n, k)
        Context of some rows; NaN is not known, and is not far.
    low, high : float or array-like of shape (k,)
        Range of each column in training.
    stacklevel : int, default=3
        Whose line is shown, as in `warnings.warn`.

    Returns
    -------
    bool
        Whether there was any, and a `SuspectInputWarning` was given.
    """
    values, width = np.asarray(context, dtype=np.float64), np.subtract(high, low)
    is_far = (values < low - width) | (values > high + width)
    if not is_far.any():
        return False
    where = tuple(np.argwhere(is_far)[0].tolist())
    ends = np.broadcast_to(low, values.shape)[where], np.broadcast_to(high, values.shape)[where]
    warnings.warn(
        f"The context was {ends[0]:g} to {ends[1]:g} in training, and is {values[where]:g} now, "
        "which is far beyond. Give it in the units of training, such as 0.5 instead of 50 %.",
        SuspectInputWarning,
        stacklevel=stacklevel,
    )
    return True
