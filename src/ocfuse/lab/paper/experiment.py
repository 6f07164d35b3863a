"""The paper's experiment: ten sets, ten repetitions, every system of its tables."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from ocfuse.arrays import FloatArray
from ocfuse.compare import Results, System
from ocfuse.datasets import load_uci
from ocfuse.datasets.dataset import Dataset
from ocfuse.datasets.uci import UCI_SETS
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.lab.paper.repetitions import PROTOCOLS, Split, draw, repeated
from ocfuse.lab.paper.runner import (
    Cell,
    Stored,
    code_digest,
    data_digest,
    definition_key,
    require_writable,
    run_cells,
    write_whole,
)
from ocfuse.lab.paper.systems import SYSTEMS, TABLES, Context, make_context, run_recipe
from ocfuse.metrics import auc
from ocfuse.stats.ranks import require_count
from ocfuse.tuning.splits import family

#: The sets by the paper's numbers.
SETS = tuple(uci_set.paper_id for uci_set in UCI_SETS.values())

#: Name of the bounds among the results of a cell.
HINDSIGHT = "hindsight"

Record = dict[str, Any]

#: (set, what) to an AUC in %, where what is such as "kpca lowest" or "linear rpau".
Bounds = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Paper:
    """The experiment of the paper, for `run_cells`.

    Parameters
    ----------
    load : callable, default=load_uci
        Function that returns the data set with a name.
    """

    load: Callable[[str], Dataset] = load_uci

    def systems(self, cell: Cell) -> list[System]:
        """Return the systems for the protocol of a cell; their keys depend on the data, too.

        The last is no system, but the bounds in hindsight, which look at the truth about the test.
        """
        content = _digest(self.load, cell.name)
        found = [
            System(
                name,
                entry.group,
                definition_key(entry.key, content),
                run_recipe(name, entry.recipe),
            )
            for name, entry in SYSTEMS[cell.variant].items()
        ]
        keys = [system.key for system in found if system.group == "member"]
        key = definition_key(code_digest([Path(__file__)]), *keys)
        bound = System(HINDSIGHT, HINDSIGHT, key, lambda context: bounds(context, cell.variant))
        return [*found, bound]

    def prepare(self, cell: Cell) -> tuple[Context, Stored]:
        """Draw the split of a cell and prepare its rows.

        The split is stored, and how many test rows are repeated training rows.
        """
        data = _loaded(self.load, cell.name)
        split = draw(data.y, cell.name, cell.variant, cell.seed)
        context = make_context(data.X, split)
        return context, {"split": split.record(), "repeated": repeated(context.trial)}


def paper_cells(sets: Sequence[str] = SETS, seeds: int = 10) -> list[Cell]:
    """Return the cells of the experiment.

    Parameters
    ----------
    sets : sequence of str, default: all
        Numbers of sets, "D1" to "D10".
    seeds : int, default=10
        Repetitions.

    Returns
    -------
    list of Cell
        Cells, ordered by repetition, so that large sets are spread over the run; the pure protocol
        first.

    Examples
    --------
    >>> from ocfuse.lab.paper import paper_cells
    >>> len(paper_cells()), str(paper_cells(["D5"], seeds=1)[1])
    (200, 'non-pure D5 0')
    """
    names = set_names(sets)
    require_count("seeds", seeds, 1)
    return [Cell("paper", p, s, seed) for seed in range(seeds) for s in names for p in PROTOCOLS]


def set_names(sets: Sequence[str]) -> list[str]:
    """Return names of sets, such as "D5" or "d5", as the tables have them, each once."""
    if isinstance(sets, str) or not isinstance(sets, Sequence):
        raise InvalidTypeError(f'sets must be a list such as ["D1", "D5"]. Got {sets!r}.')
    names = list(dict.fromkeys(str(name).strip().upper() for name in sets))
    if not names or not set(names) <= set(SETS):
        raise InvalidInputError(f"sets must be some of {', '.join(SETS)}. Got {list(sets)}.")
    return names


def run_paper(
    folder: str | Path, sets: Sequence[str] = SETS, seeds: int = 10, jobs: int = 1
) -> tuple[list[Record], Bounds]:
    """Run the experiment, or its missing cells, and write all results.

    Parameters
    ----------
    folder : str or Path
        Folder of the results: each cell with its split in ``cells/``, and at the end
        ``results.json``. A folder with results of more sets or repetitions is refused.
    sets : sequence of str, default: all
        Numbers of sets, "D1" to "D10".
    seeds : int, default=10
        Repetitions.
    jobs : int, default=1
        Processes.

    Returns
    -------
    list of dict
        One record for each row of a table, set and repetition: "table", "row",
        "system", "group", "protocol", "set", "seed", "split" (a digest of its row numbers),
        "n_train", "n_validation", "n_normals" and "n_anomalies" (of the test), "repeated" (which
        share of these, in %, equals a training row), the measures of `measure`, and "choices"; or
        "failure" instead of measures and choices.
    dict
        Bounds in hindsight, as `mean_bounds` returns them.
    """
    cells, folder = paper_cells(sets, seeds), Path(folder)
    require_count("jobs", jobs, 1)
    require_writable(folder)
    _require_no_fewer(cells, folder)
    stored = run_cells(Paper(), cells, folder / "cells", jobs)
    found = records(stored)
    text = ",\n".join(json.dumps(record, allow_nan=False) for record in found)
    write_whole(folder / "results.json", f"[\n{text}\n]\n")
    return found, mean_bounds(stored)


def _require_no_fewer(cells: Sequence[Cell], folder: Path) -> None:
    """Refuse to replace results, and the tables made of them, by those of fewer cells."""
    try:
        before = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        there = {(record["set"], record["seed"]) for record in before}
    except (OSError, ValueError, TypeError, KeyError):
        return
    if lost := there - {(cell.name, cell.seed) for cell in cells}:
        sets = [name for name in SETS if name in {set_name for set_name, _ in there}]
        n_seeds = 1 + max(seed for _, seed in there)
        raise InvalidInputError(
            f"The folder {str(folder)!r} holds {len(lost)} splits that this run has not: it would "
            "replace tables of more by tables of fewer. Use another folder, or ask for the sets "
            f"{','.join(sets)} and {n_seeds} repetitions."
        )


def records(stored: Sequence[Stored]) -> list[Record]:
    """Return stored cells as one long list, table by table and row by row."""
    return [
        {"table": table, "row": row, **_record(cell, system)}
        for table, rows in TABLES.items()
        for row, system in rows.items()
        for cell in stored
        if system in cell["runs"]
    ]


def rerun(
    results: Sequence[Record],
    system: str,
    set_name: str,
    seed: int,
    load: Callable[[str], Dataset] = load_uci,
) -> tuple[Record, Record]:
    """Run one system again on one split of the results of `run_paper`.

    Parameters
    ----------
    results : list of dict
        The content of ``results.json``.
    system : str
        Name of the system, such as "Pure2 RPAU".
    set_name : str
        The set, "D1" to "D10".
    seed : int
        The repetition.
    load : callable, default=load_uci
        Function that returns the data set with a name.

    Returns
    -------
    dict
        Measures of the new run.
    dict
        Stored measures.
    """
    if not isinstance(results, list) or not all(isinstance(r, dict) for r in results):
        raise InvalidInputError("results must be a list of records, as results.json holds it.")
    place = {"system": system, "set": set_name, "seed": seed}
    stored = next((r for r in results if place.items() <= r.items()), None)
    if stored is None or not {"protocol", "split"} <= set(stored):
        known = {
            name: ", ".join(dict.fromkeys(str(r.get(name)) for r in results)) for name in place
        }
        there = "; ".join(f"{name}: {values}" for name, values in known.items())
        raise InvalidInputError(
            f"The results have no record of {system!r} on {set_name}, seed {seed}. They have "
            f"{there or 'none'}."
        )
    data = load(set_name)
    split = draw(data.y, set_name, stored["protocol"], seed)
    if split.digest() != stored["split"]:
        raise InvalidInputError(
            f"The split of {set_name}, seed {seed}, is another one now: the set, or the random "
            "numbers of NumPy, have changed. Compute the results again: ocfuse bench paper."
        )
    recipe = SYSTEMS[split.protocol][system].recipe
    with threadpool_limits(1):  # as in the run: threads round otherwise
        again = run_recipe(system, recipe)(make_context(data.X, split))[system]
    return again, {name: stored[name] for name in again if name in stored}


def _record(cell: Stored, system: str) -> Record:
    split, run = Split.read(cell["split"]), cell["runs"][system]
    return {
        "system": system,
        "group": run["group"],
        "protocol": split.protocol,
        "set": split.name,
        "seed": split.seed,
        "split": split.digest(),
        "n_train": len(split.train),
        "n_validation": len(split.validation),
        "n_normals": len(split.test),
        "n_anomalies": len(split.test_anomalies),
        "repeated": cell["repeated"],
        **run["results"][system],
    }


@lru_cache(maxsize=len(SETS))
def _loaded(load: Callable[[str], Dataset], name: str) -> Dataset:
    return load(name)


@lru_cache(maxsize=len(SETS))
def _digest(load: Callable[[str], Dataset], name: str) -> str:
    data = _loaded(load, name)
    return data_digest(data.X, data.y)


def mean_bounds(stored: Sequence[Stored]) -> Bounds:
    """Return the bounds of stored cells, means over repetitions.

    They are AUC in % by set and by what it is: "kpca lowest" and "kpca highest" of the candidates
    of a family, "linear rpau" of a linear combination of the members that a criterion has chosen,
    with weights fitted on the test itself.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for cell in stored:
        for what, found in cell["runs"][HINDSIGHT]["results"].items():
            if "auc" in found:
                values.setdefault((cell["split"]["name"], what), []).append(found["auc"])
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
    criteria = {"pure": ("rpau", "pseudo-negatives"), "non-pure": ("labels",)}
    for criterion in criteria[protocol]:
        areas[f"linear {criterion}"] = best_linear(
            candidates.chosen(criterion).scores(trial.test), y
        )
    return {what: {"auc": round(100.0 * area, 6)} for what, area in areas.items()}


def best_linear(S: FloatArray, y: NDArray[Any]) -> float:
    """Return the AUC of about the best linear combination of the columns, known the labels."""
    scaled = scale(S)
    # weights are hardly held back
    weights = LogisticRegression(C=1e3, class_weight="balanced", max_iter=5000).fit(scaled, y)
    tried = [weights.decision_function(scaled), scaled.sum(axis=1), *scaled.T]
    return max(auc(y, score) for score in tried)
