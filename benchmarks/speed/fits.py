"""Part "fits": small and middle tables, beside PyOD; growth with the number of rows."""

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

from pyod.models import kpca

from benchmarks.estimator.systems import PyodAverage, PyodEnsemble, fused_default, lscp, suod
from benchmarks.estimator.tables import Task, synthetic_task
from benchmarks.report import Report, Table, Target, number, spread

REPETITIONS = 5
OURS, AVERAGE, LSCP = "FusedDetector()", "PyOD average of five", "PyOD LSCP of five"
#: Systems, and the most rows of each: beyond them it takes minutes.
SYSTEMS: dict[str, tuple[Callable[[int], Any], int]] = {
    OURS: (fused_default, 20_000),
    AVERAGE: (PyodAverage, 20_000),
    LSCP: (lscp, 5_000),
    "PyOD SUOD of five": (suod, 20_000),
    "PyOD KPCA": (lambda seed: PyodEnsemble(kpca.KPCA(random_state=seed)), 2_000),
}
#: Rows, and most CPU seconds of a fit to them.
LIMITS = {500: 0.5, 1_000: 0.9, 2_000: 2.0, 5_000: None, 20_000: 5.0}
#: Doubled again and again, and how much more the double may take.
DOUBLED = (200, 400, 800, 1_600, 3_200, 6_400, 12_800, 37_500, 75_000, 150_000, 300_000)
MOST_GROWTH = 2.4
#: More rows are learned from once, as a fit takes a minute.
OFTEN = 40_000
TIMES_AVERAGE, SHARE_OF_LSCP = 2.0, 0.1
QUICK = {200: 1.0, 400: 1.0}

Costs = dict[tuple[str, int], list[tuple[float, float]]]


def run(quick: bool) -> Report:
    limits = QUICK if quick else LIMITS
    costs: Costs = {}
    for repetition in range(2 if quick else REPETITIONS):
        for n in limits:
            task = synthetic_task(n, seed=repetition)
            for name, (make, most) in SYSTEMS.items():
                # what takes half a minute, once
                if n <= most and (repetition == 0 or name != LSCP or n <= 1_000):
                    costs.setdefault((name, n), []).append(taken(make(repetition), task))
                    print(repetition, n, name, costs[name, n][-1], flush=True)
    doubled = tuple(limits) if quick else DOUBLED
    growth = {n: [] for n in doubled}
    for repetition in range(1 if quick else REPETITIONS):
        for n in doubled:
            if repetition == 0 or n <= OFTEN:
                task = synthetic_task(n, seed=repetition)
                growth[n].append(taken(fused_default(repetition), task, scores=False)[0])
                print(repetition, n, growth[n][-1], flush=True)
    return Report(
        "Fits of small and middle tables",
        "Four regions in 10 dimensions: n normal rows to learn from, and n rows to score. CPU "
        f"seconds of one thread, median of {REPETITIONS} draws with the least and the most, all "
        "systems in turn; LSCP once from 2,000 rows on. A small fit before lets every system "
        "import what it needs.",
        targets(costs, growth, limits),
        [fits_table(costs, limits), growth_table(growth)],
        {
            "costs": [[name, n, found] for (name, n), found in costs.items()],
            "growth": {str(n): found for n, found in growth.items()},
        },
    )


def taken(system: Any, task: Task, *, scores: bool = True) -> tuple[float, float]:
    """Return the CPU seconds of learning and of scoring as many rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm_up(type(system))
        begin = time.process_time()
        system.fit(task.train)
        fitted = time.process_time()
        if scores:
            system.score_samples(task.test)
    return fitted - begin, time.process_time() - fitted


_WARM: set[type] = set()


def warm_up(kind: type) -> None:
    """Let everything be imported once."""
    if kind not in _WARM:
        _WARM.add(kind)
        small = synthetic_task(120)
        for make, _ in SYSTEMS.values():
            make(0).fit(small.train).score_samples(small.test)


def targets(costs: Costs, growth: dict[int, list[float]], limits: dict[int, Any]) -> list[Target]:
    found = []
    for n, limit in limits.items():
        if limit is not None:
            cpu = median(fit for fit, _ in costs[OURS, n])
            found.append(Target(f"{n:,} x 10 within {limit:g} CPU s", f"{cpu:.2f} s", cpu <= limit))
    for rival, most, what in (
        (AVERAGE, TIMES_AVERAGE, f"{TIMES_AVERAGE:g} times PyOD's average"),
        (LSCP, SHARE_OF_LSCP, f"{SHARE_OF_LSCP:g} of LSCP"),
    ):
        ratios = {
            n: whole(costs[OURS, n]) / whole(costs[rival, n]) for n in limits if (rival, n) in costs
        }
        worst = max(ratios, key=lambda n: ratios[n])
        shown = ", ".join(f"{ratio:.2f} at {n:,}" for n, ratio in ratios.items())
        found.append(
            Target(f"fit + score at most {what}, at every n", shown, ratios[worst] <= most)
        )
    steps = {
        (a, b): median(growth[b]) / median(growth[a]) for a in growth for b in growth if b == 2 * a
    }
    if steps:
        worst_step = max(steps, key=lambda step: steps[step])
        found.append(
            Target(
                f"twice the rows at most {MOST_GROWTH:g} times the time, from {min(growth):,} to "
                f"{max(growth):,}",
                f"{steps[worst_step]:.2f} from {worst_step[0]:,} to {worst_step[1]:,}",
                steps[worst_step] <= MOST_GROWTH,
            )
        )
    return found


def whole(found: list[tuple[float, float]]) -> float:
    return median(fit + score for fit, score in found)


def fits_table(costs: Costs, limits: dict[int, Any]) -> Table:
    rows = []
    for name in SYSTEMS:
        for n in limits:
            if (name, n) in costs:
                fits, scores = zip(*costs[name, n], strict=True)
                ratio = whole(costs[OURS, n]) / whole(costs[name, n])
                rows.append([name, f"{n:,}", spread(fits), spread(scores), f"{ratio:.2f}"])
    header = ["system", "n", "fit, CPU s", "score n rows, CPU s", "FusedDetector() / this"]
    return Table("Fit and score", header, rows, "The last column compares fit + score.")


def growth_table(growth: dict[int, list[float]]) -> Table:
    rows = []
    for n, found in growth.items():
        half = growth.get(n // 2)
        ratio = f"{median(found) / median(half):.2f}" if half else ""
        rows.append([f"{n:,}", spread(found), ratio, number(1e6 * median(found) / n)])
    header = ["n", "fit, CPU s", "times that of half", "microseconds per row"]
    return Table("Growth, 10 columns", header, rows)
