"""The command with its groups; errors become one line and an exit code, warnings a line."""

import importlib
import os
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ocfuse import __version__
from ocfuse.cli import data
from ocfuse.cli.codes import ExitCode
from ocfuse.cli.output import print_line, warn
from ocfuse.exceptions import MissingPackageError, OcfuseError

#: If set, errors come with their traceback.
TRACEBACK_VARIABLE = "OCFUSE_TRACEBACK"

#: Groups that need scikit-learn, which takes long to import: their modules, and what help says.
LATE = {"bench": ("ocfuse.cli.bench", "Run the paper's experiment again.")}


class LateGroup(TyperGroup):
    """A group that imports some of its groups only when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name all commands."""
        return [*super().list_commands(ctx), *LATE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; for the help, a late one is only a name with its help."""
        if cmd_name not in LATE:
            return super().get_command(ctx, cmd_name)
        return TyperGroup(name=cmd_name, help=LATE[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called, imported if it is late."""
        if not args or args[0] not in LATE:
            return super().resolve_command(ctx, args)
        module = importlib.import_module(LATE[args[0]][0])
        return args[0], typer.main.get_command(module.app), args[1:]


app = typer.Typer(
    name="ocfuse",
    cls=LateGroup,
    help="Anomaly detection by fusing one-class classifiers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")


def run(arguments: list[str] | None = None) -> None:
    """Run the command; errors become one line on stderr and an exit code, warnings a line."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app(arguments)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
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
    warn(f"Warning: {message}")


def _message(error: Exception) -> str:
    if isinstance(error, OcfuseError):
        return f"Error: {error}"
    return (
        f"Internal error: {type(error).__name__}: {error}. "
        f"Set {TRACEBACK_VARIABLE}=1 to see where, and please report it."
    )


def _code(error: Exception) -> ExitCode:
    if isinstance(error, MissingPackageError):
        return ExitCode.BAD_USAGE
    return ExitCode.BAD_DATA if isinstance(error, OcfuseError) else ExitCode.INTERNAL
