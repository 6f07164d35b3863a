"""`ocfuse bench`: the paper's experiment, run again."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.output import print_json, print_line
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.progress import show_progress

app = typer.Typer(
    help="Run the paper's experiment again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("paper")
def paper_command(
    quick: Annotated[
        bool, typer.Option("--quick", help="Run at most 3 repetitions; takes minutes.")
    ] = False,
    sets: Annotated[str | None, typer.Option(help="Sets, such as D1,D5; by default all.")] = None,
    seeds: Annotated[int, typer.Option(help="Repetitions.")] = 10,
    jobs: Annotated[int, typer.Option(help="Processes, of one thread each.", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("ocfuse-paper"),
    others: Annotated[
        Path, typer.Option(help="Folder of the results of other benchmarks, if there are any.")
    ] = Path("benchmarks/results"),
) -> None:
    """Run every system of the paper's tables. A run that was stopped continues."""
    run(sets, min(seeds, 3) if quick else seeds, jobs, out, others)


@app.command("cell")
def cell_command(
    results: Annotated[Path, typer.Argument(help="Folder of results, or its results.json.")],
    system: Annotated[str, typer.Argument(help='Name of a system, such as "Pure2 RPAU".')],
    set_name: Annotated[str, typer.Option("--set", help="The set, D1 to D10.")] = "D5",
    seed: Annotated[int, typer.Option(help="The repetition.", min=0)] = 0,
) -> None:
    """Run one system again on one split; exit code 1 if the results hold another figure."""
    if not is_same_again(results, system, set_name.strip().upper(), seed):
        raise typer.Exit(1)


@app.callback()
def _root() -> None:
    pass


def run(sets: str | None, n_seeds: int, jobs: int, out: Path, others: Path) -> None:
    """Run every system of the paper's tables, and write them."""
    from ocfuse.lab.paper.experiment import (  # noqa: PLC0415
        SETS,
        run_paper,
        set_names,
    )
    from ocfuse.lab.paper.runner import facts  # noqa: PLC0415
    from ocfuse.lab.paper.tables import write  # noqa: PLC0415

    names = set_names(list(SETS) if sets is None else sets.split(","))
    with show_progress():
        results, bounds = run_paper(out, names, n_seeds, jobs)
    command = f"ocfuse bench paper --sets {','.join(names)} --seeds {n_seeds}"
    index, *_ = write(results, out, about=facts(command), bounds=bounds, others=others)
    n_failed = sum("failure" in record for record in results)
    print_line(f"{len(results)} results, {n_failed} of them failures, in {out}; see {index}")


def is_same_again(results: Path, system: str, set_name: str, seed: int) -> bool:
    """Run one system again on one split; return whether the results hold the same."""
    from ocfuse.lab.paper.experiment import rerun  # noqa: PLC0415

    file = results / "results.json" if results.is_dir() else results
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{file} must be the results of `ocfuse bench paper`. {error}."
        ) from None
    again, before = rerun(stored, system, set_name, seed)
    print_json({"now": again, "stored": before, "is_same": again == before})
    return again == before
