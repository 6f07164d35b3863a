"""A score axis on which both the crowd of normal rows and far anomalies can be seen."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ocfuse.arrays import FloatArray


@dataclass(frozen=True)
class ScoreAxis:
    """Place scores by asinh((s - centre) / unit): even in the crowd, compressed far out.

    Attributes
    ----------
    centre, unit : float
        Median of the normal scores and half the distance of their quartiles.
    low, high : float
        Ends of the axis, as places.
    """

    #: bars of a histogram
    n_bins: ClassVar[int] = 60

    centre: float
    unit: float
    low: float
    high: float

    @classmethod
    def over(cls, normal: FloatArray, fresh: FloatArray) -> "ScoreAxis":
        """Return an axis that has room for all scores."""
        first, centre, third = np.quantile(normal, [0.25, 0.5, 0.75])
        ends = [min(normal.min(), fresh.min()), max(normal.max(), fresh.max())]
        # nothing can be told apart within less than this, and quotients would overflow
        least = 1e-12 * (ends[1] - ends[0])
        half, spread = (third - first) / 2, float(normal.std())
        unit = half if half > least else spread if spread > least else 1.0
        low, high = np.arcsinh((np.array(ends) - centre) / unit)
        margin = 0.03 * (high - low) or 1.0
        return cls(float(centre), float(unit), float(low - margin), float(high + margin))

    def place(self, scores: FloatArray) -> FloatArray:
        """Return the places of scores."""
        return np.asarray(np.arcsinh((scores - self.centre) / self.unit))

    def score(self, places: FloatArray) -> FloatArray:
        """Return the scores at places."""
        return np.asarray(self.centre + self.unit * np.sinh(places))

    def count(self, scores: FloatArray) -> list[int]:
        """Count scores in bars of equal width."""
        counts, _ = np.histogram(self.place(scores), bins=self.n_bins, range=(self.low, self.high))
        return [int(count) for count in counts]

    def ticks(self, most: int = 7) -> list[float]:
        """Return round scores, near to evenly placed."""
        scores = self.score(np.linspace(self.low, self.high, most + 2)[1:-1])
        gaps = np.abs(np.gradient(scores))
        return sorted({_round(score, gap) for score, gap in zip(scores, gaps, strict=True)})


def _round(score: float, gap: float) -> float:
    """Round to a power of ten, or half of one, that the distance of ticks allows."""
    step = 10.0 ** math.floor(math.log10(gap)) if gap > 0 else 1.0
    step = 5 * step if gap >= 5 * step else step
    return float(round(score / step) * step)
