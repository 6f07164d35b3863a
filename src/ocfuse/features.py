"""From a table as users have it to standardised numbers.

The policy, in one place:

- numbers (and booleans) are centred and divided by their standard deviation;
  a constant column is only centred, so that a later deviation still shows;
- categories become one column of 0 and 1 each; a category that was not seen in
  training is all zeros, unlike any normal row;
- a missing number becomes the median of its column, a missing category a
  category of its own, **if the column had gaps in training too**. A gap in a
  column that was complete in training is refused: it would pass for normal;
- infinite values, sparse matrices, dates and other objects are refused.
"""

import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_array

from ocfuse.exceptions import InvalidInputError, InvalidTypeError

FloatArray: TypeAlias = NDArray[np.float64]

#: Standardised values are kept within this: further out nothing differs, and squares stay finite.
FARTHEST = 1e8
#: A column whose spread is below this share of its size is constant up to rounding.
ROUNDING = 1e-13


class NumberScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill the gaps of numeric columns and standardise them.

    Attributes
    ----------
    centre_ : ndarray of shape (n_features,)
        Mean of every column.
    scale_ : ndarray of shape (n_features,)
        Standard deviation of every column, 1 where the column is constant.
    fill_ : ndarray of shape (n_features,)
        Median of every column that had gaps in training, NaN for the others.
    """

    def fit(self, X: Any, y: Any = None) -> "NumberScaler":
        """Learn medians, means and standard deviations."""
        names = _column_names(X)
        X = _to_floats(X)
        missing = np.isnan(X)
        _refuse(
            missing.all(axis=0),
            names,
            "have no value at all in training",
            "Leave them out.",
        )
        self.fill_ = np.full(X.shape[1], np.nan)
        for j in np.flatnonzero(missing.any(axis=0)):
            self.fill_[j] = np.median(X[~missing[:, j], j])
        X = np.where(missing, self.fill_, X)
        self.centre_, self.scale_ = _centre_and_scale(X)
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> FloatArray:
        """Fill the gaps and standardise."""
        names = _column_names(X)
        X = _to_floats(X)
        missing = np.isnan(X)
        if missing.any():
            _refuse(
                missing.any(axis=0) & np.isnan(self.fill_),
                names,
                "have missing values, but were complete in training",
                "Fill the gaps by a rule of your own before scoring, or train on rows with gaps.",
            )
            X = np.where(missing, self.fill_, X)
        with np.errstate(over="ignore"):
            Z = (X - self.centre_) / self.scale_
        clipped: FloatArray = np.clip(Z, -FARTHEST, FARTHEST)
        return clipped

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names given: columns keep their place."""
        return input_features


class FeatureEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn an array or a data frame into standardised numbers.

    Attributes
    ----------
    transformer_ : NumberScaler or ColumnTransformer
        What was fitted: a ColumnTransformer if there are categories.
    source_ : ndarray of shape (n_encoded,)
        For every encoded column, the position of the column it comes from.
    """

    def fit(self, X: Any, y: Any = None) -> "FeatureEncoder":
        """Learn the encoding from training rows."""
        self.categorical_ = _categorical_columns(X)
        if self.categorical_.any():
            self.transformer_ = _column_transformer(X, self.categorical_).fit(X)
            self.complete_ = ~_gaps(X, self.categorical_)
            self.source_ = self._sources()
        else:
            self.transformer_ = NumberScaler().fit(X)
            self.source_ = np.arange(self.transformer_.n_features_in_)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encode rows with the columns of the training rows."""
        if not self.categorical_.any():
            return self.transformer_.transform(X)  # type: ignore[no-any-return]
        self._check_kinds(X)
        encoded = self.transformer_.transform(X)
        return np.ascontiguousarray(encoded, dtype=np.float64)

    def _sources(self) -> NDArray[np.intp]:
        """Return which column every encoded column comes from; numbers stand first."""
        encoder = self.transformer_.named_transformers_["categories"]
        widths = [len(categories) for categories in encoder.categories_]
        return np.concatenate(
            [
                np.flatnonzero(~self.categorical_),
                np.repeat(np.flatnonzero(self.categorical_), widths),
            ]
        )

    def _check_kinds(self, X: Any) -> None:
        names = _column_names(X)
        if names is None:
            raise InvalidTypeError(
                "X must be a data frame, as in training: it has categorical columns. "
                f"Got {type(X).__name__}."
            )
        _refuse(
            _categorical_columns(X) & ~self.categorical_,
            names,
            "hold text, but were numbers in training",
            "Convert them, or train again.",
        )
        _refuse(
            _gaps(X, self.categorical_) & self.complete_,
            names,
            "have missing values, but were complete in training",
            "Fill the gaps by a rule of your own before scoring, or train on rows with gaps.",
        )


def check_table(X: Any) -> Any:
    """Refuse what is no table of numbers or categories; return arrays as float64.

    A data frame is returned as it is: its columns are checked when encoded.
    """
    if _column_names(X) is not None:
        if len(X) == 0:
            raise InvalidInputError(
                "X must have at least one row. Found array with 0 sample(s) while a minimum of 1 "
                "is required."
            )
        return X
    return _to_floats(X)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return the chosen rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _to_floats(X: ArrayLike) -> FloatArray:
    """Return a float64 table with NaN where a value is missing, and nothing infinite."""
    columns = _columns(X)
    if columns is not None:
        X = np.column_stack([_column_to_floats(column) for column in columns])
    return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")  # type: ignore[no-any-return]


def _columns(X: Any) -> list[Any] | None:
    """Return the columns of a data frame of any library, or None for anything else."""
    names = _column_names(X)
    return None if names is None else [X[name] for name in names]


def _column_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any library, or None for anything else."""
    if not hasattr(X, "columns") or not hasattr(X, "__getitem__") or not hasattr(X, "shape"):
        return None
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise InvalidInputError(f"Column names must be unique. Got these twice: {twice}.")
    return names


def _column_to_floats(column: Any) -> FloatArray:
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    return np.array([np.nan if _is_missing(value) else float(value) for value in values])


def _categorical_columns(X: Any) -> NDArray[np.bool_]:
    """Tell which columns of a data frame hold categories; arrays hold none."""
    columns = _columns(X)
    if columns is None:
        return np.zeros(1, dtype=bool)
    return np.array([_is_categorical(column) for column in columns], dtype=bool)


def _is_categorical(column: Any) -> bool:
    values = np.asarray(column)
    kind = values.dtype.kind
    if kind in "biuf":
        return str(getattr(column, "dtype", "")) in ("category", "Categorical")
    if kind in "mM":
        raise InvalidTypeError(
            f"Column {_name(column)} holds dates or durations. Expected numbers or categories. "
            "Convert it to a number, such as seconds since the start, or leave it out."
        )
    known = [value for value in values if not _is_missing(value)]
    if all(isinstance(value, numbers.Real) for value in known):
        return False
    if all(isinstance(value, str | numbers.Real) for value in known):
        return True
    wrong = next(value for value in known if not isinstance(value, str | numbers.Real))
    raise InvalidTypeError(
        f"Column {_name(column)} holds {type(wrong).__name__} objects. "
        "Expected numbers or categories."
    )


def _name(column: Any) -> str:
    return repr(getattr(column, "name", "?"))


def _is_missing(value: Any) -> bool:
    """Tell None, NaN and pandas' NA, which is not equal to anything, from a value."""
    if value is None:
        return True
    same = value == value
    return not (isinstance(same, bool | np.bool_) and bool(same))


def _gaps(X: Any, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which of the chosen columns have missing values."""
    columns = _columns(X) or []
    return np.array(
        [
            bool(flag) and any(_is_missing(value) for value in np.asarray(column, dtype=object))
            for column, flag in zip(columns, chosen, strict=True)
        ]
    )


def _column_transformer(X: Any, categorical: NDArray[np.bool_]) -> ColumnTransformer:
    names = np.array(_column_names(X), dtype=object)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [
            ("numbers", NumberScaler(), list(names[~categorical])),
            ("categories", encoder, list(names[categorical])),
        ]
    )


def _centre_and_scale(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations that no square can overflow.

    Columns are summed in sorted order: the order of the rows changes no bit.
    """
    X = np.sort(X, axis=0)
    peak = np.abs(X).max(axis=0)
    peak[peak == 0] = 1.0
    unit = X / peak
    centre = unit.mean(axis=0)
    spread = unit.std(axis=0)
    constant = spread <= ROUNDING
    return centre * peak, np.where(constant, 1.0, spread * peak)


def _refuse(wrong: NDArray[np.bool_], names: Sequence[Any] | None, what: str, advice: str) -> None:
    """Raise an error that lists the wrong columns, by name or number."""
    if not wrong.any():
        return
    which = [str(j if names is None else names[j]) for j in np.flatnonzero(wrong).tolist()]
    shown = ", ".join(which[:8]) + (f" and {len(which) - 8} others" if len(which) > 8 else "")
    raise InvalidInputError(f"These columns {what}: {shown}. {advice}")
