"""Lines of JSON on stderr: what happens, and never a value of a row nor a secret."""

import json
import logging
import math
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

LOGGER = logging.getLogger("ocfuse.serve")
#: Warnings or errors that are alike and are written in so many seconds, and kinds that are told
#: apart: what strangers do must not fill the disk.
MOST_ALIKE, MINUTE, MOST_KINDS = 20, 60.0, 1000
#: Frames of a fault that are named, the innermost ones.
MOST_FRAMES = 8
LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Sparing(logging.Filter):
    """Let few warnings and errors that are alike through in a minute, and tell how many more.

    Parameters
    ----------
    clock : callable
        Tells the seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = -math.inf
        self._alike: Counter[tuple[str, int, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is written; the first of a new minute counts those left out."""
        now = self._clock()
        if now - self._since >= MINUTE:
            self._since, before, self._alike = now, self._alike, Counter()
            left_out = {words: n - MOST_ALIKE for (_, _, words), n in before.items()}
            left_out = {words: n for words, n in left_out.items() if n > 0}
            if left_out:
                record.about = getattr(record, "about", {}) | {"left_out_before": left_out}
        if record.levelno < logging.WARNING:
            return True
        key = record.name, record.levelno, _words(record)
        if len(self._alike) < MOST_KINDS or key in self._alike:
            self._alike[key] += 1
        return self._alike[key] <= MOST_ALIKE


class Lines(logging.Formatter):
    """Write records as JSON, one line each.

    Text of an error is left out: it may quote a row. Where it happened is told.
    """

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
        return json.dumps(content, default=str)


def _words(record: logging.LogRecord) -> str:
    """Return what happened; of messages of others no more than may quote nothing."""
    words = record.getMessage()
    return words if record.name.startswith(LOGGER.name) else re.split("[\n(<]", words)[0].strip()


def tell(event: str, /, *, level: str = "info", **about: Any) -> None:
    """Log something that happened.

    Parameters
    ----------
    event : str
        Its name, one word.
    level : {"info", "warning", "error"}
        How much it matters.
    **about : object
        What there is to tell: names and counts, never values of rows.
    """
    LOGGER.log(LEVELS[level], event, extra={"about": about})


def fault(error: BaseException) -> dict[str, Any]:
    """Return the kind of an error and where it happened, without its words."""
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    return {
        "error": type(error).__name__,
        "where": [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames],
    }


def write_lines(only_errors: bool = False) -> None:
    """Let this process log to stderr, the server's own messages included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    handler.addFilter(Sparing())
    for name, level in (
        ("ocfuse.serve", logging.WARNING if only_errors else logging.INFO),
        ("uvicorn.error", logging.WARNING),
        ("asyncio", logging.ERROR),
        ("concurrent.futures", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
