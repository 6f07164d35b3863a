"""Commands by name, exit codes and signals."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

#: Module and help of every command. A module is imported when its command is called: some need
#: scikit-learn, which takes long.
COMMANDS = {
    "demo": (
        "ocfuse.cli.demo",
        "Learn from normal rows, raise alarms on new ones, explain them, and write a report.",
    ),
    "fit": (
        "ocfuse.cli.fit",
        "Learn what is normal from a table, sensors or pictures, and write a model.",
    ),
    "plan": (
        "ocfuse.cli.plan",
        "Predict the memory and time that ocfuse fit would take, without fitting.",
    ),
    "score": ("ocfuse.cli.score", "Score the rows of a table, or pictures, with a model."),
    "adapt": (
        "ocfuse.cli.adapt",
        "Learn from unlabelled rows which members to trust, and write a new model.",
    ),
    "update": (
        "ocfuse.cli.update",
        "Learn more normal rows without a new fit, and write a new model.",
    ),
    "explain": (
        "ocfuse.cli.explain",
        "Show why rows or pictures have their scores: which columns or places are unusual.",
    ),
    "watch": (
        "ocfuse.cli.watch",
        "Score rows or frames as they arrive, and print alarms at once.",
    ),
    "serve": (
        "ocfuse.cli.serve",
        "Serve models over HTTP: scores, explanations, streams and a live page.",
    ),
    "mcp": (
        "ocfuse.cli.mcp",
        "Serve tools to an assistant (MCP): inspect, plan, fit, score, explain, compare, report.",
    ),
    "inspect": ("ocfuse.cli.inspect", "Show the settings of a model and what it learned from."),
    "export": (
        "ocfuse.cli.export",
        "Write a model as an ONNX file, to run it in other languages, on devices or in web pages.",
    ),
    "compare": (
        "ocfuse.cli.compare",
        "Compare the default detector, its members, all rules and all fusions on your own data.",
    ),
    "simulate": (
        "ocfuse.lab.simulate",
        "Record a simulated robot, motor (--motor) or belt (--belt), with anomalies in some runs.",
    ),
    "data": ("ocfuse.cli.data", "List, fetch and show data sets."),
    "bench": ("ocfuse.lab.bench", "Run the paper's experiment again."),
}


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


class Terminated(SystemExit):
    """Unwind the program, so that temporary files are removed."""


class Stop:
    """Whether a signal has asked for an end, and the exit code that goes with it."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self.notify = notify
        self.is_asked = False
        self.code = 0

    def ask(self, number: int, frame: object) -> None:
        """Handle a signal: the first one asks for an end, the second one forces it."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
        # a service that is stopped by SIGTERM has not failed
        self.code = int(ExitCode.INTERRUPTED) if number == signal.SIGINT else 0
        self.notify()


@contextmanager
def wish_to_stop(notify: Callable[[], None]) -> Iterator[Stop]:
    """Call a function at the first SIGINT or SIGTERM inside, and go on."""
    stop = Stop(notify)
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers
        return
    before = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
