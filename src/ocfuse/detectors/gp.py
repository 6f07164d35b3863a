"""One-class Gaussian process: regression of the constant 1."""

from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import solve_triangular

from ocfuse.arrays import FloatArray
from ocfuse.cost import Cost, Shape
from ocfuse.detectors.base import MANY_ROWS, KernelDetector, require_number
from ocfuse.detectors.gram import Gram, Query
from ocfuse.detectors.landmarks import Blocks, Landmarks, blocks_cost, landmarks_cost
from ocfuse.exceptions import InvalidInputError


class OneClassGP(KernelDetector):
    """One-class Gaussian process: regression with all targets 1 (Kemmler et al. 2013).

    With ``Kn = K + noise I`` the prediction at x has mean ``mu = k(x)' Kn^-1 1``
    and variance ``s2 = 1 + noise - k(x)' Kn^-1 k(x)``. Leave-one-out scores are
    exact, from the diagonal of ``Kn^-1``.

    With `landmarks`, more than `max_samples` rows are all learned. For the mean they are divided
    into blocks of at most 1,000 near rows (Snelson and Ghahramani 2007): the kernel is exact
    within a block, and approximated with landmarks between blocks. The time to fit is linear in
    the number of rows; scoring compares a row with the landmarks and with its block; all rows are
    stored. The other statistics use landmarks only.

    Parameters
    ----------
    statistic : {"mean", "variance", "predictive", "ratio"}
        The score: ``mu``; ``-s2``; the log density of 1, ``log N(1; mu, s2)``; or ``log(mu / s)``.
        For mu below 0.001, log(mu) is replaced by its tangent at 0.001, which is finite and
        increasing for every mu.
    width : float
        Width of the kernel, in multiples of M, the mean squared distance of two training rows.
    noise : float
        Variance of the noise.
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
    method_ : {"exact", "landmarks", "blocks"}
        How the rows were learned.
    alpha_ : ndarray of shape (n,)
        ``Kn^-1 1``; with landmarks only, the factors of kernel values.
    blocks_ : Blocks or None
        The rows in blocks, in the order of `alpha_`, if the method is "blocks".
    weights_ : ndarray of shape (number of blocks, landmarks) or None
        Factors of the kernel values at the landmarks, for rows of each block.
    factor_ : ndarray of shape (n, n) or None
        Lower Cholesky factor of Kn; with landmarks, the factors of kernel values that replace its
        inverse; None for the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.detectors.gp import OneClassGP
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> OneClassGP().fit(X).predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True

    def __init__(
        self,
        statistic: Literal["mean", "variance", "predictive", "ratio"] = "mean",
        width: float = 1.0,
        noise: float = 0.01,
        max_samples: int | None = MANY_ROWS,
        false_alarm_rate: float = 0.05,
        landmarks: int | None = None,
    ) -> None:
        self.statistic = statistic
        self.width = width
        self.noise = noise
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate
        self.landmarks = landmarks

    @property
    def in_blocks(self) -> bool:
        """Whether many rows are learned from exactly within blocks: for the mean."""
        return self.statistic == "mean"

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        if self.landmarks is None or not self.needs_landmarks(shape.rows):
            return self._exact_cost(shape)
        size = min(shape.rows, self.landmarks)
        n_outputs = self._n_outputs(shape.rows, size)
        cost = landmarks_cost(shape, size, self.width, n_outputs, n_blocks=3)
        return cost + blocks_cost(shape, size) if self.in_blocks else cost

    def _n_outputs(self, n: int, size: int) -> float:
        return 1.0 if self.statistic == "mean" else float(size)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("noise", self.noise, 0.0, np.inf)
        if self.statistic not in ("mean", "variance", "predictive", "ratio"):
            raise InvalidInputError(
                "statistic must be one of 'mean', 'variance', 'predictive', 'ratio'. "
                f"Got statistic={self.statistic!r}."
            )

    def _fit(self, gram: Gram) -> None:
        source = self._source(gram)
        self.factor_: FloatArray | None = None
        self.blocks_: Blocks | None = None
        self.weights_: FloatArray | None = None
        if self.in_blocks and isinstance(source, Landmarks):
            self.method_, self.blocks_ = "blocks", source.blocks
            regression = source.regression(self.width, self.noise)
            self.alpha_, self.weights_ = regression.alpha, regression.weights
            return
        if self.statistic != "mean":
            self.factor_ = source.cholesky(self.width, self.noise).factor
        self.alpha_ = source.inverse(self.width, self.noise).alpha

    def _score(self, query: Query) -> FloatArray:
        K = query.kernel(self.width)
        if self.blocks_ is not None and self.weights_ is not None:
            return self._mean_in_blocks(query, self.blocks_, self.weights_)
        mean: FloatArray = K @ self.alpha_
        if self.factor_ is None:
            return mean
        if self.method_ == "landmarks":
            half = self.factor_ @ K.T
        else:
            half = solve_triangular(self.factor_, K.T, lower=True, check_finite=False)
        variance = 1.0 + self.noise - np.einsum("nq,nq->q", half, half)
        return self._combine(mean, np.maximum(variance, self.noise))

    def _mean_in_blocks(self, query: Query, blocks: Blocks, weights: FloatArray) -> FloatArray:
        """Return the mean: the block of a row as it is, the others by way of landmarks."""
        K, mean = query.kernel(self.width), np.empty(query.n_rows)
        for j, rows, near in query.parted(blocks):
            alpha = self.alpha_[blocks.starts[j] : blocks.starts[j + 1]]
            mean[rows] = K[rows] @ weights[j] + near.kernel(self.width) @ alpha
        return mean

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        source = self._source(gram)
        if self.in_blocks and isinstance(source, Landmarks):
            return source.regression(self.width, self.noise).left_out()
        return self._combine(*source.inverse(self.width, self.noise).left_out())

    def _combine(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        if self.statistic == "mean":
            return mean
        if self.statistic == "variance":
            return -variance
        if self.statistic == "predictive":
            density: FloatArray = (1.0 - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)
            return -0.5 * density
        smallest = 1e-3  # below this mean the logarithm is continued by its tangent
        safe = np.maximum(mean, smallest)
        ratio: FloatArray = np.log(safe) + np.minimum(mean / smallest - 1.0, 0.0)
        return ratio - 0.5 * np.log(variance)
