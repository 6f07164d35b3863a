"""The smooth distribution function of the normal scores."""

import numpy as np

from ocfuse.scores.checks import FloatArray
from ocfuse.scores.sample import WeightedSample

#: The tail is fitted to this share of the normals ...
TAIL_SHARE = 0.05
#: ... and to at least so many distinct values, but never to more than half.
TAIL_POINTS = 5
#: Exponent of the decay. An exponential is 0 in double precision 750 scales
#: away, where far anomalies would tie; this keeps them apart, and is cautious.
DECAY = 2.0


class SmoothTail:
    """Probability that a normal scores lower, increasing over all numbers.

    Between the lowest and the highest of m distinct normal scores v: linear
    between the points (v_i, F_i), F_i the share below v_i plus half the share
    at v_i. Outside, with b the mean distance of the lowest 5 % to their upper
    end (at least 5 distinct scores, at most half)::

        F(s) = F_1 (1 + (v_1 - s) / (2 b))^-2       for s < v_1

    and likewise 1 - F above v_m. The slope at v_1 is that of an exponential
    tail of scale b; further out it decays slower, so that far scores keep
    their order.

    Parameters
    ----------
    sample : WeightedSample
        Scores of the normals.
    """

    def __init__(self, sample: WeightedSample) -> None:
        if sample.is_constant:
            sample = WeightedSample(np.array([sample.median()]), np.ones(1))
        self.values = sample.values
        self.levels = sample.levels
        self.lower_scale = _tail_scale(sample)
        self.upper_scale = _tail_scale(sample.mirrored)

    def probability(self, scores: FloatArray) -> FloatArray:
        """Return F at each score, in the open interval (0, 1)."""
        # a distance that overflows has probability 0 all the same
        with np.errstate(over="ignore"):
            below = self.levels[0] * _decay((self.values[0] - scores) / self.lower_scale)
            above = (1.0 - self.levels[-1]) * _decay((scores - self.values[-1]) / self.upper_scale)
        inside = self._between(scores)
        result = np.where(scores < self.values[0], below, inside)
        result = np.where(scores > self.values[-1], 1.0 - above, result)
        # only what rounds to 0 or 1 is moved
        return np.clip(result, np.finfo(float).tiny, np.nextafter(1.0, 0.0))

    def _between(self, scores: FloatArray) -> FloatArray:
        # np.interp may overshoot the next value by one rounding unit, which breaks the order
        last = len(self.values) - 1
        right = np.clip(np.searchsorted(self.values, scores, side="right"), 1, max(last, 1))
        left, right = right - 1, np.minimum(right, last)
        gap = self.values[right] - self.values[left]
        share = np.clip(scores - self.values[left], 0.0, gap) / np.where(gap > 0, gap, 1.0)
        rise = self.levels[right] - self.levels[left]
        return np.minimum(self.levels[left] + share * rise, self.levels[right])


def _decay(distance: FloatArray) -> FloatArray:
    return np.asarray((1.0 + np.maximum(distance, 0.0) / DECAY) ** -DECAY)


def _tail_scale(sample: WeightedSample) -> float:
    """Return the mean distance of the lowest values to the upper end of the tail."""
    levels = sample.levels
    share = min(max(TAIL_SHARE, float(levels[min(TAIL_POINTS, len(levels)) - 1])), 0.5)
    distance = np.maximum(sample.smooth_quantile(share) - sample.values, 0.0)
    # divided by the share, not by the weight counted: no jump when a tie enters the tail
    excess = float(np.average(distance, weights=sample.weights)) / share
    if sample.resolves(excess):
        return excess
    return sample.mean_and_sd()[1] or sample.size
