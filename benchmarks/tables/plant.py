"""Rows of a plant with many channels, the same ones every time, written block by block."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

CHANNELS, CAUSES = 200, 6
BLOCK_ROWS = 2_000
#: Blocks of a row group of Parquet.
GROUP = 10
#: Rows of which one is an anomaly, on average.
RARE = 1_000
START = np.datetime64("2024-01-01T00:00:00", "s")


def block(number: int) -> pa.Table:
    """Return 2,000 rows: a time, a recipe, and channels that follow a few causes."""
    rng = np.random.default_rng([0, number])
    mixing = np.random.default_rng(0).normal(size=(CAUSES, CHANNELS))
    X = rng.normal(size=(BLOCK_ROWS, CAUSES)) @ mixing
    X += 0.5 * rng.normal(size=X.shape)
    if number:  # the first block is there to learn from
        X[rng.random(BLOCK_ROWS) < 1 / RARE, :5] += 10
    columns: dict[str, Any] = {
        "time": START + np.arange(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS),
        "recipe": rng.choice(["A", "B", "C"], BLOCK_ROWS),
    }
    # six decimals, as a logger would write
    columns |= {f"channel {j:03d}": column for j, column in enumerate(X.T.round(6))}
    return pa.table(columns)


def write_csv(path: Path, n_bytes: int) -> int:
    """Write at least so many bytes of CSV; return the number of blocks."""
    with path.open("wb") as file, pa.csv.CSVWriter(file, block(0).schema) as writer:
        number = 0
        while file.tell() < n_bytes:
            writer.write_table(block(number))
            number += 1
    return number


def write_parquet(path: Path, n_blocks: int) -> None:
    """Write the same rows as Parquet."""
    with pa.parquet.ParquetWriter(path, block(0).schema) as writer:
        for group in _groups(n_blocks):
            writer.write_table(pa.concat_tables(map(block, group)))


def write_normal(path: Path, n_rows: int) -> None:
    """Write rows to learn from."""
    pa.csv.write_csv(block(0).slice(0, n_rows), path)


def _groups(n_blocks: int) -> Iterator[range]:
    for begin in range(0, n_blocks, GROUP):
        yield range(begin, min(begin + GROUP, n_blocks))
