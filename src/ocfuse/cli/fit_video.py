"""`ocfuse fit --video`: from recordings of normal runs to a model file."""

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ocfuse.cli.options import check_model, refuse_overwriting
from ocfuse.cli.output import at_work, print_fields, print_json, warn_of
from ocfuse.cli.video_runs import find_runs
from ocfuse.persistence import check_storable
from ocfuse.report.words import count
from ocfuse.streaming import events
from ocfuse.streaming.events import leave_score
from ocfuse.vision import FrameSource, Lite0, PictureDetector
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
    force: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Learn what is normal from recordings, and write a model."""
    for place in places:
        refuse_overwriting({"--out": out}, {"recording": place})
    check_model(out, force)
    runs = find_runs(places, topic)
    backbone = Lite0(size=size, threads=threads or 1)
    detector = PictureDetector(backbone, false_alarm_rate=false_alarms, random_state=seed)
    known = learn(detector, runs, out, progress=progress, quiet=quiet)
    if json:
        print_json(known)
    elif not quiet:
        print_fields(_fields(known))
    if not quiet:
        warn_of(known["warnings"])


def learn(
    detector: PictureDetector,
    runs: Sequence[FrameSource],
    out: Path,
    *,
    progress: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Fit and save a detector; return what is known of it."""
    check_storable(detector)
    with at_work(quiet) as notes:
        start = perf_counter()
        if not progress or len(runs) == 1:  # one run does not show what is usual at its progress
            runs = [run.with_progress(None) for run in runs]
        source = Runs(runs)
        detector.fit(source)
        detector.save(out)
        seconds = perf_counter() - start
    names = [family.name for family in detector.families_]
    return {
        "file": str(out),
        "runs": len(runs),
        "frames": source.n_frames_,
        "skipped": len(source.skipped_),
        "progress": detector.context_range_ is not None,
        "threshold": float(detector.offset_),
        "false_alarms": float(detector.threshold_rate_),
        "events": _n_events(detector),
        "weights": dict(zip(names, detector.fusion_.weights_.tolist(), strict=True)),
        "seconds": round(seconds, 2),
        "warnings": notes,
    }


def _n_events(detector: PictureDetector) -> int:
    """Return the events that training runs would have raised, scored by fits without them."""
    scores, groups = detector.normal_scores_, detector.normal_groups_
    parts = [scores] if groups is None else [scores[groups == g] for g in np.unique(groups)]
    leave = leave_score(detector.offset_, scores)
    return sum(len(events(part, detector.offset_, leave, MIN_FRAMES)) for part in parts)


def _fields(known: dict[str, Any]) -> list[tuple[str, object]]:
    progress = "used" if known["progress"] else "not used"
    if known["runs"] > 1:
        n_events = f"{known['events']} in these runs, each by a model that has not seen it"
    else:
        progress += ", as it takes several runs"
        n_events = f"{known['events']} in this run, which tells nothing of others"
    return [
        ("learned from", f"{count(known['runs'], 'run')}, {count(known['frames'], 'frame')}"),
        ("left out", count(known["skipped"], "frame") if known["skipped"] else ""),
        ("progress of the task", progress),
        ("threshold", f"{known['threshold']:.4g}, false alarms {known['false_alarms']:.3g}"),
        ("events", n_events),
        ("weights", ", ".join(f"{name} {w:.2f}" for name, w in known["weights"].items())),
        (
            "model",
            f"{known['file']}, {os.path.getsize(known['file']):,} bytes, "
            f"{known['seconds']:.1f} s of learning",
        ),
    ]
