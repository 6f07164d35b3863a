"""Small experiments to try the runner on, and a small set for the paper's systems."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ocfuse.compare import System
from ocfuse.datasets.dataset import Dataset
from ocfuse.lab.paper.runner import Cell, run_cells

CELLS = [Cell("toy", "a/b", name, seed) for name in ("one", "two") for seed in (0, 1)]
NAMES = ("first", "second", "third")
#: Where the run is stopped, if the file `stop` exists.
TRAP = CELLS[1], "second"


@dataclass(frozen=True)
class Toy:
    """Systems that log their start and, if asked, stop in the middle."""

    folder: Path
    versions: tuple[str, ...] = ("1", "1", "1")

    def systems(self, cell):
        return [
            System(name, "toy", version, lambda context, name=name: self.run(cell, name))
            for name, version in zip(NAMES, self.versions, strict=True)
        ]

    def prepare(self, cell):
        return None, {"set": cell.name}

    def run(self, cell, name):
        self.write(f"{cell} {name}")
        stop = self.folder / "stop"
        if (cell, name) == TRAP and stop.exists():
            self.write("stopped")
            if stop.read_text() == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
        if name == "third" and cell.name == "two":
            raise ValueError("no such luck\nat all")
        return {name: {"value": cell.seed + len(name)}}

    def write(self, line):
        with (self.folder / "log").open("a") as log:
            log.write(line + "\n")

    def log(self):
        file = self.folder / "log"
        return file.read_text().splitlines() if file.exists() else []


def run_toy(folder, jobs=1):
    """Run in a process that is then killed."""
    return run_cells(Toy(Path(folder)), CELLS, Path(folder) / "cells", jobs)


def load_toy(name):
    """Return 60 normals about a curve and 30 anomalies, a few values missing."""
    rng = np.random.default_rng(len(name))
    t = rng.uniform(-1, 1, 60)
    normals = np.column_stack([t, t**2, rng.normal(size=60)]) + 0.1 * rng.normal(size=(60, 3))
    X = np.vstack([normals, 1.5 * rng.normal(size=(30, 3))])
    X[rng.random(X.shape) < 0.02] = np.nan
    order = rng.permutation(90)
    y = np.repeat([1, -1], [60, 30])[order]
    return Dataset(name, X[order], y, y.astype(str), ("a", "b", "c"))
