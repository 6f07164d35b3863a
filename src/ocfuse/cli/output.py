"""How commands speak: tables and JSON to stdout, everything else to stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

#: Columns of a table that goes to a file or another program: nothing is cut off.
PIPE_WIDTH = 240


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; a column of integers is aligned to the right."""
    cells = [list(row) for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for j, name in enumerate(header):
        is_number = all(isinstance(row[j], int) for row in cells)
        table.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    for row in cells:
        table.add_row(*("" if value is None else str(value) for value in row))
    _console().print(table, markup=False, highlight=False)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one per line; empty values are left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in fields:
        if value not in (None, ""):
            table.add_row(name, str(value))
    _console().print(table, markup=False, highlight=False)


def print_line(text: str = "") -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """Print a value, perhaps with data classes in it, as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n")


def warn(text: str) -> None:
    """Print a line to stderr."""
    sys.stderr.write(text + "\n")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _console() -> Console:
    # made anew for each use: stdout may have been redirected since
    console = Console(file=sys.stdout)
    return console if console.is_terminal else Console(file=sys.stdout, width=PIPE_WIDTH)
