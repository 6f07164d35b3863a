"""Probabilities from fused scores, with and without labels."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.scores.distribution import SmoothTail, WeightedSample
from ocfuse.system.packages import slow
from ocfuse.validation import label_vector, rate_in_open_interval, require_rows, score_vector


class TailCalibrator(BaseEstimator):  # type: ignore[misc]
    """Tail probability of a score, learned from normal rows alone.

    The column of +1 is the probability F(s) that a fresh normal row scores lower. It is smooth and
    increases with the score (see `TailProbability`). It is **not the probability that the row is
    normal**, which cannot be learned without anomalies. It is uniform on normal rows: half of them
    get less than 0.5, and 5 % less than 0.05.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Order of the columns: -1, +1.
    tail_ : SmoothTail
        The distribution function F of normal scores.

    Examples
    --------
    >>> from ocfuse.scores import TailCalibrator
    >>> TailCalibrator().fit([1.0, 2.0, 3.0, 4.0]).predict_proba([2.5])
    array([[0.5, 0.5]])
    """

    classes_: NDArray[np.int64]
    tail_: SmoothTail

    def fit(self, scores: ArrayLike, y: ArrayLike | None = None) -> "TailCalibrator":
        """Learn from held-out normal scores, shape (n,); of labelled rows only those with +1."""
        normals = require_rows(score_vector(scores), "scores")
        if y is not None:
            normals = normals[label_vector(y, len(normals)) > 0]
        self.classes_ = np.array([-1, 1])
        self.tail_ = SmoothTail(WeightedSample.of(normals, np.ones(len(normals))))
        return self

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return 1 - F and F, shape (q, 2)."""
        check_is_fitted(self)
        return _two_columns(self.tail_.probability(score_vector(scores)))


class LabelCalibrator(BaseEstimator):  # type: ignore[misc]
    """Probability that a row is normal, learned from labelled scores.

    Platt: P(+1 | s) = 1 / (1 + exp(-(a s + b))) with a >= 0, fitted with maximum likelihood.
    Isotonic: the best increasing function, linear between its corners and constant outside the
    training scores. Both use Platt's smoothed targets, (n+ + 1) / (n+ + 2) for normal rows and 1 /
    (n- + 2) for anomalies. So probabilities of separable or small classes are not 0 or 1.

    Parameters
    ----------
    method : {"auto", "platt", "isotonic"}, default="auto"
        "auto" is "isotonic" if both classes have at least 50 rows, else "platt".
    prior : float or None, default=None
        Share of anomalies among the rows to score, in (0, 1). None takes the share among the
        labelled rows, which is right only if they were sampled like the rows to score.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Order of the columns: -1, +1.
    method_ : str
        "platt" or "isotonic".
    slope_, intercept_ : float
        The parameters a and b, only for "platt". The slope is 0 if anomalies score higher.
    corners_, corner_probabilities_ : ndarray of shape (m,)
        Corners of the increasing function, only for "isotonic".
    log_odds_shift_ : float
        Number added to the log odds of +1 because of `prior`.

    Examples
    --------
    >>> from ocfuse.scores import LabelCalibrator
    >>> calibrator = LabelCalibrator().fit([0.0, 1.0, 2.0, 3.0], [-1, -1, 1, 1])
    >>> calibrator.predict_proba([1.5]).round(6)
    array([[0.5, 0.5]])
    """

    classes_: NDArray[np.int64]
    method_: str
    log_odds_shift_: float

    def __init__(self, method: str = "auto", prior: float | None = None) -> None:
        self.method = method
        self.prior = prior

    def fit(self, scores: ArrayLike, y: ArrayLike | None = None) -> "LabelCalibrator":
        """Learn from held-out scores, shape (n,), and their labels +1 and -1."""
        checked = score_vector(scores)
        if y is None:
            raise InvalidInputError(
                "y must be given. Got y=None. Use TailCalibrator when only normals are known."
            )
        labels = label_vector(y, len(checked))
        n_normal, n_anomaly = int(np.sum(labels > 0)), int(np.sum(labels < 0))
        self.log_odds_shift_ = 0.0
        if self.prior is not None:
            prior = rate_in_open_interval(self.prior, "prior")
            self.log_odds_shift_ = float(logit(n_anomaly / len(labels)) - logit(prior))
        if self.method not in ("platt", "isotonic", "auto"):
            raise InvalidInputError(
                f"method must be one of 'platt', 'isotonic', 'auto'. Got method={self.method!r}."
            )
        self.method_ = self.method
        if self.method_ == "auto":
            # Measured on four kinds of scores: from 50 rows of the rarer class on isotonic loses at
            # most 0.015 of log loss where Platt's form is right, and gains up to 0.08 where not.
            self.method_ = "isotonic" if min(n_normal, n_anomaly) >= 50 else "platt"
        target = np.where(labels > 0, (n_normal + 1.0) / (n_normal + 2.0), 1.0 / (n_anomaly + 2.0))
        if self.method_ == "platt":
            self.slope_, self.intercept_ = _platt(checked, target)
        else:
            isotonic = slow("sklearn.isotonic").IsotonicRegression(out_of_bounds="clip")
            isotonic.fit(checked, target)
            self.corners_ = isotonic.X_thresholds_
            self.corner_probabilities_ = isotonic.y_thresholds_
        self.classes_ = np.array([-1, 1])
        return self

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return P(-1) and P(+1), shape (q, 2)."""
        check_is_fitted(self)
        checked = score_vector(scores)
        if self.method_ == "platt":
            # odds that overflow are certainty all the same
            with np.errstate(over="ignore"):
                log_odds = self.slope_ * checked + self.intercept_
        else:
            log_odds = logit(np.interp(checked, self.corners_, self.corner_probabilities_))
        return _two_columns(expit(log_odds + self.log_odds_shift_))


def _platt(scores: FloatArray, target: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of the logistic curve nearest to soft targets."""
    centre, sd = WeightedSample.of(scores, np.ones(len(scores))).mean_and_sd()
    if sd == 0.0:
        return 0.0, float(logit(target.mean()))
    unit = ((scores - centre) / sd)[:, np.newaxis]
    # a soft target is a row of either class, weighted; no penalty to speak of
    model = slow("sklearn.linear_model").LogisticRegression(
        C=1e12, solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    signs = np.repeat([1, -1], len(scores))
    with warnings.catch_warnings():
        # where the slope is zero its line search may give up for another solver, which ends well
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.vstack([unit, unit]), signs, sample_weight=np.r_[target, 1.0 - target])
    slope = float(model.coef_[0, 0]) / sd
    if slope <= 0.0:
        return 0.0, float(logit(target.mean()))
    return slope, float(model.intercept_[0]) - slope * centre


def _two_columns(normal: FloatArray) -> FloatArray:
    return np.column_stack([1.0 - normal, normal])
