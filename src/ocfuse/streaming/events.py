"""Events from scores, figures per run, and cumulative sums."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import require_count
from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.clock import to_seconds
from ocfuse.validation import check_number

#: Samples without a score that an event outlasts.
MAX_UNSCORED = 10


@dataclass(frozen=True)
class Event:
    """Consecutive samples that belong to one alarm.

    Parameters
    ----------
    start, stop : int
        Number of its first sample, and of the sample after its last one, counted from 0.
    raised : int
        Sample at which it was raised: later than `start` if `min_duration` is more than 1.
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
    """Return the threshold plus a quarter of its distance to the median of normal scores.

    An event that ends only there does not fall into many while scores stay near the threshold.
    """
    return float(offset + 0.25 * max(float(np.median(np.asarray(normal_scores))) - offset, 0.0))


@dataclass(frozen=True)
class EventRule:
    """Rule that joins scores below the threshold to events.

    Parameters
    ----------
    min_duration : int, default=3
        Consecutive scores below the threshold after which an alarm is raised.
    hold : int, default=120
        An alarm within so many samples after the end of the last one belongs to the same event.
    """

    min_duration: int = 3
    hold: int = 120


class EventTracker:
    """Join low scores of a live stream to events.

    An alarm is raised after `min_duration` consecutive scores below `enter`. It ends with the
    first score that is not below `leave`, or at its last score if more than `max_unscored`
    consecutive samples have none (NaN), such as after a gap in time with longer windows. Alarms
    that follow each other within `hold` samples are one event.

    Parameters
    ----------
    enter : float
        Scores below it start an alarm.
    leave : float, optional
        The first score that is not below it ends the alarm. It must be at least `enter`, the
        default. A higher value avoids many short events while scores are near the threshold.
    min_duration : int, default=1
        Consecutive scores below `enter` after which an alarm is raised.
    max_unscored : int, default=10
        Most consecutive samples without a score within an alarm.
    hold : int, default=0
        An alarm that is raised within so many samples after the end of the last one belongs to the
        same event. The event ends when they have passed.

    Attributes
    ----------
    n_seen : int
        Scores seen so far.
    is_on : bool
        Whether an event was raised and has not ended.
    is_held : bool
        Whether the alarm of the open event has ended; the next alarm may still belong to it.

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
        hold: int = 0,
    ) -> None:
        self.enter, self.leave = _thresholds(enter, leave)
        require_count("min_duration", min_duration, 1, "It counts scores.")
        require_count("max_unscored", max_unscored, 0, "It counts samples.")
        require_count("hold", hold, 0, "It counts samples.")
        self.min_duration, self.max_unscored = int(min_duration), int(max_unscored)
        self.hold = int(hold)
        self.n_seen = 0
        self.is_held = False
        self._event: Event | None = None  # so far
        self._last = -1  # sample with the last score
        self._start, self._count, self._lowest = -1, 0, math.inf  # of the scores in a row

    @property
    def is_on(self) -> bool:
        """Whether an event was raised and has not ended."""
        return self._event is not None

    @property
    def is_alarm(self) -> bool:
        """Whether an alarm of the open event has not ended."""
        return self.is_on and not self.is_held

    def update(self, score: float) -> Event | None:
        """Add the next score; return the event that it ends, or None."""
        here = self.n_seen
        self.n_seen += 1
        if math.isnan(score):
            if here - self._last > self.max_unscored:
                self._pause(self._last + 1)
        else:
            self._last = here
            if score < (self.leave if self.is_alarm else self.enter):
                self._fall(here, float(score))
            else:
                self._pause(here)
        event = self._event
        is_over = event is not None and self.is_held and here - event.stop >= self.hold
        return self._end() if is_over else None

    def run(self, scores: ArrayLike) -> list[Event]:
        """Add the scores of a whole run; return all its events."""
        found = [self.update(float(score)) for score in one_run(scores)]
        return [event for event in [*found, self.finish()] if event is not None]

    def finish(self) -> Event | None:
        """End the stream here; return the event that is open, or None."""
        self._pause(self._last + 1)
        return self._end()

    def _end(self) -> Event | None:
        ended, self._event, self.is_held = self._event, None, False
        return ended

    def _fall(self, here: int, score: float) -> None:
        """Take a score below the threshold."""
        if self._count == 0:
            self._start = here
        self._count += 1
        self._lowest = min(self._lowest, score)
        event = self._event
        if event is not None and not self.is_held:
            self._event = replace(event, lowest=min(event.lowest, score))
        elif self._count >= self.min_duration:
            fresh = Event(self._start, -1, here, self._lowest)
            lowest = math.inf if event is None else event.lowest
            self._event = replace(event or fresh, lowest=min(fresh.lowest, lowest))
            self.is_held = False

    def _pause(self, stop: int) -> None:
        """End the scores in a row, and the alarm if one is on."""
        self._count, self._lowest = 0, math.inf
        if self._event is not None and not self.is_held:
            self._event, self.is_held = replace(self._event, stop=stop), True


def _thresholds(enter: float, leave: float | None) -> tuple[float, float]:
    end = enter if leave is None else leave
    if math.isnan(enter) or not end >= enter:
        raise InvalidInputError(
            "leave must be at least enter, so that an event ends when scores are normal again. "
            f"Got enter={enter!r}, leave={leave!r}."
        )
    return float(enter), float(end)


def events(
    scores: ArrayLike,
    enter: float,
    leave: float | None = None,
    min_duration: int = 1,
    max_unscored: int = MAX_UNSCORED,
    hold: int = 0,
) -> list[Event]:
    """Return the events of a run.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of its samples, higher is more normal; NaN for samples without a score.
    enter, leave : float
        Thresholds as in `EventTracker`.
    min_duration, max_unscored, hold : int
        Samples as in `EventTracker`.

    Returns
    -------
    list of Event
        The events, in the order of time.

    Examples
    --------
    >>> from ocfuse.streaming import events
    >>> [(event.start, event.stop) for event in events([1, -1, -1, 1, -1, 1], enter=0)]
    [(1, 3), (4, 5)]
    """
    return EventTracker(enter, leave, min_duration, max_unscored, hold).run(scores)


def run_score(scores: ArrayLike, quantile: float = 0.0) -> float:
    """Return one score for a whole run; higher is more normal.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of its samples; NaN for samples without a score.
    quantile : float, default=0.0
        Quantile of the scores to return. 0 is the lowest score; a small share such as 0.02 ignores
        so many of the lowest scores.

    Returns
    -------
    float
        The score of the run; NaN if no sample has one.

    Examples
    --------
    >>> from ocfuse.streaming import run_score
    >>> run_score([0.3, -2.0, float("nan"), 0.1])
    -2.0
    """
    if not 0 <= quantile < 1:
        raise InvalidInputError(f"quantile must be in [0, 1). Got {quantile!r}.")
    values = one_run(scores)
    values = values[~np.isnan(values)]
    return float(np.quantile(values, quantile, method="lower")) if len(values) else np.nan


def one_run(scores: ArrayLike) -> FloatArray:
    """Return the scores of one run, in which NaN stands for none, or refuse them."""
    with suppress(TypeError, ValueError):
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim == 1:
            return values
    raise InvalidInputError(
        "scores must be numbers of shape (n_samples,), those of one run. "
        f"Got {type(scores).__name__} of shape {np.shape(np.asarray(scores, dtype=object))}."
    )


def time_to_detection(y: ArrayLike, alarms: ArrayLike, time: Any = None) -> FloatArray:
    """Return the delay of the first alarm in each anomaly of a run.

    If an alarm is already on when the anomaly begins, the delay is 0. So delays only mean
    something for a detector with few false alarms.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples, +1 normal, -1 anomalous.
    alarms : array-like of shape (n,)
        True, or -1 as from `predict`, for samples with an alarm.
    time : array-like of shape (n,), optional
        Times of the samples, numbers or dates; None counts samples.

    Returns
    -------
    ndarray, one per anomaly
        Delays in samples, in units of `time`, or in seconds for dates; NaN for missed anomalies.

    Examples
    --------
    >>> from ocfuse.streaming import time_to_detection
    >>> time_to_detection([1, -1, -1, -1, 1, -1], [False, False, False, True, False, False])
    array([ 2., nan])
    """
    anomalous = np.asarray(y) < 0
    on = np.asarray(alarms)
    on = on if on.dtype == bool else on < 0
    times = np.arange(len(on), dtype=np.float64) if time is None else to_seconds(time)
    if not len(anomalous) == len(on) == len(times):
        raise InvalidInputError(
            "y, alarms and time must have one entry per sample. "
            f"Got {len(anomalous)}, {len(on)} and {len(times)}."
        )
    edges = np.flatnonzero(np.diff(np.r_[False, anomalous, False]))
    delays = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        found = np.flatnonzero(on[start:stop])
        delays.append(times[start + found[0]] - times[start] if len(found) else np.nan)
    return np.array(delays, dtype=np.float64)


class Cusum:
    """Cumulative sum of small deviations of live scores.

    The sum is ``s_t = min(0, s_{t-1} + z_t - centre + slack)`` with ``s_0 = 0`` and scores z_t. It
    stays near 0 for scores around `centre`, and falls further and further while scores are more
    than `slack` below `centre`. NaN (no score) does not change it.

    Parameters
    ----------
    centre : float
        Usual score, such as the median of the held-out training scores.
    slack : float, default=0.0
        Deviation that is ignored in each sample, such as half of the spread of these scores.

    Attributes
    ----------
    total : float
        Current value of the sum.

    Examples
    --------
    >>> from ocfuse.streaming import Cusum
    >>> sums = Cusum(centre=0.0, slack=0.5)
    >>> [sums.update(score) for score in (1.0, -1.0, -1.0, 3.0)]
    [0.0, -0.5, -1.0, 0.0]
    """

    def __init__(self, centre: float, slack: float = 0.0) -> None:
        usual = "The median of normal scores is usual."
        self.centre = check_number(centre, "centre", -math.inf, math.inf, usual)
        self.slack = check_number(slack, "slack", 0.0, math.inf, "0 forgives nothing.")
        self.total = 0.0

    def update(self, score: float) -> float:
        """Add the next score; return the sum."""
        if not math.isnan(score):
            self.total = min(0.0, self.total + float(score) - (self.centre - self.slack))
        return self.total


def cusum(scores: ArrayLike, centre: float, slack: float = 0.0) -> FloatArray:
    """Return the cumulative sums of a run; see `Cusum`.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of a run in the order of time; NaN for samples without a score.
    centre, slack : float
        As in `Cusum`.

    Returns
    -------
    ndarray of shape (n,)
        The sums. Sums of normal runs give a threshold for `events`.

    Examples
    --------
    >>> from ocfuse.streaming import cusum
    >>> cusum([1.0, -1.0, -1.0, 3.0], centre=0.0, slack=0.5)
    array([ 0. , -0.5, -1. ,  0. ])
    """
    sums = Cusum(centre, slack)
    return np.array([sums.update(score) for score in one_run(scores)])
