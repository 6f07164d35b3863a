"""The distribution of normal scores: a weighted sample with a smooth tail."""

from dataclasses import dataclass

import numpy as np

from ocfuse.arrays import FloatArray


@dataclass(frozen=True)
class WeightedSample:
    """Distinct values in increasing order, with the weight of each.

    Ties are merged, so that a weight of 2 and a row given twice are one and
    the same sample, and nothing below depends on the scale of the weights.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Distinct values, increasing.
    weights : ndarray of shape (m,)
        Their weights, positive.
    """

    values: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray) -> "WeightedSample":
        """Merge ties and leave out what has no weight."""
        kept = weights > 0
        values, position = np.unique(scores[kept], return_inverse=True)
        return cls(values, np.bincount(position, weights[kept]).astype(np.float64))

    def without_near_ties(self) -> "WeightedSample":
        """Merge neighbours that differ by rounding at most, at their weighted mean.

        Detectors magnify rounding: gaps below 1e-9 of the range of the middle 90 % are ties.
        """
        middle = self.step_quantile(0.95) - self.step_quantile(0.05)
        gaps = np.diff(self.values)
        apart = (gaps > self._rounding) & (gaps > 1e-9 * middle)
        if apart.all():
            return self
        first = np.concatenate([[0], np.flatnonzero(apart) + 1])
        weights = np.add.reduceat(self.weights, first)
        start = np.repeat(self.values[first], np.diff(np.append(first, len(self.values))))
        offset = np.add.reduceat((self.values - start) * self.weights, first) / weights
        return WeightedSample(self.values[first] + offset, weights)

    @property
    def mirrored(self) -> "WeightedSample":
        """The sample of the negated values."""
        return WeightedSample(-self.values[::-1], self.weights[::-1])

    @property
    def levels(self) -> FloatArray:
        """Share of the weight below each value plus half of its own, in (0, 1)."""
        total = np.cumsum(self.weights)
        return np.asarray((total - 0.5 * self.weights) / total[-1])

    @property
    def size(self) -> float:
        """Unit of a column that does not vary: its magnitude, at least 1.

        It bounds what a column without a scale of its own can say: a deviation
        as large as the constant counts as one unit.
        """
        return max(1.0, self._magnitude)

    @property
    def is_constant(self) -> bool:
        """Whether the values differ by rounding at most."""
        return not self.resolves(float(self.values[-1] - self.values[0]))

    def resolves(self, spread: float) -> bool:
        """Return whether a spread is more than rounding."""
        return spread > self._rounding

    def mean_and_sd(self) -> tuple[float, float]:
        """Return weighted mean and standard deviation (divided by the total weight)."""
        lowest = float(self.values[0])
        spread = float(self.values[-1]) - lowest
        if self.is_constant:
            return self.median(), 0.0
        # in units of the range, so that squares neither overflow nor vanish
        unit = (self.values - lowest) / spread
        mean = float(np.average(unit, weights=self.weights))
        sd = float(np.sqrt(np.average((unit - mean) ** 2, weights=self.weights)))
        return lowest + spread * mean, spread * sd

    def smooth_quantile(self, level: float) -> float:
        """Invert `levels`, linearly between the values."""
        return float(np.interp(level, self.levels, self.values))

    def step_quantile(self, level: float) -> float:
        """Return the value that leaves `level` below it; the mean of two if both do."""
        total = np.cumsum(self.weights)
        # weights such as 0.1 do not add up exactly
        slack = 1e-12 * total[-1]
        low, high = np.searchsorted(total, level * total[-1] + np.array([-slack, slack]))
        last = len(self.values) - 1
        return float(0.5 * self.values[low] + 0.5 * self.values[min(high, last)])

    def median(self) -> float:
        """Return the weighted median."""
        return self.step_quantile(0.5)

    @property
    def _rounding(self) -> float:
        return 64.0 * float(np.finfo(float).eps) * self._magnitude

    @property
    def _magnitude(self) -> float:
        return float(max(abs(self.values[0]), abs(self.values[-1])))


class SmoothTail:
    """Probability that a normal scores lower, increasing over all numbers.

    Between the lowest and the highest of m distinct normal scores v: linear
    between the points (v_i, F_i), F_i the share below v_i plus half the share
    at v_i. Outside, with b the mean distance of the lowest 5 % to their upper
    end (at least 5 distinct scores, at most half)::

        F(s) = F_1 (1 + (v_1 - s) / (2 b))^-2       for s < v_1

    and likewise 1 - F above v_m. The slope at v_1 is that of an exponential
    tail of scale b; further out it decays slower, so that far scores keep
    their order: an exponential is 0 in double precision 750 scales away. Scores
    that differ by rounding at most are one of the v: a line between them would be
    so steep that rounding moves F.

    Parameters
    ----------
    sample : WeightedSample
        Scores of the normals.
    """

    def __init__(self, sample: WeightedSample) -> None:
        if sample.is_constant:
            sample = WeightedSample(np.array([sample.median()]), np.ones(1))
        sample = sample.without_near_ties()
        self.values = sample.values
        self.levels = sample.levels
        self.lower_scale = _tail_scale(sample)
        self.upper_scale = _tail_scale(sample.mirrored)

    def probability(self, scores: FloatArray) -> FloatArray:
        """Return F at each score, in the open interval (0, 1)."""
        result = np.asarray(np.interp(scores, self.values, self.levels))
        lower, upper = scores < self.values[0], scores > self.values[-1]
        # one row at a time is mostly inside, and its time counts
        if lower.any():
            far = _decay(scores[lower], self.values[0], self.lower_scale)
            result[lower] = np.maximum(self.levels[0] * far, np.finfo(float).tiny)
        if upper.any():
            far = _decay(scores[upper], self.values[-1], self.upper_scale)
            highest = np.nextafter(1.0, 0.0)
            result[upper] = np.minimum(1.0 - (1.0 - self.levels[-1]) * far, highest)
        return result


def _decay(scores: FloatArray, end: float, scale: float) -> FloatArray:
    # a distance that overflows has probability 0 all the same
    with np.errstate(over="ignore"):
        return np.asarray((1.0 + np.abs(scores - end) / scale / 2.0) ** -2.0)


def tail_decay(sample: WeightedSample, scores: FloatArray) -> FloatArray:
    """Return how much rarer than the lowest of a sample scores below it are, in (0, 1]."""
    far = _decay(scores, sample.values[0], _tail_scale(sample))
    return np.maximum(far, np.finfo(float).tiny)


def _tail_scale(sample: WeightedSample) -> float:
    """Return the mean distance of the lowest values to the upper end of the tail.

    That is 5 % of the normals, at least 5 distinct values, but never more than half.
    """
    levels = sample.levels
    share = min(max(0.05, float(levels[min(5, len(levels)) - 1])), 0.5)
    distance = np.maximum(sample.smooth_quantile(share) - sample.values, 0.0)
    # divided by the share, not by the weight counted: no jump when a tie enters the tail
    excess = float(np.average(distance, weights=sample.weights)) / share
    if sample.resolves(excess):
        return excess
    return sample.mean_and_sd()[1] or sample.size
