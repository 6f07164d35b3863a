"""Channels that lower a score, with their values and usual values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.ensemble.detector import FusedDetector
from ocfuse.explain import Explanation, number_text
from ocfuse.scores.normalise import SD_PER_MAD
from ocfuse.streaming.view import StreamView
from ocfuse.streaming.windows import KINDS

#: Training rows most like a row, from which is said what is usual there.
N_ALIKE = 30
#: Share in the cost of a score below which a channel is not named.
LEAST_SHARE = 0.05
#: Channels that are read for each that may be named: those that read as usual are not.
READ = 2


@dataclass(frozen=True)
class ChannelReading:
    """Value of a channel at a low score, with its usual value.

    Parameters
    ----------
    name : str
        The channel.
    value : float or str
        Its value. In a stream it is the mean over the shortest window, or the slope, spread or
        change that is unusual (`kind`); in a table it is the cell, categories as text.
    usual : float or str
        Its usual value here: the median of the training rows most similar in all other channels;
        for categories the most common ones.
    spread : float or None
        Robust standard deviation of these training rows; None for categories.
    share : float
        Share of the channel in the loss of score by all channels, from 0 to 1.
    kind : str, default="level"
        Kind of the value: "level", "slope" (per sample) or "spread" of a window, or "change"
        (distance of the channel from its slow mean).

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

    @property
    def stands_out(self) -> bool:
        """Whether the value is farther from the usual value than its spread."""
        if isinstance(self.value, str) or isinstance(self.usual, str) or self.spread is None:
            return True
        return abs(self.value - self.usual) > self.spread

    def __str__(self) -> str:
        name = self.name if self.kind == "level" else f"{self.name} {self.kind}"
        if isinstance(self.value, str) or isinstance(self.usual, str) or self.spread is None:
            return f"{name} {self.value}" + (f" (usual {self.usual})" if self.usual else "")
        value, usual, spread = _texts(self.value, self.usual, self.spread)
        return f"{name} {value} (usual {usual} +- {spread})"

    def as_dict(self) -> dict[str, Any]:
        """Return the reading as a dictionary for JSON."""
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
    """Return the channels that lower the score of one sample, largest effect first.

    Parameters
    ----------
    detector : FusedDetector
        The detector of the windows.
    view : StreamView
        The view that turned samples into features.
    features : ndarray of shape (1, n_features)
        Features of the sample, as ``state_.features`` has them.
    context : ndarray of shape (1, k), optional
        Its context.
    slow_mean : ndarray of shape (n_channels,), optional
        Slow mean of the channels there, for those that are measured from it.
    count : int, default=3
        Most channels to return.

    Returns
    -------
    list of ChannelReading
        Channels with at least a twentieth of the loss of score that are farther from the usual
        value than its spread, or missing; if there is none, the one with the largest effect.
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
    *,
    times: FloatArray | None = None,
) -> list[list[ChannelReading]]:
    """Return the channels behind the scores of explained samples; see `channel_readings`.

    With seasons it takes the times of the samples.
    """
    n, where = len(view.watched), None if context is None else detector.context_scale_
    scaled = None if where is None or context is None else where.transform(context)
    found = []
    for i, row in enumerate(features):
        costs = explanation.attributions[i].reshape(-1, n)
        encoded = _encoded_again(detector, explanation, i)
        usual = _Usual(detector, encoded, None if scaled is None else scaled[i])
        place = None if context is None else context[i : i + 1]
        when = None if times is None else times[i : i + 1]
        missing, shares = _are_missing(row, view), _shares(costs.sum(axis=0))
        read = [
            _missing(int(j), shares, usual, view, place, slow_mean, when)
            if missing[j]
            else _reading(int(j), row, costs, shares, usual, view, place, slow_mean, when)
            for j in np.argsort(-shares, kind="stable")[: READ * count]
            if shares[j] >= LEAST_SHARE
        ]
        found.append([one for one in read if one.stands_out][:count] or read[:1])
    return found


def row_readings(
    explanation: Explanation, detector: FusedDetector, row: int = 0, count: int = 3
) -> list[ChannelReading]:
    """Return the columns that lower the score of an explained row of a table most.

    Parameters
    ----------
    explanation : Explanation
        Result of `FusedDetector.explain`.
    detector : FusedDetector
        The detector.
    row : int, default=0
        Position among the explained rows.
    count : int, default=3
        Most columns to return.

    Returns
    -------
    list of ChannelReading
        As `Explanation.readings` orders them; numbers with median and spread of the training
        rows most like this one, categories in words.
    """
    named = [one for one in explanation.readings(row, count) if one.is_named]
    total = np.maximum(explanation.attributions[row], 0.0).sum()
    places = {name: j for j, name in enumerate(explanation.feature_names)}
    like: _Usual | None = None
    found = []
    for one in named:
        share = float(max(one.cost, 0.0) / total) if total > 0 else 0.0
        j = places[one.name]
        if isinstance(one.cell, float) and explanation.values is not None:
            if like is None:
                like = _Usual(detector, _encoded_again(detector, explanation, row), None)
            middle, spread = like.of(j, np.array([j]))
            if explanation.ranges is not None:  # of what numbers of this row are measured by
                unit = float(explanation.ranges.unit[row, j])
                middle = float(explanation.ranges.centre[row, j]) + unit * middle
                spread *= unit
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
            if explanation.ranges is not None:
                cell = (cell - explanation.ranges.centre[row, j]) / explanation.ranges.unit[row, j]
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
        self.unlike = squares.sum(axis=1)
        if context is not None and detector.training_context_ is not None:
            self.unlike += np.square(detector.training_context_ - context).sum(axis=1)

    def of(self, feature: int, own: IntArray) -> tuple[float, float]:
        """Return median and robust spread of a feature, where those of `own` do not count.

        NaN for a feature that holds no numbers.
        """
        scaler, source = self.encoder.scaler_, self.encoder.source_
        column = np.flatnonzero(source[: len(scaler.centre_)] == feature)
        if not len(column):
            return np.nan, np.nan
        unlike = self.unlike - self.squares[:, np.isin(source, own)].sum(axis=1)
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


def _shares(costs: FloatArray) -> FloatArray:
    paid = np.maximum(costs, 0.0)
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
    when: FloatArray | None,
) -> ChannelReading:
    """Return the level of a channel, or of its other features what costs most, if that is usual."""
    own, first = _features_of(channel, view)
    middle, spread = usual.of(int(own[first]), own)
    chosen, value = first, float(row[own[first]])
    dearest = int(np.argmax(costs[:, channel]))
    if dearest % len(KINDS) and abs(value - middle) <= 3 * spread:
        chosen, value = dearest, float(row[own[dearest]])
        middle, spread = usual.of(int(own[chosen]), own)
    kind = "level" if view.windows is None else KINDS[chosen % len(KINDS)]
    return _in_own_units(
        ChannelReading(
            *(view.watched[channel], value, middle, spread, float(shares[channel]), kind)
        ),
        *(channel, view, place, slow_mean, when),
    )


def _missing(
    channel: int,
    shares: FloatArray,
    usual: _Usual,
    view: StreamView,
    place: FloatArray | None,
    slow_mean: FloatArray | None,
    when: FloatArray | None,
) -> ChannelReading:
    """Return a channel that has no value, with the level that would be usual."""
    own, first = _features_of(channel, view)
    middle, spread = usual.of(int(own[first]), own)
    level = ChannelReading(view.watched[channel], middle, middle, spread, 0.0)
    told = _in_own_units(level, channel, view, place, slow_mean, when)
    _, usually, wobble = _texts(float(told.usual), float(told.usual), float(told.spread or 0.0))
    words = f"{usually} +- {wobble}"
    return ChannelReading(told.name, "missing", words, None, float(shares[channel]))


def _features_of(channel: int, view: StreamView) -> tuple[IntArray, int]:
    """Return the features of a channel, and which of them is its level."""
    n = len(view.watched)
    own = np.arange(len(view.names) // n) * n + channel
    windows = view.windows
    return own, 0 if windows is None else int(np.argmin(windows.lengths)) * len(KINDS)


def _in_own_units(
    reading: ChannelReading,
    channel: int,
    view: StreamView,
    place: FloatArray | None,
    slow_mean: FloatArray | None,
    when: FloatArray | None,
) -> ChannelReading:
    """Return what a channel reads as it comes: not from its slow mean, nor from its course."""
    value, middle, spread = float(reading.value), float(reading.usual), float(reading.spread or 0.0)
    kind, j = reading.kind, int(np.flatnonzero(view.is_watched)[channel])
    if kind == "level" and view.follows[j]:
        kind = "change"
        if slow_mean is not None:
            value, middle, kind = value + slow_mean[j], middle + slow_mean[j], "level"
    if view.course is not None and place is not None:  # in their own units
        mean, unit = (table[0, j] for table in view.course.usual(place[:, 0]))
        shift = float(mean) if kind == "level" else 0.0
        value, middle, spread = shift + unit * value, shift + unit * middle, unit * spread
    if view.usual is not None:  # likewise
        mean, unit = (table[0, j] for table in view.usual.units(*view.when(1, when)))
        shift = float(mean) if kind == "level" else 0.0
        value, middle, spread = shift + unit * value, shift + unit * middle, unit * spread
    return ChannelReading(
        *(reading.name, float(value), float(middle), float(spread), reading.share, kind)
    )
