"""Learned weights that change from place to place: the local lp fusion."""

from dataclasses import replace
from typing import Literal

import numpy as np
from sklearn.base import clone

from ocfuse.cost import EXTRA, NUMBER, Cost, Shape
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion.anchors import blend, blend_width, default_count, find_anchors
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.inputs import FloatArray, check_count, check_number
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.lp import trusted_weights, unit_weights
from ocfuse.fusion.neighbourhood import Kernel, Neighbourhood
from ocfuse.fusion.query import QueryProblems
from ocfuse.optional import slow
from ocfuse.solvers.dispatch import Solver, solve_batch
from ocfuse.solvers.solution import Status


class LocalLpFusion(BaseFusion):
    """Learn weights per region under a norm that depends on the region.

    At an anchor a, with ``p_a = L(a, p)`` (see `Locality`)::

        w(a) = argmin sum_j c_j(a) max(0, 1 - y_j z_j.w)   subject to  ||w||_{p_a} <= 1

    The weights c_j(a) fall with the distance of row j to the anchor, down to a
    global floor: a share eta of the objective is the global problem. Each class
    keeps its total weight at every anchor. The weights at x are a softmax blend
    over the anchors, and the score is ``z.w(x) / ||w(x)||_1``.

    With eta = 1 and kappa = 1 every anchor has the solution of `LpFusion`.
    Everything random has a fixed seed.

    Parameters
    ----------
    p : float, default=2.0
        Norm where the variability is at its median, from 1 to inf.
    eta : float, default=0.3
        Share of the global problem, from 0 (local only) to 1 (global).
    kernel : {"gaussian", "knn"} or Neighbourhood, default="gaussian"
        How the rows around an anchor count; an object sets the number of
        neighbours too (`ocfuse.fusion.neighbourhood.Neighbourhood`).
    anchors : int, "query" or None, default=None
        Number of anchors, the k-means centres of the normals; by default one per
        twenty normals, at most 16. "query" learns weights for every row that is
        asked about, which takes milliseconds per row and keeps the training rows;
        its problem has the nearest rows of each class and, for the floor, at most
        256 rows of each class that stand for all.
    locality : Locality, optional
        The norm as a function of the place; by default ``Locality()``.
    nonneg : bool, default=True
        Ask for ``w >= 0``.
    tol : float, default=1e-4
        Relative gap to which the problems are solved.
    solver : {"auto", "interior-point", "frank-wolfe", "frank-wolfe-paper"}
        The method, as in `ocfuse.solvers.solve`.

    Attributes
    ----------
    anchors_ : ndarray of shape (K, m)
        Places of the anchors; K = 0 with ``anchors="query"``.
    p_ : ndarray of shape (K,)
        Norm at each anchor.
    W_ : ndarray of shape (K, d)
        Weights at each anchor, inside its ball.
    gap_ : ndarray of shape (K,)
        Proven relative gap at each anchor.
    status_ : list of str
        How the solver ended at each anchor.
    n_iter_ : int
        Iterations of the solver, most of all anchors.
    width_ : float
        Width h of the blend between anchors.

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
        """Return what it takes to learn from rows, and to fuse one."""
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
        neighbourhood = self._neighbourhood()
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
            self._solve_anchors(Z, y, C)
        else:
            self.W_, self.gap_ = np.empty((0, Z.shape[1])), np.empty(0)
            self.status_: list[str] = []
            self.n_iter_ = 0
            self.problems_ = QueryProblems(
                Z, y, X, c, neighbourhood, locality, float(self.p), float(self.eta)
            )

    def _neighbourhood(self) -> Neighbourhood:
        if isinstance(self.kernel, str):
            neighbourhood = Neighbourhood(self.kernel)
        elif isinstance(self.kernel, Neighbourhood):
            neighbourhood = clone(self.kernel)
        else:
            raise InvalidTypeError(
                f'kernel must be "gaussian", "knn" or a Neighbourhood. Got {self.kernel!r}.'
            )
        neighbourhood.check()
        return neighbourhood

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

    def _solve_anchors(self, Z: FloatArray, y: FloatArray, C: FloatArray) -> None:
        index = np.tile(np.arange(len(Z)), (len(C), 1))
        answer = solve_batch(Z, y, index, C, self.p_, self.nonneg, self.tol, self.solver)
        self.W_ = trusted_weights(answer.W, answer.primal, C.sum(axis=1), self.tol)
        self.gap_ = answer.gap
        self.status_ = [str(Status(int(code))) for code in answer.status]
        self.n_iter_ = int(answer.n_iter.max())

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
