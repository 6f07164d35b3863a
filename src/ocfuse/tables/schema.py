"""Schema: the kinds of the columns of a table, inferred in training."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocfuse.arrays import BoolArray, Int64Array
from ocfuse.column_kinds import is_id_name
from ocfuse.encoder import require_unicode
from ocfuse.exceptions import (
    CellsWarning,
    InvalidInputError,
    RowsWarning,
    TableError,
    TableWarning,
    did_you_mean,
)
from ocfuse.tables import cells
from ocfuse.tables.cells import Column, ColumnKind
from ocfuse.tables.columns import (
    ONE_COLUMN,
    about_infinity,
    by_column,
    category_column,
    first_row,
    infer_column,
    is_time_name,
    mismatch,
    new_gaps,
    not_placed,
    number_column,
    read_cells,
    read_times,
    shown_rows,
    time_column,
    unread_times,
    unusable,
)
from ocfuse.tables.dataframes import FILE, Frame, Series, as_frame, listed, pandas
from ocfuse.tables.labels import LabelRule, is_label_name, learn_rule
from ocfuse.validation import ANOMALY, NORMAL

#: What is said of columns that hold numbers then; a column may be named in several of them.
OF_NUMBERS = ("number", "direction", "limits")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, with their kinds.

    Parameters
    ----------
    columns : list of Column
        The columns of the training table, in its order.
    label_rule : LabelRule or None
        Meaning of the values of the label column; None without one.

    Examples
    --------
    >>> import pandas as pd
    >>> from ocfuse.tables import Schema
    >>> frame = pd.DataFrame({"id": ["a", "b", "c", "d"], "flow": ["1.5", "2", "", "2.5"]})
    >>> for column in Schema.infer(frame).columns:
    ...     print(column.name, "|", column.kind, "|", column.reason)
    id | id | a different text in every row, named like an id
    flow | number | numbers, 1 of 4 cells empty
    """

    columns: list[Column]
    label_rule: LabelRule | None = None

    @classmethod
    def infer(
        cls,
        frame: Any,
        label: str | None = None,
        ignore: str | Sequence[str] = (),
        id: str | None = None,
        time: str | None = None,
        *,
        normal: Any = None,
        anomaly: Any = None,
        group: str | None = None,
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        by: str | Sequence[str] | None = None,
        gives_times: bool = False,
        direction: Mapping[str, str] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> "Schema":
        """Infer the kind of each column from training rows.

        Parameters
        ----------
        frame : data frame
            The rows. Text that can be read as numbers is read as numbers.
        label : str, default=None
            Column with the labels: which rows are normal and which are anomalies.
        ignore : str or sequence of str, default=()
            Columns not to learn from.
        id, time : str, default=None
            Column with a name or number of each row; column with the time of each row.
        normal : str or collection, default=None
            Values of the label column that mean normal. None recognises +1 and -1, pairs such as
            "ok" and "defective", and 0 and 1 if the name of the column shows their meaning.
        anomaly : str or collection, default=None
            Values of the label column that mean anomaly. Other values mean normal, or unknown if
            `normal` is given. An empty cell is unknown.
        group : str, default=None
            Column with the group of each row, such as its run or part.
        categories : str or sequence of str, default=()
            Columns that hold categories even if they look otherwise: codes of digits, text with
            many values.
        numbers : str or sequence of str, default=()
            Columns that hold numbers even if they look like ids or counters of rows.
        by : str or sequence of str, default=None
            Columns that name what a row belongs to, such as its machine; the widest first.
        gives_times : bool, default=False
            Whether the detector needs the times, for seasons.
        direction, limits : dict, default=None
            Columns in which only one side is bad, and limits, as in `FusedDetector`. These columns
            must hold numbers.

        Returns
        -------
        Schema
            One entry per column.
        """
        table = as_frame(frame)
        if not len(table):
            raise TableError("The table has no rows.")
        ignored = [ignore] if isinstance(ignore, str) else list(ignore)
        given = {"label": label, "id": id, "time": time, "group": group}
        asked = [(kind, name) for kind, name in given.items() if name is not None]
        asked += [("ignore", name) for name in ignored]
        several = {"category": categories, "number": numbers, "by": by or ()}
        several |= {"direction": tuple(direction or ()), "limits": tuple(limits or ())}
        for kind, names in several.items():
            asked += [(kind, n) for n in ([names] if isinstance(names, str) else names)]
        require_known(table, asked)
        for what, values in (("normal", normal), ("anomaly", anomaly)):
            if values is not None and label is None:
                raise InvalidInputError(
                    f"{what} needs a label column. Name it, for instance label='state'."
                )
        rule = None if label is None else learn_rule(table[label], normal, anomaly)
        kinds = {name: kind for kind, name in asked}
        found, mistakes = [], []
        for name, values in table.items():
            try:
                found.append(_settled(values, kinds.get(name), rule))
            except TableError as error:  # to raise all of them at once
                mistakes.append(str(error))
        _refuse(mistakes)
        _require_unicode(found, rule)
        found = [_sided(column, (direction or {}).get(column.name, "")) for column in found]
        found = _only_one(_only_one(found, "id", id), "time", time)
        if gives_times:
            found = [replace(c, is_given=True) if c.kind == "time" else c for c in found]
            if not any(column.is_given for column in found):
                raise TableError(
                    "A season needs the times of the rows, and no column holds any: "
                    f"{listed(list(table.columns))}. Name it, for instance time='when'."
                )
        schema = cls(found, rule)
        if not any(column.kind in ("number", "category") for column in schema.columns):
            reasons = listed([f"{column.name} ({column.reason})" for column in schema.columns])
            hint = f" {ONE_COLUMN}" if len(table.columns) == 1 else ""
            raise TableError(
                f"The table has no column of numbers or categories to learn from: {reasons}.{hint}"
            )
        schema._warn_of_training(table)
        return schema

    @property
    def features(self) -> list[str]:
        """Names of the columns that the detector learns from."""
        return [column.name for column in self.columns if column.is_feature]

    @property
    def left_out(self) -> str:
        """The columns that the detector does not learn from, with reasons, as text."""
        others = (c for c in self.columns if c.kind not in ("number", "category", "by"))
        return "; ".join(f"{column.name} ({column.kind}: {column.reason})" for column in others)

    @property
    def times_are_utc(self) -> bool:
        """Whether there are times with a time zone; these are converted to UTC."""
        return any(column.utc for column in self._of_kind("time"))

    def check(self, frame: Any) -> None:
        """Raise an error if the columns of a table are not those of training.

        Parameters
        ----------
        frame : data frame
            The table. Missing columns, columns of another type and infinite numbers are
            errors; further columns, a missing id or time, and cells unlike those of training
            are warnings: unknown categories, gaps in columns that had none, values in columns
            that were empty.
        """
        self.features_of(frame)

    def features_of(self, frame: Any, *, gaps: str = "judge") -> Frame:
        """Check a table, and return its features with the types of training.

        `gaps` is the treatment of new gaps that the warning names (see `FeatureEncoder`).
        """
        table = as_frame(frame)
        wanted = [column for column in self.columns if column.is_feature]
        is_there = set(table.columns)
        missing = [c.name for c in wanted if c.name not in is_there and c.kind != "empty"]
        pairs = [(c, table[c.name]) for c in wanted if c.name in is_there]
        found = {column.name: read_cells(values, column, gaps) for column, values in pairs}
        wrong = [read.mistake for read in found.values() if read.mistake]
        if missing or wrong:
            raise mismatch(missing, self._extra(table), wrong, len(table.columns))
        numbers = [(values, found[c.name].values) for c, values in pairs if c.kind == "number"]
        mistakes = [about_infinity(values, read) for values, read in numbers]
        _refuse(
            [mistake for mistake in mistakes if mistake],
            "Leave such rows out, or such cells empty: they are then judged by the others.",
        )
        self._warn(table, [change for read in found.values() for change in read.changes])
        features = {
            c.name: found[c.name].values if c.name in found else np.full(len(table), np.nan)
            for c in wanted
        }
        return pandas().DataFrame(features, index=table.index)

    def unusable_rows(self, frame: Any, *, gaps: bool = True) -> BoolArray:
        """Return which rows cannot be scored: text among numbers, infinity, perhaps new gaps."""
        table = as_frame(frame)
        result = np.zeros(len(table), dtype=bool)
        for column in self.columns:
            if column.is_feature and column.name in table.columns:
                result |= unusable(table[column.name], column, gaps)
        return result

    def gaps_of(self, frame: Any, *, gaps: bool = True) -> list[str]:
        """Return for each row its new gaps, if `gaps`, and its group and time if not known."""
        table = as_frame(frame)
        names: list[list[str]] = [[] for _ in range(len(table))]
        for column in self.columns:
            if column.is_feature and column.name in table.columns:
                is_missing = not_placed(table[column.name], column)
                if gaps:
                    is_missing |= new_gaps(table[column.name], column)
                for i in np.flatnonzero(is_missing):
                    names[i].append(column.name)
        return [listed(row) for row in names]

    def labels_of(self, frame: Any) -> Int64Array | None:
        """Return +1, -1 or 0 for every row, or None if there is no label column."""
        column = self._column_of(as_frame(frame), "label")
        if column is None or self.label_rule is None:
            return None
        is_strange = self.label_rule.is_strange(column)
        if is_strange.any():
            what = f"Column {column.name!r} holds labels not seen in training, taken for unknown"
            first = first_row(column, is_strange)
            warnings.warn(RowsWarning(what, int(is_strange.sum()), first), stacklevel=3)
        return self.label_rule.labels(column)

    def ids_of(self, frame: Any) -> Series | None:
        """Return the id column, or None if there is none."""
        return self._column_of(as_frame(frame), "id")

    def groups_of(self, frame: Any) -> list[str] | None:
        """Return the group of every row, or None if there is no group column."""
        column = self._column_of(as_frame(frame), "group")
        if column is None:
            return None
        groups = cells.texts(column)
        is_gap = np.array([group is None for group in groups])
        if is_gap.any():
            raise TableError(
                f"Column {column.name!r} names no group in {shown_rows(column, is_gap)}. Every "
                "row needs one: give rows that stand alone a name of their own."
            )
        return [str(group) for group in groups]

    def times_of(self, frame: Any) -> Series | None:
        """Return the times of the rows (NaT for what is no time), or None if there are none."""
        found = self._times(as_frame(frame))
        return None if found is None else found[0]

    def require_local_times(self, table: Frame) -> None:
        """Refuse times with a zone where training had none, or the other way round."""
        column = self._column_of(table, "time")
        read = None if column is None else read_cells(column, self._of_kind("time")[0])
        if read is not None and read.mistake:
            raise mismatch([], [], [read.mistake], len(table.columns))

    def reads_times(self, frame: Any) -> bool:
        """Return whether the times, if there are any, are all written as in training.

        Other times are read by what the rows around them look like.
        """
        column = self._column_of(as_frame(frame), "time")
        return column is None or not unread_times(column, self._of_kind("time")[0]).any()

    def shown_times_of(self, frame: Any) -> Series | None:
        """Return the times to show: where some cannot be read, as text, and these as they are."""
        table = as_frame(frame)
        found = self._times(table)
        if found is None or not found[1].any():
            return None if found is None else found[0]
        times, lost = found
        shown = times.map(str).mask(times.isna(), None).mask(lost, table[times.name].astype(str))
        # pandas before 3 would make a word of what is missing
        return shown.astype("str").where(shown.notna())

    def files_of(self, frame: Any) -> Series | None:
        """Return the files of the rows of a folder, or None if there is no such column."""
        table = as_frame(frame)
        is_known = any(c.name == FILE and c.kind not in ("ignored", "group") for c in self.columns)
        return None if FILE not in table.columns or is_known else table[FILE]

    def _times(self, table: Frame) -> tuple[Series, BoolArray] | None:
        column = self._column_of(table, "time")
        if column is None:
            return None
        times, lost, _, news = read_times(column, self._of_kind("time")[0])
        for warning in news:
            warnings.warn(warning, stacklevel=4)
        return times, lost

    def _of_kind(self, kind: str) -> list[Column]:
        return [column for column in self.columns if column.kind == kind]

    def _column_of(self, table: Frame, kind: str) -> Series | None:
        names = [column.name for column in self._of_kind(kind) if column.name in table.columns]
        return table[names[0]] if names else None

    def _extra(self, table: Frame) -> list[str]:
        known = {FILE, *(column.name for column in self.columns)}
        return [name for name in table.columns if name not in known]

    def _warn(self, table: Frame, changes: list[CellsWarning.Change]) -> None:
        extra = self._extra(table)
        if extra:
            _warn(f"These columns were not there in training and are not used: {listed(extra)}.")
        for kind in ("id", "time"):
            lost = [column.name for column in self._of_kind(kind) if column.name not in table]
            if lost:
                _warn(f"The {kind} column {lost[0]!r} is missing: the result will be without it.")
        if changes:
            warnings.warn(CellsWarning(changes), stacklevel=4)

    def _warn_of_training(self, table: Frame) -> None:
        constant = [column.name for column in self.columns if column.is_constant]
        if constant:
            _warn(
                f"Columns with the same value in every row: {listed(constant)}. They count only if "
                "they change later; leave them out if such a change means nothing."
            )
        learned = {c.name for c in self.columns if c.kind in ("number", "category")}
        for name, column in table.items():
            if name in learned:
                self._warn_of_name(column)

    def _warn_of_name(self, column: Series) -> None:
        """Warn of a column that is learned, but is not named like a feature."""
        name = str(column.name)
        if is_label_name(name) and column.nunique() <= 10:
            label = f"label={name!r} or " if self.label_rule is None else ""
            what, say = "looks like labels", f"{label}ignore={name!r}"
        elif is_time_name(name):
            what, say = "is named like a time", f"time={name!r} or ignore={name!r}"
        elif is_id_name(name):
            values, is_text = cells.numbers(column)
            if not is_text.any() and (values[~np.isnan(values)] % 1 != 0).any():
                return  # ids are text or whole numbers
            what = "is named like an id"
            say = f"id={name!r}, group={name!r} or ignore={name!r}"
        else:
            return
        _warn(f"Column {name!r} {what}, but is learned as a feature. If it is none, say {say}.")


def require_known(table: Frame, asked: list[tuple[str, str]]) -> None:
    """Refuse names that are no columns, and a column that is asked to be two things."""
    for what, name in asked:
        if name not in table.columns:
            raise InvalidInputError(
                f"{what} must name a column of the table: {listed(list(table.columns))}. "
                f"Got {what}={name!r}. {did_you_mean(name, map(str, table.columns))}".rstrip()
            )
        others = [other for other, taken in asked if taken == name and other != what]
        if others and not {what, *others} <= set(OF_NUMBERS):
            raise InvalidInputError(f"Column {name!r} cannot be both {what} and {others[0]}.")


def _settled(values: Series, asked: str | None, rule: LabelRule | None) -> Column:
    """Return what a column holds, as asked for or as found."""
    if asked is None:
        return infer_column(values)
    if asked == "label" and rule is not None:
        return _label_column(values, rule)
    read = {
        "time": time_column,
        "category": category_column,
        "by": by_column,
    }
    if asked in OF_NUMBERS:
        return number_column(values, asked)
    if asked in read:
        return read[asked](values)
    kinds: dict[str, ColumnKind] = {"id": "id", "group": "group", "ignore": "ignored"}
    return Column(str(values.name), kinds[asked], "as asked for")


def _sided(column: Column, side: str) -> Column:
    """Return a column with the side that counts in its reason."""
    if not side:
        return column
    return replace(column, reason=f"{column.reason}, of which only {side} ones count")


def _refuse(mistakes: list[str], advice: str = "", most: int = 4) -> None:
    """Raise an error that describes columns with cells that cannot be used, or counts them."""
    if mistakes:
        more = len(mistakes) - most
        rest = f"{more} more columns have such cells. " if more > 0 else ""
        raise TableError(f"{' '.join(mistakes[:most])} {rest}{advice}".strip())


def _label_column(values: Series, rule: LabelRule) -> Column:
    labels = rule.labels(values)
    counts = {"normal": NORMAL, "anomalies": ANOMALY, "unknown": 0}
    shown = ", ".join(f"{(labels == code).sum()} {word}" for word, code in counts.items())
    which, code = ("normal is", NORMAL) if (labels == NORMAL).any() else ("anomalies are", ANOMALY)
    seen = sorted({str(text) for text in values[labels == code]})
    return Column(str(values.name), "label", f"as asked for: {shown}; {which} {listed(seen)}")


def _only_one(columns: list[Column], kind: str, given: str | None) -> list[Column]:
    """Keep one column of a kind, the one asked for or the first; the others are ignored."""
    names = [column.name for column in columns if column.kind == kind]
    kept = given if given is not None else next(iter(names), None)
    return [
        replace(column, kind="ignored", reason=f"another {kind}: {column.reason}")
        if column.kind == kind and column.name != kept
        else column
        for column in columns
    ]


def _warn(text: str) -> None:
    warnings.warn(text, TableWarning, stacklevel=4)


def _require_unicode(columns: list[Column], rule: LabelRule | None) -> None:
    """Refuse what a model would keep of a table, but no file can hold."""
    for column in columns:
        require_unicode(column.name, "A column name")
        for text in column.categories:
            require_unicode(text, f"Column {column.name!r}")
    if rule is not None:
        for word in (*rule.normal, *rule.unknown, *(rule.anomalous or ())):
            require_unicode(word, "The label column")
