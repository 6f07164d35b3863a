"""Part "large": a table of 1 GB through the command, and through pandas at once."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.report import Report, Table, Target
from benchmarks.tables.plant import BLOCK_ROWS, CHANNELS, write_csv, write_normal, write_parquet
from benchmarks.tables.process import Cost, ocfuse, python

GB = 10**9
QUICK = GB // 50
LEARNED = 1_000
LIMIT = GB
#: Of the memory for a tenth of the rows, the whole table may take so many times.
FLAT = 1.1
FIT, TENTH, CSV, PLAIN, PARQUET = (
    "`ocfuse fit`",
    "`ocfuse score`, a tenth of the CSV",
    "`ocfuse score`, CSV",
    "`pandas.read_csv`, then `score`",
    "`ocfuse score`, Parquet",
)


def run(quick: bool) -> Report:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_rows = write_tables(folder, QUICK if quick else GB)
        costs = measured(folder)
        difference = largest_difference(folder)
        sizes = {
            path.name: path.stat().st_size for path in folder.iterdir() if path.stem == "plant"
        }
    return Report(
        f"A table of {sizes['plant.csv'] / GB:.2f} GB",
        f"{n_rows[CSV]:,} rows of {CHANNELS} channels, a time and a recipe: "
        f"{sizes['plant.csv'] / GB:.2f} GB of CSV, {sizes['plant.parquet'] / GB:.2f} GB of "
        f"Parquet, generated. The default detector learns from {LEARNED:,} rows and scores all. "
        "Each line is a process of its own with one thread; the memory is the most that was "
        "resident. Seconds include the start of Python, about two.",
        targets(costs, difference),
        [
            Table(
                "Costs",
                ["what", "rows", "wall", "CPU", "rows per CPU second", "memory"],
                [line(what, n_rows[what], cost) for what, cost in costs.items()],
            )
        ],
        {
            "rows": n_rows,
            "bytes": sizes,
            "costs": {what: vars(cost) for what, cost in costs.items()},
            "largest difference of scores": difference,
        },
    )


def write_tables(folder: Path, n_bytes: int) -> dict[str, int]:
    """Write all tables; return how many rows each way reads."""
    write_normal(folder / "normal.csv", LEARNED)
    n_tenth = write_csv(folder / "tenth.csv", n_bytes // 10)
    n_blocks = write_csv(folder / "plant.csv", n_bytes)
    write_parquet(folder / "plant.parquet", n_blocks)
    whole = dict.fromkeys((CSV, PLAIN, PARQUET), n_blocks * BLOCK_ROWS)
    return {FIT: LEARNED, TENTH: n_tenth * BLOCK_ROWS} | whole


def measured(folder: Path) -> dict[str, Cost]:
    """Return what every way costs."""
    model = folder / "model.ocf"

    def score(table: str, out: str) -> Cost:
        return ocfuse("score", model, folder / table, "-o", folder / out)

    return {
        FIT: ocfuse("fit", folder / "normal.csv", "-o", model),
        TENTH: score("tenth.csv", "tenth-scores.csv"),
        CSV: score("plant.csv", "scores.csv"),
        PLAIN: python(
            *("-m", "benchmarks.tables.plain", model, folder / "plant.csv"), folder / "plain.csv"
        ),
        PARQUET: score("plant.parquet", "parquet.csv"),
    }


def largest_difference(folder: Path) -> float:
    """Return how far the scores of the other ways are from those of the CSV."""
    scores = [
        pd.read_csv(folder / name, usecols=["score"])["score"].to_numpy()
        for name in ("scores.csv", "plain.csv", "parquet.csv")
    ]
    return float(max(np.abs(other - scores[0]).max() for other in scores[1:]))


def targets(costs: dict[str, Cost], difference: float) -> list[Target]:
    ours = {what: cost.peak for what, cost in costs.items() if what != PLAIN}
    growth = costs[CSV].peak / costs[TENTH].peak
    return [
        Target(
            "the command holds less than 1 GB",
            ", ".join(f"{peak / 1e6:,.0f} MB ({what})" for what, peak in ours.items()),
            max(ours.values()) < LIMIT,
        ),
        Target(
            f"memory is flat: the whole takes at most {FLAT:g} times what a tenth takes",
            f"{growth:.2f} times",
            growth <= FLAT,
        ),
        Target("all ways give the same scores", f"{difference:g} apart at most", difference == 0),
    ]


def line(what: str, n_rows: int, cost: Cost) -> list[str]:
    return [
        what,
        f"{n_rows:,}",
        f"{cost.wall:,.0f} s",
        f"{cost.cpu:,.0f} s",
        f"{n_rows / cost.cpu:,.0f}",
        f"{cost.peak / 1e6:,.0f} MB",
    ]
