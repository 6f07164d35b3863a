"""The locality function L(x, p): the norm is smaller where scores vary more."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from ocfuse.arrays import FloatArray
from ocfuse.cost import EXTRA, NUMBER, Cost, Shape
from ocfuse.exceptions import InvalidInputError
from ocfuse.nearest.exact import neighbours, own_neighbours, representative_rows, row_blocks
from ocfuse.validation import (
    check_choice,
    check_count,
    check_number,
    check_rows,
    check_table,
    check_width,
)

#: Normals that stand for all: the variability enters by its rank only.
LOCALITY_ROWS = 2000


@dataclass(frozen=True)
class NearNormals:
    """The nearest normals of some points, with what the measures need of them.

    Parameters
    ----------
    distances : ndarray of shape (q, k)
        Distances to the nearest normals, increasing.
    index : ndarray of shape (q, k)
        Those normals, as rows of `X` and `Z`.
    X : ndarray of shape (n, m)
        Features of the normal rows.
    Z : ndarray of shape (n, d)
        Scores of the normals.
    radii : ndarray of shape (n,)
        Mean distance of each normal to its own nearest normals.
    """

    distances: FloatArray
    index: NDArray[np.intp]
    X: FloatArray
    Z: FloatArray
    radii: FloatArray


Variability = Callable[[NearNormals], FloatArray]


def score_variance(near: NearNormals) -> FloatArray:
    """Return the variance of the scores nearby, averaged over the members."""
    return np.asarray(_spread(near.Z, near.index) / near.Z.shape[1])


def trace_ratio(near: NearNormals) -> FloatArray:
    """Return the total variance of the features nearby, as a share of the whole."""
    whole = near.X.var(axis=0).sum()
    return _spread(near.X, near.index) / whole if whole > 0 else np.zeros(len(near.index))


def density_ratio(near: NearNormals) -> FloatArray:
    """Return the mean distance to the neighbours over theirs to their own."""
    own = near.distances.mean(axis=1)
    theirs = near.radii[near.index].mean(axis=1)
    # Among duplicates both are zero: as dense as its neighbours.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.where((own == 0) & (theirs == 0), 1.0, own / theirs)
    return np.asarray(np.minimum(ratio, np.finfo(np.float64).max))


def local_dimension(near: NearNormals) -> FloatArray:
    """Return the maximum-likelihood intrinsic dimension; 0 where it is degenerate.

    ``count / sum_j ln(r_k / r_j)`` over the distances that are not zero
    (Levina and Bickel 2004, Amsaleg et al. 2015).
    """
    r = near.distances
    positive = r > 0
    log_r = np.log(np.where(positive, r, 1.0))
    total = np.where(positive, log_r[:, -1:] - log_r, 0.0).sum(axis=1)
    return np.where(total > 0, positive.sum(axis=1) / np.where(total > 0, total, 1.0), 0.0)


#: The measures of local variability, by name.
VARIABILITIES: dict[str, Variability] = {
    "score-variance": score_variance,
    "density-ratio": density_ratio,
    "lid": local_dimension,
    "trace-ratio": trace_ratio,
}


class Locality(BaseEstimator):  # type: ignore[misc]
    """The norm at a point, as a function of the variability around it.

    ``L(x, p) = 1 + (p - 1) kappa^(1 - 2 u)``, with u the share of the normal training rows whose
    neighbourhood varies less than that of x (ties count half). So the norm is p at the median
    variability, smaller (sparser weights) at higher variability, and larger at lower. It is
    clipped to [1 + 1/31, 100]. With kappa = 1 the norm is p everywhere.

    Parameters
    ----------
    kappa : float, default=4.0
        Strength: p - 1 is multiplied by `kappa` at the lowest variability and divided by it at the
        highest one. Below 1 the direction is reversed.
    variability : {"score-variance", "density-ratio", "lid", "trace-ratio"} or callable
        The measure of variability, in the neighbourhood: variance of the member scores; distance
        to the neighbours relative to their own; local intrinsic dimension; variance of the
        features. Or a function from `NearNormals` to an array of shape (q,).
    n_neighbors : int, optional
        Number of neighbouring normal rows; None takes ``max(5, ceil(2.5 ln n))``.

    Attributes
    ----------
    X_, Z_ : ndarray of shape (r, m) and (r, d)
        Normal rows from which neighbours are taken: all, or 2,000 of them.
    k_ : int
        Number of neighbours used.
    radii_ : ndarray of shape (r,)
        Mean distance of each normal row to its neighbours.
    levels_ : ndarray of shape (r,)
        Variability around the normal rows, increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion.locality import Locality
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> Z = np.where(X < 10, 0.5, X % 2)  # the scores vary on the right only
    >>> Locality(kappa=2.0).fit(X, Z).norms([[3.0], [16.0]], p=2.0).round(2)
    array([2.62, 1.57])
    """

    def __init__(
        self,
        kappa: float = 4.0,
        variability: str | Variability = "score-variance",
        n_neighbors: int | None = None,
    ) -> None:
        self.kappa = kappa
        self.variability = variability
        self.n_neighbors = n_neighbors

    def fit(self, X: ArrayLike, Z: ArrayLike) -> "Locality":
        """Measure the variability around the normal rows, each without itself.

        Parameters
        ----------
        X : array-like of shape (n, m)
            Features of the normal rows.
        Z : array-like of shape (n, d)
            Their scores.

        Returns
        -------
        Locality
            The fitted object.
        """
        check_number(self.kappa, "kappa", 0.0, np.inf, "1 switches locality off.", open_low=True)
        if not np.isfinite(self.kappa):
            raise InvalidInputError("kappa must be finite. Got kappa=inf. Use 4.")
        if not callable(self.variability):
            check_choice(self.variability, "variability", tuple(VARIABILITIES))
        X, Z = check_table(X, "X", "n_features"), check_table(Z, "Z", "n_members")
        check_rows(X, len(Z), "X")
        rows = representative_rows(len(X), LOCALITY_ROWS)
        self.X_, self.Z_ = X[rows], Z[rows]
        k = max(5, ceil(2.5 * log(len(rows)))) if self.n_neighbors is None else self.n_neighbors
        self.k_ = min(check_count(k, "n_neighbors", "None fits it to n."), len(rows) - 1)
        self.radii_ = np.zeros(len(rows))
        self.levels_ = np.zeros(len(rows))
        if self.k_ and self.kappa != 1:
            distances, index = own_neighbours(self.X_, self.k_)
            self.radii_ = distances.mean(axis=1)
            self.levels_ = np.sort(self._measure(distances, index))
        return self

    def norms(self, X: ArrayLike, p: float) -> FloatArray:
        """Return L(x, p) at each row.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Points.
        p : float
            Norm at median variability.

        Returns
        -------
        ndarray of shape (q,)
            Local norms.
        """
        if self.kappa == 1:
            return np.full(len(np.asarray(X)), float(p))
        local = 1.0 + (p - 1.0) * self.kappa ** (1.0 - 2.0 * self.rank(X))
        # the grid of norms in use lies between these
        return np.asarray(np.clip(local, 1.0 + 1.0 / 31.0, 100.0))

    def rank(self, X: ArrayLike) -> FloatArray:
        """Return u: the share of normal rows whose neighbourhood varies less.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Points.

        Returns
        -------
        ndarray of shape (q,)
            Shares from 0 to 1; ties count half.
        """
        v = self.measure(X)
        below = np.searchsorted(self.levels_, v, side="left")
        up_to = np.searchsorted(self.levels_, v, side="right")
        return np.asarray((below + up_to) / (2.0 * len(self.levels_)))

    def measure(self, X: ArrayLike) -> FloatArray:
        """Return the variability around each row.

        Parameters
        ----------
        X : array-like of shape (q, m)
            Points.

        Returns
        -------
        ndarray of shape (q,)
            Variability; zero without a neighbour.
        """
        points = check_table(X, "X", "n_features")
        check_width(points, self.X_.shape[1], "X", "as in fit")
        if not self.k_:
            return np.zeros(len(points))
        return self._measure(*neighbours(points, self.X_, self.k_))

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of fitting to normal rows, and of computing the norm at one row.

        Parameters
        ----------
        shape : Shape
            The normals.

        Returns
        -------
        Cost
            Work and bytes by kind.
        """
        near = min(shape.rows, LOCALITY_ROWS)
        size = NUMBER * near * shape.columns
        kept = Cost(fit_bytes={"reference": size}, model_bytes={"reference": size})
        if self.kappa == 1:
            return kept
        return kept + Cost(
            fit_work={"fusion": near * near * shape.columns},
            score_work={"fusion": near * (shape.columns + EXTRA)},
        )

    def _measure(self, distances: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        near = NearNormals(distances, index, self.X_, self.Z_, self.radii_)
        if callable(self.variability):
            return np.asarray(self.variability(near), dtype=np.float64)
        return VARIABILITIES[self.variability](near)


def _spread(table: FloatArray, index: NDArray[np.intp]) -> FloatArray:
    """Return the summed variance of the columns over the rows of each index."""
    total = np.empty(len(index))
    for block in row_blocks(len(index), index.shape[1] * table.shape[1]):
        total[block] = table[index[block]].var(axis=1).sum(axis=1)
    return total
