"""Stored cells as tables: one row per set, one column per system, means over the seeds."""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy.experiment import Accuracy
from benchmarks.accuracy.sets import family, family_means, finite_means
from benchmarks.estimator.tables import FloatArray
from benchmarks.report import Data
from ocfuse import show_progress
from ocfuse.lab.paper import Cell, run_cells
from ocfuse.lab.paper.runner import Stored

CACHE = Path(__file__).parents[2] / ".bench-cache" / "accuracy"
KEPT = (
    *("auc", "auc_new", "ap", "hits_1", "hits_5", "gmean", "best_gmean", "false_alarms"),
    *("fit", "score"),
)
#: What is written down of every system on every set; of the others the mean is.
WRITTEN = ("auc", "auc_new", "ap", "gmean")


@dataclass(frozen=True)
class Results:
    """What came out of one variant of a part."""

    sets: list[str]
    groups: dict[str, str]
    values: dict[str, FloatArray]
    prevalence: FloatArray
    failures: dict[tuple[str, str, str], int]

    @property
    def systems(self) -> list[str]:
        return list(self.groups)

    def of(self, *groups: str) -> list[str]:
        """Return the systems of some groups."""
        return [name for name, group in self.groups.items() if group in groups]

    def column(self, name: str, measure: str = "auc") -> FloatArray:
        """Return the results of one system, set by set."""
        return self.values[measure][:, self.systems.index(name)]

    def table(self, names: list[str], measure: str = "auc") -> FloatArray:
        """Return the results of some systems, side by side."""
        return np.column_stack([self.column(name, measure) for name in names])

    def take(self, names: list[str]) -> "Results":
        """Return the results on some of the sets."""
        chosen = [i for i, name in enumerate(self.sets) if name in names]
        values = {measure: table[chosen] for measure, table in self.values.items()}
        kept = {key: n for key, n in self.failures.items() if key[1] in names}
        found = [self.sets[i] for i in chosen]
        return Results(found, self.groups, values, self.prevalence[chosen], kept)

    @property
    def best_member(self) -> FloatArray:
        """AUC of the best single member of each set, known only afterwards."""
        return np.asarray(np.nanmax(self.table(self.of("member")), axis=1))

    def by_family(self) -> "Results":
        """Return the results averaged over the tasks of each family."""
        values = {m: family_means(self.sets, table) for m, table in self.values.items()}
        return replace(
            self,
            sets=sorted({family(name) for name in self.sets}),
            values=values,
            prevalence=family_means(self.sets, self.prevalence),
        )

    def record(self, written: tuple[str, ...] = WRITTEN) -> Data:
        """Return the means over the seeds, for the JSON file."""
        present = [m for m in KEPT if np.isfinite(self.values[m]).any()]
        return {
            "groups": self.groups,
            "prevalence": _rounded(self.sets, self.prevalence),
            "means": {m: _rounded(self.systems, finite_means(self.values[m])) for m in present},
            "sets": {
                m: {s: _rounded(self.systems, self.values[m][i]) for i, s in enumerate(self.sets)}
                for m in present
                if m in written
            },
        }


def run_variants(cells: list[Cell], jobs: int) -> dict[str, Results]:
    """Run cells of several variants together, and return the results of each."""
    with show_progress():
        stored = run_cells(Accuracy(), cells, CACHE, jobs)
    found: defaultdict[str, list[Stored]] = defaultdict(list)
    for cell, results in zip(cells, stored, strict=True):
        found[cell.variant].append(results)
    return {variant: gather(results) for variant, results in found.items()}


def gather(cells: list[Stored]) -> Results:
    """Average stored cells over their seeds; a failed run is left out of the mean."""
    groups: dict[str, str] = {}
    found: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    prevalence: defaultdict[str, list[float]] = defaultdict(list)
    failures: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for cell in cells:
        prevalence[cell["set"]].append(cell["prevalence"])
        for run in cell["runs"].values():
            for name, measures in run["results"].items():
                groups.setdefault(name, run["group"])
                if "failure" in measures:
                    failures[name, cell["set"], measures["failure"]] += 1
                for measure, value in measures.items():
                    if measure in KEPT and value is not None:
                        found[measure, cell["set"], name].append(value)
    sets = list(prevalence)
    values = {
        m: np.array([[_mean(found[m, s, name]) for name in groups] for s in sets]) for m in KEPT
    }
    shares = np.array([_mean(prevalence[name]) for name in sets])
    return Results(sets, groups, values, shares, dict(failures))


def _mean(values: list[float]) -> float:
    # rounded, so that the order of a sum does not part systems that are level
    return round(float(np.mean(values)), 6) if values else np.nan


def _rounded(names: list[str], values: FloatArray) -> Data:
    pairs = zip(names, values, strict=True)
    return {name: round(float(value), 2) for name, value in pairs if np.isfinite(value)}
