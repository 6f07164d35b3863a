"""Errors and warnings that ocfuse raises.

The tree::

    OcfuseError
    ├── ClusterError                           machines that work together do not
    ├── DatasetError                           a data set is not what it should be
    │   └── DatasetUnavailableError            it is not here and cannot be fetched
    ├── FolderInUseError                       another process writes there
    ├── InconsistentMeasuresError              systems were not measured in the same way
    ├── InvalidInputError (also ValueError)    what was given cannot be used
    │   ├── ColumnMismatchError                a table has not the columns of training
    │   ├── InvalidTypeError (also TypeError)  it is not even of a usable type
    │   └── TableError                         a table cannot be read, or its cells not used
    ├── MemberError                            a member of the ensemble failed
    ├── MissingPackageError (also ImportError) an optional package is not installed
    ├── ModelFileError (also ValueError)       a model file cannot be loaded
    │   └── UntrustedTypeError                 it holds types that nobody vouched for
    └── NotEnoughMemoryError (also MemoryError) a fit would need more than there is

    OcfuseWarning (UserWarning)
    ├── ConvergenceWarning                     a solver stopped before its tolerance
    ├── CopiedRowsWarning                      training rows are copies of others
    ├── DatasetWarning                         a damaged data set was left out
    ├── DriftWarning                           channels wander between blocks of training
    ├── EqualWeightsWarning                    a fusion found nothing to learn
    ├── FewSamplesWarning                      too few rows for what was asked
    ├── LabelsWarning                          y holds no labels and was not learned from
    ├── MemberWarning                          a failing member was left out
    ├── ModelVersionWarning                    a model file comes from other versions
    ├── PseudoNegativeWarning                  pseudo-anomalies cannot tell members apart
    ├── SuspectInputWarning                    input can be used, but is hardly what was meant
    ├── SuspectRowsWarning                     many training rows lie far from the others
    ├── TableWarning                           a table was read in a way that may be wrong
    │   ├── CellsWarning                       some of its cells are unlike those of training
    │   ├── IgnoredColumnsWarning              some of its columns are not learned from
    │   └── RowsWarning                        some of its rows are not like those of training
    └── ThresholdWarning                       alarms may be more or fewer than stated
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = [
    "CellsWarning",
    "ClusterError",
    "ColumnMismatchError",
    "ConvergenceWarning",
    "CopiedRowsWarning",
    "DatasetError",
    "DatasetUnavailableError",
    "DatasetWarning",
    "DriftWarning",
    "EqualWeightsWarning",
    "FewSamplesWarning",
    "FolderInUseError",
    "IgnoredColumnsWarning",
    "InconsistentMeasuresError",
    "InvalidInputError",
    "InvalidTypeError",
    "LabelsWarning",
    "MemberError",
    "MemberWarning",
    "MissingPackageError",
    "ModelFileError",
    "ModelVersionWarning",
    "NotEnoughMemoryError",
    "OcfuseError",
    "OcfuseWarning",
    "PseudoNegativeWarning",
    "RowsWarning",
    "SuspectInputWarning",
    "SuspectRowsWarning",
    "TableError",
    "TableWarning",
    "ThresholdWarning",
    "UntrustedTypeError",
]


class OcfuseError(Exception):
    """Base of every error that ocfuse raises on purpose."""


class ClusterError(OcfuseError):
    """Say which machines cannot be reached, or what made them fail."""


class DatasetError(OcfuseError):
    """Say what is wrong with the file of a data set."""


class DatasetUnavailableError(DatasetError):
    """Say why a data set cannot be had, and how to supply it by hand."""


class FolderInUseError(OcfuseError):
    """Say which process writes into a folder, and what to do if it has ended."""


class InvalidInputError(OcfuseError, ValueError):
    """Say what was given, what is expected and what to do about it."""


class ColumnMismatchError(InvalidInputError):
    """List the columns of a table that are missing, extra or of another type."""

    #: Names, filled in where the error is raised; `wrong` says what each column holds.
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


class InvalidTypeError(InvalidInputError, TypeError):
    """Say that the type of what was given cannot be used."""


class TableError(InvalidInputError):
    """Name the file, line or column of a table that cannot be used, and say why."""


class MemberError(OcfuseError):
    """Name the member of an ensemble that failed; chained from its own error."""


class MissingPackageError(OcfuseError, ImportError):
    """Name the optional package that is missing, and the extra that brings it."""


class ModelFileError(OcfuseError, ValueError):
    """Say what is wrong with a model file."""


class UntrustedTypeError(ModelFileError):
    """List the types of a model file that nobody vouched for."""


class NotEnoughMemoryError(OcfuseError, MemoryError):
    """Say how much memory a fit needs, how much there is and what to do about it."""


class OcfuseWarning(UserWarning):
    """Base of every warning that ocfuse gives."""


class ConvergenceWarning(OcfuseWarning):
    """Tell that a solver stopped before its tolerance, with status and gap."""


class CopiedRowsWarning(OcfuseWarning):
    """Tell how many training rows are copies of others, and what counts instead."""


class DatasetWarning(OcfuseWarning):
    """Name the file of a data set that was left out, and say why."""


class DriftWarning(OcfuseWarning):
    """Tell which channels of a stream do not stay where they were."""


class EqualWeightsWarning(OcfuseWarning):
    """Tell that a fusion found nothing to learn and trusts all members alike."""


class FewSamplesWarning(OcfuseWarning):
    """Tell that there are too few rows for what was asked, and what holds instead."""


class LabelsWarning(OcfuseWarning):
    """Tell that labels were not learned from, as they do not say normal or anomaly."""


class MemberWarning(OcfuseWarning):
    """Name the member of an ensemble that was left out, and say why."""


class ModelVersionWarning(OcfuseWarning):
    """Tell that a model file was written by other versions."""


class PseudoNegativeWarning(OcfuseWarning):
    """Tell that pseudo-anomalies cannot tell the members apart, and what to do."""


class SuspectInputWarning(OcfuseWarning):
    """Tell that input can be used but is hardly what was meant, and what to do."""


class SuspectRowsWarning(OcfuseWarning):
    """Tell that many training rows lie far from the others, and what to do."""


class TableWarning(OcfuseWarning):
    """Tell how a table was read, where that may be wrong, and what to do then."""


class CellsWarning(TableWarning):
    """Tabulate cells of a table that are unlike those of training.

    Parameters
    ----------
    changes : sequence of Change
        One line per column and kind of change.
    """

    class Change(NamedTuple):
        """Cells of one column that are unlike those of training, and what they hold."""

        column: str
        what: str
        values: tuple[str, ...]
        n_rows: int
        first: str  # the row of the first of them

    def __init__(self, changes: Sequence["CellsWarning.Change"]) -> None:
        self.changes = tuple(CellsWarning.Change(*change) for change in changes)
        lines = [_line(change) for change in self.changes[:20]]
        more = len(self.changes) - len(lines)
        lines += [f"and {more} more columns"] if more > 0 else []
        super().__init__("Cells unlike those of training:\n" + "\n".join(f"  {x}" for x in lines))

    def __reduce__(self) -> tuple[type["CellsWarning"], tuple[tuple["CellsWarning.Change", ...]]]:
        return type(self), (self.changes,)  # for other processes

    @classmethod
    def added_up(cls, parts: Sequence["CellsWarning"]) -> "CellsWarning":
        """Return one table for several chunks of rows."""
        found: dict[tuple[str, str], CellsWarning.Change] = {}
        for change in (change for part in parts for change in part.changes):
            key = change.column, change.what
            before = found.get(key, change._replace(values=(), n_rows=0))
            found[key] = before._replace(
                values=tuple(sorted({*before.values, *change.values})),
                n_rows=before.n_rows + change.n_rows,
            )
        return cls(tuple(found.values()))


def _line(change: CellsWarning.Change) -> str:
    """Return one line of the table."""
    values = [repr(value) for value in change.values[:5]]
    more = len(change.values) - len(values)
    shown = f" ({', '.join(values)}{f' and {more} more' if more > 0 else ''})" if values else ""
    name = change.column if change.column.isprintable() else repr(change.column)
    rows = "" if change.n_rows == 1 else f"{change.n_rows:,} rows, the first of them "
    return f"{name}: {change.what}{shown}: {rows}{change.first}"


class IgnoredColumnsWarning(TableWarning):
    """Name the columns that are not learned from, and say why."""


class RowsWarning(TableWarning):
    """Count rows of a table that something is odd about.

    Parameters
    ----------
    what : str
        What is odd, which is the same for all chunks of a table.
    n_rows : int
        How many rows.
    first : str
        The first of them.
    """

    def __init__(self, what: str, n_rows: int, first: str) -> None:
        count = "" if n_rows == 1 else f"{n_rows:,} rows, the first of them "
        super().__init__(f"{what}: {count}{first}.")
        self.what, self.n_rows, self.first = what, n_rows, first

    def __reduce__(self) -> tuple[type["RowsWarning"], tuple[str, int, str]]:
        return type(self), (self.what, self.n_rows, self.first)  # for other processes


class ThresholdWarning(OcfuseWarning):
    """Tell that alarms may be more or fewer than the stated rate, and why."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a question about the known names that are close to one, or nothing."""
    folded = {choice.casefold(): choice for choice in known}
    given = str(name).casefold()
    close = difflib.get_close_matches(given, folded, n=3, cutoff=0.5)
    found = [key for key in folded if given and given in key]
    suggestions = [folded[key] for key in dict.fromkeys([*close, *found])][:3]
    return f"Did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""


def unknown_name(what: str, name: str, known: Iterable[str], hint: str = "") -> InvalidInputError:
    """Return the error for a name that is not known, with suggestions and perhaps a hint."""
    choices, most = list(known), 12
    more = f" and {len(choices) - most} more" if len(choices) > most else ""
    listed = f"Known are {', '.join(choices[:most])}{more}." if choices else ""
    advice = did_you_mean(name, choices) or listed or "None is known here."
    return InvalidInputError(f"{what} must be a known name. Got {name!r}. {advice} {hint}".rstrip())


def not_one_of(what: str, given: object, known: Iterable[str], other: str = "") -> str:
    """Return the message for a name that is none of a few, all of which are listed."""
    choices = list(known)
    names = ", ".join(map(repr, choices))
    text = f"{what} must be one of {names}{other}. Got {given!r}."
    return f"{text} {did_you_mean(given, choices) if isinstance(given, str) else ''}".rstrip()


class InconsistentMeasuresError(OcfuseError):
    """Say that measures cannot come from the same scores: the measuring is wrong."""
