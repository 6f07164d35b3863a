"""What could have been had in hindsight, to tell why figures differ; no result of a system."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from ocfuse.bench.cells import Cell, Results, System, run_cells
from ocfuse.bench.context import Context
from ocfuse.bench.definition import code_digest, definition_key
from ocfuse.bench.paper import SETS, Paper, paper_cells
from ocfuse.bench.splits import PROTOCOLS
from ocfuse.metrics import auc
from ocfuse.tuning.families import family

FloatArray = NDArray[np.float64]

#: Repetitions, at most: these are bounds, not results.
SEEDS = 3
#: Weights of a linear combination are hardly held back.
FREEDOM = 1e3
#: Criteria of the two protocols.
JUDGES = {"pure": ("rpau", "pseudo-negatives"), "non-pure": ("labels",)}

#: (set, what) to an AUC in %, where what is such as "kpca lowest" or "linear rpau".
Bounds = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Hindsight(Paper):
    """Bounds as an experiment; unlike a system it looks at the truth about the test."""

    def systems(self, cell: Cell) -> list[System]:
        """Return one system, whose key changes with those of the members."""
        keys = [system.key for system in super().systems(cell) if system.group == "member"]
        key = definition_key(code_digest([Path(__file__)]), *keys)
        return [System("hindsight", "hindsight", key, lambda found: bounds(found, cell.variant))]


def run_hindsight(
    folder: str | Path, sets: Sequence[str] = SETS, seeds: int = SEEDS, jobs: int = 1
) -> Bounds:
    """Return the bounds, means over repetitions, computing only what is not stored.

    Parameters
    ----------
    folder : str or Path
        ``cells/`` in it keeps the results.
    sets : sequence of str, default: all
        Numbers of sets, "D1" to "D10".
    seeds : int, default=3
        Repetitions.
    jobs : int, default=1
        Processes.

    Returns
    -------
    dict
        AUC in % by set and by what it is: "kpca lowest" and "kpca highest" of the
        candidates of a family, "linear rpau" of a linear combination of the members
        that a criterion has chosen, with weights fitted on the test itself.
    """
    cells = [
        Cell("hindsight", cell.variant, cell.name, cell.seed) for cell in paper_cells(sets, seeds)
    ]
    values: dict[tuple[str, str], list[float]] = {}
    for stored in run_cells(Hindsight(), cells, Path(folder) / "cells", jobs):
        for what, found in stored["runs"]["hindsight"]["results"].items():
            if "auc" in found:
                values.setdefault((stored["split"]["name"], what), []).append(found["auc"])
    return {place: fmean(areas) for place, areas in values.items()}


def bounds(context: Context, protocol: str) -> Results:
    """Return the bounds of one cell; candidates in the pure protocol only, as both share them."""
    trial, candidates = context.trial, context.candidates
    y = np.where(trial.is_normal, 1, -1)
    areas: dict[str, float] = {}
    if protocol == PROTOCOLS[0]:
        S = candidates.pool.score_samples(trial.test)
        names = np.array([family(name) for name in candidates.pool.names_])
        each = np.array([auc(y, column) for column in S.T])
        for name in dict.fromkeys(names.tolist()):
            areas[f"{name} lowest"] = float(each[names == name].min())
            areas[f"{name} highest"] = float(each[names == name].max())
    for criterion in JUDGES[protocol]:
        areas[f"linear {criterion}"] = best_linear(
            candidates.chosen(criterion).scores(trial.test), y
        )
    return {what: {"auc": round(100.0 * area, 6)} for what, area in areas.items()}


def best_linear(S: FloatArray, y: NDArray[Any]) -> float:
    """Return the AUC of about the best linear combination of the columns, known the labels."""
    scaled = scale(S)
    weights = LogisticRegression(C=FREEDOM, class_weight="balanced", max_iter=5000).fit(scaled, y)
    tried = [weights.decision_function(scaled), scaled.sum(axis=1), *scaled.T]
    return max(auc(y, score) for score in tried)
