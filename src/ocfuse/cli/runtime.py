"""Commands by name, exit codes and signals."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

#: Their modules, imported when they are called as some need scikit-learn, which takes long; and
#: what the help says.
COMMANDS = {
    "demo": (
        "ocfuse.cli.demo",
        "Learn from normal rows, raise alarms on new ones, say why, and write a report.",
    ),
    "fit": (
        "ocfuse.cli.fit",
        "Learn what is normal from a table, sensors or pictures, and write a model.",
    ),
    "score": ("ocfuse.cli.score", "Score the rows of a table by a model."),
    "explain": ("ocfuse.cli.explain", "Say what lies behind the scores of some rows."),
    "watch": (
        "ocfuse.cli.watch",
        "Score rows or frames as they come, and tell the alarms at once.",
    ),
    "serve": (
        "ocfuse.cli.serve",
        "Serve models: scores, explanations and streams over HTTP, and a live page.",
    ),
    "inspect": ("ocfuse.cli.inspect", "Show what a model is and what it learned from."),
    "compare": (
        "ocfuse.cli.compare",
        "Compare the default detector, its members, all rules and all fusions on your own data.",
    ),
    "simulate": (
        "ocfuse.lab.simulate",
        "Record a simulated robot that picks and places, with anomalies in some runs.",
    ),
    "data": ("ocfuse.cli.data", "List, fetch and show data sets."),
    "bench": ("ocfuse.lab.bench", "Run the paper's experiment again."),
}
#: Those among them that are groups of commands and have no settings in a file.
GROUPS = ("data", "bench")
#: Commands that take pictures, too, with ``--video``.
VIDEO = ("fit", "watch")
#: Commands that take runs of sensors, too, with ``--stream``.
STREAM = ("fit",)


class ExitCode(IntEnum):
    """0 is fine."""

    ANOMALIES = 1  # only where --fail-on-anomaly or --fail-above asks for it
    BAD_USAGE = 2  # or a package that is missing
    BAD_DATA = 3  # data, model or file that cannot be used
    INTERNAL = 4
    # as shells number the signals that end a program
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


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
