"""Progress of a fit: a bar, or calls of a function."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO, TypeAlias

#: Called with the stage, the member, and how many of how many steps are done.
Progress: TypeAlias = Callable[[str, str, int, int], None]


class ProgressBar:
    """Show the stage, the member and the share done, on one line that is rewritten.

    Where lines cannot be rewritten, as in the log of a build, every stage has one line.

    Parameters
    ----------
    stream : file-like, default=None
        Where to write; the standard error stream if None.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        # a notebook is no terminal, but rewrites lines
        self._rewrites = self.stream.isatty() or "ipykernel" in sys.modules
        self._stage = ""
        self._longest = 0

    def __call__(self, stage: str, member: str, done: int, total: int) -> None:
        """Redraw the line, or begin one for a new stage."""
        if self._rewrites:
            width = 24
            filled = round(width * done / max(total, 1))
            bar = "#" * filled + "." * (width - filled)
            line = f"[{bar}] {stage}: {member} ({done}/{total})"
            self._longest = max(self._longest, len(line))
            self.stream.write("\r" + line.ljust(self._longest))
            self.stream.flush()
        elif stage != self._stage:
            self.stream.write(f"{stage}: {total} steps\n")
            self.stream.flush()
        self._stage = stage

    def close(self) -> None:
        """End the line, if there is one."""
        if self._longest:
            self.stream.write("\n")
            self.stream.flush()


def silent(stage: str, member: str, done: int, total: int) -> None:
    """Show nothing."""


_progress: ContextVar[Progress] = ContextVar("progress", default=silent)


def current_progress() -> Progress:
    """Return what to call at every step; ask before threads start, which do not inherit it."""
    return _progress.get()


@contextmanager
def show_progress(callback: Progress | None = None) -> Iterator[None]:
    """Show what the fits inside a ``with`` block are doing.

    Parameters
    ----------
    callback : callable, default=None
        Called as ``callback(stage, member, done, total)`` at every step; by
        default a bar on the standard error stream shows it. What is learned does
        not depend on it.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse import FusedDetector, show_progress
    >>> stages = []
    >>> with show_progress(lambda stage, member, done, total: stages.append(stage)):
    ...     detector = FusedDetector("light", random_state=0).fit(load_iris().data)
    >>> sorted(set(stages))
    ['fit', 'fusion', 'out-of-fold scores']
    """
    bar = ProgressBar()
    token = _progress.set(bar if callback is None else callback)
    try:
        yield
    finally:
        _progress.reset(token)
        bar.close()
