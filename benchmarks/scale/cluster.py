"""Part "cluster": what two workers take, and from that what a hundred machines would."""

import os
import pickle
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.report import Report, Table, Target, number
from benchmarks.scale.data import features_and_fresh
from ocfuse import FusedDetector
from ocfuse.distributed import connected, fit, sample, score
from ocfuse.tables import TableDetector

#: Rows of the sample and columns; the last are those of the plan.
SHAPES = ((20_000, 64), (20_000, 512))
QUICK = ((2_500, 8),)
#: Rows that are drawn from and scored, files of them, and files of next to nothing.
SCORED, FILES, SMALL_FILES = 40_000, 8, 200
WORKERS = 2
#: What scores may differ by from those of one machine.
TOLERANCE = 1e-9
GIGA = 1e9


@dataclass
class Found:
    """What a sample of n rows of m columns has taken; CPU seconds.

    Attributes
    ----------
    read : float
        Seconds to read and look at a cell, both times.
    fit_here, fit_there : float
        Seconds of the command and of the workers to learn, without drawing.
    fit_alone : float
        Seconds of one process that does the same by itself.
    score : float
        Seconds of a worker for a row, reading and writing included.
    model, row_in, row_out, peak : float
        Bytes: of the model as it is sent, of a row of data and of scores on disk, and the most
        that a worker had.
    worst : float
        Largest difference of a score from that of one machine.
    """

    n: int
    m: int
    read: float
    fit_here: float
    fit_there: float
    fit_alone: float
    score: float
    model: float
    row_in: float
    row_out: float
    peak: float
    worst: float


@dataclass(frozen=True)
class Site:
    """A cluster on paper."""

    rows: float = 1e9
    machines: int = 100
    cores: int = 16
    storage: float = 10 * GIGA
    rows_per_file: float = 50_000

    @property
    def workers(self) -> int:
        return self.machines * self.cores


def run(quick: bool) -> Report:
    shapes = QUICK if quick else SHAPES
    with TemporaryDirectory() as place:
        found = [measured(Path(place), n, m, 4_000 if quick else SCORED) for n, m in shapes]
        per_file = overhead(Path(place), 20 if quick else SMALL_FILES)
    site = Site()
    return Report(
        "Many machines",
        f"A real cluster of {WORKERS} worker processes on this machine; nothing larger was run. "
        "The default `FusedDetector()` on feature rows of single precision. CPU seconds, as told "
        "by the processes themselves. The plan is arithmetic from the largest of the shapes.",
        [equality(found)],
        [constants(found, per_file), plan(found[-1], per_file, site)],
        {"found": [vars(f) for f in found], "per_file": per_file, "site": vars(site)},
    )


def measured(place: Path, n: int, m: int, n_scored: int) -> Found:
    data, out = place / f"data-{m}", place / f"scores-{m}"
    X, fresh = features_and_fresh(n_scored, 100, m)
    write(data, X, FILES)
    names = [f"x{j}" for j in range(m)]
    alone, spread = (TableDetector(FusedDetector(random_state=0)) for _ in range(2))
    with connected(workers=WORKERS) as client:
        # what is imported at first use is no cost of the work
        score(tiny(names), data, place / f"warm-{m}", client=client)
        sample(data, 100, client=client)
        begin = spent(client)
        rows = sample(data, n, client=client)
        drawn = spent(client)
        fit(spread, data, client=client, rows=n)
        fitted = spent(client)
        score(spread, data, out, client=client)
        scored = spent(client)
        peak = max(client.run(peak_bytes).values())
    start = time.process_time()
    alone.fit(rows)
    took = time.process_time() - start
    draw = drawn - begin
    learned = fitted - drawn - draw
    return Found(
        n=n,
        m=m,
        read=draw[1] / X.size,
        fit_here=learned[0],
        fit_there=learned[1],
        fit_alone=took,
        score=(scored - fitted)[1] / len(X),
        model=len(pickle.dumps(spread)),
        row_in=_size(data) / len(X),
        row_out=_size(out) / len(X),
        peak=peak,
        worst=difference(alone, spread, pd.DataFrame(fresh, columns=names)),
    )


def overhead(place: Path, n_files: int) -> float:
    """Return the CPU seconds of command and scheduler for a file with next to nothing in it."""
    data = place / "small"
    write(data, np.random.default_rng(0).normal(size=(10 * n_files, 4)), n_files)
    model = tiny([f"x{j}" for j in range(4)])
    with connected(workers=WORKERS) as client:
        score(model, data, place / "warm", client=client)
        model.detector_.set_threshold(offset=0.0)  # another model: nothing is resumed
        start = time.process_time()
        score(model, data, place / "small-scores", client=client)
        return (time.process_time() - start) / n_files


def spent(client: Any) -> Any:
    """Return the CPU seconds of this process, and those of all workers together."""
    return np.array([time.process_time(), sum(client.run(time.process_time).values())])


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def write(folder: Path, X: Any, n_files: int) -> None:
    folder.mkdir()
    names = [f"x{j}" for j in range(X.shape[1])]
    for i, rows in enumerate(np.array_split(X.astype(np.float32), n_files)):
        pd.DataFrame(rows, columns=names).to_parquet(folder / f"{i}.parquet", index=False)


def difference(alone: TableDetector, spread: TableDetector, fresh: pd.DataFrame) -> float:
    apart = [
        getattr(alone.detector_, name) - getattr(spread.detector_, name)
        for name in ("training_scores_", "offset_")
    ]
    apart.append(alone.score(fresh)["score"] - spread.score(fresh)["score"])
    return max(float(np.abs(values).max()) for values in apart)


def equality(found: list[Found]) -> Target:
    worst = max(f.worst for f in found)
    return Target(
        f"scores as on one machine to {TOLERANCE:g}",
        f"largest difference {worst:.2g}",
        worst <= TOLERANCE,
    )


def constants(found: list[Found], per_file: float) -> Table:
    def line(name: str, what: str, values: list[str]) -> list[str]:
        return [name, what, *values]

    rows = [
        line("n", "rows of the sample", [f"{f.n:,}" for f in found]),
        line(
            "a", "seconds to read and look at a cell, both times", [f"{f.read:.2g}" for f in found]
        ),
        line("f", "seconds to learn, one process", [number(f.fit_alone) for f in found]),
        line(
            "",
            "the same on workers: of the command + of the workers",
            [f"{number(f.fit_here)} + {number(f.fit_there)}" for f in found],
        ),
        line("r", "rows that a core scores in a second", [number(1 / f.score) for f in found]),
        line("M", "bytes of the model", [_bytes(f.model) for f in found]),
        line("B", "bytes of a row on disk", [number(f.row_in) for f in found]),
        line("b", "bytes of the scores of a row", [number(f.row_out) for f in found]),
        line("w", "most bytes of a worker", [_bytes(f.peak) for f in found]),
        line("s", "seconds of the scheduler for a file", [f"{per_file:.2g}"] * len(found)),
    ]
    return Table("Constants", ["", "what", *(f"m = {f.m}" for f in found)], rows)


def plan(f: Found, per_file: float, site: Site) -> Table:
    cores, cells = site.workers, site.rows * f.m
    files = site.rows / site.rows_per_file
    steps = {
        "draw": (cells * f.read / cores, 2 * site.rows * f.row_in / site.storage),
        "learn": (f.fit_alone, 0.0),
        "send the model": (0.0, site.machines * site.cores * f.model / site.storage),
        "score": (site.rows * f.score / cores, site.rows * (f.row_in + f.row_out) / site.storage),
        "scheduler": (files * per_file, 0.0),
    }
    # the scheduler works beside the others
    total = sum(max(both) for name, both in steps.items() if name != "scheduler")
    slowest = max(steps, key=lambda name: max(steps[name]))
    kind = "processors" if steps[slowest][0] >= steps[slowest][1] else "storage or network"
    rows = [
        [name, *(f"{number(s, 2)} s" if s else "-" for s in both)] for name, both in steps.items()
    ]
    rows.append(["**in all**", f"**{number(total / 60, 2)} minutes**", ""])
    return Table(
        "The plan",
        ["step", "processors", "storage or network"],
        rows,
        f"{site.rows:.0e} rows of {f.m} columns ({number(site.rows * f.row_in / 1e12, 2)} TB), "
        f"{site.machines} machines of {site.cores} cores, a storage of "
        f"{number(site.storage / GIGA, 2)} GB/s, {files:,.0f} files, n = {f.n:,}. Each worker "
        f"needs {_bytes(f.peak)}, each machine {_bytes(f.peak * site.cores)}. The bottleneck: "
        f"**{slowest}**, {kind}.",
    )


def tiny(names: list[str]) -> TableDetector:
    rows = np.random.default_rng(0).normal(size=(200, len(names)))
    return TableDetector(FusedDetector("light", random_state=0)).fit(
        pd.DataFrame(rows, columns=names)
    )


def _size(folder: Path) -> int:
    return sum(os.path.getsize(path) for path in folder.iterdir())


def _bytes(n: float) -> str:
    return f"{number(n / GIGA, 2)} GB" if n >= GIGA else f"{number(n / 1e6, 2)} MB"
