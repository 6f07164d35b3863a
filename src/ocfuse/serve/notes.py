"""Warnings of the library as notes to the client whose rows they are about."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ocfuse.exceptions import OcfuseWarning

#: Most notes on one request, and their length.
MOST_NOTES, LONGEST_NOTE = 10, 500

#: What Python does with warnings is a matter of the whole process: threads take turns.
_TURN = threading.Lock()


@contextmanager
def noted() -> Iterator[list[str]]:
    """Give the warnings of ours inside when it is left, each once.

    Nothing of them reaches the log: they may quote rows.

    Yields
    ------
    list of str
        Filled when the context is left.
    """
    notes: list[str] = []
    with _TURN, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", OcfuseWarning)
        yield notes
    told = dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    notes.extend(note[:LONGEST_NOTE] for note in list(told)[:MOST_NOTES])
