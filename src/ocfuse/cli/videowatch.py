"""`ocfuse watch --video`: alarms as the frames come."""

from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.options import Config, FailOnAnomaly, Json, Model, Quiet, Threads, Threshold
from ocfuse.cli.targets import refuse_overwriting
from ocfuse.cli.videoflags import (
    MIN_FRAMES,
    Topic,
    check_folder,
    check_place,
    check_rate,
    check_video,
    help_or_value,
)

#: Heading of what is written.
FILES = "Files"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("watch-video")
def watch_video_command(
    model: Model,
    video: Annotated[
        str,
        typer.Option(
            help="Video, bag, array, folder of pictures or trial folder; number of a camera; "
            "address such as rtsp://...; - for a video on stdin.",
            callback=help_or_value,
            is_eager=True,
            show_default=False,
        ),
    ],
    topic: Topic = None,
    progress: Annotated[
        str | None,
        typer.Option(
            help="Progress of the task, for a model that learned with it: a file with a number "
            "per frame, or - for numbers on stdin, of which the latest holds."
        ),
    ] = None,
    threshold: Threshold = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            help="Share of normal frames below the threshold; by default the model's.",
            callback=check_rate,
        ),
    ] = None,
    leave: Annotated[
        float | None,
        typer.Option(
            help="Score that ends an event; by default a quarter of the way from the threshold "
            "to the median of normal frames.",
            show_default=False,
        ),
    ] = None,
    min_frames: Annotated[
        int, typer.Option(min=1, help="Frames in a row below the threshold that raise an event.")
    ] = MIN_FRAMES,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds without a frame, or without a number of --progress -, after which to "
            "give up with exit code 3; by default 5 for cameras and addresses, else never.",
            show_default=False,
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all/--no-all", help="Print every frame.")] = False,
    events: Annotated[
        Path | None,
        typer.Option(
            help="Append alarms, when they are raised, and events, when they have ended, to this "
            "file, a line of JSON each.",
            callback=check_place,
            rich_help_panel=FILES,
        ),
    ] = None,
    annotated: Annotated[
        Path | None,
        typer.Option(
            help="Write the video with scores and unusual places drawn in: .mp4, .mkv, .avi, .mov.",
            callback=check_video,
            rich_help_panel=FILES,
        ),
    ] = None,
    thumbnails: Annotated[
        Path | None,
        typer.Option(
            help="Folder for a picture of each event, its unusual places in red.",
            callback=check_folder,
            rich_help_panel=FILES,
        ),
    ] = None,
    fail_on_anomaly: FailOnAnomaly = False,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Score frames as they come, and tell the alarms at once."""
    if video == "-" and progress == "-":
        raise typer.BadParameter("stdin can give either the video or the progress")
    refuse_overwriting(
        {"--events": events, "--annotated": annotated},
        {"model": model, "recording": video, "progress": progress},
    )
    from ocfuse.cli import videowatching  # noqa: PLC0415

    detector = videowatching.load_detector(model, threshold, false_alarms)
    source = videowatching.open_watched(detector, video, topic, progress, timeout)
    outputs = videowatching.Outputs(events, annotated, thumbnails)
    watch = videowatching.make_watch(detector, leave, min_frames, threads)
    flags = {"json": json, "show_all": show_all, "quiet": quiet}
    code = videowatching.watch_run(watch, source, outputs, **flags, timeout=timeout)
    if code or (fail_on_anomaly and watch.n_events):
        raise typer.Exit(code or videowatching.ExitCode.ANOMALIES)
