"""Settings from a TOML file: a table per command, with keys that are named as its flags.

Keys at the top of the file hold for every command that has such a flag. Flags win. The file is
the one that ``--config`` names, or ocfuse.toml in the working folder.
"""

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from ocfuse.cli.commands import COMMANDS, GROUPS, STREAM, VIDEO
from ocfuse.exceptions import MissingPackageError, did_you_mean

#: Read if it is there.
DEFAULT_FILE = Path("ocfuse.toml")
#: Flags that may stand at the top of the file.
SHARED = ("json", "quiet", "seed", "threads")
#: Commands that may have a table.
TABLES = (
    *(name for name in COMMANDS if name not in GROUPS),
    *(f"{name}-video" for name in VIDEO),
    *(f"{name}-stream" for name in STREAM),
)


def use_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Let a file say what flags do not; the callback of ``--config``."""
    if path is None and DEFAULT_FILE.is_file():
        path = DEFAULT_FILE
    if path is not None:
        flags = {_flag(param): param for param in ctx.command.params if _flag(param)}
        ctx.default_map = _defaults(read(path), str(ctx.command.name), flags)
    return path


def read(path: Path) -> dict[str, Any]:
    """Return what a TOML file says."""
    try:
        toml = importlib.import_module("tomllib")
    except ImportError:
        raise MissingPackageError(
            f"{path} needs Python 3.11 or later, which can read TOML. Give the settings as flags."
        ) from None
    try:
        settings: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}.") from None
    return settings


def _defaults(settings: dict[str, Any], command: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for one command by the names of its parameters."""
    own = settings.pop(command, {})
    shared = {key: value for key, value in settings.items() if key in SHARED}
    _refuse_unknown(settings, (*TABLES, *SHARED), "the file")
    if not isinstance(own, dict):
        raise typer.BadParameter(f"{command} must be a table. Write [{command}] above its keys.")
    _refuse_unknown(own, flags, f"[{command}]")
    given = {key: value for key, value in shared.items() if key in flags} | own
    return {flags[key].name: _value(key, given[key], flags[key]) for key in given}


def _refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    names = list(known)
    for key in given:
        if key not in names:
            hint = did_you_mean(key, names) or f"Known are {', '.join(names)}."
            raise typer.BadParameter(f"unknown key {key!r} in {where}. {hint}")


def _value(key: str, value: Any, param: Any) -> Any:
    """Return a value as the flag would give it; a single one is a list of one."""
    if isinstance(value, dict) or (isinstance(value, list) and not param.multiple):
        raise typer.BadParameter(f"{key} must be a single value. Got {value!r}.")
    if isinstance(value, bool) != param.is_flag:
        kind = "true or false" if param.is_flag else "a value, not true or false"
        raise typer.BadParameter(f"{key} must be {kind}. Got {value!r}.")
    if param.multiple:
        return value if isinstance(value, list) else [value]
    return value


def _flag(param: Any) -> str:
    """Return "false-alarms" for the option ``--false-alarms``; empty for what is no setting."""
    if param.param_type_name != "option" or param.name in ("config", "help"):
        return ""
    return str(max(param.opts, key=len)).lstrip("-")
