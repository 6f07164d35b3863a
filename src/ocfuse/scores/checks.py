"""Everything a caller gives to this package is checked here."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError, InvalidTypeError

FloatArray = NDArray[np.float64]


def score_matrix(S: ArrayLike, n_columns: int | None = None) -> FloatArray:
    """Return finite scores of shape (n_samples, n_detectors)."""
    scores = _real(S, "S")
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise InvalidInputError(
            "S must be a table of scores of shape (n_samples, n_detectors). "
            f"Got shape {scores.shape}. Reshape one detector's scores with S.reshape(-1, 1)."
        )
    if n_columns is not None and scores.shape[1] != n_columns:
        raise InvalidInputError(
            f"S must have {n_columns} columns, as in fit. Got {scores.shape[1]} columns."
        )
    _require_finite(scores, "S")
    return scores


def score_vector(scores: ArrayLike, name: str = "scores") -> FloatArray:
    """Return finite scores of shape (n_samples,)."""
    vector = _real(scores, name)
    if vector.ndim != 1:
        raise InvalidInputError(
            f"{name} must have shape (n_samples,), one fused score per row. "
            f"Got shape {vector.shape}."
        )
    _require_finite(vector, name)
    return vector


def require_rows(scores: FloatArray, name: str) -> FloatArray:
    """Return the scores unless there is none to learn from."""
    if len(scores) == 0:
        raise InvalidInputError(f"{name} must hold at least one row. Got shape {scores.shape}.")
    return scores


def label_vector(y: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return labels +1 (normal) and -1 (anomaly), both present."""
    labels = _real(y, "y")
    if labels.shape != (n,):
        raise InvalidInputError(
            f"y must have shape ({n},), one label per score. Got shape {labels.shape}."
        )
    wrong = np.unique(labels[np.abs(labels) != 1.0])
    if len(wrong):
        raise InvalidInputError(
            f"y must hold +1 (normal) and -1 (anomaly) only. Got {wrong[0]:g}. "
            "Labels 0/1 with 1 = anomaly become y = 1 - 2 * labels."
        )
    for label, word in ((1, "normal"), (-1, "anomaly")):
        if not np.any(labels == label):
            raise InvalidInputError(
                f"y must hold both classes. Got no {label:+d} ({word}). "
                "Without labels of both kinds use conformal_threshold or TailCalibrator."
            )
    return labels.astype(np.int64)


def weight_vector(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return weights that are finite, not negative and not all 0."""
    if sample_weight is None:
        return np.ones(n)
    weights = _real(sample_weight, "sample_weight")
    if weights.shape != (n,):
        raise InvalidInputError(
            f"sample_weight must have shape ({n},), one weight per row of S. "
            f"Got shape {weights.shape}."
        )
    _require_finite(weights, "sample_weight")
    if np.any(weights < 0) or not np.any(weights > 0):
        raise InvalidInputError(
            "sample_weight must not be negative, and at least one weight must be positive. "
            f"Got weights from {weights.min():g} to {weights.max():g}."
        )
    return weights


def rate_in_open_interval(rate: Any, name: str) -> float:
    """Return a rate strictly between 0 and 1."""
    number = _number(rate, name)
    if not 0.0 < number < 1.0:
        raise InvalidInputError(
            f"{name} must be in (0, 1). Got {name}={rate!r}. Use {name}=0.05 for 5 %."
        )
    return number


def percent_below_half(rho: Any, name: str) -> float:
    """Return a percentage in [0, 50)."""
    number = _number(rho, name)
    if not 0.0 <= number < 50.0:
        raise InvalidInputError(
            f"{name} is in percent and must be in [0, 50). Got {name}={rho!r}. "
            f"Use {name}=5 to trim 5 % on either side."
        )
    return number


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidTypeError(f"{name} must be a number. Got {name}={value!r}.")
    return float(value)


def _real(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cSUVmM":
            raise InvalidTypeError(f"{name} must hold real numbers. Got dtype {array.dtype}.")
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidTypeError(f"{name} must hold real numbers. {error}.") from None


def _require_finite(array: FloatArray, name: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InvalidInputError(
            f"{name} must be finite. Got {array[where]} at position {where}, "
            f"and {int((~finite).sum())} such values in all. "
            "Leave out the detector or the rows that gave them."
        )
