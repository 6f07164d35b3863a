"""`ocfuse watch`: alarms as the rows come."""

from typing import Annotated

import typer

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.options import (
    Config,
    Decimal,
    Delimiter,
    FailOnAnomaly,
    FalseAlarms,
    Json,
    Model,
    Quiet,
    Threads,
    Threshold,
)

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
    """Score rows as they come, and tell the alarms at once."""
    if (follow and data == "-") or (new and not follow):
        raise typer.BadParameter("--follow needs a file, and --new needs --follow")
    from ocfuse.cli import watching  # noqa: PLC0415

    detector = watching.load_model(model, threshold, false_alarms)
    teller = watching.Teller(detector, show_all=show_all, strict=strict, json=json, quiet=quiet)
    watch = watching.Watch(detector, teller.tell, teller.complain, delimiter, decimal)
    watching.run(watch, data, follow=follow, only_new=new, quiet=quiet)
    if fail_on_anomaly and watch.n_alarms:
        raise typer.Exit(ExitCode.ANOMALIES)
