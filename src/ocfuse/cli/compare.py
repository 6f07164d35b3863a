"""`ocfuse compare`: every member, rule and fusion on the user's own labelled table."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    check_scores,
    refuse_overwriting,
)
from ocfuse.cli.output import collected, print_json, print_line, print_table, progress, warn_of
from ocfuse.system.progress import show_progress

if TYPE_CHECKING:
    import pandas as pd

    from ocfuse.compare import Comparison
    from ocfuse.tables import Schema, Source

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
    from ocfuse import compare, tables  # noqa: PLC0415
    from ocfuse.cli import fit  # noqa: PLC0415

    judge = partial(
        compare.compare,
        members=fit.to_members(members),
        false_alarm_rate=false_alarms,
        n_splits=splits,
        max_rows=max_rows,
        random_state=seed,
    )
    infer = partial(
        tables.Schema.infer,
        label=label,
        ignore=ignore or (),
        id=id,
        time=time,
        normal=normal or None,
        anomaly=anomaly or None,
        group=group,
    )
    opened = partial(tables.open_source, data, delimiter, decimal=decimal)
    run(judge, infer, opened, out, json=json, quiet=quiet)


def run(
    judge: "Callable[..., Comparison]",
    infer: "Callable[[pd.DataFrame], Schema]",
    opened: "Callable[[], Source]",
    out: Path | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Compare all systems on the rows of a table, and print how they did."""
    import numpy as np  # noqa: PLC0415

    from ocfuse.cli.streams import to_file  # noqa: PLC0415

    with collected() as notes, progress(quiet) as bar, show_progress(bar):
        frame = opened().read()
        schema = infer(frame)
        labels = np.asarray(schema.labels_of(frame))
        found = judge(schema.features_of(frame), labels, groups=schema.groups_of(frame))
    if out is not None:
        with to_file(out) as write:
            write(found.to_frame())
    _show(found, notes, json, quiet)
    if not quiet:
        warn_of(notes)


def _show(found: "Comparison", warnings: list[str], as_json: bool, quiet: bool) -> None:
    from ocfuse.report.words import count  # noqa: PLC0415

    summary = found.summary()
    if as_json:
        told = {"summary": summary, "notes": found.notes(), "records": found.records}
        print_json(told | {"warnings": warnings})
        return
    print_table(*found.table())
    failures = [row for row in summary if row["failed"]]
    for row in failures:
        print_line(f"{row['system']} failed in {count(row['failed'], 'split')}: {row['failure']}")
    if not quiet:
        print_line()
        for note in found.notes():
            print_line(f"- {note}")
