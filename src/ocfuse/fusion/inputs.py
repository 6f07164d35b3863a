"""What a fusion is given, checked once at the public door."""

from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, not_one_of

FloatArray = NDArray[np.float64]


class Kinship(Protocol):
    """Groups of rows, such as `ocfuse.detectors.groups.Groups`."""

    @property
    def label(self) -> NDArray[np.int64]:
        """Number of the group of each row."""

    def take(self, rows: NDArray[np.intp]) -> "Kinship":
        """Return the groups of the chosen rows."""

    def kin(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which rows are of the group of each chosen one, or too near, shape (q, n)."""


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


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the names that are known."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(not_one_of(name, value, choices))
    return value


def _real(values: ArrayLike, name: str) -> FloatArray:
    if hasattr(values, "toarray"):
        raise InvalidTypeError(f"{name} must be dense. Got a sparse matrix. Use {name}.toarray().")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cSUVmM":
            raise InvalidTypeError(f"{name} must hold real numbers. Got dtype {array.dtype}.")
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidTypeError(f"{name} must hold real numbers. {error}.") from None
