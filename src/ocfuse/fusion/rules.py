"""Fixed rules: sum, max, vote and others, and the single best member.

A fixed rule learns no weights: all members are trusted equally. All rules are non-decreasing in
each member. All but the product and the vote share one form: the fused score is a weighted mean of
the members, whose weights depend on the order of the scores in the row.
"""

from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.base import BaseFusion
from ocfuse.system.packages import slow
from ocfuse.validation import check_choice, check_count, check_number


class _OrderRule(BaseFusion):
    """A weighted mean whose weights depend on the order of the scores in a row."""

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        """Learn nothing; a rule that has a parameter checks it here."""

    @abstractmethod
    def _shares(self, Z: FloatArray) -> FloatArray:
        """Return the weight of each member in each row's score; rows add up to one."""

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray((self._shares(Z) * Z).sum(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), self._shares(Z) * Z


class SumRule(_OrderRule):
    """Sum rule: the mean of the member scores.

    Examples
    --------
    >>> from ocfuse.fusion import SumRule
    >>> SumRule().fit([[0.0, 1.0]]).fuse([[0.2, 0.6]])
    array([0.4])
    """

    def _shares(self, Z: FloatArray) -> FloatArray:
        return np.full(Z.shape, 1.0 / Z.shape[1])


class MaxRule(_OrderRule):
    """Maximum of the member scores: a row is an anomaly only if all members agree.

    Examples
    --------
    >>> from ocfuse.fusion import MaxRule
    >>> MaxRule().fit([[0.0, 1.0]]).fuse([[0.2, 0.6]])
    array([0.6])
    """

    def _shares(self, Z: FloatArray) -> FloatArray:
        return _one_hot(Z.argmax(axis=1), Z.shape[1])


class MinRule(_OrderRule):
    """Minimum of the member scores: one member is enough for an alarm.

    Examples
    --------
    >>> from ocfuse.fusion import MinRule
    >>> MinRule().fit([[0.0, 1.0]]).fuse([[0.2, 0.6]])
    array([0.2])
    """

    def _shares(self, Z: FloatArray) -> FloatArray:
        return _one_hot(Z.argmin(axis=1), Z.shape[1])


class MedianRule(_OrderRule):
    """Median of the member scores; of an even number, the mean of the middle two.

    Examples
    --------
    >>> from ocfuse.fusion import MedianRule
    >>> MedianRule().fit([[0.0, 1.0, 2.0]]).fuse([[0.2, 9.0, 0.6]])
    array([0.6])
    """

    def _shares(self, Z: FloatArray) -> FloatArray:
        return _middle(Z, (Z.shape[1] - 1) // 2)


class TrimmedMean(_OrderRule):
    """Trimmed mean: the mean of the member scores without the extreme ones.

    Parameters
    ----------
    share : float, default=0.2
        Share of the members left out at each end, at most one half. The number is rounded down, so
        that with few members none may be left out.

    Examples
    --------
    >>> from ocfuse.fusion import TrimmedMean
    >>> TrimmedMean(0.25).fit([[0.0, 1.0, 2.0, 3.0]]).fuse([[-50.0, 0.4, 0.6, 9.0]])
    array([0.5])
    """

    def __init__(self, share: float = 0.2) -> None:
        self.share = share

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        share = check_number(
            self.share, "share", 0.0, 0.5, "0.2 leaves out a fifth of the members at each end."
        )
        self.n_trimmed_ = min(int(share * Z.shape[1]), (Z.shape[1] - 1) // 2)

    def _shares(self, Z: FloatArray) -> FloatArray:
        return _middle(Z, self.n_trimmed_)


class AverageOfMaximum(_OrderRule):
    """Average of maximum (AOM): the mean over random groups of members of their lowest score.

    The rule is named after the maximum of *anomaly* scores. Here higher is more normal, so the
    minimum of each group is taken.

    Parameters
    ----------
    n_groups : int, optional
        Number of groups; None makes groups of about three members.
    random_state : int, RandomState or None, default=0
        Seed with which `fit` draws the groups. None draws different groups in every fit.

    Attributes
    ----------
    groups_ : ndarray of shape (d,)
        The group of each member.

    Examples
    --------
    >>> from ocfuse.fusion import AverageOfMaximum
    >>> AverageOfMaximum(n_groups=1).fit([[0.0, 1.0]]).fuse([[0.2, 0.6]])
    array([0.2])
    """

    def __init__(
        self,
        n_groups: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_groups = n_groups
        self.random_state = random_state

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        d = Z.shape[1]
        if self.n_groups is None:
            n_groups = -(-d // 3)
        else:
            n_groups = check_count(self.n_groups, "n_groups", "None makes groups of about three.")
        if n_groups > d:
            raise InvalidInputError(
                f"n_groups must not exceed the number of members, {d}. Got n_groups={n_groups}. "
                "Use n_groups=None for groups of about three members."
            )
        self.groups_ = check_random_state(self.random_state).permutation(np.arange(d) % n_groups)

    def _shares(self, Z: FloatArray) -> FloatArray:
        shares = np.zeros(Z.shape)
        n_groups = int(self.groups_.max()) + 1
        for group in range(n_groups):
            members = np.flatnonzero(self.groups_ == group)
            lowest = members[Z[:, members].argmin(axis=1)]
            shares[np.arange(len(Z)), lowest] = 1.0 / n_groups
        return shares


class ProductRule(BaseFusion):
    """Product rule: the mean logarithm of the tail probabilities of the members.

    ``fused(z) = 1/d sum_j log F_j(z_j)``, the logarithm of the geometric mean. ``F_j`` is the
    logistic distribution function with the mean and the standard deviation of member j on normal
    rows. So any increasing affine normalisation of the scores gives the same result. Far below the
    normal scores the logarithm is linear: it is finite, and of two far anomalies the farther one
    has the lower score. A member that is constant on normal rows is not rescaled.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (d,)
        Mean and scale of the logistic distribution of each member.

    Examples
    --------
    >>> from ocfuse.fusion import ProductRule
    >>> rule = ProductRule().fit([[0.0, 1.0], [1.0, 0.0]])
    >>> rule.fuse([[0.5, 0.5]]).round(4)  # log(1/2)
    array([-0.6931])
    """

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        normal = y > 0
        self.mean_ = self.reference_.copy()
        self.scale_ = logistic_scale(Z[normal], c[normal])

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray(self._logs(Z).sum(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), self._logs(Z)

    def _logs(self, Z: FloatArray) -> FloatArray:
        logs = log_expit((Z - self.mean_) / self.scale_)
        return np.asarray(logs / Z.shape[1])


class MajorityVote(BaseFusion):
    """Majority vote: the share of the members that call a row normal.

    A member calls a row normal if its score is at least the threshold of the member. The fused
    score has only d + 1 values; rows with the same number of votes have the same score.

    Parameters
    ----------
    threshold : float or array-like of shape (d,), optional
        Threshold of the members, or of each member. None sets them from normal rows.
    rate : float, default=0.05
        Share of the normal rows below a threshold set by `fit`.

    Attributes
    ----------
    thresholds_ : ndarray of shape (d,)
        The threshold of each member.

    Examples
    --------
    >>> from ocfuse.fusion import MajorityVote
    >>> MajorityVote(threshold=0.5).fit([[0.0, 1.0]]).fuse([[0.2, 0.6], [0.5, 0.9]])
    array([0.5, 1. ])
    """

    def __init__(self, threshold: ArrayLike | None = None, rate: float = 0.05) -> None:
        self.threshold = threshold
        self.rate = rate

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        rate = check_number(
            self.rate, "rate", 0.0, 1.0, "0.05 lets a member reject one normal in twenty."
        )
        if self.threshold is None:
            normal = y > 0
            self.thresholds_ = weighted_quantile(Z[normal], c[normal], rate)
            return
        given = np.asarray(self.threshold, dtype=np.float64)
        if given.shape not in ((), (Z.shape[1],)) or not np.isfinite(given).all():
            raise InvalidInputError(
                f"threshold must be a finite number, or one per member, shape ({Z.shape[1]},). "
                f"Got {self.threshold!r}. Use None to fit it to the normals."
            )
        self.thresholds_ = np.broadcast_to(given, Z.shape[1:]).copy()

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return np.asarray((self.thresholds_ <= Z).mean(axis=1))

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), (self.thresholds_ <= Z) / Z.shape[1]


def _one_hot(chosen: FloatArray, d: int) -> FloatArray:
    return np.asarray(np.arange(d) == chosen[:, np.newaxis], dtype=np.float64)


def _middle(Z: FloatArray, n_trimmed: int) -> FloatArray:
    """Share a row evenly among the members that are not among its extremes."""
    d = Z.shape[1]
    rank = Z.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    kept = (rank >= n_trimmed) & (rank < d - n_trimmed)
    return np.asarray(kept / float(d - 2 * n_trimmed))


class SingleBest(BaseFusion):
    """Scores of the one member that separates normal rows from anomalies best.

    The anomalies may be labelled or generated. Of equally good members the first is taken.

    Parameters
    ----------
    criterion : {"auc", "average-precision"}, default="auc"
        Area under the ROC curve, or average precision of the anomalies.

    Attributes
    ----------
    quality_ : ndarray of shape (d,)
        Value of the criterion for each member.
    best_ : int
        Position of the chosen member.

    Examples
    --------
    >>> from ocfuse.fusion import SingleBest
    >>> best = SingleBest().fit([[0.9, 0.2], [0.8, 0.9], [0.1, 0.5]], y=[1, 1, -1])
    >>> best.best_, best.fuse([[0.3, 0.7]])
    (0, array([0.3]))
    """

    needs_anomalies = True

    def __init__(self, criterion: Literal["auc", "average-precision"] = "auc") -> None:
        self.criterion = criterion

    def _fit(self, Z: FloatArray, y: FloatArray, X: FloatArray, c: FloatArray) -> None:
        check_choice(self.criterion, "criterion", ("auc", "average-precision"))
        metrics = slow("sklearn.metrics")
        is_auc = self.criterion == "auc"
        criterion = metrics.roc_auc_score if is_auc else metrics.average_precision_score
        self.quality_ = np.array([criterion(y < 0, -z, sample_weight=c) for z in Z.T])
        self.best_ = int(self.quality_.argmax())

    def _trust(self) -> FloatArray:
        return np.asarray(np.arange(self.n_members_) == self.best_, dtype=np.float64)

    def _fuse(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        return Z[:, self.best_].copy()

    def _contributions(self, Z: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(Z)), Z * self._trust()


def logistic_scale(Z: FloatArray, c: FloatArray) -> FloatArray:
    """Return the scale of the logistic law with the spread of each column, or 1."""
    mean = np.average(Z, axis=0, weights=c)
    spread = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=c))
    constant = spread <= 1e-12 * np.abs(Z).max(axis=0)  # but for rounding
    return np.asarray(np.where(constant, 1.0, spread * np.sqrt(3.0) / np.pi))


def weighted_quantile(Z: FloatArray, c: FloatArray, rate: float) -> FloatArray:
    """Return, per column, the largest value with at most `rate` of the weight below."""
    order = Z.argsort(axis=0, kind="stable")
    below = np.cumsum(c[order], axis=0) - c[order]
    # A share that equals the rate but for rounding is within it.
    within = below <= (rate + 1e-12) * c.sum()
    last = within.sum(axis=0) - 1
    return np.asarray(np.take_along_axis(Z, order, axis=0)[last, np.arange(Z.shape[1])])
