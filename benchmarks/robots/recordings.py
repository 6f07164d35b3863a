"""Recorded runs as arrays: what is learned from, what sets thresholds, what is tested."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.robots.generate import BENCHMARK, QUICK
from ocfuse.lab.robot_cell import CellPlan, read_plan, simulate
from ocfuse.system.progress import show_progress
from ocfuse.vision import FeatureStore, Lite0, open_frames
from ocfuse.vision.extract import read_batches
from ocfuse.vision.trials import Trial, read_trials

ROOT = Path(__file__).parents[2]
#: Where a cell lies that was made before, by ``python -m benchmarks.robots generate``.
CELL_VARIABLE, TOYOTA_VARIABLE = "OCFUSE_CELL", "OCFUSE_TOYOTA"
CACHE = ROOT / "build" / "robots"
#: The cell of labelled anomalies: other runs than those of the tables, and not all kinds.
KNOWN_KINDS = ("full", "partial", "2", "3", "block", "brick")
UNSEEN = {1: ("hand", "smear"), 4: ("bottle", "ball")}
KNOWN = CellPlan(train=0, validation=0, test=0, anomalous=4, types=KNOWN_KINDS, seed=1)
QUICK_KNOWN = replace(KNOWN, anomalous=2, n_frames=30)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Runs:
    """Some runs, frame after frame.

    Parameters
    ----------
    trials : sequence of Trial
        The runs.
    pooled : ndarray of shape (n, 1280)
        Pooled features of all their frames, in that order. Maps of features are read from
        the store when they are needed: those of all frames fill memory.
    """

    trials: Sequence[Trial]
    pooled: NDArray[np.float32]

    @property
    def run(self) -> IntArray:
        """Which run each frame is of, counted from 0."""
        return np.repeat(np.arange(len(self.trials)), [len(t.frames) for t in self.trials])

    @property
    def y(self) -> NDArray[np.int64]:
        """+1 for a normal frame, -1 for an anomalous one."""
        return np.concatenate([trial.labels() for trial in self.trials])

    @property
    def frames(self) -> list[Path]:
        """The pictures."""
        return [frame for trial in self.trials for frame in trial.frames]

    @property
    def joints(self) -> FloatArray | None:
        """What the sensors of the robot say; None if a run has none."""
        return _stacked([trial.joints for trial in self.trials])

    @property
    def progress(self) -> FloatArray | None:
        """What the controller says of its progress; None if it says nothing."""
        return _stacked([trial.progress for trial in self.trials])

    def __len__(self) -> int:
        return len(self.pooled)

    def take(self, kept: Sequence[int]) -> "Runs":
        """Return some of the runs."""
        rows = np.isin(self.run, kept)
        return Runs([self.trials[i] for i in kept], self.pooled[rows])

    def by_run(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return values of the frames, apart for each run."""
        ends = np.cumsum([len(trial.frames) for trial in self.trials])
        return np.split(values, ends[:-1])


@dataclass(frozen=True, eq=False)
class Recordings:
    """All that a table is made from.

    Parameters
    ----------
    train, validation, test : Runs
        Normal runs to learn from; normal runs to choose and to set thresholds by; the rest.
    known : Runs or None
        Anomalous runs of which the labels may be used. None of them is in the test.
    unit : str
        Of delays: "s", or "frames" if nobody told the times.
    """

    train: Runs
    validation: Runs
    test: Runs
    known: Runs | None = None
    unit: str = "s"


def load_cell(quick: bool) -> Recordings:
    """Return the simulated cell and that of known anomalies, made if they are not there.

    A cell that is there may be of any size: it says itself what it was asked to be.
    """
    given = os.environ.get(CELL_VARIABLE)
    cell = CACHE / "quick" if quick else Path(given or CACHE / "cell")
    known = cell.with_name(cell.name + "-known")
    with show_progress():
        trials = simulate(cell, read_plan(cell) or (QUICK if quick else BENCHMARK), 2)
        strange = simulate(known, read_plan(known) or (QUICK_KNOWN if quick else KNOWN), 2)
    return make_recordings(trials, strange)


def load_toyota() -> Recordings | None:
    """Return the runs of the Toyota HSR, or None if they are not there."""
    folder = os.environ.get(TOYOTA_VARIABLE)
    if folder is None and "OCFUSE_DATA" in os.environ:
        folder = os.path.join(os.environ["OCFUSE_DATA"], "toyota-hsr")
    if folder is None or not Path(folder).is_dir():
        return None
    return replace(make_recordings(read_trials(folder)), unit="frames")


def make_recordings(trials: Sequence[Trial], known: Sequence[Trial] = ()) -> Recordings:
    """Compute the features of all frames, or read them from the cache."""
    parts = [
        make_runs([trial for trial in trials if trial.split == split])
        for split in ("train", "validation", "test")
    ]
    return Recordings(*parts, make_runs(known) if known else None)


def make_runs(trials: Sequence[Trial]) -> Runs:
    """Return runs with their pooled features; those at places stay in the store."""
    frames = open_frames([frame for trial in trials for frame in trial.frames])
    store = FeatureStore(feature_folder())
    batches = read_batches(frames, {"lite0": Lite0()}, store)
    return Runs(list(trials), np.concatenate([b.features["lite0"].pooled for b in batches]))


def feature_folder() -> Path:
    """Return where features are kept."""
    return Path(os.environ.get("OCFUSE_FEATURES", CACHE / "features"))


def _stacked(parts: Sequence[FloatArray | None]) -> FloatArray | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there and len(there) == len(parts) else None
