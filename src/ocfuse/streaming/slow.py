"""The slow mean of a stream: where its channels are by now, and whether they have left training."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.optional import slow

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

#: Spreads of the slow mean that it may be away from training.
FAR = 6.0
#: Spreads of a channel by which one value pulls its mean at most: sensors glitch.
STRONGEST = 10.0
#: Fewest blocks that tell how means vary, and the doubt that their variance is allowed for.
FEWEST_BLOCKS, DOUBT = 4, 0.05


class Rest:
    """Where the channels rest in training, and how much their means wander.

    Parameters
    ----------
    samples : ndarray of shape (n, c)
        Training samples, NaN for gaps.
    slices : list of slice
        Their runs.

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
            if n.max(initial=0) < FEWEST_BLOCKS:
                return
            doubt = slow("scipy.stats").chi2.ppf(DOUBT, np.maximum(n - 1, 1))
            bound = np.nansum(means**2, axis=0) / doubt
            enough = n >= FEWEST_BLOCKS
            self.unrest = np.where(enough, np.maximum(self.unrest, length * bound), self.unrest)
            length *= 2


class SlowMean:
    """A mean of every channel that forgets by halves.

    While it is young all values count alike. A value further away than ten standard
    deviations of training counts as one that is so far away.

    Parameters
    ----------
    half_life : float
        Samples after which a value counts half.
    spread : ndarray of shape (c,)
        Standard deviations in training.

    Attributes
    ----------
    mean : ndarray of shape (c,)
        The mean; NaN before the first value.
    n_behind : ndarray of shape (c,)
        Number of values that count alike whose mean would be as sure.
    """

    def __init__(self, half_life: float, spread: FloatArray) -> None:
        self.half_life = float(half_life)
        self.rate = 1.0 - 0.5 ** (1.0 / self.half_life)
        self.reach = np.where(spread > 0, STRONGEST * spread, np.inf)
        self.mean: FloatArray = np.full(len(spread), np.nan)
        self.n_behind: FloatArray = np.zeros(len(spread))

    def follow(self, sample: FloatArray) -> FloatArray:
        """Take a sample in, NaN for gaps; return the mean before it, or itself if first."""
        present = ~np.isnan(sample)
        n = self.n_behind
        before = np.where(n > 0, self.mean, sample)
        share = np.maximum(self.rate, 1.0 / (n + 1.0))
        step = np.clip(sample - before, -self.reach, self.reach)
        self.mean = np.where(present, before + share * step, self.mean)
        # the first value has share 1, whatever it is divided by
        sure = 1.0 / ((1.0 - share) ** 2 / np.maximum(n, 1.0) + share**2)
        self.n_behind = np.where(present, sure, n)
        return before

    def has_left(self, rest: Rest) -> BoolArray:
        """Tell which channels are further from training than chance explains."""
        away = np.abs(self.mean - rest.centre) > self._limit(rest)
        return np.asarray(away & (self.n_behind >= self.half_life))

    def distance(self, rest: Rest) -> FloatArray:
        """Return how far channels are from training; above 1 is more than chance explains."""
        away, limit = np.abs(self.mean - rest.centre), self._limit(rest)
        ratio: FloatArray = np.where(away > 0, np.inf, 0.0)
        np.divide(away, limit, out=ratio, where=limit > 0)
        return ratio

    def _limit(self, rest: Rest) -> FloatArray:
        n = np.maximum(self.n_behind, 1.0)
        return np.asarray(FAR * np.sqrt(rest.unrest / n) + 1e-9 * np.abs(rest.centre))


def _block_means(samples: FloatArray, length: int) -> FloatArray:
    """Return the means of blocks of neighbours; NaN where less than half is present."""
    n = len(samples) // length
    blocks = samples[: n * length].reshape(n, length, samples.shape[1])
    present = (~np.isnan(blocks)).sum(axis=1)
    means = np.nansum(blocks, axis=1) / np.maximum(present, 1)
    return np.where(2 * present >= length, means, np.nan)
