"""Detection of failing sensors from raw samples and the training range of each channel.

A `ChannelMonitor` reports when a channel is missing, is stuck or leaves its range, and when the
rate of rows changes. `SensorLimits` are the limits from training.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import number_text
from ocfuse.streaming.course import Course
from ocfuse.streaming.view import StreamView

#: Steps in time whose median is the rate of rows.
N_STEPS = 21
#: Rows in which a sensor must be well before what was wrong is over: it may come and go.
N_WELL = 10
#: Kinds of sensor events.
SENSOR_KINDS = ("missing", "stuck", "range", "rate")


@dataclass(frozen=True)
class SensorLimits:
    """Limits of each of c channels, and of the rate of rows, from training.

    A limit is the number of rows that a state may last: twice the longest time in training, and a
    few rows. It is inf if training does not show one.

    Attributes
    ----------
    names : list of str
        The channels.
    usual_low, usual_high : ndarray of shape (c,)
        Range of the middle 95 % of the training values.
    low, high : ndarray of shape (c,)
        Range of the training values without the outermost thousandths, widened on each side by
        half of its width.
    missing, stuck, outside : ndarray of shape (c,)
        Limits of the rows without a value, with a repeated value, and outside of the range.
    step, shortest, longest : float
        Usual step in time, and the shortest and longest median of 21 steps that is allowed.
    is_dated : bool
        Whether times were dates, so that steps are seconds.
    course : Course or None
        Usual values at each context, in the units of the channels.
    sign : ndarray of shape (c,) or None
        1 for channels that only leave their range at its upper end, -1 at its lower one, 0 at
        both; None is 0 for all.
    """

    names: list[str]
    usual_low: FloatArray
    usual_high: FloatArray
    low: FloatArray
    high: FloatArray
    missing: FloatArray
    stuck: FloatArray
    outside: FloatArray
    step: float = math.inf
    shortest: float = 0.0
    longest: float = math.inf
    is_dated: bool = False
    course: Course | None = None
    sign: IntArray | None = None

    def are_outside(self, samples: FloatArray) -> BoolArray:
        """Return which values are out of the range of their channels, on a side that counts."""
        is_low, is_high = samples < self.low, samples > self.high
        if self.sign is not None:
            is_low, is_high = is_low & (self.sign <= 0), is_high & (self.sign >= 0)
        return is_low | is_high

    @classmethod
    def learn(
        cls,
        samples: FloatArray,
        names: Sequence[str],
        slices: Sequence[slice],
        *,
        has_level: BoolArray | None = None,
        times: FloatArray | None = None,
        step: float = math.inf,
        is_dated: bool = False,
        context: FloatArray | None = None,
    ) -> "SensorLimits":
        """Learn from normal runs.

        Parameters
        ----------
        samples : ndarray of shape (n, c)
            Samples run after run, NaN for gaps.
        names : sequence of str
            The channels.
        slices : sequence of slice
            Where each run is.
        has_level : ndarray of shape (c,), optional
            Channels with a level known from training; None is all. Others have no range.
        times : ndarray of shape (n,), optional
            Times.
        step : float, default=inf
            Usual step in time.
        is_dated : bool, default=False
            Whether times are seconds.
        context : ndarray of shape (n, k), optional
            Context; with one column, usual values depend on it.

        Returns
        -------
        SensorLimits
            The limits.
        """
        usual_low, low, high, usual_high = np.nanquantile(
            samples, [0.025, 0.001, 0.999, 0.975], axis=0
        )
        # a constant channel has no width: more than rounding is another value
        margin = np.maximum(0.5 * (high - low), 1e-6 * np.maximum(np.abs(low), np.abs(high)))
        low, high = low - margin, high + margin
        empty = np.zeros(samples.shape[1], dtype=np.int64)
        present = ~np.isnan(samples)
        gaps, still, outside = empty, empty, empty
        for run in slices:
            here, has = samples[run], present[run]
            last = np.full(samples.shape[1], np.nan)
            gaps = np.maximum(gaps, _run_lengths(~has, np.ones_like(has), empty).max(axis=0))
            still = np.maximum(still, _run_lengths(_repeats(here, last), has, empty).max(axis=0))
            is_out = (here < low) | (here > high)
            outside = np.maximum(outside, _run_lengths(is_out, has, empty).max(axis=0))
        level = np.ones(len(empty), dtype=bool) if has_level is None else has_level
        shortest, longest = _usual_rates(times, slices)
        return cls(
            names=list(names),
            usual_low=usual_low,
            usual_high=usual_high,
            low=low,
            high=high,
            missing=np.asarray(2.0 * gaps + 5.0, dtype=np.float64),
            stuck=np.where(_keep_moving(samples, slices, still), 2.0 * still + 10.0, np.inf),
            outside=np.where(level, 2.0 * outside + 5.0, np.inf),
            step=step,
            shortest=shortest,
            longest=longest,
            is_dated=is_dated,
            course=None
            if context is None or context.shape[1] != 1
            else Course().fit(samples, context),
        )

    @classmethod
    def of_view(cls, view: StreamView) -> "SensorLimits":
        """Return what is known of a model that was saved before there were limits.

        A channel is missing if it has no value in a whole window, and the rate is another one
        if it differs by more than half; nothing is known of ranges, nor how long values stand.
        """
        centre, spread = view.rest.centre, view.rest.spread
        none, step = np.full(len(centre), np.inf), float(view.usual_step)
        is_known = math.isfinite(step)
        return cls(
            names=list(view.channels),
            usual_low=centre - 2 * spread,
            usual_high=centre + 2 * spread,
            low=-none,
            high=none,
            missing=np.full(len(centre), float(view.n_remembered + 1)),
            stuck=none,
            outside=none,
            step=step,
            shortest=step / 1.5 if is_known else 0.0,
            longest=1.5 * step,
        )

    def band(self, context: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the range of usual values of the channels, each of shape (n, c).

        Parameters
        ----------
        context : ndarray of shape (n, k), optional
            Context of n samples, used if training had one column of context; without it n is 1.

        Returns
        -------
        low : ndarray of shape (n, c)
            Lower end: of the middle 95 % of training, or two spreads below the mean at the
            context.
        high : ndarray of shape (n, c)
            Upper end.
        """
        if self.course is None or context is None:
            return self.usual_low[np.newaxis], self.usual_high[np.newaxis]
        mean, spread = self.course.usual(context[:, 0])
        return mean - 2 * spread, mean + 2 * spread

    def step_text(self, step: float) -> str:
        """Return a step in time in words."""
        text = f"{step:.1f}" if 0.95 <= step < 1e6 else f"{step:.2g}"
        return f"{text} s" if self.is_dated else text


def _keep_moving(samples: FloatArray, slices: Sequence[slice], longest: IntArray) -> BoolArray:
    """Return which channels change so often that one that stands still has failed.

    Not setpoints, states and counters that step now and then: the longest time that they ever
    stood does not tell how long they may. A channel moves if it changes every 20 rows on
    average, has more than 4 values, and never stood longer than a tenth of training.
    """
    changes, n = np.zeros(len(longest)), np.zeros(len(longest))
    for run in slices:
        here = samples[run]
        has = ~np.isnan(here)
        repeats = _repeats(here, np.full(samples.shape[1], np.nan))
        changes += (has & ~repeats).sum(axis=0)
        n += has.sum(axis=0)
    often = (changes >= 30) & (20 * changes >= n) & (10 * longest <= n)
    few = np.array([len(np.unique(column[~np.isnan(column)][:10_000])) < 5 for column in samples.T])
    return np.asarray(often & ~few)


def _usual_rates(times: FloatArray | None, slices: Sequence[slice]) -> tuple[float, float]:
    """Return between what the median of steps may be: half beyond what it was in training."""
    if times is None:
        return 0.0, math.inf
    found = [_medians(_forward(np.diff(times[run]))) for run in slices]
    medians = np.concatenate([*found, np.zeros(0)])
    if not len(medians):
        return 0.0, math.inf
    return float(medians.min()) / 1.5, 1.5 * float(medians.max())


def _forward(steps: FloatArray) -> FloatArray:
    """Return the steps that go forward."""
    return np.asarray(steps[np.isfinite(steps) & (steps > 0)])


def _medians(steps: FloatArray) -> FloatArray:
    """Return the median of each `N_STEPS` steps in a row."""
    if len(steps) < N_STEPS:
        return np.zeros(0)
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(steps, N_STEPS), axis=1))


def _repeats(samples: FloatArray, last: FloatArray) -> BoolArray:
    """Return which values repeat the one before them in their column, gaps left out."""
    before = _last_known(np.vstack([last, samples]))[:-1]
    return np.asarray(samples == before)


def _last_known(samples: FloatArray) -> FloatArray:
    """Return the last value up to each row of each column; NaN before the first."""
    rows = np.arange(len(samples))[:, np.newaxis]
    place = np.maximum.accumulate(np.where(np.isnan(samples), 0, rows), axis=0)
    return np.take_along_axis(samples, place, axis=0)


def _run_lengths(is_so: BoolArray, counts: BoolArray, before: IntArray) -> IntArray:
    """Return for how many rows something has been so in each column, up to each row.

    Rows that do not count neither end it nor add to it; `before` is for how many it has been
    so before the first.
    """
    total = np.cumsum(counts, axis=0) + before
    ended = np.maximum.accumulate(np.where(counts & ~is_so, total, 0), axis=0)
    return np.asarray(total - ended)


@dataclass(frozen=True)
class SensorEvent:
    """Begin or end of a failure of a sensor.

    Parameters
    ----------
    kind : str
        "missing" (no value), "stuck" (the same value), "range" (far from all training),
        "rate" (rows come faster or more slowly), or "limit" (beyond a limit that was given).
    channel : str
        The channel; empty for "rate".
    state : {"begin", "end", "interrupted"}
        Whether the failure begins or ends, or the stream ends before it.
    row : int
        Row at which it is reported, counted from the first row of the stream.
    time : float or None
        Time of this row.
    since : int
        First row of the failure, or, at its end, first row without it.
    detail : str, default=""
        Value and limits, as text.
    """

    kind: str
    channel: str
    state: str
    row: int
    time: float | None
    since: int
    detail: str = ""

    @property
    def text(self) -> str:
        """The event as text."""
        if self.kind == "rate":
            return self.detail
        if self.kind == "limit":
            what = f"limit broken: {self.detail}"
            if self.state == "end":
                what = f"channel {self.channel} is within its limits again"
            return f"{what} since row {self.since}"
        if self.state == "end":
            again = {"missing": "has values again", "stuck": "moves again"}
            what = again.get(self.kind, "is back in its range of training")
            return f"channel {self.channel} {what} since row {self.since}"
        begun = {"missing": "missing", "stuck": "stands still", "range": "is out of its range"}
        detail = f": {self.detail}" if self.detail else ""
        return f"channel {self.channel} {begun[self.kind]} since row {self.since}{detail}"

    def at(self, row: int) -> "SensorEvent":
        """Return the event with another row number, as a file counts rows."""
        return replace(self, row=row, since=row - (self.row - self.since))

    def as_dict(self) -> dict[str, Any]:
        """Return the event as a dictionary for JSON."""
        found: dict[str, Any] = {"kind": self.kind, "state": self.state}
        found |= {"channel": self.channel} if self.channel else {}
        return found | {"row": self.row, "since": self.since, "text": self.text}


class ChannelMonitor:
    """Report failing sensors of one stream, from its raw samples.

    Samples give the same events whether they come one by one or in chunks.

    Parameters
    ----------
    limits : SensorLimits
        Limits from training, such as `sensors_` of a `StreamDetector`.

    Attributes
    ----------
    n_seen : int
        Number of rows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.streaming import ChannelMonitor
    >>> from ocfuse.streaming.sensors import SensorLimits
    >>> rng = np.random.default_rng(0)
    >>> limits = SensorLimits.learn(rng.normal(size=(500, 2)), ["flow", "current"], [slice(500)])
    >>> live = rng.normal(size=(100, 2))
    >>> live[40:60, 1] = np.nan
    >>> for event in ChannelMonitor(limits).update(live):
    ...     print(event.text)
    channel current missing since row 40
    channel current has values again since row 60
    """

    def __init__(self, limits: SensorLimits) -> None:
        self.limits = limits
        c = len(limits.names)
        self.n_seen = 0
        self.last: FloatArray = np.full(c, np.nan)  # known values
        #: of "missing", "stuck", "range": for how many rows it has been so, and for how many not;
        #: the first row of these; and whether it lasts
        self.lengths = np.zeros((3, 2, c), dtype=np.int64)
        self.first = np.zeros((3, 2, c), dtype=np.int64)
        self.is_on = np.zeros((3, c), dtype=bool)
        self.time = math.nan
        self.steps: FloatArray = np.zeros(0)  # the last ones
        self.off_since: int | None = None  # row since which rows come at another rate

    def lasting(self) -> list[tuple[str, str, int]]:
        """Return kind, channel and first row of all failures that have not ended."""
        names = self.limits.names
        found = [] if self.off_since is None else [("rate", "", self.off_since)]
        for k, j in np.argwhere(self.is_on).tolist():
            found.append((SENSOR_KINDS[k], names[j], int(self.first[k, 0, j])))
        return found

    def begin_run(self) -> "ChannelMonitor":
        """Start a new run of the same sensors with the next sample."""
        self.time, self.steps = math.nan, np.zeros(0)
        return self

    def update(self, samples: FloatArray, times: FloatArray | None = None) -> list[SensorEvent]:
        """Add the next samples; return the failures that begin or end in them, in order of rows.

        Parameters
        ----------
        samples : ndarray of shape (n, c)
            Values of the channels; NaN for missing ones.
        times : ndarray of shape (n,), optional
            Their times.

        Returns
        -------
        list of SensorEvent
            The events.
        """
        if samples.ndim != 2 or samples.shape[1] != len(self.limits.names):
            raise InvalidInputError(
                f"Samples must have {len(self.limits.names)} channels, as in training. "
                f"Got shape {samples.shape}."
            )
        if not len(samples):
            return []
        has = ~np.isnan(samples)
        is_out = self.limits.are_outside(samples)
        everywhere = np.ones_like(has)
        judged = [(~has, everywhere), (_repeats(samples, self.last), has), (is_out, has)]
        found: list[SensorEvent] = []
        for k, (is_so, counts) in enumerate(judged):
            found += self._changes(k, is_so, counts, samples, times)
        known = _last_known(np.vstack([self.last, samples]))[-1]
        found += self._rates(times)
        self.last, self.n_seen = known, self.n_seen + len(samples)
        return sorted(found, key=lambda event: event.row)

    def _limits(self) -> list[FloatArray]:
        return [self.limits.missing, self.limits.stuck, self.limits.outside]

    def _changes(
        self,
        k: int,
        is_so: BoolArray,
        counts: BoolArray,
        samples: FloatArray,
        times: FloatArray | None,
    ) -> list[SensorEvent]:
        """Follow one kind; return the events of all channels."""
        limit = self._limits()[k]
        rows = self.n_seen + np.arange(len(samples))[:, np.newaxis]
        # a value that is repeated stood since it came; others are so since the row after
        after = np.array([SENSOR_KINDS[k] != "stuck", True])
        past, first = [], []
        for side, so in enumerate((is_so, ~is_so)):
            lengths = _run_lengths(so, counts, self.lengths[k, side])
            broken = np.where(counts & ~so, rows + after[side], -1)
            since = np.maximum(np.maximum.accumulate(broken, axis=0), self.first[k, side])
            past.append(lengths > (N_WELL if side else limit))
            first.append(since)
            self.lengths[k, side], self.first[k, side] = lengths[-1], since[-1]
        if not past[0].any() and not self.is_on[k].any():
            return []
        # what of both came last holds
        known = np.where(past[0], 1.0, np.where(past[1], 0.0, np.nan))
        on = _last_known(np.vstack([self.is_on[k], known])) > 0
        self.is_on[k] = on[-1]
        return [
            self._event(
                *(k, j, i, int(first[0 if on[i + 1, j] else 1][i, j])),
                *(bool(on[i + 1, j]), float(samples[i, j]), times),
            )
            for i, j in np.argwhere(on[1:] != on[:-1]).tolist()
        ]

    def _event(
        self, k: int, j: int, i: int, since: int, begins: bool, value: float, times: Any
    ) -> SensorEvent:
        limits, detail = self.limits, ""
        if begins and SENSOR_KINDS[k] == "stuck":
            detail = f"at {number_text(value)}"
        elif begins and SENSOR_KINDS[k] == "range":
            beyond = (limits.high[j] - limits.low[j]) / 4  # as `learn` has added
            ends = limits.low[j] + beyond, limits.high[j] - beyond
            detail = f"{number_text(value)}, in training {' to '.join(map(number_text, ends))}"
        time = None if times is None or not math.isfinite(times[i]) else float(times[i])
        row = self.n_seen + i
        state = "begin" if begins else "end"
        return SensorEvent(SENSOR_KINDS[k], limits.names[j], state, row, time, since, detail)

    def _rates(self, times: FloatArray | None) -> list[SensorEvent]:
        """Follow the steps in time."""
        limits = self.limits
        if times is None or not math.isfinite(limits.longest):
            return []
        finite = np.flatnonzero(np.isfinite(times))
        if not len(finite):
            return []
        steps = np.diff(times[finite], prepend=self.time)
        self.time = float(times[finite[-1]])
        is_forward = steps > 0
        forward = finite[is_forward]
        joined = np.concatenate([self.steps, steps[is_forward]])
        n_before = len(self.steps)
        self.steps = joined[-N_STEPS:]
        odd = (joined < limits.shortest) | (joined > limits.longest)
        if not odd.any() and self.off_since is None:
            return []
        found = []
        for place, median in enumerate(_medians(joined).tolist(), start=N_STEPS - 1 - n_before):
            if place < 0:  # the last one of the chunk before
                continue
            is_off = not limits.shortest <= median <= limits.longest
            if is_off == (self.off_since is not None):
                continue
            i = int(forward[place])
            row = self.n_seen + i
            since = row if self.off_since is None else self.off_since
            self.off_since = row if is_off else None
            text = f"rows come every {limits.step_text(median)}"
            usual = limits.step_text(limits.step)
            detail = f"{text}, in training every {usual}" if is_off else f"{text} again"
            state = "begin" if is_off else "end"
            found.append(SensorEvent("rate", "", state, row, float(times[i]), since, detail))
        return found
