"""One column of a table: what it holds, and how that is read from later tables."""

from dataclasses import dataclass, field

NUMBER, CATEGORY, TIME, ID = "number", "category", "time", "id"
LABEL, GROUP, IGNORED, EMPTY = "label", "group", "ignored", "empty"
#: Kinds that a detector is given: a value where training had none is a change.
FEATURES = (NUMBER, CATEGORY, EMPTY)


@dataclass(frozen=True)
class Column:
    """A column of a table, as training has found it.

    Attributes
    ----------
    name : str
        Its name.
    kind : str
        "number", "category", "time", "id", "label", "group", "ignored" or "empty".
    reason : str
        Why, in words to show.
    has_gaps : bool
        Whether training rows had no value here; if not, later gaps are told, and judged as the
        encoder of the detector says.
    categories : list of str
        Values of a category that training has seen, sorted.
    format : str
        How times are written: "ISO8601", "number" or codes as of `strptime`. How numbers
        are written that are text: such as "$1,000.0"; empty if they are plain.
    utc : bool
        Whether times are tied to a time zone; they are then given in UTC.
    is_constant : bool
        Whether all training rows had the same value.
    """

    name: str
    kind: str
    reason: str
    has_gaps: bool = False
    categories: list[str] = field(default_factory=list)
    format: str = ""
    utc: bool = False
    is_constant: bool = False
