"""Part "accuracy": what 500 landmarks cost against exact kernels, task by task."""

import warnings
import zlib
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.accuracy.sets import all_tasks, family, rows
from benchmarks.estimator.tables import FloatArray, filled
from benchmarks.report import Report, Table, Target
from ocfuse import FusedDetector
from ocfuse.detectors.base import MANY_ROWS
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.members import Members
from ocfuse.detectors.pool import FEW_LANDMARKS, make_pool

#: Most training rows: those of the yardstick, and as many as exact kernels were for.
SIZES = (600, MANY_ROWS)
MOST_TESTED = 1_000
MEAN, WORST = 0.05, -1.0


@dataclass(frozen=True)
class Found:
    """AUC in % and false alarms at 5 %, by landmarks and by exact kernels."""

    task: str
    shape: tuple[int, ...]
    auc: tuple[float, float]
    alarms: tuple[float, float]

    @property
    def change(self) -> float:
        return self.auc[0] - self.auc[1]


def run(quick: bool) -> Report:
    sizes = SIZES[:1] if quick else SIZES
    found = {size: [compared(*task) for task in tasks(size, quick)] for size in sizes}
    return Report(
        "Kernels by way of 500 landmarks, and exact ones",
        f"All tasks of the accuracy benchmark of which more than {FEW_LANDMARKS} rows are learned: "
        "60 % of the normals, at most so many as the table says, one split; the others, up to "
        f"{MOST_TESTED:,}, and as many anomalies are told apart. The default detector, and the "
        "same members with exact kernels. Fewer rows have exact kernels anyhow: nothing changes.",
        [target for size, changes in found.items() for target in targets(size, changes)],
        [table(size, changes) for size, changes in found.items()],
        {str(size): [vars(each) for each in changes] for size, changes in found.items()},
    )


def tasks(size: int, quick: bool) -> list[tuple[str, FloatArray, FloatArray, FloatArray]]:
    """Return the names, training rows, test normals and anomalies of all tasks."""
    found = []
    for name in all_tasks(quick=False):
        normals, anomalies = rows(name)
        n = min(round(0.6 * len(normals)), size)
        if n <= FEW_LANDMARKS or (size > SIZES[0] and n <= SIZES[0]):
            continue
        rng = np.random.default_rng([0, zlib.crc32(name.encode())])
        order = rng.permutation(len(normals))
        strange = anomalies[rng.permutation(len(anomalies))[:MOST_TESTED]]
        found.append((name, normals[order[:n]], normals[order[n : n + MOST_TESTED]], strange))
        if quick and len(found) == 2:
            break
    return found


def compared(name: str, train: FloatArray, fresh: FloatArray, strange: FloatArray) -> Found:
    _, train, test = filled(train, train, np.vstack([fresh, strange]))
    is_normal = np.arange(len(test)) < len(fresh)
    results = []
    for members in ("default", exact_members()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detector = FusedDetector(members, random_state=0).fit(train)
            scores = detector.score_samples(test)
        alarms = 100 * float(np.mean(scores[is_normal] < detector.offset_))
        results.append((100 * float(roc_auc_score(is_normal, scores)), alarms))
    (auc, alarms), (exact_auc, exact_alarms) = results
    found = Found(name, train.shape, (auc, exact_auc), (alarms, exact_alarms))
    print(found, flush=True)
    return found


def exact_members() -> Members:
    """Return the members of the default pool, each kernel of all rows."""
    members = make_pool("default")
    for _, member in members:
        inner = getattr(member, "detector", member)
        if isinstance(inner, KPCA):
            inner.set_params(max_samples=MANY_ROWS, landmarks=None)
    return members


def targets(size: int, found: list[Found]) -> list[Target]:
    changes = np.array([each.change for each in found])
    worst = min(found, key=lambda each: each.change)
    return [
        Target(
            f"up to {size:,} rows: mean change of the AUC at most {MEAN}, {len(found)} tasks",
            f"{changes.mean():+.3f} (over families {family_mean(found):+.3f})",
            bool(abs(changes.mean()) <= MEAN),
        ),
        Target(
            f"up to {size:,} rows: no task loses more than {-WORST:g}",
            f"{worst.change:+.2f} on {worst.task}",
            worst.change >= WORST,
        ),
    ]


def family_mean(found: list[Found]) -> float:
    groups: dict[str, list[float]] = {}
    for each in found:
        groups.setdefault(family(each.task), []).append(each.change)
    return float(np.mean([np.mean(changes) for changes in groups.values()]))


def table(size: int, found: list[Found]) -> Table:
    lines = [
        [
            each.task,
            "{:,} x {}".format(*each.shape),
            *(f"{auc:.2f}" for auc in each.auc),
            f"{each.change:+.2f}",
            *(f"{alarms:.1f}" for alarms in each.alarms),
        ]
        for each in found
    ]
    means = [np.mean([each.alarms[k] for each in found]) for k in (0, 1)]
    lines.append(["**mean**", "", "", "", f"{np.mean([each.change for each in found]):+.3f}"])
    lines[-1] += [f"{mean:.2f}" for mean in means]
    header = ["task", "learned", "AUC, landmarks", "AUC, exact", "change"]
    header += ["false alarms at 5 %, landmarks", "exact"]
    return Table(f"Up to {size:,} rows", header, lines)
