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
            help="Folder in which files may be read and new ones written; may be repeated."
        ),
    ],
    config: Config = None,
) -> None:
    """Serve tools to an assistant (MCP): inspect, plan, fit, score, explain, compare, report.

    It talks to the assistant that started it on stdin and stdout. Files outside the folders of
    --allow are neither read nor written, and no file is replaced.
    """
    needed("mcp.server.mcpserver", "to serve assistants", "mcp")
    from ocfuse.mcp import make_server  # noqa: PLC0415

    make_server(allow).run("stdio")
