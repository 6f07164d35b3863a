"""Normalisers, which bring scores of different detectors to one scale; joined scores."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of
from ocfuse.scores.distribution import SmoothTail, WeightedSample
from ocfuse.validation import (
    percent_below_half,
    require_fitted,
    require_rows,
    score_matrix,
    score_vector,
    weight_vector,
)

#: Standard deviation of a Gaussian in units of its median absolute deviation.
SD_PER_MAD = 1.482602218505602


class Normaliser(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class: a monotone map for each column of a score matrix.

    Fit it to out-of-fold scores of normal rows, that is, of rows that the detectors have not seen.
    Scores are not clipped, as clipping before a local scaling may reverse the order of far
    anomalies.
    """

    n_features_in_: int

    def fit(self, S: ArrayLike, sample_weight: ArrayLike | None = None) -> "Normaliser":
        """Learn one map per column from normal scores of shape (n, d)."""
        scores = require_rows(score_matrix(S), "S")
        weights = weight_vector(sample_weight, len(scores))
        self._fit([WeightedSample.of(column, weights) for column in scores.T])
        self.n_features_in_ = scores.shape[1]
        return self

    def transform(self, S: ArrayLike) -> FloatArray:
        """Return the normalised scores, shape (q, d); higher is still more normal."""
        require_fitted(self, "n_features_in_")
        return self._transform(score_matrix(S, self.n_features_in_))

    @abstractmethod
    def _fit(self, columns: list[WeightedSample]) -> None:
        """Set the fitted attributes from the normals, column by column."""

    @abstractmethod
    def _transform(self, S: FloatArray) -> FloatArray:
        """Map checked scores."""


class _Affine(Normaliser):
    """A shift and a positive scale per column: z = (s - shift) / scale."""

    shift_: FloatArray
    scale_: FloatArray

    def _fit(self, columns: list[WeightedSample]) -> None:
        shift, scale = zip(*(self._shift_and_scale(column) for column in columns), strict=True)
        self.shift_, self.scale_ = np.array(shift), np.array(scale)

    def _transform(self, S: FloatArray) -> FloatArray:
        return np.asarray((S - self.shift_) / self.scale_)

    @abstractmethod
    def _shift_and_scale(self, column: WeightedSample) -> tuple[float, float]:
        """Return the shift and the positive scale of one column."""


class ZScore(_Affine):
    """Subtract the mean of normal scores, and divide by their standard deviation.

    ``z = (s - mean) / sd``. A constant column is divided by its magnitude instead, at least by 1.

    Attributes
    ----------
    shift_, scale_ : ndarray of shape (d,)
        Mean and standard deviation of normal scores.
    n_features_in_ : int
        Number of columns d.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.scores import ZScore
    >>> ZScore().fit([[1.0], [3.0]]).transform([[2.0], [-8.0]])
    array([[  0.],
           [-10.]])
    """

    def _shift_and_scale(self, column: WeightedSample) -> tuple[float, float]:
        mean, sd = column.mean_and_sd()
        return mean, sd or column.size


class MinMax(_Affine):
    """Map a trimmed range of normal scores to [0, 1], without clipping.

    ``z = (s - lo) / (hi - lo)``, with lo and hi the percentiles rho and 100 - rho of normal
    scores, so that most normal scores map to positive numbers. The percentile rank of a score is
    the share below it plus half the share equal to it, interpolated linearly between distinct
    scores. A constant column maps to 0.5; deviations from it are divided by its magnitude, at
    least by 1.

    Parameters
    ----------
    rho : float, default=5.0
        Percentage that is trimmed on either side, in [0, 50).

    Attributes
    ----------
    shift_, scale_ : ndarray of shape (d,)
        lo and hi - lo.
    n_features_in_ : int
        Number of columns d.

    Examples
    --------
    >>> from ocfuse.scores import MinMax
    >>> MinMax(rho=0).fit([[1.0], [2.0], [3.0]]).transform([[2.0], [-1.0]])
    array([[ 0.5],
           [-1. ]])
    """

    def __init__(self, rho: float = 5.0) -> None:
        self.rho = rho

    def _shift_and_scale(self, column: WeightedSample) -> tuple[float, float]:
        rho = percent_below_half(self.rho, "rho") / 100.0
        low, high = column.smooth_quantile(rho), column.smooth_quantile(1.0 - rho)
        if column.resolves(high - low):
            return low, high - low
        return low - 0.5 * column.size, column.size


class RobustZ(_Affine):
    """Subtract the median of normal scores, and divide by their scaled MAD.

    ``z = (s - median) / (1.4826 MAD)``, with MAD the median absolute deviation. For Gaussian
    scores it equals the z-score in distribution, and a minority of outliers hardly changes it. If
    more than half of the scores are equal, the MAD is 0, and the scaled interquartile range is
    used; if that is 0, the standard deviation; for a constant column its magnitude, at least 1.

    Attributes
    ----------
    shift_, scale_ : ndarray of shape (d,)
        Median and scale of normal scores.
    n_features_in_ : int
        Number of columns d.

    Examples
    --------
    >>> from ocfuse.scores import RobustZ
    >>> RobustZ().fit([[1.0], [2.0], [3.0], [1e6]]).transform([[2.5]])
    array([[0.]])
    """

    def _shift_and_scale(self, column: WeightedSample) -> tuple[float, float]:
        median = column.median()
        deviation = WeightedSample.of(np.abs(column.values - median), column.weights)
        mad = SD_PER_MAD * deviation.median()
        if column.resolves(mad):
            return median, mad
        iqr = SD_PER_MAD / 2 * (column.step_quantile(0.75) - column.step_quantile(0.25))
        if column.resolves(iqr):
            return median, iqr
        return median, column.mean_and_sd()[1] or column.size


class TailProbability(Normaliser):
    """Replace a score by the probability that a normal row scores lower.

    It is uniform on fresh normal rows (except for ties), and does not change if scores are
    multiplied by a positive number or shifted. It is linear between the normal scores. Below the
    lowest of them, v_1, it is F_1 (1 + (v_1 - s) / (2 b))^-2, with b fitted to the lowest 5 %. So
    far anomalies are near 0, but keep their order (up to 1e150 scales away). A constant column
    maps to 0.5, lower scores to less.

    Attributes
    ----------
    tails_ : list of SmoothTail
        The distribution function of each column.
    n_features_in_ : int
        Number of columns d.

    Examples
    --------
    >>> from ocfuse.scores import TailProbability
    >>> TailProbability().fit([[1.0], [2.0], [3.0], [4.0]]).transform([[1.0], [2.5]])
    array([[0.125],
           [0.5  ]])
    """

    tails_: list[SmoothTail]

    def _fit(self, columns: list[WeightedSample]) -> None:
        self.tails_ = [SmoothTail(column) for column in columns]

    def _transform(self, S: FloatArray) -> FloatArray:
        columns = zip(self.tails_, S.T, strict=True)
        return np.column_stack([tail.probability(scores) for tail, scores in columns])


_BY_NAME: dict[str, type[Normaliser]] = {
    "z-score": ZScore,
    "min-max": MinMax,
    "tail": TailProbability,
    "robust-z": RobustZ,
}


def make_normaliser(normaliser: Any) -> Any:
    """Return the normaliser with a name, or the given object.

    Parameters
    ----------
    normaliser : str or object
        "z-score", "min-max", "tail" or "robust-z", or an object with `fit` and
        `transform`.

    Returns
    -------
    object
        A new normaliser for a name; an object is returned as it is.

    Raises
    ------
    InvalidInputError
        The name is unknown.
    InvalidTypeError
        The object has no `fit` and `transform`, or is a class.

    Examples
    --------
    >>> from ocfuse.scores import make_normaliser
    >>> make_normaliser("min-max")
    MinMax()
    """
    if isinstance(normaliser, str):
        if normaliser not in _BY_NAME:
            other = ", or an object with fit and transform"
            raise InvalidInputError(not_one_of("normaliser", normaliser, _BY_NAME, other))
        return _BY_NAME[normaliser]()
    is_usable = hasattr(normaliser, "fit") and hasattr(normaliser, "transform")
    if isinstance(normaliser, type) or not is_usable:
        names = ", ".join(map(repr, _BY_NAME))
        raise InvalidTypeError(
            f"normaliser must be one of {names}, or an object (not a class) with fit and "
            f"transform. Got {normaliser!r}."
        )
    return normaliser


def join_lowest(scores: Sequence[ArrayLike], normal_scores: Sequence[ArrayLike]) -> FloatArray:
    """Return the lowest score of several detectors, after a z-score for each.

    Use it to join detectors of different sensors, such as a camera and a microphone. Unlike with a
    mean, a detector that sees nothing unusual cannot hide the alarm of another. With mean m and
    standard deviation d of the held-out normal scores of each detector::

        joined = min over detectors of (score - m) / d

    Set the threshold of the joined score with joined scores of normal rows that no detector has
    seen, for instance with `ConformalCalibrator`.

    Parameters
    ----------
    scores : sequence of array_like of shape (n,)
        Scores of each detector for the same n moments; higher is more normal. NaN means no score:
        the others decide; if all are NaN, so is the result.
    normal_scores : sequence of array_like of shape (m,)
        For each detector, scores of normal rows that it has not seen, such as its
        `training_scores_`. Their number m may differ. NaN is left out.

    Returns
    -------
    ndarray of shape (n,)
        The joined scores; about 0 or a little lower for normal rows.

    Examples
    --------
    >>> from ocfuse.scores import join_lowest
    >>> camera, joints = [9.0, 11.0], [90.0, 110.0]
    >>> join_lowest([[10.0, 5.0], [100.0, 110.0]], [camera, joints])
    array([ 0., -5.])
    """
    if len(scores) != len(normal_scores) or not len(scores):
        raise InvalidInputError(
            "scores and normal_scores must have one entry for each detector, and at least one. "
            f"Got {len(scores)} and {len(normal_scores)}."
        )
    units = [
        _in_units(column, normals) for column, normals in zip(scores, normal_scores, strict=True)
    ]
    if len({len(column) for column in units}) > 1:
        raise InvalidInputError(
            "scores must be of the same moments for every detector. Got "
            f"{', '.join(str(len(column)) for column in units)} scores."
        )
    return np.asarray(np.fmin.reduce(units))


def _in_units(scores: ArrayLike, normals: ArrayLike) -> FloatArray:
    column = np.asarray(scores, dtype=np.float64)
    is_missing = np.isnan(column)
    checked = score_vector(np.where(is_missing, 0.0, column))
    known = np.asarray(normals, dtype=np.float64)
    known = score_vector(known[~np.isnan(known)] if known.ndim == 1 else known, "normal_scores")
    require_rows(known, "normal_scores")
    unit = ZScore().fit(known[:, np.newaxis])
    return np.where(is_missing, np.nan, unit.transform(checked[:, np.newaxis])[:, 0])
