"""`ocfuse bench`: the paper's experiment, run again."""

from pathlib import Path
from typing import Annotated

import typer

#: Repetitions, and most of them if it has to be quick.
SEEDS, QUICK_SEEDS = 10, 3

app = typer.Typer(
    help="Run the paper's experiment again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("paper")
def paper_command(
    quick: Annotated[
        bool, typer.Option("--quick", help=f"At most {QUICK_SEEDS} repetitions: minutes.")
    ] = False,
    sets: Annotated[str | None, typer.Option(help="Sets, such as D1,D5; by default all.")] = None,
    seeds: Annotated[int, typer.Option(help="Repetitions.")] = SEEDS,
    jobs: Annotated[int, typer.Option(help="Processes, of one thread each.", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("ocfuse-paper"),
    ablation: Annotated[
        Path, typer.Option(help="Results of the benchmark of the solvers, if there are any.")
    ] = Path("benchmarks/results/solvers/ablation.json"),
) -> None:
    """Run every system of the paper's tables; a run that was stopped goes on where it was."""
    from ocfuse.cli import benching  # noqa: PLC0415

    benching.run(sets, min(seeds, QUICK_SEEDS) if quick else seeds, jobs, out, ablation)


@app.command("cell")
def cell_command(
    file: Annotated[Path, typer.Argument(help="File of a cell, in cells/ of the results.")],
    system: Annotated[str, typer.Argument(help='Name of a system, such as "Pure2 RPAU".')],
) -> None:
    """Run one system again on the split of a file; exit code 1 if the file holds another result."""
    from ocfuse.cli import benching  # noqa: PLC0415

    if not benching.is_same_again(file, system):
        raise typer.Exit(1)


@app.callback()
def _root() -> None:
    pass
