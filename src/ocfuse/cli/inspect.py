"""`ocfuse inspect`: the card of a model."""

import typer

from ocfuse.cli.early import import_sklearn
from ocfuse.cli.options import Config, Json, Model, Quiet

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("inspect")
def inspect_command(
    model: Model, json: Json = False, quiet: Quiet = False, config: Config = None
) -> None:
    """Show what a model is and what it learned from."""
    import_sklearn()
    from ocfuse.cli.inspecting import show_model  # noqa: PLC0415

    show_model(model, json=json)
