"""Our detectors, with and without the progress of the task."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.robots.measures import RATE, Scored
from benchmarks.robots.recordings import FloatArray, Recordings, Runs, feature_folder
from benchmarks.robots.views import View, make_view, need_joints
from ocfuse import FusedDetector
from ocfuse.exceptions import OcfuseWarning
from ocfuse.scores import join_lowest
from ocfuse.streaming import Course, StreamDetector
from ocfuse.vision import PatchGaussian, PatchKNN, PictureDetector

OURS = "ours"
#: Instead of what they see: the members of our detector of pooled features.
MEMBERS = "members"
#: Of joints: the samples themselves. Chosen on validation and known runs, see `cell.METHOD`.
WINDOWS: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Learned:
    """One of our detectors: what it and its parts say.

    Parameters
    ----------
    scored : list of Scored
        The parts, and last the detector itself.
    held_out : ndarray of shape (n,)
        Its scores of the training frames, by fits that have not seen their runs.
    weights : dict of str to float
        How far it trusts its parts, if it says so.
    """

    scored: list[Scored]
    held_out: FloatArray
    weights: dict[str, float]


def learn_camera(data: Recordings) -> Learned:
    """Learn the pictures; their progress too, if the controller tells it."""
    train = data.train
    detector = make_detector()
    with quiet():
        detector.fit(train.frames, groups=train.run, context=train.progress)
    raw = [detector.transform_raw(r.frames, r.progress) for r in (data.validation, data.test)]
    parts = families_alone(detector, raw, "")
    parts += learn_patches(data) if train.progress is not None else []
    whole = Scored("camera", OURS, *map(detector.fusion_.fuse, raw))
    names = [family.name for family in detector.families_]
    weights = dict(zip(names, detector.fusion_.weights_.tolist(), strict=True))
    return Learned([*parts, whole], detector.training_scores_, weights)


def learn_patches(data: Recordings) -> list[Scored]:
    """Learn the patch members without progress, to see what it is worth."""
    detector = make_detector([("gaussian", PatchGaussian()), ("knn", PatchKNN())])
    with quiet():
        detector.fit(data.train.frames, groups=data.train.run)
    raw = [detector.transform_raw(runs.frames) for runs in (data.validation, data.test)]
    return families_alone(detector, raw, ", without progress")


def make_detector(members: Any = None) -> PictureDetector:
    return PictureDetector(
        members=members, false_alarm_rate=RATE, store=str(feature_folder()), random_state=0
    )


def families_alone(detector: PictureDetector, raw: list[FloatArray], words: str) -> list[Scored]:
    """Return what each family of a detector says by itself."""
    return [
        Scored("camera", f"ours: {family.name} alone{words}", *(S[:, j] for S in raw))
        for j, family in enumerate(detector.families_)
    ]


def learn_pooled(data: Recordings) -> list[Scored]:
    """Learn the pooled features alone, without progress: one fit, its members, two fusions."""
    view = make_view(data, "camera")
    detector = FusedDetector(random_state=0)
    with quiet():
        detector.fit(view(data.train), groups=data.train.run)
    tables = [view(data.validation), view(data.test)]
    said = [detector.transform(X) for X in tables]
    members = [
        Scored(MEMBERS, name, *(S[:, j] for S in said))
        for j, name in enumerate(detector.pool_.names_)
    ]
    found = [*members, *two_fusions("camera", "pooled", detector, tables)]
    if data.known is not None:
        found.append(with_labels(data, data.known, view, tables))
    return found


def with_labels(data: Recordings, known: Runs, view: View, tables: list[FloatArray]) -> Scored:
    """Learn the same from the anomalous frames of the known runs too."""
    strange = known.y < 0
    X = np.vstack([view(data.train), view(known)[strange]])
    y = np.repeat([1, -1], [len(data.train), int(strange.sum())])
    run = np.r_[data.train.run, len(data.train.trials) + known.run[strange]]
    detector = FusedDetector(random_state=0)
    with quiet():
        detector.fit(X, y, groups=run)
    return Scored("camera", "pooled, recipe with labels", *map(detector.score_samples, tables))


def learn_joints(data: Recordings) -> Learned:
    """Learn the joints, as they are and, if there is progress, as is usual at it."""
    views = {"joints": None}
    if data.train.progress is not None:
        views["joints at their progress"] = Course()
    found: list[Scored] = []
    for name, course in views.items():
        stream = StreamDetector(
            FusedDetector(false_alarm_rate=RATE, random_state=0),
            windows=WINDOWS,
            course=course,
            max_rows=None,
        )
        with quiet():
            stream.fit(need_joints(data.train), **about(data.train, course))
        tables = [
            stream.features(need_joints(runs), **about(runs, course))
            for runs in (data.validation, data.test)
        ]
        contexts = [about(runs, course)["context"] for runs in (data.validation, data.test)]
        found += two_fusions("joints", name, stream.detector_, tables, contexts)
    found[-1] = replace(found[-1], name=OURS)
    return Learned(found, stream.training_scores_, {})


def about(runs: Runs, course: Course | None) -> dict[str, Any]:
    """Return what a stream is told beside its samples."""
    times = np.concatenate([trial.times for trial in runs.trials])
    return {"runs": runs.run, "time": times, "context": runs.progress if course else None}


def two_fusions(
    view: str,
    name: str,
    detector: FusedDetector,
    tables: list[FloatArray],
    contexts: Sequence[FloatArray | None] = (None, None),
) -> list[Scored]:
    """Return the sum of the members' scores, and what the recipe makes of them."""
    sums = [detector.transform(X).mean(axis=1) for X in tables]
    fused = [detector.score_samples(X, c) for X, c in zip(tables, contexts, strict=True)]
    return [Scored(view, f"{name}, sum rule", *sums), Scored(view, f"{name}, recipe", *fused)]


def join(parts: list[Learned]) -> Learned:
    """Return what the detectors say together: the lowest of their scores.

    The mean was the alternative; both were tried on the known anomalies.
    """
    held_out = [part.held_out for part in parts]
    scored = [part.scored[-1] for part in parts]
    both = Scored(
        "both",
        OURS,
        join_lowest([s.validation for s in scored], held_out),
        join_lowest([s.test for s in scored], held_out),
    )
    return Learned([both], join_lowest(held_out, held_out), {})


def quiet() -> warnings.catch_warnings:
    """Silence what the tables say themselves: 34 runs cannot promise a rate of 1 %."""
    return warnings.catch_warnings(action="ignore", category=OcfuseWarning)
