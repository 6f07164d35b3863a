"""Runs that survive a kill: one cell is one split of one set, kept in one file."""

import json
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from ocfuse.bench.measures import InconsistentMeasuresError
from ocfuse.exceptions import InvalidInputError, OcfuseError
from ocfuse.files import write_atomically
from ocfuse.progress import current_progress, show_progress, silent

Stored = dict[str, Any]
Results = dict[str, dict[str, Any]]

#: Longest reason that is kept of a failure.
LONGEST_REASON = 160
#: What says nothing about a system: the measuring is wrong, or the machine is at its end.
NOT_ITS_FAULT = (InconsistentMeasuresError, MemoryError, OSError)


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
    require_writable(folder)
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
        for system in stale:
            run = {
                "key": system.key,
                "group": system.group,
                "results": run_system(system, context),
            }
            save(cell, folder, {**about, "runs": {system.name: run}})


def run_system(system: System, context: Any) -> Results:
    """Return the results; a failure is kept, not raised, if it is one of the system.

    Warnings are not kept: what they would tell of a result belongs in it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return system.run(context)
        except Exception as error:
            if _is_not_its_fault(error):
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:LONGEST_REASON]
            return {system.name: {"failure": reason}}


def _is_not_its_fault(error: BaseException | None) -> bool:
    """Look for the reasons of an error too: a member that had no memory is a MemberError."""
    while error is not None:
        if isinstance(error, NOT_ITS_FAULT):
            return True
        error = error.__cause__
    return False


def stale_systems(experiment: Experiment, cell: Cell, stored: Stored) -> list[System]:
    """Return the systems whose results are missing or of another definition."""
    runs = stored.get("runs", {})
    return [s for s in experiment.systems(cell) if runs.get(s.name, {}).get("key") != s.key]


def known_results(experiment: Experiment, cell: Cell, stored: Stored) -> Stored:
    """Return what is stored, without systems that are no longer part of the experiment."""
    if stale := stale_systems(experiment, cell, stored):
        names = ", ".join(repr(system.name) for system in stale)
        raise OcfuseError(
            f"Results of {cell} were changed during the run: {names}. Perhaps another run writes "
            "to the same folder. End it, and run the same again."
        )
    return stored | {"runs": {s.name: stored["runs"][s.name] for s in experiment.systems(cell)}}


def load(cell: Cell, folder: Path) -> Stored:
    """Return what is stored; a file that cannot be read, or is of no cell, counts as none."""
    try:
        found = json.loads(cell.path(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if is_cell(found) else {}


def is_cell(found: Any) -> bool:
    """Tell whether what was read from a file is what is stored of a cell."""
    runs = found.get("runs") if isinstance(found, dict) else None
    return isinstance(runs, dict) and all(
        isinstance(run, dict) and "key" in run and isinstance(run.get("results"), dict)
        for run in runs.values()
    )


def save(cell: Cell, folder: Path, stored: Stored) -> None:
    """Add to what the file holds now, which another process may have written meanwhile."""
    before = load(cell, folder)
    runs = before.get("runs", {}) | stored["runs"]
    write_whole(cell.path(folder), json.dumps(before | stored | {"runs": runs}, allow_nan=False))


def write_whole(path: Path, text: str) -> None:
    """Write a file, and its folder if need be, so that none is ever half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())


def require_writable(folder: Path) -> None:
    """Refuse a folder, before anything is computed, in which nothing can be written."""
    try:
        write_whole(folder / ".writable", "")
        (folder / ".writable").unlink(missing_ok=True)  # another run may try the same
    except OSError as error:
        raise InvalidInputError(
            f"The folder {str(folder)!r} must be one to write to. Got {error}. Use another one."
        ) from None


def duration(seconds: float) -> str:
    """Return a length of time in the unit that suits it."""
    if seconds < 100:
        return f"about {seconds:.0f} s"
    if seconds < 100 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
