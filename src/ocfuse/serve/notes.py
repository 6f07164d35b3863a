"""Warnings of the library as notes to the client whose rows they are about."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ocfuse.exceptions import OcfuseWarning

#: Most notes on one request, and their length.
MOST_NOTES, LONGEST_NOTE = 10, 500


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

    def enter(self, told: dict[str, None]) -> dict[str, None] | None:
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
        before: dict[str, None] | None = getattr(self._here, "told", None)
        self._here.told = told
        return before

    def leave(self, before: dict[str, None] | None) -> None:
        """Collect no more, or as before."""
        self._here.told = before
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
        told = getattr(self._here, "told", None)
        if told is None:
            self._show(message, category, filename, lineno, file, line)
        elif issubclass(category, OcfuseWarning):
            told[" ".join(str(message).split())] = None


_ROUTER = _Router()


@contextmanager
def noted() -> Iterator[list[str]]:
    """Give the warnings of ours inside when it is left, each once.

    They are those of this thread, whatever other threads do meanwhile. Nothing of them
    reaches the log: they may quote rows.

    Yields
    ------
    list of str
        Filled when the context is left.
    """
    notes: list[str] = []
    told: dict[str, None] = {}
    before = _ROUTER.enter(told)
    try:
        yield notes
    finally:
        _ROUTER.leave(before)
    notes.extend(note[:LONGEST_NOTE] for note in list(told)[:MOST_NOTES])
