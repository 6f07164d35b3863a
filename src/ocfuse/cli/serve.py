"""`ocfuse serve`: models as a service."""

import signal
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ocfuse.cli.options import (
    Adaptive,
    ChangeChance,
    Config,
    Json,
    Notify,
    Quiet,
    Routes,
    Threads,
    read_routes,
    refuse_overwriting,
)
from ocfuse.cli.output import json_line, print_at_once, warn
from ocfuse.cli.runtime import ExitCode

if TYPE_CHECKING:
    from ocfuse.serve import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Panel:
    """Headings of options in the help."""

    EVENTS = "Events of streams"
    SAFETY = "Safety"
    LIMITS = "Limits for one client"
    BATCHES = "Batches"


@app.command("serve")
def serve_command(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Model files, each as path or name=path; the first one is used if a request "
            "names no model.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. An address that other machines can reach needs a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    events: Annotated[
        Path | None,
        typer.Option(help="File to keep events in (SQLite).", rich_help_panel=Panel.EVENTS),
    ] = None,
    keep_days: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Most days that an event is kept; by default no limit.",
            rich_help_panel=Panel.EVENTS,
        ),
    ] = None,
    keep_events: Annotated[
        int, typer.Option(min=1, help="Most events that are kept.", rich_help_panel=Panel.EVENTS)
    ] = 100_000,
    keep_pictures: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="Most megabytes of pictures of events that are kept.",
            rich_help_panel=Panel.EVENTS,
        ),
    ] = 256.0,
    keep_rows: Annotated[
        float,
        typer.Option(
            min=0,
            help="Most megabytes of rows before, in and after events that are kept; 0 keeps none.",
            rich_help_panel=Panel.EVENTS,
        ),
    ] = 64.0,
    silence: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Seconds without a sample after which a stream is reported as silent; by default "
            "five times the usual time between messages, at least 10.",
            show_default=False,
            rich_help_panel=Panel.EVENTS,
        ),
    ] = None,
    notify: Notify = None,
    routes: Routes = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that clients must send; by default the variable "
            "OCFUSE_TOKEN, if it is set.",
            rich_help_panel=Panel.SAFETY,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="TLS certificate, a PEM file.", rich_help_panel=Panel.SAFETY)
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(
            help="Private key of the certificate, a PEM file.", rich_help_panel=Panel.SAFETY
        ),
    ] = None,
    max_body: Annotated[
        float,
        typer.Option(min=0.001, help="Most megabytes of a request.", rich_help_panel=Panel.LIMITS),
    ] = 8.0,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Most rows of a request.", rich_help_panel=Panel.LIMITS)
    ] = 10_000,
    max_columns: Annotated[
        int, typer.Option(min=1, help="Most columns of a row.", rich_help_panel=Panel.LIMITS)
    ] = 2_000,
    max_nesting: Annotated[
        int, typer.Option(min=3, help="Deepest nesting of JSON.", rich_help_panel=Panel.LIMITS)
    ] = 8,
    max_pixels: Annotated[
        int, typer.Option(min=1, help="Most pixels of a picture.", rich_help_panel=Panel.LIMITS)
    ] = 25_000_000,
    max_seconds: Annotated[
        float,
        typer.Option(
            min=0.01, help="Most seconds that a request may take.", rich_help_panel=Panel.LIMITS
        ),
    ] = 30.0,
    max_wait: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="Most seconds that a request waits before it is refused.",
            rich_help_panel=Panel.LIMITS,
        ),
    ] = 5.0,
    max_requests: Annotated[
        int,
        typer.Option(min=1, help="Most requests at the same time.", rich_help_panel=Panel.LIMITS),
    ] = 256,
    max_streams: Annotated[
        int,
        typer.Option(
            min=1, help="Most open streams at the same time.", rich_help_panel=Panel.LIMITS
        ),
    ] = 64,
    batch_rows: Annotated[
        int,
        typer.Option(
            min=1,
            help="Most rows of several requests that are scored together.",
            rich_help_panel=Panel.BATCHES,
        ),
    ] = 256,
    batch_wait: Annotated[
        float,
        typer.Option(
            min=0,
            max=1000,
            help="Milliseconds that a row waits for others to be scored with, if nothing is being "
            "scored.",
            rich_help_panel=Panel.BATCHES,
        ),
    ] = 0.0,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps the states of named streams of sensors, so that they continue "
            "after a restart.",
            rich_help_panel=Panel.EVENTS,
        ),
    ] = None,
    adaptive: Adaptive = False,
    change: ChangeChance = None,
    shadow: Annotated[
        list[str] | None,
        typer.Option(
            help="Model file to try out beside a served model, as name=path, or path for the "
            "first model. It scores the same rows of streams but raises no alarms; /v1/shadow "
            "compares both. May be repeated.",
            show_default=False,
        ),
    ] = None,
    learn_from: Annotated[
        list[str] | None,
        typer.Option(
            help="Training data of a model, as name=path, or path for the first model. The page "
            "then has a button that learns a new model from the verdicts; the served model is "
            "not replaced. May be repeated; needs --events.",
            show_default=False,
            rich_help_panel=Panel.EVENTS,
        ),
    ] = None,
    reload: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds between checks whether a model file has changed; 0 never checks."
        ),
    ] = 1.0,
    drain: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds that open requests have to finish when the service stops."
        ),
    ] = 10.0,
    show_requests: Annotated[
        bool,
        typer.Option(
            "--show-requests/--no-show-requests",
            help="Show rows of /v1/score on the page, not only those of streams.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    config: Config = None,
) -> None:
    """Serve models over HTTP: scores, explanations, streams and a live page.

    Logs are lines of JSON on stderr. They contain no values of rows.
    """
    from ocfuse import serve  # noqa: PLC0415
    from ocfuse.serve import settings as serving  # noqa: PLC0415
    from ocfuse.streaming.slow import SlowSettings  # noqa: PLC0415

    paths = serving.named_models(models)
    refuse_overwriting({"--events": events}, {f"model {name}": p for name, p in paths.items()})
    limits = serve.Limits(
        body_bytes=round(max_body * 2**20),
        rows=max_rows,
        columns=max_columns,
        nesting=max_nesting,
        pixels=max_pixels,
        seconds=max_seconds,
        wait_seconds=max_wait,
        requests=max_requests,
        streams=max_streams,
    )
    settings = serve.Settings(
        models=paths,
        host=host,
        port=port,
        token=serving.read_token(token_file),
        tls_cert=tls_cert,
        tls_key=tls_key,
        limits=limits,
        batch_rows=batch_rows,
        batch_seconds=batch_wait / 1000,
        reload_seconds=reload,
        drain_seconds=drain,
        events=events,
        keep=serve.Retention(
            *(keep_days, keep_events, round(keep_pictures * 2**20), round(keep_rows * 2**20))
        ),
        publish_scores=show_requests,
        silence_seconds=silence,
        state=state,
        slow=SlowSettings(adaptive, change),
        shadows=serving.paths_by_model(shadow or [], next(iter(paths))),
        training=serving.paths_by_model(learn_from or [], next(iter(paths))),
        routes=read_routes(notify, routes),
    )
    raise typer.Exit(run(settings, json=json, quiet=quiet))


def run(settings: "Settings", *, json: bool = False, quiet: bool = False) -> int:
    """Serve until a signal comes; return the exit code."""
    from ocfuse.serve import create_app  # noqa: PLC0415
    from ocfuse.serve.server import run_server  # noqa: PLC0415
    from ocfuse.serve.settings import is_loopback  # noqa: PLC0415
    from ocfuse.serve.telemetry import write_lines  # noqa: PLC0415
    from ocfuse.system.threads import one_thread_throughout  # noqa: PLC0415

    warnings.simplefilter("ignore")  # what threads of the service warn of may quote rows
    write_lines(only_errors=quiet)
    if not quiet and not settings.is_encrypted and not is_loopback(settings.host):
        warn(
            "Warning: without TLS, token and rows can be read on their way. Give --tls-cert and "
            "--tls-key, or let a proxy on this machine speak TLS."
        )

    def announce(address: str) -> None:
        """Print where the models are served."""
        names = list(settings.models)
        record = {"address": address, "models": names}
        print_at_once(json_line(record) if json else f"Serving {', '.join(names)} at {address}\n")

    with one_thread_throughout():  # the service has threads of its own
        service = create_app(settings)
        try:
            ended_by = run_server(service, announce)
        finally:
            service.close()
    return int(ExitCode.INTERRUPTED) if ended_by == signal.SIGINT else 0
