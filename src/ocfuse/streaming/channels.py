"""Channels by themselves: what they read behind a score, and sensors that fail.

`channel_readings` names the channels behind a score, with their values and what is usual
there. A `ChannelMonitor` follows the raw samples of one stream and says when a sensor is
missing, stands still or leaves its range, and when rows come at another rate. `SensorLimits`
is what both know of training.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.ensemble.detector import FusedDetector
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation, number_text
from ocfuse.streaming.course import Course
from ocfuse.streaming.view import StreamView
from ocfuse.streaming.windows import KINDS

#: Standard deviations of a normal distribution per median distance from the median.
SD_PER_MAD = 1.4826
#: Training rows most like a row, from which is said what is usual there.
N_ALIKE = 30
#: Share in the cost of a score below which a channel is not named.
LEAST_SHARE = 0.05
#: Steps in time whose median is the rate of rows.
N_STEPS = 21
#: Kinds of sensor events.
SENSOR_KINDS = ("missing", "stuck", "range", "rate")


# -- what channels read ------------------------------------------------------


@dataclass(frozen=True)
class ChannelReading:
    """What a channel reads where a score is low.

    Parameters
    ----------
    name : str
        The channel.
    value : float or str
        Its value: of a stream the mean over the shortest window, or, if another thing is what
        stands out, that (`kind`); of a row its cell, categories as text.
    usual : float or str
        What is usual here: the median of the training rows most like this one in all other
        channels; of categories the most common ones.
    spread : float or None
        Robust standard deviation of these training rows; None for categories.
    share : float
        Share of the channel in what all channels cost the score, from 0 to 1.
    kind : str, default="level"
        What the value is: "level"; "slope", per sample, or "spread" of a window; or "change",
        how far the channel is from its slow mean.

    Examples
    --------
    >>> from ocfuse.streaming import ChannelReading
    >>> str(ChannelReading("speed_rpm", 1437.8, 1450.2, 3.1, 0.7))
    'speed_rpm 1,438 (usual 1,450 +- 3)'
    """

    name: str
    value: float | str
    usual: float | str
    spread: float | None
    share: float
    kind: str = "level"

    def __str__(self) -> str:
        name = self.name if self.kind == "level" else f"{self.name} {self.kind}"
        if isinstance(self.value, str) or isinstance(self.usual, str) or self.spread is None:
            return f"{name} {self.value}" + (f" (usual {self.usual})" if self.usual else "")
        value, usual, spread = _texts(self.value, self.usual, self.spread)
        return f"{name} {value} (usual {usual} +- {spread})"

    def as_dict(self) -> dict[str, Any]:
        """Return the reading as JSON has it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "value": _rounded(self.value),
            "usual": _rounded(self.usual),
            "spread": None if self.spread is None else _rounded(self.spread),
            "share": round(self.share, 4),
            "words": str(self),
        }


def reading_line(readings: Sequence[ChannelReading]) -> str:
    """Return readings in one line."""
    return "; ".join(map(str, readings))


def _rounded(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.6g}")


def _texts(value: float, usual: float, spread: float) -> tuple[str, str, str]:
    """Return the three with so many decimals as the spread needs, thousands set apart."""
    size = max(abs(value), abs(usual))
    # the spread has one digit, or two if it begins with 1; a spread of 0 says nothing
    unit = spread if 0 < spread < math.inf else 1e-3 * size or 1.0
    if size >= 1e15 or unit < 1e-9:
        return number_text(value), number_text(usual), number_text(spread, 2)
    decimals = max(0, 1 - math.ceil(math.log10(unit / 2)))
    differ = abs(value - usual)
    if differ > 0:  # what differs is not shown alike
        decimals = max(decimals, min(-math.floor(math.log10(differ)), decimals + 3))
    # adding 0 makes a zero of what is rounded to one from below
    shown = (f"{round(x, decimals) + 0.0:,.{decimals}f}" for x in (value, usual, spread))
    return next(shown), next(shown), next(shown)


def channel_readings(
    detector: FusedDetector,
    view: StreamView,
    features: FloatArray,
    context: FloatArray | None = None,
    slow_mean: FloatArray | None = None,
    count: int = 3,
) -> list[ChannelReading]:
    """Return the channels behind the score of one sample, what costs most first.

    Parameters
    ----------
    detector : FusedDetector
        The detector of the windows.
    view : StreamView
        How samples became features.
    features : ndarray of shape (1, n_features)
        Features of the sample, as ``state_.features`` has them.
    context : ndarray of shape (1, k), optional
        Its context.
    slow_mean : ndarray of shape (n_channels,), optional
        Slow mean of the channels there, for those that are measured from it.
    count : int, default=3
        Channels, at most.

    Returns
    -------
    list of ChannelReading
        Channels with a twentieth or more of what the score costs; none that is missing.
    """
    return readings_of(
        detector.explain(features, context), detector, view, features, context, slow_mean, count
    )[0]


def readings_of(
    explanation: Explanation,
    detector: FusedDetector,
    view: StreamView,
    features: FloatArray,
    context: FloatArray | None = None,
    slow_mean: FloatArray | None = None,
    count: int = 3,
) -> list[list[ChannelReading]]:
    """Return the channels behind the scores of explained samples; see `channel_readings`."""
    n, where = len(view.watched), None if context is None else detector.context_scale_
    scaled = None if where is None or context is None else where.transform(context)
    encoded = detector.encoder_.transform(features)
    found = []
    for i, row in enumerate(features):
        costs = explanation.attributions[i].reshape(-1, n)
        usual = _Usual(detector, encoded[i], None if scaled is None else scaled[i])
        place = None if context is None else context[i : i + 1]
        shares = _shares(costs.sum(axis=0), _are_missing(row, view))
        found.append(
            [
                _reading(int(j), row, costs, shares, usual, view, place, slow_mean)
                for j in np.argsort(-shares, kind="stable")[:count]
                if shares[j] >= LEAST_SHARE
            ]
        )
    return found


def row_readings(
    explanation: Explanation, detector: FusedDetector, row: int = 0, count: int = 3
) -> list[ChannelReading]:
    """Return the columns behind the score of an explained row that stands alone.

    Parameters
    ----------
    explanation : Explanation
        What `FusedDetector.explain` returned.
    detector : FusedDetector
        The detector.
    row : int, default=0
        Position among the explained rows.
    count : int, default=3
        Columns, at most.

    Returns
    -------
    list of ChannelReading
        As `Explanation.readings` orders them; numbers with median and spread of the training
        rows most like this one, categories in words.
    """
    named = [one for one in explanation.readings(row, count) if one.is_named]
    total = np.maximum(explanation.attributions[row], 0.0).sum()
    places = {name: j for j, name in enumerate(explanation.feature_names)}
    encoded = None
    found = []
    for one in named:
        share = float(max(one.cost, 0.0) / total) if total > 0 else 0.0
        j = places[one.name]
        if isinstance(one.cell, float) and explanation.values is not None:
            if encoded is None:
                encoded = _encoded_again(detector, explanation, row)
            middle, spread = _Usual(detector, encoded, None).of(j, np.array([j]))
            if not math.isnan(middle):
                found.append(ChannelReading(one.name, one.cell, middle, spread, share))
                continue
        found.append(ChannelReading(one.name, one.value, one.usual, None, share))
    return found


def _encoded_again(detector: FusedDetector, explanation: Explanation, row: int) -> FloatArray:
    """Return numbers of an explained row on the scale of the members; NaN for all others."""
    encoder, values = detector.encoder_, explanation.values
    encoded = np.full(len(encoder.source_), np.nan)
    for k, j in enumerate(encoder.source_[: len(encoder.scaler_.centre_)].tolist()):
        cell = None if values is None else values[row][j]
        if isinstance(cell, float):
            encoded[k] = (cell - encoder.scaler_.centre_[k]) / encoder.scaler_.scale_[k]
    return encoded


class _Usual:
    """What is usual of some features in the training rows that are like a row in the others."""

    def __init__(
        self, detector: FusedDetector, encoded: FloatArray, context: FloatArray | None
    ) -> None:
        self.encoder = detector.encoder_
        theirs = detector.training_
        # a feature counts no farther than one standard deviation, as in explanations
        squares = np.minimum(np.nan_to_num(np.square(theirs - encoded)), 1.0)
        self.training, self.squares = theirs, squares
        self.beside = np.zeros(len(theirs))
        if context is not None and detector.training_context_ is not None:
            self.beside = np.square(detector.training_context_ - context).sum(axis=1)

    def of(self, feature: int, own: IntArray) -> tuple[float, float]:
        """Return median and robust spread of a feature, where those of `own` do not count.

        NaN for a feature that holds no numbers.
        """
        scaler, source = self.encoder.scaler_, self.encoder.source_
        column = np.flatnonzero(source[: len(scaler.centre_)] == feature)
        if not len(column):
            return np.nan, np.nan
        others = ~np.isin(source, own)
        unlike = self.squares[:, others].sum(axis=1) + self.beside
        alike = np.argsort(unlike, kind="stable")[:N_ALIKE]
        k = int(column[0])
        values = self.training[alike, k] * scaler.scale_[k] + scaler.centre_[k]
        middle = float(np.median(values))
        spread = SD_PER_MAD * float(np.median(np.abs(values - middle)))
        return middle, spread or float(values.std())


def _are_missing(row: FloatArray, view: StreamView) -> BoolArray:
    """Return which channels have typical features, as there was no value."""
    n = len(view.watched)
    if view.fill is None:
        return np.zeros(n, dtype=bool)
    return np.asarray((row == view.fill).reshape(-1, n).all(axis=0))


def _shares(costs: FloatArray, missing: BoolArray) -> FloatArray:
    paid = np.where(missing, 0.0, np.maximum(costs, 0.0))
    total = paid.sum()
    return np.asarray(paid / total if total > 0 else paid)


def _reading(
    channel: int,
    row: FloatArray,
    costs: FloatArray,
    shares: FloatArray,
    usual: _Usual,
    view: StreamView,
    place: FloatArray | None,
    slow_mean: FloatArray | None,
) -> ChannelReading:
    """Return the level of a channel, or of its other features what costs most, if that is usual."""
    n = len(view.watched)
    own = np.arange(len(costs)) * n + channel
    first = 0 if view.windows is None else int(np.argmin(view.windows.lengths)) * len(KINDS)
    middle, spread = usual.of(int(own[first]), own)
    chosen, value = first, float(row[own[first]])
    dearest = int(np.argmax(costs[:, channel]))
    if dearest % len(KINDS) and abs(value - middle) <= 3 * spread:
        chosen, value = dearest, float(row[own[dearest]])
        middle, spread = usual.of(int(own[chosen]), own)
    kind = "level" if view.windows is None else KINDS[chosen % len(KINDS)]
    j = int(np.flatnonzero(view.is_watched)[channel])
    if kind == "level" and view.follows[j]:
        kind = "change"
        if slow_mean is not None:
            value, middle, kind = value + slow_mean[j], middle + slow_mean[j], "level"
    if view.course is not None and place is not None:  # in their own units
        mean, unit = (table[0, j] for table in view.course.usual(place[:, 0]))
        shift = float(mean) if kind == "level" else 0.0
        value, middle, spread = shift + unit * value, shift + unit * middle, unit * spread
    return ChannelReading(
        view.watched[channel],
        float(value),
        float(middle),
        float(spread),
        float(shares[channel]),
        kind,
    )


# -- what training says of sensors --------------------------------------------


@dataclass(frozen=True)
class SensorLimits:
    """What training says of each of c channels, and of the times of rows.

    A limit is the number of rows that something may last: twice as long as it ever did in
    training, and a few rows. It is inf where training cannot tell.

    Attributes
    ----------
    names : list of str
        The channels.
    usual_low, usual_high : ndarray of shape (c,)
        The middle 95 % of training lie between these.
    low, high : ndarray of shape (c,)
        The range of training but for its outermost thousandths, and half of its width beyond.
    missing, stuck, outside : ndarray of shape (c,)
        Limits: rows without a value, that repeat a value, outside of the range.
    step, shortest, longest : float
        Usual step in time; the shortest and longest one that the median of 21 steps may be.
    is_dated : bool
        Whether times were dates, so that steps are seconds.
    course : Course or None
        What is usual at each context, in the units of the channels.
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
            Channels whose level is known from training; None is all. Others have no range.
        times : ndarray of shape (n,), optional
            Times.
        step : float, default=inf
            Usual step in time.
        is_dated : bool, default=False
            Whether times are seconds.
        context : ndarray of shape (n, k), optional
            Context; of one column, what is usual is told by it.

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
        """Return between what values channels usually are, each of shape (n, c).

        Parameters
        ----------
        context : ndarray of shape (n, k), optional
            Context of n samples, by which it is told if training had one column of it; without
            it n is 1.

        Returns
        -------
        low, high : ndarray of shape (n, c)
            The middle 95 % of training, or two spreads around what is usual at the context.
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


# -- sensors of a live stream --------------------------------------------------


@dataclass(frozen=True)
class SensorEvent:
    """A sensor that fails, or works again.

    Parameters
    ----------
    kind : str
        "missing" (no value), "stuck" (the same value), "range" (far from all training), or
        "rate" (rows come faster or more slowly).
    channel : str
        The channel; empty for "rate".
    state : {"begin", "end"}
        What it is the beginning or end of.
    row : int
        Row at which it is told, counted from the first one of the stream.
    time : float or None
        Time of this row.
    since : int
        Row since which it has been so.
    detail : str, default=""
        Value and limits in words.
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
        """What has happened, in words."""
        if self.kind == "rate":
            return self.detail
        if self.state == "end":
            again = {"missing": "has values again", "stuck": "moves again"}
            what = again.get(self.kind, "is back in its range of training")
            return f"channel {self.channel} {what} from row {self.row}"
        begun = {"missing": "missing", "stuck": "stands still", "range": "is out of its range"}
        detail = f": {self.detail}" if self.detail else ""
        return f"channel {self.channel} {begun[self.kind]} since row {self.since}{detail}"

    def at(self, row: int) -> "SensorEvent":
        """Return the event with another number for its row, as a file counts them."""
        return replace(self, row=row, since=row - (self.row - self.since))

    def as_dict(self) -> dict[str, Any]:
        """Return the event as JSON has it."""
        found: dict[str, Any] = {"kind": self.kind, "state": self.state}
        found |= {"channel": self.channel} if self.channel else {}
        return found | {"row": self.row, "since": self.since, "text": self.text}


class ChannelMonitor:
    """Say when sensors of one stream fail, from its raw samples.

    One by one or in chunks, the same samples give the same events.

    Parameters
    ----------
    limits : SensorLimits
        What training says.

    Attributes
    ----------
    n_seen : int
        Rows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.streaming import ChannelMonitor, SensorLimits
    >>> rng = np.random.default_rng(0)
    >>> limits = SensorLimits.learn(rng.normal(size=(500, 2)), ["flow", "current"], [slice(500)])
    >>> live = rng.normal(size=(100, 2))
    >>> live[40:60, 1] = np.nan
    >>> for event in ChannelMonitor(limits).update(live):
    ...     print(event.text)
    channel current missing since row 40
    channel current has values again from row 60
    """

    def __init__(self, limits: SensorLimits) -> None:
        self.limits = limits
        c = len(limits.names)
        self.n_seen = 0
        self.last: FloatArray = np.full(c, np.nan)  # known values
        #: of "missing", "stuck", "range": for how many rows it has been so, and the first row
        self.lengths = np.zeros((3, c), dtype=np.int64)
        self.first = np.zeros((3, c), dtype=np.int64)
        self.time = math.nan
        self.steps: FloatArray = np.zeros(0)  # the last ones
        self.off_since: int | None = None  # row since which rows come at another rate

    def lasting(self) -> list[tuple[str, str, int]]:
        """Return kind, channel and first row of what lasts."""
        names = self.limits.names
        found = [] if self.off_since is None else [("rate", "", self.off_since)]
        for k, limit in enumerate(self._limits()):
            on = np.flatnonzero(self.lengths[k] > limit).tolist()
            found += [(SENSOR_KINDS[k], names[j], int(self.first[k, j])) for j in on]
        return found

    def begin_run(self) -> "ChannelMonitor":
        """Let the next sample be the first of another run of the same sensors."""
        self.time, self.steps = math.nan, np.zeros(0)
        return self

    def update(self, samples: FloatArray, times: FloatArray | None = None) -> list[SensorEvent]:
        """Take the next samples; return what begins and ends in them, in the order of rows.

        Parameters
        ----------
        samples : ndarray of shape (n, c)
            Values of the channels, NaN for those that are missing.
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
        is_out = (samples < self.limits.low) | (samples > self.limits.high)
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
        before = self.lengths[k].copy()
        lengths = _run_lengths(is_so, counts, before)
        limit = self._limits()[k]
        self.lengths[k] = lengths[-1]
        rows = self.n_seen + np.arange(len(samples))[:, np.newaxis]
        # a value that is repeated stood since it came; others are so since the row after
        broken = np.where(counts & ~is_so, rows + (SENSOR_KINDS[k] != "stuck"), -1)
        first = np.maximum(np.maximum.accumulate(broken, axis=0), self.first[k])
        since = np.where(lengths == 0, np.vstack([self.first[k], first[:-1]]), first)
        self.first[k] = first[-1]
        past = np.vstack([before, lengths[:-1]])
        if not (lengths > limit).any() and not (past > limit).any():
            return []
        begins = (lengths > limit) & (past <= limit)
        ends = (lengths == 0) & (past > limit)
        return [
            self._event(k, j, i, int(since[i, j]), bool(begins[i, j]), float(samples[i, j]), times)
            for i, j in np.argwhere(begins | ends).tolist()
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
