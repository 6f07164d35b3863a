"""`ocfuse fit`: from a table of normal rows to a model file.

As in every module of a command, what takes long to import comes when it is called: the help
needs none of it.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ocfuse.cli.options import (
    DEFAULT_MODEL,
    MACHINES,
    Anomaly,
    Category,
    Config,
    Data,
    Decimal,
    Delimiter,
    Engine,
    Force,
    Gaps,
    Group,
    Id,
    Ignore,
    Json,
    Label,
    Members,
    Normal,
    Out,
    Quiet,
    Rate,
    Report,
    Scale,
    Scheduler,
    Seed,
    Threads,
    Time,
    Workers,
    check_engine,
    check_model,
    refuse_overwriting,
)
from ocfuse.cli.output import collected, in_words, print_json, print_line, progress, warn_of
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.progress import show_progress

if TYPE_CHECKING:
    from ocfuse.encoder import FeatureEncoder
    from ocfuse.ensemble import FusedDetector
    from ocfuse.streaming import StreamDetector
    from ocfuse.tables import Source, TableDetector

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: Opens the table that is learned from.
Opened: TypeAlias = "Callable[[], Source]"


@app.command("fit")
def fit_command(
    data: Data,
    out: Out = DEFAULT_MODEL,
    label: Label = None,
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    time: Time = None,
    group: Group = None,
    category: Category = None,
    scale: Scale = "standard",
    gaps: Gaps = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    false_alarms: Rate = 0.05,
    members: Members = "default",
    fusion: Annotated[
        str | None,
        typer.Option(help="Such as sum, median or lp; by default competence or labelled."),
    ] = None,
    tune: Annotated[
        str | None,
        typer.Option(help="Choose settings by: pseudo-negatives, labels, rpau, stability."),
    ] = None,
    report: Report = None,
    force: Force = False,
    engine: Engine = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=2, help="How many rows to draw and learn from; 20,000.", rich_help_panel=MACHINES
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn what is normal from a table, and write a model.

    For runs of sensors see ocfuse fit --stream --help, for pictures and recordings ocfuse fit
    --video --help.
    """
    refuse_overwriting({"--out": out, "--report": report}, {"data": data})
    check_model(out, force)
    is_spread = check_engine(
        engine,
        {"--scheduler": scheduler, "--workers": workers, "--rows": rows},
        {"--report": report, "--delimiter": delimiter, "--decimal": decimal},
    )
    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.cli import model_card  # noqa: PLC0415

    model_card.check_report(report)
    model = tables.TableDetector(
        make_detector(members, fusion, tune, false_alarms, seed, threads, encoder(scale, gaps)),
        label=label,
        normal=normal or None,
        anomaly=anomaly or None,
        ignore=tuple(ignore or ()),
        id=id,
        time=time,
        group=group,
        categories=tuple(category or ()),
    )
    if is_spread:
        from ocfuse.cli import dask_engine  # noqa: PLC0415

        cluster = {"scheduler": scheduler, "workers": workers}
        told = dask_engine.learn_from_folder(
            model, data, out, cluster, rows=rows, seed=seed, quiet=quiet
        )
    else:
        opened = partial(tables.open_source, data, delimiter, decimal=decimal)
        told = learn(model, opened, out, report, quiet)
    tell(model, told, json, quiet)


def make_detector(
    members: str,
    fusion: str | None,
    tune: str | None,
    false_alarms: float,
    seed: int,
    threads: int | None,
    encoder: "FeatureEncoder | None" = None,
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


def encoder(scale: str, gaps: str | None) -> "FeatureEncoder | None":
    """Return an encoder as the flags describe it; None is the default one."""
    from ocfuse.encoder import FeatureEncoder  # noqa: PLC0415

    is_default = scale == "standard" and gaps is None
    return None if is_default else FeatureEncoder(scale, gaps or "judge")


def make_stream(
    detector: "FusedDetector", windows: str, drift: str, has_course: bool
) -> "StreamDetector":
    """Return a detector of streams as the flags describe it."""
    from ocfuse.streaming import Course, StreamDetector, Windows  # noqa: PLC0415

    lengths: Any = tuple(
        int(word) if word.strip().isdecimal() else word for word in windows.split(",")
    )
    _check("--windows", Windows, lengths)
    course = Course() if has_course else None
    return StreamDetector(detector, windows=lengths, drift=drift, course=course)


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
    model: "TableDetector", opened: Opened, out: Path, report: Path | None, quiet: bool
) -> dict[str, Any]:
    """Fit and save a model; return the file, the seconds and what was warned of."""
    from ocfuse.cli.model_card import write_report  # noqa: PLC0415
    from ocfuse.persistence import check_storable  # noqa: PLC0415

    check_storable(model)
    with collected() as notes, progress(quiet) as bar, show_progress(bar):
        source = opened()
        frame = source.read()
        start = perf_counter()
        model.fit(frame)
        seconds = perf_counter() - start
    model.save(out)
    if report is not None:
        write_report(model, frame, source.name, report)
    return {"file": str(out), "seconds": round(seconds, 2), "warnings": notes}


def tell(model: "TableDetector", told: dict[str, Any], json: bool, quiet: bool) -> None:
    """Print what the columns are, what was learned, and what to be careful about."""
    from ocfuse.cli.model_card import facts, print_columns, print_summary  # noqa: PLC0415

    if json:
        print_json(facts(model) | told)
    elif not quiet:
        print_columns(model)
        print_line()
        print_summary(model)
        size = os.path.getsize(told["file"])
        print_line(
            f"\n{told['file']} written: {size:,} bytes, {told['seconds']:.1f} s of learning."
        )
    if not quiet:
        warn_of(told["warnings"])


def _check(flag: str, make: Callable[[Any], object], given: Any) -> None:
    """Refuse what the library does."""
    if given is not None:
        try:
            make(given)
        except InvalidInputError as error:
            raise typer.BadParameter(in_words(error), param_hint=flag) from None
