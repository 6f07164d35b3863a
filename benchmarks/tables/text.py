"""Part "text": CSV by pyarrow where it reads the same cells, and by Python's csv module alone."""

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from benchmarks.report import Report, Table, Target, spread
from benchmarks.tables.plant import BLOCK_ROWS, write_csv, write_normal
from benchmarks.tables.process import COMMAND, Cost, python
from ocfuse.tables import open_source
from ocfuse.tables.text import TextSource

MB = 10**6
ROUNDS = 3
LEARNED = 1_000
#: Bytes of the tables that are read, and of the one that is scored: in full and in a smoke run.
READ, SCORED = (100 * MB, 2 * MB), (60 * MB, 4 * MB)
#: Bytes of the other tables, of that of numbers.
SHARE = 0.2
FASTEST, LEAST_SHARE = 40.0, 0.7
BOTH, CSV_MODULE = "pyarrow and csv module", "csv module alone"
READERS = {BOTH: TextSource.least_lines, CSV_MODULE: sys.maxsize}
#: The command, with a reader of text.
WITH_READER = (
    "import sys; from ocfuse.tables.text import TextSource; "
    "TextSource.least_lines = int(sys.argv.pop(1)); "
)
NUMBERS, NARROW, MIXED, QUOTED, COMMAS, SPACES = (
    "numbers, 50 columns",
    "numbers, 3 columns",
    "numbers and words",
    "numbers and quoted words",
    "decimal commas",
    "spaces before quotes: left to the csv module",
)


def run(quick: bool) -> Report:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates, sizes = rates_of(folder, READ[quick])
        costs, n_bytes, n_rows, is_same = scored(folder, SCORED[quick])
    return Report(
        "Reading CSV",
        "Generated tables are read in chunks of 10,000 rows, as `ocfuse score` reads them, by the "
        f"reader as it is and by Python's csv module alone, in turn, {ROUNDS} rounds; the median "
        "of the CPU seconds of the process counts. Cells are text in both cases, and the first "
        f"chunks are compared. Then `ocfuse score` with the default detector that has learned from "
        f"{LEARNED:,} rows of 200 channels, a time and a recipe, scores {n_rows:,} further rows "
        f"({n_bytes / MB:,.0f} MB), each time in a process of its own with one thread; CPU seconds "
        "include the start of Python. Those of a file of 1 GB are not measured but extrapolated: "
        "the seconds of a table of the first rows alone, and beyond them in proportion to the "
        "bytes.",
        targets(rates, extrapolated(costs, n_bytes), is_same),
        [rates_table(rates, sizes), costs_table(costs, extrapolated(costs, n_bytes))],
        {
            "rates": rates,
            "bytes": sizes,
            "score": {reader: [vars(cost) for cost in found] for reader, found in costs.items()},
            "scored bytes": n_bytes,
        },
    )


def rates_of(
    folder: Path, n_bytes: int
) -> tuple[dict[str, dict[str, list[float]]], dict[str, int]]:
    """Return megabytes per CPU second, table by table and reader by reader, and the bytes."""
    rates: dict[str, dict[str, list[float]]] = {}
    sizes = {}
    for what, write in WRITERS.items():
        path = folder / "table.csv"
        write(path, n_bytes if what == NUMBERS else int(SHARE * n_bytes))
        sizes[what] = path.stat().st_size
        require_same(path)
        rates[what] = {reader: [] for reader in READERS}
        for _ in range(ROUNDS):
            for reader in READERS:
                rates[what][reader].append(sizes[what] / MB / seconds(path, reader))
    return rates, sizes


def seconds(path: Path, reader: str) -> float:
    """Return the CPU seconds of reading all chunks."""
    gc.collect()
    with reading_by(reader):
        begin = time.process_time()
        for _ in open_source(path).chunks():
            pass
        return time.process_time() - begin


def require_same(path: Path) -> None:
    """Stop if the first chunk is not the same by both readers."""
    first = []
    for reader in READERS:
        with reading_by(reader):
            first.append(next(open_source(path).chunks()))
    pd.testing.assert_frame_equal(*first)


@contextmanager
def reading_by(reader: str) -> Iterator[None]:
    """Read text by one of the readers inside."""
    TextSource.least_lines = READERS[reader]
    try:
        yield
    finally:
        TextSource.least_lines = READERS[BOTH]


def write_rows(
    columns: Callable[[np.random.Generator], pa.Table], **options: str
) -> Callable[[Path, int], None]:
    """Return what writes blocks of columns to a file until it has so many bytes."""

    def write(path: Path, n_bytes: int) -> None:
        rng = np.random.default_rng(0)
        block = columns(rng)
        with path.open("wb") as file:
            file.write((options.get("delimiter", ",").join(block.column_names) + "\n").encode())
            while file.tell() < n_bytes:
                file.write(_written(columns(rng), **options))

    return write


def _written(
    block: pa.Table,
    delimiter: str = ",",
    before: str = "",
    quoting: str = "none",
    decimal: str = ".",
) -> bytes:
    """Return rows as CSV."""
    rows = block.to_pandas()
    text = rows.to_csv(
        index=False, header=False, sep=delimiter, decimal=decimal, lineterminator="\n",
        quoting=2 if quoting == "words" else 0,
    )  # fmt: skip
    return text.replace(f'{delimiter}"', f'{delimiter}{before}"').encode()


def numbers(rng: np.random.Generator, n_columns: int = 50) -> pa.Table:
    """Return numbers of six decimals."""
    X = rng.normal(size=(BLOCK_ROWS, n_columns)).round(6)
    return pa.table({f"channel {j}": column for j, column in enumerate(X.T)})


def numbers_and_words(rng: np.random.Generator) -> pa.Table:
    """Return ten columns of numbers, and ten of words."""
    table = numbers(rng, 10)
    for j in range(10):
        words = rng.choice(["running", "idle", "stopped by hand", ""], BLOCK_ROWS)
        table = table.append_column(f"state {j}", pa.array(words))
    return table


WRITERS = {
    NUMBERS: write_rows(numbers),
    NARROW: write_rows(lambda rng: numbers(rng, 3)),
    MIXED: write_rows(numbers_and_words),
    QUOTED: write_rows(numbers_and_words, quoting="words"),
    COMMAS: write_rows(lambda rng: numbers(rng, 20), delimiter=";", decimal=","),
    SPACES: write_rows(numbers_and_words, quoting="words", before=" "),
}


def scored(folder: Path, n_bytes: int) -> tuple[dict[str, list[Cost]], int, int, bool]:
    """Return what `ocfuse score` costs by each reader, and whether its scores are the same.

    The first cost is that of the rows that were learned.
    """
    normal, table, model = folder / "normal.csv", folder / "plant.csv", folder / "model.ocf"
    write_normal(normal, LEARNED)
    n_rows = write_csv(table, n_bytes) * BLOCK_ROWS
    python(*COMMAND, "fit", normal, "-o", model, "--quiet")
    costs: dict[str, list[Cost]] = {reader: [] for reader in READERS}
    scores = set()
    out = folder / "scores.csv"
    for rows in (normal, *[table] * ROUNDS):
        for reader, least_lines in READERS.items():
            command = ("-c", WITH_READER + COMMAND[1], least_lines)
            costs[reader].append(python(*command, "score", model, rows, "-o", out, "--quiet"))
            scores.add((rows, out.read_bytes()))
    return costs, os.stat(table).st_size, n_rows, len(scores) == 2


def extrapolated(costs: dict[str, list[Cost]], n_bytes: int) -> list[float]:
    """Return the CPU seconds of 1 GB as a share of those of the csv module, round by round."""
    growth = 1000 * MB / n_bytes
    whole = {
        reader: [first.cpu + growth * (cost.cpu - first.cpu) for cost in others]
        for reader, (first, *others) in costs.items()
    }
    return [a / b for a, b in zip(whole[BOTH], whole[CSV_MODULE], strict=True)]


def targets(
    rates: dict[str, dict[str, list[float]]], ratios: list[float], is_same: bool
) -> list[Target]:
    fast = {what: median(rates[what][BOTH]) for what in (NUMBERS, NARROW)}
    gains = {what: median(found[BOTH]) / median(found[CSV_MODULE]) for what, found in rates.items()}
    least = min(gains, key=lambda what: gains[what])
    return [
        Target(
            f"tables of numbers are read at {FASTEST:g} MB per CPU second or more",
            ", ".join(f"{rate:.0f} ({what})" for what, rate in fast.items()),
            min(fast.values()) >= FASTEST,
        ),
        Target(
            "no table is read more slowly than by the csv module (5 % are noise)",
            f"{gains[least]:.2f} times as fast at least ({least})",
            gains[least] >= 0.95,
        ),
        Target(
            f"`ocfuse score` takes at most {LEAST_SHARE:g} of the CPU, extrapolated to 1 GB",
            f"{median(ratios):.2f} (rounds: {', '.join(f'{r:.2f}' for r in ratios)})",
            median(ratios) <= LEAST_SHARE,
        ),
        Target("the scores are the same, byte for byte", "yes" if is_same else "no", is_same),
    ]


def rates_table(rates: dict[str, dict[str, list[float]]], sizes: dict[str, int]) -> Table:
    return Table(
        "Megabytes per CPU second",
        ["table", "MB", BOTH, CSV_MODULE, "times as fast"],
        [
            [
                what,
                f"{sizes[what] / MB:.0f}",
                spread(found[BOTH], 1),
                spread(found[CSV_MODULE], 1),
                f"{median(found[BOTH]) / median(found[CSV_MODULE]):.2f}",
            ]
            for what, found in rates.items()
        ],
        "Median of the rounds, least and most in parentheses.",
    )


def costs_table(costs: dict[str, list[Cost]], ratios: list[float]) -> Table:
    return Table(
        "`ocfuse score`",
        [
            "round",
            *(f"CPU, {reader}" for reader in READERS),
            "ratio",
            "ratio at 1 GB",
            *(f"memory, {reader}" for reader in READERS),
        ],
        [
            [
                str(i) if i else "first rows",
                *(f"{costs[reader][i].cpu:.1f} s" for reader in READERS),
                f"{costs[BOTH][i].cpu / costs[CSV_MODULE][i].cpu:.2f}",
                f"{ratios[i - 1]:.2f}" if i else "",
                *(f"{costs[reader][i].peak / MB:,.0f} MB" for reader in READERS),
            ]
            for i in range(1 + ROUNDS)
        ],
    )
