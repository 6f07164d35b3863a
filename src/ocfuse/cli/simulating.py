"""The recordings of `ocfuse simulate`, and how it tells of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import typer

from ocfuse.cli.output import print_json, print_line, print_table, progress
from ocfuse.exceptions import InvalidInputError
from ocfuse.progress import show_progress
from ocfuse.robots import TYPES, Plan, Trial, simulate
from ocfuse.robots.kinds import find_kinds
from ocfuse.robots.plan import LEAST_FRAMES, MOST_FRAMES

#: Share of the normal runs for validation, and as many for test.
HELD_OUT = 0.15


def make_plan(runs: int, anomalous: int | None, types: str, frames: int, seed: int) -> Plan:
    """Return what to record, having checked the flags."""
    names = tuple(name.strip() for name in types.split(","))
    try:
        find_kinds(names)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--types") from None
    if not LEAST_FRAMES <= frames <= MOST_FRAMES:
        raise typer.BadParameter(
            f"must be from {LEAST_FRAMES} to {MOST_FRAMES}. Got {frames}.", param_hint="--frames"
        )
    held_out = round(HELD_OUT * runs)
    return Plan(
        train=runs - 2 * held_out,
        validation=held_out,
        test=held_out,
        anomalous=max(1, round(runs / 10)) if anomalous is None else anomalous,
        types=names,
        n_frames=frames,
        seed=seed,
    )


def record(plan: Plan, out: Path, jobs: int, *, json: bool, quiet: bool) -> None:
    """Record the runs, and tell how many there are of what."""
    with progress(quiet) as bar, show_progress(bar):
        trials = simulate(out, plan, jobs)
    facts = _facts(trials)
    if json:
        print_json({"folder": out.as_posix(), "groups": facts})
    elif not quiet:
        print_table(tuple(facts[0]), (tuple(group.values()) for group in facts))
        print_line(f"\nRead it with ocfuse.robots.read_trials({out.as_posix()!r}).")


def _facts(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return how many runs and frames there are of each split and type."""
    runs = Counter((trial.split, trial.kind) for trial in trials)
    frames: Counter[tuple[str, int]] = Counter()
    for trial in trials:
        frames[trial.split, trial.kind] += int((trial.labels() == -1).sum())
    size = len(trials[0].frames)
    return [
        {
            "split": split,
            "type": kind,
            "name": TYPES.get(kind, "normal"),
            "runs": n_runs,
            "frames": n_runs * size,
            "anomalous": frames[split, kind],
        }
        for (split, kind), n_runs in runs.items()
    ]
