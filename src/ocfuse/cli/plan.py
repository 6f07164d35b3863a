"""`ocfuse plan`: what a fit would take."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ocfuse.cli.kinds import Heading, Kind, KindCommand, Panels, is_of
from ocfuse.cli.options import (
    Anomaly,
    Category,
    Columns,
    Config,
    Decimal,
    Delimiter,
    Group,
    Id,
    Ignore,
    Json,
    Label,
    Members,
    Normal,
    Quiet,
    Rows,
    Single,
    Size,
    Stream,
    Threads,
    Time,
    Topic,
    Video,
    Windows,
    split_names,
)
from ocfuse.cli.output import at_work, print_json, print_line, warn_of

if TYPE_CHECKING:
    from ocfuse.tables import TableDetector

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class PlanCommand(KindCommand):
    """The options of `ocfuse plan` by the kind of data that they are for."""

    panels: ClassVar[Panels] = {
        Heading.ROWS: ("category",),
        Heading.STREAMS: ("stream", "windows", "rows"),
        Heading.PICTURES: ("video", "single", "size"),
    }


@app.command("plan", cls=PlanCommand)
def plan_command(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A table, a folder of tables, or - for stdin; pictures and recordings are the "
            "same as --video.",
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    normal: Normal = None,
    anomaly: Anomaly = None,
    ignore: Ignore = None,
    id: Id = None,
    time: Time = None,
    group: Group = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    topic: Topic = None,
    members: Members = "default",
    category: Category = None,
    stream: Stream = False,
    windows: Windows = "10,30",
    rows: Rows = None,
    video: Video = None,
    single: Single = None,
    size: Size = 128,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Predict the memory and time that ocfuse fit would take, without fitting.

    Times are for one thread of the machine on which ocfuse was measured.
    """
    if data is not None and is_of(ctx, Kind.PICTURES):
        video = [data]
    if video:
        plan_recordings(video, topic, single, size, json=json, quiet=quiet)
        return
    if data is None:
        raise typer.BadParameter("name a table, or pictures by --video")
    from ocfuse import tables  # noqa: PLC0415
    from ocfuse.cli import fit  # noqa: PLC0415

    detector = fit.make_detector(members, None, None, 0.05, 0, threads, None)
    roles: dict[str, Any] = {
        "label": label,
        "normal": normal or None,
        "anomaly": anomaly or None,
        "ignore": tuple(ignore or ()),
        "id": id,
        "time": time,
        "group": group,
    }
    model: TableDetector
    if stream:
        from ocfuse.streaming import StreamTable  # noqa: PLC0415

        model = StreamTable(fit.make_stream(detector, windows, "keep", False, {}, rows), **roles)
    else:
        model = tables.TableDetector(detector, **roles, categories=tuple(category or ()))
    with at_work(quiet) as notes:
        source = tables.open_source(
            data,
            delimiter,
            decimal=decimal,
            columns=split_names(columns),
            topic=topic,
        )
        plan = model.plan(source.read())
    if json:
        names = ("fit_bytes", "model_bytes", "fit_seconds", "score_seconds", "available_bytes")
        facts = {
            "rows": plan.n_rows,
            "columns_after_encoding": plan.n_columns,
            "members": list(plan.members),
        }
        print_json(facts | {name: getattr(plan, name) for name in names})
    else:
        print_line(str(plan))
    if not quiet:
        warn_of(notes)


def plan_recordings(
    places: list[str], topic: str | None, single: bool | None, size: int, *, json: bool, quiet: bool
) -> None:
    """Tell the memory and time of a fit to pictures or recordings."""
    from ocfuse.cli.video_runs import find_runs, find_single  # noqa: PLC0415
    from ocfuse.vision import Lite0, PictureDetector  # noqa: PLC0415
    from ocfuse.vision.sources import Runs  # noqa: PLC0415

    with at_work(quiet) as notes:
        source = find_single(places, single) or Runs(find_runs(places, topic))
        plan = PictureDetector(Lite0(size=size)).plan(source)
    if json:
        print_json(asdict(plan))
    else:
        print_line(str(plan))
    if not quiet:
        warn_of(notes)
