"""The paper's experiment: ten sets, ten repetitions, every system of its tables."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ocfuse.bench.cells import Cell, Results, Stored, System, run_cells
from ocfuse.bench.definition import data_digest, definition_key
from ocfuse.bench.measures import measure
from ocfuse.bench.members import Candidates
from ocfuse.bench.recipes import Recipe
from ocfuse.bench.splits import PROTOCOLS, Split, draw
from ocfuse.bench.systems import SYSTEMS, TABLES
from ocfuse.bench.trial import Trial, prepare
from ocfuse.datasets import load_uci
from ocfuse.datasets.dataset import Dataset
from ocfuse.datasets.uci_sets import UCI_SETS
from ocfuse.exceptions import InvalidInputError

#: The sets by the paper's numbers.
SETS = tuple(uci_set.paper_id for uci_set in UCI_SETS.values())
SEEDS, QUICK_SEEDS = 10, 3
#: Name of the file of all results.
RESULTS = "results.json"

Record = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """What the systems of one cell share; only the measuring looks at the trial.

    Parameters
    ----------
    trial : Trial
        The rows.
    candidates : Candidates
        Members of the paper, fitted when first asked for.
    """

    trial: Trial
    candidates: Candidates


@dataclass(frozen=True)
class Paper:
    """The experiment, as `run_cells` takes it.

    Parameters
    ----------
    load : callable, default=load_uci
        Takes the name of a set and returns its rows.
    """

    load: Callable[[str], Dataset] = load_uci

    def systems(self, cell: Cell) -> list[System]:
        """Return the systems of the cell's protocol; their keys depend on the data too."""
        content = _digest(self.load, cell.name)
        return [
            System(name, entry.group, definition_key(entry.key, content), _run(name, entry.recipe))
            for name, entry in SYSTEMS[cell.variant].items()
        ]

    def prepare(self, cell: Cell) -> tuple[Context, Stored]:
        """Draw the split of a cell, which is stored, and prepare its rows."""
        data = _loaded(self.load, cell.name)
        split = draw(data.y, cell.name, cell.variant, cell.seed)
        trial = prepare(data.X, split)
        return Context(trial, Candidates(trial.known)), {"split": split.record()}


def paper_cells(sets: Sequence[str] = SETS, seeds: int = SEEDS) -> list[Cell]:
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
        Set by set, repetition by repetition, the pure protocol first.

    Examples
    --------
    >>> from ocfuse.bench import paper_cells
    >>> len(paper_cells()), str(paper_cells(["D5"], seeds=1)[1])
    (200, 'non-pure D5 0')
    """
    unknown = [name for name in sets if name not in SETS]
    if unknown or not sets:
        raise InvalidInputError(f"sets must be some of {', '.join(SETS)}. Got {list(sets)}.")
    if seeds < 1:
        raise InvalidInputError(f"seeds must be at least 1. Got seeds={seeds}.")
    return [Cell("paper", p, s, seed) for s in sets for seed in range(seeds) for p in PROTOCOLS]


def run_paper(
    folder: Path, sets: Sequence[str] = SETS, seeds: int = SEEDS, jobs: int = 1
) -> list[Record]:
    """Run the experiment, or what is missing of it, and write all results.

    Parameters
    ----------
    folder : Path
        ``cells/`` in it keeps every cell with its split; ``results.json`` is written
        at the end.
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
        "system", "group", "protocol", "set", "seed", "seconds", "n_train", "n_normals"
        and "n_anomalies" (of the test), the measures in % ("auc", "ap", "prevalence",
        "gmean", "best_gmean", "false_alarms"), and "choices"; or "failure" instead of
        measures and choices.
    """
    cells = paper_cells(sets, seeds)
    stored = run_cells(Paper(), cells, folder / "cells", jobs)
    found = records(stored)
    text = ",\n".join(json.dumps(record, allow_nan=False) for record in found)
    (folder / RESULTS).write_text(f"[\n{text}\n]\n", encoding="utf-8")
    return found


def records(stored: Sequence[Stored]) -> list[Record]:
    """Return stored cells as one long list, table by table and row by row."""
    return [
        {"table": table, "row": row, **_record(cell, system)}
        for table, rows in TABLES.items()
        for row, system in rows.items()
        for cell in stored
        if system in cell["runs"]
    ]


def rerun(stored: Stored, system: str, load: Callable[[str], Dataset] = load_uci) -> Results:
    """Run one system again on the stored split of a cell.

    Parameters
    ----------
    stored : dict
        What the file of a cell holds.
    system : str
        Name of the system.
    load : callable, default=load_uci
        Takes the name of a set and returns its rows.

    Returns
    -------
    dict
        The measures by name, as in the file.
    """
    split = Split.read(stored["split"])
    known = SYSTEMS[split.protocol]
    if system not in known:
        raise InvalidInputError(f"system must be one of {', '.join(known)}. Got {system!r}.")
    trial = prepare(load(split.name).X, split)
    return _run(system, known[system].recipe)(Context(trial, Candidates(trial.known)))


def _run(name: str, recipe: Recipe) -> Callable[[Context], Results]:
    def run(context: Context) -> Results:
        trial = context.trial
        # the recipe is not given the test, and what it has learned only its rows
        model = recipe.learn(context.candidates)
        scores = model.score(trial.known.validation), model.score(trial.test)
        return {name: {**measure(*scores, trial.is_normal), "choices": model.choices}}

    return run


def _record(cell: Stored, system: str) -> Record:
    split, run = cell["split"], cell["runs"][system]
    return {
        "system": system,
        "group": run["group"],
        "protocol": split["protocol"],
        "set": split["name"],
        "seed": split["seed"],
        "n_train": len(split["train"]),
        "n_normals": len(split["test"]),
        "n_anomalies": len(split["test_anomalies"]),
        "seconds": run["seconds"],
        **run["results"][system],
    }


@lru_cache(maxsize=len(SETS))
def _loaded(load: Callable[[str], Dataset], name: str) -> Dataset:
    return load(name)


@lru_cache(maxsize=len(SETS))
def _digest(load: Callable[[str], Dataset], name: str) -> str:
    data = _loaded(load, name)
    return data_digest(data.X, data.y)
