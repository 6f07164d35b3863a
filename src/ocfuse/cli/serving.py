"""The work of `ocfuse serve`."""

import signal
import warnings

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.output import json_line, print_at_once, warn
from ocfuse.optional import needed
from ocfuse.serve.names import named_models
from ocfuse.serve.settings import Limits, Settings, is_loopback, read_token

__all__ = ["Limits", "Settings", "named_models", "read_token", "run"]

#: What a token on a network needs.
PLAIN = (
    "Warning: without TLS, token and rows can be read on their way. Give --tls-cert and --tls-key, "
    "or let a proxy on this machine speak TLS."
)


def run(settings: Settings, *, json: bool = False, quiet: bool = False) -> int:
    """Serve until a signal comes; return the exit code."""
    for package in ("fastapi", "prometheus_client", "uvicorn", "websockets"):
        needed(package, "to serve models", "serve")
    app = needed("ocfuse.serve.app", "to serve models", "serve")
    server = needed("ocfuse.serve.server", "to serve models", "serve")
    logs = needed("ocfuse.serve.logs", "to serve models", "serve")

    def announce(address: str) -> None:
        names = list(settings.models)
        told = {"address": address, "models": names}
        print_at_once(json_line(told) if json else f"Serving {', '.join(names)} at {address}\n")

    warnings.simplefilter("ignore")  # what threads of the service warn of may quote rows
    logs.write_lines(quiet)
    if not quiet and not settings.is_encrypted and not is_loopback(settings.host):
        warn(PLAIN)
    ended_by = server.run_server(app.create_app(settings), announce)
    return int(ExitCode.INTERRUPTED) if ended_by == signal.SIGINT else 0
