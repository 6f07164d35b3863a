"""The work of `ocfuse compare`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ocfuse.bench.comparison import Comparison, compare
from ocfuse.cli.fitting import to_members
from ocfuse.cli.output import collected, print_json, print_line, print_table, progress, warn_of
from ocfuse.cli.sinks import to_file
from ocfuse.progress import show_progress
from ocfuse.report.words import count
from ocfuse.tables import Schema, Source, open_source

__all__ = ["Schema", "compare", "open_source", "run", "to_members"]


def run(
    judge: Callable[..., Comparison],
    infer: Callable[[pd.DataFrame], Schema],
    opened: Callable[[], Source],
    out: Path | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Compare all systems on the rows of a table, and print how they did."""
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


def _show(found: Comparison, warnings: list[str], as_json: bool, quiet: bool) -> None:
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
