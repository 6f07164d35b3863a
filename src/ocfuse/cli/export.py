"""`ocfuse export`: a model as an ONNX file, which runs without Python."""

from typing import Annotated, Any

import typer

from ocfuse.cli.early import import_early
from ocfuse.cli.options import (
    Config,
    Force,
    Json,
    Model,
    Out,
    Quiet,
    check_model,
    refuse_overwriting,
)
from ocfuse.cli.output import print_fields, print_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("export")
def export_command(
    model: Model,
    out: Out,
    force: Force = False,
    single: Annotated[
        bool,
        typer.Option(
            "--single/--double",
            help="Precision of the numbers that the file takes: single is for callers that have "
            "no double precision.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Write a model as an ONNX file, to run it in other languages, on devices or in web pages.

    The file computes score, label and p-value from the cells of a row. Models of streams and of
    pictures, and models with members of other packages, cannot be exported.
    """
    check_model(out, force)
    refuse_overwriting({"--out": out}, {"model": model})
    import_early("ocfuse.cli.model_card", "ocfuse.tables")
    from ocfuse.onnx.export import columns_of, to_onnx  # noqa: PLC0415
    from ocfuse.persistence import load  # noqa: PLC0415
    from ocfuse.system.files import write_atomically  # noqa: PLC0415

    detector = load(model)
    content = to_onnx(detector, single=single)
    write_atomically(out, content)
    columns = columns_of(detector)
    has_text = any(column.is_text for column in columns)
    done: dict[str, Any] = {
        "file": str(out),
        "bytes": len(content),
        "inputs": [column.name for column in columns] if has_text else ["X"],
        "columns": [{"name": c.name, "kind": c.kind, "is_text": c.is_text} for c in columns],
        "outputs": ["score", "label", "p_value", "threshold"],
    }
    if json:
        print_json(done)
    elif not quiet:
        names = ", ".join(column.name for column in columns)
        each = "one input of shape (rows, 1) for each column, by its name"
        print_fields(
            [
                ("written", f"{out}, {len(content):,} bytes"),
                ("inputs", each if has_text else f"X of shape (rows, {len(columns)})"),
                ("columns", names),
                ("text", ", ".join(column.name for column in columns if column.is_text)),
                ("outputs", "score, label (+1 normal, -1 anomaly), p_value, threshold"),
            ]
        )
