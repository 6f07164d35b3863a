"""The paper's experiment: ten sets, ten repetitions, every system of its tables."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ocfuse.bench.cells import (
    Cell,
    Results,
    Stored,
    System,
    is_cell,
    require_writable,
    run_cells,
    write_whole,
)
from ocfuse.bench.context import Context, make_context, run_recipe
from ocfuse.bench.definition import data_digest, definition_key
from ocfuse.bench.splits import PROTOCOLS, Split, draw
from ocfuse.bench.systems import SYSTEMS, TABLES
from ocfuse.bench.trial import repeated
from ocfuse.datasets import load_uci
from ocfuse.datasets.dataset import Dataset
from ocfuse.datasets.uci_sets import UCI_SETS
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats.ranks import require_count

#: The sets by the paper's numbers.
SETS = tuple(uci_set.paper_id for uci_set in UCI_SETS.values())
SEEDS, QUICK_SEEDS = 10, 3
#: Name of the file of all results.
RESULTS = "results.json"

Record = dict[str, Any]


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
            System(
                name,
                entry.group,
                definition_key(entry.key, content),
                run_recipe(name, entry.recipe),
            )
            for name, entry in SYSTEMS[cell.variant].items()
        ]

    def prepare(self, cell: Cell) -> tuple[Context, Stored]:
        """Draw the split of a cell and prepare its rows.

        The split is stored, and how many test rows are repeated training rows.
        """
        data = _loaded(self.load, cell.name)
        split = draw(data.y, cell.name, cell.variant, cell.seed)
        context = make_context(data.X, split)
        return context, {"split": split.record(), "repeated": repeated(context.trial)}


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
        Repetition by repetition, so that those of large sets are spread over the run;
        the pure protocol first.

    Examples
    --------
    >>> from ocfuse.bench import paper_cells
    >>> len(paper_cells()), str(paper_cells(["D5"], seeds=1)[1])
    (200, 'non-pure D5 0')
    """
    names = set_names(sets)
    require_count("seeds", seeds, 1)
    return [Cell("paper", p, s, seed) for seed in range(seeds) for s in names for p in PROTOCOLS]


def set_names(sets: Sequence[str]) -> list[str]:
    """Return names of sets as the tables have them, each once.

    Parameters
    ----------
    sets : sequence of str
        Names, such as "D5" or "d5".

    Returns
    -------
    list of str
        Names.
    """
    if isinstance(sets, str) or not isinstance(sets, Sequence):
        raise InvalidTypeError(f'sets must be a list such as ["D1", "D5"]. Got {sets!r}.')
    names = list(dict.fromkeys(str(name).strip().upper() for name in sets))
    if not names or not set(names) <= set(SETS):
        raise InvalidInputError(f"sets must be some of {', '.join(SETS)}. Got {list(sets)}.")
    return names


def run_paper(
    folder: str | Path, sets: Sequence[str] = SETS, seeds: int = SEEDS, jobs: int = 1
) -> list[Record]:
    """Run the experiment, or what is missing of it, and write all results.

    Parameters
    ----------
    folder : str or Path
        ``cells/`` in it keeps every cell with its split; ``results.json`` is written
        at the end. One that holds results of more sets or repetitions is refused.
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
        "system", "group", "protocol", "set", "seed", "n_train", "n_validation",
        "n_normals" and "n_anomalies" (of the test), "repeated" (which share of these, in
        %, equals a training row), the measures in % ("auc", "ap", "prevalence", "gmean",
        "best_gmean", "false_alarms"), and "choices"; or "failure" instead of measures
        and choices.
    """
    cells, folder = paper_cells(sets, seeds), Path(folder)
    require_count("jobs", jobs, 1)
    require_writable(folder)
    _require_no_fewer(cells, folder)
    stored = run_cells(Paper(), cells, folder / "cells", jobs)
    found = records(stored)
    text = ",\n".join(json.dumps(record, allow_nan=False) for record in found)
    write_whole(folder / RESULTS, f"[\n{text}\n]\n")
    return found


def _require_no_fewer(cells: Sequence[Cell], folder: Path) -> None:
    """Refuse to replace results, and the tables made of them, by those of fewer cells."""
    try:
        before = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
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
    if not is_cell(stored):
        raise InvalidInputError("stored must be what the file of a cell of the paper holds.")
    split = Split.read(stored.get("split"))
    known = SYSTEMS[split.protocol]
    if system not in known:
        names = ", ".join(map(repr, known))
        raise InvalidInputError(f"system must be one of {names}. Got {system!r}.")
    X = load(split.name).X
    if max(row for rows in split.parts() for row in rows) >= len(X):
        raise InvalidInputError(f"The split is not one of {split.name}, which has {len(X)} rows.")
    return run_recipe(system, known[system].recipe)(make_context(X, split))


def _record(cell: Stored, system: str) -> Record:
    split, run = cell["split"], cell["runs"][system]
    return {
        "system": system,
        "group": run["group"],
        "protocol": split["protocol"],
        "set": split["name"],
        "seed": split["seed"],
        "n_train": len(split["train"]),
        "n_validation": len(split["validation"]),
        "n_normals": len(split["test"]),
        "n_anomalies": len(split["test_anomalies"]),
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
