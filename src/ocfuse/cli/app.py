"""The command with its parts; errors become one line and an exit code, warnings a line."""

import importlib
import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ocfuse import __version__
from ocfuse.cli.output import have_streams, in_words, print_line, warn
from ocfuse.cli.runtime import COMMANDS, ExitCode, tidy_termination
from ocfuse.exceptions import MissingPackageError, OcfuseError, OcfuseWarning

#: If set, errors come with their traceback.
TRACEBACK_VARIABLE = "OCFUSE_TRACEBACK"
#: Extras that bring packages, where it is not the one of the command line itself.
EXTRAS = dict.fromkeys(("fastapi", "prometheus_client", "starlette", "uvicorn"), "serve")

EPILOG = (
    "Exit codes: 0 fine, 1 anomalies found with --fail-on-anomaly or --fail-above, 2 wrong usage "
    "or a missing package, 3 data, model or file that cannot be used, 4 internal error, 130 "
    "stopped by Ctrl-C."
)


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
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def run(arguments: list[str] | None = None) -> None:
    """Run the command; errors become one line on stderr and an exit code, warnings a line."""
    have_streams()
    try:
        with tidy_termination(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            if not sys.warnoptions:
                # what other packages warn of is not the user's business
                warnings.simplefilter("ignore")
                warnings.simplefilter("default", OcfuseWarning)
            app(arguments)
    except Exception as caught:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        error = _understood(caught)
        warn(_message(error))
        raise SystemExit(int(_code(error))) from None


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


def _understood(error: Exception) -> Exception:
    """Return what is the matter; a package that is not there is what an extra brings."""
    package = str(getattr(error, "name", "")).split(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package == "ocfuse":
        return error
    extra = EXTRAS.get(package, "tool")
    return MissingPackageError(
        f"{package} is needed for this command. Install it with: pip install 'ocfuse[{extra}]'"
    )


def _message(error: Exception) -> str:
    if isinstance(error, OcfuseError):
        return f"Error: {in_words(error)}"
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename is not None else ""
        return f"Error: {name}{error.strerror or error}"
    if isinstance(error, MemoryError):
        return "Error: not enough memory. Use fewer rows, or --members light."
    return (
        f"Internal error: {type(error).__name__}: {error}. "
        f"Set {TRACEBACK_VARIABLE}=1 to see where, and please report it."
    )


def _code(error: Exception) -> ExitCode:
    if isinstance(error, MissingPackageError):
        return ExitCode.BAD_USAGE
    is_theirs = isinstance(error, OcfuseError | OSError | MemoryError)
    return ExitCode.BAD_DATA if is_theirs else ExitCode.INTERNAL
