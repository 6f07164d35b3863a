"""The rows of a table with their scores, chunk by chunk."""

from collections.abc import Iterator

import pandas as pd

from ocfuse.tables import Source, TableDetector
from ocfuse.tables.names import free_name


def scored(model: TableDetector, frame: pd.DataFrame, *, keep_going: bool = False) -> pd.DataFrame:
    """Return scores that begin with the numbers of the rows."""
    scores = model.score(frame, keep_going=keep_going)
    scores.insert(0, free_name("row", scores.columns), scores.index)
    return scores


def scored_chunks(
    model: TableDetector, source: Source, *, keep_going: bool = False
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield rows and their scores."""
    for chunk in source.chunks():
        yield chunk, scored(model, chunk, keep_going=keep_going)
