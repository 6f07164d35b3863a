"""`ocfuse fit` of pictures and of recordings of normal runs, to a model file."""

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ocfuse.cli.options import check_model, refuse_overwriting
from ocfuse.cli.output import at_work, print_fields, print_json, warn_of
from ocfuse.cli.video_runs import find_runs, find_single
from ocfuse.persistence import check_storable, keep_former
from ocfuse.report.words import count
from ocfuse.streaming import events
from ocfuse.streaming.events import leave_score
from ocfuse.vision import FrameSource, Lite0, PictureDetector
from ocfuse.vision.frames import PictureFiles
from ocfuse.vision.sources import Runs
from ocfuse.vision.watch import MIN_FRAMES


def fit_recordings(
    places: list[str],
    topic: str | None,
    out: Path,
    *,
    size: int,
    false_alarms: float,
    seed: int,
    threads: int | None,
    progress: bool,
    single: bool | None,
    force: bool,
    keep: int,
    json: bool,
    quiet: bool,
) -> None:
    """Learn what is normal from pictures or recordings, and write a model."""
    for place in places:
        refuse_overwriting({"--out": out}, {"recording": place})
    check_model(out, force)
    alone = find_single(places, single)
    runs = [] if alone else find_runs(places, topic)
    backbone = Lite0(size=size, threads=threads or 1)
    detector = PictureDetector(backbone, false_alarm_rate=false_alarms, random_state=seed)
    known = learn(detector, alone or runs, out, progress=progress, keep=keep, quiet=quiet)
    if json:
        print_json(known)
    elif not quiet:
        print_fields(_fields(known))
    if not quiet:
        warn_of(known["warnings"])


def learn(
    detector: PictureDetector,
    pictures: PictureFiles | Sequence[FrameSource],
    out: Path,
    *,
    progress: bool,
    quiet: bool,
    keep: int = 0,
) -> dict[str, Any]:
    """Fit and save a detector of single pictures or of runs; return what is known of it."""
    check_storable(detector)
    with at_work(quiet) as notes:
        start = perf_counter()
        source = _joined(pictures, progress)
        detector.fit(source)
        keep_former(out, keep)
        detector.save(out)
        seconds = perf_counter() - start
    n_runs = len(source.runs) if isinstance(source, Runs) else None
    names = [family.name for family in detector.families_]
    below = int((detector.training_scores_ < detector.offset_).sum())
    return {
        "file": str(out),
        "source": str(source),
        "runs": n_runs,
        "frames": source.n_frames_,
        "skipped": len(source.skipped_),
        "progress": detector.context_range_ is not None,
        "threshold": float(detector.offset_),
        "false_alarms": float(detector.threshold_rate_),
        "alarms": below,
        "events": None if n_runs is None else _n_events(detector),
        "weights": dict(zip(names, detector.fusion_.weights_.tolist(), strict=True)),
        "seconds": round(seconds, 2),
        "warnings": notes,
    }


def _joined(pictures: PictureFiles | Sequence[FrameSource], progress: bool) -> FrameSource:
    """Return all frames, of runs as such; one run does not show what is usual at its progress."""
    if isinstance(pictures, PictureFiles):
        return pictures
    if not progress or len(pictures) == 1:
        pictures = [run.with_progress(None) for run in pictures]
    return Runs(pictures)


def _n_events(detector: PictureDetector) -> int:
    """Return the events that training runs would have raised, scored by fits without them."""
    scores, groups = detector.normal_scores_, detector.normal_groups_
    parts = [scores] if groups is None else [scores[groups == g] for g in np.unique(groups)]
    leave = leave_score(detector.offset_, scores)
    return sum(len(events(part, detector.offset_, leave, MIN_FRAMES)) for part in parts)


def _fields(known: dict[str, Any]) -> list[tuple[str, object]]:
    file = known["file"]
    return [
        *(_of_single(known) if known["runs"] is None else _of_runs(known)),
        ("weights", ", ".join(f"{name} {w:.2f}" for name, w in known["weights"].items())),
        ("model", f"{file}, {os.path.getsize(file):,} bytes, {known['seconds']:.1f} s of learning"),
    ]


def _of_single(known: dict[str, Any]) -> list[tuple[str, object]]:
    n_learned = known["frames"] - known["skipped"]
    each = f"{count(n_learned, 'single picture')}, each for itself; frames of one run: --frames"
    return [
        ("learned from", each),
        ("left out", _left_out(known, "picture")),
        ("threshold", f"{known['threshold']:.4g}, false alarms {known['false_alarms']:.3g}"),
        (
            "alarms",
            f"{known['alarms']} of these {n_learned:,}, each by a model that has not seen it",
        ),
    ]


def _of_runs(known: dict[str, Any]) -> list[tuple[str, object]]:
    progress = "used" if known["progress"] else "not used"
    if known["runs"] > 1:
        n_events = f"{known['events']} in these runs, each by a model that has not seen it"
    else:
        progress += ", as it takes several runs"
        n_events = f"{known['events']} in this run, which tells nothing of others"
    return [
        ("learned from", f"{count(known['runs'], 'run')}, {count(known['frames'], 'frame')}"),
        ("left out", _left_out(known, "frame")),
        ("progress of the task", progress),
        ("threshold", f"{known['threshold']:.4g}, false alarms {known['false_alarms']:.3g}"),
        ("events", n_events),
    ]


def _left_out(known: dict[str, Any], noun: str) -> str:
    return count(known["skipped"], noun) if known["skipped"] else ""
