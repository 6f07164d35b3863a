"""Options that several commands have. Nothing here takes long to import: the help needs it."""

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from threadpoolctl import threadpool_limits

from ocfuse.cli.config import use_config

#: Heading of these options in the help.
PANEL = "For every command"
#: Pools, which this module must not import.
POOL_NAMES = ("default", "large", "light", "wide", "paper", "paper-all")
#: What libraries ask for the number of their threads when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _be_quiet(ctx: typer.Context, is_asked: bool) -> bool:
    if is_asked:
        ctx.with_resource(warnings.catch_warnings())
        warnings.simplefilter("ignore")
    return is_asked


def _limit_threads(ctx: typer.Context, threads: int | None) -> int | None:
    if threads is not None:
        ctx.with_resource(_limited(threads))
    return threads


@contextmanager
def _limited(threads: int) -> Iterator[None]:
    """Limit the libraries that are loaded, and those that will be."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def check_rate(rate: float | None) -> float | None:
    """Refuse what is no share of rows."""
    if rate is not None and not 0 < rate < 1:
        raise typer.BadParameter(f"must be between 0 and 1. Got {rate:g}. Use 0.01 for 1 %.")
    return rate


def _check_threshold(threshold: float | None) -> float | None:
    if threshold is not None and not math.isfinite(threshold):
        raise typer.BadParameter(f"must be a finite number. Got {threshold}.")
    return threshold


def _to_delimiter(given: str | None) -> str | None:
    """Return one character; a tab is hard to type."""
    delimiter = "\t" if given in ("\\t", "tab") else given
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter(f"must be one character, or tab. Got {given!r}.")
    return delimiter


def _check_decimal(decimal: str | None) -> str | None:
    if decimal not in (None, ".", ","):
        raise typer.BadParameter(f"must be . or ,. Got {decimal!r}.")
    return decimal


Model = Annotated[Path, typer.Argument(help="Model that `ocfuse fit` wrote.", show_default=False)]
Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Parquet, Feather, NPY, NPZ file, a folder of them, or - for CSV on stdin.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")]
#: Where `fit` writes unless somebody says otherwise.
DEFAULT_MODEL = Path("model.ocf")
Force = Annotated[bool, typer.Option("--force/--no-force", help="Replace an existing model.")]
Label = Annotated[str | None, typer.Option(help="Column that tells normal from not.")]
Normal = Annotated[
    list[str] | None,
    typer.Option(help="Value of the label column that means normal; may be repeated."),
]
Anomaly = Annotated[
    list[str] | None,
    typer.Option(
        help="Value of the label column that means an anomaly; empty cells are unknown; may be "
        "repeated."
    ),
]
Ignore = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Id = Annotated[str | None, typer.Option(help="Column that names the rows.")]
Time = Annotated[str | None, typer.Option(help="Column with the time of the rows.")]
Group = Annotated[
    str | None,
    typer.Option(
        help="Column that names the run or part of the rows; those of one are held out together."
    ),
]
Category = Annotated[
    list[str] | None,
    typer.Option(help="Column that holds categories, such as codes; may be repeated."),
]
Scale = Annotated[
    Literal["standard", "robust", "none"],
    typer.Option(help="How columns are scaled; none for columns of one unit, such as pixels."),
]
Gaps = Annotated[
    Literal["judge", "refuse", "alarm"] | None,
    typer.Option(
        help="What a gap means that training had not: judge the row by its other columns, "
        "refuse it, or raise an alarm; judge, or what fit was told.",
    ),
]
#: How `fit` and `compare` are told the rate; commands that have a model may leave it to that.
Rate = Annotated[
    float,
    typer.Option(help="Share of normal rows that may raise an alarm.", callback=check_rate),
]
Members = Annotated[
    str,
    typer.Option(
        help=f"Pool ({', '.join(POOL_NAMES)}), or members of the pools such as knn-5,lof-30."
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates the values of text files; found out by default.",
        callback=_to_delimiter,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="What separates the decimals in text files, . or comma; found out by default.",
        callback=_check_decimal,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Scores below it are anomalies; by default the model's.", callback=_check_threshold
    ),
]
FalseAlarms = Annotated[
    float | None,
    typer.Option(
        help="Share of normal rows that may raise an alarm; by default the model's.",
        callback=check_rate,
    ),
]
FailOnAnomaly = Annotated[
    bool,
    typer.Option(
        "--fail-on-anomaly/--no-fail-on-anomaly",
        help="Exit code 1 if there are anomalies, or rows that cannot be scored.",
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        help="Exit code 1 if more than this share of the rows are anomalies, or cannot be scored, "
        "such as 0.05.",
        callback=check_rate,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(help="Write a report on the rows, .html or .pdf; they are then held in memory."),
]
#: How the commands that know many machines are told about them.
MACHINES = "On many machines"
Engine = Annotated[
    str | None,
    typer.Option(
        help="dask: the data are a folder of Parquet files, and the work is shared out.",
        rich_help_panel=MACHINES,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786; else processes are started "
        "on this machine.",
        rich_help_panel=MACHINES,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many processes to start; by default one per core.",
        rich_help_panel=MACHINES,
    ),
]
Json = Annotated[bool, typer.Option("--json/--no-json", help="Print JSON.", rich_help_panel=PANEL)]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet/--no-quiet",
        "-q",
        help="Print results and errors only.",
        callback=_be_quiet,
        rich_help_panel=PANEL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Most threads to use; results do not depend on it.",
        callback=_limit_threads,
        rich_help_panel=PANEL,
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Seed of all that is left to chance.", rich_help_panel=PANEL)
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with a table per command, whose keys are named as flags; flags win. "
        "By default ocfuse.toml in this folder, if there is one.",
        callback=use_config,
        is_eager=True,
        rich_help_panel=PANEL,
    ),
]
