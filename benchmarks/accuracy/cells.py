"""One cell is one split of one set: every system on it, kept in one file."""

import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks.accuracy import splits, systems
from benchmarks.accuracy.context import Context
from benchmarks.accuracy.measures import measure
from benchmarks.accuracy.splits import Split
from benchmarks.accuracy.systems import System

CACHE = Path(__file__).parents[2] / ".bench-cache" / "accuracy"

Stored = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A part with its variant (protocol, number of labels or share), a set and a seed."""

    part: str
    variant: str
    name: str
    seed: int

    def path(self) -> Path:
        variant = self.variant.replace("/", "-")
        return CACHE / self.part / variant / f"{self.name}.{self.seed}.json"


#: How the rows of a part are split, by set, variant and seed, and what is run on them.
SPLITS: dict[str, Callable[[str, str, int], Split]] = {
    "pure": splits.pure,
    "labels": lambda name, count, seed: splits.labelled(name, int(count), seed),
    "dirty": lambda name, share, seed: splits.dirty(name, float(share), seed),
}
SYSTEMS: dict[str, Callable[[], list[System]]] = {
    "pure": systems.pure,
    "labels": systems.labelled,
    "dirty": systems.dirty,
}


def run_cells(cells: list[Cell], jobs: int) -> list[Stored]:
    """Return the results of all cells in their order, computing what is not stored."""
    begin = time.perf_counter()
    done = 0
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(run_cell)(c) for c in cells)
    results = []
    for cell, (stored, fresh) in zip(cells, found, strict=True):
        results.append(stored)
        done += fresh
        spent = time.perf_counter() - begin
        left = spent / max(done, 1) * (len(cells) - len(results))
        print(
            f"{len(results)}/{len(cells)} {cell.part} {cell.variant} {cell.name} {cell.seed}: "
            f"{spent:.0f} s, about {left:.0f} s left",
            flush=True,
        )
    return results


def run_cell(cell: Cell) -> tuple[Stored, bool]:
    """Return one cell's results, and whether any of them had to be computed."""
    stored = load(cell)
    wanted = SYSTEMS[cell.part]()
    runs = stored.setdefault("runs", {})
    stale = [s for s in wanted if runs.get(s.name, {}).get("key") != s.key]
    if stale:
        split = SPLITS[cell.part](cell.name, cell.variant, cell.seed)
        context = Context(split, cell.seed)
        stored |= _about(cell, split)
        for system in stale:
            results = run_system(system, context)
            runs[system.name] = {"key": system.key, "group": system.group, "results": results}
        save(cell, stored)
    names = {system.name for system in wanted}
    return stored | {"runs": {name: runs[name] for name in runs if name in names}}, bool(stale)


def run_system(system: System, context: Context) -> dict[str, Any]:
    """Return the measures by name; a failure is kept, not raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = system.run(context)
            return {name: measure(scores, context.split) for name, scores in found.items()}
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
            return {system.name: {"failure": reason}}


def load(cell: Cell) -> Stored:
    """Return what is stored; a file that cannot be read counts as none."""
    try:
        found: Stored = json.loads(cell.path().read_text())
    except (OSError, ValueError):
        return {}
    return found


def save(cell: Cell, stored: Stored) -> None:
    """Write the file beside its place and move it there, so that none is ever half written."""
    path = cell.path()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(json.dumps(stored))
    os.replace(fresh, path)


def _about(cell: Cell, split: Split) -> Stored:
    n_anomalies = int((~split.is_normal).sum())
    return {
        "set": cell.name,
        "seed": cell.seed,
        "n_train": len(split.train),
        "n_features": split.train.shape[1],
        "n_normals": int(split.is_normal.sum()),
        "n_anomalies": n_anomalies,
        "prevalence": 100 * n_anomalies / len(split.test),
    }
