"""One system on one task: seconds, accuracy, or how it failed."""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.estimator.systems import SYSTEMS, System
from benchmarks.estimator.tables import Task


@dataclass(frozen=True)
class Trial:
    """What came out; CPU seconds, one thread."""

    system: str
    task: str
    seed: int
    fit: float = np.nan
    score: float = np.nan
    auc: float = np.nan
    failure: str = ""

    def record(self) -> dict[str, Any]:
        return asdict(self)


def run_trial(name: str, task_name: str, task: Task, seed: int) -> tuple[Trial, System | None]:
    """Fit a new system and score the test rows; failures are kept, not raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            begin = time.process_time()
            system = SYSTEMS[name](seed)
            system.fit(task.train)
            fitted = time.process_time()
            scores = system.score_samples(task.test)
            scored = time.process_time()
            if not np.isfinite(scores).all():
                raise ValueError("scores that are not finite")
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:120]
            return Trial(name, task_name, seed, failure=reason), None
    auc = 100 * roc_auc_score(task.is_normal, scores)
    return Trial(name, task_name, seed, fitted - begin, scored - fitted, auc), system


def one_row_seconds(system: System, task: Task, calls: int) -> list[float]:
    """Return wall seconds of single-row calls, after three to warm up."""
    taken = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(calls + 3):
            row = task.test[i % len(task.test)][np.newaxis]
            begin = time.perf_counter()
            system.score_samples(row)
            taken.append(time.perf_counter() - begin)
    return taken[3:]


def summary(trials: list[Trial], value: Callable[[Trial], float]) -> float:
    """Return the median over the trials that did not fail."""
    values = [value(trial) for trial in trials if not trial.failure]
    return median(values) if values else np.nan
