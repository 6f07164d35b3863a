"""Part "groups": 2 to 5,000 machines in one model, 20 rows of each and more."""

import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta

from benchmarks.context.scenarios import Machines
from benchmarks.context.systems import HEADER, RATE, Result, fused, one_each, pyod
from benchmarks.report import Data, Report, Table, Target
from ocfuse import FusedDetector

FloatArray = NDArray[np.float64]
#: Groups, and rows of each.
SIZES = ((2, 500), (20, 100), (200, 20), (1_000, 20))
QUICK_SIZES = ((2, 100), (20, 20))
LARGEST = (5_000, 20)
SEEDS, QUICK_SEEDS = 5, 1
#: Rows of one group by which its false alarms are counted, and groups that are looked at.
ROWS_EACH, LOOKED_AT = 200, 50
METHOD = (
    "Machines with centres, spreads and noise of their own in four columns; their centres are five "
    "times as far apart as the rows of one. Anomalies are five spreads of their machine away in "
    "one "
    "column, usual for another machine. 'Unlike the rate' is the share of 50 groups whose false "
    "alarms among 200 fresh rows are outside of the interval in which 99 of 100 groups would be at "
    f"the stated rate of {100 * RATE:g} % (in brackets: half to twice the rate counts as held, as "
    "few rows of a group cannot tell more). CPU seconds of learning and scoring. One model for "
    "each "
    "group is `FusedDetector('light')` up to 20 groups. By hand: columns measured from mean and "
    "spread of the group, then PyOD. Means of the draws."
)


def by_hand(train: pd.DataFrame) -> object:
    """Return how to measure tables from mean and spread of their groups, as many do by hand."""
    columns = list(Machines.columns)
    known = train.groupby("machine")[columns].agg(["mean", "std"])

    def prepare(table: pd.DataFrame) -> FloatArray:
        mine = known.loc[table["machine"]]
        parts = [
            (table[name].to_numpy() - mine[(name, "mean")].to_numpy())
            / mine[(name, "std")].to_numpy()
            for name in columns
        ]
        return np.column_stack(parts)

    return prepare


def run(is_quick: bool) -> Report:
    rows: list[list[str]] = []
    data: Data = {}
    for n, rows_each in QUICK_SIZES if is_quick else SIZES:
        for seed in range(QUICK_SEEDS if is_quick else SEEDS):
            machines = Machines(np.random.default_rng([n, seed]), n)
            parts = machines.scenario(rows_each)
            systems = [
                fused("FusedDetector, no column of the machine", drop=["machine"]),
                fused("FusedDetector, machine as a category"),
                fused("**FusedDetector(by='machine')**", by="machine"),
                pyod(by_hand(parts.train), "by hand, PyOD KNN"),  # type: ignore[arg-type]
                pyod(by_hand(parts.train), "by hand, PyOD ECOD", "ECOD"),  # type: ignore[arg-type]
            ]
            if n <= 20:
                light = lambda: FusedDetector("light", random_state=0, false_alarm_rate=RATE)  # noqa: E731
                systems.append(one_each("machine", "one model for each group", light))
            groups = np.repeat(np.arange(min(n, LOOKED_AT)), ROWS_EACH)
            fresh = machines.rows(groups)
            for system in systems:
                result = system.run(parts.train, fresh, parts.anomalies)
                odd, wide = unlike(result, groups)
                kept = data.setdefault(f"{n} x {rows_each}", {}).setdefault(system.name, [])
                kept.append([result.auc, result.found, result.false, odd, wide, result.seconds])
    for size, found in data.items():
        for name, values in found.items():
            auc, hits, false, odd, wide, seconds = np.mean(values, axis=0)
            rows.append(
                [
                    *(
                        size,
                        name,
                        f"{100 * auc:.1f}",
                        f"{100 * hits:.1f} %",
                        f"{100 * false:.1f} %",
                    ),
                    *(f"{100 * odd:.0f} % ({100 * wide:.0f} %)", f"{seconds:.2f}"),
                ]
            )
    seconds, peak = largest(*((200, 20) if is_quick else LARGEST))
    data["largest"] = {"seconds": seconds, "bytes": peak}
    targets = [
        Target(
            "5,000 groups of 20 rows in one model: at most 60 CPU s and 1 GB",
            f"{seconds:.1f} s, {peak / 1e9:.2f} GB",
            seconds <= 60 and peak <= 1e9,
        )
    ]
    header = ["groups x rows", *HEADER, "unlike the rate", "CPU s"]
    return Report("Groups", METHOD, targets, [Table("By system", header, rows)], data)


def unlike(result: Result, groups: NDArray[np.intp]) -> tuple[float, float]:
    """Return the share of groups outside of 99 of 100, and outside of half to twice the rate."""
    counts = np.bincount(groups, weights=result.is_false)
    low, high = (
        beta.ppf(0.005, counts + 1e-9, ROWS_EACH - counts + 1),
        beta.ppf(0.995, counts + 1, ROWS_EACH - counts + 1e-9),
    )
    rate = counts / ROWS_EACH
    is_wide = (low > 2 * RATE) | (high < RATE / 2)
    return float(np.mean((low > RATE) | (high < RATE))), float(np.mean(is_wide | (rate > 0.5)))


def largest(n: int, rows_each: int) -> tuple[float, int]:
    """Return CPU seconds and most bytes of a fit with many groups, in a process of its own."""
    code = f"from benchmarks.context.groups import fit_largest; fit_largest({n}, {rows_each})"
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    seconds, peak = out.split()
    return float(seconds), int(peak)


def fit_largest(n: int, rows_each: int) -> None:
    """Fit, and print CPU seconds of the fit and the most bytes of the process."""
    machines = Machines(np.random.default_rng(0), n)
    table = machines.rows(np.repeat(np.arange(n), rows_each))
    begin = time.process_time()
    FusedDetector(by="machine", random_state=0).fit(table)
    seconds = time.process_time() - begin
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
