"""The command `ocfuse`: one module for each command, and what commands share.

A command reads its arguments, calls the public methods of the library and prints the result.
It must not compute scores itself, and must not import `ocfuse.lab`: the commands `bench` and
`simulate` are found by name.
"""

import importlib.util
import sys

__all__ = [
    "main",
]


def main() -> None:
    """Run the command, or say which extra it needs."""
    for package in ("typer", "rich"):
        if importlib.util.find_spec(package) is None:
            line = importlib.import_module("ocfuse.system.packages").install_line("tool")
            sys.stderr.write(
                f"{package} is needed for the command ocfuse. Install it with: {line}\n"
            )
            raise SystemExit(2)
    try:
        app = importlib.import_module("ocfuse.cli.app")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app.run()
