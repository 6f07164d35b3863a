"""From the scores of samples to events: hysteresis and least duration."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.detectors.base import require_count
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.runs import one_run

#: Samples without a score that an event outlasts.
MAX_UNSCORED = 10
#: Way from the threshold to the usual score at which an event ends.
WAY_BACK = 0.25


@dataclass(frozen=True)
class Event:
    """A stretch of samples that is one alarm.

    Parameters
    ----------
    start, stop : int
        Its first sample and the one after its last, counted from 0.
    raised : int
        Sample at which it was told: later than `start` if a least duration was asked for.
    lowest : float
        Its lowest score.
    """

    start: int
    stop: int
    raised: int
    lowest: float

    def __len__(self) -> int:
        return self.stop - self.start


def leave_score(offset: float, normal_scores: ArrayLike) -> float:
    """Return a quarter of the way from the threshold to the median of normal scores.

    An event that ends there does not become many when scores stay near the threshold.
    """
    return float(offset + WAY_BACK * max(float(np.median(np.asarray(normal_scores))) - offset, 0.0))


class EventTracker:
    """Turn scores into events, one after another, as they come.

    An event is raised after `min_duration` scores in a row below `enter`, and ends
    with the first score that is not below `leave`. Up to `max_unscored` samples in a row
    without a score (NaN) change nothing; after more the event has ended at its last score,
    as nobody knows what has been since. That is so after a gap in time, too, if windows
    are longer than this.

    Parameters
    ----------
    enter : float
        Scores below it start an event.
    leave : float, optional
        Scores from it on end the event; at least `enter`, which is the default. A higher
        one keeps a score near the threshold from raising many short events.
    min_duration : int, default=1
        Scores in a row that it takes to raise an event.
    max_unscored : int, default=10
        Samples in a row without a score that an event outlasts.

    Attributes
    ----------
    n_seen : int
        Scores seen so far.
    is_on : bool
        An event has been raised and has not ended.

    Examples
    --------
    >>> from ocfuse.streaming import EventTracker
    >>> tracker = EventTracker(enter=0.0, leave=0.5, min_duration=2)
    >>> [tracker.update(score) for score in (1.0, -1.0, -2.0, 0.3, 0.9)][-1]
    Event(start=1, stop=4, raised=2, lowest=-2.0)
    """

    def __init__(
        self,
        enter: float,
        leave: float | None = None,
        min_duration: int = 1,
        max_unscored: int = MAX_UNSCORED,
    ) -> None:
        self.enter, self.leave = _thresholds(enter, leave)
        require_count("min_duration", min_duration, 1, "It counts scores.")
        require_count("max_unscored", max_unscored, 0, "It counts samples.")
        self.min_duration, self.max_unscored = int(min_duration), int(max_unscored)
        self.n_seen = 0
        self.is_on = False
        self._start = self._raised = self._last = -1
        self._count = 0
        self._lowest = math.inf

    def update(self, score: float) -> Event | None:
        """Take the next score; return the event that it ends, if it ends one."""
        here = self.n_seen
        self.n_seen += 1
        if math.isnan(score):
            lost = here - self._last > self.max_unscored
            return self._end(self._last + 1) if lost else None
        self._last = here
        if score >= (self.leave if self.is_on else self.enter):
            return self._end(here)
        if self._count == 0:
            self._start = here
        self._count += 1
        self._lowest = min(self._lowest, float(score))
        if not self.is_on and self._count >= self.min_duration:
            self.is_on, self._raised = True, here
        return None

    def finish(self) -> Event | None:
        """Return the event that still lasts, if one does, as if the stream ended here."""
        return self._end(self._last + 1)

    def _end(self, stop: int) -> Event | None:
        ended = Event(self._start, stop, self._raised, self._lowest) if self.is_on else None
        self.is_on, self._count, self._lowest = False, 0, math.inf
        return ended


def events(
    scores: ArrayLike,
    enter: float,
    leave: float | None = None,
    min_duration: int = 1,
    max_unscored: int = MAX_UNSCORED,
) -> list[Event]:
    """Return the events of a run.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of its samples, higher = more normal; NaN where there is none.
    enter, leave : float
        Thresholds as in `EventTracker`.
    min_duration, max_unscored : int
        Samples as in `EventTracker`.

    Returns
    -------
    list of Event
        In the order of time.

    Examples
    --------
    >>> from ocfuse.streaming import events
    >>> [(event.start, event.stop) for event in events([1, -1, -1, 1, -1, 1], enter=0)]
    [(1, 3), (4, 5)]
    """
    tracker = EventTracker(enter, leave, min_duration, max_unscored)
    found = [tracker.update(float(score)) for score in one_run(scores)]
    return [event for event in [*found, tracker.finish()] if event is not None]


def _thresholds(enter: float, leave: float | None) -> tuple[float, float]:
    end = enter if leave is None else leave
    if math.isnan(enter) or not end >= enter:
        raise InvalidInputError(
            "leave must be at least enter, so that an event ends when scores are normal again. "
            f"Got enter={enter!r}, leave={leave!r}."
        )
    return float(enter), float(end)
