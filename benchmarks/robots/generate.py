"""The benchmark cell: ``python -m benchmarks.robots generate [--full] [--out cell] [--jobs 2]``.

The default is what the tables are made from. ``--full`` has at least as many frames as
LiRAnomaly: 31,642 normal and 5,434 anomalous ones. The tables of such a cell:
``OCFUSE_CELL=full python -m benchmarks.robots cell --out full-results``.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from ocfuse.lab.robot_cell import CellPlan, simulate
from ocfuse.system.progress import show_progress
from ocfuse.vision.trials import Trial

QUICK = CellPlan(train=6, validation=3, test=2, anomalous=3, n_frames=30)
BENCHMARK = CellPlan(train=34, validation=10, test=10, anomalous=12)
#: Of 100 frames each; of those of a run that goes wrong, two thirds are anomalous in the mean.
FULL = CellPlan(train=204, validation=40, test=40, anomalous=24)


def main() -> None:
    """Make a cell, or what is missing of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robots generate")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="23 short runs, about a minute")
    size.add_argument("--full", action="store_true", help="the size of LiRAnomaly")
    parser.add_argument("--out", type=Path, default=Path("cell"), help="folder of the cell")
    parser.add_argument("--jobs", type=int, default=2, help="processes, 2 by default")
    given = parser.parse_args()
    plan = QUICK if given.quick else FULL if given.full else BENCHMARK
    begin = time.perf_counter()
    with show_progress():
        trials = simulate(given.out, plan, given.jobs)
    print(summary(trials))
    print(f"{time.perf_counter() - begin:.0f} s, in {given.out}")


def summary(trials: list[Trial]) -> str:
    """Return how many runs and frames there are."""
    runs = Counter((trial.split, trial.kind) for trial in trials)
    lines = [f"{split} type {kind}: {n} runs" for (split, kind), n in runs.items()]
    normal = sum(int((trial.labels() == 1).sum()) for trial in trials)
    anomalous = sum(len(trial.frames) for trial in trials) - normal
    return "\n".join([*lines, f"{normal} normal and {anomalous} anomalous frames"])


if __name__ == "__main__":
    main()
