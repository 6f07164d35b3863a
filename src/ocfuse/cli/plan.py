"""`ocfuse plan`: what a fit would take."""

from typing import TYPE_CHECKING, Any, ClassVar

import typer

from ocfuse.cli.kinds import Heading, KindCommand, Panels
from ocfuse.cli.options import (
    Anomaly,
    Category,
    Columns,
    Config,
    Data,
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
    Stream,
    Threads,
    Time,
    Topic,
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
    }


@app.command("plan", cls=PlanCommand)
def plan_command(
    data: Data,
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
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Tell the memory and time that ocfuse fit would take, without learning.

    Times are those of one thread of the machine that they were measured on.
    """
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
        facts = {"rows": plan.n_rows, "columns": plan.n_columns, "members": list(plan.members)}
        print_json(facts | {name: getattr(plan, name) for name in names})
    else:
        print_line(str(plan))
    if not quiet:
        warn_of(notes)
