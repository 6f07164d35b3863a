"""`ocfuse fit`: from a table of normal rows to a model file.

As in every module of a command, what takes long to import comes when it is called: the help
needs none of it.
"""

from functools import partial
from typing import Annotated

import typer

from ocfuse.cli.options import (
    DEFAULT_MODEL,
    MACHINES,
    Anomaly,
    Category,
    Config,
    Data,
    Decimal,
    Delimiter,
    Engine,
    Force,
    Gaps,
    Group,
    Id,
    Ignore,
    Json,
    Label,
    Members,
    Normal,
    Out,
    Quiet,
    Rate,
    Report,
    Scale,
    Scheduler,
    Seed,
    Threads,
    Time,
    Workers,
)
from ocfuse.cli.targets import check_engine, check_model, refuse_overwriting

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("fit")
def fit_command(
    data: Data,
    out: Out = DEFAULT_MODEL,
    label: Label = None,
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    time: Time = None,
    group: Group = None,
    category: Category = None,
    scale: Scale = "standard",
    gaps: Gaps = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    false_alarms: Rate = 0.05,
    members: Members = "default",
    fusion: Annotated[
        str | None,
        typer.Option(help="Such as sum, median or lp; by default competence or labelled."),
    ] = None,
    tune: Annotated[
        str | None,
        typer.Option(help="Choose settings by: pseudo-negatives, labels, rpau, stability."),
    ] = None,
    report: Report = None,
    force: Force = False,
    engine: Engine = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=2, help="How many rows to draw and learn from; 20,000.", rich_help_panel=MACHINES
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn what is normal from a table, and write a model.

    For runs of sensors see ocfuse fit --stream --help, for pictures and recordings ocfuse fit
    --video --help.
    """
    refuse_overwriting({"--out": out, "--report": report}, {"data": data})
    check_model(out, force)
    is_spread = check_engine(
        engine,
        {"--scheduler": scheduler, "--workers": workers, "--rows": rows},
        {"--report": report, "--delimiter": delimiter, "--decimal": decimal},
    )
    from ocfuse.cli import fitting  # noqa: PLC0415

    fitting.check_report(report)
    model = fitting.TableDetector(
        fitting.make_detector(
            members, fusion, tune, false_alarms, seed, threads, fitting.encoder(scale, gaps)
        ),
        label=label,
        normal=normal or None,
        anomaly=anomaly or None,
        ignore=tuple(ignore or ()),
        id=id,
        time=time,
        group=group,
        categories=tuple(category or ()),
    )
    if is_spread:
        from ocfuse.cli import clusters  # noqa: PLC0415

        cluster = {"scheduler": scheduler, "workers": workers}
        told = clusters.learn_from_folder(
            model, data, out, cluster, rows=rows, seed=seed, quiet=quiet
        )
    else:
        opened = partial(fitting.open_source, data, delimiter, decimal=decimal)
        told = fitting.learn(model, opened, out, report, quiet)
    fitting.tell(model, told, json, quiet)
