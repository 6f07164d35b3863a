"""Local lp fusion: learned weights that depend on the position of a row."""

from dataclasses import replace
from math import ceil, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from ocfuse.arrays import FloatArray
from ocfuse.cost import EXTRA, NUMBER, Cost, Shape
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.lp import trusted_weights, unit_weights
from ocfuse.nearest.exact import neighbours, representative_rows
from ocfuse.solvers.solution import Status
from ocfuse.solvers.solve import Solver, solve_batch
from ocfuse.system.cache import cached
from ocfuse.system.packages import slow
from ocfuse.system.threads import one_thread
from ocfuse.validation import check_choice, check_count, check_number

Kernel = Literal["gaussian", "knn"]


class Neighbourhood(BaseEstimator):  # type: ignore[misc]
    """Weights of training rows by their distance to an anchor, for each class.

    Of the rows of one class, with weights b that add up to B::

        c_j(a) = (1 - eta) B b_j K_j(a) / sum_i b_i K_i(a)  +  eta b_j

    so that each class has its total weight B at every anchor: a few anomalies, even if far away,
    have the same total weight as globally, the nearest ones most of it. With eta = 1 the weights
    are b, as in the global problem; with eta > 0 no row has weight 0.

    Parameters
    ----------
    kernel : {"gaussian", "knn"}, default="gaussian"
        ``K = exp(-2 r^2 / r_k^2)`` with r_k the distance to the k-th neighbour of the class, which
        is two standard deviations; or 1 for the k nearest rows (and all as near as the k-th), else
        0.
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
        """Share a total among the rows of one class by nearness times weight, shape (a, n).

        `distances` (a, n) are those of the rows to the anchors, b (n,) or (a, n) the weights of
        the rows; the k-th neighbour sets the width.
        """
        r, r_k = distances, np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
        if self.kernel == "knn":
            near = b * (r <= r_k)
        else:
            # Among duplicates r_k may be zero: then the nearest row that differs sets the width.
            other = np.where(r > 0, r, np.inf).min(axis=1, keepdims=True)
            width = np.where(r_k > 0, r_k, np.where(np.isfinite(other), other, 1.0))
            near = b * np.exp(-2.0 * (r / width) ** 2)
        return np.asarray(total * near / near.sum(axis=1, keepdims=True))


class LocalLpFusion(BaseFusion):
    """Local lp fusion: weights and norm of the constraint depend on the position of a row.

    At an anchor a, with ``p_a = L(a, p)`` (see `Locality`)::

        w(a) = argmin sum_j c_j(a) max(0, 1 - y_j z_j.w)   subject to  ||w||_{p_a} <= 1

    The row weights c_j(a) decrease with the distance of row j to the anchor; a share eta of the
    objective is that of the global problem. Each class has the same total weight at every anchor.
    The weights at x are a softmax interpolation between the anchors, and the fused score is
    ``z.w(x) / ||w(x)||_1``.

    With eta = 1 and kappa = 1 every anchor has the solution of `LpFusion`. All random choices have
    a fixed seed.

    Parameters
    ----------
    p : float, default=2.0
        Norm at median variability, from 1 to inf.
    eta : float, default=0.3
        Share of the global problem, from 0 (local only) to 1 (global).
    kernel : {"gaussian", "knn"} or Neighbourhood, default="gaussian"
        Kernel of the row weights around an anchor, or an object that also sets the number of
        neighbours (`ocfuse.fusion.local_lp.Neighbourhood`).
    anchors : int, "query" or None, default=None
        Number of anchors, which are k-means centres of the normal rows. None takes one per twenty
        normal rows, at most 16. "query" learns weights for every row to score, which takes
        milliseconds per row and stores the training rows; its problem has the nearest rows of each
        class and, for the global share, at most 256 rows of each class.
    locality : Locality, optional
        The norm as a function of the position; None is ``Locality()``.
    nonneg : bool, default=True
        Whether weights must be ``>= 0``.
    tol : float, default=1e-4
        Relative duality gap to which the problems are solved.
    solver : {"auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"}
        The solver, as in `ocfuse.solvers.solve`.

    Attributes
    ----------
    anchors_ : ndarray of shape (K, m)
        Positions of the anchors; K = 0 with ``anchors="query"``.
    p_ : ndarray of shape (K,)
        Norm at each anchor.
    W_ : ndarray of shape (K, d)
        Weights at each anchor, inside its ball.
    gap_ : ndarray of shape (K,)
        Proven relative gap at each anchor.
    status_ : list of str
        Status of the solver at each anchor.
    n_iter_ : int
        Largest number of iterations of the solver at an anchor.
    width_ : float
        Width h of the interpolation between anchors.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.fusion import LocalLpFusion
    >>> X = np.linspace(-1, 1, 80).reshape(-1, 1)
    >>> Z = np.column_stack([1 - X[:, 0], 1 + X[:, 0]]) / 2  # each is sure on one side
    >>> fusion = LocalLpFusion(p=1.1, anchors=2, eta=0.1).fit(Z, X=X)
    >>> fusion.weights([[-1.0], [1.0]]).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    needs_X = True  # noqa: N815

    def __init__(
        self,
        p: float = 2.0,
        eta: float = 0.3,
        kernel: Kernel | Neighbourhood = "gaussian",
        anchors: int | Literal["query"] | None = None,
        locality: Locality | None = None,
        nonneg: bool = True,
        tol: float = 1e-4,
        solver: Solver = "auto",
    ) -> None:
        self.p = p
        self.eta = eta
        self.kernel = kernel
        self.anchors = anchors
        self.locality = locality
        self.nonneg = nonneg
        self.tol = tol
        self.solver = solver

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of fusing one."""
        n, m = shape.rows, shape.columns
        norm = self.locality if isinstance(self.locality, Locality) else Locality()
        locality = norm.cost(shape)
        if self.anchors == "query":
            return locality + Cost(
                score_work={"fusion": n * (m + EXTRA)}, model_bytes={"bytes": NUMBER * n * m}
            )
        count = self.anchors if isinstance(self.anchors, int) else default_count(n)
        # distances, weights and indices of all rows at all anchors
        return replace(locality, score_work={}, model_bytes={}) + Cost(
            scratch_bytes={"bytes": 3 * NUMBER * count * n}
        )

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        check_number(self.p, "p", 1.0, np.inf, "2 is a round ball, near 1 selects few members.")
        check_number(self.eta, "eta", 0.0, 1.0, "1 is the global problem, 0 the local one alone.")
        if not isinstance(self.kernel, str | Neighbourhood):
            raise InvalidTypeError(
                f'kernel must be "gaussian", "knn" or a Neighbourhood. Got {self.kernel!r}.'
            )
        is_named = isinstance(self.kernel, str)
        neighbourhood = Neighbourhood(self.kernel) if is_named else clone(self.kernel)
        neighbourhood.check()
        normal = y > 0
        normals = X[normal]
        locality = Locality() if self.locality is None else clone(self.locality)
        locality.fit(normals, Z[normal])
        self.anchors_ = self._places(normals, c[normal])
        self.width_ = blend_width(self.anchors_)
        self.p_ = locality.norms(self.anchors_, self.p)
        self.problems_ = None
        if len(self.anchors_):
            C = self._local_weights(neighbourhood, y, X, c)
            index = np.tile(np.arange(len(Z)), (len(C), 1))
            answer = solve_batch(Z, y, index, C, self.p_, self.nonneg, self.tol, self.solver)
            self.W_ = trusted_weights(answer.W, answer.primal, C.sum(axis=1), self.tol)
            self.gap_ = answer.gap
            self.status_ = [str(Status(int(code))) for code in answer.status]
            self.n_iter_ = int(answer.n_iter.max())
        else:
            self.W_, self.gap_ = np.empty((0, Z.shape[1])), np.empty(0)
            self.status_, self.n_iter_ = [], 0
            self.problems_ = QueryProblems(Z, y, X, c, neighbourhood, locality, self.p, self.eta)

    def _places(self, X: FloatArray, c: FloatArray) -> FloatArray:
        if self.anchors is None:
            return find_anchors(X, c, default_count(len(X)))
        if isinstance(self.anchors, str):
            if self.anchors != "query":
                raise InvalidInputError(
                    f'anchors must be a positive integer, "query" or None. Got {self.anchors!r}.'
                )
            return X[:0]
        advice = 'Use "query" to learn weights for every row.'
        return find_anchors(X, c, check_count(self.anchors, "anchors", advice))

    def _local_weights(
        self, neighbourhood: Neighbourhood, y: FloatArray, X: FloatArray, c: FloatArray
    ) -> FloatArray:
        """Return the weights of all rows at all anchors, shape (K, n)."""
        C = np.empty((len(self.anchors_), len(X)))
        for sign in np.unique(y):
            rows = np.flatnonzero(y == sign)
            b = c[rows]
            distances = slow("scipy.spatial.distance").cdist(self.anchors_, X[rows])
            near = neighbourhood.weigh(distances, b, neighbourhood.count(len(rows)), float(b.sum()))
            C[:, rows] = (1.0 - self.eta) * near + self.eta * b
        return C

    def _weights(self, X: FloatArray) -> FloatArray:
        if self.problems_ is None:
            return unit_weights(blend(X, self.anchors_, self.width_) @ self.W_)
        return unit_weights(self.problems_.solve(X, self.nonneg, self.tol, self.solver))

    def _local_p(self, X: FloatArray) -> FloatArray:
        if self.problems_ is not None:
            return self.problems_.locality.norms(X, self.problems_.p)
        if (self.p_ == self.p_[0]).all():
            return np.full(len(X), self.p_[0])
        return np.asarray(blend(X, self.anchors_, self.width_) @ self.p_)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray((Z * self._weights(X)).sum(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), Z * self._weights(X)


def default_count(n: int) -> int:
    """Return the number of anchors for n normals: one per twenty, at most 16."""
    return min(16, max(1, n // 20))


@cached
def find_anchors(X: FloatArray, c: FloatArray, n_anchors: int) -> FloatArray:
    """Return weighted k-means centres, fewer if there are fewer distinct rows."""
    if n_anchors == 1:
        return np.average(X, axis=0, weights=c)[np.newaxis]
    rows = representative_rows(len(X), max(2000, n_anchors))
    X, c = merge_duplicates(X[rows], c[rows])
    if len(X) <= n_anchors:
        return X
    means = slow("sklearn.cluster").KMeans(n_anchors, n_init=1, max_iter=100, random_state=0)
    # Threads add in the order in which they end, and the last bits would differ.
    with one_thread():
        means.fit(X, sample_weight=c)
    return np.ascontiguousarray(means.cluster_centers_, dtype=np.float64)


def merge_duplicates(X: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct rows, ordered by their values, with their summed weights."""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weights=c).astype(np.float64)


def blend_width(A: FloatArray) -> float:
    """Return h: half the median squared distance of an anchor to the nearest other.

    At an anchor the nearest other one then has e^-2 of its weight, and halfway
    between two both count alike.
    """
    if len(A) < 2:
        return 1.0
    D = slow("scipy.spatial.distance").cdist(A, A, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    nearest = D.min(axis=1)
    return float(np.median(nearest) / 2.0) if nearest.all() else 1.0


def blend(X: FloatArray, A: FloatArray, h: float) -> FloatArray:
    """Return the softmax over the anchors of ``-||x - a||^2 / h``, shape (q, K).

    The part ``||x||^2`` is common to all anchors and is left out before it can
    drown their difference: ``(2 x.a - ||a||^2) / h`` holds far from all anchors.
    """
    centre = A.mean(axis=0)
    B = A - centre
    logits = (2.0 * ((X - centre) @ B.T) - (B**2).sum(axis=1)) / h
    logits -= logits.max(axis=1, keepdims=True)
    b = np.exp(logits)
    return np.asarray(b / b.sum(axis=1, keepdims=True))


class QueryProblems:
    """The local problem of any point, built from stored training rows.

    It has the nearest rows of each class, for the local part, and for the floor all
    rows of the class or, of many, a fixed sample that carries their whole weight. The norm is p
    where the variability is at its median, `eta` is the share of the floor.
    """

    def __init__(
        self,
        Z: FloatArray,
        y: FloatArray,
        X: FloatArray,
        c: FloatArray,
        neighbourhood: Neighbourhood,
        locality: Locality,
        p: float,
        eta: float,
    ) -> None:
        # Class by class, so that the rows of a class are a slice and need no copy.
        order = y.argsort(kind="stable")
        self.Z, self.y, self.X, self.c = Z[order], y[order], X[order], c[order]
        self.neighbourhood = neighbourhood
        self.locality = locality
        self.p = float(p)
        self.eta = float(eta)

    def solve(self, X: FloatArray, nonneg: bool, tol: float, solver: Solver) -> FloatArray:
        """Return the weights at each row; 256 problems are built and solved together."""
        W = np.empty((len(X), self.Z.shape[1]))
        primal = np.empty(len(X))
        for start in range(0, len(X), 256):
            block = slice(start, start + 256)
            index, weight = self._rows(X[block])
            p = self.locality.norms(X[block], self.p)
            answer = solve_batch(self.Z, self.y, index, weight, p, nonneg, tol, solver)
            W[block], primal[block] = answer.W, answer.primal
        return trusted_weights(W, primal, np.full(len(X), self.c.sum()), tol)

    def _rows(self, points: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the rows of the problem at each point, and their weights."""
        index, weight = [], []
        hood, q = self.neighbourhood, len(points)
        for sign in np.unique(self.y):
            start, stop = map(int, np.searchsorted(self.y, [sign, sign + 1]))
            n, b = stop - start, self.c[start:stop]
            distances, near = neighbours(points, self.X[start:stop], hood.support(n))
            local = hood.weigh(distances, b[near], hood.count(n), float(b.sum()))
            index.append(near + start)
            weight.append((1.0 - self.eta) * local)
            chosen = representative_rows(n, 256)
            floor = self.eta * b[chosen]
            if len(chosen) < n:
                floor *= b.sum() / b[chosen].sum()
            index.append(np.tile(start + chosen, (q, 1)))
            weight.append(np.tile(floor, (q, 1)))
        return np.hstack(index), np.hstack(weight)
