"""The scores of the normals as a weighted sample of distinct values."""

from dataclasses import dataclass

import numpy as np

from ocfuse.scores.checks import FloatArray

#: A spread below this many rounding units of the values is taken for rounding.
ROUNDING_UNITS = 64.0
#: Gaps below this share of the range of the middle 90 % are taken for ties: detectors
#: magnify rounding, and values that differ by it must not count as different.
TIE_SHARE = 1e-9


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
        """Merge neighbours that differ by rounding at most, at their weighted mean."""
        middle = self.step_quantile(0.95) - self.step_quantile(0.05)
        gaps = np.diff(self.values)
        apart = (gaps > self._rounding) & (gaps > TIE_SHARE * middle)
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
        """Tell a spread from rounding."""
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
        return ROUNDING_UNITS * float(np.finfo(float).eps) * self._magnitude

    @property
    def _magnitude(self) -> float:
        return float(max(abs(self.values[0]), abs(self.values[-1])))
