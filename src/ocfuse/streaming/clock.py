"""Order and times of samples, the slow mean, and the state of a stream."""

import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray
from ocfuse.exceptions import InvalidInputError
from ocfuse.system.packages import slow

if TYPE_CHECKING:
    from ocfuse.streaming.sensors import ChannelMonitor, SensorEvent

#: Verdicts on samples that are left out, and on those before which windows start again.
LEFT_OUT = ("repeated", "late", "clock")
RESTARTS = ("gap", "new_clock")


class Clock:
    """Judge how the time of a sample follows on those before.

    No single time can silence a stream. One that is not finite, or more than a thousand
    usual steps ahead, is not believed; the next one may confirm such a jump. Once the clock
    has been set back, the fifth late sample in order is taken, and with it the new clock.

    Parameters
    ----------
    usual_step : float
        Median step between samples of training; inf if it is not known.
    max_gap : float
        Usual steps over which windows reach.
    """

    def __init__(self, usual_step: float, max_gap: float) -> None:
        self.longest_step = max_gap * usual_step
        self.farthest = max(1000.0, max_gap) * usual_step
        self.time = math.nan  # of the last sample that was taken
        self.other = math.nan  # last time that was not believed since then
        self.n_forward = 0  # how often such times have gone forward

    def read(self, time: float) -> str:
        """Take the time of the next sample; return the verdict on the sample.

        "next" in order, "gap" in order after a gap, "new_clock" taken after many late ones;
        or, if it is to be left out, "repeated", "late", or "clock" (not believed).
        """
        if not math.isfinite(time):
            return "clock"
        step = time - self.time
        if step == 0 or time == self.other:
            return "repeated"
        if step < 0 or step > self.farthest:  # never for the first, whose step is NaN
            return self._doubt(time, step < 0)
        self._take(time)
        return "gap" if step > self.longest_step else "next"

    def _doubt(self, time: float, is_late: bool) -> str:
        forward = 0 < time - self.other <= self.farthest
        self.other = time
        self.n_forward += forward
        if is_late and self.n_forward >= 4:
            self._take(time)
            return "new_clock"
        if forward and not is_late:
            self._take(time)
            return "gap"
        return "late" if is_late else "clock"

    def _take(self, time: float) -> None:
        self.time, self.other, self.n_forward = time, math.nan, 0


def to_seconds(time: Any) -> FloatArray:
    """Return times as numbers; dates as seconds."""
    values = np.asarray(time)
    if values.dtype.kind == "O":  # dates of Python or pandas
        with suppress(TypeError, ValueError):
            values = values.astype("datetime64[us]")
    if values.dtype.kind == "M":
        return np.asarray((values - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"time must hold numbers or dates. Got an array of {values.dtype}."
        ) from None


def check_times(time: Any, n: int) -> FloatArray | None:
    """Return n times as numbers, or None; those of a live stream may be bad (NaN, inf)."""
    if time is None:
        return None
    times = to_seconds(time)
    if times.shape != (n,):
        raise InvalidInputError(
            f"time must hold a time for each of {n} samples. Got shape {times.shape}."
        )
    return times


def usual_step(times: FloatArray | None, slices: list[slice]) -> float:
    """Return the median step between training samples; inf if it is not known.

    Times that are not finite are refused, and runs of which most samples come before the one in
    front of them.
    """
    if times is None:
        return np.inf
    bad = int((~np.isfinite(times)).sum())
    if bad:
        raise InvalidInputError(
            f"time must be finite to learn from. Got {bad} that are not. Leave these samples out."
        )
    steps = np.concatenate([np.diff(times[part]) for part in slices])
    n_falling = int((steps < 0).sum())
    if 2 * n_falling > len(steps):
        raise InvalidInputError(
            f"time must rise within a run. It falls in {n_falling} of {len(steps)} steps: is the "
            "newest sample the first? Sort each run by time."
        )
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else np.inf


class Rest:
    """Where the channels rest in training samples, and how much their means wander.

    Attributes
    ----------
    centre, spread : ndarray of shape (c,)
        Mean and standard deviation.
    unrest : ndarray of shape (c,)
        Variance of a mean of m values, times m, for large m. Neighbouring samples are
        alike, so this is more than the variance of the samples: the highest that means of
        1, 2, 4, ... neighbours tell. Blocks are few, so that each is an upper bound (95 %).
    """

    def __init__(self, samples: FloatArray, slices: list[slice]) -> None:
        self.centre, self.spread = np.nanmean(samples, axis=0), np.nanstd(samples, axis=0)
        self.unrest = self.spread**2
        away = samples - self.centre
        length = 1
        while True:
            means = np.vstack([_block_means(away[part], length) for part in slices])
            n = (~np.isnan(means)).sum(axis=0)
            enough = n >= 4  # fewer blocks do not show how means vary
            if not enough.any():
                return
            doubt = slow("scipy.stats").chi2.ppf(0.05, np.maximum(n - 1, 1))
            bound = np.nansum(means**2, axis=0) / doubt
            self.unrest = np.where(enough, np.maximum(self.unrest, length * bound), self.unrest)
            length *= 2


class SlowMean:
    """A mean of every channel that forgets by halves.

    While it is young all values count alike. A value further away than ten standard
    deviations of training counts as one that is so far away: sensors glitch.
    """

    def __init__(self, half_life: float, spread: FloatArray) -> None:
        self.half_life = float(half_life)
        self.rate = 1.0 - 0.5 ** (1.0 / self.half_life)
        self.reach = np.where(spread > 0, 10.0 * spread, np.inf)
        self.mean: FloatArray = np.full(len(spread), np.nan)
        # number of values that count alike whose mean would be as sure
        self.n_behind: FloatArray = np.zeros(len(spread))

    def follow(self, sample: FloatArray) -> FloatArray:
        """Take a sample in, NaN for gaps; return the mean before it, or itself if first."""
        n = self.n_behind
        before = np.where(n > 0, self.mean, sample)
        share = np.maximum(self.rate, 1.0 / (n + 1.0))
        step = np.minimum(np.maximum(sample - before, -self.reach), self.reach)
        mean = before + share * step
        # the first value has share 1, whatever it is divided by
        rest = 1.0 - share
        sure = 1.0 / (rest * rest / np.maximum(n, 1.0) + share * share)
        gap = np.isnan(sample)
        if gap.any():
            mean, sure = np.where(gap, self.mean, mean), np.where(gap, n, sure)
        self.mean, self.n_behind = mean, sure
        return before

    def has_left(self, rest: Rest) -> BoolArray:
        """Return which channels are further from training than chance explains."""
        return self.had_left(rest, self.mean, self.n_behind)

    def had_left(self, rest: Rest, mean: FloatArray, n_behind: FloatArray) -> BoolArray:
        """Return the same of means of this stream, of shape (..., c), and what is behind them."""
        is_old = n_behind >= self.half_life
        if not is_old.any():
            return is_old
        return np.asarray(is_old & (np.abs(mean - rest.centre) > _limit(rest, n_behind)))

    def distance(self, rest: Rest) -> FloatArray:
        """Return how far channels are from training; above 1 is more than chance explains."""
        away, limit = np.abs(self.mean - rest.centre), _limit(rest, self.n_behind)
        ratio: FloatArray = np.where(away > 0, np.inf, 0.0)
        np.divide(away, limit, out=ratio, where=limit > 0)
        return ratio


def _limit(rest: Rest, n_behind: FloatArray) -> FloatArray:
    """Return six standard deviations of slow means, and more than rounding."""
    n = np.maximum(n_behind, 1.0)
    return np.asarray(6.0 * np.sqrt(rest.unrest / n) + 1e-9 * np.abs(rest.centre))


def _block_means(samples: FloatArray, length: int) -> FloatArray:
    """Return the means of blocks of neighbours; NaN where less than half is present."""
    n = len(samples) // length
    blocks = samples[: n * length].reshape(n, length, samples.shape[1])
    present = (~np.isnan(blocks)).sum(axis=1)
    means = np.nansum(blocks, axis=1) / np.maximum(present, 1)
    return np.where(2 * present >= length, means, np.nan)


class ChunkLog:
    """What happened at each of the n samples of a chunk.

    Attributes
    ----------
    odd : dict of str to list of int
        By what is counted, as in `StreamState.counts`, the samples that were counted.
    drifted : dict of int to list of str
        By sample, the channels whose slow mean left training there.
    sensors : dict of int to list of SensorEvent
        By sample, sensors that fail or work again there.
    parts : list of tuple
        Chunk by chunk what scores were made of: number of the first sample, features, context,
        slow means after the chunk.
    times : list of tuple
        Chunk by chunk the number of the first sample, and the times, if there are any.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.odd: dict[str, list[int]] = {}
        self.drifted: dict[int, list[str]] = {}
        self.sensors: dict[int, list[SensorEvent]] = {}
        self.parts: list[tuple[int, FloatArray, FloatArray | None, FloatArray]] = []
        self.times: list[tuple[int, FloatArray | None]] = []

    def add(self, what: str, samples: Iterable[int]) -> None:
        """Count some samples."""
        self.odd.setdefault(what, []).extend(samples)

    def extend(self, other: "ChunkLog", but: Collection[str] = ()) -> None:
        """Take the next samples in, but not that some channels left training."""
        for what, samples in other.odd.items():
            self.add(what, (self.n + i for i in samples))
        for i, names in other.drifted.items():
            self.drifted[self.n + i] = [name for name in names if name not in but]
        self.sensors |= {self.n + i: events for i, events in other.sensors.items()}
        self.parts += [
            (self.n + first, rows, place, slow) for first, rows, place, slow in other.parts
        ]
        self.times += [(self.n + first, times) for first, times in other.times]
        self.n += other.n

    def made_of(self, sample: int) -> tuple[FloatArray, FloatArray | None, FloatArray] | None:
        """Return features and context of a sample, one row each, and slow means; None if none."""
        place = sample % self.n
        for first, rows, context, slow_mean in reversed(self.parts):
            if place >= first:
                row = slice(place - first, place - first + 1)
                if np.isnan(rows[row]).any():
                    return None
                return rows[row], None if context is None else context[row], slow_mean
        return None

    def time_of(self, sample: int) -> FloatArray:
        """Return the time of a sample, as one of one; NaN if it has none."""
        place = sample % self.n
        for first, times in reversed(self.times):
            if place >= first:
                return np.full(1, np.nan) if times is None else times[place - first :][:1]
        return np.full(1, np.nan)

    def counts_after(self, sample: int, counts: dict[str, int]) -> dict[str, int]:
        """Return the counts as they were after a sample, from those after the chunk."""
        before = dict(counts)
        before["seen"] -= self.n - 1 - sample
        for what, samples in self.odd.items():
            before[what] -= sum(i > sample for i in samples)
        return before


class StreamState:
    """The last samples of a stream, and what has happened in it.

    `model` is the checksum of the view that it belongs to.

    Attributes
    ----------
    samples : ndarray of shape (n_remembered, n_watched)
        Samples that windows need besides the present one, NaN where there were none.
    age : int
        Samples since the stream began, or began again after a gap.
    score : float
        The last score; NaN before the first.
    silent : int
        Samples since the last score: 0 if the last sample has one.
    features, context : ndarray or None
        What the score of the last sample was made of; None if it has no score.
    drifted : list of str
        Channels whose slow mean has left training, in the order in which they did.
    is_context_told : bool
        Whether a warning has said that context is far beyond training.
    monitor : ChannelMonitor or None
        What has become of the sensors; None before the first sample.
    counts : dict
        How many samples were "seen"; "repeated" or "late", or had a "clock" that was not
        believed, and were left out; came after a "gap", or with a "new_clock", set back;
        had channels "missing"; were "unscored".
    """

    # of checkpoints from before there were these
    monitor: "ChannelMonitor | None" = None
    time: float = np.nan  # of the last sample

    def __init__(
        self, n_remembered: int, n_watched: int, clock: Clock, slow: SlowMean, model: str = ""
    ) -> None:
        self.clock, self.slow, self.model = clock, slow, model
        self.samples: FloatArray = np.full((n_remembered, n_watched), np.nan)
        self.age = 0
        self.score = np.nan
        self.silent = 0
        self.features: FloatArray | None = None
        self.context: FloatArray | None = None
        self.drifted: list[str] = []
        self.is_context_told = False
        names = ("seen", *LEFT_OUT, *RESTARTS, "missing", "unscored")
        self.counts = dict.fromkeys(names, 0)

    def restart(self) -> None:
        """Forget the windows; the slow mean stays."""
        self.samples = np.full_like(self.samples, np.nan)
        self.age = 0

    def read_clock(self, time: float | None) -> str:
        """Return and count the verdict on the next sample (see `Clock.read`)."""
        verdict = "next" if time is None else self.clock.read(time)
        self.counts["seen"] += 1
        if verdict != "next":
            self.counts[verdict] += 1
        return verdict

    def push(self, rows: FloatArray) -> FloatArray:
        """Append samples; return them behind those kept from before."""
        joined = np.concatenate([self.samples, rows])
        self.samples = joined[len(rows) :]
        self.age += len(rows)
        return joined

    def note(self, scores: FloatArray, rows: FloatArray, context: FloatArray | None = None) -> None:
        """Keep the last score, what it was made of, and how long ago it was."""
        known = np.flatnonzero(scores == scores)  # not NaN
        n, last = len(scores), int(known[-1]) if len(known) else -1
        if last >= 0:
            self.score, self.silent = float(scores[last]), 0
        self.silent += n - 1 - last
        if n:
            is_scored = last == n - 1
            self.features = rows[-1:].copy() if is_scored else None
            self.context = context[-1:] if is_scored and context is not None else None
