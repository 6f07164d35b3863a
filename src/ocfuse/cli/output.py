"""Output of commands: tables and JSON to stdout, everything else to stderr.

Errors and warnings of the library name parameters as Python has them, ``decimal=','``. Commands
print them as flags: ``--decimal ','``.
"""

import io
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

import typer

from ocfuse.cli.runtime import ExitCode
from ocfuse.exceptions import CellsWarning, OcfuseWarning, RowsWarning
from ocfuse.system.packages import slow
from ocfuse.system.progress import Progress, ProgressBar, show_progress, silent

#: What is counted in a stream, in words.
COUNTED = {
    "repeated": "with the time of the row before",
    "late": "earlier than the row before",
    "clock": "left out, as their time was not believed",
    "new_clock": "after which another clock was taken",
    "gap": "after a gap in time",
    "missing": "with channels missing",
    "empty": "with most channels empty",
    "unreadable": "with cells that are no numbers",
    "context": "without a context",
    "state": "in a state that training did not have",
    "refused": "that could not be read",
}
#: What moves a cursor, hides text or turns it around; and halves of letters, which none can write.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

#: Settings that are flags of the same name.
SAME = (
    *("anomaly", "context", "decimal", "delimiter", "drift", "fusion", "gaps", "group", "id"),
    *("by", "category", "ignore", "label", "members", "normal", "number", "scale", "season"),
    *("time", "tune", "zone"),
)
#: Settings that are flags of another name; these words mean nothing else.
OTHER = {"false_alarm_rate": "--false-alarms", "n_jobs": "--threads", "random_state": "--seed"}
#: Words for those who come with arrays, and those for the command line.
PHRASES = {
    "FusedDetector.save wrote": "`ocfuse fit` wrote",
    'Give tune=Search(grid={"eta": [...]}) with what it has, or tune=None.': (
        "Use another --fusion, or leave --tune out."
    ),
    "give fit a context, such as its progress, and at least 2 runs.": (
        "give its progress by --context, and at least 2 runs, or say --no-course."
    ),
    "direction must name": "--high and --low must name",
    "direction names": "--high or --low names",
    "Got direction=": "Got ",
    "limits must name": "--above and --below must name",
    "limits names": "--above or --below names",
    "Got limits=": "Got ",
    "encoder=FeatureEncoder(categories=[...])": "--category COLUMN",
    "calibrate without groups": "leave --group out",
    " runs or more, or calibrate on fresh ones.": " runs or more.",
    "such as (10, 30)": "such as 10,30",
    "with y = +1": "in a label column (--label)",
    "with y = -1": "in a label column (--label)",
    "keep_going=True": "--keep-going",
    " (copied_rows_)": "",
    " (trimmed_rows_)": "",
    "allow a longer timeout": "allow more by --timeout",
    "of every run, or of none": "of every run; or use --no-progress",
    "Give groups: the run, part or batch of each picture.": (
        "If these are frames of one run, say --frames; pictures of one part or run belong in a "
        "folder of their own, inside one folder."
    ),
}


def have_streams() -> None:
    """Open the standard streams that whoever started the program has closed.

    Otherwise the next file that is opened takes the place of one, and is written into. What
    goes to a closed stdout is an error, as of other programs; of a closed stderr nobody asks.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free
    # without a buffer: what is left in one would fail again when Python ends
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)


def printable(text: str) -> str:
    """Return text whose control characters, but line feed and tab, are written out in letters.

    Names and values come from files of strangers, and a terminal obeys what it is sent.
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; a column of integers is aligned to the right."""
    cells = [list(row) for row in rows]
    table = slow("rich.table").Table(box=None, pad_edge=False, header_style="bold")
    for j, name in enumerate(map(_on_one_line, header)):
        is_number = all(isinstance(row[j], int) for row in cells)
        # of a table that is too wide, only the last column is broken: nothing is cut off
        is_last = j == len(header) - 1
        width = max(len(name), *(len(_cell(row[j])) for row in cells)) if cells else len(name)
        table.add_column(
            name,
            justify="right" if is_number else "left",
            no_wrap=not is_last,
            overflow="fold",
            min_width=None if is_last else width,
        )
    for row in cells:
        table.add_row(*map(_cell, row))
    _print_rich(table)


def _cell(value: object) -> str:
    return "" if value is None else _on_one_line(str(value))


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one per line; empty values are left out."""
    table = slow("rich.table").Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in fields:
        if value not in (None, ""):
            table.add_row(_on_one_line(name), printable(str(value)))
    _print_rich(table)


def print_line(text: str = "") -> None:
    """Print a line."""
    print_at_once(printable(text) + "\n")


def print_json(value: Any) -> None:
    """Print a value, perhaps with data classes in it, as JSON."""
    print_at_once(json.dumps(_plain(value), indent=2, ensure_ascii=False, default=str) + "\n")


def json_line(value: Any) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(_plain(value), ensure_ascii=False, default=str) + "\n"


def print_at_once(text: str) -> None:
    """Print text, flushed, as it is unless a terminal reads it; end quietly if nobody does."""
    _write(printable(text) if sys.stdout.isatty() else text)


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # what is left in the buffer must not fail again when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.BROKEN_PIPE) from None


def warn(text: str) -> None:
    """Print a line to stderr."""
    sys.stderr.write(printable(text) + "\n")


def warn_of(notes: Sequence[str], most: int = 10) -> None:
    """Print warnings, not more than somebody will read: every file of a folder may have its own."""
    for note in notes[:most]:
        warn(f"Warning: {note}")
    if len(notes) > most:
        warn(f"... and {len(notes) - most} more warnings")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Yield what shows progress: a bar if somebody sits at the terminal."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    bar = ProgressBar()
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def at_work(quiet: bool) -> Iterator[list[str]]:
    """Show the progress of what is done inside; yield its warnings as `collected` does."""
    with collected() as notes, progress(quiet) as bar, show_progress(bar):
        yield notes


@contextmanager
def collected() -> Iterator[list[str]]:
    """Yield a list that holds our warnings once it is left, each once and on one line."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OcfuseWarning)
        yield notes
    notes.extend(in_words(message) for message in _added_up([w.message for w in caught]))


def _added_up(messages: Sequence[Warning | str]) -> list[Warning | str]:
    """Return each message once; what was odd about rows of several chunks counts them all."""
    found: dict[str, Warning | str] = {}
    tables = [message for message in messages if isinstance(message, CellsWarning)]
    if tables:
        found[""] = CellsWarning.added_up(tables)
    for message in messages:
        if isinstance(message, CellsWarning):
            continue
        if not isinstance(message, RowsWarning):
            found.setdefault(str(message), message)
            continue
        before = found.get(message.what)
        if isinstance(before, RowsWarning):
            message = RowsWarning(message.what, before.n_rows + message.n_rows, before.first)
        found[message.what] = message
    return list(found.values())


def in_words(message: object) -> str:
    """Return an error or a warning on one line, in the words of the command line.

    Only a table of cells keeps its lines.
    """
    if isinstance(message, CellsWarning):
        return in_flags(str(message))
    return in_flags(" ".join(str(message).split()))


def _plain(value: Any) -> Any:
    """Return a value without NaN, arrays, dates and bytes, which JSON does not know."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:  # most of them
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if type(value).__name__ in ("NaTType", "NAType"):  # gaps of pandas, which is not imported here
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist())
    return value


def _print_rich(table: Any) -> None:
    # not by the console itself, which takes a closed pipe for an error
    console = _console()
    with console.capture() as shown:
        console.print(table, markup=False, highlight=False)
    _write(shown.get())


def _console() -> Any:
    # made anew for each use: stdout may have been redirected since
    make = slow("rich.console").Console
    console = make(file=sys.stdout)
    # of what goes to a file or another program nothing is cut off
    return console if console.is_terminal else make(file=sys.stdout, width=240)


def in_flags(text: str) -> str:
    """Return a message with flags in place of settings of Python."""
    for words, other in PHRASES.items():
        text = text.replace(words, other)
    flags = {name: f"--{name}" for name in SAME} | OTHER
    roles = flags | {"direction": "--high or --low", "limits": "--above or --below"}
    text = re.sub(
        rf"cannot be both ({'|'.join(roles)}) and ({'|'.join(roles)})\b",
        lambda found: f"cannot be in {roles[found[1]]} and in {roles[found[2]]}",
        text,
    )
    several = rf"(?<![\w.'\"-])({'|'.join(flags)})=\[('[^\]]*')\]"
    joined = "', '"
    text = re.sub(several, lambda f: f"{flags[f[1]]} {f[2][1:-1].replace(joined, ',')}", text)
    setting = rf"(?<![\w.'\"-])({'|'.join(flags)})=(?=['\"\d])"
    # a word that is advised needs no quotes; one that was given keeps those of its repr
    text = re.sub(rf'{setting}"(\w+)"', lambda found: f"{flags[found[1]]} {found[2]}", text)
    text = re.sub(setting, lambda found: f"{flags[found[1]]} ", text)
    return re.sub(rf"(?<![\w.'\"-])({'|'.join(OTHER)})\b", lambda found: OTHER[found[1]], text)


def oddities(counts: dict[str, int]) -> list[str]:
    """Return what was odd about the rows of a stream, such as "2 after a gap in time"."""
    return [f"{counts[name]:,} {words}" for name, words in COUNTED.items() if counts.get(name)]
