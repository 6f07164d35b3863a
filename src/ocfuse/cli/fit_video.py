"""`ocfuse fit --video`: from recordings of normal runs to a model file."""

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ocfuse.cli.options import check_model, refuse_overwriting
from ocfuse.cli.output import collected, print_fields, print_json, warn_of
from ocfuse.cli.output import progress as shown
from ocfuse.system.progress import show_progress

if TYPE_CHECKING:
    from ocfuse.vision import FrameSource, PictureDetector


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
    from ocfuse.cli import video_runs  # noqa: PLC0415

    runs = video_runs.find_runs(places, topic)
    detector = make_detector(size, false_alarms, seed, threads)
    told = learn(detector, runs, out, progress=progress, quiet=quiet)
    tell(told, json=json, quiet=quiet)


def make_detector(
    size: int, false_alarms: float, seed: int, threads: int | None
) -> "PictureDetector":
    """Return a detector as the flags describe it."""
    from ocfuse.vision import Lite0, PictureDetector  # noqa: PLC0415

    backbone = Lite0(size=size, threads=threads or 1)
    return PictureDetector(backbone, false_alarm_rate=false_alarms, random_state=seed)


def learn(
    detector: "PictureDetector",
    runs: "Sequence[FrameSource]",
    out: Path,
    *,
    progress: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Fit and save a detector; return what there is to tell."""
    from ocfuse.persistence import check_storable  # noqa: PLC0415
    from ocfuse.vision.sources import Runs  # noqa: PLC0415

    check_storable(detector)
    with collected() as notes, shown(quiet) as bar, show_progress(bar):
        start = perf_counter()
        if not progress or len(runs) == 1:  # one run tells nothing of what is usual at its progress
            runs = [run.with_progress(None) for run in runs]
        source = Runs(runs)
        detector.fit(source)
        detector.save(out)
        seconds = perf_counter() - start
    return {
        "file": str(out),
        "runs": len(runs),
        "frames": source.n_frames_,
        "skipped": len(source.skipped_),
        "progress": detector.context_range_ is not None,
        "threshold": float(detector.offset_),
        "false_alarms": float(detector.threshold_rate_),
        "events": _n_events(detector),
        "weights": _weights(detector),
        "seconds": round(seconds, 2),
        "warnings": notes,
    }


def tell(told: dict[str, Any], *, json: bool, quiet: bool) -> None:
    """Print what was learned from, and what to be careful about."""
    if json:
        print_json(told)
    elif not quiet:
        print_fields(_fields(told))
    if not quiet:
        warn_of(told["warnings"])


def _fields(told: dict[str, Any]) -> list[tuple[str, object]]:
    from ocfuse.report.words import count  # noqa: PLC0415

    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in told["weights"].items())
    size = os.path.getsize(told["file"])
    return [
        ("learned from", f"{count(told['runs'], 'run')}, {count(told['frames'], 'frame')}"),
        ("left out", count(told["skipped"], "frame") if told["skipped"] else ""),
        ("progress of the task", _progress_words(told)),
        ("threshold", f"{told['threshold']:.4g}, false alarms {told['false_alarms']:.3g}"),
        ("events", _event_words(told)),
        ("weights", weights),
        ("model", f"{told['file']}, {size:,} bytes, {told['seconds']:.1f} s of learning"),
    ]


def _progress_words(told: dict[str, Any]) -> str:
    if told["progress"]:
        return "used"
    return "not used" if told["runs"] > 1 else "not used, as it takes several runs"


def _event_words(told: dict[str, Any]) -> str:
    if told["runs"] > 1:
        return f"{told['events']} in these runs, each by a model that has not seen it"
    return f"{told['events']} in this run, which tells nothing of others"


def _n_events(detector: "PictureDetector") -> int:
    """Return the events that training runs would have raised, scored by fits without them."""
    import numpy as np  # noqa: PLC0415

    from ocfuse.streaming import events  # noqa: PLC0415
    from ocfuse.streaming.events import leave_score  # noqa: PLC0415
    from ocfuse.vision.watch import MIN_FRAMES  # noqa: PLC0415

    scores, groups = detector.normal_scores_, detector.normal_groups_
    parts = [scores] if groups is None else [scores[groups == g] for g in np.unique(groups)]
    leave = leave_score(detector.offset_, scores)
    return sum(len(events(part, detector.offset_, leave, MIN_FRAMES)) for part in parts)


def _weights(detector: "PictureDetector") -> dict[str, float]:
    names = [family.name for family in detector.families_]
    return dict(zip(names, detector.fusion_.weights_.tolist(), strict=True))
