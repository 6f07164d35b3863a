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
            help="CSV or JSON lines, by default - for stdin. A Parquet, Feather, NPY or NPZ file, "
            "or a folder of tables, is read to its end. Pictures and recordings are read as with "
            "--video.",
            show_default=False,
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all/--no-all", help="Print every row or frame, not only alarms.")
    ] = False,
    threshold: Threshold = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            help="Share of normal rows or frames that may raise an alarm; by default that of the "
            "model.",
            callback=check_rate,
        ),
    ] = None,
    fail_on_anomaly: FailOnAnomaly = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Read rows from an MQTT broker: mqtt://user@host:port/topic, or mqtts:// for "
            "TLS; user and port are optional. The password is read from the variable "
            "OCFUSE_MQTT_PASSWORD, or from the file that OCFUSE_MQTT_PASSWORD_FILE names.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--no-follow", "-f", help="Wait for further rows at the end of the file."
        ),
    ] = False,
    new: Annotated[
        bool,
        typer.Option(
            "--new/--no-new", help="With --follow, skip the rows that the file already has."
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict/--no-strict", help="Stop at the first row that cannot be scored."),
    ] = False,
    gaps: Gaps = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    columns: Columns = None,
    min_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Consecutive rows below the threshold after which an event starts; by default "
            "that of the model.",
            show_default=False,
        ),
    ] = None,
    hold: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="An alarm within so many rows or frames after the last one belongs to the same "
            "event; by default that of the model, and 0 for pictures.",
            show_default=False,
        ),
    ] = None,
    leave: Annotated[
        float | None,
        typer.Option(
            help="An event ends with the first score that is not below this; by default the "
            "threshold plus a quarter of the distance to the median score of normal rows or "
            "frames.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds without a row after which silence is reported; by default 5 times the "
            "usual time between training rows, if they have dates, and at least 5. For pictures: "
            "seconds without a frame, or without a number for --progress -, after which the "
            "command stops with exit code 3; by default 5 for cameras and addresses, else never.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            help="File to append events to, one line of JSON each; with pictures also the start "
            "of each alarm.",
            callback=_check_events,
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps the state of the stream, so that it continues after a restart "
            "if no row was missed.",
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
            help="Score sensors together with the pictures, with a model of ocfuse fit --stream. "
            "The score is the lower one of both. Rows come from the trial folder or the bag, or "
            "from a file or topic after =, such as joints.ocf=states.csv.",
            show_default=False,
        ),
    ] = None,
    single: Single = None,
    topic: Topic = None,
    progress: Annotated[
        str | None,
        typer.Option(
            help="Progress of the task, for a model fitted with progress: a file with a number "
            "per frame, or - for numbers on stdin; each frame has the latest one."
        ),
    ] = None,
    min_frames: Annotated[
        int,
        typer.Option(
            min=1, help="Consecutive frames below the threshold after which an event starts."
        ),
    ] = 3,
    annotated: Annotated[
        Path | None,
        typer.Option(
            help="File to write the video to, with scores and unusual places drawn in: .mp4, "
            ".mkv, .avi or .mov.",
            callback=check_video,
        ),
    ] = None,
    thumbnails: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write a picture of each event to, with unusual places in red.",
            callback=check_folder,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score rows or frames as they arrive, and print alarms at once.

    A row is scored as soon as it arrives. Rows that arrive faster than they can be scored are
    scored together, up to 256 at a time.

    With a model of ocfuse fit --stream, alarms are joined to events; so are alarms of pictures and
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
