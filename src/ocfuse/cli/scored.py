"""The rows of a table with their scores, chunk by chunk."""

from collections.abc import Iterator

import pandas as pd

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
    scores = model.score_rows(frame, keep_going=keep_going, why=why, most_explained=most_explained)
    scores.insert(0, free_name("row", scores.columns), scores.index)
    return scores


def scored_chunks(
    model: TableDetector, source: Source, *, keep_going: bool = False, why: bool | str = False
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield rows and their scores, with reasons of as many rows as a table may have."""
    left = model.most_explained if why else 0
    for chunk in model.in_order(source.chunks()):
        scores = scored(model, chunk, keep_going=keep_going, why=why, most_explained=left)
        if why:
            explained = scores["score"].notna() if why == "all" else scores["is_anomaly"]
            left = max(left - int(explained.sum()), 0)
        yield chunk, scores
