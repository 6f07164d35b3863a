"""`ocfuse fit`: from a table of normal rows, or from normal runs of sensors, to a model file.

As in every module of a command, what takes long to import comes when it is called: the help
needs none of it.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import typer

from ocfuse.cli.kinds import Heading, Kind, KindCommand, Panels, is_of
from ocfuse.cli.options import (
    Above,
    Anomaly,
    Below,
    By,
    Category,
    Columns,
    Config,
    Decimal,
    Delimiter,
    Engine,
    Force,
    Gaps,
    High,
    Holidays,
    Id,
    Ignore,
    Json,
    Keep,
    Label,
    Low,
    Members,
    Normal,
    Number,
    Out,
    Quiet,
    Report,
    Rows,
    Scale,
    Scheduler,
    Season,
    Seed,
    Single,
    Size,
    Stream,
    Threads,
    Time,
    Topic,
    Video,
    Windows,
    Workers,
    Zone,
    check_engine,
    check_flags,
    check_model,
    check_rate,
    holidays_in,
    limits_of,
    names_in,
    refuse_overwriting,
    sides_of,
    split_names,
)
from ocfuse.cli.output import at_work, in_words, print_json, print_line, warn_of
from ocfuse.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ocfuse.encoder import FeatureEncoder
    from ocfuse.ensemble import FusedDetector
    from ocfuse.streaming import StreamDetector
    from ocfuse.tables import Source, TableDetector

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: Opens the table that is learned from.
Opened: TypeAlias = "Callable[[], Source]"


class FitCommand(KindCommand):
    """The options of `ocfuse fit` by the kind of data that they are for."""

    panels: ClassVar[Panels] = {
        Heading.VERDICTS: ("events", "old", "served_as"),
        Heading.TABLES: (
            *("label", "normal", "anomaly", "ignore", "id", "time", "group"),
            *("delimiter", "decimal", "columns", "members", "fusion", "rows", "report"),
            *("season", "holidays", "zone", "high", "low", "above", "below"),
        ),
        Heading.ROWS: (
            *("by", "category", "number", "scale", "gaps", "tune"),
            *("method", "tuning", "solver", "scope", "norm"),
        ),
        Heading.STREAMS: (
            *("stream", "windows", "context", "course", "drift"),
            *("false_alarms_per_hour", "false_alarms_per_day", "false_alarms_per_run"),
        ),
        Heading.EVENTS: ("topic",),
        Heading.PICTURES: ("video", "single", "progress", "size"),
    }


@app.command("fit", cls=FitCommand)
def fit_command(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Table: a CSV, TSV, JSON lines, Parquet, Feather, NPY or NPZ file, a folder of "
            "such files, or - for CSV or JSON lines on stdin. With --stream, each file of a "
            "folder is one run. A folder of pictures or recordings is read as with --video.",
            show_default=False,
        ),
    ] = None,
    out: Out = Path("model.ocf"),
    false_alarms: Annotated[
        float,
        typer.Option(
            help="Share of normal rows or frames that may raise an alarm.", callback=check_rate
        ),
    ] = 0.05,
    force: Force = False,
    label: Label = None,
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    time: Time = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column with the group of each row, such as its run or its part. Rows of one "
            "group are held out together. With --stream, each file of a folder is a run by "
            "default."
        ),
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    members: Members = "default",
    fusion: Annotated[
        str | None,
        typer.Option(
            help="Fusion of the members, such as sum, median or lp; by default trust, or labelled "
            "if some rows are labelled as anomalies."
        ),
    ] = None,
    report: Report = None,
    by: By = None,
    season: Season = None,
    holidays: Holidays = None,
    zone: Zone = None,
    high: High = None,
    low: Low = None,
    above: Above = None,
    below: Below = None,
    category: Category = None,
    number: Number = None,
    scale: Scale = "standard",
    gaps: Gaps = None,
    tune: Annotated[
        str | None,
        typer.Option(
            help="Choose settings with this criterion: pseudo-negatives, labels, rpau or "
            "stability. By default they are not searched."
        ),
    ] = None,
    method: Annotated[
        Literal["fused", "paper"],
        typer.Option(
            help="fused: the method of ocfuse; paper: the method of arXiv 2411.06406 as printed."
        ),
    ] = "fused",
    tuning: Annotated[
        Literal["rpau", "pseudo-negatives"] | None,
        typer.Option(
            help="With --method paper: criterion for the choice of members and norm; by "
            "default rpau."
        ),
    ] = None,
    solver: Annotated[
        Literal["interior-point", "frank-wolfe"] | None,
        typer.Option(help="With --method paper: its solver; by default interior-point."),
    ] = None,
    scope: Annotated[
        Literal["local", "global"] | None,
        typer.Option(
            help="With --method paper: weights for each row (local) or the same for all "
            "(global); by default local."
        ),
    ] = None,
    norm: Annotated[
        float | None,
        typer.Option("--p", help="With --method paper: the norm p; by default it is searched."),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="File of events of ocfuse serve. Learn from the verdicts in it as well, with the "
            "settings of --model.",
        ),
    ] = None,
    old: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="Model that raised the alarms of --events. DATA must be its training rows.",
        ),
    ] = None,
    served_as: Annotated[
        str | None,
        typer.Option(
            help="Name of the model in the file of events; by default the name of its file.",
            show_default=False,
        ),
    ] = None,
    keep: Keep = 3,
    stream: Stream = False,
    windows: Windows = "10,30",
    context: Annotated[
        str | None,
        typer.Option(
            help="Column with the progress of the task. Rows are compared with training rows at "
            "about the same progress."
        ),
    ] = None,
    course: Annotated[
        bool,
        typer.Option(
            help="With --context and several runs, compare channels with their usual values at "
            "the same progress."
        ),
    ] = True,
    drift: Annotated[
        Literal["keep", "drop", "follow"],
        typer.Option(
            help="What to do with channels that drift in training: keep them, drop them, or "
            "follow them with a slow mean."
        ),
    ] = "keep",
    false_alarms_per_hour: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Events that normal runs may raise per hour, instead of --false-alarms. "
            "Threshold, shortest duration and hold of events are chosen for it. Needs a column "
            "with times; numbers count as seconds.",
        ),
    ] = None,
    false_alarms_per_day: Annotated[
        float | None, typer.Option(min=0.0, help="The same, per day.")
    ] = None,
    false_alarms_per_run: Annotated[
        float | None, typer.Option(min=0.0, help="The same, per run; needs no times.")
    ] = None,
    video: Video = None,
    single: Single = None,
    topic: Topic = None,
    progress: Annotated[
        bool,
        typer.Option(
            help="Compare frames with training frames at about the same progress of the task, if "
            "it is known for all runs: from states.parquet of a trial, or from numbers in "
            "run.progress beside run.mp4."
        ),
    ] = True,
    size: Size = 128,
    engine: Engine = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    rows: Rows = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn what is normal from a table, sensors or pictures, and write a model.

    By default the rows of a table are independent. With --stream they are samples of sensors. With
    --video, pictures or recordings are learned instead of a table.
    """
    if data is not None and is_of(ctx, Kind.PICTURES):
        video = [data]
    if video:
        from ocfuse.cli import fit_video  # noqa: PLC0415

        fit_video.fit_recordings(
            *(video, topic, out),
            size=size,
            false_alarms=false_alarms,
            seed=seed,
            threads=threads,
            progress=progress,
            single=single,
            force=force,
            keep=keep,
            json=json,
            quiet=quiet,
        )
        return
    if data is None:
        ctx.fail("Missing argument 'data'.")
    refuse_overwriting({"--out": out, "--report": report}, {"data": data, "--events": events})
    check_model(out, force)
    if (events is None) != (old is None):
        raise typer.BadParameter("--events needs --model, and --model needs --events")
    if events is not None and old is not None:
        from ocfuse.cli import fit_events  # noqa: PLC0415
        from ocfuse.tables import open_source  # noqa: PLC0415

        fit_events.check_alone(ctx)
        opened = partial(
            open_source,
            data,
            delimiter,
            decimal=decimal,
            columns=split_names(columns),
            topic=topic,
        )
        fit_events.learn_from_events(
            *(events, old, out, opened), served_as=served_as, keep=keep, json=json, quiet=quiet
        )
        return
    is_spread = check_engine(
        engine,
        {"--scheduler": scheduler, "--workers": workers, "--rows": None if stream else rows},
        {"--report": report, "--delimiter": delimiter, "--decimal": decimal, "--columns": columns},
    )
    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.encoder import FeatureEncoder  # noqa: PLC0415

    if report is not None:
        from ocfuse.cli.model_card import check_report  # noqa: PLC0415

        check_report(report)
    paper = {"tuning": tuning, "solver": solver, "scope": scope, "p": norm}
    settled = {"--members": members != "default", "--fusion": fusion, "--tune": tune}
    settled |= {"--scale": scale != "standard", "--gaps": gaps, "--group": group}
    several = {"by": by, "season": season, "high": high, "low": low, "above": above, "below": below}
    several |= {"holidays": holidays}
    settled |= {"--zone": zone}
    settled |= {"--engine": engine} | {f"--{name}": bool(of) for name, of in several.items()}
    given = {f"--{name}": value is not None for name, value in paper.items()}
    check_flags("--method paper", method == "paper", given, settled)
    if method == "paper":
        detector = make_paper_detector(paper, false_alarms, seed, threads)
    else:
        is_default = scale == "standard" and gaps is None
        encoder = None if is_default else FeatureEncoder(scale, gaps or "judge")
        detector = make_detector(members, fusion, tune, false_alarms, seed, threads, encoder)
    rates = {
        "hour": false_alarms_per_hour,
        "day": false_alarms_per_day,
        "run": false_alarms_per_run,
    }
    roles: dict[str, Any] = {
        "label": label,
        "normal": normal or None,
        "anomaly": anomaly or None,
        "ignore": tuple(ignore or ()),
        "id": id,
        "time": time,
        "group": group,
    }
    expected: dict[str, Any] = {
        "by": names_in(by),
        "season": names_in(season),
        "holidays": holidays_in(holidays),
        "zone": zone,
        "direction": sides_of(high, low),
        "limits": limits_of(above, below),
    }
    from ocfuse.usual import check_seasons, to_days  # noqa: PLC0415
    from ocfuse.usual.seasons import find_zone  # noqa: PLC0415

    _check("--season", check_seasons, expected["season"])
    _check("--holidays", to_days, expected["holidays"])
    _check("--zone", find_zone, zone)
    if stream:
        seasons = {name: expected[name] for name in ("season", "holidays", "zone")}
        from ocfuse.streaming import StreamTable  # noqa: PLC0415

        parts = make_stream(detector, windows, drift, course and context is not None, rates, rows)
        parts.set_params(direction=expected["direction"], limits=expected["limits"])
        model: TableDetector = StreamTable(parts, **roles, **seasons, context=context)
    else:
        model = tables.TableDetector(
            detector, **roles, **expected, categories=names_in(category), numbers=names_in(number)
        )
    if is_spread:
        cluster = {"scheduler": scheduler, "workers": workers}
        done = learn_from_folder(
            *(model, data, out, cluster), keep=keep, rows=rows, seed=seed, quiet=quiet
        )
    else:
        opened = partial(
            tables.open_source,
            data,
            delimiter,
            decimal=decimal,
            columns=split_names(columns),
            topic=topic,
        )
        done = learn(model, opened, out, report, keep, quiet)
    print_model(model, done, json, quiet)


def make_detector(
    members: str,
    fusion: str | None,
    tune: str | None,
    false_alarms: float,
    seed: int,
    threads: int | None,
    encoder: "FeatureEncoder | None",
) -> "FusedDetector":
    """Return a detector as the flags describe it."""
    from ocfuse.ensemble import FusedDetector  # noqa: PLC0415
    from ocfuse.fusion import make_fusion  # noqa: PLC0415
    from ocfuse.tuning import make_criterion  # noqa: PLC0415

    _check("--fusion", make_fusion, fusion)
    _check("--tune", make_criterion, tune)
    return FusedDetector(
        to_members(members),
        fusion=fusion,
        false_alarm_rate=false_alarms,
        random_state=seed,
        n_jobs=threads,
        encoder=encoder,
        tune=tune,
    )


def make_paper_detector(
    settings: dict[str, Any], false_alarms: float, seed: int, threads: int | None
) -> "FusedDetector":
    """Return the paper's detector as the flags describe it."""
    from ocfuse.paper import PaperDetector  # noqa: PLC0415

    given = {name: value for name, value in settings.items() if value is not None}
    return PaperDetector(**given, false_alarm_rate=false_alarms, random_state=seed, n_jobs=threads)


def make_stream(
    detector: "FusedDetector",
    windows: str,
    drift: str,
    has_course: bool,
    rates: dict[str, float | None],
    rows: int | None,
) -> "StreamDetector":
    """Return a detector of streams as the flags describe it."""
    from ocfuse.streaming import AlarmRate, Course, StreamDetector, Windows  # noqa: PLC0415

    lengths: Any = ()  # the samples themselves
    if windows != "none":
        words = windows.split(",")
        lengths = tuple(int(word) if word.strip().isdecimal() else word for word in words)
        _check("--windows", Windows, lengths)
    course = Course() if has_course else None
    asked = [AlarmRate(rate, per) for per, rate in rates.items() if rate is not None]
    if len(asked) > 1:
        raise typer.BadParameter("give one of --false-alarms-per-hour, -per-day and -per-run")
    size: dict[str, Any] = {} if rows is None else {"max_rows": rows}
    alarm_rate = asked[0] if asked else AlarmRate()
    return StreamDetector(
        detector, windows=lengths, drift=drift, course=course, alarm_rate=alarm_rate, **size
    )


def to_members(text: str) -> Any:
    """Return the name of a pool, or members of the pools by name."""
    from ocfuse.detectors.pool import POOLS, make_pool  # noqa: PLC0415

    if text in POOLS:
        return text
    try:
        return make_pool(text)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint="--members") from None


def learn(
    model: "TableDetector", opened: Opened, out: Path, report: Path | None, keep: int, quiet: bool
) -> dict[str, Any]:
    """Fit and save a model; return the file, the seconds and the warnings."""
    from ocfuse.persistence import check_storable, keep_former  # noqa: PLC0415

    check_storable(model)
    with at_work(quiet) as notes:
        source = opened()
        frame = source.read()
        start = perf_counter()
        model.fit(frame)
        seconds = perf_counter() - start
    keep_former(out, keep)
    model.save(out)
    if report is not None:
        model.report(frame, name=source.name).save(report)
    return {"file": str(out), "seconds": round(seconds, 2), "warnings": notes}


def learn_from_folder(
    model: "TableDetector",
    data: str,
    out: Path,
    cluster: dict[str, Any],
    *,
    keep: int,
    rows: int | None,
    seed: int,
    quiet: bool,
) -> dict[str, Any]:
    """Fit on a cluster and save a model; return what `learn` does."""
    from ocfuse import distributed  # noqa: PLC0415
    from ocfuse.persistence import check_storable, keep_former  # noqa: PLC0415

    check_storable(model)
    with at_work(quiet) as notes, distributed.connected(**cluster) as client:
        start = perf_counter()
        size = {} if rows is None else {"rows": rows}
        distributed.fit(model, data, client=client, seed=seed, **size)
        seconds = perf_counter() - start
    keep_former(out, keep)
    model.save(out)
    return {"file": str(out), "seconds": round(seconds, 2), "warnings": notes}


def print_model(model: "TableDetector", done: dict[str, Any], json: bool, quiet: bool) -> None:
    """Print what the columns are, what was learned, and what to be careful about."""
    from ocfuse.cli.model_card import facts, print_columns, print_summary  # noqa: PLC0415

    if json:
        print_json(facts(model) | done)
    elif not quiet:
        print_columns(model)
        print_line()
        print_summary(model)
        size = os.path.getsize(done["file"])
        print_line(
            f"\n{done['file']} written: {size:,} bytes, {done['seconds']:.1f} s of learning."
        )
    # a rate that was asked for and does not hold is said in any case
    warn_of([note for note in done["warnings"] if not quiet or "cannot be promised" in note])


def _check(flag: str, make: Callable[[Any], object], given: Any) -> None:
    """Refuse the value of a flag that the library refuses."""
    if given is not None:
        try:
            make(given)
        except InvalidInputError as error:
            raise typer.BadParameter(in_words(error), param_hint=flag) from None
