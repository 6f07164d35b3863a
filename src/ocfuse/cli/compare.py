"""`ocfuse compare`: every member, rule and fusion on the user's own labelled table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ocfuse.cli.options import (
    Anomaly,
    Columns,
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
    Seed,
    Threads,
    Time,
    check_rate,
    check_scores,
    refuse_overwriting,
    split_names,
)
from ocfuse.cli.output import at_work, print_json, print_line, print_table, warn_of

if TYPE_CHECKING:
    from ocfuse.compare import Comparison

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("compare")
def compare_command(
    data: Data,
    label: Annotated[
        str,
        typer.Option(help="Column with the labels: which rows are normal and which are anomalies."),
    ],
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    time: Time = None,
    group: Group = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    splits: Annotated[int, typer.Option(min=1, help="How many random splits to measure.")] = 10,
    false_alarms: Annotated[
        float,
        typer.Option(help="Share of normal rows that may raise an alarm.", callback=check_rate),
    ] = 0.05,
    members: Members = "default",
    max_rows: Annotated[
        int, typer.Option(min=100, help="Most normal rows, and most anomalies, in a split.")
    ] = 5000,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write the table to.", callback=check_scores),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Compare the default detector, its members, all rules and all fusions on your own data.

    The table needs a label column with some known anomalies. They are used to measure accuracy,
    never to learn. All systems have the same splits.
    """
    refuse_overwriting({"--out": out}, {"data": data})
    import numpy as np  # noqa: PLC0415

    from ocfuse import compare, tables  # noqa: PLC0415
    from ocfuse.cli import fit, score_files  # noqa: PLC0415

    pool = fit.to_members(members)
    with at_work(quiet) as notes:
        frame = tables.open_source(
            data, delimiter, decimal=decimal, columns=split_names(columns)
        ).read()
        schema = tables.Schema.infer(
            *(frame, label, ignore or (), id, time),
            normal=normal or None,
            anomaly=anomaly or None,
            group=group,
        )
        labels = np.asarray(schema.labels_of(frame))
        found = compare.compare(
            schema.features_of(frame),
            labels,
            groups=schema.groups_of(frame),
            members=pool,
            false_alarm_rate=false_alarms,
            n_splits=splits,
            max_rows=max_rows,
            random_state=seed,
        )
    if out is not None:
        with score_files.to_file(out) as write:
            write(found.to_frame())
    _show(found, notes, json, quiet)
    if not quiet:
        warn_of(notes)


def _show(found: "Comparison", warnings: list[str], as_json: bool, quiet: bool) -> None:
    from ocfuse.report.words import count  # noqa: PLC0415

    summary = found.summary()
    if as_json:
        known = {"summary": summary, "notes": found.notes(), "records": found.records}
        print_json(known | {"warnings": warnings})
        return
    print_table(*found.table())
    for row in summary:
        if row["failed"]:
            failed = f"{row['system']} failed in {count(row['failed'], 'split')}"
            print_line(f"{failed}: {row['failure']}")
    if not quiet:
        print_line()
        for note in found.notes():
            print_line(f"- {note}")
