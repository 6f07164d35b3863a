"""The command with its parts; errors become one line and an exit code, warnings a line."""

import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ocfuse import __version__
from ocfuse.cli.output import have_streams, in_words, print_line, warn
from ocfuse.cli.runtime import COMMANDS, ExitCode, Terminated
from ocfuse.exceptions import MissingPackageError, OcfuseError, OcfuseWarning
from ocfuse.system.packages import install_line


class LateGroup(TyperGroup):
    """A group that imports its commands only when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what the help needs of a command: its name and its help."""
        if cmd_name not in COMMANDS:
            return None
        return TyperGroup(name=cmd_name, help=COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called, imported."""
        if not args or args[0] not in COMMANDS:
            # what suggestions are taken from
            self.commands = {name: self.get_command(ctx, name) for name in COMMANDS}
            return super().resolve_command(ctx, args)
        module = importlib.import_module(COMMANDS[args[0]][0])
        return args[0], typer.main.get_command(module.app), args[1:]


app = typer.Typer(
    name="ocfuse",
    cls=LateGroup,
    help="Anomaly detection by fusing one-class classifiers.",
    epilog="Exit codes: 0 done, 1 anomalies found with --fail-on-anomaly or --fail-above, 2 wrong "
    "usage or a missing package, 3 data, model or file that cannot be used, 4 internal error, 130 "
    "stopped by Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def run(arguments: list[str] | None = None) -> None:
    """Run the command; errors become one line on stderr and an exit code, warnings a line."""
    have_streams()
    try:
        with _tidy_termination(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            if not sys.warnoptions:
                # what other packages warn of is not the user's business
                warnings.simplefilter("ignore")
                warnings.simplefilter("default", OcfuseWarning)
            app(arguments)
    except Exception as caught:
        if os.environ.get("OCFUSE_TRACEBACK"):
            raise
        message, code = _explained(caught)
        warn(message)
        raise SystemExit(int(code)) from None


@contextmanager
def _tidy_termination() -> Iterator[None]:
    """Let SIGTERM raise `Terminated` inside."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def terminate(number: int, frame: object) -> None:
        raise Terminated(int(ExitCode.TERMINATED))

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print_line(f"ocfuse {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


def _show_warning(message: Warning | str, *where: object, **more: object) -> None:
    warn(f"Warning: {in_words(message)}")


def _explained(error: Exception) -> tuple[str, ExitCode]:
    """Return the line and the exit code for an error."""
    package = str(getattr(error, "name", "")).split(".")[0]
    if isinstance(error, ModuleNotFoundError) and package != "ocfuse":
        is_of_service = package in ("fastapi", "prometheus_client", "starlette", "uvicorn")
        extra = "serve" if is_of_service else "tool"
        return (
            f"Error: {package} is needed for this command. Install it with: {install_line(extra)}",
            ExitCode.BAD_USAGE,
        )
    if isinstance(error, OcfuseError):
        is_missing = isinstance(error, MissingPackageError)
        code = ExitCode.BAD_USAGE if is_missing else ExitCode.BAD_DATA
        return f"Error: {in_words(error)}", code
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename is not None else ""
        return f"Error: {name}{error.strerror or error}", ExitCode.BAD_DATA
    if isinstance(error, MemoryError):
        message = "Error: not enough memory. Use fewer rows, or --members light."
        return message, ExitCode.BAD_DATA
    return (
        f"Internal error: {type(error).__name__}: {error}. "
        "Set OCFUSE_TRACEBACK=1 to see where, and please report it.",
        ExitCode.INTERNAL,
    )
