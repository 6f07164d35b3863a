"""The state of a live stream in a file, so that a restart of the program is no restart of it."""

import hashlib
import os
import time
from pathlib import Path
from typing import ClassVar

from ocfuse.exceptions import InvalidInputError, OcfuseError
from ocfuse.persistence import load, save
from ocfuse.streaming.clock import StreamState
from ocfuse.streaming.events import EventTracker
from ocfuse.streaming.slow import SlowChange
from ocfuse.streaming.table import StreamTable


class SavedStream:
    """What a live stream of a model remembers: its windows, clock, slow means, run and alarm.

    Sensors are watched anew, and what has been counted is counted from 0.

    Parameters
    ----------
    model : StreamTable
        The model of the stream.
    tracker : EventTracker, optional
        What makes events of its scores.
    slow : SlowChange, optional
        What follows its slow changes.

    Attributes
    ----------
    state : StreamState
        State of the stream.
    run : str or None
        Run that it is in.
    saved : float
        When it was written, in seconds since 1970.
    """

    #: Seconds after which a stream without times is a new one: nobody knows what it has missed.
    #: With times, the clock of the stream says so.
    most_seconds: ClassVar[float] = 60.0

    state: StreamState
    run: str | None
    tracker: EventTracker | None
    saved: float
    slow: SlowChange | None = None  # also of files that were written without it

    def __init__(
        self,
        model: StreamTable,
        tracker: EventTracker | None = None,
        slow: SlowChange | None = None,
    ) -> None:
        self.state, self.run, self.tracker = model.stream_.state_, model.run_, tracker
        self.slow = slow
        self.saved = time.time()

    def take_up(self, model: StreamTable) -> None:
        """Let a model, which is at the beginning of a stream, go on where this one was."""
        if self.state.model != model.stream_.state_.model:
            raise InvalidInputError(
                "It is of another model: channels, windows and what was learned must be the same."
            )
        age = time.time() - self.saved
        if not model.has_times and age > self.most_seconds:
            raise InvalidInputError(
                f"It was written {age:.0f} s ago, and rows without times do not tell what was "
                f"missed; {self.most_seconds:.0f} s are the most."
            )
        state = self.state
        state.monitor = None
        state.counts = dict.fromkeys(state.counts, 0)
        model.stream_.state_, model.run_ = state, self.run

    def tracker_like(self, tracker: EventTracker) -> EventTracker:
        """Return the tracker that was saved, or the one given if that makes events otherwise."""
        known = self.tracker
        settings = ("enter", "leave", "min_duration", "max_unscored", "hold")
        if known is None or any(getattr(known, s) != getattr(tracker, s) for s in settings):
            return tracker
        return known


def save_stream(
    path: str | os.PathLike[str],
    model: StreamTable,
    tracker: EventTracker | None = None,
    slow: SlowChange | None = None,
) -> None:
    """Write the state of the live stream of a model to a file, all or nothing."""
    save(SavedStream(model, tracker, slow), path)


def resume_stream(path: str | os.PathLike[str], model: StreamTable) -> SavedStream | None:
    """Let a model go on where the stream was when a file was written; None if there is no file.

    A file that is of no use is an error, in words, and the model stays at the beginning.
    """
    file = Path(path)
    if not file.is_file():
        return None
    try:
        found = load(file)
        if not isinstance(found, SavedStream):
            raise InvalidInputError("It is no state of a stream.")
        found.take_up(model)
    except OcfuseError as error:
        raise InvalidInputError(
            f"The state in {file.name} is left out, and the stream begins anew. {error}"
        ) from None
    return found


class StateFolder:
    """States of streams in a folder, a file for each.

    Parameters
    ----------
    path : Path
        The folder, made if there is none. Files that are a week old go, and all but the latest.
    """

    most_files: ClassVar[int] = 1000
    most_days: ClassVar[float] = 7.0

    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir(exist_ok=True)
        files = sorted(path.glob("*.state"), key=lambda file: -file.stat().st_mtime)
        oldest = time.time() - 86_400 * self.most_days
        for i, file in enumerate(files):
            if i >= self.most_files or file.stat().st_mtime < oldest:
                file.unlink(missing_ok=True)

    def file(self, model: str, stream: str) -> Path:
        """Return the file of a stream, whatever signs its name has."""
        name = hashlib.sha256(f"{len(model)} {model}{stream}".encode("utf-8", "replace"))
        return self._path / f"{name.hexdigest()[:32]}.state"
