"""Signals: those that end a command tidily, and those that ask it to come to an end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ocfuse.cli.codes import ExitCode

#: Exit codes by signal of a command that is asked; a service that is stopped has not failed.
CODES = {signal.SIGINT: int(ExitCode.INTERRUPTED), signal.SIGTERM: 0}


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


class Stop:
    """Whether somebody wants an end.

    Parameters
    ----------
    tell : callable
        Called when somebody does.

    Attributes
    ----------
    is_asked : bool
        Somebody does.
    code : int
        Exit code that goes with it.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell = tell
        self.is_asked = False
        self.code = 0

    def ask(self, number: int, frame: object) -> None:
        """Take note; who asks again has no patience left."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked, self.code = True, CODES[signal.Signals(number)]
        self.tell()


@contextmanager
def wish_to_stop(tell: Callable[[], None]) -> Iterator[Stop]:
    """Take signals as a wish: tell it, and go on.

    Parameters
    ----------
    tell : callable
        Called when a signal has come.

    Yields
    ------
    Stop
        Knows the exit code.
    """
    stop = Stop(tell)
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers
        return
    before = {number: signal.signal(number, stop.ask) for number in CODES}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
