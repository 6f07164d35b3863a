"""FeatureEncoder: turns tables with categories and gaps into standardised numbers.

The policy, in one place:

- numbers (and booleans in an array) are centred and divided by their spread, both from the values
  present: mean and standard deviation, or with ``scale="robust"`` median and quartiles.
  With ``scale="none"`` all are divided by one common spread, so that columns of one unit,
  such as pixels and spectra, keep their relative sizes. A constant column is only centred,
  so that a later deviation still shows;
- a column of a data frame that holds text or booleans, is declared categorical or named in
  `categories` holds categories. They are compared as text, by the rule of the command line
  (`ocfuse.column_kinds`): 1, 1.0 and "1" are one category, True and "true" another. Each
  frequent one becomes a column, rare ones share one; the rarer a category, the further out
  it lies, and one that was not seen in training lies further out than any that was. More than
  20 frequent ones are described by what goes with them, in a few columns (`ocfuse.categories`);
- ids, counters of rows and free text in a data frame are left out (`ignored_`), unless
  `categories` names them: every row has another value, and nothing can be learned;
- a missing value is None, NaN, NA, null or a masked one. A missing number becomes the
  median of its column, a missing category a category of its own, **if the column had gaps
  in training too**. Otherwise `gaps` settles it: the row is judged by its other columns
  ("judge": the gap takes the value of the training rows nearest to it, the most normal one
  it may have), it is refused ("refuse"), or it is put far outside ("alarm"). So is a row
  without any value, which has no other columns, unless training had such rows;
- a column without any value in training is not learned from, but a value there later is a
  change, as unusual as an unseen category;
- infinite values, sparse matrices, dates and other objects are refused, and so
  is text in arrays: only a data frame has categories.

Columns are taken by position, whatever their names are; whether a column holds
numbers or categories is settled in training.

Columns named in `by` and `time` are no features: they say for whom and when a row is, and
what is usual there is what its numbers are measured from. Numbers of which one side is harmless
(`direction`) then become what is to be expected if they are on that side (`ocfuse.sides`).
"""

import math
import numbers
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array

from ocfuse import column_kinds as rules
from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.categories import are_many, patterns, profiles, unseen
from ocfuse.exceptions import (
    CellsWarning,
    InvalidInputError,
    InvalidTypeError,
    did_you_mean,
    not_one_of,
)
from ocfuse.frame_columns import read_frame
from ocfuse.sides import DIRECTIONS, Sides
from ocfuse.system.files import is_unicode
from ocfuse.usual import Calendar, Seasons, Usual, check_seasons, to_days
from ocfuse.usual.seasons import find_zone, require_periods, require_seasons_for, require_seconds

#: Standardised values are kept within this: beyond it blends between rows lose their digits.
FARTHEST = 1e6
#: Types of gaps, by name: pandas may not be there to import them from.
GAP_TYPES = ("NoneType", "NAType", "NaTType")
NUMBER_TYPES = (numbers.Real, Decimal, np.bool_)
#: How numbers are scaled.
SCALES = ("standard", "robust", "none")
#: Code of a category that training has not seen.
UNKNOWN = -1
#: Descriptions of cells that are unlike training; see also `describe_gaps`.
NEW_VALUES = "new values, which make their rows unusual"
WAS_EMPTY = "values, though training had none there"
#: The same of columns that say whose a row is.
NEW_GROUPS = "new values, whose rows are judged by what is usual for all, or for their wider group"
NO_GROUP = "no value, so that rows are judged by what is usual for all, or for their wider group"
NO_TIME = "no time, so that rows are judged by what is usual at any time"

_IS_SILENT: ContextVar[bool] = ContextVar("is_silent", default=False)


@contextmanager
def cell_warnings_off() -> Iterator[None]:
    """Keep detectors from warning of odd cells: the caller has done so."""
    token = _IS_SILENT.set(True)
    try:
        yield
    finally:
        _IS_SILENT.reset(token)


def warn_of_cells(changes: Sequence[CellsWarning.Change]) -> None:
    """Warn of cells that are unlike those of training, unless such warnings are off."""
    if changes and not _IS_SILENT.get():
        warnings.warn(CellsWarning(changes), stacklevel=4)


def describe_gaps(gaps: str) -> str:
    """Describe gaps that training had not, and what becomes of them by the policy `gaps`."""
    becomes = {"judge": "; judged by the other columns", "alarm": "; taken for an anomaly"}
    return "no value, though training had no gaps there" + becomes.get(gaps, "")


class NumberScaler(BaseEstimator):  # type: ignore[misc]
    """Fill the gaps (NaN) of numeric columns and bring them to one scale.

    Parameters
    ----------
    scale : str, default="standard"
        "standard": mean and standard deviation. "robust": median, and the distance of the
        quartiles in that of a normal distribution; where that is 0, as half of the values
        are equal, the standard deviation. "none": mean, and one spread for all columns, the
        root of their mean variance.
    """

    #: Values of columns that are sorted together.
    values_at_once: ClassVar[int] = 2**18

    def __init__(self, scale: str = "standard") -> None:
        self.scale = scale

    def fit(self, X: FloatArray, y: Any = None) -> "NumberScaler":
        """Learn medians, centres and spreads."""
        # centre, spread (1 if constant) and median of the values present
        self.centre_, self.scale_, self.fill_ = np.empty((3, X.shape[1]))
        step = max(1, self.values_at_once // len(X))
        for begin in range(0, X.shape[1], step):
            self._fit_columns(X, slice(begin, begin + step))
        constant = np.isnan(self.scale_)
        if self.scale == "none" and not constant.all():
            # the root of the mean variance; its squares cannot overflow
            spreads, peak = self.scale_[~constant], self.scale_[~constant].max()
            common = np.sqrt(np.mean((spreads / peak) ** 2)) * peak
            self.scale_[:] = max(common, np.finfo(float).tiny)
        else:
            self.scale_[constant] = 1.0
        return self

    def _fit_columns(self, X: FloatArray, some: slice) -> None:
        """Learn from some columns: while they are in the cache it takes half the time."""
        rounding = 1e-13  # a column whose spread is below this share of its size is constant
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
            spread, middle = unit.std(axis=1), unit.mean(axis=1)
            fill[chosen] = present[:, (n - 1) // 2] / 2 + present[:, n // 2] / 2
            if self.scale == "robust":
                low, high = np.quantile(unit, [0.25, 0.75], axis=1)
                is_wide = high - low > rounding
                # in the distance between the quartiles of a standard normal distribution
                spread = np.where(is_wide, (high - low) / 1.3489795003921634, spread)
                middle = fill[chosen] / peak
            constant = (spread <= rounding) | (spread * peak == 0)
            centre[chosen] = middle * peak
            scale[chosen] = np.where(constant, np.nan, spread * peak)

    def transform(self, X: FloatArray) -> FloatArray:
        """Fill the gaps and scale."""
        missing = np.isnan(X)
        if missing.any():
            X = np.where(missing, self.fill_, X)
        Z = np.empty(X.shape)
        with np.errstate(over="ignore"):
            np.subtract(X, self.centre_, out=Z)
            np.divide(Z, self.scale_, out=Z)
        return np.maximum(np.minimum(Z, FARTHEST, out=Z), -FARTHEST, out=Z)


class FeatureEncoder(BaseEstimator):  # type: ignore[misc]
    """Turn an array or a data frame into numbers on one scale.

    Parameters
    ----------
    scale : str, default="standard"
        How numbers are scaled. "standard": each column by its mean and standard deviation.
        "robust": by its median and quartiles (by the standard deviation if half of the values are
        equal). "none": all columns by one common spread, for columns of one unit such as pixels,
        spectra and sensors of one kind.
    gaps : str, default="judge"
        Treatment of a gap in a column without gaps in training. "judge": the row is scored by its
        other columns; a row without any value gets a very low score. "refuse": it is an error.
        "alarm": the row gets a very low score.
    categories : sequence of str or int, default=()
        Columns, by name or position, that hold categories even if they look otherwise: codes of
        digits, and columns that would be left out as ids or free text.
    by : str, int or sequence of them, default=None
        Columns, by name or position, that name what a row belongs to, such as "machine", or from
        the widest to the narrowest ``["plant", "machine"]``. Numbers are compared with the usual
        values of the same machine. `groups` in `fit` of a detector are different: rows that are
        held out together.
    time : str or int, default=None
        Column with the time of each row: dates, or seconds since 1970.
    season : str or sequence of str, default=()
        Compare numbers with the usual values at the same local time of the "day", "week", "month"
        or "year", in those columns where this predicts held-out rows better. Needs `time`, and at
        least two periods of each.
    holidays : str or sequence of str, default=()
        Days, such as "2026-12-25", that are treated as Sundays unless their training rows differ.
        Needs ``season="week"``.
    zone : str, default=None
        Time zone in which days begin, such as "Europe/Berlin". None is the zone of the times;
        times without a zone are local.
    direction : dict, default=None
        Columns, by name or position, in which only high or only low values are bad:
        ``{"errors": "high", "pressure": "low"}``.
    numbers : sequence of str or int, default=()
        Columns that hold numbers even if they look like ids, counters of rows or booleans.

    Attributes
    ----------
    categorical_, complete_ : ndarray of shape (n_features,)
        Whether each column holds categories; whether it had no gaps in training.
    ignored_, empty_ : ndarray of shape (n_features,)
        Whether each column is not a feature: left out, or named in `by` or `time`; whether it had
        no value in training.
    roles_ : list of str
        Kind of each column: "number", "category", "by", "time", "empty" or "left out".
    by_ : list of int
        Positions of the columns named in `by`, in its order.
    time_ : int or None
        Position of the column named in `time`.
    zone_ : str
        Time zone of the times in training, such as "Europe/Berlin"; empty if they had none.
    is_number_ : bool
        Whether the times in training were numbers.
    by_codes_ : list of dict
        Codes of the values of the columns named in `by`.
    usual_ : Usual or None
        Usual values by group and time; None without `by` and `season`.
    direction_ : list of str
        Bad side of each column, "high" or "low"; empty if both sides are.
    sides_ : Sides or None
        Expected values of the columns of `direction`; None without it.
    reasons_ : list of str
        Why each column is not a feature; empty for features.
    codes_ : list of dict
        Codes of the categories, for each categorical column.
    patterns_ : list of ndarray
        For each categorical column, the encoding of each code, then of a gap (NaN if training had
        none) and of a category that was not seen.
    profiled_ : ndarray of shape (n_features,)
        Whether a column has so many categories that they are described by the values of the other
        columns.
    source_ : ndarray of shape (n_encoded,)
        For each encoded column, the position of the column it comes from.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocfuse import FeatureEncoder
    >>> table = pd.DataFrame({"flow": range(9), "mode": list("aaabbbccc")})
    >>> encoder = FeatureEncoder(scale="none").fit(table)
    >>> encoder.source_
    array([0, 1, 1, 1, 1])
    """

    # of encoders that were saved before there were these
    by: Any = None
    time: Any = None
    season: Any = ()
    holidays: Any = ()
    zone: str | None = None
    direction: Any = None
    numbers: Any = ()
    by_: Sequence[int] = ()
    time_: int | None = None
    zone_: str = ""
    is_number_: bool = True
    by_codes_: Sequence[dict[str, int]] = ()
    usual_: Usual | None = None
    numbers_: Sequence[int] = ()
    direction_: Sequence[str] = ()
    profiled_: Sequence[bool] = ()
    sides_: Sides | None = None

    def __init__(
        self,
        scale: str = "standard",
        gaps: str = "judge",
        categories: Sequence[Any] = (),
        *,
        by: Any = None,
        time: Any = None,
        season: Any = (),
        holidays: Any = (),
        zone: str | None = None,
        direction: Any = None,
        numbers: Any = (),
    ) -> None:
        self.scale = scale
        self.gaps = gaps
        self.categories = categories
        self.by = by
        self.time = time
        self.season = season
        self.holidays = holidays
        self.zone = zone
        self.direction = direction
        self.numbers = numbers

    def fit(self, X: Any, y: Any = None) -> "FeatureEncoder":
        """Learn the encoding from training rows."""
        return self.settle(X).learn(X)

    def settle(self, X: Any) -> "FeatureEncoder":
        """Infer the kinds of the columns of a training table, and which are left out."""
        self._check_settings()
        X = check_table(X)
        names = _column_names(X)
        forced = self._settle_roles(X, names)
        columns = _columns(X) if names is not None or self.by_ or self.time_ is not None else []
        for j in self.by_:
            _require_repeats(_name(names, j), columns[j])
        _require_together([_name(names, j) for j in self.by_], [columns[j] for j in self.by_])
        if self.time_ is not None:
            dtype = None if names is None else list(X.dtypes)[self.time_]
            when = columns[self.time_]
            self.zone_ = _zone(dtype, when)
            self.is_number_ = when.dtype.kind != "M" and _kind(when) == "numbers"
            times = _seconds(_name(names, self.time_), when)  # refuses what is no time
            shown = _name(names, self.time_) if self.is_number_ else ""
            require_periods(check_seasons(self.season), times, shown)
            if self.zone_:
                find_zone(self.zone_)
        if names is None:
            self.categorical_[forced] = True
            return self
        kinds = [_kind(values) for values in columns]
        _refuse_odd(kinds, names, self._is_feature)
        for j, (values, dtype) in enumerate(zip(columns, X.dtypes, strict=True)):
            if not self._is_feature[j]:
                continue
            is_text = kinds[j] == "text" or str(dtype) == "category"
            is_truth = rules.are_booleans(values)
            if j in self.numbers_:
                _refuse_text(is_text, str(names[j]))
                continue
            if self.direction_[j]:
                _refuse_side(is_text or is_truth, str(names[j]))
                continue
            self.categorical_[j] = is_text or is_truth or j in forced
            if j not in forced and not is_truth:
                self.reasons_[j] = _reason(str(names[j]), values, is_text)
        return self

    def _settle_roles(self, X: Any, names: list[Any] | None) -> list[int]:
        """Settle which columns are for whom, when, and numbers; return the named categories."""
        m = X.shape[1]
        named = {
            role: positions_of(getattr(self, role), names, m, role)
            for role in ("categories", "numbers", "by", "time")
        }
        if len(named["time"]) > 1:
            raise InvalidInputError(f"time must name one column. Got time={self.time!r}.")
        taken: dict[int, str] = {}
        for role, places in named.items():
            for j in places:
                if j in taken:
                    raise InvalidInputError(
                        f"Column {_name(names, j)!r} is named in {taken[j]} and in {role}. Name "
                        "it in one of them."
                    )
                taken[j] = role
        self.is_frame_ = names is not None
        self.categorical_ = np.zeros(m, dtype=bool)
        self.reasons_ = [""] * m
        self.by_, self.numbers_ = named["by"], named["numbers"]
        self.direction_ = self._settled_sides(names, m, taken)
        self.time_ = next(iter(named["time"]), None)
        return named["categories"]

    def _settled_sides(self, names: list[Any] | None, m: int, taken: dict[int, str]) -> list[str]:
        """Return the side of each column; a column named for something else has none."""
        sides = [""] * m
        given = {} if self.direction is None else self.direction
        for column, j in zip(given, positions_of(given, names, m, "direction"), strict=True):
            role = taken.get(j, "numbers")
            if role != "numbers":
                raise InvalidInputError(
                    f"Column {_name(names, j)!r} is named in direction and in {role}. Only numbers "
                    "have a side: name it in one of them."
                )
            sides[j] = given[column]
        return sides

    @property
    def _is_feature(self) -> BoolArray:
        """Which columns are neither named in `by` nor in `time`."""
        is_feature = np.ones(len(self.categorical_), dtype=bool)
        is_feature[[*self.by_, *([] if self.time_ is None else [self.time_])]] = False
        return is_feature

    @property
    def numeric(self) -> NDArray[np.intp]:
        """Positions of the columns of numbers that are features."""
        return np.flatnonzero(~self.categorical_ & ~self.ignored_)

    @property
    def roles_(self) -> list[str]:
        """Kind of each column: "number", "category", "by", "time", "empty" or "left out"."""
        roles = np.where(self.categorical_, "category", "number").astype(object)
        roles[self.ignored_] = "left out"
        roles[self.empty_] = "empty"
        roles[list(self.by_)] = "by"
        if self.time_ is not None:
            roles[self.time_] = "time"
        return [str(role) for role in roles]

    def learn(self, X: Any) -> "FeatureEncoder":
        """Learn the encoding from rows, after `settle`."""
        self._learn(X)
        return self

    def learn_encoded(self, X: Any, together: NDArray[np.intp] | None = None) -> FloatArray:
        """Learn the encoding from rows, after `settle`, and encode them.

        Where numbers are measured from what is usual, each row is measured from the others, so
        that it is as far out as a fresh one; rows with the same number in `together`, such as
        those of one run, are held out together.
        """
        cells, own = self._learn(X, together)
        if self.usual_ is None and not any(of is not None for of in own):
            return self.transform(X)
        return self.encode(self.read(X), cells, own)

    def with_groups(self, X: Any, rows: IntArray) -> tuple["FeatureEncoder", FloatArray | None]:
        """Return an encoder that knows the groups of these rows of a table, too.

        And the numbers of all rows as they are measured then, those of new groups as learned from
        the others; None if no group is new.
        """
        if self.usual_ is None or not self.by_:
            return self, None
        columns, fresh = _columns(X), copy(self)
        fresh.by_codes_ = [dict(known) for known in self.by_codes_]
        for j, known in zip(self.by_, fresh.by_codes_, strict=True):
            for text in sorted(rules.counted(map(_text, columns[j][rows]))):
                require_unicode(text, "A text column")
                known.setdefault(text, len(known))
        codes = fresh.read(X)
        whose, when, cells = codes[:, self.by_], self._times(codes), codes[:, self.numeric]
        # groups are learned from these rows alone
        usual, measured = self.usual_.with_groups(whose[rows], when[rows], cells[rows])
        if usual is self.usual_:
            return self, None
        fresh.usual_ = usual
        cells = usual.measure(whose, when, cells)
        cells[rows] = measured
        return fresh, cells

    def comparable(self, codes: FloatArray) -> list[FloatArray]:
        """Return rows, as `read` returns them, encoded as it takes to find copies.

        Copies are equal in every way. As they are measured from what is usual, whole numbers of
        unlike groups are equal no more; as they are, rows of a group that hardly varies are
        nearly equal.
        """
        views = [self.two_sided(codes)]
        if self.usual_ is not None:
            plain = copy(self)
            plain.usual_ = None
            plain.scaler_ = NumberScaler(self.scale).fit(codes[:, self.numeric])
            views.append(plain.two_sided(codes))
        return views

    def _learn(
        self, X: Any, together: NDArray[np.intp] | None = None
    ) -> tuple[FloatArray, list[FloatArray | None]]:
        """Learn the encoding; return the numbers of the rows as they are measured.

        And the categories of the rows, encoded, where each is described by the others.
        """
        X = check_table(X)
        names = _column_names(X)
        ignored = np.array([bool(reason) for reason in self.reasons_]) | ~self._is_feature
        chosen = np.flatnonzero(self.categorical_ & ~ignored)
        columns = _columns(X) if len(chosen) or self.by_ else []
        known = [rules.counted(map(_text, columns[j])) for j in chosen]
        self.codes_ = [{text: code for code, text in enumerate(sorted(texts))} for texts in known]
        # a model could be learned from text that no file can hold, but not saved
        for name in names or ():
            require_unicode(name, "A column name")
        whose = [sorted(rules.counted(map(_text, columns[j]))) for j in self.by_]
        self.by_codes_ = [{text: code for code, text in enumerate(texts)} for texts in whose]
        for text in chain.from_iterable([*self.codes_, *self.by_codes_]):
            require_unicode(text, "A text column")
        self.empty_ = np.zeros(len(ignored), dtype=bool)
        self.ignored_ = ignored
        self.categorical_ = self.categorical_ & ~ignored
        codes = self._read(X)
        self._leave_out_empty(np.isnan(codes).all(axis=0) & self._is_feature, names)
        missing = np.isnan(codes)
        self.complete_ = ~missing.any(axis=0) | (self.ignored_ & self._is_feature)
        numeric = self.numeric
        positions, empty = np.flatnonzero(self.categorical_), np.flatnonzero(self.empty_)
        cells = codes[:, numeric]
        if self.by_ or is_given(self.season):
            self.usual_ = Usual(self._seasons(by_parts=together is not None))
            theirs, when = codes[:, self.by_], self._times(codes)
            cells = self.usual_.fit_measured(theirs, when, cells, together)
        self.scaler_ = NumberScaler(self.scale).fit(cells)
        own = self._learn_categories(codes, cells)
        self.novelty_ = unseen(1 / (len(codes) + 1))
        widths = [encoding.shape[1] for encoding in self.patterns_]
        self.source_ = np.concatenate([numeric, np.repeat(positions, widths), empty])
        # evenly spaced by their sums: the order of the rows does not matter
        with np.errstate(over="ignore", invalid="ignore"):
            order = np.argsort(np.nansum(codes, axis=1), kind="stable")
        n_donors = 1000  # training rows that gaps are filled from, at most
        some = order[np.unique(np.linspace(0, len(codes) - 1, n_donors).astype(np.intp))]
        self.donors_ = np.unique(self._encoded(np.where(self.empty_, 0.0, codes[some])), axis=0)
        self.sides_ = None
        sign = self._sign
        if sign.any():
            some = order[:: max(len(order) // Sides.max_rows, 1)]
            rows = np.where(self.empty_, 0.0, codes[some])
            of_rows = [None if of is None else of[some] for of in own]
            self.sides_ = Sides(sign).fit(self._encoded(rows, cells[some], of_rows))
        return cells, own

    def _learn_categories(self, codes: FloatArray, cells: FloatArray) -> list[FloatArray | None]:
        """Learn the encoding of categories; return that of the rows where it differs."""
        positions = np.flatnonzero(self.categorical_)
        known = dict(zip(positions.tolist(), map(len, self.codes_), strict=True))
        few = [j for j in known if not are_many(codes[:, j], known[j])]
        found = {j: patterns(codes[:, j], known[j]) for j in few}
        own: dict[int, FloatArray] = {}
        others = [self.scaler_.transform(cells)]
        for j in few:
            is_gap = np.isnan(codes[:, j])
            others.append(found[j][np.where(is_gap, known[j], codes[:, j]).astype(np.intp)])
        beside = np.hstack(others)
        for j in known.keys() - found.keys():
            if beside.shape[1]:
                found[j], own[j] = profiles(codes[:, j], known[j], beside)
            else:
                found[j] = patterns(codes[:, j], known[j])
        self.patterns_ = [found[j] for j in known]
        self.profiled_ = [j in own for j in range(len(self.categorical_))]
        return [own.get(j) for j in known]

    def transform(self, X: Any) -> FloatArray:
        """Encode what `check_table` returned (anything else is passed through it first)."""
        return self.encode(self.read(X))

    def read(self, X: Any) -> FloatArray:
        """Return numbers and codes of categories; NaN is a gap, -1 a category not seen.

        Columns that are not learned from are 0, or 1 where there is a value in a column that
        had none in training. A time is in seconds since 1970, in UTC if it has a time zone.
        """
        codes = self._read(X)
        if self.gaps == "refuse":
            new, names = self.new_gaps(codes), _column_names(X)
            first = new.argmax(axis=0).tolist() if new.any() else []
            _refuse(
                new.any(axis=0),
                [f"{_name(names, j)} ({_row(X, i)})" for j, i in enumerate(first)],
                "have missing values, but were complete in training: {}. gaps='judge' judges such "
                "rows by their other columns, gaps='alarm' takes them for anomalies. Or fill the "
                "gaps by a rule of your own before scoring, or train on rows with gaps.",
            )
        return codes

    def _read(self, X: Any) -> FloatArray:
        if not _is_float_array(X):
            X = check_table(X)
        names = _column_names(X)
        if names is None and self.is_frame_ and (self.categorical_.any() or self.by_):
            raise InvalidTypeError(
                "X must be a data frame, as in training: it has categorical columns, or columns "
                f"named in by. Got {type(X).__name__}."
            )
        n, trained = X.shape[1], len(self.categorical_)
        if n != trained:
            raise InvalidInputError(f"X has {n} features. Expected {trained}, as in training.")
        if names is not None or self.categorical_.any() or self.by_:
            X = self._to_floats(X, names)
        elif self.ignored_.any():
            X = np.where(self.empty_, ~np.isnan(X), X)
        if not np.isfinite(X).all():
            _refuse(np.isinf(X).any(axis=0), names, "hold infinity: {}. Leave such rows out.")
        return X  # type: ignore[no-any-return]

    @property
    def _sign(self) -> NDArray[np.int64]:
        """Which side of each encoded column counts: 1 high, -1 low, 0 both."""
        turned = [{"high": 1, "low": -1}.get(side, 0) for side in self.direction_]
        signs = np.array(turned or [0] * len(self.categorical_), dtype=np.int64)
        return np.where(self.empty_[self.source_], 0, signs[self.source_])

    def encode(
        self,
        codes: FloatArray,
        cells: FloatArray | None = None,
        own: Sequence[FloatArray | None] = (),
    ) -> FloatArray:
        """Encode what `read` returned.

        `cells` are its numbers if these were measured, and `own` categories that are encoded, or
        None, of training rows.
        """
        return self.one_sided(self.two_sided(codes, cells, own))

    def one_sided(self, Z: FloatArray) -> FloatArray:
        """Return encoded rows with what is to be expected for values on the harmless side."""
        return Z if self.sides_ is None else self.sides_.transform(Z)

    def two_sided(
        self,
        codes: FloatArray,
        cells: FloatArray | None = None,
        own: Sequence[FloatArray | None] = (),
    ) -> FloatArray:
        """Encode what `read` returned as if both sides of all columns counted."""
        Z = self._encoded(codes, cells, own)
        lost = np.isnan(Z)
        if not lost.any():
            return Z
        # a row without any value has nothing to be judged by
        is_blank = np.isnan(codes[:, ~self.ignored_]).all(axis=1, keepdims=True)
        far = lost & (is_blank | (self.gaps == "alarm")) & self.new_gaps(codes)[:, self.source_]
        Z = np.where(far, np.where(self._sign < 0, -FARTHEST, FARTHEST), Z)
        lost &= ~far
        for i in np.flatnonzero(lost.any(axis=1)):
            Z[i, lost[i]] = self._most_normal(Z[i], lost[i])
        return Z

    def set_gaps(self, gaps: str) -> "FeatureEncoder":
        """Change the treatment of gaps in columns that had none in training."""
        self.gaps = gaps
        self._check_settings()
        return self

    def new_gaps(self, codes: FloatArray) -> BoolArray:
        """Return which cells are gaps in columns that had none in training."""
        return np.isnan(codes) & self.complete_

    def changes(self, X: Any, codes: FloatArray) -> list[CellsWarning.Change]:
        """List, by column, the cells of a table that are unlike those of training."""
        is_odd = self.categorical_ | self.empty_
        is_odd[list(self.by_)] = True
        if not (np.isnan(codes).any() or is_odd.any()):
            return []
        gap = describe_gaps(self.gaps)
        says_whose = np.zeros(len(self.complete_), dtype=bool)
        says_whose[list(self.by_)] = True
        says_when = np.zeros(len(self.complete_), dtype=bool)
        if self.time_ is not None and is_given(self.season):
            says_when[self.time_] = True
        found = {
            NEW_VALUES: (codes == UNKNOWN) & self.categorical_,
            NEW_GROUPS: (codes == UNKNOWN) & says_whose,
            NO_GROUP: self.new_gaps(codes) & says_whose,
            NO_TIME: self.new_gaps(codes) & says_when,
            gap: self.new_gaps(codes) & self._is_feature,
            WAS_EMPTY: (codes != 0) & self.empty_,
        }
        names, columns = _column_names(X), None
        changes = []
        for what, cells in found.items():
            for j in np.flatnonzero(cells.any(axis=0)).tolist() if cells.any() else ():
                rows = np.flatnonzero(cells[:, j])
                values: list[str] = []
                if what not in (gap, NO_GROUP, NO_TIME):
                    columns = _columns(X) if columns is None else columns
                    values = sorted({str(rules.category(columns[j][i])) for i in rows})
                name, first = _name(names, j), _row(X, int(rows[0]))
                changes.append(CellsWarning.Change(name, what, tuple(values), len(rows), first))
        return changes

    def ranges(self, codes: FloatArray) -> list[FloatArray]:
        """Return what is usual for the numbers of every row, NaN in other columns.

        That is the lowest and the highest usual value, and the centre and the unit by which
        numbers are measured.
        """
        found = [np.full(codes.shape, np.nan) for _ in range(4)]
        if self.usual_ is not None:
            parts = self.usual_.ranges(codes[:, self.by_], self._times(codes))
            for array, part in zip(found, parts, strict=True):
                array[:, self.numeric] = part
        return found

    def groups_of(self, X: Any, codes: FloatArray) -> list[str]:
        """Return the group of every row, such as "machine 17"; the wider one if it is new."""
        names = _column_names(X)
        known = [{code: text for text, code in codes.items()} for codes in self.by_codes_]
        found = []
        for row in codes[:, self.by_]:
            parts = []
            for j, code, texts in zip(self.by_, row.tolist(), known, strict=True):
                if not code >= 0:
                    break
                parts.append(f"{_name(names, j)} {texts[int(code)]}")
            found.append(", ".join(parts) or "all")
        return found

    def situations(self, X: Any, codes: FloatArray) -> list[str]:
        """Say for whom and when numbers are usual, such as "for machine 17 at 06:00"."""
        n, seasons = len(codes), None if self.usual_ is None else self.usual_.seasons
        whose = [f"for {group}" for group in self.groups_of(X, codes)] if self.by_ else [""] * n
        when = [""] * n if seasons is None else seasons.describe(self._times(codes).tolist())
        return [" ".join(filter(None, pair)) for pair in zip(whose, when, strict=True)]

    def _times(self, codes: FloatArray) -> FloatArray:
        """Return the times of rows; NaN if they have none."""
        return np.full(len(codes), np.nan) if self.time_ is None else codes[:, self.time_]

    def _seasons(self, by_parts: bool) -> Seasons | None:
        """Return the seasons to be learned, if there are any."""
        names = check_seasons(self.season)
        if not names:
            return None
        # times that are dates without a zone are local already
        zone = self.zone or self.zone_ if self.zone_ or self.is_number_ else ""
        return Seasons(names, Calendar(zone, to_days(self.holidays)), by_parts)

    def ignored(self, X: Any) -> list[str]:
        """Return the columns that are not learned from with the reasons, to show."""
        names = _column_names(X)
        places = np.flatnonzero(self.ignored_ & self._is_feature).tolist()
        return [f"{_name(names, j)} ({self.reasons_[j]})" for j in places]

    def alike(self, X: Any) -> list[str]:
        """Return the columns of a training table of which all categories are too rare to differ."""
        names, columns = _column_names(X), np.flatnonzero(self.categorical_).tolist()
        return [
            _name(names, j)
            for j, encoding in zip(columns, self.patterns_, strict=True)
            if 2 * (len(encoding) - 2) > len(X) > 2 and not np.ptp(encoding[:-2], axis=0).any()
        ]

    def _encoded(
        self,
        codes: FloatArray,
        cells: FloatArray | None = None,
        own: Sequence[FloatArray | None] = (),
    ) -> FloatArray:
        """Return encoded rows, NaN where nothing is known of a gap."""
        numeric = self.numeric
        is_plain = len(numeric) == codes.shape[1]
        if cells is None:
            cells = codes if is_plain else codes[:, numeric]
            if self.usual_ is not None:
                cells = self.usual_.measure(codes[:, self.by_], self._times(codes), cells)
        Z = self.scaler_.transform(cells)
        missing = np.isnan(cells)
        if missing.any():
            Z[missing & self.complete_[numeric]] = np.nan
        if is_plain:
            return Z
        parts = [Z]
        of_rows = own or [None] * len(self.patterns_)
        known = np.flatnonzero(self.categorical_)
        for j, encoding, theirs in zip(known, self.patterns_, of_rows, strict=True):
            is_gap = np.isnan(codes[:, j])
            places = np.where(is_gap, len(encoding) - 2, codes[:, j])
            parts.append(encoding[places.astype(np.intp)] if theirs is None else theirs)
        parts.append(codes[:, self.empty_] * self.novelty_)
        return np.hstack(parts)

    def _most_normal(self, row: FloatArray, lost: BoolArray) -> FloatArray:
        """Return what the training rows nearest to a row hold where it has gaps.

        Of the five nearest, the one in the middle: the value that makes the row least unusual.
        """
        distance = ((self.donors_[:, ~lost] - row[~lost]) ** 2).sum(axis=1)
        k = min(5, len(distance)) - 1
        near = self.donors_[distance <= np.partition(distance, k)[k]][:, lost]
        middle: FloatArray = near[((near - near.mean(axis=0)) ** 2).sum(axis=1).argmin()]
        return middle

    def _leave_out_empty(self, is_empty: BoolArray, names: list[Any] | None) -> None:
        """Leave out columns without a value, and refuse a table that then has none left."""
        self.codes_ = [
            codes
            for j, codes in zip(np.flatnonzero(self.categorical_), self.codes_, strict=True)
            if not is_empty[j]
        ]
        self.empty_, self.ignored_ = is_empty, self.ignored_ | is_empty
        self.categorical_ = self.categorical_ & ~is_empty
        self.reasons_ = [
            rules.EMPTY if is_empty[j] else reason for j, reason in enumerate(self.reasons_)
        ]
        if self.ignored_.all():
            reasons = [why or "in by or time" for why in self.reasons_]
            shown = "; ".join(f"{_name(names, j)} ({why})" for j, why in enumerate(reasons))
            raise InvalidInputError(
                f"X has no column to learn from: {shown}. What is a category all the same can be "
                "named: encoder=FeatureEncoder(categories=[...])."
            )

    def _check_settings(self) -> None:
        for name, known in (("scale", SCALES), ("gaps", ("judge", "refuse", "alarm"))):
            given = getattr(self, name)
            if given not in known:
                raise InvalidInputError(not_one_of(name, given, known))
        check_direction(self.direction)
        seasons = check_seasons(self.season)
        if seasons and self.time is None:
            raise InvalidInputError(
                f"season={self.season!r} needs the times of rows. Name their column, for instance "
                "time='when'."
            )
        require_seasons_for(to_days(self.holidays), self.zone, seasons)
        if self.zone:
            find_zone(self.zone)

    def _to_floats(self, X: Any, names: list[Any] | None) -> FloatArray:
        """Return numbers, codes of categories, and 0 or 1 for columns that are not learned from."""
        columns = _columns(X)
        if names is not None:
            kinds = [_kind(values) for values in columns]
            _refuse_odd(kinds, names, ~self.ignored_)
            text = (
                np.array([kind == "text" for kind in kinds]) & ~self.categorical_ & ~self.ignored_
            )
            _refuse(text, names, "hold text, but were numbers in training: {}. Convert them.")
        codes = iter(self.codes_)
        whose = dict(zip(self.by_, self.by_codes_, strict=True))
        for j, cells in enumerate(columns):
            if j in whose:
                columns[j] = _coded(cells, whose[j])
            elif j == self.time_:
                columns[j] = self._read_times(X, names, cells)
            elif self.ignored_[j]:
                columns[j] = np.zeros(len(cells))
                if self.empty_[j]:
                    columns[j][:] = [_text(cell) is not None for cell in cells]
            elif self.categorical_[j]:
                columns[j] = _coded(cells, next(codes))
            else:
                columns[j] = _numbers(cells)
        return np.array(columns, dtype=np.float64).T

    def _read_times(self, X: Any, names: list[Any] | None, cells: NDArray[Any]) -> FloatArray:
        """Return times as seconds since 1970; refuse those whose local time is not known."""
        assert self.time_ is not None
        name = _name(names, self.time_)
        found = _seconds(name, cells)
        if is_given(self.season):
            require_seconds(found)
        is_date = cells.dtype.kind == "M" or _kind(cells) != "numbers"
        if is_date and is_given(self.season) and not self.is_number_:
            has_zone = bool(_zone(None if names is None else list(X.dtypes)[self.time_], cells))
            if has_zone != bool(self.zone_) and not np.isnan(found).all():
                have, had = ("a", "none") if has_zone else ("no", repr(self.zone_))
                raise InvalidInputError(
                    f"time={name!r} has {have} time zone, but had {had} in training: what is usual "
                    "depends on the local time. Convert it, for instance by Series.dt.tz_localize."
                )
        return found


def make_encoder(spec: Any, **settings: Any) -> FeatureEncoder:
    """Return the encoder that None, the name of a scale or an encoder stands for, not fitted.

    The settings are those of the encoder; one that it has otherwise is refused.
    """
    if spec is not None and not isinstance(spec, str | FeatureEncoder):
        names = ", ".join(map(repr, SCALES))
        raise InvalidTypeError(
            f"encoder must be None, one of {names}, or a FeatureEncoder. Got {spec!r}."
        )
    is_own = isinstance(spec, FeatureEncoder)
    encoder: FeatureEncoder = clone(spec) if is_own else FeatureEncoder(spec or "standard")
    for name, value in settings.items():
        own = getattr(encoder, name)
        if is_given(value) and is_given(own) and value != own:
            raise InvalidInputError(
                f"{name}={value!r}, but the encoder has {name}={own!r}. Give it in one place only."
            )
        if is_given(value):
            encoder.set_params(**{name: value})
    return encoder


def is_given(value: Any) -> bool:
    """Return whether a setting is something else than None or empty."""
    is_empty = isinstance(value, Sized) and not isinstance(value, str) and not len(value)
    return value is not None and not is_empty


def positions_of(given: Any, names: list[Any] | None, m: int, what: str) -> list[int]:
    """Return the positions of columns that were named or numbered."""
    known = {} if names is None else {name: j for j, name in enumerate(names)}
    found: list[int] = []
    if given is None:
        return found
    for column in [given] if isinstance(given, str | numbers.Integral) else given:
        is_place = isinstance(column, numbers.Integral) and -m <= int(column) < m
        if column not in known and not is_place:
            raise InvalidInputError(
                f"{what} must name columns of X, or tell their positions, 0 to {m - 1}. "
                f"Got {column!r}. {did_you_mean(column, map(str, known))}".rstrip()
            )
        found.append(known[column] if column in known else int(column) % m)
    return found


def _coded(cells: NDArray[Any], known: dict[str, int]) -> FloatArray:
    """Return the codes of cells; NaN is a gap, -1 a text that is not known."""
    texts = map(_text, cells)
    return np.array([math.nan if text is None else known.get(text, UNKNOWN) for text in texts])


def _require_repeats(name: str, values: NDArray[Any]) -> None:
    """Refuse a column in `by` of which no value occurs twice."""
    kind = _kind(values)
    if kind not in ("numbers", "text"):
        raise InvalidTypeError(
            f"by={name!r} holds {kind}, which name nobody. Name a column of text or codes, such "
            "as the machine of every row; a column of dates is named in time."
        )
    counts = rules.counted(map(_text, values))
    if not counts:
        raise InvalidInputError(f"by={name!r} has no value in any row. Name another column.")
    if max(counts.values()) < 2:
        raise InvalidInputError(
            f"by={name!r} has another value in every row: nothing is usual for a single row. Name "
            "a column whose values come twice or more, such as the machine, or leave it out."
        )


def check_direction(direction: Any) -> None:
    """Refuse what does not name a side for columns."""
    if direction is None:
        return
    if not isinstance(direction, Mapping):
        raise InvalidTypeError(
            "direction must be a dict from columns to 'high' or 'low', such as {'errors': 'high'}. "
            f"Got {direction!r}."
        )
    for column, side in direction.items():
        if side not in DIRECTIONS:
            raise InvalidInputError(not_one_of(f"direction[{column!r}]", side, DIRECTIONS))


def _refuse_side(is_text: bool, name: str) -> None:
    if is_text:
        raise InvalidInputError(
            f"direction names {name!r}, which holds text or true and false: only numbers have a "
            "high and a low side. Leave it out, or convert the column to numbers; 'numbers' takes "
            "true for 1."
        )


def _require_together(names: list[str], columns: list[NDArray[Any]]) -> None:
    """Refuse several columns in `by` of which no row has the same values as another."""
    if len(columns) < 2:
        return
    rows = Counter(zip(*(map(_text, values) for values in columns), strict=True))
    if max(rows.values()) < 2:
        raise InvalidInputError(
            f"by={names!r} have other values together in every row: nothing is usual for a single "
            "row. Name fewer columns."
        )


def _refuse_text(is_text: bool, name: str) -> None:
    if is_text:
        raise InvalidInputError(
            f"numbers={name!r} holds text. Convert it to numbers, for instance by "
            "pandas.to_numeric; TableDetector reads numbers from text."
        )


def _zone(dtype: Any, values: NDArray[Any]) -> str:
    """Return the name of the time zone of a column, empty if it has none."""
    zone = getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None)
    if zone is None and values.dtype.kind == "O":
        zone = next((value.tzinfo for value in values if getattr(value, "tzinfo", None)), None)
    return "" if zone is None else str(zone)


def _seconds(name: str, values: NDArray[Any]) -> FloatArray:
    """Return times as seconds since 1970, NaN for gaps; those with a time zone in UTC."""
    if values.dtype.kind == "M":
        times = values.astype("datetime64[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)
    kind = _kind(values)
    if kind == "numbers":
        return np.asarray(_numbers(values), dtype=np.float64)
    if kind != "dates or durations" or not all(
        isinstance(value, date) or _is_missing(value) for value in values
    ):
        raise InvalidTypeError(
            f"time={name!r} holds {kind}. Convert it to times, for instance by "
            "pandas.to_datetime, or to seconds since 1970."
        )
    return np.array([math.nan if _is_missing(t) else _timestamp(t) for t in values])


def _timestamp(when: date) -> float:
    """Return seconds since 1970 of a time, in UTC if it has a time zone, or of a date."""
    whole = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)
    return (whole if whole.tzinfo else whole.replace(tzinfo=timezone.utc)).timestamp()


def _reason(name: str, values: NDArray[Any], is_text: bool) -> str:
    """Return why nothing can be learned from a column of a data frame, or nothing."""
    if is_text:
        counts = rules.counted(map(_text, values))
        named = rules.about_names(name, counts, len(values))
        return named or rules.about_written_numbers(counts) or rules.about_free_text(counts)
    return rules.about_whole_numbers(name, np.asarray(_numbers(values), dtype=np.float64))


def _name(names: list[Any] | None, j: int) -> str:
    return str(j if names is None else names[j])


def _row(X: Any, i: int) -> str:
    index = X.index if hasattr(X, "iloc") else None
    return f"row {i if index is None else index[i]}"


def read_numbers(X: Any, places: Sequence[int], what: str) -> FloatArray:
    """Return some columns of a table as numbers, NaN for gaps; `what` has named them.

    The table is what `check_table` takes; its other columns are not looked at.
    """
    if not hasattr(X, "columns"):
        return _as_floats(X)[:, places] if not _is_float_array(X) else X[:, places]
    names, found = list(X.columns), []
    for j in places:
        cells = np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[names[j]])
        kind = _kind(cells)
        if kind != "numbers":
            raise InvalidInputError(
                f"{what} names {str(names[j])!r}, which holds {kind}, not numbers. Convert it to "
                "numbers, or leave it out."
            )
        found.append(_numbers(cells).astype(np.float64))
    return np.array(found).T.reshape(len(X), len(places))


def check_table(X: Any) -> Any:
    """Refuse what is no table of numbers or categories; return arrays as float64.

    A data frame is returned as `read_frame` does: its columns are checked when encoded.
    """
    if _is_float_array(X) and X.size and np.isfinite(X).all():
        return X
    X = read_frame(X)
    names = _column_names(X)
    if names is None:
        return _as_floats(X)
    if not names or not len(X):
        raise InvalidInputError(
            f"X must have at least one row and one column. Got a data frame of shape {X.shape}."
        )
    return X


def _as_floats(X: Any) -> FloatArray:
    """Return an array of numbers, NaN for its gaps; say what else was given."""
    first = X[0] if isinstance(X, list | tuple) and X else X
    if isinstance(first, dict) and not hasattr(first, "shape"):  # as some sparse arrays are
        given = "a dict" if X is first else "rows that are dicts"
        raise InvalidTypeError(
            f"X must be an array of rows and columns, or a data frame. Got {given}. "
            "pandas.DataFrame(X) makes a frame of it."
        )
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise InvalidInputError(f"X must be rows of the same length. {error}") from error
    if isinstance(X, np.ndarray):
        content = _kind(X.ravel())
        if content in ("text", "bytes", "dates or durations"):
            raise InvalidTypeError(
                f"X must hold numbers. Got an array of {content}. Convert it to numbers; "
                "for categories give a data frame, whose columns may hold text."
            )
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float64)), np.nan)
        X = _numbers(X)
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


def require_unicode(text: Any, where: str) -> None:
    """Refuse a text that no file can hold; other objects are not looked at."""
    if isinstance(text, str) and not is_unicode(text):
        raise InvalidInputError(
            f"{where} is no valid text: it holds half of a surrogate pair, which no file can keep. "
            f"Got {text!a}. Decode the table again, with errors='replace' for instance."
        )


def read_columns(X: Any, categorical: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Return the columns of what `check_table` returned, as they were before any encoding.

    Numbers are floats, NaN for a gap; categories, and what else is no number, are texts,
    None for a gap.
    """
    columns = _columns(X)
    for j, cells in enumerate(columns):
        if categorical[j] or _kind(cells) != "numbers":
            columns[j] = np.array([_text(cell) for cell in cells], dtype=object)
        else:
            columns[j] = _numbers(cells).astype(np.float64)
    return columns


def take_rows(X: Any, rows: NDArray[np.intp] | slice) -> Any:
    """Return the chosen rows of an array or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _is_float_array(X: Any) -> bool:
    return type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2


def _column_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any library, or None for anything else."""
    if not hasattr(X, "shape") or not hasattr(X, "columns"):
        return None
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted(str(name) for name, n in Counter(names).items() if n > 1)
        others = f" and {len(twice) - 8} others" if len(twice) > 8 else ""
        raise InvalidInputError(
            f"Column names must be unique. Got these twice: {twice[:8]}{others}."
        )
    return names


def _columns(X: Any) -> list[NDArray[Any]]:
    """Return the values of the columns, by position: names may be anything, also numbers."""
    if not hasattr(X, "columns"):
        return list(X.T)
    dtypes = set(X.dtypes)
    if len(dtypes) == 1 and isinstance(dtypes.pop(), np.dtype):
        return list(X.to_numpy().T)  # pandas takes its time with many columns one by one
    columns = [column for _, column in X.items()] if hasattr(X, "items") else X.iter_columns()
    return [np.asarray(column) for column in columns]


def _kind(values: NDArray[Any]) -> str:
    """Return in words what a column holds; gaps count as numbers if there is nothing else."""
    if values.ndim != 1:
        return "nested values"
    types = set(map(type, values)) if values.dtype.kind == "O" else {values.dtype.type}
    kinds = {_kind_of(kind) for kind in types}
    odd = sorted(kinds - {"gaps", "numbers", "text"})
    return odd[0] if odd else "text" if "text" in kinds else "numbers"


def _kind_of(kind: type) -> str:
    # The order counts: pandas' NaT is a date to Python, and NumPy's durations are numbers.
    if kind.__name__ in GAP_TYPES:
        return "gaps"
    dates = (date, time, timedelta, np.datetime64, np.timedelta64)
    known = ((str, "text"), (bytes, "bytes"), (dates, "dates or durations"))
    for types, word in (*known, (NUMBER_TYPES, "numbers")):
        if issubclass(kind, types):
            return word
    return f"{kind.__name__} objects"


def _is_missing(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()  # one that signals may not be compared
    is_nan = isinstance(value, numbers.Number) and value != value
    return bool(is_nan) or type(value).__name__ in GAP_TYPES


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind != "O":
        return values
    with np.errstate(all="ignore"):  # from 2.5 on NumPy warns of every gap here
        return np.asarray(np.frompyfunc(_number, 1, 1)(values))


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
    return None if _is_missing(value) else rules.category(value)


def _refuse(wrong: Any, names: Any, what: str, error: Any = InvalidInputError) -> None:
    """Raise an error that lists the wrong columns, by name or number."""
    if not wrong.any():
        return
    which = [str(j if names is None else names[j]) for j in np.flatnonzero(wrong).tolist()]
    shown = ", ".join(which[:8]) + (f" and {len(which) - 8} others" if len(which) > 8 else "")
    raise error("These columns " + what.format(shown))


def _refuse_odd(kinds: list[str], names: list[Any], asked: BoolArray | None = None) -> None:
    """Refuse columns, of those asked about, that hold neither numbers nor text."""
    is_odd = np.array([kind not in ("numbers", "text") for kind in kinds])
    _refuse(
        is_odd if asked is None else is_odd & asked,
        [f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)],
        "hold neither numbers nor categories: {}. Leave them out, or convert them: "
        "dates for instance to seconds since the start.",
        InvalidTypeError,
    )
