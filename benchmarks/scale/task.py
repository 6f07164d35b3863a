"""What one process measures: ``python -m benchmarks.scale.task '{"system": ...}'``.

It prints one line of JSON. Its memory is its own: nothing else has run in it.
"""

import gc
import importlib
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.scale.data import (
    COLUMNS,
    BoolArray,
    FloatArray,
    feature_anomalies,
    features_and_fresh,
    planted,
)

#: Where systems are, by the first word of their names; others are in `rivals`.
MODULES = {"ocfuse": "systems", "PyOD": "ensembles"}


@dataclass(frozen=True)
class Task:
    """A system, the rows it learns and scores, and what it may cost.

    Attributes
    ----------
    system : str
        Name, of one of the `MODULES`.
    data : str
        "planted", of 64 columns, or "features".
    n, m : int
        Rows to learn from, and their columns.
    n_test : int
        Rows to score at once, a tenth to a half of them anomalies; 0 for none.
    calls : int
        Rows to score one at a time.
    threads : int
        Of BLAS and of our own.
    cpu, room : int
        Most CPU seconds and bytes of address space.
    warm : int
        Bytes that the process has touched before and keeps. Where a virtual machine gives its
        free memory back, a page that is touched first costs more than what is done with it;
        the memory of such a task says nothing.
    """

    system: str
    data: str
    n: int
    m: int = COLUMNS
    n_test: int = 10_000
    calls: int = 0
    threads: int = 1
    cpu: int = 600
    room: int = 16 * 10**9
    warm: int = 0


@dataclass(frozen=True)
class Rows:
    """Rows to learn from, and rows to score."""

    X: FloatArray
    test: FloatArray
    is_anomaly: BoolArray


def rows_of(task: Task) -> Rows:
    if task.data == "planted":
        drawn = planted(task.n, max(task.n_test, 1000))
        return Rows(drawn.X, drawn.test, drawn.is_anomaly)
    X, fresh = features_and_fresh(task.n, max(task.n_test, 2), task.m)
    # The fresh rows are halved: the second half is made strange.
    half = len(fresh) // 2
    test = np.vstack([fresh[:half], feature_anomalies(fresh[half:])])
    return Rows(X, test, np.arange(len(test)) >= half)


def system_of(name: str) -> Any:
    """Return the system; what it does not need is not imported, lest it be charged for it."""
    module = importlib.import_module(f"benchmarks.scale.{MODULES.get(name.split()[0], 'rivals')}")
    return module.SYSTEMS[name]()


def memory() -> tuple[int, int]:
    """Return bytes resident now, and at most since `forget_peak`."""
    found = {}
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(("VmRSS", "VmHWM")):
                found[line[:5]] = 1024 * int(line.split()[1])
    return found["VmRSS"], found["VmHWM"]


def forget_peak() -> None:
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = function()
    return found, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def measure(task: Task) -> dict[str, Any]:
    rows = rows_of(task)
    system = system_of(task.system)
    np.ones(task.warm // 8)  # the allocator keeps it, see `child.KEEPING`
    forget_peak()
    begin = memory()[0]
    _, fit = timed(lambda: system.fit(rows.X))
    gc.collect()
    end, peak = memory()
    found: dict[str, Any] = {"fit": fit, "before": begin, "after": end, "peak": peak}
    if task.n_test:
        scores, found["score"] = timed(lambda: system.score_samples(rows.test))
        found["auc"] = 100 * float(roc_auc_score(~rows.is_anomaly, scores))
        found["score peak"] = memory()[1]
    if task.calls:
        found["one row"] = one_row(system, rows.test, task.calls)
    return found


def one_row(system: Any, rows: FloatArray, calls: int) -> dict[str, float]:
    """Return percentiles of the wall seconds of single rows, after some to warm up."""
    taken = []
    for i in range(calls + 20):
        row = rows[i % len(rows)][np.newaxis]
        taken.append(timed(lambda row=row: system.score_samples(row))[1]["wall"])
    values = np.percentile(taken[20:], [50, 90, 99])
    return dict(zip(("p50", "p90", "p99"), map(float, values), strict=True))


def main(words: list[str]) -> None:
    task = Task(**json.loads(words[0]))
    resource.setrlimit(resource.RLIMIT_CPU, (task.cpu, task.cpu + 10))
    resource.setrlimit(resource.RLIMIT_AS, (task.room, task.room))
    warnings.simplefilter("ignore")
    with threadpool_limits(task.threads):
        try:
            found = measure(task)
        except MemoryError:
            found = {"failure": f"more than {task.room / 1e9:.0f} GB"}
    print(json.dumps({"task": asdict(task), **found}))


if __name__ == "__main__":
    main(sys.argv[1:])
