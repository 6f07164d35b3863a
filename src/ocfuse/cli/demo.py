"""`ocfuse demo`: the whole story on a data set that comes with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.options import Config, Json, Quiet, Seed, Threads

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("demo")
def demo_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the files of the demo.")
    ] = Path("ocfuse-demo"),
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn from normal rows, raise alarms on new ones, say why, and write a report."""
    from ocfuse.cli.demonstrating import tell_story  # noqa: PLC0415

    tell_story(out, seed, json=json, quiet=quiet)
