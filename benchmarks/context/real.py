"""Part "real": hours of the day in records of years, and a pump that was started anew each time.

Data from packages that are nothing but data (`make bench-context` fetches them) and SKAB; what is
not there is left out, and said so.
"""

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.context.systems import RATE, System, forest, fused, one_each, pyod
from benchmarks.report import Data, Report, Table
from ocfuse import FusedDetector
from ocfuse.datasets import load_skab

FloatArray = NDArray[np.float64]
#: Rows at the beginning of a run of SKAB that are normal.
TRAIN = 400
METHOD = (
    "**Glucose**: one person's, every five minutes (26 weeks, bokeh_sampledata); **sea**: "
    "temperature "
    "of water every half hour (a year). A row has the value and its change over an hour. Six weeks "
    "are learned, the next two judged, then two weeks later again, over the whole record: no row "
    "is "
    "an anomaly, and the range of false alarms over the 24 hours of the day is what counts. Beyond "
    "that the record itself changes, which no season knows. **SKAB**: 34 runs of a pump, the first "
    f"{TRAIN} rows of each learned, the rest judged, by run, as a category, one model each, and "
    f"without the run. {100 * RATE:g} % stated."
)


def record(file: str, time: str, value: str) -> pd.DataFrame | None:
    """Return times, values and their change over an hour; None if the package is not there."""
    package = importlib.util.find_spec("bokeh_sampledata")
    if package is None or package.origin is None:
        return None
    table = pd.read_csv(Path(package.origin).parent / "_data" / file)
    when = pd.to_datetime(table[time]).dt.tz_localize(None)
    series = pd.Series(table[value].to_numpy(dtype=float), index=when)
    series = series[~series.index.duplicated()].sort_index()
    before = series.reindex(
        series.index - pd.Timedelta(hours=1), method="nearest", tolerance="10min"
    )
    found = pd.DataFrame({"when": series.index, "value": series.to_numpy()})
    found["change"] = series.to_numpy() - before.to_numpy()
    return found.dropna(ignore_index=True)


RECORDS: dict[str, Callable[[], pd.DataFrame | None]] = {
    "glucose": lambda: record("CGM.csv.gz", "datetime", "glucose"),
    "sea": lambda: record("sea_surface_temperature.csv.gz", "time (UTC)", "temperature (celsius)"),
}


def circles(table: pd.DataFrame) -> FloatArray:
    seconds = (table["when"] - pd.Timestamp("2000-01-01")).dt.total_seconds().to_numpy()
    angle = 2 * np.pi * seconds / 86_400
    return np.column_stack([table[["value", "change"]], np.sin(angle), np.cos(angle)])


def by_hour(table: pd.DataFrame, is_quick: bool) -> tuple[list[list[str]], Data]:
    """Judge two weeks after six, over a record."""
    systems = [
        fused("FusedDetector, no time", drop=["when"]),
        fused("**FusedDetector(time='when', season='day')**", time="when", season="day"),
        forest(circles, "isolation forest, sine and cosine by hand"),
        pyod(circles, "PyOD KNN, sine and cosine by hand"),
    ]
    first, last = table["when"].iloc[0], table["when"].iloc[-1]
    starts = pd.date_range(first, last - pd.Timedelta(weeks=8), freq="14D")
    counts: Data = {system.name: np.zeros((2, 24)) for system in systems}
    for start in starts[: 2 if is_quick else None]:
        age = table["when"] - start
        train = table[(age >= pd.Timedelta(0)) & (age < pd.Timedelta(weeks=6))]
        fresh = table[(age >= pd.Timedelta(weeks=6)) & (age < pd.Timedelta(weeks=8))]
        if len(train) < 1_000 or len(fresh) < 300:
            continue
        train, fresh = (part.reset_index(drop=True) for part in (train, fresh))
        hour = fresh["when"].dt.hour.to_numpy()
        for system in systems:
            alarms = system.run(train, fresh, fresh.iloc[:1]).is_false
            counts[system.name][0] += np.bincount(hour, weights=alarms, minlength=24)
            counts[system.name][1] += np.bincount(hour, minlength=24)
    rows = []
    for name, (alarms, n) in counts.items():
        rate = alarms / np.maximum(n, 1) / RATE
        total = 100 * alarms.sum() / n.sum()
        ratio = rate.max() / max(rate.min(), 1e-9)
        shown = f"{ratio:.1f}" if rate.min() > 0 else "none at some hour"
        rows.append([name, f"{total:.1f} %", f"{rate.min():.2f} to {rate.max():.2f}", shown])
    return rows, {
        name: (found[0] / np.maximum(found[1], 1)).tolist() for name, found in counts.items()
    }


def skab(is_quick: bool) -> tuple[list[list[str]], Data]:
    """Judge the rest of each run by the beginnings of all."""
    runs = [run for run in load_skab()[1:] if (run.y[:TRAIN] > 0).all()]
    runs = runs[:6] if is_quick else runs

    def frame(run: object, rows: slice) -> pd.DataFrame:
        X = run.X[rows]  # type: ignore[attr-defined]
        table = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        return table.assign(run=run.name)  # type: ignore[attr-defined]

    def light() -> FusedDetector:
        return FusedDetector("light", random_state=0, false_alarm_rate=RATE)

    train = pd.concat([frame(run, slice(TRAIN)) for run in runs], ignore_index=True)
    rest = pd.concat([frame(run, slice(TRAIN, None)) for run in runs], ignore_index=True)
    is_normal = np.concatenate([run.y[TRAIN:] > 0 for run in runs])
    normal = rest[is_normal].reset_index(drop=True)
    odd = rest[~is_normal].reset_index(drop=True)
    systems: list[System] = [
        fused("FusedDetector, no run", drop=["run"]),
        fused("FusedDetector, run as a category"),
        fused("**FusedDetector(by='run')**", by="run"),
        one_each("run", "one model for each run", light),
    ]
    rows, data = [], {}
    for system in systems:
        with warnings.catch_warnings(action="ignore"):
            result = system.run(train, normal, odd)
        rows.append([system.name, *result.words(), f"{result.seconds:.1f}"])
        data[system.name] = [result.auc, result.found, result.false, result.seconds]
    return rows, data


def run(is_quick: bool) -> Report:
    data: Data = {}
    tables, missing = [], []
    header = ["system", "false alarms", "by hour, in shares of the rate", "highest to lowest"]
    for name, read in RECORDS.items():
        table = read()
        if table is None:
            missing.append(name)
            continue
        with warnings.catch_warnings(action="ignore"):
            rows, data[name] = by_hour(table, is_quick)
        tables.append(Table(name.capitalize(), header, rows))
    rows, data["skab"] = skab(is_quick)
    header = ["system", "AUC", "anomalies found", "false alarms", "CPU s"]
    tables.append(Table("SKAB", header, rows))
    left_out = f" Left out, as the package is not there: {', '.join(missing)}." if missing else ""
    return Report("Real records", METHOD + left_out, [], tables, data)
