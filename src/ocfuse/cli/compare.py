"""`ocfuse compare`: every member, rule and fusion on the user's own labelled table."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.options import (
    Anomaly,
    Config,
    Data,
    Decimal,
    Delimiter,
    Group,
    Id,
    Ignore,
    Json,
    Members,
    Normal,
    Quiet,
    Rate,
    Seed,
    Threads,
    Time,
)
from ocfuse.cli.targets import check_scores, refuse_overwriting

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("compare")
def compare_command(
    data: Data,
    label: Annotated[str, typer.Option(help="Column that tells normal from not.")],
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    time: Time = None,
    group: Group = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    splits: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 10,
    false_alarms: Rate = 0.05,
    members: Members = "default",
    max_rows: Annotated[
        int, typer.Option(min=100, help="Most normals, and most anomalies, of a split.")
    ] = 5000,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the table to a file.", callback=check_scores),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Compare the default detector, its members, all rules and all fusions on your own data.

    The table needs a label column with some known anomalies. Nobody learns from them: they
    only judge. All systems have the same splits.
    """
    refuse_overwriting({"--out": out}, {"data": data})
    from ocfuse.cli import comparing  # noqa: PLC0415

    judge = partial(
        comparing.compare,
        members=comparing.to_members(members),
        false_alarm_rate=false_alarms,
        n_splits=splits,
        max_rows=max_rows,
        random_state=seed,
    )
    infer = partial(
        comparing.Schema.infer,
        label=label,
        ignore=ignore or (),
        id=id,
        time=time,
        normal=normal or None,
        anomaly=anomaly or None,
        group=group,
    )
    opened = partial(comparing.open_source, data, delimiter, decimal=decimal)
    comparing.run(judge, infer, opened, out, json=json, quiet=quiet)
