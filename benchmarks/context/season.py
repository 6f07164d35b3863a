"""Part "season": what is usual by the hour of day and the day of week."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.context.scenarios import DAY, START, WEEK, Traffic
from benchmarks.context.systems import HEADER, RATE, forest, fused, pyod
from benchmarks.report import Data, Report, Table, Target

FloatArray = NDArray[np.float64]
SEEDS, QUICK_SEEDS = 5, 1
WEEKS, FRESH_WEEKS = 4, 8
METHOD = (
    "A site: requests, errors and latency every ten minutes, 5 % of the rows missing. By day they "
    "are twenty times as many as by night, at weekends half, and a batch job runs at six. "
    f"{WEEKS} weeks to learn from, {FRESH_WEEKS} weeks of normal rows; anomalies have the values "
    "of "
    f"another hour, which are usual in themselves. {100 * RATE:g} % false alarms stated. 'By "
    "hour' is "
    "the lowest and the highest share of false alarms of the 24 hours, in shares of the stated "
    "rate. "
    "Columns by hand are sine and cosine of the time of day and of the week. Means of the draws."
)


def with_circles(table: pd.DataFrame) -> FloatArray:
    """Return the columns with sine and cosine of the time, as many make them by hand."""
    seconds = (table["when"] - START).dt.total_seconds().to_numpy()
    circles = [
        wave(2 * np.pi * seconds / period) for period in (DAY, WEEK) for wave in (np.sin, np.cos)
    ]
    return np.column_stack([table.drop(columns="when"), *circles])


SYSTEMS = [
    fused("FusedDetector, no time", drop=["when"]),
    fused(
        "**FusedDetector(time='when', season=('day', 'week'))**",
        time="when",
        season=("day", "week"),
    ),
    fused("FusedDetector(time='when', season='day')", time="when", season="day"),
    forest(with_circles, "isolation forest, sine and cosine by hand"),
    pyod(with_circles, "PyOD KNN, sine and cosine by hand"),
]


def run(is_quick: bool) -> Report:
    data: Data = {}
    for seed in range(QUICK_SEEDS if is_quick else SEEDS):
        traffic = Traffic(np.random.default_rng(seed))
        train, fresh = traffic.rows(WEEKS), traffic.rows(FRESH_WEEKS, WEEKS)
        odd = traffic.anomalies(2_000, WEEKS)
        hour = traffic.hour(fresh)
        for system in SYSTEMS:
            result = system.run(train, fresh, odd)
            by_hour = np.bincount(hour, weights=result.is_false) / np.bincount(hour) / RATE
            kept = data.setdefault(system.name, {"rates": [], "by hour": []})
            kept["rates"].append([result.auc, result.found, result.false, result.seconds])
            kept["by hour"].append(by_hour.tolist())
    rows, ranges = [], {}
    for name, kept in data.items():
        auc, found, false, seconds = np.mean(kept["rates"], axis=0)
        mean = np.mean(kept["by hour"], axis=0)
        ranges[name] = (float(mean.min()), float(mean.max()))
        rows.append(
            [
                *(name, f"{100 * auc:.1f}", f"{100 * found:.1f} %", f"{100 * false:.1f} %"),
                *(f"{mean.min():.2f} to {mean.max():.2f}", f"{seconds:.2f}"),
            ]
        )
    plain, ours = ranges[SYSTEMS[0].name], ranges[SYSTEMS[1].name]
    targets = [
        Target(
            "false alarms of every hour within 0.5 to 2 times the stated rate",
            f"{ours[0]:.2f} to {ours[1]:.2f}",
            ours[0] >= 0.5 and ours[1] <= 2.0,
        ),
        Target(
            "the plain detector is outside of that",
            f"{plain[0]:.2f} to {plain[1]:.2f}",
            plain[0] < 0.5 or plain[1] > 2.0,
        ),
    ]
    header = [*HEADER, "by hour", "CPU s"]
    return Report("Season", METHOD, targets, [Table("By system", header, rows)], data)
