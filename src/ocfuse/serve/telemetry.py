"""Metrics for Prometheus, log lines of JSON, and warnings as notes to clients."""

import json
import logging
import math
import re
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, TextIO, TypeVar

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector
from prometheus_client import Counter as PrometheusCounter

from ocfuse.exceptions import OcfuseWarning

T = TypeVar("T")

_log = logging.getLogger("ocfuse.serve")
#: Most notes on one request.
MOST_NOTES = 10


class Metrics:
    """Counters of one service, apart from those of any other in the same process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: Any = {"registry": self.registry}
        seconds = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
        counts = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
        self.requests = PrometheusCounter(
            "ocfuse_requests",
            "Requests that were answered.",
            ("route", "method", "status"),
            **own,
        )
        self.seconds = Histogram(
            "ocfuse_request_seconds",
            "Time from a request to its answer.",
            ("route",),
            buckets=seconds,
            **own,
        )
        self.under_way = Gauge(
            "ocfuse_requests_under_way", "Requests that are not answered yet.", **own
        )
        self.rows = PrometheusCounter(
            "ocfuse_rows", "Rows that were scored.", ("model", "way"), **own
        )
        self.alarms = PrometheusCounter(
            "ocfuse_anomalous_rows", "Rows below the threshold.", ("model", "way"), **own
        )
        self.broken = PrometheusCounter(
            "ocfuse_rule_rows",
            "Rows that break a limit, whatever their score is.",
            ("model", "way"),
            **own,
        )
        self.batch_rows = Histogram(
            "ocfuse_batch_rows",
            "Rows that were scored together.",
            ("model",),
            buckets=counts,
            **own,
        )
        self.batch_requests = Histogram(
            "ocfuse_batch_requests",
            "Requests whose rows were scored together.",
            ("model",),
            buckets=counts,
            **own,
        )
        self.streams = Gauge("ocfuse_streams", "Open streams.", **own)
        self.events = PrometheusCounter(
            "ocfuse_events", "Events that streams began.", ("model",), **own
        )
        self.changes = PrometheusCounter(
            "ocfuse_source_changes", "Sources that have changed (--change).", ("model",), **own
        )
        self.unwritten_events = Gauge(
            "ocfuse_unwritten_events",
            "Events in memory only, as their file cannot be written.",
            **own,
        )
        self.notifications = PrometheusCounter(
            "ocfuse_notifications",
            "Messages on alarms that were delivered, that failed and are tried again, and that "
            "were refused.",
            ("route", "result"),
            **own,
        )
        self.shadow = PrometheusCounter(
            "ocfuse_shadow",
            "What models of --shadow and those that are served have found in the same rows: rows, "
            "rows below the threshold of one only, events of each.",
            ("model", "count"),
            **own,
        )
        self.refused_rows = PrometheusCounter(
            "ocfuse_refused_stream_rows",
            "Rows of streams that could not be scored.",
            ("model",),
            **own,
        )
        self.loads = PrometheusCounter(
            "ocfuse_model_loads",
            "Model files that were loaded, or could not be.",
            ("model", "outcome"),
            **own,
        )
        self.loaded = Gauge(
            "ocfuse_model_loaded_timestamp_seconds",
            "When a model was loaded last.",
            ("model",),
            **own,
        )

    def count_notification(self, route: str, result: str) -> None:
        """Count an attempt to deliver a message."""
        self.notifications.labels(route, result).inc()

    def count_rows(
        self, model: str, way: str, flags: Sequence[bool | None], n_broken: int = 0
    ) -> None:
        """Count rows, those below the threshold (`flags`), and apart those that break a limit."""
        self.rows.labels(model, way).inc(len(flags))
        for counter, n in ((self.alarms, sum(map(bool, flags))), (self.broken, n_broken)):
            if n:
                counter.labels(model, way).inc(n)


class Sparing(logging.Filter):
    """Let few warnings and errors that are alike through in a minute, and count the others.

    What strangers do must not fill the disk.
    """

    #: Records that are alike and are written in a minute.
    most_alike: ClassVar[int] = 20

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = -math.inf
        self._alike: Counter[tuple[str, int, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; the first of a minute counts those left out."""
        now = self._clock()
        if now - self._since >= 60.0:
            self._since, before, self._alike = now, self._alike, Counter()
            left_out = {words: n - self.most_alike for (_, _, words), n in before.items()}
            left_out = {words: n for words, n in left_out.items() if n > 0}
            if left_out:
                record.about = getattr(record, "about", {}) | {"left_out_before": left_out}
        if record.levelno < logging.WARNING:
            return True
        key = record.name, record.levelno, _words(record)
        if len(self._alike) < 1000 or key in self._alike:
            self._alike[key] += 1
        return self._alike[key] <= self.most_alike


class JsonLines(logging.Formatter):
    """Write records as JSON, one line each.

    Text of an error is left out: it may quote a row. Where it happened is written.
    """

    _encoder: ClassVar[json.JSONEncoder] = json.JSONEncoder(default=str)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        when = datetime.fromtimestamp(record.created, timezone.utc)
        content: dict[str, Any] = {
            "time": when.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": _words(record),
        }
        content |= getattr(record, "about", {})
        if record.exc_info and record.exc_info[1] is not None:
            content |= fault(record.exc_info[1])
        return self._encoder.encode(content)


def _words(record: logging.LogRecord) -> str:
    """Return what happened; of messages of others no more than may quote nothing."""
    words = record.getMessage()
    return words if record.name.startswith(_log.name) else re.split("[\n(<]", words)[0].strip()


def log_event(event: str, /, *, level: int = logging.INFO, **about: Any) -> None:
    """Log what happened, named by one word, with names and counts: never values of rows."""
    if _log.isEnabledFor(level):
        # `_log.log` would look for the line of code that called, which takes long and nobody reads
        given = {"about": about}
        _log.handle(_log.makeRecord(_log.name, level, "", 0, event, (), None, extra=given))


def fault(error: BaseException, most_frames: int = 8) -> dict[str, Any]:
    """Return the kind of an error and where it happened, without its words."""
    frames = traceback.extract_tb(error.__traceback__)[-most_frames:]
    return {
        "error": type(error).__name__,
        "where": [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames],
    }


def write_lines(only_errors: bool = False) -> None:
    """Let this process log to stderr, the server's own messages included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Sparing())
    for name, level in (
        ("ocfuse.serve", logging.WARNING if only_errors else logging.INFO),
        ("ocfuse.notify", logging.WARNING),
        ("uvicorn.error", logging.WARNING),
        ("asyncio", logging.ERROR),
        ("concurrent.futures", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


class _Router:
    """Give each warning to the thread that it was raised in; nobody waits for anybody.

    What Python does with warnings is a matter of the whole process. So it is changed while
    any thread collects, and put back when the last one has done.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()  # held for no longer than the filters are set
        self._here = threading.local()
        self._n_inside = 0
        self._before: warnings.catch_warnings[Any] | None = None
        self._show = warnings.showwarning

    def enter(self, notes: dict[str, None]) -> dict[str, None] | None:
        """Collect what this thread warns of; return what collected before."""
        with self._turn:
            if self._before is None:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                self._show = warnings.showwarning
            self._n_inside += 1
            # again each time: others who catch warnings may have put back something else
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", OcfuseWarning)
            warnings.showwarning = self._route
        before: dict[str, None] | None = getattr(self._here, "notes", None)
        self._here.notes = notes
        return before

    def leave(self, before: dict[str, None] | None) -> None:
        """Collect no more, or as before."""
        self._here.notes = before
        with self._turn:
            self._n_inside -= 1
            if self._n_inside == 0 and self._before is not None:
                self._before.__exit__(None, None, None)
                self._before = None

    def _route(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        notes = getattr(self._here, "notes", None)
        if notes is None:
            self._show(message, category, filename, lineno, file, line)
        elif issubclass(category, OcfuseWarning):
            notes[" ".join(str(message).split())] = None


_router = _Router()


@contextmanager
def noted() -> Iterator[list[str]]:
    """Yield a list that has our warnings inside when the context is left, each once.

    They are those of this thread, whatever other threads do meanwhile. Nothing of them
    reaches the log: they may quote rows.
    """
    notes: list[str] = []
    found: dict[str, None] = {}
    before = _router.enter(found)
    try:
        yield notes
    finally:
        _router.leave(before)
    notes.extend(note[:500] for note in list(found)[:MOST_NOTES])


def with_notes(task: Callable[..., T], *given: Any) -> tuple[T, list[str]]:
    """Return the result of a task, and our warnings as notes."""
    with noted() as notes:
        result = task(*given)
    return result, notes
