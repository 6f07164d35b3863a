"""A progress bar on the standard error stream."""

import sys
from collections.abc import Callable
from typing import TextIO, TypeAlias

#: Called with the stage, the member, and how many of how many steps are done.
Progress: TypeAlias = Callable[[str, str, int, int], None]

WIDTH = 24


class ProgressBar:
    """Show the stage, the member and the share done, on one line that is rewritten.

    Parameters
    ----------
    stream : file-like, default=None
        Where to write; the standard error stream if None.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self._longest = 0

    def __call__(self, stage: str, member: str, done: int, total: int) -> None:
        """Redraw the line."""
        filled = round(WIDTH * done / max(total, 1))
        bar = "#" * filled + "." * (WIDTH - filled)
        line = f"[{bar}] {stage}: {member} ({done}/{total})"
        self._longest = max(self._longest, len(line))
        self.stream.write("\r" + line.ljust(self._longest))
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        self.stream.write("\n")
        self.stream.flush()


def silent(stage: str, member: str, done: int, total: int) -> None:
    """Show nothing."""
