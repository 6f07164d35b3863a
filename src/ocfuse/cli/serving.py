"""The work of `ocfuse serve`."""

import signal
import warnings
from functools import partial

from ocfuse.cli.codes import ExitCode
from ocfuse.cli.output import json_line, print_at_once, warn
from ocfuse.serve import Keep, Limits, Settings, create_app
from ocfuse.serve.logs import write_lines
from ocfuse.serve.names import named_models
from ocfuse.serve.server import run_server
from ocfuse.serve.settings import is_loopback, read_token
from ocfuse.threads import one_thread_throughout

__all__ = ["Keep", "Limits", "Settings", "named_models", "read_token", "run"]

#: What a token on a network needs.
PLAIN = (
    "Warning: without TLS, token and rows can be read on their way. Give --tls-cert and --tls-key, "
    "or let a proxy on this machine speak TLS."
)


def run(settings: Settings, *, json: bool = False, quiet: bool = False) -> int:
    """Serve until a signal comes; return the exit code."""
    warnings.simplefilter("ignore")  # what threads of the service warn of may quote rows
    write_lines(only_errors=quiet)
    if not quiet and not settings.is_encrypted and not is_loopback(settings.host):
        warn(PLAIN)
    with one_thread_throughout():  # the service has threads of its own
        service = create_app(settings)
        try:
            ended_by = run_server(service, partial(_announce, settings, json))
        finally:
            service.close()
    return int(ExitCode.INTERRUPTED) if ended_by == signal.SIGINT else 0


def _announce(settings: Settings, json: bool, address: str) -> None:
    names = list(settings.models)
    told = {"address": address, "models": names}
    print_at_once(json_line(told) if json else f"Serving {', '.join(names)} at {address}\n")
