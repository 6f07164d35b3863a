"""Part "threads": the default number of threads beside one; a one-class SVM beside both."""

import json
import os
import sys
import time
import warnings
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.report import Report, Table, Target, spread
from benchmarks.scale.child import KEEPING, THREADS, run_child
from benchmarks.scale.data import features_and_fresh

REPETITIONS = 5
SHAPE, QUICK_SHAPE = (20_000, 512), (2_500, 32)
#: Most CPU time of the default against one thread, and of a fit against one one-class SVM.
MORE, SHARE = 1.3, 0.5
ONE, DEFAULT, SVM = "one thread", "default", "OneClassSVM, one thread"
Runs = dict[str, list[dict[str, Any]]]


def run(quick: bool) -> Report:
    n, m = QUICK_SHAPE if quick else SHAPE
    runs: Runs = {ONE: [], DEFAULT: [], SVM: []}
    for _ in range(1 if quick else REPETITIONS):
        for name, found in runs.items():
            found.append(fitted(name, n, m))
            print(name, found[-1], flush=True)
    return Report(
        "Threads",
        f"The default detector of {n:,} x {m} rows as pooled features of a network have them, "
        f"{REPETITIONS} times, each in a process of its own that has touched 2 GB before, in turn: "
        "with one thread for everything, and as it comes. Load: the processes that could run when "
        "it began, this one among them; with more than the cores, wall time says nothing.",
        targets(runs),
        [table(runs)],
        {"runs": runs},
    )


def fitted(name: str, n: int, m: int) -> dict[str, Any]:
    count = str(os.cpu_count()) if name == DEFAULT else "1"
    return run_child(
        "benchmarks.speed.threads",
        [name, str(n), str(m)],
        more=KEEPING | dict.fromkeys(THREADS, count),
    )


def targets(runs: Runs) -> list[Target]:
    one, default, svm = (median(each["cpu"] for each in runs[name]) for name in (ONE, DEFAULT, SVM))
    walls = [median(each["wall"] for each in runs[name]) for name in (DEFAULT, ONE)]
    same = len({each["bits"] for name in (ONE, DEFAULT) for each in runs[name]}) == 1
    return [
        Target(
            f"CPU time with the default at most {MORE:g} times that of one thread",
            f"{default:.1f} and {one:.1f} s: {default / one:.2f}",
            default <= MORE * one,
        ),
        Target(
            "less wall time than with one thread",
            f"{walls[0]:.1f} and {walls[1]:.1f} s: {walls[0] / walls[1]:.2f}",
            walls[0] < walls[1],
        ),
        Target("the same scores to the bit", "yes" if same else "no", same),
        Target(
            f"one thread at most {SHARE:g} of the CPU time of one OneClassSVM",
            f"{one:.1f} of {svm:.1f} s: {one / svm:.2f}",
            one <= SHARE * svm,
        ),
    ]


def table(runs: Runs) -> Table:
    rows = [
        [
            name,
            *(spread([each[what] for each in found], 1) for what in ("cpu", "wall")),
            spread([each["load"] for each in found], 0),
        ]
        for name, found in runs.items()
    ]
    return Table("Runs", ["threads", "CPU s", "wall s", "load"], rows)


def main(name: str, n: int, m: int) -> None:
    """Fit in this process, and print what it took."""
    import numpy as np  # noqa: PLC0415
    from sklearn.svm import OneClassSVM  # noqa: PLC0415

    from ocfuse import FusedDetector  # noqa: PLC0415

    warnings.simplefilter("ignore")
    with threadpool_limits(1):  # the same rows to the bit
        X, fresh = features_and_fresh(n, 100, m)
    np.ones(2 * 10**9 // 8)
    with open("/proc/loadavg") as file:
        load = int(file.read().split()[3].split("/")[0])
    system = OneClassSVM(nu=0.1) if name == SVM else FusedDetector(random_state=0)
    wall, cpu = time.perf_counter(), time.process_time()
    system.fit(X)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    bits = float(np.sum(system.score_samples(fresh))).hex()
    print(json.dumps({"cpu": cpu, "wall": wall, "load": load, "bits": bits}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
