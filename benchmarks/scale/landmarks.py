"""Part "landmarks": kernel members by way of landmarks against the same on the whole kernel."""

import time
import zlib
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.estimator.tables import FloatArray, Task, filled, standardised
from benchmarks.report import Data, Report, Table, Target
from ocfuse import metrics
from ocfuse.compare import Results, System
from ocfuse.datasets import Dataset, load_adbench
from ocfuse.datasets.adbench import adbench_infos
from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.landmarks import BLOCK_ROWS
from ocfuse.detectors.pool import LANDMARKS, WIDTHS
from ocfuse.detectors.svdd import SVDD
from ocfuse.detectors.views import Compressed
from ocfuse.lab.paper import Cell, run_cells
from ocfuse.lab.paper.runner import (
    Stored,
    code_digest,
    data_digest,
    definition_key,
    package_sources,
)

CACHE = Path(__file__).parents[2] / ".bench-cache" / "scale"
TRAINED, MOST_TESTED, SEEDS = 3_000, 2_000, 5
QUICK = ("38_thyroid", "44_Wilt")
MEAN_TARGET, WORST_TARGET = 0.25, 1.5

METHOD = f"""
All sets of ADBench that are there and have more than {TRAINED:,} normals: so many drawn to learn
from in each of {{seeds}} splits, up to {MOST_TESTED:,} others and as many anomalies to tell apart,
standardised on the rows learned from. Every member is fitted twice: on the whole kernel
(`landmarks=None, max_samples=None`) and by way of {LANDMARKS:,} landmarks, as a pool fits it. AUC
in points; a change is that by landmarks less that on the whole kernel. The change of a set is the
mean over its splits; absolute changes are of single splits.

The mean of the Gaussian process goes by blocks: exact among at most {BLOCK_ROWS:,} near rows, by
way of the landmarks between blocks. This was chosen on these sets, see `docs/scale.md`.

Results are stored: what was taken, below, is the time of the last run only.
"""

Options = dict[str, Any]
#: A measure of a way, shape (sets, seeds, members)
Found = dict[str, FloatArray]
CODE = ("landmarks.py", "leverage.py", "moments.py", "reduced.py", "sphere.py", "spectrum.py")
#: The two ways: the options of a member, and the files that its results rest on.
WAYS: dict[str, tuple[Options, tuple[str, ...]]] = {
    "exact": ({"landmarks": None, "max_samples": None}, ("spectrum.py", "inverse.py")),
    "landmarks": ({"landmarks": LANDMARKS}, (*CODE, "blocks.py", "blocked.py", "gp.py")),
}
MEMBERS: dict[str, Callable[..., BaseDetector]] = {
    **{f"kpca-{w:g}": partial(KPCA, width=w) for w in (0.25, 1.0)},
    **{f"ckpca-{w:g}": lambda w=w, **o: Compressed(KPCA(width=w, **o)) for w in (0.25, 1.0)},
    **{f"gp-{w:g}": partial(OneClassGP, width=w) for w in WIDTHS},
    **{f"svdd-{w:g}": partial(SVDD, width=w) for w in WIDTHS},
}


class Context:
    """One split; the members of one way share distances and kernels, as in a pool."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @cached_property
    def gram(self) -> Gram:
        return Gram(self.task.train)

    def run(self, name: str, options: Options) -> Results:
        begin = time.process_time()
        member = MEMBERS[name](**options).fit_gram(self.gram)
        query = self.gram.query(self.task.test)
        scores = member.score_query(query)
        taken = time.process_time() - begin
        y = np.where(self.task.is_normal, 1, -1)
        return {name: {"auc": 100 * metrics.auc(y, scores), "cpu": taken}}


class Landmarks:
    """Every member in both ways, as `ocfuse.lab.paper.run_cells` takes it."""

    def systems(self, cell: Cell) -> list[System]:
        """Return the members in both ways; what is stored of one lasts as long as its code."""
        return [
            System(
                f"{way} {name}",
                way,
                definition_key(name, repr(options), way_code(way), content(cell.name)),
                partial(run_member, name, options),
            )
            for way, (options, _) in WAYS.items()
            for name in MEMBERS
        ]

    def prepare(self, cell: Cell) -> tuple[Context, Stored]:
        """Draw a split."""
        return Context(task(cell.name, cell.seed)), {"set": cell.name}


def run_member(name: str, options: Options, context: Context) -> Results:
    return context.run(name, options)


@cache
def way_code(way: str) -> str:
    files = WAYS[way][1]
    return code_digest(p for p in package_sources(["detectors"]) if p.name in files)


@cache
def content(name: str) -> str:
    data = loaded(name)
    return data_digest(data.X, data.y)


@cache
def loaded(name: str) -> Dataset:
    return load_adbench(name)


def task(name: str, seed: int) -> Task:
    data = loaded(name)
    normals, anomalies = data.X[data.y > 0], data.X[data.y < 0]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    normals = normals[rng.permutation(len(normals))[: TRAINED + MOST_TESTED]]
    anomalies = anomalies[rng.permutation(len(anomalies))[:MOST_TESTED]]
    test = np.vstack([normals[TRAINED:], anomalies])
    train, test = standardised(*filled(normals[:TRAINED], test))
    return Task(train, test, np.arange(len(test)) < len(normals) - TRAINED)


def sets(quick: bool) -> list[str]:
    names = [info.name.split("/")[-1] for info in adbench_infos() if info.n_normals > TRAINED]
    return [name for name in names if name in QUICK] if quick else names


def run(quick: bool) -> Report:
    names, seeds = sets(quick), range(1 if quick else SEEDS)
    cells = [Cell("landmarks", f"{TRAINED}", name, seed) for name in names for seed in seeds]
    stored = run_cells(Landmarks(), cells, CACHE)
    found = {
        f"{way} {measure}": collected(stored, way, measure, len(seeds))
        for way in WAYS
        for measure in ("auc", "cpu")
    }
    change = found["landmarks auc"] - found["exact auc"]
    kinds = {"all members": "", "KPCA": "kpca", "SVDD": "svdd", "GP": "gp"}
    return Report(
        f"Kernel members by way of {LANDMARKS:,} landmarks against the whole kernel",
        METHOD.format(seeds=len(seeds)).strip(),
        targets(names, change, kinds),
        [by_member(found, change), by_set(names, found["exact auc"], change)],
        record(names, found),
    )


def collected(stored: list[Stored], way: str, measure: str, n_seeds: int) -> FloatArray:
    """Return a measure, shape (sets, seeds, members)."""
    runs = [cell["runs"] for cell in stored]
    figures = [[run[f"{way} {m}"]["results"][m][measure] for m in MEMBERS] for run in runs]
    return np.array(figures).reshape(-1, n_seeds, len(MEMBERS))


def targets(names: list[str], change: FloatArray, kinds: dict[str, str]) -> list[Target]:
    """Return both targets for the members of each kind: a title, and what is in their names."""
    found = []
    for title, kind in kinds.items():
        columns = [j for j, name in enumerate(MEMBERS) if kind in name]
        mean = float(np.abs(change[..., columns]).mean())
        of_set = change[..., columns].mean(axis=1)
        i, j = np.unravel_index(int(np.abs(of_set).argmax()), of_set.shape)
        member = list(MEMBERS)[columns[int(j)]]
        found += [
            Target(
                f"{title}: mean absolute change at most {MEAN_TARGET:g}",
                f"{mean:.3f}",
                mean <= MEAN_TARGET,
            ),
            Target(
                f"{title}: none changed by more than {WORST_TARGET:g} on any set",
                f"{of_set[i, j]:+.2f}, {member} on {names[i]}",
                bool(abs(of_set[i, j]) <= WORST_TARGET),
            ),
        ]
    return found


def by_member(found: Found, change: FloatArray) -> Table:
    exact = found["exact auc"]
    header = ["member", "AUC, whole", "change", "absolute", "worst of a set", "worst of a split"]
    header += ["CPU s, whole", "by landmarks"]
    return Table(
        "Member by member",
        header,
        [
            [
                name,
                f"{exact[..., j].mean():.2f}",
                f"{change[..., j].mean():+.3f}",
                f"{np.abs(change[..., j]).mean():.3f}",
                f"{worst(change[..., j].mean(axis=1)):+.2f}",
                f"{worst(change[..., j]):+.2f}",
                *(f"{found[f'{way} cpu'][..., j].mean():.2f}" for way in WAYS),
            ]
            for j, name in enumerate(MEMBERS)
        ],
        "CPU seconds of fit and score, in the order of the table: later members find distances and "
        "kernels of earlier ones.",
    )


def by_set(names: list[str], exact: FloatArray, change: FloatArray) -> Table:
    rows = [
        [
            name,
            f"{exact[i].mean():.2f}",
            *(f"{figure:+.2f}" for figure in change[i].mean(axis=0)),
            f"{change[i].mean():+.3f}",
            f"{np.abs(change[i]).mean():.3f}",
        ]
        for i, name in enumerate(names)
    ]
    header = ["set", "AUC, whole", *MEMBERS, "change", "absolute"]
    return Table("Set by set", header, rows, "Means over the splits.")


def worst(figures: FloatArray) -> float:
    return float(figures.flat[np.abs(figures).argmax()])


def record(names: list[str], found: Found) -> Data:
    tables = {key: np.round(table, 4) for key, table in found.items()}
    by_name = {
        name: {key: table[i].tolist() for key, table in tables.items()}
        for i, name in enumerate(names)
    }
    return {"members": list(MEMBERS), "sets, split by split": by_name}
