"""Experiments that continue after an interruption: one file per split of a data set."""

import ast
import hashlib
import json
import os
import platform
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import ocfuse
from ocfuse.arrays import FloatArray
from ocfuse.compare import System, run_system
from ocfuse.exceptions import (
    InconsistentMeasuresError,
    InvalidInputError,
    InvalidTypeError,
    OcfuseError,
)
from ocfuse.lab.paper.published import auc_below_gmean
from ocfuse.metrics import auc, average_precision, best_gmean, false_alarm_rate, gmean
from ocfuse.scores import conformal_threshold
from ocfuse.solvers.native import describe
from ocfuse.system.files import write_atomically
from ocfuse.system.progress import current_progress, show_progress, silent
from ocfuse.tuning.splits import middle_best
from ocfuse.versions import installed_version

Stored = dict[str, Any]

#: The threshold of every system lets this share of the normals raise an alarm.
RATE = 0.05
#: Other rates, to see how much of a G-mean is a matter of the threshold.
OTHER_RATES = (0.1, 0.2, 0.3)
#: Digits after the point of a percentage that is kept.
DIGITS = 6

PACKAGE = Path(ocfuse.__file__).parent
#: What neither fits nor scores, as parts of the package.
ASIDE = frozenset(
    {
        "__init__.py",
        "cli",
        "compare.py",
        "datasets",
        "exceptions.py",
        "explain.py",
        "lab",
        "persistence",
        "stats",
        "versions.py",
    }
)


@dataclass(frozen=True)
class Cell:
    """One cell of an experiment: one split of one data set.

    Parameters
    ----------
    part : str
        Name of the experiment, or of a part of it.
    variant : str
        Name of the way in which rows are split.
    name : str
        Name of the data set.
    seed : int
        Number of the repetition.
    """

    part: str
    variant: str
    name: str
    seed: int

    def path(self, folder: Path) -> Path:
        """Return the file of its results."""
        return folder / self.part / self.variant.replace("/", "-") / f"{self.name}.{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.variant} {self.name} {self.seed}"


class Experiment(Protocol):
    """Base class: systems and rows of an experiment; must be picklable."""

    def systems(self, cell: Cell) -> Sequence[System]:
        """Return the systems to run on a cell."""

    def prepare(self, cell: Cell) -> tuple[Any, Stored]:
        """Return the shared data of the systems of a cell, and facts of the cell to store."""


def run_cells(
    experiment: Experiment, cells: Sequence[Cell], folder: Path, jobs: int = 1
) -> list[Stored]:
    """Return the results of all cells in their order, computing only what is not stored.

    The results of each system are stored as soon as it has finished, so that an interrupted run
    continues. Progress and remaining time are reported to `ocfuse.show_progress`.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    cells : sequence of Cell
        The cells to run.
    folder : Path
        Folder of the results.
    jobs : int, default=1
        Number of processes, each with one thread.

    Returns
    -------
    list of dict
        Stored results of each cell.
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
    """Return whether what was read from a file is what is stored of a cell."""
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


def measure(
    validation: FloatArray,
    test: FloatArray,
    is_normal: NDArray[np.bool_],
    rate: float = RATE,
    negatives: FloatArray | None = None,
) -> dict[str, float]:
    """Return accuracies of scores, in %, with a threshold from normal validation rows.

    If the v validation scores were not used for any choice, the threshold holds the rate on
    average. In the paper's experiment the same rows are used to choose members and p, so the rate
    holds only approximately. With v < 19 no threshold can guarantee 5 %; it is then the lowest
    score, which guarantees 1 / (v + 1).

    Parameters
    ----------
    validation : ndarray of shape (v,)
        Scores of the normal validation rows.
    test : ndarray of shape (t,)
        Scores of the test rows.
    is_normal : ndarray of bool of shape (t,)
        Whether each test row is normal; labels +1 and -1 are not allowed.
    rate : float, default=0.05
        Share of fresh normal rows that may raise an alarm.
    negatives : ndarray of shape (m,), default=None
        Validation scores of pseudo-negatives or labelled anomalies. With them the G-mean at
        further thresholds is returned, too.

    Returns
    -------
    dict
        "auc"; "ap", the area under precision and recall of the anomalies, and
        "prevalence", what chance has there; "gmean" and "false_alarms" at the
        threshold; "best_gmean", that of the best threshold in hindsight. With negatives,
        "gmean_10", "gmean_20" and "gmean_30" at the thresholds for such rates, "gmean_equal" where
        validation normals and negatives have equal errors, "gmean_validation" where they have the
        best G-mean.
    """
    is_normal = np.asarray(is_normal)
    if is_normal.dtype != np.bool_:
        raise InvalidTypeError(
            f"is_normal must be booleans. Got {is_normal.dtype}. Use y > 0 for labels +1 and -1."
        )
    if np.shape(test) != is_normal.shape:
        raise InvalidInputError(
            f"test and is_normal must have one shape. Got {np.shape(test)} and {is_normal.shape}."
        )
    others = [] if negatives is None else [negatives]
    if not all(np.isfinite(scores).all() for scores in (validation, test, *others)):
        raise InvalidInputError("Scores must be finite. Got NaN or infinite ones.")
    y = np.where(is_normal, 1, -1)
    offset, _ = conformal_threshold(validation, rate)
    predicted = np.where(test >= offset, 1, -1)
    found = {
        "auc": auc(y, test),
        "ap": average_precision(y, test),
        "prevalence": float(np.mean(~is_normal)),
        "gmean": gmean(y, predicted),
        "best_gmean": best_gmean(y, test),
        "false_alarms": false_alarm_rate(y, predicted),
    }
    if negatives is not None:
        for name, offset in other_thresholds(validation, negatives).items():
            found[name] = gmean(y, np.where(test >= offset, 1, -1))
    require_consistent(found["auc"], found["gmean"])
    require_consistent(found["auc"], found["best_gmean"])
    # rounding errors must not part systems that are level
    return {name: round(100.0 * value, DIGITS) for name, value in found.items()}


def other_thresholds(validation: FloatArray, negatives: FloatArray) -> dict[str, float]:
    """Return thresholds by rules fixed beforehand, from scores of validation rows alone.

    Where several thresholds have the best G-mean, or errors as equal, the middle one is taken.

    Examples
    --------
    >>> from ocfuse.lab.paper.runner import other_thresholds
    >>> other_thresholds([0.5, 0.6, 0.7], [0.1, 0.2])["gmean_equal"]
    0.5
    """
    normals, others = np.sort(validation), np.sort(negatives)
    offsets = np.unique(np.concatenate([normals, others]))
    false_alarms = np.searchsorted(normals, offsets) / len(normals)
    missed = 1.0 - np.searchsorted(others, offsets) / len(others)
    return {
        **{
            f"gmean_{round(100 * rate)}": conformal_threshold(validation, rate)[0]
            for rate in OTHER_RATES
        },
        "gmean_equal": _middle(offsets, -np.abs(false_alarms - missed)),
        "gmean_validation": _middle(offsets, (1.0 - false_alarms) * (1.0 - missed)),
    }


def _middle(offsets: FloatArray, value: FloatArray) -> float:
    """Return the middle of the offsets of the highest value, rounding apart."""
    return float(offsets[middle_best([(v, 0.0) for v in value.round(12).tolist()])])


def require_consistent(area: float, mean: float) -> None:
    """Raise if an AUC and a G-mean cannot come from the same scores: AUC >= G^2."""
    if auc_below_gmean(area, mean, whole=1.0):
        raise InconsistentMeasuresError(
            f"The AUC {area} must be at least the square of the G-mean {mean}. They are not of "
            "the same scores: please report it."
        )


def definition_key(*parts: str) -> str:
    """Return the key of a system: a digest of its definition and of the code behind it."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def code_digest(paths: Iterable[Path]) -> str:
    """Return a digest of source files; comments and docstrings do not count."""
    return definition_key(*(_source(path) for path in sorted(paths)))


def data_digest(*arrays: NDArray[Any]) -> str:
    """Return a digest of the values of arrays, in their order."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def package_sources(parts: Collection[str] | None = None) -> list[Path]:
    """Return sources of this package, Python and C++: some parts, or all that fits or scores."""
    found = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.[ch]pp")])
    first = {path: path.relative_to(PACKAGE).parts[0] for path in found}
    if parts is None:
        return [path for path in found if first[path] not in ASIDE]
    missing = set(parts) - set(first.values())
    if missing:
        raise InvalidInputError(f"Parts must be of this package. Got {', '.join(sorted(missing))}.")
    return [path for path in found if first[path] in parts]


@cache
def _source(path: Path) -> str:
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            first.value.value = ""
    return ast.dump(tree)


def facts(
    command: str,
    packages: Sequence[str] = ("ocfuse", "numpy", "scipy", "scikit-learn", "joblib"),
) -> dict[str, str]:
    """Return the command, the date, the machine and the versions of some packages."""
    return {
        "command": f"`{command}`",
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()) + " UTC",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "kernel": describe(),
        **{name: installed_version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
