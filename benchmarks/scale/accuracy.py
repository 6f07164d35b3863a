"""Part "accuracy": the whole detector as it is for many rows, against the exact path."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.estimator.tables import FloatArray, Task
from benchmarks.report import Report, Table, Target
from benchmarks.scale.child import CACHE
from benchmarks.scale.landmarks import MOST_TESTED, TRAINED, content, sets, task
from ocfuse import FusedDetector, metrics
from ocfuse.compare import Results, System
from ocfuse.detectors.pool import make_pool
from ocfuse.lab.paper import Cell, run_cells
from ocfuse.lab.paper.runner import Stored, code_digest, definition_key, package_sources

DEFAULT, EXACT = "default", "exact"
LIMIT = 0.2
#: Splits; an exact fit takes a minute.
SEEDS = 3
#: What the exact path computes does not change with how fast it is computed, and it takes
#: minutes: raise this where its results do change.
EXACT_VERSION = "1"


def default(seed: int) -> FusedDetector:
    return FusedDetector(random_state=seed)


def exact(seed: int) -> FusedDetector:
    """Return all 16 members, with the kernel of all rows and no row left out of any."""
    members = []
    for name, member in make_pool("default"):
        named = ("landmarks", "max_samples")
        parameters = [key for key in member.get_params() if key.rpartition("__")[2] in named]
        members.append((name, member.set_params(**dict.fromkeys(parameters))))
    return FusedDetector(members, random_state=seed)


WAYS: dict[str, Callable[[int], FusedDetector]] = {DEFAULT: default, EXACT: exact}


class Accuracy:
    """Both ways, as `ocfuse.lab.paper.run_cells` takes them."""

    def systems(self, cell: Cell) -> list[System]:
        code = {DEFAULT: code_digest(package_sources()), EXACT: EXACT_VERSION}
        return [
            System(
                way,
                way,
                definition_key(way, code[way], content(cell.name)),
                lambda context, way=way: measured(WAYS[way](context[1]), context[0]),
            )
            for way in WAYS
        ]

    def prepare(self, cell: Cell) -> tuple[Any, Stored]:
        return (task(cell.name, cell.seed), cell.seed), {"set": cell.name}


def measured(detector: FusedDetector, rows: Task) -> Results:
    begin = time.process_time()
    detector.fit(rows.train)
    fit = time.process_time() - begin
    scores = detector.score_samples(rows.test)
    y = np.where(rows.is_normal, 1, -1)
    return {"fused": {"auc": 100 * metrics.auc(y, scores), "cpu": fit}}


def run(quick: bool) -> Report:
    names, seeds = sets(quick), range(1 if quick else SEEDS)
    cells = [Cell("accuracy", f"{TRAINED}", name, seed) for seed in seeds for name in names]
    stored = run_cells(Accuracy(), cells, CACHE)
    auc = {way: collected(stored, way, "auc").reshape(len(seeds), -1) for way in WAYS}
    cpu = {way: collected(stored, way, "cpu").mean() for way in WAYS}
    change = auc[DEFAULT] - auc[EXACT]
    mean, error = change.mean(), change.mean(axis=0).std(ddof=1) / np.sqrt(len(names))
    return Report(
        "Accuracy where there are many rows",
        f"Sets of ADBench with more than {TRAINED:,} normals: so many drawn to learn from in each "
        f"of {len(seeds)} splits, up to {MOST_TESTED:,} others and as many anomalies to tell "
        "apart. The default as it is from 2,001 rows on (pool large, landmarks) against the exact "
        "path: all 16 members of the default pool, `landmarks=None`, `max_samples=None`. AUC in "
        f"points. A fit took {cpu[DEFAULT]:.1f} CPU seconds, the exact one {cpu[EXACT]:.0f}.",
        [
            Target(
                f"mean AUC within {LIMIT:g} of the exact path",
                f"{mean:+.2f} (standard error over sets {error:.2f})",
                bool(mean >= -LIMIT),
            )
        ],
        [by_set(names, auc, change)],
        {
            "sets": names,
            "auc": {way: values.tolist() for way, values in auc.items()},
            "cpu": cpu,
        },
    )


def collected(stored: list[Stored], way: str, measure: str) -> FloatArray:
    return np.array([cell["runs"][way]["results"]["fused"][measure] for cell in stored])


def by_set(names: list[str], auc: dict[str, FloatArray], change: FloatArray) -> Table:
    rows = [
        [
            name,
            f"{auc[EXACT][:, i].mean():.2f}",
            f"{auc[DEFAULT][:, i].mean():.2f}",
            f"{change[:, i].mean():+.2f}",
            f"{change[:, i].min():+.2f} to {change[:, i].max():+.2f}",
        ]
        for i, name in enumerate(names)
    ]
    rows.append(
        [
            "mean",
            f"{auc[EXACT].mean():.2f}",
            f"{auc[DEFAULT].mean():.2f}",
            f"{change.mean():+.2f}",
            f"mean absolute {np.abs(change).mean():.2f}",
        ]
    )
    return Table("Set by set", ["set", "exact", "default", "change", "of single splits"], rows)
