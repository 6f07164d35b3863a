"""Part "mixed": machines with seasons, one-sided columns and gaps, all at once."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.context.scenarios import DAY, START, Traffic, usuals
from benchmarks.context.systems import HEADER, RATE, forest, fused, one_each
from benchmarks.report import Data, Report, Table
from ocfuse import FusedDetector

FloatArray = NDArray[np.float64]
SEEDS, QUICK_SEEDS = 3, 1
GROUPS, WEEKS = 20, 3
SIDES = {"errors": "high", "latency": "high"}
METHOD = (
    f"{GROUPS} sites, each a multiple of the traffic of part season (a factor of 0.2 to 5), a row "
    "an "
    f"hour over {WEEKS} weeks, 2 % of the cells empty in training and after. Anomalies have the "
    "requests of another hour, or five spreads more errors or latency; errors and latency are bad "
    f"when high only. {100 * RATE:g} % stated. 'By group' and 'by hour' are the lowest and highest "
    "shares of false alarms, in shares of the stated rate. Means of the draws."
)


def rows(rng: np.random.Generator, sizes: FloatArray, weeks: int, first: int) -> pd.DataFrame:
    """Return a row an hour of every site."""
    parts = []
    for k, size in enumerate(sizes):
        table = Traffic(rng).rows(weeks, first).iloc[::6].reset_index(drop=True)
        values = table.iloc[:, 1:] * size
        values = values.mask(rng.random(values.shape) < 0.02)
        parts.append(pd.concat([table[["when"]], values], axis=1).assign(site=f"site {k}"))
    return pd.concat(parts, ignore_index=True)


def anomalies(rng: np.random.Generator, normal: pd.DataFrame, sizes: FloatArray) -> pd.DataFrame:
    """Return normal rows of which one column is unusual for their site and hour."""
    table = normal.iloc[rng.choice(len(normal), size=1_500, replace=False)].reset_index(drop=True)
    seconds = (table["when"] - START).dt.total_seconds().to_numpy()
    size = sizes[table["site"].str.slice(5).astype(int).to_numpy()]
    kind = rng.integers(3, size=len(table))
    shifted = usuals(seconds + rng.integers(8, 17, size=len(table)) * DAY / 24)
    usual = usuals(seconds)
    table["requests"] = table["requests"].where(kind != 0, shifted[0][0] * size)
    for j, name in ((1, "errors"), (2, "latency")):
        far = (usual[j][0] + 5 * usual[j][1]) * size
        table[name] = table[name].where(kind != j, far)
    return table


def flat(table: pd.DataFrame) -> FloatArray:
    """Return columns by hand: sites as codes, sine and cosine of the day, gaps as medians."""
    seconds = (table["when"] - START).dt.total_seconds().to_numpy()
    values = table[["requests", "errors", "latency"]]
    sites = table["site"].str.slice(5).astype(float)
    circles = [wave(2 * np.pi * seconds / DAY) for wave in (np.sin, np.cos)]
    return np.column_stack([values.fillna(values.median()), sites, *circles])


def systems() -> list[object]:
    def light() -> FusedDetector:
        return FusedDetector("light", random_state=0, false_alarm_rate=RATE)

    season = {"time": "when", "season": ("day", "week")}
    return [
        fused("FusedDetector, no context", drop=["when", "site"]),
        fused("FusedDetector, site as a category", drop=["when"]),
        fused("FusedDetector(by='site')", drop=["when"], by="site"),
        fused("FusedDetector(by, season)", by="site", **season),
        fused("**FusedDetector(by, season, direction)**", by="site", direction=SIDES, **season),
        one_each("site", "one model for each site", light, drop=["when"]),
        forest(flat, "isolation forest, columns by hand"),
    ]


def run(is_quick: bool) -> Report:
    data: Data = {}
    for seed in range(QUICK_SEEDS if is_quick else SEEDS):
        rng = np.random.default_rng(seed)
        sizes = np.exp(rng.uniform(np.log(0.2), np.log(5.0), size=GROUPS))
        train, fresh = rows(rng, sizes, WEEKS, 0), rows(rng, sizes, 4, WEEKS)
        odd = anomalies(rng, fresh, sizes)
        site = fresh["site"].str.slice(5).astype(int).to_numpy()
        hour = fresh["when"].dt.hour.to_numpy()
        for system in systems():
            result = system.run(train, fresh, odd)  # type: ignore[attr-defined]
            kept = data.setdefault(system.name, {"rates": [], "site": [], "hour": []})  # type: ignore[attr-defined]
            kept["rates"].append([result.auc, result.found, result.false, result.seconds])
            for key, code in (("site", site), ("hour", hour)):
                share = np.bincount(code, weights=result.is_false) / np.bincount(code) / RATE
                kept[key].append([float(share.min()), float(share.max())])
    table = []
    for name, kept in data.items():
        auc, found, false, seconds = np.mean(kept["rates"], axis=0)
        ranges = [np.mean(kept[key], axis=0) for key in ("site", "hour")]
        table.append(
            [
                *(name, f"{100 * auc:.1f}", f"{100 * found:.1f} %", f"{100 * false:.1f} %"),
                *(f"{low:.2f} to {high:.2f}" for low, high in ranges),
                f"{seconds:.2f}",
            ]
        )
    header = [*HEADER, "by group", "by hour", "CPU s"]
    return Report("All at once", METHOD, [], [Table("By system", header, table)], data)
