"""Runs that survive a kill: one cell is one split of one set, kept in one file."""

import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from ocfuse.exceptions import OcfuseError
from ocfuse.progress import current_progress, show_progress, silent

Stored = dict[str, Any]
Results = dict[str, dict[str, Any]]

#: Longest reason that is kept of a failure.
LONGEST_REASON = 160


@dataclass(frozen=True)
class Cell:
    """One split of one set.

    Parameters
    ----------
    part : str
        The experiment, or a part of it.
    variant : str
        How the rows are split.
    name : str
        The set.
    seed : int
        The repetition.
    """

    part: str
    variant: str
    name: str
    seed: int

    def path(self, folder: Path) -> Path:
        """Return where its results are kept."""
        return folder / self.part / self.variant.replace("/", "-") / f"{self.name}.{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.variant} {self.name} {self.seed}"


@dataclass(frozen=True)
class System:
    """What is run on a cell.

    Parameters
    ----------
    name : str
        Unique within the experiment.
    group : str
        What kind of system it is.
    key : str
        Changes whenever the results may.
    run : callable
        Takes the context of a cell and returns measures by name: one result, or
        several, as those of the members of a pool.
    """

    name: str
    group: str
    key: str
    run: Callable[[Any], Results]


class Experiment(Protocol):
    """What is run on which rows; it is sent to other processes, so it must be picklable."""

    def systems(self, cell: Cell) -> Sequence[System]:
        """Return everything that is run on a cell."""

    def prepare(self, cell: Cell) -> tuple[Any, Stored]:
        """Return what the systems of a cell share, and what is stored about the cell."""


def run_cells(
    experiment: Experiment, cells: Sequence[Cell], folder: Path, jobs: int = 1
) -> list[Stored]:
    """Return the results of all cells in their order, computing only what is not stored.

    Every system is stored as soon as it is done, so that a run that was killed goes on
    where it was. How far it is, and how long it may still take, is told to
    `ocfuse.show_progress`.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    cells : sequence of Cell
        On which splits.
    folder : Path
        Where results are kept.
    jobs : int, default=1
        Processes, each with one thread.

    Returns
    -------
    list of dict
        What is stored of every cell.
    """
    progress = current_progress()
    stale = [cell for cell in cells if stale_systems(experiment, cell, load(cell, folder))]
    n_done = len(cells) - len(stale)
    progress("cells", "stored", n_done, len(cells))
    begin = time.perf_counter()
    calls = (delayed(run_cell)(experiment, cell, folder) for cell in stale)
    try:
        with parallel_config("loky", inner_max_num_threads=1):
            for i, _ in enumerate(Parallel(n_jobs=jobs, return_as="generator")(calls), 1):
                left = (time.perf_counter() - begin) / i * (len(stale) - i)
                text = f"{stale[i - 1]}, {duration(left)} left"
                progress("cells", text, n_done + i, len(cells))
    except BrokenProcessPool as error:
        raise OcfuseError(
            "A process of the run was killed. What was finished is stored: run the same again, "
            "perhaps with fewer jobs if memory was short."
        ) from error
    return [known_results(experiment, cell, load(cell, folder)) for cell in cells]


def run_cell(experiment: Experiment, cell: Cell, folder: Path) -> None:
    """Run what is not stored of one cell, and store it system by system."""
    stored = load(cell, folder)
    stale = stale_systems(experiment, cell, stored)
    if not stale:
        return
    with threadpool_limits(1), show_progress(silent):
        context, about = experiment.prepare(cell)
        runs: Stored = stored.get("runs", {})
        for system in stale:
            results, seconds = run_system(system, context)
            runs[system.name] = {
                "key": system.key,
                "group": system.group,
                "seconds": round(seconds, 4),
                "results": results,
            }
            save(cell, folder, stored | about | {"runs": runs})


def run_system(system: System, context: Any) -> tuple[Results, float]:
    """Return the results and the CPU seconds; a failure is kept, not raised.

    Except for an AssertionError: then it is the measuring that is wrong.
    """
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = system.run(context)
        except AssertionError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:LONGEST_REASON]
            results = {system.name: {"failure": reason}}
    return results, time.process_time() - begin


def stale_systems(experiment: Experiment, cell: Cell, stored: Stored) -> list[System]:
    """Return the systems whose results are missing or of another definition."""
    runs = stored.get("runs", {})
    return [s for s in experiment.systems(cell) if runs.get(s.name, {}).get("key") != s.key]


def known_results(experiment: Experiment, cell: Cell, stored: Stored) -> Stored:
    """Return what is stored, without systems that are no longer part of the experiment."""
    runs = {s.name: stored["runs"][s.name] for s in experiment.systems(cell)}
    return stored | {"runs": runs}


def load(cell: Cell, folder: Path) -> Stored:
    """Return what is stored; a file that cannot be read counts as none."""
    try:
        found: Stored = json.loads(cell.path(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def save(cell: Cell, folder: Path, stored: Stored) -> None:
    """Write the file beside its place and move it there, so that none is ever half written."""
    path = cell.path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(json.dumps(stored, allow_nan=False), encoding="utf-8")
    os.replace(fresh, path)


def duration(seconds: float) -> str:
    """Return a length of time in the unit that suits it."""
    if seconds < 100:
        return f"about {seconds:.0f} s"
    if seconds < 100 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
