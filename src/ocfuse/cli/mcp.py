"""`ocfuse mcp`: tools for assistants, by the Model Context Protocol."""

from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.options import Config
from ocfuse.system.packages import needed

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("mcp")
def mcp_command(
    allow: Annotated[
        list[Path],
        typer.Option(
            help="Folder whose files may be read, and in which new ones may be written; may be "
            "repeated."
        ),
    ],
    config: Config = None,
) -> None:
    """Let an assistant inspect, plan, fit, score, explain, compare and report on files.

    Answers on stdin and stdout, as programs do that an assistant starts. Files outside the folders
    are neither read nor written, and none is replaced.
    """
    needed("mcp.server.mcpserver", "to serve assistants", "mcp")
    from ocfuse.mcp import make_server  # noqa: PLC0415

    make_server(allow).run("stdio")
