"""Normalisers: scores of different detectors on one scale, and several detectors joined."""

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
    """A monotone map per column of a score matrix.

    Fit it on out-of-fold scores of normals: scores of rows that the detectors did
    not see. Nothing is clipped: a cut before a local scaling turns the order
    of far anomalies round.
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
        """Return the normalised scores, shape (q, d); higher stays more normal."""
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
    """Divide the distance to the mean of the normals by their deviation.

    ``z = (s - mean) / sd``. A constant column is divided by its magnitude, at
    least 1, instead.

    Attributes
    ----------
    shift_, scale_ : ndarray of shape (d,)
        Mean and standard deviation of the normals.
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
    """Map a trimmed range of the normals to [0, 1], without clipping.

    ``z = (s - lo) / (hi - lo)`` with lo and hi the percentiles rho and
    100 - rho of the normals, so that most normals are positive. A percentile
    here inverts, linearly between distinct scores, the share below plus half
    the share at a score. A constant column maps to 0.5, and deviations from it
    are divided by its magnitude, at least 1.

    Parameters
    ----------
    rho : float, default=5.0
        Trimmed on either side, in percent, in [0, 50).

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
    """Divide the distance to the median of the normals by their scaled MAD.

    ``z = (s - median) / (1.4826 MAD)``, equal to the z-score in law for
    Gaussian scores, and blind to a minority of spoilt rows. Where more than
    half of the normals tie, the MAD is 0 and the scaled interquartile range
    takes its place, then the standard deviation, then (constant column) the
    magnitude of the column, at least 1.

    Attributes
    ----------
    shift_, scale_ : ndarray of shape (d,)
        Median and scale of the normals.
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
    """Replace a score by the probability that a normal scores lower.

    Uniform on fresh normals (but for ties), and the same for any increasing
    affine change of a detector's scores. Linear between the normal scores;
    beyond them a power tail, F_1 (1 + (v_1 - s) / (2 b))^-2 below the lowest
    normal v_1 with b fitted to the lowest 5 %, keeps far anomalies in order:
    they come near 0 but do not tie (up to 1e150 scales away). A constant column
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
    """Return the normaliser of a name, or the object itself.

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
    """Return the lowest of several detectors' scores, in units of their normals.

    For detectors of a camera, of joints, of a microphone: one that sees nothing
    strange does not talk the others out of an alarm, as a mean would. With mean m
    and deviation d of each detector's held-out normals::

        joined = min over detectors of (score - m) / d

    The threshold of the joined score comes from joined scores of normals that
    no detector has seen, for instance by `ConformalCalibrator`.

    Parameters
    ----------
    scores : sequence of array_like of shape (n,)
        What each detector says of the same n moments, higher = more normal. NaN is
        no score: the others decide, and if there is none it stays NaN.
    normal_scores : sequence of array_like of shape (m,)
        Scores of normals that the detector has not seen, such as its
        `training_scores_`; m may differ from detector to detector. NaN is left out.

    Returns
    -------
    ndarray of shape (n,)
        The joined scores, about 0 for what is usual.

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
