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

from ocfuse.distributed.cluster import Client, Tasks, working
from ocfuse.distributed.parquet import Piece, pieces_of, unread_in
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, TableError
from ocfuse.tables.cells import is_number_type, is_time_type, texts
from ocfuse.tables.columns import odd_type
from ocfuse.tables.dataframes import FILE, Frame, Series, as_frame, pandas
from ocfuse.tables.schema import require_known

#: What to do when there is no cluster any more.
START_AGAIN = "Start again, once there is a cluster."
#: What makes rows worth having: "label", "gap", "infinite" or "word", and its column; of a label
#: or a word its text, too.
Trait: TypeAlias = tuple[str, ...]
#: Rows by number, each with its key.
Drawn: TypeAlias = dict[int, int]

#: A column with more different words than this holds no categories; labels likewise.
MOST_WORDS = 100

KeyArray: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True)
class Question:
    """What is asked of all rows: the seed that draws them, and columns by their meaning."""

    seed: int
    group: str | None = None
    label: str | None = None
    ignore: tuple[str, ...] = ()


@dataclass
class RowSurvey:
    """What is known of some rows."""

    n_rows: int = 0
    #: Rows of every group.
    groups: Counter[str] = field(default_factory=Counter)
    #: Rows with the lowest keys among those that have a trait.
    drawn: dict[Trait, Drawn] = field(default_factory=dict)
    #: Columns of too many words, of which none is kept.
    crowded: set[str] = field(default_factory=set)

    def add(self, other: "RowSurvey") -> None:
        """Take in what is known of other rows; the order does not matter."""
        self.n_rows += other.n_rows
        self.groups.update(other.groups)
        for trait, rows in other.drawn.items():
            both = self.drawn.get(trait, {}) | rows
            lowest = sorted(both.items(), key=lambda row: (row[1], row[0]))[: _most(trait)]
            self.drawn[trait] = dict(lowest)
        words = Counter(trait[1] for trait in self.drawn if trait[0] in ("word", "label"))
        self.crowded |= other.crowded | {name for name, n in words.items() if n > MOST_WORDS}
        self.drawn = {
            trait: rows
            for trait, rows in self.drawn.items()
            if trait[0] not in ("word", "label") or trait[1] not in self.crowded
        }

    def witnesses(self) -> list[int]:
        """Return the numbers of the rows that have a trait of their own."""
        return sorted({number for rows in self.drawn.values() for number in rows})


def survey(frames: Iterable[Frame], start: int, question: Question) -> RowSurvey:
    """Survey rows, of which the first has the number `start`."""
    result = RowSurvey()
    for frame in frames:
        result.add(_survey_frame(frame, start + result.n_rows, question))
    return result


def codes_of(column: Series) -> tuple[NDArray[np.intp], list[str | None]]:
    """Return the place of every cell in a list of different texts, -1 for gaps."""
    codes, values = pandas().factorize(column)
    return codes, texts(pandas().Series(values))


def _survey_frame(frame: Frame, start: int, question: Question) -> RowSurvey:
    columns = [("group", question.group), ("label", question.label)]
    columns += [("ignore", name) for name in question.ignore]
    # by the first rows: all of them may take hours
    require_known(frame, [(what, name) for what, name in columns if name is not None])
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
    for trait, mask in found.items():
        numbers = np.flatnonzero(mask)
        chosen = numbers[np.argsort(keys[numbers], kind="stable")[: _most(trait)]]
        result.drawn[trait] = {start + int(i): int(keys[i]) for i in chosen}
    return result


def _traits(column: Series, name: str, question: Question, crowded: set[str]) -> dict[Trait, Any]:
    """Return which rows have a trait, by the trait."""
    gaps = column.isna().to_numpy(dtype=bool)
    found: dict[Trait, Any] = {("gap", name): gaps} if gaps.any() else {}
    if is_number_type(column.dtype) and name != question.label:
        infinite = np.isinf(column.to_numpy(np.float64, na_value=np.nan))
        return found | ({("infinite", name): infinite} if infinite.any() else {})
    if name == question.group or is_time_type(column.dtype) or odd_type(column):
        return found
    codes, words = codes_of(column)
    if len(words) > MOST_WORDS:
        crowded.add(name)
        return found
    kind = "label" if name == question.label else "word"
    masks: defaultdict[Trait, Any] = defaultdict(lambda: np.zeros(len(column), dtype=bool))
    for code, word in enumerate(words):
        masks[kind, name, str(word)] |= codes == code
    return found | masks


def _most(trait: Trait) -> int:
    """Return how many rows with a trait are drawn: of labels many, as anomalies may be rare."""
    return 200 if trait[0] == "label" else 1


@dataclass(frozen=True)
class Share:
    """How many rows to draw, of how many."""

    wanted: int
    there: int

    def limit(self, slack: float = 6.0) -> float:
        """Return a key below which there are enough rows, but for a chance of 1e-9.

        `slack` counts standard deviations; keys are spread evenly below 2**64.
        """
        most = self.wanted + slack * math.sqrt(self.wanted) + slack
        return 2.0**64 if most >= self.there else 2.0**64 * most / self.there


@dataclass(frozen=True)
class SamplePlan:
    """Which rows to fetch."""

    question: Question
    whole: Share | None  # of all rows; None if they come in groups
    groups: dict[str, Share]
    witnesses: list[int]  # rows to fetch whatever their keys are

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
    """Draw a reproducible sample of the rows of a table.

    The sample depends on the numbers of the rows in the table and on the seed, not on their
    division into files or partitions, nor on the workers. With a group column every group has its
    share, and small groups are drawn completely; if groups would have fewer than 32 rows each,
    fewer groups are drawn. Some rows are added to the n: one for each column with gaps or infinite
    numbers and for each category, so that they occur in training, and up to 200 of each label.

    Parameters
    ----------
    data : path-like or dask.dataframe.DataFrame
        A folder of Parquet files, or a Dask data frame. The order of its rows matters.
    n : int
        Number of rows to draw.
    client : distributed.Client
        The cluster (see `connected`).
    seed : int, default=0
        Seed; another seed draws other rows.
    group, label : str, default=None
        Column with the groups; column with the labels.
    ignore : tuple of str, default=()
        Columns that are not used.

    Returns
    -------
    pandas.DataFrame
        The rows in the order of the table; the index is their number in the table.
    """
    if not isinstance(n, int | np.integer) or n < 2:
        raise InvalidInputError(f"n must be a whole number of rows, at least 2. Got n={n!r}.")
    question = Question(seed, group, label, tuple(ignore))
    with working(client, START_AGAIN) as tasks:
        parts, starts = _parts(data, tasks)
        known = RowSurvey()
        for found in _everywhere(tasks, _survey_part, parts, starts, question):
            known.add(found)
        if not known.n_rows:
            raise TableError("The table has no rows.")
        plan = make_plan(known, question, n)
        fetched = _everywhere(tasks, _fetch_part, parts, starts, plan)
        return plan.cut(pandas().concat([frame for frame in fetched if frame is not None]))


def make_plan(
    known: RowSurvey, question: Question, n: int, least_per_group: int = 32
) -> SamplePlan:
    """Share n rows out among all; groups are left out rather than thinned below the least."""
    if question.group is None:
        return SamplePlan(question, Share(n, known.n_rows), {}, known.witnesses())
    sizes = known.groups
    most = _level(sorted(sizes.values()), n)
    names = list(sizes)
    if most < min(least_per_group, max(sizes.values(), default=0)):
        most = least_per_group
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


def _parts(data: Any, tasks: Tasks) -> tuple[list[Any], list[int]]:
    """Return files, or partitions not computed yet, and the number of the first row of each."""
    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        parts = data.to_delayed()
        sizes = list(_everywhere(tasks, _n_rows, parts, range(len(parts))))
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
    tasks: Tasks, function: Callable[..., Any], parts: list[Any], starts: Iterable[int], *args: Any
) -> Iterator[Any]:
    """Yield what a function returns of every part, in the order of the parts."""
    calls, names = [], []
    for part, start in zip(parts, starts, strict=True):
        is_file = isinstance(part, Piece)
        calls.append((function, part if is_file else tasks.client.compute(part), start, *args))
        names.append(part.name if is_file else f"partition {part.key}")
    return tasks.results(calls, names)


def _n_rows(part: Any, start: int) -> int:
    return len(part)


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
    """Return the keys of the rows with these numbers: those of the generator splitmix64."""
    places = numbers.astype(np.uint64) + np.uint64(1)
    keys = np.uint64(text_key("rows", seed)) + places * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def text_key(text: str, seed: int) -> int:
    """Return the key of a name, such as that of a group."""
    digest = hashlib.blake2b(f"{seed} {text}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
