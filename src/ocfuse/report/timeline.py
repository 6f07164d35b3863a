"""Scores over time: events, and few enough points to draw."""

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError

#: Points that a line is drawn through.
MOST_POINTS = 5000


@dataclass(frozen=True)
class TimelineEvent:
    """Alarms that follow each other, and the position of the row with the lowest score."""

    start: float
    end: float
    n_alarms: int
    row: int


@dataclass(frozen=True)
class ChannelCourse:
    """What a channel read at the n rows of a report, and what is usual of it.

    Attributes
    ----------
    name : str
        The channel.
    values : ndarray of shape (n,)
        Its values; NaN for gaps.
    low, high : ndarray of shape (n,) or (1,)
        Between these it usually is, at every row or at all of them.
    """

    name: str
    values: FloatArray
    low: FloatArray
    high: FloatArray


def find_events(
    times: FloatArray, scores: FloatArray, is_alarm: NDArray[np.bool_], gap: int = 3
) -> list[TimelineEvent]:
    """Merge alarms that follow each other in time, over at most `gap` quiet rows and no pause."""
    events = []
    for run in find_runs(times, is_alarm, gap):
        lowest = int(run[np.argmin(scores[run])])
        events.append(TimelineEvent(float(times[run[0]]), float(times[run[-1]]), len(run), lowest))
    return events


def find_runs(times: FloatArray, is_marked: NDArray[np.bool_], gap: int = 0) -> list[IntArray]:
    """Return marked rows that follow each other in time, over at most `gap` others."""
    order = in_time(times)
    marked = np.flatnonzero(is_marked[order])
    if not len(marked):
        return []
    section = find_sections(times)[order[marked]]
    ends = (np.diff(marked) > gap + 1) | (np.diff(section) > 0)
    return np.split(order[marked], np.flatnonzero(ends) + 1)


def find_sections(times: FloatArray) -> IntArray:
    """Count the sections of the recording that pauses part, from 0; -1 for rows without a time."""
    order = in_time(times)
    steps = np.diff(times[order])
    # a pause is 20 times as long as the usual step
    is_pause = steps > 20.0 * np.median(steps[steps > 0]) if steps.any() else steps > 0
    if is_pause.sum() > 0.1 * len(steps):  # irregular times
        is_pause[:] = False
    section = np.full(len(times), -1)
    section[order[:1]] = 0
    section[order[1:]] = np.cumsum(is_pause)
    return section


def thin_out(times: FloatArray, scores: FloatArray) -> IntArray:
    """Return the rows to draw, in order of time: of many, the extremes of equal parts."""
    order = in_time(times)
    if len(order) <= MOST_POINTS:
        return order
    drawn = []
    for part in np.array_split(order, MOST_POINTS // 2):
        ends = np.argmin(scores[part]), np.argmax(scores[part])
        drawn.append(part[np.unique(ends)])
    return np.concatenate(drawn)


def in_time(times: FloatArray) -> IntArray:
    """Return the rows that have a time, in its order."""
    order: IntArray = np.argsort(times, kind="stable")
    return order[np.isfinite(times[order])]


def to_times(time: Any, n: int) -> tuple[FloatArray, bool]:
    """Return times as numbers, and whether they are dates (then milliseconds since 1970).

    The n times are numbers, dates of Python, NumPy or pandas, or texts such as
    "2026-11-16 09:30". Rows may have none, all of them too: NaN, NaT or None become NaN.
    """
    values = np.asarray(time)
    if values.shape != (n,):
        raise InvalidInputError(f"time must have one value per row, {n}. Got {values.shape}.")
    is_date = values.dtype.kind not in "iuf"
    times = _from_dates(values) if is_date else values.astype(np.float64)
    return times, is_date


def _from_dates(values: NDArray[Any]) -> FloatArray:
    try:
        if values.dtype.kind in "OU":
            values = np.array([_without_zone(value) for value in values])
        if values.dtype.kind != "M":
            raise TypeError(f"Got {values.dtype}")
        dates = values.astype("datetime64[ms]")
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"time must hold numbers or dates, such as '2026-11-16 09:30'. {error}."
        ) from None
    numbers = dates.astype(np.int64).astype(np.float64)
    numbers[np.isnat(dates)] = np.nan
    return numbers


def _without_zone(value: Any) -> Any:
    """Return a date with a time zone as one in UTC without; NumPy knows no zones."""
    if value is None or value != value:
        return np.datetime64("NaT", "ms")
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "ms")
