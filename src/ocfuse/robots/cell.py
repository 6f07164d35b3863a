"""A cell on disk: runs made in parallel, each there whole or not at all."""

import json
import shutil
import time
import uuid
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from ocfuse.alone import alone_in
from ocfuse.exceptions import OcfuseError
from ocfuse.progress import current_progress
from ocfuse.robots.arm import COLUMNS
from ocfuse.robots.claim import claim, refuse_other_packages
from ocfuse.robots.kinds import TYPES, type_of
from ocfuse.robots.labels import intervals
from ocfuse.robots.outcome import is_as_meant
from ocfuse.robots.plan import Plan, PlannedRun
from ocfuse.robots.run import TRUTH, Recording, record
from ocfuse.robots.settings import draw
from ocfuse.robots.trials import Trial, read_trials
from ocfuse.robots.world import engine, robot_needs

#: How often a run is drawn anew before it is given up.
MOST_ATTEMPTS = 20
JPEG_QUALITY = 92


def simulate(folder: str | Path, plan: Plan, jobs: int = 1) -> list[Trial]:
    """Let the robot of the simulated cell work, and write what is seen and measured.

    A run has its own chance, which comes from the seed of the plan and its number. So the
    files do not depend on the number of processes, nor on whether the command was stopped
    and started again: runs that are there are not made again. A folder that another version
    of the simulator has made is refused, and so are runs of other packages in one cell.

    Parameters
    ----------
    folder : str or Path
        Where to write; it is made if need be.
    plan : Plan
        What to make.
    jobs : int, default=1
        Processes, each with one thread.

    Returns
    -------
    list of Trial
        All runs of the cell.
    """
    plan.check()
    _check_packages()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        claim(folder, plan)
        runs = list(plan.runs())
        missing = [run for run in runs if not trial_folder(folder, run).is_dir()]
        if missing:
            refuse_other_packages(folder)
        for part in folder.glob("*/.trial_*.part"):
            shutil.rmtree(part)
        _make(folder, plan, missing, len(runs), jobs)
    return read_trials(folder)


def _check_packages() -> None:
    """Raise before anything is written if a package is missing."""
    engine()
    for package in ("PIL", "pyarrow"):
        robot_needs(package)


def trial_folder(folder: Path, run: PlannedRun) -> Path:
    """Return where a run is written."""
    return folder / run.split / f"trial_{run.trial:04d}"


def make_run(plan: Plan, run: PlannedRun) -> Recording:
    """Return a run that turned out as planned."""
    for attempt in range(MOST_ATTEMPTS):
        settings = draw(plan.seed, run.trial, run.kind, attempt)
        recording = record(settings, plan.n_frames)
        if is_as_meant(recording):
            return recording
    raise OcfuseError(
        f"Run {run.trial} ({run.kind or 'normal'}) did not turn out as planned in {MOST_ATTEMPTS} "
        f"attempts with seed {plan.seed}. Use another seed, or more frames."
    )


def write_run(folder: Path, plan: Plan, run: PlannedRun) -> None:
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


def _make(folder: Path, plan: Plan, missing: list[PlannedRun], n_runs: int, jobs: int) -> None:
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
        image.fromarray(frame).save(file, quality=JPEG_QUALITY, subsampling=0)


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
