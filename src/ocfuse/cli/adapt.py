"""`ocfuse adapt`: trust from unlabelled rows."""

from typing import Any

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
    Model,
    Out,
    Quiet,
    Threads,
    check_model,
    refuse_overwriting,
    split_names,
)
from ocfuse.cli.output import collected, print_fields, print_json, print_line, print_table, warn_of

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("adapt")
def adapt_command(
    model: Model,
    data: Data,
    out: Out,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Learn from unlabelled rows which members to trust, and write a new model.

    The rows should come from the process as it is: mostly normal, with unmarked anomalies. Members
    that find more of these are trusted more. The threshold is set again.
    """
    check_model(out, force)
    refuse_overwriting({"--out": out}, {"model": model, "data": data})
    import_early("ocfuse.cli.model_card", "ocfuse.tables")
    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.cli.model_card import adaptation, facts, load_model  # noqa: PLC0415

    detector = load_model(model)
    before = facts(detector)
    with collected() as notes:
        detector.adapt(
            tables.open_source(
                data, delimiter, decimal=decimal, columns=split_names(columns)
            ).read()
        )
    detector.save(out)
    after = facts(detector)
    weights = {one["member"]: one["weight"] for one in before["trust"]}
    done: dict[str, Any] = {
        "file": str(out),
        "adapted": after["adapted"],
        "threshold": {"before": before["threshold"], "after": after["threshold"]},
        "trust": [one | {"weight_before": weights[one["member"]]} for one in after["trust"]],
        "warnings": notes,
    }
    if json:
        print_json(done)
    elif not quiet:
        rows = [
            (one["member"], f"{one['weight_before']:.3f}", f"{one['weight']:.3f}", one["reason"])
            for one in done["trust"]
        ]
        print_table(("member", "trust before", "after", "why"), rows)
        print_line()
        moved = f"{before['threshold']:.4g} before, {after['threshold']:.4g} now"
        print_fields(
            [("adapted", adaptation(after["adapted"])), ("threshold", moved), ("written", out)]
        )
    if not quiet:
        warn_of(notes)
