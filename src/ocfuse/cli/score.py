"""`ocfuse score`: a table in, scores out, chunk by chunk."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.early import import_sklearn
from ocfuse.cli.options import (
    Config,
    Data,
    Decimal,
    Delimiter,
    Engine,
    FailAbove,
    FailOnAnomaly,
    FalseAlarms,
    Gaps,
    Json,
    Model,
    Quiet,
    Report,
    Scheduler,
    Threads,
    Threshold,
    Workers,
)
from ocfuse.cli.targets import KNOWN, check_engine, check_scores, refuse_overwriting

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
            help=f"File for the scores ({KNOWN}); else stdout. With an engine, a folder.",
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
            help="Leave the results of rows that cannot be scored empty, instead of stopping.",
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why/--no-why", help="Add a column that says in one line why a row raises an alarm."
        ),
    ] = False,
    why_all: Annotated[
        bool,
        typer.Option("--why-all/--no-why-all", help="The same for every row; takes far longer."),
    ] = False,
    gaps: Gaps = None,
    report: Report = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    engine: Engine = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score the rows of a table by a model."""
    refuse_overwriting({"--out": out, "--report": report}, {"model": model, "data": data})
    is_spread = check_engine(
        engine,
        {"--scheduler": scheduler, "--workers": workers},
        {
            "--report": report,
            "--delimiter": delimiter,
            "--decimal": decimal,
            "--why": why,
            "--why-all": why_all,
        },
    )
    if is_spread and out is None:
        raise typer.BadParameter("--engine dask needs --out, a folder for the scores")
    out = out if is_spread else check_scores(out)
    if report is not None and data == "-":
        raise typer.BadParameter("--report needs a file that can be read twice, not stdin")
    import_sklearn()
    from ocfuse.cli import scoring  # noqa: PLC0415

    scoring.check_report(report)
    detector = scoring.load_model(model, threshold, false_alarms, gaps)
    if is_spread and out is not None:
        from ocfuse.cli import clusters  # noqa: PLC0415

        cluster = {"scheduler": scheduler, "workers": workers}
        tally = clusters.score_folder(
            detector, data, out, cluster, json=json, quiet=quiet, keep_going=keep_going
        )
    else:
        opened = partial(scoring.open_source, data, delimiter, decimal=decimal)
        tally = scoring.score_table(
            *(detector, opened, out, report),
            json=json,
            quiet=quiet,
            keep_going=keep_going,
            why="all" if why_all else why,
        )
    most = 0.0 if fail_on_anomaly else 1.0 if fail_above is None else fail_above
    if tally.exceeds(most):
        raise typer.Exit(ExitCode.ANOMALIES)
