"""What the values of a label column mean."""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import Int64Array
from ocfuse.exceptions import TableError
from ocfuse.tables.cells import texts
from ocfuse.tables.dataframes import Series, listed
from ocfuse.validation import ANOMALY, NORMAL, UNKNOWN

NORMAL_WORDS = frozenset(
    ("normal", "ok", "okay", "good", "healthy", "nominal", "fine", "inlier", "benign", "passed")
)
ANOMALY_WORDS = frozenset(
    (
        *("anomaly", "anomalous", "abnormal", "outlier", "bad", "fault", "faulty", "failure"),
        *("failed", "defect", "defective", "broken", "damaged", "nok", "attack", "alarm"),
    )
)
UNKNOWN_WORDS = frozenset({"unknown", "?", "nan", "na", "n/a", "none", "null"})
#: Parts of a column's name that show what true, or 1, means.
BAD_NAME = re.compile(
    r"anomal|abnormal|outlier|(?<!de)fault|fail|defect|alarm|attack|fraud|intrusion"
)
GOOD_NAME = re.compile(r"normal(?!i)|inlier|healthy|(?:^|[^a-z])(?:ok|good)(?:$|[^a-z])")


@dataclass(frozen=True)
class LabelRule:
    """What each value of a label column, in small letters, stands for; an empty cell is unknown.

    Where `anomalous` is None, all other values are anomalies.
    """

    normal: list[str]
    unknown: list[str]
    anomalous: list[str] | None

    def labels(self, column: Series) -> Int64Array:
        """Return +1 (normal), -1 (anomaly) or 0 (unknown, or strange) for every cell."""
        words = _words(column)
        codes = dict.fromkeys(words, UNKNOWN if self.anomalous is not None else ANOMALY)
        codes |= dict.fromkeys(self.anomalous or (), ANOMALY)
        codes |= dict.fromkeys(self.normal, NORMAL) | dict.fromkeys(self.unknown, UNKNOWN)
        return np.array([codes[word] for word in words], dtype=np.int64)

    def is_strange(self, column: Series) -> NDArray[np.bool_]:
        """Return which cells hold labels that training does not explain."""
        if self.anomalous is None:
            return np.zeros(len(column), dtype=bool)
        known = {*self.normal, *self.unknown, *self.anomalous}
        return np.array([word not in known for word in _words(column)], dtype=bool)


def is_label_name(name: str) -> bool:
    """Return whether a column is named as labels usually are."""
    # labels, too, but they do not show what true means
    others = r"(?:^|[^a-z])labels?$|^(?:class|target|y|(?:ground.?)?truth|change.?points?)$"
    return any(re.search(known, name.lower()) for known in (BAD_NAME, GOOD_NAME, others))


def with_unknown(labels: Int64Array | None) -> NDArray[np.float64] | None:
    """Write unknown labels as NaN: without any -1, a detector would refuse 0 beside 1."""
    return None if labels is None else np.where(labels == UNKNOWN, np.nan, labels)


def learn_rule(column: Series, normal: Any = None, anomaly: Any = None) -> LabelRule:
    """Find out what the labels of training rows mean, or ask for `normal` or `anomaly`."""
    counts = Counter(_words(column))
    empty = counts.pop("", 0)
    name = str(column.name)
    if not counts:
        raise TableError(f"Column {name!r} holds no labels: all {empty} cells are empty.")
    if normal is not None or anomaly is not None:
        return _given_rule(name, counts, normal, anomaly)
    rule = _two_valued(name, counts) or _signs(counts, empty) or _spoken(counts, empty)
    if rule is None:
        raise TableError(_not_clear(name, counts, empty))
    return rule


def _not_clear(name: str, counts: Counter[str], empty: int) -> str:
    """Ask which labels are normal; few of them among empty cells are most likely anomalies."""
    by_number = [word for word, _ in counts.most_common()]
    most, least = by_number[0], by_number[-1]
    holds = listed([f"{word} ({n} rows)" for word, n in counts.most_common()])
    normals = f"name the normal ones, for instance normal={most!r}; all others are then anomalies"
    if not empty:
        others = f" Or name the anomalies, such as anomaly={least!r}; all others are then normal."
        say = f"{normals}.{others if len(counts) > 1 else ''}"
    else:
        holds += f"; {empty} cells are empty and count as unknown"
        say = f"name the anomalies, for instance anomaly={most!r}"
        say += "; all others are then normal" if len(counts) > 1 else ""
        say += f". Or {normals}."
    return (
        f"It is not clear which labels of column {name!r} are normal. It holds {holds}. "
        f"{say[0].upper()}{say[1:]}"
    )


def _given_rule(name: str, counts: Counter[str], normal: Any, anomaly: Any) -> LabelRule:
    """Return what is asked for: values not named are the other kind, or unknown beside both."""
    normals = None if normal is None else _named(name, counts, "normal", normal)
    anomalies = None if anomaly is None else _named(name, counts, "anomaly", anomaly)
    if anomalies is None:
        return LabelRule(normals or [], [""], None)
    unnamed = sorted(counts.keys() - {*anomalies, *(normals or ())})
    if normals is None:
        unknown = UNKNOWN_WORDS - {*anomalies}
        normals = [word for word in unnamed if word not in unknown]
        return LabelRule(normals, ["", *sorted(unknown)], anomalies)
    both = [word for word in normals if word in anomalies]
    if both:
        raise TableError(f"A label is normal or an anomaly, not both. Got {listed(both)} as both.")
    return LabelRule(normals, ["", *unnamed], anomalies)


def _named(name: str, counts: Counter[str], what: str, given: Any) -> list[str]:
    """Return the values that the user names, all of which must occur."""
    several = isinstance(given, Collection) and not isinstance(given, str)
    wanted = [_word(str(value)) for value in (given if several else [given])]
    if not wanted or not counts.keys() >= {*wanted}:
        raise TableError(
            f"{what} must name values of column {name!r}, which holds "
            f"{listed([word for word, _ in counts.most_common()])}. Got {listed(wanted) or 'none'}."
        )
    return wanted


def _signs(counts: Counter[str], empty: int) -> LabelRule | None:
    """Read our own coding, unless it could also be 0 and 1, or mark the anomalies by 1."""
    is_clear = "-1" in counts or ("0" not in counts and not empty)
    if counts.keys() <= {"1", "0", "-1"} and is_clear:
        # 1 alone may come from 0 and 1: what a later 0 means is then not known
        return LabelRule(["1"], ["", "0"] if "-1" in counts else [""], ["-1"])
    return None


def _two_valued(name: str, counts: Counter[str]) -> LabelRule | None:
    """Read 0 and 1, or false and true, if the name of the column says which is which."""
    for low, high in (("0", "1"), ("false", "true")):
        if counts.keys() <= {low, high}:
            if BAD_NAME.search(name.lower()):  # first: "abnormal" says both
                return LabelRule([low], [""], [high])
            if GOOD_NAME.search(name.lower()):
                return LabelRule([high], [""], [low])
    return None


def _spoken(counts: Counter[str], empty: int) -> LabelRule | None:
    """Read words: normal ones beside those for anomalies, or beside a single other one.

    Words for anomalies alone are read if there are cells without a label.
    """
    words = counts.keys() - UNKNOWN_WORDS
    others = words - NORMAL_WORDS
    unknown = ["", *sorted(UNKNOWN_WORDS)]
    if words != others and (len(words) <= 2 or others <= ANOMALY_WORDS):
        return LabelRule(sorted(NORMAL_WORDS), unknown, None)
    if empty and words and words <= ANOMALY_WORDS:
        return LabelRule(sorted(NORMAL_WORDS), unknown, sorted(ANOMALY_WORDS))
    return None


def _words(column: Series) -> list[str]:
    return ["" if text is None else _word(text) for text in texts(column)]


def _word(text: str) -> str:
    """Return a label in small letters, and whole numbers without decimals or plus."""
    word = text.strip().lower()
    try:
        number = float(word)
    except ValueError:
        return word
    return str(int(number)) if number.is_integer() else word
