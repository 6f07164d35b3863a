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
- infinite values, sparse matrices, dates, nested values and other objects are
  refused, and so is text in arrays: only a data frame has categories.

Columns are taken by position, whatever their names are. What a column holds,
numbers or categories, is settled in training.
"""

import math
import numbers
from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_array

from ocfuse.exceptions import InvalidInputError, InvalidTypeError

FloatArray: TypeAlias = NDArray[np.float64]

#: Standardised values are kept within this: beyond it blends between rows lose their digits.
FARTHEST = 1e6
#: A column whose spread is below this share of its size is constant up to rounding.
ROUNDING = 1e-13
#: What a column may hold; anything else is told by its own words.
NUMBERS, TEXT, GAPS, DATES = "numbers", "text", "gaps", "dates or durations"
#: Types without a value, by name: pandas may not be there to import them from.
GAP_TYPES = ("NoneType", "NAType", "NaTType")
NUMBER_TYPES = (numbers.Real, Decimal, np.bool_)
DATE_TYPES = (date, time, timedelta, np.datetime64, np.timedelta64)
#: Code of a category that training has not seen.
UNKNOWN = -1


class NumberScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill the gaps of numeric columns and standardise them; NaN is a gap.

    Attributes
    ----------
    centre_ : ndarray of shape (n_features,)
        Mean of the values present in every column.
    scale_ : ndarray of shape (n_features,)
        Their standard deviation, 1 where the column is constant.
    fill_ : ndarray of shape (n_features,)
        Their median.
    """

    def fit(self, X: FloatArray, y: Any = None) -> "NumberScaler":
        """Learn medians, means and standard deviations."""
        # Sorted columns, each contiguous: neither the order of the rows nor the memory
        # layout changes a bit. NaN comes last.
        columns = np.sort(np.ascontiguousarray(X.T), axis=1)
        n_present = (~np.isnan(columns)).sum(axis=1)
        self.centre_, self.scale_, self.fill_ = np.empty((3, len(columns)))
        for n in np.unique(n_present):
            chosen = n_present == n
            present = columns[chosen, :n]
            self.centre_[chosen], self.scale_[chosen] = _centre_and_scale(present)
            self.fill_[chosen] = present[:, (n - 1) // 2] / 2 + present[:, n // 2] / 2
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Fill the gaps and standardise."""
        return self.standardise(X)

    def standardise(self, X: FloatArray) -> FloatArray:
        """Do what `transform` does, without scikit-learn's wrapping of its output."""
        missing = np.isnan(X)
        if missing.any():
            X = np.where(missing, self.fill_, X)
        with np.errstate(over="ignore"):
            Z = np.ascontiguousarray((X - self.centre_) / self.scale_)
        return np.maximum(np.minimum(Z, FARTHEST, out=Z), -FARTHEST, out=Z)


class FeatureEncoder(BaseEstimator):  # type: ignore[misc]
    """Turn an array or a data frame into standardised numbers.

    Attributes
    ----------
    transformer_ : NumberScaler or ColumnTransformer
        What was fitted: a ColumnTransformer if there are categories.
    categorical_ : ndarray of shape (n_features_in_,)
        Which columns hold categories.
    complete_ : ndarray of shape (n_features_in_,)
        Which columns had no gaps in training.
    codes_ : list of dict
        For every column the code of each of its categories.
    source_ : ndarray of shape (n_encoded,)
        For every encoded column, the position of the column it comes from.
    """

    def fit(self, X: Any, y: Any = None) -> "FeatureEncoder":
        """Learn the encoding from training rows."""
        X = check_table(X)
        self.names_ = _column_names(X)
        self.n_features_in_ = X.shape[1]
        self._learn_categories(X)
        X = self._to_floats(X)
        missing = np.isnan(X)
        _refuse(
            missing.all(axis=0), self.names_, "have no value at all in training", "Leave them out."
        )
        self.complete_ = ~missing.any(axis=0)
        codes = [
            np.append(np.arange(len(self.codes_[j])), [] if self.complete_[j] else [np.nan])
            for j in np.flatnonzero(self.categorical_)
        ]
        transformer = _column_transformer(self.categorical_, codes) if codes else NumberScaler()
        self.transformer_ = transformer.fit(X)
        widths = [len(known) for known in codes]
        self.source_ = np.append(
            np.flatnonzero(~self.categorical_),
            np.repeat(np.flatnonzero(self.categorical_), widths),
        )
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encode rows with the columns of the training rows.

        Parameters
        ----------
        X : ndarray or data frame
            What `check_table` returned; anything else is passed through it first.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded)
            Numbers, then categories.
        """
        if not _is_float_array(X):
            X = check_table(X)
        names = self._check_columns(X)
        X = self._to_floats(X)
        if not np.isfinite(X).all():
            # Frames are told by `_to_floats`; an array may have come round `check_table`.
            _refuse(np.isinf(X).any(axis=0), names, "hold infinity", "Leave such rows out.")
            _refuse(
                np.isnan(X).any(axis=0) & self.complete_,
                names,
                "have missing values, but were complete in training",
                "Fill the gaps by a rule of your own before scoring, or train on rows with gaps.",
            )
        if isinstance(self.transformer_, NumberScaler):
            return self.transformer_.standardise(X)
        return np.ascontiguousarray(self.transformer_.transform(X))

    def _learn_categories(self, X: Any) -> None:
        """Settle which columns hold categories, and number these in alphabetical order."""
        self.categorical_ = np.zeros(self.n_features_in_, dtype=bool)
        self.codes_: list[dict[str, int]] = [{} for _ in range(self.n_features_in_)]
        if self.names_ is None or _is_plain(X):
            return
        values, kinds = _read(X, self.names_)
        for j, kind in enumerate(kinds):
            declared = str(getattr(_column(X, j), "dtype", "")) == "category"
            if kind == TEXT or declared:
                known = sorted({text for text in map(_text, values[j]) if text is not None})
                self.codes_[j] = {text: code for code, text in enumerate(known)}
                self.categorical_[j] = True

    def _check_columns(self, X: Any) -> list[Any] | None:
        """Refuse columns that cannot be those of the training rows; return their names."""
        names = _column_names(X)
        if names is None and self.categorical_.any():
            raise InvalidTypeError(
                "X must be a data frame, as in training: it has categorical columns. "
                f"Got {type(X).__name__}."
            )
        if X.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"X must have the columns of the training rows. X has {X.shape[1]} features, but "
                f"FeatureEncoder is expecting {self.n_features_in_} features as input."
            )
        # Names that are no text, such as numbers, are not compared by scikit-learn.
        if names and self.names_ and names != self.names_ and set(names) == set(self.names_):
            raise InvalidInputError(
                "Columns must stand in the order of the training rows. "
                f"Got {names}. Expected {self.names_}."
            )
        return names

    def _to_floats(self, X: Any) -> FloatArray:
        """Return numbers and codes of categories, NaN where a value is missing."""
        names = _column_names(X)
        if names is None:
            return X  # type: ignore[no-any-return]
        if _is_plain(X) and not self.categorical_.any():
            floats = X.to_numpy(dtype=np.float64)
        else:
            values, kinds = _read(X, names)
            _refuse(
                np.array([kind == TEXT for kind in kinds]) & ~self.categorical_,
                names,
                "hold text, but were numbers in training",
                "Convert them, or train again.",
            )
            floats = np.column_stack(
                [
                    _codes(column, self.codes_[j]) if self.categorical_[j] else _floats(column)
                    for j, column in enumerate(values)
                ]
            )
        _refuse(np.isinf(floats).any(axis=0), names, "hold infinity", "Leave such rows out.")
        return floats  # type: ignore[no-any-return]


def check_table(X: Any) -> Any:
    """Refuse what is no table of numbers or categories; return arrays as float64.

    A data frame is returned as it is: its columns are checked when encoded.
    """
    if _is_float_array(X) and X.size and np.isfinite(X).all():
        return X
    names = _column_names(X)
    if names is None:
        return check_array(_prepared(X), dtype=np.float64, ensure_all_finite="allow-nan")
    if not names or not len(X):
        raise InvalidInputError(
            "X must have at least one row and one column. Found array with "
            f"{len(X)} sample(s) and {len(names)} feature(s) (shape={tuple(X.shape)}) while a "
            "minimum of 1 is required."
        )
    return X


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return the chosen rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _prepared(X: Any) -> Any:
    """Make the gaps of an array NaN and refuse text and dates; the rest is up to `check_array`."""
    if hasattr(X, "collect_schema"):
        raise InvalidTypeError("X must hold its data. Got a lazy frame. Call its collect().")
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if not isinstance(X, np.ndarray):
        return X
    kind = _kind(X.ravel())
    if kind in (TEXT, DATES) or X.dtype.kind == "S":
        raise InvalidTypeError(
            f"X must hold numbers. Got an array of {kind}. Convert it to numbers; "
            "for categories give a data frame, whose columns may hold text."
        )
    if isinstance(X, np.ma.MaskedArray):
        X = (X.astype(np.float64) if X.dtype.kind in "biuf" else X).filled(np.nan)
    return np.frompyfunc(_number, 1, 1)(X) if X.dtype.kind == "O" else X


def _is_float_array(X: Any) -> bool:
    return type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2


def _column_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any library, or None for anything else."""
    if not hasattr(X, "shape") or not hasattr(X, "columns") or not hasattr(X, "__getitem__"):
        return None
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise InvalidInputError(f"Column names must be unique. Got these twice: {twice}.")
    return names


def _column(X: Any, j: int) -> Any:
    """Return a column by its position: its name may be anything, also a number."""
    return X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]


def _is_plain(X: Any) -> bool:
    """Tell a data frame that keeps nothing but NumPy's numbers: it needs no look at its cells."""
    dtypes = list(getattr(X, "dtypes", ()))
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)


def _read(X: Any, names: list[Any]) -> tuple[list[NDArray[Any]], list[str]]:
    """Return values and kind, NUMBERS or TEXT, of every column; refuse any other kind."""
    values = [_values(_column(X, j)) for j in range(len(names))]
    kinds = [_kind(column) for column in values]
    _refuse(
        np.array([kind not in (NUMBERS, TEXT) for kind in kinds]),
        [f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)],
        "hold neither numbers nor categories",
        "Convert them, dates for instance to seconds since the start, or leave them out.",
        InvalidTypeError,
    )
    return values, kinds


def _values(column: Any) -> NDArray[Any]:
    values = np.asarray(column)
    if values.dtype.kind == "O" and getattr(column.dtype, "kind", "O") in ("i", "u", "f"):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' numbers with NA
    return values


def _kind(values: NDArray[Any]) -> str:
    """Tell in words what a column holds; gaps count as numbers if there is nothing else."""
    if values.ndim != 1:
        return "nested values"
    known = dict.fromkeys("biuf", NUMBERS) | dict.fromkeys("mM", DATES)
    if values.dtype.kind in known:
        return known[values.dtype.kind]
    kinds = {_kind_of(kind) for kind in set(map(type, values))} - {GAPS}
    odd = sorted(kinds - {NUMBERS, TEXT})
    return odd[0] if odd else TEXT if TEXT in kinds else NUMBERS


def _kind_of(kind: type) -> str:
    if kind.__name__ in GAP_TYPES:
        return GAPS
    for types, word in ((str, TEXT), (NUMBER_TYPES, NUMBERS), (DATE_TYPES, DATES)):
        if issubclass(kind, types):
            return word
    return f"{kind.__name__} objects"


def _is_missing(value: Any) -> bool:
    if isinstance(value, numbers.Number):
        return bool(value != value)
    return type(value).__name__ in GAP_TYPES


def _number(value: Any) -> Any:
    """Return a float; what is no number is left to whoever asks for numbers."""
    if _is_missing(value):
        return math.nan
    try:
        return float(value) if isinstance(value, NUMBER_TYPES) else value
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf


def _floats(values: NDArray[Any]) -> FloatArray:
    plain = np.frompyfunc(_number, 1, 1)(values) if values.dtype.kind == "O" else values
    return np.asarray(plain, dtype=np.float64)


def _text(value: Any) -> str | None:
    """Return the text that stands for a category, None for a gap."""
    if _is_missing(value):
        return None
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    return str(value)


def _codes(values: NDArray[Any], codes: dict[str, int]) -> FloatArray:
    texts = map(_text, values)
    return np.array([math.nan if text is None else codes.get(text, UNKNOWN) for text in texts])


def _column_transformer(
    categorical: NDArray[np.bool_], codes: list[NDArray[Any]]
) -> ColumnTransformer:
    encoder = OneHotEncoder(categories=codes, handle_unknown="ignore", sparse_output=False)
    transformer = ColumnTransformer(
        [
            ("numbers", NumberScaler(), np.flatnonzero(~categorical)),
            ("categories", encoder, np.flatnonzero(categorical)),
        ]
    )
    # Arrays, whatever scikit-learn's global setting is.
    return transformer.set_output(transform="default")


def _centre_and_scale(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations along rows, that no square can overflow."""
    peak = np.abs(columns).max(axis=1)
    peak[peak == 0] = 1.0
    unit = columns / peak[:, np.newaxis]
    spread = unit.std(axis=1)
    scale = spread * peak
    return unit.mean(axis=1) * peak, np.where((spread <= ROUNDING) | (scale == 0), 1.0, scale)


def _refuse(
    wrong: NDArray[np.bool_],
    names: Sequence[Any] | None,
    what: str,
    advice: str,
    error: type[InvalidInputError] = InvalidInputError,
) -> None:
    """Raise an error that lists the wrong columns, by name or number."""
    if not wrong.any():
        return
    which = [str(j if names is None else names[j]) for j in np.flatnonzero(wrong).tolist()]
    shown = ", ".join(which[:8]) + (f" and {len(which) - 8} others" if len(which) > 8 else "")
    raise error(f"These columns {what}: {shown}. {advice}")
