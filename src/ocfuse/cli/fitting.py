"""The work of `ocfuse fit`."""

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import typer

from ocfuse.cli.cards import facts, print_columns, print_summary
from ocfuse.cli.output import collected, in_words, print_json, print_line, progress, warn_of
from ocfuse.cli.reports import check_report, write_report
from ocfuse.detectors.pools import POOLS, make_pool
from ocfuse.ensemble import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.features import FeatureEncoder
from ocfuse.fusion import make_fusion
from ocfuse.persistence import check_storable
from ocfuse.progress import show_progress
from ocfuse.streaming import Course, StreamDetector, StreamTable, Windows
from ocfuse.tables import Source, TableDetector, open_source
from ocfuse.tuning import make_criterion

__all__ = [
    "StreamTable",
    "TableDetector",
    "check_report",
    "encoder",
    "learn",
    "make_detector",
    "make_stream",
    "open_source",
    "tell",
]

#: Opens the table that is learned from.
Opened: TypeAlias = Callable[[], Source]


def make_detector(
    members: str,
    fusion: str | None,
    tune: str | None,
    false_alarms: float,
    seed: int,
    threads: int | None,
    encoder: FeatureEncoder | None = None,
) -> FusedDetector:
    """Return a detector as the flags describe it."""
    _check("--fusion", make_fusion, fusion)
    _check("--tune", make_criterion, tune)
    return FusedDetector(
        to_members(members),
        fusion=fusion,
        false_alarm_rate=false_alarms,
        random_state=seed,
        n_jobs=threads,
        encoder=encoder,
        tune=tune,
    )


def encoder(scale: str, gaps: str | None) -> FeatureEncoder | None:
    """Return an encoder as the flags describe it; None is the default one."""
    is_default = scale == "standard" and gaps is None
    return None if is_default else FeatureEncoder(scale, gaps or "judge")


def make_stream(
    detector: FusedDetector, windows: str, drift: str, has_course: bool
) -> StreamDetector:
    """Return a detector of streams as the flags describe it."""
    lengths: Any = tuple(
        int(word) if word.strip().isdecimal() else word for word in windows.split(",")
    )
    _check("--windows", Windows, lengths)
    course = Course() if has_course else None
    return StreamDetector(detector, windows=lengths, drift=drift, course=course)


def to_members(text: str) -> Any:
    """Return the name of a pool, or members of the pools by name."""
    if text in POOLS:
        return text
    try:
        return make_pool(text)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--members") from None


def learn(
    model: TableDetector, opened: Opened, out: Path, report: Path | None, quiet: bool
) -> dict[str, Any]:
    """Fit and save a model; return the file, the seconds and what was warned of."""
    check_storable(model)
    with collected() as notes, progress(quiet) as bar, show_progress(bar):
        source = opened()
        frame = source.read()
        start = perf_counter()
        model.fit(frame)
        seconds = perf_counter() - start
    model.save(out)
    if report is not None:
        write_report(model, frame, source.name, report)
    return {"file": str(out), "seconds": round(seconds, 2), "warnings": notes}


def tell(model: TableDetector, told: dict[str, Any], json: bool, quiet: bool) -> None:
    """Print what the columns are, what was learned, and what to be careful about."""
    if json:
        print_json(facts(model) | told)
    elif not quiet:
        print_columns(model)
        print_line()
        print_summary(model)
        size = os.path.getsize(told["file"])
        print_line(
            f"\n{told['file']} written: {size:,} bytes, {told['seconds']:.1f} s of learning."
        )
    if not quiet:
        warn_of(told["warnings"])


def _check(flag: str, make: Callable[[Any], object], given: Any) -> None:
    """Refuse what the library does."""
    if given is not None:
        try:
            make(given)
        except InvalidInputError as error:
            raise typer.BadParameter(in_words(error), param_hint=flag) from None
