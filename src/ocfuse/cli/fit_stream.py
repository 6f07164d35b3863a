"""`ocfuse fit --stream`: from normal runs of sensors to a model file."""

from enum import Enum
from functools import partial
from typing import Annotated

import typer

from ocfuse.cli.options import (
    DEFAULT_MODEL,
    Anomaly,
    Config,
    Data,
    Decimal,
    Delimiter,
    Force,
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
    Seed,
    Threads,
    Time,
    check_model,
    refuse_overwriting,
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Drift(Enum):
    """What becomes of channels that drift in training."""

    KEEP = "keep"
    DROP = "drop"
    FOLLOW = "follow"


@app.command("fit-stream")
def fit_stream_command(
    data: Data,
    stream: Annotated[
        bool, typer.Option("--stream", help="The rows are samples of sensors, in order of time.")
    ] = True,
    out: Out = DEFAULT_MODEL,
    windows: Annotated[
        str, typer.Option(help="Lengths of the windows that are looked at, in rows.")
    ] = "10,30",
    time: Time = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column that names the run of every row; by default the files of a folder are "
            "the runs."
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="Column that tells how far the task is: rows are compared with those of about "
            "the same progress."
        ),
    ] = None,
    course: Annotated[
        bool,
        typer.Option(
            help="With --context and several runs, measure channels from what is usual at that "
            "progress."
        ),
    ] = True,
    drift: Annotated[
        Drift,
        typer.Option(
            help="Channels that drift in training: keep them, drop them, or follow them by a "
            "slow mean."
        ),
    ] = Drift.KEEP,
    label: Label = None,
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    false_alarms: Rate = 0.05,
    members: Members = "default",
    fusion: Annotated[
        str | None, typer.Option(help="Such as sum, median or lp; by default competence.")
    ] = None,
    report: Report = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn what is normal from runs of sensors, and write a model.

    A folder holds one run per file.
    """
    refuse_overwriting({"--out": out, "--report": report}, {"data": data})
    check_model(out, force)
    from ocfuse import streaming, tables  # noqa: PLC0415
    from ocfuse.cli import fit, model_card  # noqa: PLC0415

    model_card.check_report(report)
    detector = fit.make_detector(members, fusion, None, false_alarms, seed, threads)
    model = streaming.StreamTable(
        fit.make_stream(detector, windows, drift.value, course and context is not None),
        label=label,
        normal=normal or None,
        anomaly=anomaly or None,
        ignore=tuple(ignore or ()),
        id=id,
        time=time,
        group=group,
        context=context,
    )
    opened = partial(tables.open_source, data, delimiter, decimal=decimal)
    fit.tell(model, fit.learn(model, opened, out, report, quiet), json, quiet)
