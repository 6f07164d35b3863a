"""Bytes at the door of `ocfuse fit` and `ocfuse score`: a table, or an error in words.

``python -m benchmarks.hardening.csv_door FOLDER`` runs atheris (a coverage-guided fuzzer) on
what is in the folder, with the options of libFuzzer: ``-max_total_time=300``.
"""

import io
import sys
import warnings
from typing import Any

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


def read(content: bytes, chunk_rows: int) -> pd.DataFrame:
    """Return the table in some bytes, as the command reads standard input."""
    chunks = list(open_source(io.BytesIO(content), chunk_rows=chunk_rows))
    assert all(0 < len(chunk) <= chunk_rows for chunk in chunks)
    return pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame()


def said(content: bytes, chunk_rows: int) -> str | pd.DataFrame:
    """Return the table, or what the user is told."""
    try:
        return read(content, chunk_rows)
    except OcfuseError as error:
        assert len(str(error).split()) > 4, error
        return str(error)


def knock(content: bytes) -> str:
    """Bring bytes to the door, and see to it that every promise is kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OcfuseWarning)
        whole = said(content, CHUNKS[-1])
        parts = said(content, CHUNKS[content[-1] % 4 if content else 0])
        if isinstance(whole, str) or isinstance(parts, str):
            return "refused"
        # What is told from the first lines may be told from fewer of them.
        if list(whole.columns) == list(parts.columns) and len(whole):
            assert len(whole) == len(parts)
        return _used(whole)


def _used(table: pd.DataFrame) -> str:
    """Learn from a table, and hold it against another one, as far as it goes."""
    try:
        schema = Schema.infer(table)
        features = schema.features_of(table)
        assert len(features) == len(table)
    except OcfuseError:
        features = None
    try:
        known = Schema.infer(TRAINED)
        unusable = known.unusable_rows(table)
        known.features_of(table[~unusable])
        assert unusable.dtype == np.bool_
    except OcfuseError:
        return "read"
    return "read" if features is None else "used"


def main() -> None:
    """Hand the door over to atheris."""
    atheris = __import__("atheris")

    def knock_once(content: Any) -> None:
        knock(content)

    atheris.instrument_func(knock_once)
    for name, module in list(sys.modules.items()):
        if name.startswith("ocfuse.tables.") and module is not None:
            for function in vars(module).values():
                if getattr(function, "__module__", None) == name and hasattr(function, "__code__"):
                    atheris.instrument_func(function)
    atheris.Setup(sys.argv, knock_once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
