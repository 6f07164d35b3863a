"""Options that several commands have, the config file, and checks of file names.

Nothing here takes long to import: the help needs it.

The config file is TOML: a table per command, with keys that are named as its flags; one of its
own for each kind of data that a flag of the command chooses, such as fit-stream and fit-video.
Keys at the top hold for every command that has such a flag. Flags win. The file is the one that
``--config`` names, or ocfuse.toml in the working folder.
"""

import csv
import importlib
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from threadpoolctl import threadpool_limits

from ocfuse.cli.kinds import Heading, is_for, longest_flag, table_name
from ocfuse.cli.output import print_line
from ocfuse.cli.runtime import COMMANDS
from ocfuse.exceptions import MissingPackageError, did_you_mean

if TYPE_CHECKING:
    from ocfuse.notify import Route

#: Pools, which this module must not import.
POOL_NAMES = ("default", "large", "light", "wide", "paper", "paper-all")

Model = Annotated[
    Path, typer.Argument(help="Model file, written by `ocfuse fit`.", show_default=False)
]
Data = Annotated[
    str,
    typer.Argument(
        help="Table: a CSV, TSV, JSON lines, Parquet, Feather, Excel, NPY or NPZ file, a folder "
        "of such files, an address (https://, s3://), or - for CSV or JSON lines on stdin.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write the model to.")]
Keep = Annotated[
    int,
    typer.Option(
        min=0,
        max=99,
        help="With --force, how many replaced models to keep, as model.ocf.1 (the latest), "
        "model.ocf.2, ...",
    ),
]
Force = Annotated[bool, typer.Option("--force/--no-force", help="Replace an existing file.")]
Label = Annotated[
    str | None,
    typer.Option(help="Column with the labels: which rows are normal and which are anomalies."),
]
Normal = Annotated[
    list[str] | None,
    typer.Option(help="Value of the label column that means normal; may be repeated."),
]
Anomaly = Annotated[
    list[str] | None,
    typer.Option(
        help="Value of the label column that means an anomaly; rows with an empty cell have no "
        "label; may be repeated."
    ),
]
Ignore = Annotated[
    list[str] | None, typer.Option(help="Column not to learn from; may be repeated.")
]
Id = Annotated[str | None, typer.Option(help="Column with a name or number of each row.")]
Time = Annotated[str | None, typer.Option(help="Column with the time of each row.")]
Group = Annotated[
    str | None,
    typer.Option(
        help="Column with the group of each row, such as its run or its part. Rows of one group "
        "are held out together."
    ),
]
Adaptive = Annotated[
    bool,
    typer.Option(
        "--adaptive/--no-adaptive",
        help="Let the threshold follow slow changes of the scores of normal rows. It moves by at "
        "most a tenth of its distance to their median in 1,000 rows, and by at most a quarter of "
        "that distance in all.",
    ),
]
ChangeChance = Annotated[
    float | None,
    typer.Option(
        "--change",
        min=1e-6,
        max=0.5,
        help="Report when the source has changed. The value, such as 0.01, is the probability of "
        "a false report.",
        show_default=False,
    ),
]
Stream = Annotated[
    bool, typer.Option("--stream", help="The rows are samples of sensors, ordered by time.")
]
Windows = Annotated[
    str,
    typer.Option(
        help="Lengths of the windows in rows; none: every row by itself, without windows."
    ),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that hold categories even if they look like numbers, such as codes: "
        "zip,type; may be repeated."
    ),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that hold numbers even if they look like ids or counters: count,total; may "
        "be repeated."
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that name what a row belongs to, such as machine, or plant,machine, the "
        "widest first. Numbers are compared with the usual values of the same machine."
    ),
]
Season = Annotated[
    list[str] | None,
    typer.Option(
        help="Compare numbers with the usual values at the same time of the day, week, month or "
        "year, such as day,week."
    ),
]
Holidays = Annotated[
    list[str] | None,
    typer.Option(
        help="With --season week, days to treat as Sundays: 2026-12-25,2026-12-26, or a file with "
        "one date per line; may be repeated."
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        help="With --season, the time zone in which days begin, such as Europe/Berlin; by default "
        "that of the times."
    ),
]
High = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns in which only high values are bad: errors,latency; may be repeated."
    ),
]
Low = Annotated[
    list[str] | None,
    typer.Option(help="Columns in which only low values are bad: pressure; may be repeated."),
]
Above = Annotated[
    list[str] | None,
    typer.Option(
        help="Raise an alarm above this value, whatever the score: temp=90; may be repeated."
    ),
]
Below = Annotated[
    list[str] | None,
    typer.Option(
        help="Raise an alarm below this value, whatever the score: level=2; may be repeated."
    ),
]
Scale = Annotated[
    Literal["standard", "robust", "none"],
    typer.Option(
        help="How to scale columns: standard by mean and standard deviation, robust by "
        "median and quartiles, none for columns of one unit, such as pixels."
    ),
]
Gaps = Annotated[
    Literal["judge", "refuse", "alarm"] | None,
    typer.Option(
        help="How to treat a gap in a column that had no gaps in training: judge the row by its "
        "other columns, refuse it, or raise an alarm. By default the setting of the model; for "
        "fit, judge.",
    ),
]
Members = Annotated[
    str,
    typer.Option(
        help=f"Pool ({', '.join(POOL_NAMES)}), or members of the pools such as knn-5,lof-30."
    ),
]
FailOnAnomaly = Annotated[
    bool,
    typer.Option(
        "--fail-on-anomaly/--no-fail-on-anomaly",
        help="Exit with code 1 if there are anomalies, or rows that cannot be scored.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        help="File to write a report on the rows to, .html or .pdf. All rows are then "
        "held in memory."
    ),
]


def help_or_value(ctx: typer.Context, given: Any) -> Any:
    """Show the help for ``--video --help``, which would take the second as a value."""
    if "--help" in (given if isinstance(given, list) else [given]):
        print_line(ctx.get_help())
        raise typer.Exit
    return given


Video = Annotated[
    list[str] | None,
    typer.Option(
        help="A folder of pictures of good parts; or a folder of recorded normal runs, each of "
        "them a video, bag, array, folder of pictures or folder trial_<id>/rgb; or one run; may "
        "be repeated.",
        callback=help_or_value,
        is_eager=True,
    ),
]
Size = Annotated[
    int,
    typer.Option(min=32, max=512, help="Pictures are resized to this width and height in pixels."),
]
Single = Annotated[
    bool | None,
    typer.Option(
        "--single/--frames",
        help="Whether pictures are independent (--single) or frames of runs (--frames). By "
        "default, pictures directly in a folder are independent, and each folder of pictures "
        "inside a folder is a run. A model treats new pictures as it treated those of training.",
        show_default=False,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="dask: read a folder of Parquet files, and share the work among processes or "
        "machines.",
        rich_help_panel=Heading.MACHINES,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786; by default processes are "
        "started on this machine.",
        rich_help_panel=Heading.MACHINES,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many processes to start; by default one per core.",
        rich_help_panel=Heading.MACHINES,
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Most rows to learn from, chosen at random; by default 20,000 with --engine dask, "
        "and 4,000 with --stream.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json/--no-json", help="Print JSON.", rich_help_panel=Heading.ALL)
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="Seed of all random choices.", rich_help_panel=Heading.ALL),
]

#: Tables that a config file may have; groups of commands have none.
TABLES = (
    *(name for name in COMMANDS if name not in ("data", "bench")),
    *("fit-video", "watch-video", "fit-stream", "plan-stream", "plan-video"),
)

#: Formats of score files, as errors and the help name them.
SCORE_FORMATS = ".csv, .tsv, .jsonl (each also with .gz) and .parquet"

#: Formats of annotated videos, by the endings of their names.
VIDEO_FORMATS = {".mp4": "mp4", ".mkv": "matroska", ".avi": "avi", ".mov": "mov"}

Notify = Annotated[
    list[str] | None,
    typer.Option(
        help="Send alarms to https://..., mqtt://host/topic or smtp://host/?to=a@b.c; may be "
        "repeated. The variable OCFUSE_NOTIFY_SECRET holds the key that signs https messages, or "
        "the password for the others.",
    ),
]
Routes = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with the addresses that alarms are sent to, which alarms, and the text of "
        "the messages.",
    ),
]

Topic = Annotated[
    str | None,
    typer.Option(
        help="Topic of a bag in which several topics have numbers or pictures; or name of an "
        "array in an .npz file."
    ),
]


def use_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take defaults of flags from a file; the callback of ``--config``."""
    default = Path("ocfuse.toml")
    if path is None and default.is_file():
        path = default
    if path is not None:
        flags = {
            longest_flag(param).lstrip("-"): param
            for param in ctx.command.params
            if param.param_type_name == "option"
            and param.name not in ("config", "help")
            and is_for(ctx, param)
        }
        ctx.default_map = _defaults(_read_toml(path), table_name(ctx), flags)
    return path


def _read_toml(path: Path) -> dict[str, Any]:
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


def read_routes(notify: Iterable[str] | None, path: Path | None) -> "tuple[Route, ...]":
    """Return where alarms are sent, by ``--notify`` and ``--routes``."""
    from ocfuse.notify import Route, named_apart, routes_of  # noqa: PLC0415

    secret = os.environ.get("OCFUSE_NOTIFY_SECRET") or None
    routes = [Route(to, secret=secret) for to in notify or ()]
    if path is not None:
        settings = _read_toml(path)
        tables = settings.pop("route", [])
        if settings or not isinstance(tables, list):
            raise typer.BadParameter(f"{path} must have tables that begin with [[route]], only.")
        routes += routes_of(tables)
    return tuple(named_apart(routes))


def _defaults(settings: dict[str, Any], command: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for one command by the names of its parameters."""
    own = settings.pop(command, {})
    may_be_shared = ("json", "quiet", "seed", "threads")
    shared = {key: value for key, value in settings.items() if key in may_be_shared}
    _refuse_unknown(settings, (*TABLES, *may_be_shared), "the file")
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
    """Limit the libraries that are loaded, and by variables those that will be."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def check_rate(rate: float | None) -> float | None:
    """Refuse what is no share of rows or frames."""
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


def _check_columns(given: str | None) -> str | None:
    """Refuse names that are empty or given twice."""
    names = split_names(given)
    if names is not None and ("" in names or len(set(names)) < len(names)):
        raise typer.BadParameter(f"must be different names, such as flow,current. Got {given!r}.")
    return given


def split_names(given: str | None) -> list[str] | None:
    """Return the names of columns that ``--columns`` gives, as in a line of CSV."""
    return None if given is None else [n.strip() for n in next(csv.reader([given]), [""])]


def names_in(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names that a flag gives, each time one or several with commas."""
    return tuple(name for some in given or () for name in split_names(some) or () if name)


def holidays_in(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the days that ``--holidays`` gives, by dates or by files with one in each line."""
    days: list[str] = []
    for one in given or ():
        path = Path(one)
        if not path.is_file() and path.suffix:  # no date has one
            raise typer.BadParameter(
                f"there is no file {one}. Expected dates such as 2026-12-25, or a file of them.",
                param_hint="--holidays",
            )
        if path.is_file():
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise typer.BadParameter(f"{path} cannot be read as text: {error}.") from None
            days += [line.split("#")[0].split(",")[0].strip() for line in lines]
        else:
            days += names_in([one])
    return tuple(day for day in days if day)


def sides_of(high: Sequence[str] | None, low: Sequence[str] | None) -> dict[str, str] | None:
    """Return the side on which each column counts, by ``--high`` and ``--low``."""
    sides = dict.fromkeys(names_in(high), "high")
    for name in names_in(low):
        if name in sides:
            raise typer.BadParameter(
                f"{name} is named in --high and in --low. Where both sides count, name it in none."
            )
        sides[name] = "low"
    return sides or None


def limits_of(
    above: Sequence[str] | None, below: Sequence[str] | None
) -> dict[str, tuple[float | None, float | None]] | None:
    """Return the lowest and highest value allowed of columns, by ``--below`` and ``--above``."""
    highest, lowest = _limits("--above", above), _limits("--below", below)
    for name in highest.keys() & lowest.keys():
        if lowest[name] > highest[name]:
            raise typer.BadParameter(
                f"--below {name}={lowest[name]:g} is above --above {name}={highest[name]:g}: every "
                "row would raise an alarm."
            )
    names = [*highest, *(name for name in lowest if name not in highest)]
    return {name: (lowest.get(name), highest.get(name)) for name in names} or None


def _limits(flag: str, given: Sequence[str] | None) -> dict[str, float]:
    found = {}
    for part in names_in(given):
        name, mark, text = part.rpartition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if not mark or not name or not math.isfinite(limit):
            raise typer.BadParameter(
                f"must be column=number, such as temp=90. Got {part!r}.", param_hint=flag
            )
        found[name.strip()] = limit
    return found


def _check_decimal(decimal: str | None) -> str | None:
    if decimal not in (None, ".", ","):
        raise typer.BadParameter(f"must be . or ,. Got {decimal!r}.")
    return decimal


Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Separator of values in text files; detected by default.",
        callback=_to_delimiter,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="Decimal mark in text files, point or comma; detected by default.",
        callback=_check_decimal,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Names of the columns, such as flow,current, for CSV without a header line.",
        callback=_check_columns,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Rows with a score below it are anomalies; by default the threshold of the model.",
        callback=_check_threshold,
    ),
]
FalseAlarms = Annotated[
    float | None,
    typer.Option(
        help="Share of normal rows that may raise an alarm; by default that of the model.",
        callback=check_rate,
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        help="Exit with code 1 if more than this share of the rows, such as 0.05, are anomalies "
        "or cannot be scored.",
        callback=check_rate,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet/--no-quiet",
        "-q",
        help="Print only results and errors.",
        callback=_be_quiet,
        rich_help_panel=Heading.ALL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Most threads to use. Results do not depend on it.",
        callback=_limit_threads,
        rich_help_panel=Heading.ALL,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with a table for each command; its keys are the names of flags. Flags on "
        "the command line take precedence. By default ocfuse.toml in this folder, if it exists.",
        callback=use_config,
        is_eager=True,
        rich_help_panel=Heading.ALL,
    ),
]


def score_format(path: Path) -> str:
    """Return the ending that tells the format, in small letters; empty if none does."""
    is_compressed = path.suffix.lower() == ".gz"
    kind = (path.with_suffix("") if is_compressed else path).suffix.lower()
    if kind == ".parquet":
        return "" if is_compressed else kind
    return kind if kind in (".csv", ".tsv", ".jsonl", ".ndjson") else ""


def check_scores(path: Path | None) -> Path | None:
    """Refuse a file whose name does not tell its format; ``-`` is stdout."""
    if path is None or str(path) == "-":
        return None
    if path.is_dir():
        raise typer.BadParameter(
            f"{path} is a folder. Give the name of a file in it.", param_hint="--out"
        )
    if not score_format(path):
        raise typer.BadParameter(
            f"The name tells the format: {SCORE_FORMATS}. Got {path.name}.", param_hint="--out"
        )
    _require_folder(path)
    return path


def check_model(path: Path, force: bool) -> None:
    """Refuse what cannot be written, or should not be replaced."""
    _require_folder(path)
    if path.exists() and not path.is_file():
        raise typer.BadParameter(f"{path} is not a file. Give a name such as model.ocf.")
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} exists. Use --force to replace it, or another name.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent} is not writable. Choose another folder by --out.")


def refuse_overwriting(
    written: Mapping[str, Path | None], read: Mapping[str, Path | str | None]
) -> None:
    """Refuse to write a file that is read, or the same one twice; files by names for the user."""
    targets = {name: path for name, path in written.items() if path is not None}
    sources = {name: Path(path) for name, path in read.items() if path is not None}
    for (name, path), (other, second) in combinations(targets.items(), 2):
        if _is_same(path, second):
            raise typer.BadParameter(f"{name} and {other} are the same file, {path}.")
    for name, path in targets.items():
        for other, source in sources.items():
            if _is_same(path, source):
                raise typer.BadParameter(
                    f"{path} is the {other} and would be overwritten. Give {name} another name."
                )


def check_engine(
    engine: str | None, needs: Mapping[str, object], excluded: Mapping[str, object]
) -> bool:
    """Return whether many machines are asked for; refuse flags that do not go with that."""
    if engine not in (None, "dask"):
        raise typer.BadParameter(f"must be dask. Got {engine!r}.", param_hint="--engine")
    check_flags("--engine dask", engine is not None, needs, excluded)
    return engine is not None


def check_flags(
    choice: str, is_made: bool, needs: Mapping[str, object], excluded: Mapping[str, object]
) -> None:
    """Refuse flags that do not go with a choice such as "--engine dask", made or not.

    `needs` go with it only, `excluded` without it only; None and False are not given.
    """
    refused = excluded if is_made else needs
    given = ", ".join(sorted(name for name, value in refused.items() if value))
    if given:
        if is_made:
            raise typer.BadParameter(f"{given}: not with {choice}. Leave it out.")
        raise typer.BadParameter(f"{given}: only with {choice}. Add that, or leave it out.")


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two names stand for one file, be it there yet or not."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}. Create it first.")


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


Overlays = Annotated[
    Path | None,
    typer.Option(
        help="Folder to write pictures to, with unusual places marked.",
        callback=check_folder,
        rich_help_panel=Heading.PICTURE_MODELS,
    ),
]
