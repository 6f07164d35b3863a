"""Checks of arguments: score matrices, labels, contexts, thresholds and rates."""

import warnings
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray, Int64Array
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, LabelsWarning, not_one_of
from ocfuse.system.packages import slow

NORMAL, UNKNOWN, ANOMALY = 1, 0, -1


class GroupsLike(Protocol):
    """Groups of rows, such as `ocfuse.groups.Groups`."""

    @property
    def label(self) -> NDArray[np.int64]:
        """Number of the group of each row."""

    def take(self, rows: NDArray[np.intp]) -> "GroupsLike":
        """Return the groups of the chosen rows."""

    def same_group(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which rows are of the group of each chosen one, or too near, shape (q, n)."""


def require_fitted(estimator: Any, attribute: str) -> None:
    """Refuse an estimator without a fitted attribute, as `check_is_fitted` does.

    That asks for more first, which takes a tenth of the time of scoring a row.
    """
    if not hasattr(estimator, attribute):
        slow("sklearn.utils.validation").check_is_fitted(estimator, attribute)


def check_table(values: ArrayLike, name: str, columns: str) -> FloatArray:
    """Return a finite table of real numbers with at least one column."""
    table = _real(values, name)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInputError(
            f"{name} must be a table of shape (n_samples, {columns}). Got shape {table.shape}. "
            f"Use {name}.reshape(-1, 1) for one column and {name}.reshape(1, -1) for one row."
        )
    if not np.isfinite(table).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise InvalidInputError(
            f"{name} must be finite. Got {table[row, column]} in row {row}, column {column}. "
            "Remove or impute such values."
        )
    return table


def check_width(table: FloatArray, width: int, name: str, meaning: str) -> None:
    """Refuse a table with another number of columns than in fit."""
    if table.shape[1] != width:
        raise InvalidInputError(
            f"{name} must have {width} columns, {meaning}. Got {table.shape[1]}."
        )


def check_rows(table: FloatArray, n: int, name: str) -> None:
    """Refuse a table with another number of rows than Z."""
    if len(table) != n:
        raise InvalidInputError(f"{name} must have {n} rows, as Z. Got {len(table)}.")


def check_labels(y: ArrayLike | None, n: int) -> FloatArray:
    """Return labels +1 and -1; None means that every row is normal."""
    if y is None:
        return np.ones(n)
    labels = _real(y, "y")
    if labels.shape != (n,):
        raise InvalidInputError(f"y must have shape ({n},), as Z has rows. Got {labels.shape}.")
    wrong = np.abs(labels) != 1.0
    if wrong.any():
        raise InvalidInputError(
            f"y must hold +1 (normal) and -1 (anomaly) only. Got {labels[wrong][0]:g}. "
            "Labels 0/1 with 1 = anomaly become y = 1 - 2 * labels."
        )
    return labels


def check_context(context: ArrayLike, n: int) -> FloatArray:
    """Return the context as a table of n rows."""
    values = np.asarray(context)
    table = check_table(values[:, np.newaxis] if values.ndim == 1 else values, "context", "k")
    if len(table) != n:
        raise InvalidInputError(f"context must have {n} rows, as X. Got {len(table)}.")
    return table


def require_context(given: int, expected: int) -> None:
    """Refuse another number of context columns than in fit."""
    if given != expected:
        advice = "Pass context= as in fit." if expected else "Leave it out, or fit with context=."
        raise InvalidInputError(
            f"context must have {expected} columns, as in fit. Got {given}. {advice}"
        )


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return the weights divided by their largest, as only their ratios count."""
    if sample_weight is None:
        return np.ones(n)
    weight = _real(sample_weight, "sample_weight")
    if weight.shape != (n,):
        raise InvalidInputError(
            f"sample_weight must have shape ({n},), as Z has rows. Got {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise InvalidInputError(
            "sample_weight must be finite and not negative. "
            f"Got {weight[~(np.isfinite(weight) & (weight >= 0))][0]}. "
            "Use 0 to leave a row out, and y = -1 for an anomaly."
        )
    if n and not weight.any():
        raise InvalidInputError(
            "sample_weight must not be zero everywhere. Use None for no weights."
        )
    return weight / weight.max() if n else weight


def check_number(
    value: Any, name: str, low: float, high: float, advice: str, *, open_low: bool = False
) -> float:
    """Return a number of the interval, with or without its lower end."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_number else np.nan
    if not (low <= number <= high) or (open_low and number == low):
        bracket = "(" if open_low else "["
        raise InvalidInputError(
            f"{name} must be a number in {bracket}{low:g}, {high:g}]. "
            f"Got {name}={value!r}. {advice}"
        )
    return number


def check_count(value: Any, name: str, advice: str) -> int:
    """Return a positive integer."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < 1:
        raise InvalidInputError(
            f"{name} must be a positive integer or None. Got {name}={value!r}. {advice}"
        )
    return int(value)


def check_whole(value: Any, name: str) -> None:
    """Refuse what is not 0 or a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidInputError(f"{name} must be 0 or a positive integer. Got {value!r}.")


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the names that are known."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(not_one_of(name, value, choices))
    return value


def _real(values: ArrayLike, name: str) -> FloatArray:
    if hasattr(values, "toarray"):
        raise InvalidTypeError(f"{name} must be dense. Got a sparse matrix. Use {name}.toarray().")
    array = _to_float(values, name, copy=False)
    return np.ascontiguousarray(array).reshape(array.shape)


def _to_float(values: ArrayLike, name: str, *, copy: bool) -> FloatArray:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cSUVmM":
            raise InvalidTypeError(f"{name} must hold real numbers. Got dtype {array.dtype}.")
        return array.astype(np.float64, copy=copy)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidTypeError(f"{name} must hold real numbers. {error}.") from None


def check_training_labels(y: Any, n: int) -> Int64Array:
    """Return one of +1, 0, -1 per row; without labels every row is unknown.

    A boolean y answers "is it normal?": True is +1 and False is -1. Every other
    coding is refused, because 0 / 1 means opposite things in other libraries.
    """
    labels = _label_array(y, n)
    wrong = _what_is_wrong(labels)
    if wrong:
        raise InvalidInputError(wrong)
    if labels.dtype.kind == "b":
        return np.where(labels, NORMAL, ANOMALY)
    return np.where(np.isnan(labels), UNKNOWN, labels).astype(np.int64)


def labels_to_learn_from(y: Any, n: int) -> Int64Array:
    """Return what `check_training_labels` does, or warn that y holds classes and leave it out.

    scikit-learn and pipelines hand `fit` whatever y they have. Numbers of which none is -1, and
    none has more than half of the rows, do not tell normal from anomaly: all rows then count as
    unknown. A value of more than half of the rows may stand for normal, and the others for
    anomalies in another coding, which would be taken for normal: refused. So are booleans that are
    mostly False.
    """
    labels = _label_array(y, n)
    wrong = _what_is_wrong(labels)
    require_mostly_normal(y)
    if not wrong or not _are_classes(labels):
        return check_training_labels(y, n)
    largest = "Scorers of scikit-learn take the larger of two labels for the normal one."
    first = ""
    if set(np.unique(labels[~np.isnan(labels)])) == {0, 1}:
        first = (
            "If 1 means anomaly, scores of scikit-learn such as roc_auc are now upside down "
            "(0.01 for 0.99): convert y before cross-validation, as_labels(y, anomaly=1). "
        )
    warnings.warn(
        f"{first}y was not learned from, and all rows count as unknown. {wrong} {largest}",
        LabelsWarning,
        stacklevel=4,
    )
    return np.full(n, UNKNOWN, dtype=np.int64)


def _label_array(y: Any, n: int) -> NDArray[Any]:
    """Return labels as booleans or floats if they are such, one per row."""
    if y is None:
        return np.zeros(n)
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"y must have one label per row of X, shape ({n},). Got shape {labels.shape}."
        )
    return _from_objects(labels) if labels.dtype.kind == "O" else labels


def require_mostly_normal(y: Any) -> None:
    """Refuse to learn from booleans of which fewer than half are True, which means normal.

    They most likely answer "is it an anomaly?". Labels that judge may hold any share of normals.
    """
    labels = np.asarray(y)
    if labels.dtype.kind not in "bO":
        return
    # gaps are None, NaN or pandas' NA
    known = [value for value in labels.ravel() if isinstance(value, bool | np.bool_)]
    n_true, n = sum(map(bool, known)), len(known)
    if 2 * n_true < n:
        raise InvalidInputError(
            f"{n_true} of {n} labels in y are True, which means normal, and {n - n_true} are "
            "False, which means anomaly. If True means anomaly, pass ~y, or as_labels(y, "
            "anomaly=True) of ocfuse.metrics. If it does mean normal, pass as_labels(y, "
            "anomaly=False)."
        )


def _what_is_wrong(labels: NDArray[Any]) -> str:
    """Say what labels should hold, if they hold anything else."""
    if labels.dtype.kind == "b":
        return ""
    allowed = (
        "y must hold +1 (normal), -1 (anomaly) and 0 or NaN (unknown), or be boolean with "
        "True = normal."
    )
    is_number = labels.dtype.kind in "iuf"
    known = labels[~np.isnan(labels)] if is_number else labels
    if not is_number or not np.isin(known, (NORMAL, UNKNOWN, ANOMALY)).all():
        normal = "the_normal_value" if is_number else "'the normal class'"
        return f"{allowed} Got {_shown(labels)}. Use np.where(y == {normal}, 1, -1)."
    if set(np.unique(known)) == {0, 1}:
        return (
            f"{allowed} Got 0 and 1 only, which other libraries read as 1 = anomaly. "
            "For 1 = anomaly use 1 - 2 * y, for 0 = anomaly use y == 1, and if 0 means "
            "unknown write NaN instead."
        )
    return ""


def _are_classes(labels: NDArray[Any]) -> bool:
    """Return whether labels are numbers, none of them -1 and none that of over half the rows."""
    if labels.dtype.kind not in "iuf":
        return False
    counts = np.unique(labels, return_counts=True)[1]
    return not np.any(labels == ANOMALY) and 2 * counts.max() <= len(labels)


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Return numbers or booleans with gaps as floats, and anything else as it is."""
    # pandas' NA cannot be compared
    plain = [None if type(value).__name__ == "NAType" else value for value in labels]
    values = [np.nan if value is None or value != value else value for value in plain]
    known = [value for value in values if value == value]
    if known and all(isinstance(value, bool | np.bool_) for value in known):
        return np.array([v if v != v else (NORMAL if v else ANOMALY) for v in values], dtype=float)
    if all(isinstance(value, Real) for value in known):
        return np.array(values, dtype=np.float64)
    return labels


def _shown(labels: NDArray[Any]) -> str:
    try:
        values = np.unique(labels)
    except TypeError:  # values of several types have no order
        return f"dtype {labels.dtype}"
    shown = ", ".join(
        repr(value.item() if hasattr(value, "item") else value) for value in values[:5]
    )
    return shown + (", ..." if len(values) > 5 else "")


def score_matrix(S: ArrayLike, n_columns: int | None = None) -> FloatArray:
    """Return finite scores of shape (n_samples, n_detectors)."""
    scores = _to_float(S, "S", copy=True)
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise InvalidInputError(
            "S must be a table of scores of shape (n_samples, n_detectors). "
            f"Got shape {scores.shape}. Reshape one detector's scores with S.reshape(-1, 1)."
        )
    if n_columns is not None and scores.shape[1] != n_columns:
        raise InvalidInputError(
            f"S must have {n_columns} columns, as in fit. Got {scores.shape[1]} columns."
        )
    require_finite(scores, "S")
    return scores


def score_vector(scores: ArrayLike, name: str = "scores") -> FloatArray:
    """Return finite scores of shape (n_samples,)."""
    vector = _to_float(scores, name, copy=True)
    if vector.ndim != 1:
        raise InvalidInputError(
            f"{name} must have shape (n_samples,), one fused score per row. "
            f"Got shape {vector.shape}."
        )
    require_finite(vector, name)
    return vector


def require_rows(scores: FloatArray, name: str) -> FloatArray:
    """Return the scores unless there is none to learn from."""
    if len(scores) == 0:
        raise InvalidInputError(f"{name} must hold at least one row. Got shape {scores.shape}.")
    return scores


def label_vector(y: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return labels +1 (normal) and -1 (anomaly), both present."""
    labels = _to_float(y, "y", copy=True)
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
    weights = _to_float(sample_weight, "sample_weight", copy=True)
    if weights.shape != (n,):
        raise InvalidInputError(
            f"sample_weight must have shape ({n},), one weight per row of S. "
            f"Got shape {weights.shape}."
        )
    require_finite(weights, "sample_weight")
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


def require_finite(
    array: FloatArray,
    name: str,
    advice: str = "Leave out the detector or the rows that gave them.",
) -> None:
    """Refuse an array with NaN or infinities, naming the first and how many there are."""
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InvalidInputError(
            f"{name} must be finite. Got {array[where]} at position {where}, "
            f"and {int((~finite).sum())} such values in all. {advice}"
        )
