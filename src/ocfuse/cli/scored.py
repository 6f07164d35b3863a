"""The rows of a table with their scores, chunk by chunk."""

from collections.abc import Iterable, Iterator

import pandas as pd

from ocfuse.exceptions import InvalidInputError, TableError
from ocfuse.streaming import StreamTable
from ocfuse.streaming.samples import runs_of
from ocfuse.tables import Source, TableDetector
from ocfuse.tables.names import free_name


def scored(
    model: TableDetector,
    frame: pd.DataFrame,
    *,
    keep_going: bool = False,
    why: bool | str = False,
    most_explained: int | None = None,
) -> pd.DataFrame:
    """Return scores that begin with the numbers of the rows; a stream goes on with them."""
    if isinstance(model, StreamTable):
        scores = model.score_rows(frame)
    else:
        scores = model.score(frame, keep_going=keep_going, why=why, most_explained=most_explained)
    scores.insert(0, free_name("row", scores.columns), scores.index)
    return scores


def scored_chunks(
    model: TableDetector, source: Source, *, keep_going: bool = False, why: bool | str = False
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield rows and their scores, with reasons of as many rows as a table may have."""
    if why and isinstance(model, StreamTable):
        raise InvalidInputError(
            "Reasons are given for rows of a table, not of a stream, where a row has its score by "
            "those before it. Use ocfuse explain --row or --worst."
        )
    chunks = source.chunks()
    left = model.most_explained if why else 0
    for chunk in whole_runs(model, chunks) if isinstance(model, StreamTable) else chunks:
        scores = scored(model, chunk, keep_going=keep_going, why=why, most_explained=left)
        if why:
            explained = scores["score"].notna() if why == "all" else scores["is_anomaly"]
            left = max(left - int(explained.sum()), 0)
        yield chunk, scores


def whole_runs(model: StreamTable, chunks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield chunks, unless rows of a recorded run do not follow each other."""
    last, seen = None, set()
    for chunk in chunks:
        for i, run in enumerate(runs_of(model.schema_, chunk) or ()):
            if run != last and run in seen:
                raise TableError(
                    f"The rows of a run must follow each other, but row {chunk.index[i]} goes on "
                    f"with {run!r} after rows of {last!r}. Sort the table by run, then by time."
                )
            last = run
            seen.add(run)
        yield chunk
