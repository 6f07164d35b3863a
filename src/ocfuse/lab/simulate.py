"""`ocfuse simulate`: recordings of a robot, a motor or a belt, with and without anomalies."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocfuse.cli.options import Config, Json, Quiet, Seed
from ocfuse.cli.output import print_json, print_line, print_table, progress
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.progress import show_progress

if TYPE_CHECKING:
    from ocfuse.lab.robot_cell import CellPlan
    from ocfuse.vision.trials import Trial

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _check_out(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file. Give the name of a folder.")
    return out


@app.command("simulate")
def simulate_command(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder to write the recordings to.", callback=_check_out),
    ],
    runs: Annotated[
        int,
        typer.Option(
            min=1, help="Normal runs: 70 % to learn from, 15 % for validation, 15 % for test."
        ),
    ] = 40,
    types: Annotated[
        str,
        typer.Option(
            help="What goes wrong in test runs: 1 camera occlusion, 2 grasp failure, 3 drop, "
            "4 obstacle; or names of kinds, such as hand,ball.",
        ),
    ] = "1,2,3,4",
    anomalous: Annotated[
        int | None,
        typer.Option(
            min=0, help="Test runs of each type, by default a tenth of --runs.", show_default=False
        ),
    ] = None,
    motor: Annotated[
        bool,
        typer.Option(
            "--motor",
            help="A motor with six sensors instead of the robot: CSV files of --runs normal runs "
            "to learn from, three quarters as many fresh ones, and --anomalous runs of each fault.",
        ),
    ] = False,
    belt: Annotated[
        bool,
        typer.Option(
            "--belt",
            help="A conveyor belt under a camera instead of the robot: videos of --runs normal "
            "runs to learn from, a quarter as many long fresh ones, and --anomalous runs of each "
            "fault.",
        ),
    ] = False,
    frames: Annotated[int, typer.Option(min=1, help="Pictures of a run of 9 seconds.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; the files do not depend on it.")] = 1,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Record a simulated robot, motor (--motor) or belt (--belt), with anomalies in some runs."""
    if motor and belt:
        raise typer.BadParameter("give either --motor or --belt")
    if motor or belt:
        record_machine = record_motor if motor else record_belt
        record_machine(out, runs, anomalous, seed, json=json, quiet=quiet)
        return
    plan = make_plan(runs, anomalous, types, frames, seed)
    record(plan, out, jobs, json=json, quiet=quiet)


def record_motor(
    out: Path, runs: int, anomalous: int | None, seed: int, *, json: bool, quiet: bool
) -> None:
    """Write the runs of a motor, and print how many there are of what."""
    from ocfuse.lab.motor import MotorPlan, simulate  # noqa: PLC0415

    plan = MotorPlan(
        train=runs,
        normal=max(1, round(0.75 * runs)),
        faulty=max(1, round(runs / 12)) if anomalous is None else anomalous,
        seed=seed,
    )
    truth = simulate(out, plan)
    facts = {"train": plan.train, "normal": plan.normal, "faults": len(truth), "slow": plan.slow}
    learn = f"ocfuse fit {out.as_posix()}/train --stream"
    _tell(out, facts, truth, learn, json=json, quiet=quiet)


def record_belt(
    out: Path, runs: int, anomalous: int | None, seed: int, *, json: bool, quiet: bool
) -> None:
    """Write the videos of a belt, and print how many there are of what."""
    from ocfuse.lab.belt import BeltPlan, simulate  # noqa: PLC0415

    plan = BeltPlan(
        train=runs,
        normal=max(1, round(runs / 4)),
        faulty=max(1, round(runs / 12)) if anomalous is None else anomalous,
        seed=seed,
    )
    truth = simulate(out, plan)
    facts = {"train": plan.train, "normal": plan.normal, "faults": len(truth)}
    learn = f"ocfuse fit --video {out.as_posix()}/train"
    _tell(out, facts, truth, learn, json=json, quiet=quiet)


def _tell(
    out: Path,
    runs: dict[str, int],
    truth: list[dict[str, str]],
    learn: str,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Print what was written, and what to do with it."""
    if json:
        print_json({"folder": out.as_posix(), "runs": runs, "truth": truth})
    elif not quiet:
        print_table(("folder", "runs"), runs.items())
        print_line(
            f"\nLearn with `{learn}`. What goes wrong, where and when, stands in "
            f"{out.as_posix()}/truth.csv."
        )


def make_plan(runs: int, anomalous: int | None, types: str, frames: int, seed: int) -> "CellPlan":
    """Return what to record, having checked the flags."""
    from ocfuse.lab.robot_cell import CellPlan  # noqa: PLC0415
    from ocfuse.vision.trials import find_kinds  # noqa: PLC0415

    names = tuple(name.strip() for name in types.split(","))
    try:
        find_kinds(names)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--types") from None
    least, most = CellPlan.least_frames, CellPlan.most_frames
    if not least <= frames <= most:
        raise typer.BadParameter(
            f"must be from {least} to {most}. Got {frames}.", param_hint="--frames"
        )
    held_out = round(0.15 * runs)
    return CellPlan(
        train=runs - 2 * held_out,
        validation=held_out,
        test=held_out,
        anomalous=max(1, round(runs / 10)) if anomalous is None else anomalous,
        types=names,
        n_frames=frames,
        seed=seed,
    )


def record(plan: "CellPlan", out: Path, jobs: int, *, json: bool, quiet: bool) -> None:
    """Record the runs, and print how many there are of what."""
    from ocfuse.lab.robot_cell import simulate  # noqa: PLC0415

    with progress(quiet) as bar, show_progress(bar):
        trials = simulate(out, plan, jobs)
    facts = _facts(trials)
    if json:
        print_json({"folder": out.as_posix(), "groups": facts})
    elif not quiet:
        print_table(tuple(facts[0]), (tuple(group.values()) for group in facts))
        print_line(f"\nRead it with ocfuse.vision.trials.read_trials({out.as_posix()!r}).")


def _facts(trials: "list[Trial]") -> list[dict[str, Any]]:
    """Return how many runs and frames there are of each split and type."""
    from ocfuse.vision.trials import TYPES  # noqa: PLC0415

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
