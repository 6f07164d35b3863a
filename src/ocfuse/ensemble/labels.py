"""What the labels of training rows may be."""

import numbers
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError

NORMAL, UNKNOWN, ANOMALY = 1, 0, -1
LabelArray: TypeAlias = NDArray[np.int64]

ADVICE = (
    "y must hold +1 (normal), -1 (anomaly) and 0 or NaN (unknown), or be boolean with "
    "True = normal. "
)


def check_labels(y: Any, n: int) -> LabelArray:
    """Return one of +1, 0, -1 per row; without labels every row is unknown.

    A boolean y answers "is it normal?": True is +1 and False is -1. Every other
    coding is refused, because 0 / 1 means opposite things in other libraries.
    """
    if y is None:
        return np.zeros(n, dtype=np.int64)
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"y must have one label per row of X, shape ({n},). Got shape {labels.shape}."
        )
    if labels.dtype.kind == "O":
        labels = _from_objects(labels)
    if labels.dtype.kind == "b":
        return np.where(labels, NORMAL, ANOMALY)
    if labels.dtype.kind not in "iuf":
        raise InvalidInputError(f"{ADVICE}Got {_shown(labels)}. {_how_to_convert(labels)}")
    known = labels[~np.isnan(labels)]
    if not np.isin(known, (NORMAL, UNKNOWN, ANOMALY)).all():
        raise InvalidInputError(f"{ADVICE}Got {_shown(labels)}. {_how_to_convert(labels)}")
    if set(np.unique(known)) == {0, 1}:
        raise InvalidInputError(
            f"{ADVICE}Got 0 and 1 only, which other libraries read as 1 = anomaly. "
            "For 1 = anomaly use 1 - 2 * y, for 0 = anomaly use y == 1, and if 0 means "
            "unknown write NaN instead."
        )
    return np.where(np.isnan(labels), UNKNOWN, labels).astype(np.int64)


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Return numbers or booleans with gaps as floats, and anything else as it is."""
    values = [np.nan if value is None or value != value else value for value in _plain(labels)]
    known = [value for value in values if value == value]
    if known and all(isinstance(value, bool | np.bool_) for value in known):
        return np.array([v if v != v else (NORMAL if v else ANOMALY) for v in values], dtype=float)
    if all(isinstance(value, numbers.Real) for value in known):
        return np.array(values, dtype=np.float64)
    return labels


def _plain(labels: NDArray[Any]) -> list[Any]:
    """Return the values with None for pandas' NA, which cannot be compared."""
    return [None if type(value).__name__ == "NAType" else value for value in labels]


def _shown(labels: NDArray[Any]) -> str:
    try:
        values = np.unique(labels)
    except TypeError:  # values of several types have no order
        return f"dtype {labels.dtype}"
    shown = ", ".join(
        repr(value.item() if hasattr(value, "item") else value) for value in values[:5]
    )
    return shown + (", ..." if len(values) > 5 else "")


def _how_to_convert(labels: NDArray[Any]) -> str:
    if labels.dtype.kind in "iuf":
        return "Use np.where(y == the_normal_value, 1, -1)."
    return "Use np.where(y == 'the normal class', 1, -1)."
