"""The command `ocfuse`."""

import importlib
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command, or say which extra it needs."""
    try:
        app = importlib.import_module("ocfuse.cli.app")
    except ModuleNotFoundError as error:
        package = str(error.name).split(".")[0]
        if package not in ("rich", "typer"):
            raise
        sys.stderr.write(
            f"{package} is needed for the command ocfuse. "
            "Install it with: pip install 'ocfuse[tool]'\n"
        )
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app.run()
