"""`ocfuse simulate`: recordings of a robot that picks and places, with and without anomalies."""

from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.options import Config, Json, Quiet, Seed

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _check_out(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file. Give the name of a folder.")
    return out


@app.command("simulate")
def simulate_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the recordings.", callback=_check_out)
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
    frames: Annotated[int, typer.Option(min=1, help="Pictures of a run of 9 seconds.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; the files do not depend on it.")] = 1,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Record a simulated robot that picks and places, with anomalies in some runs."""
    from ocfuse.cli import simulating  # noqa: PLC0415

    plan = simulating.make_plan(runs, anomalous, types, frames, seed)
    simulating.record(plan, out, jobs, json=json, quiet=quiet)
