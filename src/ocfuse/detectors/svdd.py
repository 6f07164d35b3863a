"""Support vector data description: the smallest soft sphere around the normal rows."""

from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import Cost, Shape
from ocfuse.detectors.base import MANY_ROWS, KernelDetector, require_number
from ocfuse.detectors.gram import Gram, Query
from ocfuse.detectors.landmarks import Landmarks, sphere_cost
from ocfuse.system.packages import slow


class SVDD(KernelDetector):
    """Support vector data description: the smallest soft sphere (Tax and Duin 2004).

    The sphere with centre a and radius R minimises
    ``R^2 + 1 / (nu n) sum_i max(0, |phi(x_i) - a|^2 - R^2)``; the score is
    ``R^2 - |phi(x) - a|^2``, an increasing affine function of the score of the one-class SVM. It
    is 0 on the sphere, but the threshold is set from the false-alarm rate, as for all detectors.
    Scores within 1e-7 of 0, the tolerance of the solver, are 0; all others are moved towards 0 by
    as much.

    The leave-one-out score of a row that is not a support vector is its score. For support vectors
    the problem is solved again without the row if there are at most 200 rows. With more rows their
    scores are computed from the span of the support vectors (Vapnik and Chapelle 2000), which
    assumes that the set of support vectors does not change.

    With `landmarks`, more than `max_samples` rows are learned through their kernel values at the
    landmarks (see `SoftSphere`). With 1,000 landmarks these are up to 33,554 rows; of more, so
    many are taken, evenly spaced.

    Parameters
    ----------
    width : float
        Width of the kernel, in multiples of M, the mean squared distance of two training rows.
    nu : float
        Upper bound, in (0, 1), of the share of training rows outside the sphere.
    max_samples : int or None
        Most rows to learn from, evenly spaced, to limit the time to fit and to score a row. None
        learns from all.
    false_alarm_rate : float
        Share of fresh normal rows that `predict` may call anomalies.
    landmarks : int or None
        Number of landmarks, at most 8,000 (see `ocfuse.detectors.landmarks`). With landmarks all
        rows are learned from even if there are more than `max_samples`. None uses none.

    Attributes
    ----------
    method_ : {"exact", "landmarks"}
        How the rows were learned.
    support_ : ndarray of shape (n_support,)
        Training rows on or outside the sphere, or all landmarks.
    dual_coef_ : ndarray of shape (n_support,)
        Weights of these rows: the centre is their weighted sum. Weights of training rows add up to
        1.
    level_ : float
        Value of ``sum_i dual_coef_i k(x, x_i)`` on the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.detectors.svdd import SVDD
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> SVDD().fit(X).predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True
    copies_kernel: ClassVar[bool] = False

    def __init__(
        self,
        width: float = 1.0,
        nu: float = 0.1,
        max_samples: int | None = MANY_ROWS,
        false_alarm_rate: float = 0.05,
        landmarks: int | None = None,
    ) -> None:
        self.width = width
        self.nu = nu
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate
        self.landmarks = landmarks

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        cost = super().cost(shape)
        if self.landmarks is None or not self.needs_landmarks(shape.rows):
            return cost
        return cost + sphere_cost(shape, min(shape.rows, self.landmarks))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("nu", self.nu, 0.0, 1.0)

    def _fit(self, gram: Gram) -> None:
        source = self._source(gram)
        if isinstance(source, Landmarks):
            sphere = source.sphere(self.width, self.nu)
            self.support_: IntArray = np.arange(source.n_rows, dtype=np.intp)
            self.dual_coef_: FloatArray = sphere.weights
            self.level_ = sphere.level
            return
        solver = slow("sklearn.svm").OneClassSVM(kernel="precomputed", nu=self.nu, tol=1e-8)
        solver.fit(gram.kernel(self.width))
        total = float(solver.dual_coef_.sum())
        self.support_ = np.asarray(solver.support_, dtype=np.intp)
        self.dual_coef_ = solver.dual_coef_[0] / total
        self.level_ = float(-solver.intercept_[0]) / total

    def _score(self, query: Query) -> FloatArray:
        return _resolved(self._position(query))

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        source = self._source(gram)
        if isinstance(source, Landmarks):
            return _resolved(2.0 * source.sphere(self.width, self.nu).left_out())
        position = self._position(gram)
        if gram.n_rows > 200:
            spans = self._spans(gram.kernel(self.width))
            position[self.support_] -= 2.0 * self.dual_coef_ * spans
            return _resolved(position)
        # Of so few rows a solution per support vector costs less than a tenth of a second.
        scores = _resolved(position)
        for row in self.support_:
            part, query = gram.fold(np.delete(np.arange(gram.n_rows), row), np.array([row]))
            scores[row] = clone(self).fit_gram(part).score_query(query)[0]
        return scores

    def _position(self, query: Query) -> FloatArray:
        K = query.kernel(self.width)
        if self.method_ == "exact":
            K = K.take(self.support_, axis=1)
        reached = K @ self.dual_coef_
        position: FloatArray = 2.0 * (reached - self.level_)
        return position

    def _spans(self, K: FloatArray) -> FloatArray:
        """Return the squared distance of each support vector to the span of those on the border.

        The span is affine: what a weight loses, the others on the border gain.
        """
        bound = 1.0 / max(self.nu * len(K), 1.0)
        on_border = self.dual_coef_ < (1.0 - 1e-8) * bound
        spans = np.ones(len(on_border))
        border, outside = self.support_[on_border], self.support_[~on_border]
        if len(border) == 0:
            return spans
        largest = 2.0  # the squared distance of a point of feature space to a span, at most
        ridge = 1e-10  # some of the support vectors may be duplicates
        factor = cho_factor(K[np.ix_(border, border)] + ridge * np.eye(len(border)))
        inverse = cho_solve(factor, np.eye(len(border)))
        u = inverse.sum(axis=1)
        s = max(float(u.sum()), ridge)
        spans[on_border] = 1.0 / np.maximum(inverse.diagonal() - u * u / s, 1.0 / largest)
        if len(outside):
            v = K[np.ix_(border, outside)]
            absorbed = np.einsum("bo,bo->o", v, inverse @ v) - (u @ v - 1.0) ** 2 / s
            spans[~on_border] = np.clip(1.0 - absorbed, 0.0, largest)
        return spans


def _resolved(position: FloatArray) -> FloatArray:
    """Move scores towards 0 by ten times the solver's tolerance, which decides so near to it.

    Without a step, which would magnify rounding.
    """
    return position - np.clip(position, -1e-7, 1e-7)
