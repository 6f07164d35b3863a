"""Part "workers": one job on one, two and four workers, and with workers that are killed."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import psutil

from benchmarks.report import Report, Table, Target, number
from benchmarks.scale.cluster import spent, tiny, write
from benchmarks.scale.data import features_and_fresh
from ocfuse import FusedDetector
from ocfuse.distributed import connected, fit, sample, score
from ocfuse.system.progress import show_progress
from ocfuse.tables import TableDetector, open_source

#: Rows to learn from and to score, columns, and files.
SHAPE, QUICK, FILES = (20_000, 50), (2_500, 8), 16
WORKERS = (1, 2, 4)
#: Workers of the run in which some are killed.
MORTAL = 2


@dataclass
class Run:
    """What one run has taken, and how far its results are from those of one process.

    Attributes
    ----------
    workers, killed : int
        Worker processes, and how many of them were killed.
    fit, score : float
        Seconds from call to return.
    cpu_here, cpu_there : float
        CPU seconds of the command with the scheduler, and of all workers, killed ones included.
    worst : float
        Largest difference of an out-of-fold score or of a score.
    """

    workers: int
    killed: int
    fit: float
    score: float
    cpu_here: float
    cpu_there: float
    worst: float

    @property
    def wall(self) -> float:
        return self.fit + self.score

    @property
    def cpu(self) -> float:
        return self.cpu_here + self.cpu_there


class Killer:
    """Kills a worker at the first `strike` after `arm`."""

    def __init__(self, client: Any) -> None:
        self.n_killed, self.cpu = 0, 0.0
        self._client = client
        self._is_armed = False

    def arm(self) -> None:
        self._is_armed = True

    def strike(self) -> None:
        if self._is_armed:
            self._is_armed = False
            victim = psutil.Process(next(iter(self._client.run(os.getpid).values())))
            self.cpu += sum(victim.cpu_times()[:2])
            victim.send_signal(signal.SIGKILL)
            self.n_killed += 1


def run(quick: bool) -> Report:
    n, m = QUICK if quick else SHAPE
    with TemporaryDirectory() as place:
        data = Path(place) / "data"
        write(data, features_and_fresh(n, 1, m)[0], FILES)
        alone, scores, took = in_one_process(data)
        runs = [measured(data, k, False, alone, scores) for k in WORKERS]
        runs.append(measured(data, MORTAL, True, alone, scores))
    load = os.getloadavg()[0]
    return Report(
        "One, two and four workers",
        f"The default `FusedDetector()` learns {n:,} x {m} rows and scores them, in {FILES} files, "
        f"on worker processes of one thread on this machine of {os.cpu_count()} cores; it began "
        "when all had imported what they need. **The cores were busy with other work** (load "
        f"average {load:.1f} at the end), so seconds from call to return, and the efficiency from "
        "them, say how the machine was shared more than how the work scales. CPU seconds do not "
        "depend on that. In the last run a worker is killed in the middle of learning, and one "
        "when half of the files are scored.",
        [equality(runs), survival(runs[-1])],
        [table(runs, took)],
        {"alone": took, "runs": [vars(r) for r in runs]},
    )


def in_one_process(data: Path) -> tuple[Any, Any, dict[str, float]]:
    """Return out-of-fold scores, scores, and the seconds that both took in one process."""
    rows = open_source(data).read()
    begin, cpu = time.perf_counter(), time.process_time()
    model = make().fit(rows)
    # file by file, as workers do: how many rows are scored together shows in the last bits
    parts = [model.score(part)["score"] for _, part in rows.groupby("file", sort=False)]
    scores = np.concatenate(parts)
    took = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
    return model.detector_.training_scores_, scores, took


def measured(data: Path, workers: int, is_deadly: bool, alone: Any, scores: Any) -> Run:
    rows = len(scores)
    columns = list(pd.read_parquet(data / "0.parquet").columns)
    with TemporaryDirectory() as place, connected(workers=workers) as client:
        score(tiny(columns), data, Path(place) / "warm", client=client)
        sample(data, 100, client=client)
        killer, begun = Killer(client), spent(client)
        if is_deadly:
            killer.arm()
        start = time.perf_counter()
        with show_progress(lambda *_: killer.strike()):
            model = fit(make(), data, client=client, rows=rows)
        fitted = time.perf_counter()
        if is_deadly:
            client.wait_for_workers(workers, timeout=300)
            killer.arm()
        begin = time.perf_counter()
        score(model, data, Path(place) / "out", client=client, progress=halfway(killer.strike))
        end = time.perf_counter()
        here, there = spent(client) - begun
        found = pd.concat([pd.read_parquet(p) for p in (Path(place) / "out").glob("*.parquet")])
    found = found.sort_values("row")["score"].to_numpy()
    worst = max(
        float(np.abs(model.detector_.training_scores_ - alone).max()),
        float(np.abs(found - scores).max()),
    )
    result = Run(
        workers, killer.n_killed, fitted - start, end - begin, here, there + killer.cpu, worst
    )
    print(result, flush=True)
    return result


def halfway(then: Callable[[], None]) -> Callable[[int, int], None]:
    return lambda done, total: then() if 2 * done >= total else None


def make() -> TableDetector:
    return TableDetector(FusedDetector(random_state=0), ignore="file")


def equality(runs: list[Run]) -> Target:
    worst = max(r.worst for r in runs)
    return Target(
        "every run: out-of-fold scores and scores of one process, bit for bit",
        f"largest difference {worst:.2g}",
        worst == 0,
    )


def survival(run: Run) -> Target:
    return Target(
        "two workers killed, one in learning and one in scoring: it finishes",
        f"{run.killed} killed, {number(run.wall)} s",
        run.killed == 2,
    )


def table(runs: list[Run], took: dict[str, float]) -> Table:
    first = runs[0]
    lines = [
        [
            f"{r.workers}" + (f", {r.killed} killed" if r.killed else ""),
            *(number(s) for s in (r.fit, r.score, r.wall)),
            f"{number(r.cpu_here)} + {number(r.cpu_there)}",
            "-" if r.killed else f"{first.wall / (r.workers * r.wall):.2f}",
            f"{first.cpu / r.cpu:.2f}",
        ]
        for r in runs
    ]
    return Table(
        "Runs",
        ["workers", "fit, s", "score, s", "in all, s", "CPU s, command + workers", "E", "C"],
        lines,
        "E = t(1) / (k t(k)), by seconds in all. C = CPU seconds of one worker's run by those of "
        f"this one: what more workers add in work. One process without Dask took "
        f"{number(took['wall'])} s, {number(took['cpu'])} CPU s.",
    )
