"""`ocfuse explain`: why rows have their scores."""

from functools import partial
from typing import Annotated

import typer

from ocfuse.cli.options import (
    Config,
    Data,
    Decimal,
    Delimiter,
    FalseAlarms,
    Gaps,
    Json,
    Model,
    Quiet,
    Threads,
    Threshold,
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("explain")
def explain_command(
    model: Model,
    data: Data,
    row: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Number of a row, as `ocfuse score` tells it; may be repeated."),
    ] = None,
    worst: Annotated[int | None, typer.Option(min=1, help="How many of the lowest scores.")] = None,
    gaps: Gaps = None,
    threshold: Threshold = None,
    false_alarms: FalseAlarms = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Say what lies behind the scores of some rows."""
    if bool(row) == (worst is not None):
        raise typer.BadParameter("give either --row or --worst")
    from ocfuse.cli import explaining  # noqa: PLC0415

    detector = explaining.load_model(model, threshold, false_alarms, gaps)
    opened = partial(explaining.open_source, data, delimiter, decimal=decimal)
    explaining.explain_rows(detector, opened, row or [], worst or 1, json=json)
