"""Bytes at the door of `ocfuse fit` and `ocfuse score`: a table, or an error in words."""

import io
import warnings
from functools import cache

import numpy as np
import pandas as pd

from ocfuse.exceptions import OcfuseError, OcfuseWarning
from ocfuse.tables import Schema, open_source

#: The columns that later tables are held against.
TRAINED = pd.DataFrame(
    {
        "flow": [1.0, 2.5, -3.0] * 20,
        "kind": ["a", "b", "c d"] * 20,
        "when": pd.date_range("2024-03-01", periods=60, freq="s").strftime("%F %T"),
    }
)
#: Rows of a chunk, by the last byte of the input: cutting a table up must not matter.
CHUNKS = (1, 2, 7, 10_000)


def read(content: bytes, chunk_rows: int) -> tuple[str, pd.DataFrame]:
    """Return how the table in some bytes is written, and the table, as the command reads it."""
    source = open_source(io.BytesIO(content), chunk_rows=chunk_rows)
    chunks = list(source.frames())
    assert all(0 < len(chunk) <= chunk_rows for chunk in chunks)
    assert all(list(chunk.columns) == source.columns for chunk in chunks)
    table = pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame(columns=source.columns)
    return source.description, table


def _refused(error: OcfuseError) -> str:
    assert len(str(error).split()) > 4, error
    return "refused"


def knock(content: bytes) -> str:
    """Bring bytes to the door, and see to it that every promise is kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OcfuseWarning)
        try:
            how, whole = read(content, CHUNKS[-1])
            how_in_parts, parts = read(content, CHUNKS[content[-1] % 4])
        except OcfuseError as error:
            return _told(str(error))
        # How a table is written may be told from fewer lines if they come in small chunks.
        if how == how_in_parts:
            pd.testing.assert_frame_equal(whole, parts)
        return _used(whole)


def _told(message: str) -> str:
    assert len(message.split()) > 4, message
    return "refused"


def _used(table: pd.DataFrame) -> str:
    """Learn from a table, and hold it against another one, as far as it goes."""
    try:
        schema = Schema.infer(table)
        features = schema.features_of(table)
        assert len(features) == len(table)
    except OcfuseError:
        features = None
    try:
        unusable = _trained().unusable_rows(table)
        _trained().features_of(table[~unusable])
        assert unusable.dtype == np.bool_
    except OcfuseError:
        return "read"
    return "read" if features is None else "used"


@cache
def _trained() -> Schema:
    return Schema.infer(TRAINED)
