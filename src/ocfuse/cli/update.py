"""`ocfuse update`: more normal rows for a model."""

from time import perf_counter
from typing import Annotated, Any

import typer

from ocfuse.cli.early import import_early
from ocfuse.cli.options import (
    Columns,
    Config,
    Data,
    Decimal,
    Delimiter,
    Force,
    Json,
    Keep,
    Model,
    Out,
    Quiet,
    Threads,
    check_model,
    refuse_overwriting,
    split_names,
)
from ocfuse.cli.output import collected, print_fields, print_json, warn_of

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("update")
def update_command(
    model: Model,
    data: Data,
    out: Out,
    memory: Annotated[
        int | None,
        typer.Option(
            min=100,
            help="Most training rows that the model keeps; the oldest ones are forgotten. By "
            "default all are kept.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    keep: Keep = 3,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Learn more normal rows without a new fit, and write a new model.

    The rows must be normal, or mostly so; rows far outside are left out. The threshold is set
    again. The encoding of columns and the trust in members stay as ocfuse fit learned them. A
    warning says when the rows have changed so much that a new fit is needed. With --force, the new
    model may replace the old file.
    """
    check_model(out, force)
    refuse_overwriting({"--out": out}, {"data": data})
    import_early("ocfuse.cli.model_card", "ocfuse.tables")
    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.cli.model_card import facts, load_model, update_fields  # noqa: PLC0415
    from ocfuse.persistence import keep_former  # noqa: PLC0415

    detector = load_model(model)
    before = facts(detector)
    with collected() as notes:
        source = tables.open_source(data, delimiter, decimal=decimal, columns=split_names(columns))
        frame = source.read()
        start = perf_counter()
        detector.update(frame, memory=memory)
        seconds = perf_counter() - start
    keep_former(out, keep)
    detector.save(out)
    after = facts(detector)
    updates = after["card"]["updates"]
    done: dict[str, Any] = {
        "file": str(out),
        "seconds": round(seconds, 3),
        "updates": updates,
        "rows_learned": {"before": before["rows_learned"], "after": after["rows_learned"]},
        "threshold": {"before": before["threshold"], "after": after["threshold"]},
        "warnings": notes,
    }
    if json:
        print_json(done)
    elif not quiet:
        learned = f"{before['rows_learned']:,} before, {after['rows_learned']:,} now"
        moved = f"{before['threshold']:.4g} before, {after['threshold']:.4g} now"
        print_fields(
            [
                *update_fields(updates),
                ("rows learned", learned),
                ("threshold", moved),
                ("written", f"{out}, after {seconds:.2g} s of learning"),
            ]
        )
    if not quiet:
        warn_of(notes)
