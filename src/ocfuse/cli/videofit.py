"""`ocfuse fit --video`: from recordings of normal runs to a model file."""

from pathlib import Path
from typing import Annotated

import typer

from ocfuse.cli.options import Config, Json, Quiet, Seed, Threads
from ocfuse.cli.targets import check_model, refuse_overwriting
from ocfuse.cli.videoflags import Topic, check_rate, help_or_value

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("fit-video")
def fit_video_command(
    video: Annotated[
        list[str],
        typer.Option(
            help="Recordings of normal runs: a folder with one video, bag, array or folder of "
            "pictures per run, or with trial_<id>/rgb folders; or one run; may be repeated.",
            callback=help_or_value,
            is_eager=True,
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")] = Path(
        "model.ocf"
    ),
    topic: Topic = None,
    progress: Annotated[
        bool,
        typer.Option(
            help="Compare frames with those of about the same progress of the task, if all runs "
            "tell it: states.parquet of a trial, or numbers in run.progress beside run.mp4."
        ),
    ] = True,
    size: Annotated[
        int, typer.Option(min=32, max=512, help="Pixels that pictures are squeezed to.")
    ] = 128,
    false_alarms: Annotated[
        float,
        typer.Option(help="Share of normal frames below the threshold.", callback=check_rate),
    ] = 0.05,
    force: Annotated[
        bool, typer.Option("--force/--no-force", help="Replace an existing model.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    seed: Seed = 0,
    config: Config = None,
) -> None:
    """Learn what is normal from recordings, and write a model."""
    for place in video:
        refuse_overwriting({"--out": out}, {"recording": place})
    check_model(out, force)
    from ocfuse.cli import videofitting  # noqa: PLC0415

    runs = videofitting.find_runs(video, topic)
    detector = videofitting.make_detector(size, false_alarms, seed, threads)
    told = videofitting.learn(detector, runs, out, progress=progress, quiet=quiet)
    videofitting.tell(told, json=json, quiet=quiet)
