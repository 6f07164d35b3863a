"""`ocfuse watch`: alarms as the rows come."""

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ocfuse.cli.kinds import Heading, Kind, KindCommand, Panels, is_of
from ocfuse.cli.options import (
    Adaptive,
    ChangeChance,
    Columns,
    Config,
    Decimal,
    Delimiter,
    FailOnAnomaly,
    Gaps,
    Json,
    Model,
    Notify,
    Quiet,
    Routes,
    Single,
    Threads,
    Threshold,
    Topic,
    check_folder,
    check_place,
    check_rate,
    check_video,
    help_or_value,
    read_routes,
    refuse_overwriting,
    split_names,
)
from ocfuse.cli.runtime import ExitCode

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class WatchCommand(KindCommand):
    """The options of `ocfuse watch` by the kind of data that they are for."""

    panels: ClassVar[Panels] = {
        Heading.TABLES: (
            *("source", "follow", "new", "strict", "gaps"),
            *("adaptive", "change"),
            *("delimiter", "decimal", "columns"),
        ),
        Heading.STREAM_MODELS: ("min_rows", "state"),
        Heading.EVENTS: ("hold", "leave", "timeout", "events", "notify", "routes", "topic"),
        Heading.PICTURES: (
            *("video", "beside", "single", "progress", "min_frames"),
            *("annotated", "thumbnails"),
        ),
    }


def _check_events(ctx: typer.Context, path: Path | None) -> Path | None:
    return check_place(path) if is_of(ctx, Kind.PICTURES) else path


@app.command("watch", cls=WatchCommand)
def watch_command(
    ctx: typer.Context,
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(
            help="CSV or JSON lines; - for stdin, which is the default. A Parquet, Feather, NPY or "
            "NPZ file, or a folder of tables, is played through; pictures and recordings are the "
            "same as --video.",
            show_default=False,
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all/--no-all", help="Print every row or frame.")
    ] = False,
    threshold: Threshold = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            help="Share of normal rows or frames that may raise an alarm; by default the model's.",
            callback=check_rate,
        ),
    ] = None,
    fail_on_anomaly: FailOnAnomaly = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Rows from a broker, mqtt://[user@]host[:port]/topic, or mqtts:// for TLS; the "
            "password from the environment, OCFUSE_MQTT_PASSWORD or OCFUSE_MQTT_PASSWORD_FILE.",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", "-f", help="Wait for further rows of the file.")
    ] = False,
    new: Annotated[
        bool,
        typer.Option("--new/--no-new", help="With --follow, leave out the rows that are there."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--no-strict", help="Stop at a row that cannot be scored.")
    ] = False,
    gaps: Gaps = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    min_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows in a row below the threshold that raise an event; by default the model's.",
            show_default=False,
        ),
    ] = None,
    hold: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Rows or frames after the end of an alarm in which another one goes on with the "
            "same event; by default those of the model, and none of pictures.",
            show_default=False,
        ),
    ] = None,
    leave: Annotated[
        float | None,
        typer.Option(
            help="Score that ends an event; by default a quarter of the way from the threshold "
            "to the median of normal rows or frames.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds without a row after which to say so; by default 5 usual steps of the "
            "training rows, if these have dates, and at least 5. Without a frame, or without a "
            "number of --progress -, the command gives up then with exit code 3; by default "
            "after 5 for cameras and addresses, else never.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="Append events to this file, a line of JSON each; of pictures, also alarms when "
            "they are raised.",
            callback=_check_events,
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps the state of the stream: after a restart of the command it goes "
            "on, if no row was missed.",
            show_default=False,
        ),
    ] = None,
    adaptive: Adaptive = False,
    change: ChangeChance = None,
    notify: Notify = None,
    routes: Routes = None,
    video: Annotated[
        str | None,
        typer.Option(
            help="Video, bag, array, folder of pictures or trial folder; number of a camera; "
            "address such as rtsp://...; - for a video on stdin.",
            callback=help_or_value,
            is_eager=True,
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            "--and",
            metavar="MODEL[=ROWS]",
            help="Judge sensors beside the pictures, by a model of ocfuse fit --stream: one score, "
            "the lower one of both. Rows are those of the trial folder or of the bag, or a file "
            "or topic after =, such as joints.ocf=states.csv.",
            show_default=False,
        ),
    ] = None,
    single: Single = None,
    topic: Topic = None,
    progress: Annotated[
        str | None,
        typer.Option(
            help="Progress of the task, for a model that learned with it: a file with a number "
            "per frame, or - for numbers on stdin, of which the latest holds."
        ),
    ] = None,
    min_frames: Annotated[
        int, typer.Option(min=1, help="Frames in a row below the threshold that raise an event.")
    ] = 3,
    annotated: Annotated[
        Path | None,
        typer.Option(
            help="Write the video with scores and unusual places drawn in: .mp4, .mkv, .avi, .mov.",
            callback=check_video,
        ),
    ] = None,
    thumbnails: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a picture of each event, its unusual places in red.",
            callback=check_folder,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score rows or frames as they come, and tell the alarms at once.

    Rows that wait, as they come faster than they are scored, are scored together, at most 256;
    a row that comes alone waits for nothing.

    Rows of sensors, of which ocfuse fit --stream learns, raise events; so do pictures and
    recordings, with --video.
    """
    if data is not None and is_of(ctx, Kind.PICTURES):
        video = data
    told = read_routes(notify, routes)
    if told and events is None:
        raise typer.BadParameter(
            "--notify and --routes need --events FILE: what could not be told is told from there"
        )
    if video is not None:
        from ocfuse.cli import watch_video  # noqa: PLC0415

        watch_video.watch_recording(
            *(model, video, topic, progress, beside),
            outputs=watch_video.Outputs(events, annotated, thumbnails, told),
            threshold=threshold,
            false_alarms=false_alarms,
            leave=leave,
            min_frames=min_frames,
            hold=hold,
            timeout=timeout,
            single=single,
            threads=threads,
            fail_on_anomaly=fail_on_anomaly,
            show_all=show_all,
            json=json,
            quiet=quiet,
        )
        return
    if source is not None and (data is not None or follow):
        raise typer.BadParameter("--from takes the place of a file and of --follow. Leave them out")
    data = "-" if data is None else data
    if (follow and data == "-") or (new and not follow):
        raise typer.BadParameter("--follow needs a file, and --new needs --follow")
    refuse_overwriting({"--events": events, "--state": state}, {"model": model, "data": data})
    from ocfuse.cli import model_card, watch_events, watch_rows  # noqa: PLC0415
    from ocfuse.streaming.slow import SlowSettings  # noqa: PLC0415

    detector = model_card.load_model(model, threshold, false_alarms, gaps)
    slow = SlowSettings(adaptive, change)
    settings = watch_events.EventSettings(
        *(leave, min_rows, hold, timeout, events, told, state), slow
    )
    flags = watch_events.Flags(show_all=show_all, strict=strict, json=json, quiet=quiet)
    is_live = follow or data == "-"
    stream = source or ("stdin" if data == "-" else Path(data).name)
    names = {"model": model.stem, "stream": stream}
    reporter = watch_events.make_reporter(detector, settings, flags, is_live, names)
    watch = watch_rows.Watch(detector, reporter, delimiter, decimal, split_names(columns), topic)
    watch.run(source or data, follow=follow, only_new=new, quiet=quiet)
    if fail_on_anomaly and reporter.n_alarms + reporter.n_unknown:
        raise typer.Exit(ExitCode.ANOMALIES)
