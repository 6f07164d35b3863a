"""Detectors on rows that are filtered again and again, after Wang et al. (2022)."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.stats import rankdata

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.detectors import KNN, Pool
from ocfuse.detectors.base import require_count, require_number
from ocfuse.exceptions import InvalidInputError
from ocfuse.lab.rivals.base import RowDetector, next_seed
from ocfuse.scores import RobustZ


class FilteredEnsemble(RowDetector):
    """Filtered ensemble: outliers are removed step by step; all detectors are averaged.

    Known, from the abstract: Wang, Wang, Wang and Mao, "A robust novelty detection
    framework based on ensemble learning", International Journal of Machine Learning and
    Cybernetics 2022 (FNDF). An iteration removes outliers from the training rows, which
    reduces the bias they cause; a weighting scheme combines its result with that of the
    iterations before; the detectors of all iterations are aggregated by the same scheme,
    which reduces the variance; a flexible function provides a reference in place of the
    ground truth. Published for D2, D4, D5 and D7.

    Ours, reconstructed from that: iteration t fits the detector on a random 80 % of the
    rows left; its scores z_t of all rows are robust z-scores, out-of-fold for rows that it
    was fitted on. The reference is a mixture of the mean and the minimum of
    z_1, ..., z_t, and the weight v_t is the rank correlation of z_t with it, if
    positive. Rows left whose combined score ``sum_t v_t z_t / sum_t v_t`` is 7.4 times as
    far below the median as half of those below it are removed, at most 5 % of all rows
    at a time.

    Parameters
    ----------
    detector : estimator, optional
        Detector to fit in every iteration; None is ``KNN()``.
    n_iterations : int, default=10
        Number of iterations.
    flexibility : float, default=0.5
        Share of the mean in the reference, from 0 to 1; the minimum has the rest.
    max_removed : float, default=0.2
        Largest share of the rows that may be removed.
    random_state : int, RandomState or None, default=None
        Seed of the draws of rows for each detector.

    Attributes
    ----------
    pools_ : list of Pool
        The fitted detectors, one in each pool.
    scales_ : list of RobustZ
        Normalisers of the detectors.
    weights_ : ndarray of shape (n_iterations,)
        Weights of the detectors; they add up to 1.
    removed_ : ndarray
        Rows of X that were removed.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.lab.rivals import FilteredEnsemble
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [9.0, 9.0]
    >>> FilteredEnsemble(random_state=0).fit(X).removed_
    array([7])
    """

    def __init__(
        self,
        detector: Any = None,
        n_iterations: int = 10,
        flexibility: float = 0.5,
        max_removed: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.detector = detector
        self.n_iterations = n_iterations
        self.flexibility = flexibility
        self.max_removed = max_removed
        self.random_state = random_state

    def _fit(self, X: FloatArray, random: RandomState) -> None:
        require_count("n_iterations", self.n_iterations, 1, "Use 10.")
        require_number("max_removed", self.max_removed, 0.0, 1.0)
        share: Any = self.flexibility
        is_number = isinstance(share, Real) and not isinstance(share, bool)
        if not is_number or not 0.0 <= share <= 1.0:
            raise InvalidInputError(
                f"flexibility must be a number in [0, 1]. Got flexibility={share!r}. "
                "Use 1 for the mean alone."
            )
        n = len(X)
        kept = np.ones(n, dtype=bool)
        self.pools_: list[Pool] = []
        self.scales_: list[RobustZ] = []
        Z, v = np.empty((n, 0)), np.empty(0)
        for _ in range(self.n_iterations):
            left = np.flatnonzero(kept)
            size = max(2, round(0.8 * len(left)))  # so that the detectors differ
            rows = np.sort(random.permutation(left)[:size])
            Z = np.column_stack([Z, self._iteration(X, rows, next_seed(random))])
            reference = self.flexibility * Z.mean(axis=1)
            reference += (1.0 - self.flexibility) * Z.min(axis=1)
            v = np.append(v, _agreement(Z[:, -1], reference))
            least = max(n - int(self.max_removed * n), 2)
            kept[_outlying(Z @ v / v.sum(), left, least, n)] = False
        self.weights_ = v / v.sum()
        self.removed_ = np.flatnonzero(~kept)

    def _iteration(self, X: FloatArray, rows: IntArray, seed: int) -> FloatArray:
        """Fit one detector; return the scores of all rows, out-of-fold and on one scale."""
        detector = KNN() if self.detector is None else self.detector
        pool = Pool([("detector", detector)]).fit(X[rows], random_state=seed)
        scale = RobustZ().fit(pool.out_of_fold_scores_)
        self.pools_.append(pool)
        self.scales_.append(scale)
        scores = pool.score_samples(X)
        scores[rows] = pool.out_of_fold_scores_
        return scale.transform(scores)[:, 0]

    def _score(self, X: FloatArray) -> FloatArray:
        scores = np.zeros(len(X))
        for pool, scale, weight in zip(self.pools_, self.scales_, self.weights_, strict=True):
            scores += weight * scale.transform(pool.score_samples(X))[:, 0]
        return scores


def _agreement(scores: FloatArray, reference: FloatArray) -> float:
    """Return the rank correlation with the reference, at least a little above zero."""
    a, b = (rankdata(values) - (len(values) + 1) / 2 for values in (scores, reference))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return max(float(a @ b) / size, 1e-3) if size > 0 else 1.0


def _outlying(scores: FloatArray, left: IntArray, least: int, n: int) -> IntArray:
    """Return the rows to remove: the lowest ones, at most 5 % of all n.

    A row is an outlier if it is five standard deviations below the median. As scores have a
    long tail on one side, a deviation is 1.4826 times the median distance of the lower half.
    """
    most = min(int(np.ceil(0.05 * n)), max(len(left) - least, 0))
    below = np.median(scores[left]) - scores[left]
    deviation = float(np.median(below[below >= 0]))
    lowest = below.argsort(kind="stable")[::-1][:most]
    return left[lowest[below[lowest] > 5 * 1.4826 * deviation]]
