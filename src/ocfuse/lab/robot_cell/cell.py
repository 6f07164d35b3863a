"""A simulated cell on disk: its plan, and its runs, made in parallel."""

import json
import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config

from ocfuse.exceptions import InvalidInputError, OcfuseError
from ocfuse.lab.robot_cell.run import TRUTH, Recording, is_as_meant, record
from ocfuse.lab.robot_cell.settings import draw
from ocfuse.lab.robot_cell.task import intervals
from ocfuse.lab.robot_cell.world import COLUMNS, engine, robot_needs
from ocfuse.system.files import LOCK, folder_lock, write_atomically
from ocfuse.system.progress import current_progress
from ocfuse.vision.trials import KINDS, TYPES, Trial, find_kinds, read_trials, type_of

#: What a cell was asked to be, and what made it.
PLAN_FILE = "cell.json"
#: To be raised whenever the same plan gives other pictures, sensor values or labels.
SIMULATOR = 1


class PlannedRun(NamedTuple):
    """A run that shall be made: its number, its split, and what goes wrong ("" for nothing)."""

    trial: int
    split: str
    kind: str


@dataclass(frozen=True)
class CellPlan:
    """Plan of the runs of a simulated robot cell.

    Parameters
    ----------
    train, validation, test : int
        Number of normal runs of each split.
    anomalous : int, default=0
        Number of runs of each type of anomaly, all in test; the kinds of a type alternate.
    types : tuple of str, default=("1", "2", "3", "4")
        Types by number, or kinds by name.
    n_frames : int, default=100
        Number of frames of each run.
    seed : int, default=0
        Seed of all random choices.
    """

    train: int
    validation: int
    test: int
    anomalous: int = 0
    types: tuple[str, ...] = ("1", "2", "3", "4")
    n_frames: int = 100
    seed: int = 0

    #: Fewer frames would miss what happens, more do not fit their names.
    least_frames: ClassVar = 10
    most_frames: ClassVar = 2000

    def check(self) -> None:
        """Raise an error if the plan cannot be carried out."""
        find_kinds(self.types)
        for name in ("train", "validation", "test", "anomalous", "seed"):
            if getattr(self, name) < 0:
                raise InvalidInputError(f"{name} must be at least 0. Got {getattr(self, name)}.")
        if not self.least_frames <= self.n_frames <= self.most_frames:
            raise InvalidInputError(
                f"A run must have {self.least_frames} to {self.most_frames} frames. "
                f"Got {self.n_frames}."
            )
        if not any(True for _ in self.runs()):
            raise InvalidInputError("There must be at least one run. Ask for more runs.")

    def runs(self) -> Iterator[PlannedRun]:
        """Yield the runs in the order of their numbers."""
        wanted = find_kinds(self.types)
        trial = 0
        for split in ("train", "validation", "test"):
            for _ in range(getattr(self, split)):
                yield PlannedRun(trial, split, "")
                trial += 1
        for kinds in KINDS.values():
            turns = [kind for kind in kinds if kind in wanted]
            for i in range(self.anomalous if turns else 0):
                yield PlannedRun(trial, "test", turns[i % len(turns)])
                trial += 1

    def facts(self) -> dict[str, Any]:
        """Return the plan as a dictionary for JSON."""
        return {**asdict(self), "types": list(self.types)}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> "CellPlan":
        """Return the plan from a dictionary of `facts`; other entries are ignored."""
        known = {field.name: facts[field.name] for field in fields(cls)}
        return cls(**{**known, "types": tuple(known["types"])})


def simulate(folder: str | Path, plan: CellPlan, jobs: int = 1) -> list[Trial]:
    """Simulate the runs of a robot cell, and write pictures and measurements.

    The random numbers of a run depend only on the seed of the plan and the number of the run. So
    the files do not depend on the number of processes, nor on interruptions: a second call makes
    only missing runs. A folder of another version of the simulator, or of other versions of the
    packages that it uses, is refused.

    Parameters
    ----------
    folder : str or Path
        Folder to write to; created if it does not exist.
    plan : CellPlan
        The runs to make.
    jobs : int, default=1
        Number of processes, each with one thread.

    Returns
    -------
    list of Trial
        All runs of the cell.
    """
    plan.check()
    engine()  # raise before anything is written if a package is missing
    for package in ("PIL", "pyarrow"):
        robot_needs(package)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with folder_lock(folder):
        claim(folder, plan)
        runs = list(plan.runs())
        missing = [run for run in runs if not trial_folder(folder, run).is_dir()]
        if missing:
            refuse_other_packages(folder)
        for part in folder.glob("*/.trial_*.part"):
            shutil.rmtree(part)
        _make(folder, plan, missing, len(runs), jobs)
    return read_trials(folder)


def trial_folder(folder: Path, run: PlannedRun) -> Path:
    """Return where a run is written."""
    return folder / run.split / f"trial_{run.trial:04d}"


def make_run(plan: CellPlan, run: PlannedRun, most_attempts: int = 20) -> Recording:
    """Return a run that turned out as planned."""
    for attempt in range(most_attempts):
        settings = draw(plan.seed, run.trial, run.kind, attempt)
        recording = record(settings, plan.n_frames)
        if is_as_meant(recording):
            return recording
    raise OcfuseError(
        f"Run {run.trial} ({run.kind or 'normal'}) did not turn out as planned in {most_attempts} "
        f"attempts with seed {plan.seed}. Use another seed, or more frames."
    )


def write_run(folder: Path, plan: CellPlan, run: PlannedRun) -> None:
    """Make a run and write it, all files at once."""
    recording = make_run(plan, run)
    target = trial_folder(folder, run)
    target.parent.mkdir(exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        _write_frames(part / "rgb", recording)
        _write_table(part / "states.parquet", _states(recording))
        _write_table(part / "truth.parquet", {name: recording.fact(name) for name in TRUTH})
        text = json.dumps(_annotation(recording), indent=1)
        (part / "annotation.json").write_text(text + "\n", encoding="utf-8")
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _make(folder: Path, plan: CellPlan, missing: list[PlannedRun], n_runs: int, jobs: int) -> None:
    progress = current_progress()
    n_there = n_runs - len(missing)
    progress("runs", "there", n_there, n_runs)
    begin = time.perf_counter()
    calls = (delayed(write_run)(folder, plan, run) for run in missing)
    try:
        with parallel_config("loky", inner_max_num_threads=1):
            for i, _ in enumerate(Parallel(n_jobs=jobs, return_as="generator")(calls), 1):
                left = (time.perf_counter() - begin) / i * (len(missing) - i)
                progress("runs", f"{left / 60:.1f} min left", n_there + i, n_runs)
    except BrokenProcessPool as error:
        raise OcfuseError(
            "A process of the simulation was killed. What was finished is there: run the same "
            "again, perhaps with fewer jobs if memory was short."
        ) from error


def _write_frames(folder: Path, recording: Recording) -> None:
    image = robot_needs("PIL.Image")
    folder.mkdir(parents=True)
    for i, frame in enumerate(recording.frames):
        file = folder / f"frame_{i:04d}.jpg"
        image.fromarray(frame).save(file, quality=92, subsampling=0)


def _states(recording: Recording) -> dict[str, Any]:
    moments = recording.moments
    return {
        "time": np.array(recording.times),
        "phase": [moment.phase for moment in moments],
        "fraction": np.array([moment.fraction for moment in moments]),
        "progress": np.array([moment.progress for moment in moments]),
        **dict(zip(COLUMNS, np.array(recording.sensors).T, strict=True)),
    }


def _write_table(file: Path, columns: dict[str, Any]) -> None:
    arrow = robot_needs("pyarrow")
    parquet = robot_needs("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), file)


def _annotation(recording: Recording) -> dict[str, Any]:
    kind = recording.settings.kind
    number = type_of(kind)
    return {
        "Anomalies": [list(pair) for pair in intervals(recording.is_anomalous())],
        "type": number,
        "name": TYPES.get(number, "normal"),
        "kind": kind,
        "settings": asdict(recording.settings),
    }


def maker() -> dict[str, Any]:
    """Return the version of the simulator and of the packages of pictures and physics."""
    packages = ("numpy", "pillow", "pybullet")
    return {"simulator": SIMULATOR, **{name: version(name) for name in packages}}


def read_plan(folder: str | Path) -> CellPlan | None:
    """Return the plan of a cell on disk.

    Parameters
    ----------
    folder : str or Path
        The folder of a cell, complete or not.

    Returns
    -------
    CellPlan or None
        The plan; None if there is no cell.
    """
    file = Path(folder) / PLAN_FILE
    return _plan(file) if file.exists() else None


def claim(folder: Path, plan: CellPlan) -> None:
    """Write what the folder holds, or check that it holds the same."""
    file = folder / PLAN_FILE
    if not file.exists():
        others = [path.name for path in folder.iterdir() if not path.name.startswith(LOCK)]
        if others:
            raise InvalidInputError(
                f"{folder} is not empty (it holds {sorted(others)[0]}) and no cell. "
                "Give a new folder."
            )
        text = json.dumps({**plan.facts(), "made_by": maker()}, indent=1)
        write_atomically(file, (text + "\n").encode())
        return
    there, wanted = _plan(file).facts(), plan.facts()
    if there != wanted:
        differing = sorted(name for name in wanted if there[name] != wanted[name])
        raise InvalidInputError(
            f"{folder} holds a cell with other {', '.join(differing)}: "
            f"{', '.join(str(there[name]) for name in differing)}. "
            "Ask for the same to go on with it, or give a new folder."
        )
    made_by = _facts(file).get("made_by")
    number = made_by.get("simulator") if isinstance(made_by, dict) else None
    if number != SIMULATOR:
        words = "a version that is not told" if number is None else f"version {number}"
        raise InvalidInputError(
            f"{folder} was made by another simulator ({words}; this is version {SIMULATOR}), so "
            "that its runs are not those of today. Give a new folder, or delete this one and make "
            "it again."
        )


def refuse_other_packages(folder: Path) -> None:
    """Raise if runs added now would be made with other packages than those that are there."""
    there = _facts(folder / PLAN_FILE)["made_by"]
    here = maker()
    if there != here:
        names = [name for name in here if name != "simulator"]
        words = [
            ", ".join(f"{name} {facts.get(name)}" for name in names) for facts in (there, here)
        ]
        raise InvalidInputError(
            f"{folder} is not whole and was begun with {words[0]}; here are {words[1]}, which may "
            "give other runs. Install those versions to go on with it, or give a new folder."
        )


def _plan(file: Path) -> CellPlan:
    try:
        return CellPlan.of(_facts(file))
    except (KeyError, TypeError):
        raise _damaged(file) from None


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise _damaged(file)
    return facts


def _damaged(file: Path) -> InvalidInputError:
    return InvalidInputError(f"{file} is damaged. Give a new folder.")
