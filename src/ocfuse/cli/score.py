"""`ocfuse score`: a table in, scores out, chunk by chunk."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.options import (
    Config,
    Data,
    Decimal,
    Delimiter,
    FailAbove,
    FailOnAnomaly,
    FalseAlarms,
    Json,
    Model,
    Quiet,
    Report,
    Threads,
    Threshold,
)
from ocfuse.cli.targets import KNOWN, check_scores, refuse_overwriting

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("score")
def score_command(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help=f"File for the scores ({KNOWN}); else stdout.",
            callback=check_scores,
        ),
    ] = None,
    threshold: Threshold = None,
    false_alarms: FalseAlarms = None,
    fail_on_anomaly: FailOnAnomaly = False,
    fail_above: FailAbove = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--no-keep-going",
            help="Give rows that cannot be scored no score, instead of stopping.",
        ),
    ] = False,
    report: Report = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score the rows of a table by a model."""
    refuse_overwriting({"--out": out, "--report": report}, {"model": model, "data": data})
    if report is not None and data == "-":
        raise typer.BadParameter("--report needs a file that can be read twice, not stdin")
    from ocfuse.cli import scoring  # noqa: PLC0415

    scoring.check_report(report)
    detector = scoring.load_model(model, threshold, false_alarms)
    opened = partial(scoring.open_source, data, delimiter, decimal=decimal)
    tally = scoring.score_table(
        detector, opened, out, report, json=json, quiet=quiet, keep_going=keep_going
    )
    most = 0.0 if fail_on_anomaly else 1.0 if fail_above is None else fail_above
    if tally.anomalies > most * tally.rows:
        raise typer.Exit(ExitCode.ANOMALIES)
