"""SIGTERM, which ends the command as tidily as Ctrl-C does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ocfuse.cli.codes import ExitCode


class Terminated(SystemExit):
    """Unwind the program, so that temporary files are removed."""


@contextmanager
def tidy_termination() -> Iterator[None]:
    """Let SIGTERM raise `Terminated` inside.

    Yields
    ------
    None
        Nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: object) -> None:
    raise Terminated(int(ExitCode.TERMINATED))
