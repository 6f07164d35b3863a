"""A sample of all rows that stands for them, the same however they are cut up."""

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.distributed.backend import same
from ocfuse.distributed.cluster import Client, guarded, large_messages, naming_killers
from ocfuse.distributed.keys import KEYS, keys_of, row_keys, text_key
from ocfuse.distributed.pieces import Piece, pieces_of, unread_in
from ocfuse.distributed.survey import Question, Survey, codes_of, survey
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, TableError
from ocfuse.tables.frames import Frame, as_frame, pandas

#: Rows of a group below which groups are left out rather than thinned further.
LEAST_PER_GROUP = 32
#: What to do when there is no cluster any more.
START_AGAIN = "Start again, once there is a cluster."
#: Standard deviations by which more rows are fetched than are wanted.
SLACK = 6.0


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
class Plan:
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
    known = Survey()
    for found in _everywhere(client, _survey_part, parts, starts, question):
        known.add(found)
    if not known.n_rows:
        raise TableError("The table has no rows.")
    plan = make_plan(known, question, n)
    fetched = [f for f in _everywhere(client, _fetch_part, parts, starts, plan) if f is not None]
    return plan.cut(pandas().concat(fetched))


def make_plan(known: Survey, question: Question, n: int) -> Plan:
    """Share n rows out among all."""
    if question.group is None:
        return Plan(question, Share(n, known.n_rows), {}, known.witnesses())
    sizes = known.groups
    most = _level(sorted(sizes.values()), n)
    names = list(sizes)
    if most < min(LEAST_PER_GROUP, max(sizes.values(), default=0)):
        most = LEAST_PER_GROUP
        names.sort(key=lambda name: (text_key(name, question.seed), name))
        filled = np.cumsum([min(sizes[name], most) for name in names])
        names = names[: max(2, int(np.searchsorted(filled, n, "right")))]
    shares = {name: Share(min(sizes[name], most), sizes[name]) for name in names}
    return Plan(question, None, shares, known.witnesses())


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


def _survey_part(part: Any, start: int, question: Question) -> Survey:
    return survey(_frames(part), start, question)


def _fetch_part(part: Any, start: int, plan: Plan) -> Frame:
    return plan.fetch(_frames(part), start)


def _frames(part: Any) -> Iterable[Frame]:
    return part.frames() if isinstance(part, Piece) else [as_frame(part)]
