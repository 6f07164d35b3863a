"""A reproducible sample of all rows, the same however they are cut up."""

import hashlib
import math
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.distributed.cluster import Client, guarded, large_messages, naming_killers, same
from ocfuse.distributed.parquet import Piece, pieces_of, unread_in
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, TableError
from ocfuse.tables.cells import is_number_type, is_time_type, texts
from ocfuse.tables.columns import odd_type
from ocfuse.tables.dataframes import FILE, Frame, Series, as_frame, pandas
from ocfuse.tables.schema import require_known

#: Rows of a group below which groups are left out rather than thinned further.
LEAST_PER_GROUP = 32
#: What to do when there is no cluster any more.
START_AGAIN = "Start again, once there is a cluster."
#: Standard deviations by which more rows are fetched than are wanted.
SLACK = 6.0

#: What makes rows worth having: the label, a gap, an infinite number, or a word, with its column.
Trait: TypeAlias = tuple[str, ...]
#: Rows by number, each with its key.
Drawn: TypeAlias = dict[int, int]

LABEL, GAP, INFINITE, WORD = "label", "gap", "infinite", "word"
#: Rows of every label that are drawn, if there are so many: anomalies may be rare.
LABELLED = 200
#: A column with more different words than this holds no categories; labels likewise.
MOST_WORDS = 100

KeyArray: TypeAlias = NDArray[np.uint64]

#: Keys are spread evenly below this.
KEYS = 2.0**64
#: Of the generator splitmix64.
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


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
class RowSurvey:
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

    def add(self, other: "RowSurvey") -> None:
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


def survey(frames: Iterable[Frame], start: int, question: Question) -> RowSurvey:
    """Ask rows, of which the first has the number `start`."""
    result = RowSurvey()
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


def _survey_frame(frame: Frame, start: int, question: Question) -> RowSurvey:
    require_known(frame, question.names())  # by the first rows: all of them may take hours
    keys = row_keys(start, len(frame), question.seed)
    found: dict[Trait, Any] = {}
    result = RowSurvey(len(frame))
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


@dataclass(frozen=True)
class Share:
    """How many rows to draw, of how many."""

    wanted: int
    there: int

    def limit(self, slack: float = SLACK) -> float:
        """Return a key below which there are enough rows, but for a chance of 1e-9."""
        most = self.wanted + slack * math.sqrt(self.wanted) + slack
        return KEYS if most >= self.there else KEYS * most / self.there


@dataclass(frozen=True)
class SamplePlan:
    """Which rows to fetch.

    Attributes
    ----------
    question : Question
        What was asked.
    whole : Share or None
        Of all rows; None if they come in groups.
    groups : dict of Share
        Of the rows of each group.
    witnesses : list of int
        Rows to fetch whatever their keys are.
    """

    question: Question
    whole: Share | None
    groups: dict[str, Share]
    witnesses: list[int]

    def fetch(self, frames: Iterable[Frame], start: int) -> Frame:
        """Return those of the rows that may be drawn, by number; few more than are wanted."""
        chosen = []
        for frame in frames:
            keys = row_keys(start, len(frame), self.question.seed)
            numbers = np.arange(start, start + len(frame))
            taken = keys < self._limits(frame)
            taken |= np.isin(numbers, self.witnesses)
            chosen.append(frame[taken].set_axis(numbers[taken], axis=0))
            start += len(frame)
        return pandas().concat(chosen) if chosen else None

    def cut(self, frame: Frame) -> Frame:
        """Return exactly the rows that are wanted, in their order."""
        numbers = frame.index.to_numpy()
        keys = keys_of(numbers, self.question.seed)
        taken = np.isin(numbers, self.witnesses)
        for rows, share in self._strata(frame):
            lowest = rows[np.argsort(keys[rows], kind="stable")[: share.wanted]]
            taken[lowest] = True
        return frame[taken].sort_index()

    def _limits(self, frame: Frame) -> Any:
        """Return the limit of every key."""
        if self.whole is not None:
            return self.whole.limit()
        codes, names = codes_of(frame[self.question.group])
        limits = [self.groups[g].limit() if g in self.groups else 0.0 for g in map(str, names)]
        return np.array([*limits, 0.0])[codes]  # the last one is for gaps

    def _strata(self, frame: Frame) -> Iterator[tuple[Any, Share]]:
        """Yield the rows of every stratum and its share."""
        if self.whole is not None:
            yield np.arange(len(frame)), self.whole
            return
        codes, names = codes_of(frame[self.question.group])
        texts = np.array([*map(str, names), ""], dtype=object)[codes]
        for group, share in self.groups.items():
            yield np.flatnonzero(texts == group), share


def sample(
    data: Any,
    n: int,
    *,
    client: Client,
    seed: int = 0,
    group: str | None = None,
    label: str | None = None,
    ignore: tuple[str, ...] = (),
) -> Frame:
    """Draw rows that stand for all of a table.

    Which rows are drawn depends on their numbers in the table and on the seed, not on how they
    are cut into files or partitions, nor on the workers. With a group column every group has
    its share, small groups whole; if that left fewer than 32 rows to a group, fewer groups are
    drawn. Some rows are added to the n: one for every column with gaps or infinite numbers and
    for every category, so that training knows of them, and up to 200 of every label.

    Parameters
    ----------
    data : path-like or dask.dataframe.DataFrame
        A folder of Parquet files, or a data frame of Dask, whose order of rows counts.
    n : int
        How many rows to draw.
    client : distributed.Client
        The cluster (see `connected`).
    seed : int, default=0
        Another one draws other rows.
    group, label : str, default=None
        Columns of this meaning.
    ignore : tuple of str, default=()
        Columns that do not matter.

    Returns
    -------
    pandas.DataFrame
        The rows in their order; the index is their number in the table.
    """
    if not isinstance(n, int | np.integer) or n < 2:
        raise InvalidInputError(f"n must be a whole number of rows, at least 2. Got n={n!r}.")
    question = Question(seed, group, label, tuple(ignore))
    with guarded(client, START_AGAIN):
        return _drawn(data, n, client, question)


def _drawn(data: Any, n: int, client: Client, question: Question) -> Frame:
    parts, starts = _parts(data, client)
    known = RowSurvey()
    for found in _everywhere(client, _survey_part, parts, starts, question):
        known.add(found)
    if not known.n_rows:
        raise TableError("The table has no rows.")
    plan = make_plan(known, question, n)
    fetched = [f for f in _everywhere(client, _fetch_part, parts, starts, plan) if f is not None]
    return plan.cut(pandas().concat(fetched))


def make_plan(known: RowSurvey, question: Question, n: int) -> SamplePlan:
    """Share n rows out among all."""
    if question.group is None:
        return SamplePlan(question, Share(n, known.n_rows), {}, known.witnesses())
    sizes = known.groups
    most = _level(sorted(sizes.values()), n)
    names = list(sizes)
    if most < min(LEAST_PER_GROUP, max(sizes.values(), default=0)):
        most = LEAST_PER_GROUP
        names.sort(key=lambda name: (text_key(name, question.seed), name))
        filled = np.cumsum([min(sizes[name], most) for name in names])
        names = names[: max(2, int(np.searchsorted(filled, n, "right")))]
    shares = {name: Share(min(sizes[name], most), sizes[name]) for name in names}
    return SamplePlan(question, None, shares, known.witnesses())


def _level(sizes: list[int], n: int) -> int:
    """Return the most rows of a group so that all together have at most n."""
    left = n
    for i, size in enumerate(sizes):
        others = len(sizes) - i
        if size * others >= left:
            return left // others
        left -= size
    return sizes[-1] if sizes else 0


def _parts(data: Any, client: Client) -> tuple[list[Any], list[int]]:
    """Return files, or partitions not computed yet, and the number of the first row of each."""
    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        parts = data.to_delayed()
        sizes = [len(part) for part in _everywhere(client, _index_of, parts, [0] * len(parts))]
        return parts, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int).tolist()
    if not isinstance(data, str | os.PathLike):
        raise InvalidTypeError(
            "data must be a folder of Parquet files or a data frame of Dask. Got "
            f"{type(data).__name__}. What is in memory already is learned by model.fit."
        )
    pieces = pieces_of(data, alike=True)
    for unread in unread_in(data):
        warnings.warn(unread, stacklevel=2)
    for piece in pieces:
        if piece.mistake:
            raise TableError(piece.mistake)
    return pieces, [piece.start for piece in pieces]


def _everywhere(
    client: Client, function: Callable[..., Any], parts: list[Any], starts: list[int], *args: Any
) -> Iterator[Any]:
    """Yield what a function says of every part, in the order of the parts."""
    # As results of a task, unlike scattered ones, they survive the worker that holds them.
    with large_messages():
        shared = [client.submit(same, argument, pure=False) for argument in args]
    futures = []
    for part, start in zip(parts, starts, strict=True):
        there = part if isinstance(part, Piece) else client.compute(part)
        futures.append(client.submit(function, there, start, *shared, pure=False))
    for part, future in zip(parts, futures, strict=True):
        name = part.name if isinstance(part, Piece) else f"partition {part.key}"
        with naming_killers(name):
            result = future.result()
        yield result


def _index_of(part: Any, start: int) -> range:
    return range(start, start + len(part))


def _survey_part(part: Any, start: int, question: Question) -> RowSurvey:
    return survey(_frames(part), start, question)


def _fetch_part(part: Any, start: int, plan: SamplePlan) -> Frame:
    return plan.fetch(_frames(part), start)


def _frames(part: Any) -> Iterable[Frame]:
    return part.frames() if isinstance(part, Piece) else [as_frame(part)]


def row_keys(start: int, n: int, seed: int) -> KeyArray:
    """Return the keys of n rows from number `start` on."""
    return keys_of(np.arange(start, start + n), seed)


def keys_of(numbers: NDArray[np.integer], seed: int) -> KeyArray:
    """Return the keys of the rows with these numbers."""
    first = np.uint64(text_key("rows", seed))
    places = numbers.astype(np.uint64) + np.uint64(1)
    return _mixed(first + places * np.uint64(STEP))


def text_key(text: str, seed: int) -> int:
    """Return the key of a name, such as that of a group."""
    digest = hashlib.blake2b(f"{seed} {text}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _mixed(keys: KeyArray) -> KeyArray:
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(FIRST)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(SECOND)
    return keys ^ (keys >> np.uint64(31))
