"""Part "latency": one sample at a time, and whether chunks and checkpoints give the same."""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Table, Target
from ocfuse import FusedDetector
from ocfuse.datasets import load_skab
from ocfuse.exceptions import OcfuseWarning
from ocfuse.streaming import StreamDetector

FloatArray = NDArray[np.float64]

LIMIT = 5e-3
CALLS, WARM_UP, ROUNDS = 1_000, 100, 5
#: Rows of each run that are learned, and runs: 400 rows of one, 4,000 of ten.
TRAIN, RUNS = 400, (1, 10)
POOLS = ("default", "light")
HEADER = ["pool", "rows learned", "wall p50", "wall p99", "CPU p50", "CPU p99", "CPU p99, rounds"]
#: Seconds of each round: median and p99, by wall and by CPU.
Seconds = dict[str, list[list[float]]]


def run(quick: bool) -> Report:
    calls = 200 if quick else CALLS
    runs = [r.X for r in load_skab()[16 : 16 + max(RUNS)]]
    samples = np.resize(runs[0], (WARM_UP + calls, runs[0].shape[1]))
    streams = {(pool, n * TRAIN): learn(pool, runs[:n]) for pool in POOLS for n in RUNS}
    taken: dict[tuple[str, int], Seconds] = {case: {"wall": [], "CPU": []} for case in streams}
    for _ in range(ROUNDS):
        for case, stream in streams.items():
            for clock, seconds in one_by_one(stream, samples).items():
                taken[case][clock].append(seconds)
    stream = streams[POOLS[0], TRAIN]
    difference, resumed = same_in_chunks(stream, runs[0]), resumes(stream, runs[0])
    return Report(
        "One sample at a time",
        "`StreamDetector().score_one` on the 8 channels of SKAB, windows of 10 and 30, one thread; "
        f"{ROUNDS} rounds of {calls} calls after {WARM_UP}, the rows below in turn; medians of the "
        "rounds, as other guests of the machine slow down single ones. "
        f"Learned from {TRAIN} rows of one run, or of each of "
        f"{RUNS[-1]} (of which it keeps at most `max_rows`). Wall time counts what else the "
        "machine did meanwhile (see the load below), CPU time does not.",
        [
            *promises(taken),
            Target("one by one as in chunks, to 1e-12", f"{difference:.1e}", difference <= 1e-12),
            Target("resumed from a checkpoint to the bit", str(resumed), resumed),
        ],
        [Table("Latency", HEADER, rows(taken))],
        {f"{pool}, {n} rows": seconds for (pool, n), seconds in taken.items()},
    )


def learn(pool: str, runs: list[FloatArray]) -> StreamDetector:
    """Learn the first rows of each run."""
    X = np.concatenate([run[:TRAIN] for run in runs])
    run = np.repeat(np.arange(len(runs)), TRAIN) if len(runs) > 1 else None
    detector = FusedDetector(pool, false_alarm_rate=0.01, random_state=0)
    with warnings.catch_warnings(action="ignore", category=OcfuseWarning):
        return StreamDetector(detector).fit(X, runs=run)


def promises(taken: dict[tuple[str, int], Seconds]) -> list[Target]:
    """Return what was promised of the pool that a user gets without asking."""
    return [
        Target(
            f"p99 within 5 ms, {n:,} rows, {clock}",
            f"{1e3 * p99:.2f} ms",
            p99 <= LIMIT,
        )
        for (pool, n), seconds in taken.items()
        for clock, (_, p99) in middle(seconds).items()
        if pool == POOLS[0]
    ]


def rows(taken: dict[tuple[str, int], Seconds]) -> list[list[str]]:
    return [
        [
            pool,
            f"{n:,}",
            *(f"{1e3 * q:.2f} ms" for pair in middle(seconds).values() for q in pair),
            ", ".join(f"{1e3 * p99:.2f}" for _, p99 in seconds["CPU"]),
        ]
        for (pool, n), seconds in taken.items()
    ]


def middle(seconds: Seconds) -> dict[str, list[float]]:
    """Return the medians of the rounds."""
    return {clock: np.median(rounds, axis=0).tolist() for clock, rounds in seconds.items()}


def one_by_one(stream: StreamDetector, samples: FloatArray) -> dict[str, list[float]]:
    """Return median and p99 of the seconds of a call."""
    wall, cpu = [], []
    stream.reset()
    with warnings.catch_warnings(action="ignore", category=OcfuseWarning):
        for sample in samples:
            begin, begin_cpu = time.perf_counter(), time.process_time()
            stream.score_one(sample)
            cpu.append(time.process_time() - begin_cpu)
            wall.append(time.perf_counter() - begin)
    clocks = {"wall": wall, "CPU": cpu}
    return {name: np.percentile(t[WARM_UP:], (50, 99)).tolist() for name, t in clocks.items()}


def same_in_chunks(stream: StreamDetector, X: FloatArray) -> float:
    """Return the largest difference between scores one by one and of the whole run."""
    stream.reset()
    one = np.array([stream.score_one(x) for x in X])
    whole = stream.score_run(X)
    assert np.array_equal(np.isnan(one), np.isnan(whole))
    scale = np.maximum(1.0, np.abs(whole))
    return float(np.nanmax(np.abs(one - whole) / scale))


def resumes(stream: StreamDetector, X: FloatArray) -> bool:
    """Tell whether a stream goes on after a checkpoint as if nothing had happened."""
    stream.reset()
    stream.score_chunk(X[:500])
    with tempfile.TemporaryDirectory() as folder:
        stream.checkpoint(Path(folder) / "state")
        uninterrupted = [stream.score_one(x) for x in X[500:600]]
        stream.reset().resume(Path(folder) / "state")
        return uninterrupted == [stream.score_one(x) for x in X[500:600]]
