"""Part "latency": one row at a time, with the default pool."""

import numpy as np

from benchmarks.estimator.tables import synthetic_task
from benchmarks.estimator.trial import one_row_seconds, run_trial
from benchmarks.report import Report, Table, Target

SIZES = (500, 2_000, 5_000, 20_000)
AT, LIMIT = 2_000, 5e-3
FLAT = 1.5
CALLS, ROUNDS = 500, 4
SYSTEM = "FusedDetector, default pool"


def run(quick: bool) -> Report:
    sizes = (500, 2_000) if quick else SIZES
    fitted = {}
    for n in sizes:
        task = synthetic_task(n)
        trial, system = run_trial(SYSTEM, str(n), task, 0)
        if system is None:
            raise RuntimeError(trial.failure)
        fitted[n] = (task, system)
    taken: dict[int, list[float]] = {n: [] for n in sizes}
    for _ in range(1 if quick else ROUNDS):  # in turn, so that a busy moment hits all alike
        for n, (task, system) in fitted.items():
            taken[n] += one_row_seconds(system, task, CALLS // 10 if quick else CALLS)
    rows = []
    for n in sizes:
        p50, p90, p99 = 1e3 * np.percentile(taken[n], [50, 90, 99])
        rows.append([f"{n:,}", f"{p50:.2f} ms", f"{p90:.2f} ms", f"{p99:.2f} ms"])
    p99 = float(np.percentile(taken[AT], 99))
    growth = float(np.median(taken[sizes[-1]]) / np.median(taken[AT]))
    return Report(
        "One row at a time",
        "Wall time of `score_samples` on one row of 10 features, one thread, default pool; "
        f"{len(taken[AT])} calls per size, in turn.",
        [
            Target(f"p99 within 5 ms at n = {AT:,}", f"{1e3 * p99:.2f} ms", p99 <= LIMIT),
            Target(
                f"flat in n: median at {sizes[-1]:,} at most {FLAT:g} times that at {AT:,}",
                f"{growth:.2f} times",
                growth <= FLAT,
            ),
        ],
        [Table("Latency", ["n", "p50", "p90", "p99"], rows)],
        {"seconds": {str(n): taken[n] for n in sizes}},
    )
