"""Scores of a folder of Parquet files in another folder, one file for each."""

import json
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import joblib
from sklearn.utils.validation import check_is_fitted

from ocfuse.distributed.cluster import LOST, Client, Future, KillerError, Tasks, dask, working
from ocfuse.distributed.parquet import Piece, at_desk, desk_in, pieces_of, unread_in
from ocfuse.exceptions import (
    FolderInUseError,
    InvalidInputError,
    InvalidTypeError,
    OcfuseError,
    OcfuseWarning,
    TableError,
    TableWarning,
)
from ocfuse.system.files import folder_lock, naming, natural, replacing
from ocfuse.system.packages import needed
from ocfuse.tables import TableDetector
from ocfuse.tables.dataframes import Frame, free_name, listed
from ocfuse.tables.detector import RUNS, Tally
from ocfuse.tables.source import ParquetWriter, to_frame

#: Under this word the footer of a file of scores says what it was made from.
STAMP = "ocfuse"
#: Warnings are caught by the process, not by the thread.
_TURN = threading.Lock()


@dataclass
class Outcome(Tally):
    """Result of `score`: the counts of a `Tally`, and those of files.

    Attributes
    ----------
    rows, anomalies, without_score, by_rule, only_by_rule : int
        Numbers of rows, as in a `Tally`.
    rules : Counter of str
        How many rows break each limit.
    unknown : int
        Number of rows without a score that may be anomalies.
    files, resumed : int
        Number of files of scores, and of those from earlier calls.
    failed : dict of str
        Names of files without scores, each with the reason.
    warnings : list of OcfuseWarning
        Warnings of the workers.
    """

    files: int = 0
    resumed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    warnings: list[Warning] = field(default_factory=list)

    def give_warnings(self) -> None:
        """Warn here of what workers have warned of."""
        for warning in self.warnings:
            warnings.warn(warning, stacklevel=2)


@dataclass(frozen=True)
class Order:
    """What a worker is to do: where to put the scores of which file, and how."""

    piece: Piece
    folder: str  # where its scores belong, in a file of the same name
    desk: str  # folder for what is not complete; where it is gone, the order is void
    model: str  # checksum
    keep_going: bool  # give rows that cannot be scored no score, instead of stopping

    @property
    def target(self) -> Path:
        """The file of scores."""
        return Path(self.folder) / self.piece.name

    def stamp(self) -> dict[str, Any]:
        """Return what the scores are made from; the same scores have the same stamp."""
        piece = asdict(self.piece)
        own = {name: piece[name] for name in ("size", "changed", "n_rows", "start")}
        return {"model": self.model, "keep_going": self.keep_going, "file": self.piece.name} | own

    def done_before(self) -> dict[str, Any] | None:
        """Return the counts of a file of scores that is there already, made from the same."""
        parquet = needed("pyarrow.parquet", "to read Parquet files")
        try:
            found = parquet.read_metadata(self.target).metadata or {}
        except (OSError, ValueError):  # not there, or no Parquet
            return None
        if STAMP.encode() not in found:  # perhaps the data of another folder
            raise InvalidInputError(
                f"{self.target} is there, and is no file of scores. Give scores another folder, or "
                "move it away."
            )
        note = json.loads(found[STAMP.encode()])
        counts: dict[str, Any] | None = note.pop("counts", None)
        is_same = counts is not None and counts.keys() == Tally().counts().keys()
        return counts if is_same and note == self.stamp() else None


def score(
    model: TableDetector,
    data: Any,
    out: Any,
    *,
    client: Client,
    keep_going: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Score every row of a folder of Parquet files, one file of scores for each.

    A file of scores appears when it is complete. Its footer names model and data; a later call
    with the same model and data keeps the file. If a worker ends, other workers take over.

    Parameters
    ----------
    model : TableDetector
        A fitted model.
    data : path-like
        The folder; all workers must be able to read it under this name.
    out : path-like
        Folder for the scores, created if it does not exist; all workers must be able to write to
        it. If another call writes there, a `FolderInUseError` is raised.
    client : distributed.Client
        The cluster (see `connected`).
    keep_going : bool, default=False
        If True, rows that cannot be scored have no score (see `TableDetector.score`), and files
        that cannot be scored are left out and listed in `failed`. If False, the first of them is
        an error; files in progress are finished, and no others are started.
    progress : callable, default=None
        Called with the number of finished files and the number of all files.

    Returns
    -------
    Outcome
        Counts, failed files and warnings.
    """
    _require_table(model)
    if not isinstance(data, str | os.PathLike):
        raise InvalidTypeError(
            f"data must be a folder of Parquet files. Got {type(data).__name__}. Use `score_frame` "
            "for a data frame of Dask, and model.score for what is in memory."
        )
    pieces, folder = pieces_of(data), _made(data, out)
    with folder_lock(folder) as holder, desk_in(folder, holder.token) as desk:
        order = partial(
            Order,
            folder=str(folder),
            desk=str(desk),
            model=str(joblib.hash(model)),
            keep_going=keep_going,
        )
        outcome = Outcome(warnings=[*unread_in(data, folder), *_left_over(folder, pieces)])
        left = []
        for one in map(order, pieces):
            counts = one.done_before()
            if counts is None:
                left.append(one)
            else:
                outcome.add_counts(counts)
                outcome.files += 1
                outcome.resumed += 1
        show = progress or (lambda done, total: None)
        show(outcome.files, len(pieces))
        advice = (
            "Files of scores that are there are complete, and the same call goes on with the "
            "others."
        )
        with working(client, advice) as tasks:
            for done, result in _carried_out(tasks, model, left, keep_going):
                _note(outcome, done, result)
                show(outcome.files + len(outcome.failed), len(pieces))
    if outcome.failed and not (keep_going and outcome.files):
        why = next(iter(outcome.failed.values()))
        raise TableError(
            f"{why} There are scores of {outcome.files} of {len(pieces)} files; the same call "
            "goes on where this one ended, and with keep_going=True without such files."
        )
    return outcome


def score_frame(model: TableDetector, frame: Any, *, keep_going: bool = False) -> Any:
    """Score the rows of a Dask data frame, partition by partition, lazily.

    ``client.compute(scores)`` computes them on the cluster. The client of `connected` is not
    Dask's default one: ``scores.compute()`` would work in this process.

    Parameters
    ----------
    model : TableDetector
        A fitted model.
    frame : dask.dataframe.DataFrame
        Rows with the columns of training.
    keep_going : bool, default=False
        Whether rows that cannot be scored have no score (see `TableDetector.score`), or are an
        error.

    Returns
    -------
    dask.dataframe.DataFrame
        Result of `TableDetector.score`, with the same partitions and index.
    """
    _require_table(model)
    if not hasattr(frame, "map_partitions") or not hasattr(frame, "columns"):
        raise InvalidTypeError(
            f"frame must be a data frame of Dask. Got {type(frame).__name__}. Use `score` for a "
            "folder of Parquet files, and model.score for what is in memory."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)  # of the row that is made up for it
        meta = model.score(frame._meta_nonempty, keep_going=True).iloc[:0]
    sent = dask("dask").delayed(model, pure=True)
    return frame.map_partitions(_score_part, sent, keep_going, meta=meta)


def _score_part(frame: Frame, model: TableDetector, keep_going: bool) -> Frame:
    return model.score(frame, keep_going=keep_going)


def _require_table(model: Any) -> None:
    if getattr(model, "kind", RUNS) == RUNS:
        raise InvalidTypeError(
            f"model must be a TableDetector. Got {type(model).__name__}. A stream has to be "
            "scored in its order: use `ocfuse score` without an engine, one stream at a time."
        )
    check_is_fitted(model, "detector_")


def _made(data: Any, out: Any) -> Path:
    """Return the folder for scores, made if need be."""
    folder = Path(os.path.abspath(os.fspath(out)))
    if folder.resolve() == Path(data).resolve():
        raise InvalidInputError(f"{out} is the folder of the data. Give scores another one.")
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{out} is a file. Give the name of a folder for the scores.")
    with naming(folder):
        folder.mkdir(exist_ok=True)
    return folder


def _left_over(folder: Path, pieces: list[Piece]) -> list[Warning]:
    """Warn of scores whose file is gone: whoever reads the folder would count them."""
    of = {piece.name for piece in pieces}
    others = sorted((path.name for path in folder.glob("*.parquet")), key=natural)
    others = [name for name in others if name not in of]
    if not others:
        return []
    return [
        TableWarning(
            f"{folder} holds files that are not of these data: {listed(others)}. Remove them, or "
            "whoever reads the whole folder counts their rows too."
        )
    ]


def _carried_out(
    tasks: Tasks, model: TableDetector, orders: list[Order], keep_going: bool
) -> Iterator[tuple[Order, Any]]:
    """Yield every order with its counts and warnings, or an error, as they come."""
    shared = tasks.shared(model)
    under_way: dict[Future, Order] = {}
    # two files at hand for each worker: it need not wait for the next
    at_once = 2 * max(1, sum(tasks.client.nthreads().values()))
    waiting = deque(orders)
    # A worker that ends takes with it whatever it has at hand: who is to blame is seen when
    # each of them is tried again alone.
    suspects: deque[Order] = deque()
    is_stopped = False

    def begin(order: Order) -> None:
        under_way[tasks.begin(score_piece, shared, order)] = order

    while True:
        if not is_stopped and suspects and not under_way:
            begin(suspects[0])
        while not is_stopped and not suspects and waiting and len(under_way) < at_once:
            begin(waiting.popleft())
        if not under_way:
            return
        future = tasks.next_done()
        order = under_way.pop(future)
        result = _outcome(tasks, future, order)
        if isinstance(result, KillerError) and order not in suspects:
            suspects.append(order)
            continue
        if suspects and order is suspects[0]:
            suspects.popleft()
        is_stopped |= isinstance(result, Exception) and not keep_going
        yield order, result


def _outcome(tasks: Tasks, future: Future, order: Order) -> Any:
    """Return the result of a task, or its error."""
    try:
        return tasks.result(future, order.piece.name)
    except LOST:
        raise
    except Exception as error:
        return error


def _note(outcome: Outcome, order: Order, result: Any) -> None:
    """Add the result or the error of an order."""
    if isinstance(result, FolderInUseError):
        raise result
    if isinstance(result, Exception):
        is_known = isinstance(result, OcfuseError | OSError)
        why = str(result) if is_known else f"{type(result).__name__}: {result}"
        name = order.piece.name
        outcome.failed[name] = why if name in why else f"{name}: {why}"
        return
    counts, odd = result
    outcome.add_counts(counts)
    outcome.files += 1
    outcome.warnings += odd


def score_piece(model: TableDetector, order: Order) -> tuple[dict[str, Any], list[Warning]]:
    """Write the scores of one file, all or nothing; return counts and what was odd."""
    if order.piece.mistake:
        raise TableError(order.piece.mistake)
    desk, tally = Path(order.desk), Tally()
    has_limits, threshold = model.limits_ is not None, float(model.detector_.offset_)
    with _TURN, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OcfuseWarning)
        with at_desk(desk), replacing(order.target, within=desk) as file:
            writer = ParquetWriter(file)
            for scores in _scored(model, order):
                with naming(order.target):
                    writer.write(scores)
                tally.add(scores, has_limits=has_limits, threshold=threshold)
            if tally.rows != order.piece.n_rows:
                raise TableError(f"{order.piece.name} was changed while it was read.")
            with naming(order.target):
                writer.note({STAMP: json.dumps(order.stamp() | {"counts": tally.counts()})})
                writer.close()
    return tally.counts(), [w.message for w in caught if isinstance(w.message, OcfuseWarning)]


def _scored(model: TableDetector, order: Order) -> Iterator[Frame]:
    """Yield scores as `ocfuse score` writes them; of no rows, their columns."""
    found = False
    for frame in order.piece.frames():
        found = True
        try:
            scores = model.score(frame, keep_going=order.keep_going)
        except OcfuseError as error:
            named = type(error)(f"{order.piece.name}: {error}")
            named.__dict__.update(vars(error))
            raise named from error
        yield _numbered(scores)
    if not found:
        parquet = needed("pyarrow.parquet", "to read Parquet files")
        empty = to_frame(parquet.read_schema(order.piece.path).empty_table())
        yield _numbered(model.score(empty.assign(file=order.piece.name), keep_going=True))


def _numbered(scores: Frame) -> Frame:
    scores.insert(0, free_name("row", scores.columns), scores.index)
    return scores
