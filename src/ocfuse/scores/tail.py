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
    their order. Scores that differ by rounding at most are one of the v: a
    line between them would be so steep that rounding moves F.

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
        return np.asarray((1.0 + np.abs(scores - end) / scale / DECAY) ** -DECAY)


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
