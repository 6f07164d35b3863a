"""Part "million": a million rows, and what the plan foretold."""

import json
import resource
import sys
import time
import warnings
from typing import Any

from benchmarks.report import Report, Table, Target
from benchmarks.scale.child import run_child

SHAPE, QUICK_SHAPE = (1_000_000, 20), (3_000, 20)
N_FRESH = 20_000
#: A plan is right within this factor.
WITHIN = 2.0
GB = 1e9


def run(quick: bool) -> Report:
    n, m = QUICK_SHAPE if quick else SHAPE
    found = run_child("benchmarks.speed.million", [str(n), str(m)])
    if "failure" in found:
        raise SystemExit(found["failure"])
    ratios = {what: found[what] / found[f"planned {what}"] for what in ("seconds", "bytes")}
    return Report(
        f"{n:,} rows of {m} columns",
        "The default detector, learned from all rows by one thread, in a process of its own. "
        "Memory is the most that was resident beyond what the process had with the rows before.",
        [
            Target(
                f"the plan foretold {what} within a factor of {WITHIN:g}",
                f"{ratio:.2f} of the plan",
                1 / WITHIN <= ratio <= WITHIN,
            )
            for what, ratio in ratios.items()
        ],
        [
            Table(
                "Fit",
                ["", "measured", "planned"],
                [
                    ["CPU s", f"{found['seconds']:.0f}", f"{found['planned seconds']:.0f}"],
                    ["GB", f"{found['bytes'] / GB:.2f}", f"{found['planned bytes'] / GB:.2f}"],
                    ["rows scored per CPU s", f"{found['rate']:,.0f}", ""],
                ],
            )
        ],
        found,
    )


def main(n: int, m: int) -> None:
    """Fit in this process, and print what it took."""
    from benchmarks.estimator.tables import synthetic_task  # noqa: PLC0415
    from ocfuse import FusedDetector  # noqa: PLC0415

    warnings.simplefilter("ignore")
    task = synthetic_task(n, m)
    rows = task.test[:N_FRESH]
    FusedDetector(random_state=0).fit(task.train[:300])
    detector = FusedDetector(random_state=0)
    plan = detector.plan(task.train)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    detector.fit(task.train)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    begin = time.process_time()
    detector.score_samples(rows)
    rate = len(rows) / (time.process_time() - begin)
    found: dict[str, Any] = {
        "seconds": seconds,
        "bytes": 1024 * peak,
        "planned seconds": plan.fit_seconds,
        "planned bytes": plan.fit_bytes,
        "rate": rate,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
