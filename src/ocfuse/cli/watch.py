"""`ocfuse watch`: alarms as the rows come."""

from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.options import (
    Config,
    Decimal,
    Delimiter,
    FailOnAnomaly,
    FalseAlarms,
    Gaps,
    Json,
    Model,
    Quiet,
    Threads,
    Threshold,
)
from ocfuse.cli.targets import refuse_overwriting

#: Heading of what only streams have.
STREAMS = "For models of ocfuse fit --stream"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("watch")
def watch_command(
    model: Model,
    data: Annotated[str, typer.Argument(help="CSV file with a header line; - for stdin.")] = "-",
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", "-f", help="Wait for further rows of the file.")
    ] = False,
    new: Annotated[
        bool,
        typer.Option("--new/--no-new", help="With --follow, leave out the rows that are there."),
    ] = False,
    show_all: Annotated[bool, typer.Option("--all/--no-all", help="Print every row.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--no-strict", help="Stop at a row that cannot be scored.")
    ] = False,
    leave: Annotated[
        float | None,
        typer.Option(
            help="Score that ends an event; by default a quarter of the way from the threshold "
            "to the median of normal rows.",
            show_default=False,
            rich_help_panel=STREAMS,
        ),
    ] = None,
    min_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows in a row below the threshold that raise an event; by default 3.",
            show_default=False,
            rich_help_panel=STREAMS,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds without a row after which to say so; by default 5 usual steps of the "
            "training rows, if these have dates, and at least 5.",
            show_default=False,
            rich_help_panel=STREAMS,
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="Append events to this file, a line of JSON each.",
            rich_help_panel=STREAMS,
        ),
    ] = None,
    gaps: Gaps = None,
    threshold: Threshold = None,
    false_alarms: FalseAlarms = None,
    fail_on_anomaly: FailOnAnomaly = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score rows as they come, and tell the alarms at once.

    Rows of sensors, of which ocfuse fit --stream learns, raise events.

    For pictures and recordings see ocfuse watch --video --help.
    """
    if (follow and data == "-") or (new and not follow):
        raise typer.BadParameter("--follow needs a file, and --new needs --follow")
    refuse_overwriting({"--events": events}, {"model": model, "data": data})
    from ocfuse.cli import watching  # noqa: PLC0415

    detector = watching.load_model(model, threshold, false_alarms, gaps)
    wishes = watching.Wishes(leave, min_rows, timeout, events)
    flags = watching.Flags(show_all=show_all, strict=strict, json=json, quiet=quiet)
    teller = watching.teller_of(detector, wishes, flags, is_live=follow or data == "-")
    watch = watching.Watch(detector, teller, delimiter, decimal)
    watching.run(watch, data, follow=follow, only_new=new, quiet=quiet)
    if fail_on_anomaly and teller.n_alarms + teller.n_unknown:
        raise typer.Exit(ExitCode.ANOMALIES)
