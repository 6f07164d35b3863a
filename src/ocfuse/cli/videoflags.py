"""Flags that `ocfuse fit --video` and `ocfuse watch --video` share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ocfuse.cli.output import print_line

#: Formats of annotated videos, by the endings of their names.
VIDEO_FORMATS = {".mp4": "mp4", ".mkv": "matroska", ".avi": "avi", ".mov": "mov"}
#: Frames in a row below the threshold that raise an event: a tenth of a second.
MIN_FRAMES = 3


def help_or_value(ctx: typer.Context, given: Any) -> Any:
    """Show the help for ``--video --help``, which would take the second as a value."""
    if "--help" in (given if isinstance(given, list) else [given]):
        print_line(ctx.get_help())
        raise typer.Exit
    return given


def check_rate(rate: float | None) -> float | None:
    """Refuse what is no share of frames."""
    if rate is not None and not 0 < rate < 1:
        raise typer.BadParameter(f"must be between 0 and 1. Got {rate:g}. Use 0.01 for 1 %.")
    return rate


def check_video(path: Path | None) -> Path | None:
    """Refuse a video that could not be written in the end."""
    if path is None:
        return None
    if path.suffix.lower() not in VIDEO_FORMATS:
        raise typer.BadParameter(
            f"The name tells the format: {', '.join(VIDEO_FORMATS)}. Got {path.name}."
        )
    return check_place(path)


def check_place(path: Path | None) -> Path | None:
    """Refuse a file whose folder is not there."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise typer.BadParameter(f"{path} is a folder, or its folder is not there. Create it.")
    return path


def check_folder(path: Path | None) -> Path | None:
    """Refuse what is a file."""
    if path is not None and path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path} is a file. Give the name of a folder.")
    return path


Topic = Annotated[
    str | None,
    typer.Option(help="Topic of a bag, if several have pictures; array of an .npz file."),
]
