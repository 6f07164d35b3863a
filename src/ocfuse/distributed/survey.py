"""What all rows say together: how many, of which groups, and which of them are unlike most."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.distributed.keys import KeyArray, row_keys
from ocfuse.tables.cells import is_number_type, is_time_type, texts
from ocfuse.tables.frames import Frame, Series, pandas
from ocfuse.tables.kinds import odd_type
from ocfuse.tables.names import FILE
from ocfuse.tables.schema import require_known

#: What makes rows worth having: the label, a gap, an infinite number, or a word, with its column.
Trait: TypeAlias = tuple[str, ...]
#: Rows by number, each with its key.
Drawn: TypeAlias = dict[int, int]

LABEL, GAP, INFINITE, WORD = "label", "gap", "infinite", "word"
#: Rows of every label that are drawn, if there are so many: anomalies may be rare.
LABELLED = 200
#: A column with more different words than this holds no categories; labels likewise.
MOST_WORDS = 100


@dataclass(frozen=True)
class Question:
    """What is asked of all rows.

    Attributes
    ----------
    seed : int
        Which rows are drawn.
    group, label : str or None
        Columns of this meaning.
    ignore : tuple of str
        Columns that do not matter.
    """

    seed: int
    group: str | None = None
    label: str | None = None
    ignore: tuple[str, ...] = ()

    def names(self) -> list[tuple[str, str]]:
        """Return what is asked for by name: the meaning, and the column."""
        given = [
            ("group", self.group),
            ("label", self.label),
            *(("ignore", n) for n in self.ignore),
        ]
        return [(what, name) for what, name in given if name is not None]


@dataclass
class Survey:
    """What is known of some rows.

    Attributes
    ----------
    n_rows : int
        How many there are.
    groups : Counter
        Rows of every group.
    drawn : dict of Trait
        Rows with the lowest keys among those that have a trait.
    crowded : set of str
        Columns of too many words, of which none is kept.
    """

    n_rows: int = 0
    groups: Counter[str] = field(default_factory=Counter)
    drawn: dict[Trait, Drawn] = field(default_factory=dict)
    crowded: set[str] = field(default_factory=set)

    def add(self, other: "Survey") -> None:
        """Take in what is known of other rows; the order does not matter."""
        self.n_rows += other.n_rows
        self.groups.update(other.groups)
        for trait, rows in other.drawn.items():
            self.drawn[trait] = lowest(self.drawn.get(trait, {}) | rows, _most(trait))
        self.crowded |= other.crowded
        self._forget_crowded()

    def witnesses(self) -> list[int]:
        """Return the numbers of the rows that have a trait of their own."""
        return sorted({number for rows in self.drawn.values() for number in rows})

    def _forget_crowded(self) -> None:
        words = Counter(trait[1] for trait in self.drawn if trait[0] in (WORD, LABEL))
        self.crowded |= {column for column, n in words.items() if n > MOST_WORDS}
        self.drawn = {
            trait: rows
            for trait, rows in self.drawn.items()
            if trait[0] not in (WORD, LABEL) or trait[1] not in self.crowded
        }


def survey(frames: Iterable[Frame], start: int, question: Question) -> Survey:
    """Ask rows, of which the first has the number `start`."""
    result = Survey()
    for frame in frames:
        result.add(_survey_frame(frame, start + result.n_rows, question))
    return result


def lowest(rows: Drawn, n: int) -> Drawn:
    """Return the n rows with the lowest keys."""
    if len(rows) <= n:
        return rows
    return dict(sorted(rows.items(), key=lambda row: (row[1], row[0]))[:n])


def codes_of(column: Series) -> tuple[NDArray[np.intp], list[str | None]]:
    """Return the place of every cell in a list of different texts, -1 for gaps."""
    codes, values = pandas().factorize(column)
    return codes, texts(pandas().Series(values))


def _survey_frame(frame: Frame, start: int, question: Question) -> Survey:
    require_known(frame, question.names())  # by the first rows: all of them may take hours
    keys = row_keys(start, len(frame), question.seed)
    found: dict[Trait, Any] = {}
    result = Survey(len(frame))
    for name in map(str, frame.columns):
        if name not in (*question.ignore, FILE):  # what is no feature depends on the cut
            found.update(_traits(frame[name], name, question, result.crowded))
    if question.group is not None:
        codes, names = codes_of(frame[question.group])
        counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
        for group, n in zip(names, counts, strict=True):
            result.groups[str(group)] += n
    result.drawn = {
        trait: _draw(np.flatnonzero(mask), keys, start, _most(trait))
        for trait, mask in found.items()
    }
    return result


def _traits(column: Series, name: str, question: Question, crowded: set[str]) -> dict[Trait, Any]:
    """Return which rows have a trait, by the trait."""
    gaps = column.isna().to_numpy(dtype=bool)
    found: dict[Trait, Any] = {(GAP, name): gaps} if gaps.any() else {}
    if is_number_type(column.dtype) and name != question.label:
        infinite = np.isinf(column.to_numpy(np.float64, na_value=np.nan))
        return found | ({(INFINITE, name): infinite} if infinite.any() else {})
    if name == question.group or is_time_type(column.dtype) or odd_type(column):
        return found
    codes, words = codes_of(column)
    if len(words) > MOST_WORDS:
        crowded.add(name)
        return found
    kind = LABEL if name == question.label else WORD
    masks: defaultdict[Trait, Any] = defaultdict(lambda: np.zeros(len(column), dtype=bool))
    for code, word in enumerate(words):
        masks[kind, name, str(word)] |= codes == code
    return found | masks


def _draw(numbers: NDArray[np.intp], keys: KeyArray, start: int, n: int) -> Drawn:
    chosen = numbers[np.argsort(keys[numbers], kind="stable")[:n]]
    return {start + int(i): int(keys[i]) for i in chosen}


def _most(trait: Trait) -> int:
    return LABELLED if trait[0] == LABEL else 1
