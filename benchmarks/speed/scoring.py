"""Part "scoring": rows per CPU second, and single rows."""

import time
import warnings
from statistics import median

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.estimator.tables import synthetic_task
from benchmarks.report import Report, Table, Target, spread
from ocfuse import FusedDetector

REPETITIONS = 5
SIZES, QUICK_SIZES = (500, 2_000, 20_000), (300,)
N_BATCH, N_SINGLE = 10_000, 400
AT = 2_000
RATE = 10_000
#: Most CPU milliseconds of one row, and how much more at the most rows than at 2,000.
ONE_ROW = {"default": 1.5, "light": 0.6}
FLAT = 1.25
LOF = "LOF of scikit-learn"
Found = dict[tuple[str, int], list[tuple[float, float]]]


def run(quick: bool) -> Report:
    sizes = QUICK_SIZES if quick else SIZES
    systems = {}
    for n in sizes:
        task = synthetic_task(n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for pool in ONE_ROW:
                systems[pool, n] = FusedDetector(pool, random_state=0).fit(task.train), task.test
        systems[LOF, n] = LocalOutlierFactor(novelty=True).fit(task.train), task.test
    found: Found = {key: [] for key in systems}
    for _ in range(2 if quick else REPETITIONS):
        for key, (system, test) in systems.items():
            found[key].append(measured(system, np.resize(test, (N_BATCH, test.shape[1]))))
            print(key, found[key][-1], flush=True)
    return Report(
        "Scoring",
        f"Detectors of n rows x 10. {N_BATCH:,} rows at once, and {N_SINGLE} rows one after the "
        f"other; CPU time of one thread, median of {REPETITIONS} with the least and the most, all "
        "in turn.",
        [] if quick else targets(found),
        [table(found)],
        {"found": [[*key, figures] for key, figures in found.items()]},
    )


def measured(system, rows) -> tuple[float, float]:
    """Return rows per CPU second, and CPU milliseconds of a single row."""
    system.score_samples(rows[:20])
    begin = time.process_time()
    system.score_samples(rows)
    rate = len(rows) / (time.process_time() - begin)
    begin = time.process_time()
    for i in range(N_SINGLE):
        system.score_samples(rows[i : i + 1])
    return rate, 1e3 * (time.process_time() - begin) / N_SINGLE


def targets(found: Found) -> list[Target]:
    rates, _ = zip(*found["default", AT], strict=True)
    made = [
        Target(
            f"at least {RATE:,} rows per CPU second at {AT:,} x 10",
            f"{median(rates):,.0f}",
            median(rates) >= RATE,
        )
    ]
    for pool, limit in ONE_ROW.items():
        ms = {n: median(one for _, one in found[pool, n]) for n in SIZES}
        made += [
            Target(
                f'"{pool}": one row within {limit:g} ms of CPU at {AT:,} x 10',
                f"{ms[AT]:.2f} ms",
                ms[AT] <= limit,
            ),
            Target(
                f'"{pool}": flat in n, {SIZES[-1]:,} rows at most {FLAT:g} times {AT:,}',
                f"{ms[SIZES[-1]] / ms[AT]:.2f} times",
                ms[SIZES[-1]] <= FLAT * ms[AT],
            ),
        ]
    return made


def table(found: Found) -> Table:
    rows = []
    for (name, n), figures in found.items():
        rates, ones = zip(*figures, strict=True)
        rows.append([name, f"{n:,}", spread(rates, 0), spread(ones, 2)])
    return Table("Rows and one row", ["system", "n", "rows per CPU s", "one row, CPU ms"], rows)
