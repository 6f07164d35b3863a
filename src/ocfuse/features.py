"""From a table as users have it to standardised numbers.

The policy, in one place:

- numbers (and booleans) are centred and divided by their standard deviation,
  both from the values present; a constant column is only centred, so that a
  later deviation still shows;
- a column of a data frame that holds text, or is declared categorical, holds
  categories. They are compared as text: 1, 1.0 and "1" are one category, True
  and "True" another. Each becomes a column of 0 and 1; a category that was not
  seen in training is all zeros, unlike any normal row;
- a missing value is None, NaN, NA, null or a masked one. A missing number
  becomes the median of its column, a missing category a category of its own,
  **if the column had gaps in training too**. A gap in a column that was
  complete in training is refused: it would pass for normal;
- infinite values, sparse matrices, dates and other objects are refused, and so
  is text in arrays: only a data frame has categories.

Columns are taken by position, whatever their names are; whether a column holds
numbers or categories is settled in training.
"""

import math
import numbers
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_array

from ocfuse.exceptions import InvalidInputError, InvalidTypeError

FloatArray: TypeAlias = NDArray[np.float64]

#: Standardised values are kept within this: beyond it blends between rows lose their digits.
FARTHEST = 1e6
#: A column whose spread is below this share of its size is constant up to rounding.
ROUNDING = 1e-13
#: Values of columns that are sorted together.
VALUES_AT_ONCE = 2**18
#: What a column may hold; anything else is told by its own words.
NUMBERS, TEXT, GAPS, BYTES, DATES = "numbers", "text", "gaps", "bytes", "dates or durations"
#: Types of gaps, by name: pandas may not be there to import them from.
GAP_TYPES = ("NoneType", "NAType", "NaTType")
NUMBER_TYPES = (numbers.Real, Decimal, np.bool_)
DATE_TYPES = (date, time, timedelta, np.datetime64, np.timedelta64)
#: Code of a category that training has not seen.
UNKNOWN = -1


class NumberScaler(BaseEstimator):  # type: ignore[misc]
    """Fill the gaps (NaN) of numeric columns and standardise them.

    Attributes
    ----------
    centre_, scale_, fill_ : ndarray of shape (n_features,)
        Mean, standard deviation (1 if constant) and median of the values present.
    """

    def fit(self, X: FloatArray, y: Any = None) -> "NumberScaler":
        """Learn medians, means and standard deviations."""
        self.centre_, self.scale_, self.fill_ = np.empty((3, X.shape[1]))
        step = max(1, VALUES_AT_ONCE // len(X))
        for begin in range(0, X.shape[1], step):
            self._fit_columns(X, slice(begin, begin + step))
        return self

    def _fit_columns(self, X: FloatArray, some: slice) -> None:
        """Learn from some columns: while they are in the cache it takes half the time."""
        # Sorted and contiguous: neither row order nor memory layout changes a bit. NaN is last.
        columns = np.array(X[:, some].T, order="C")
        columns.sort(axis=1)
        n_present = (~np.isnan(columns)).sum(axis=1)
        centre, scale, fill = self.centre_[some], self.scale_[some], self.fill_[some]
        for n in np.unique(n_present):
            chosen = n_present == n
            present = columns[chosen, :n]
            peak = np.abs(present).max(axis=1)
            peak[peak == 0] = 1.0
            unit = present / peak[:, np.newaxis]  # its squares cannot overflow
            spread = unit.std(axis=1)
            constant = (spread <= ROUNDING) | (spread * peak == 0)
            centre[chosen] = unit.mean(axis=1) * peak
            scale[chosen] = np.where(constant, 1.0, spread * peak)
            fill[chosen] = present[:, (n - 1) // 2] / 2 + present[:, n // 2] / 2

    def transform(self, X: FloatArray) -> FloatArray:
        """Fill the gaps and standardise."""
        missing = np.isnan(X)
        if missing.any():
            X = np.where(missing, self.fill_, X)
        Z = np.empty(X.shape)
        with np.errstate(over="ignore"):
            np.subtract(X, self.centre_, out=Z)
            np.divide(Z, self.scale_, out=Z)
        return np.maximum(np.minimum(Z, FARTHEST, out=Z), -FARTHEST, out=Z)


class FeatureEncoder(BaseEstimator):  # type: ignore[misc]
    """Turn an array or a data frame into standardised numbers.

    Attributes
    ----------
    transformer_ : NumberScaler or ColumnTransformer
        What was fitted: a ColumnTransformer if there are categories.
    categorical_, complete_ : ndarray of shape (n_features,)
        Which columns hold categories; which had no gaps in training.
    codes_ : list of dict
        Code of every category, for each categorical column.
    source_ : ndarray of shape (n_encoded,)
        For every encoded column, the position of the column it comes from.
    """

    def fit(self, X: Any, y: Any = None) -> "FeatureEncoder":
        """Learn the encoding from training rows."""
        X = check_table(X)
        names = _column_names(X)
        self._learn_categories(X, names)
        X = self._to_floats(X, names)
        missing = np.isnan(X)
        _refuse(missing.all(axis=0), names, "have no value at all: {}. Leave them out.")
        self.complete_ = ~missing.any(axis=0)
        others, positions = np.flatnonzero(~self.categorical_), np.flatnonzero(self.categorical_)
        known = [
            np.append(np.arange(len(codes)), [] if self.complete_[j] else [np.nan])
            for j, codes in zip(positions, self.codes_, strict=True)
        ]
        encoder = OneHotEncoder(categories=known, handle_unknown="ignore", sparse_output=False)
        steps = [("numbers", NumberScaler(), others), ("categories", encoder, positions)]
        transformer = ColumnTransformer(steps) if known else NumberScaler()
        with config_context(transform_output="default"):
            self.transformer_ = transformer.fit(X)
        self.source_ = np.append(others, np.repeat(positions, [len(codes) for codes in known]))
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encode what `check_table` returned (anything else is passed through it first)."""
        if not _is_float_array(X):
            X = check_table(X)
        names = _column_names(X)
        self._check_shape(X, names)
        X = self._to_floats(X, names)
        missing = np.isnan(X)
        if missing.any():
            _refuse(
                missing.any(axis=0) & self.complete_,
                names,
                "have missing values, but were complete in training: {}. Fill the gaps by a rule "
                "of your own before scoring, or train on rows with gaps.",
            )
        if isinstance(self.transformer_, NumberScaler):
            return self.transformer_.transform(X)
        with config_context(transform_output="default"):
            return np.ascontiguousarray(self.transformer_.transform(X))

    def _learn_categories(self, X: Any, names: list[Any] | None) -> None:
        """Settle which columns hold categories, and number these in alphabetical order."""
        self.categorical_ = np.zeros(X.shape[1], dtype=bool)
        self.codes_: list[dict[str, int]] = []
        columns = [] if names is None else zip(_columns(X), X.dtypes, strict=True)
        for j, (values, dtype) in enumerate(columns):
            if _kind(values) == TEXT or str(dtype) == "category":
                known = {text for text in map(_text, values) if text is not None}
                self.codes_.append({text: code for code, text in enumerate(sorted(known))})
                self.categorical_[j] = True

    def _check_shape(self, X: Any, names: list[Any] | None) -> None:
        if names is None and self.categorical_.any():
            raise InvalidTypeError(
                "X must be a data frame, as in training: it has categorical columns. "
                f"Got {type(X).__name__}."
            )
        n, trained = X.shape[1], len(self.categorical_)
        if n != trained:
            raise InvalidInputError(f"X has {n} features. Expected {trained}, as in training.")

    def _to_floats(self, X: Any, names: list[Any] | None) -> FloatArray:
        """Return numbers and codes of categories, NaN where a value is missing."""
        if names is not None:
            columns = _columns(X)
            self._check_kinds([_kind(values) for values in columns], names)
            codes = iter(self.codes_)
            for j, cells in enumerate(columns):
                columns[j] = _codes(cells, next(codes)) if self.categorical_[j] else _numbers(cells)
            X = np.array(columns, dtype=np.float64).T
        if not np.isfinite(X).all():
            _refuse(np.isinf(X).any(axis=0), names, "hold infinity: {}. Leave such rows out.")
        return X  # type: ignore[no-any-return]

    def _check_kinds(self, kinds: list[str], names: list[Any]) -> None:
        _refuse(
            np.array([kind not in (NUMBERS, TEXT) for kind in kinds]),
            [f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)],
            "hold neither numbers nor categories: {}. Leave them out, or convert them: "
            "dates for instance to seconds since the start.",
            InvalidTypeError,
        )
        text = np.array([kind == TEXT for kind in kinds]) & ~self.categorical_
        _refuse(text, names, "hold text, but were numbers in training: {}. Convert them.")


def check_table(X: Any) -> Any:
    """Refuse what is no table of numbers or categories; return arrays as float64.

    A data frame is returned as it is: its columns are checked when encoded.
    """
    if _is_float_array(X) and X.size and np.isfinite(X).all():
        return X
    names = _column_names(X)
    if names is None:
        return _checked(_prepared(X))
    if not names or not len(X):
        raise InvalidInputError(
            f"X must have at least one row and one column. Got a data frame of shape {X.shape}."
        )
    return X


def _checked(X: Any) -> FloatArray:
    """Return an array of numbers; say what else was given."""
    if isinstance(X, np.ndarray) and np.iscomplexobj(X):
        raise InvalidTypeError(
            "Complex data not supported. Give real and imaginary parts, or size and angle, as "
            "columns of their own."
        )
    try:
        with np.errstate(invalid="ignore"):  # it sums up: inf - inf
            checked: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    except (TypeError, ValueError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
        raise kind(f"X must be a table of finite numbers. {error}") from error
    return checked


def take_rows(X: Any, rows: NDArray[np.intp] | slice) -> Any:
    """Return the chosen rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _prepared(X: Any) -> Any:
    """Make the gaps of an array NaN and refuse text and dates; the rest is up to `check_array`."""
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    if not isinstance(X, np.ndarray):
        return X
    kind = _kind(X.ravel())
    if kind in (TEXT, BYTES, DATES):
        raise InvalidTypeError(
            f"X must hold numbers. Got an array of {kind}. Convert it to numbers; "
            "for categories give a data frame, whose columns may hold text."
        )
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float64)), np.nan)
    return _numbers(X)


def _is_float_array(X: Any) -> bool:
    return type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2


def _column_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any library, or None for anything else."""
    if not hasattr(X, "shape") or not hasattr(X, "columns"):
        return None
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise InvalidInputError(f"Column names must be unique. Got these twice: {twice}.")
    return names


def _columns(X: Any) -> list[NDArray[Any]]:
    """Return the values of the columns, by position: names may be anything, also numbers."""
    dtypes = set(X.dtypes)
    if len(dtypes) == 1 and isinstance(dtypes.pop(), np.dtype):
        return list(X.to_numpy().T)  # pandas takes its time with many columns one by one
    columns = [column for _, column in X.items()] if hasattr(X, "items") else X.iter_columns()
    return [np.asarray(column) for column in columns]


def _kind(values: NDArray[Any]) -> str:
    """Tell in words what a column holds; gaps count as numbers if there is nothing else."""
    if values.ndim != 1:
        return "nested values"
    types = set(map(type, values)) if values.dtype.kind == "O" else {values.dtype.type}
    kinds = {_kind_of(kind) for kind in types}
    odd = sorted(kinds - {GAPS, NUMBERS, TEXT})
    return odd[0] if odd else TEXT if TEXT in kinds else NUMBERS


def _kind_of(kind: type) -> str:
    # The order counts: pandas' NaT is a date to Python, and NumPy's durations are numbers.
    if kind.__name__ in GAP_TYPES:
        return GAPS
    for types, word in ((str, TEXT), (bytes, BYTES), (DATE_TYPES, DATES), (NUMBER_TYPES, NUMBERS)):
        if issubclass(kind, types):
            return word
    return f"{kind.__name__} objects"


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, numbers.Number) and value != value
    return bool(is_nan) or type(value).__name__ in GAP_TYPES


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    return np.frompyfunc(_number, 1, 1)(values) if values.dtype.kind == "O" else values


def _number(value: Any) -> Any:
    """Return a float; what is no number is left to whoever asks for numbers."""
    if _is_missing(value):
        return math.nan
    try:
        return float(value) if isinstance(value, NUMBER_TYPES) else value
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf


def _text(value: Any) -> str | None:
    """Return the text that stands for a category, None for a gap."""
    if isinstance(value, str):
        return str(value)
    if _is_missing(value):
        return None
    value = float(value) if isinstance(value, Decimal) else value
    whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value) if whole else value)


def _codes(values: NDArray[Any], codes: dict[str, int]) -> FloatArray:
    texts = map(_text, values)
    return np.array([math.nan if text is None else codes.get(text, UNKNOWN) for text in texts])


def _refuse(wrong: Any, names: Any, what: str, error: Any = InvalidInputError) -> None:
    """Raise an error that lists the wrong columns, by name or number."""
    if not wrong.any():
        return
    which = [str(j if names is None else names[j]) for j in np.flatnonzero(wrong).tolist()]
    shown = ", ".join(which[:8]) + (f" and {len(which) - 8} others" if len(which) > 8 else "")
    raise error("These columns " + what.format(shown))
