"""What is measured of the scores of frames: by frame, by run, and in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.onsets import on_before
from benchmarks.robots.recordings import FloatArray, Recordings, Runs
from ocfuse.metrics import auc, average_precision
from ocfuse.scores import conformal_threshold
from ocfuse.streaming import run_score, time_to_detection

#: Share of normal frames that may raise an alarm.
RATE = 0.01
NORMAL = 0

Figures = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of a system, higher = more normal.

    Parameters
    ----------
    view : str
        What it sees.
    name : str
        What it is.
    validation, test : ndarray of shape (n,)
        Scores of the frames.
    """

    view: str
    name: str
    validation: FloatArray
    test: FloatArray

    @property
    def offset(self) -> float:
        """Threshold, from the frames of the validation runs; the same rule for every system."""
        return float(conformal_threshold(self.validation, RATE)[0])


def measure(scored: Scored, data: Recordings) -> Figures:
    """Return all figures of a system, in % and in the unit of delays; types are texts."""
    runs, scores = data.test, scored.test
    kinds = kinds_of(runs)
    return {
        "view": scored.view,
        "name": scored.name,
        "types": {str(kind): of_type(runs, scores, kinds, kind) for kind in strange(kinds)},
        "kinds": of_kinds(runs, scores),
        "runs": of_runs(runs, scores).tolist(),
        "alarms": alarms_of(scores, scored.offset, data),
    }


def kinds_of(runs: Runs) -> NDArray[np.int64]:
    return np.array([trial.kind for trial in runs.trials])


def strange(kinds: NDArray[np.int64]) -> list[int]:
    """Return the types that are not normal."""
    return list(np.unique(kinds[kinds != NORMAL]).tolist())


def of_type(runs: Runs, scores: FloatArray, kinds: NDArray[np.int64], kind: int) -> Figures:
    """Tell the frames, and the runs, of one type from normal ones."""
    of_it = kinds == kind
    chosen = of_it | (kinds == NORMAL)
    rows = chosen[runs.run]
    whole = np.array([run_score(part) for part in runs.by_run(scores)])
    return {
        "frame": areas(runs.y[rows], scores[rows]),
        "run": areas(np.where(of_it, -1, 1)[chosen], whole[chosen]),
    }


def areas(y: NDArray[np.int64], scores: FloatArray) -> Figures:
    return {
        "auc": 100 * auc(y, scores),
        "ap": 100 * average_precision(y, scores),
        "prevalence": 100 * float(np.mean(y < 0)),
    }


def alarms_of(scores: FloatArray, offset: float, data: Recordings) -> Figures:
    """Return what a threshold does: false alarms, frames and anomalies found, and how soon."""
    runs = data.test
    kinds = kinds_of(runs)
    return {
        "offset": offset,
        **false_alarms(runs, scores, offset),
        "frames found": 100 * float(np.mean(scores[runs.y < 0] < offset)),
        "types": {
            str(kind): delays_of(data, scores < offset, np.flatnonzero(kinds == kind))
            for kind in strange(kinds)
        },
    }


def delays_of(data: Recordings, alarms: NDArray[np.bool_], numbers: Sequence[int]) -> Figures:
    """Return how long each anomaly of some runs lasted until an alarm; None if none came.

    An alarm that was on when the anomaly began is counted apart, and is no detection.
    """
    runs, delays, was_on = data.test, [], []
    labels, on = runs.by_run(runs.y), runs.by_run(alarms)
    for i in numbers:
        times = runs.trials[i].times if data.unit == "s" else None
        delays.append(time_to_detection(labels[i], on[i], times))
        was_on.append(on_before(labels[i], on[i]))
    after, early = np.concatenate(delays), np.concatenate(was_on)
    fresh = after[~early]
    return {
        "anomalies": len(after),
        "on before": int(early.sum()),
        "found": int((~np.isnan(fresh)).sum()),
        "delays": [None if np.isnan(delay) else float(delay) for delay in fresh],
        "unit": data.unit,
    }


def of_runs(runs: Runs, scores: FloatArray) -> FloatArray:
    """Return the AUC of each anomalous run: its anomalous frames v all of the normal runs."""
    normal, parts = apart(runs, scores)
    return np.array([against(normal, part) for _, part in parts])


def of_kinds(runs: Runs, scores: FloatArray) -> dict[str, float]:
    """Return the same for all runs of a kind together."""
    normal, parts = apart(runs, scores)
    names = dict.fromkeys(name for name, _ in parts if name)
    return {
        name: against(normal, np.concatenate([part for kind, part in parts if kind == name]))
        for name in names
    }


def apart(runs: Runs, scores: FloatArray) -> tuple[FloatArray, list[tuple[str, FloatArray]]]:
    """Return scores of the normal runs, and of the anomalous frames of each other run."""
    parts = list(zip(runs.trials, runs.by_run(scores), runs.by_run(runs.y), strict=True))
    normal = np.concatenate([part for trial, part, _ in parts if trial.kind == NORMAL])
    others = [(trial.subkind, part[y < 0]) for trial, part, y in parts if (y < 0).any()]
    return normal, others


def against(normal: FloatArray, others: FloatArray) -> float:
    y = np.repeat([1, -1], [len(normal), len(others)])
    return 100 * auc(y, np.concatenate([normal, others]))


def false_alarms(runs: Runs, scores: FloatArray, offset: float) -> Figures:
    """Return the share of alarms in every normal run, and in the normal frames of the others."""
    parts = zip(runs.trials, runs.by_run(scores), runs.by_run(runs.y), strict=True)
    by_run, others = [], []
    for trial, part, y in parts:
        alarms = part[y > 0] < offset
        if trial.kind == NORMAL:
            by_run.append(100 * float(alarms.mean()))
        else:
            others.append(alarms)
    elsewhere = np.concatenate(others) if others else np.zeros(0)
    return {
        "false alarms": by_run,
        "false alarms elsewhere": 100 * float(elsewhere.mean()) if len(elsewhere) else None,
    }


def mean_area(figures: Figures, level: str = "frame", what: str = "auc") -> float:
    """Return the mean over the types."""
    return float(np.mean([kind[level][what] for kind in figures["types"].values()]))
