"""Sums of small deviations, in which a weak but lasting anomaly shows."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.fusion.inputs import check_number
from ocfuse.streaming.runs import one_run

FloatArray: TypeAlias = NDArray[np.float64]


class Cusum:
    """Add small deviations of scores up, one after another, as they come.

    ``s_t = min(0, s_{t-1} + z_t - centre + slack)``, and 0 at the start: as the scores,
    it is lower for stranger samples. Scores around `centre` keep it near 0; scores that
    stay more than `slack` below it pull it down further and further. NaN (no score)
    changes nothing.

    Parameters
    ----------
    centre : float
        Usual score, such as the median of the held-out training scores.
    slack : float, default=0.0
        Deviation that is forgiven in every sample, such as half of their spread.

    Attributes
    ----------
    total : float
        The sum so far.

    Examples
    --------
    >>> from ocfuse.streaming import Cusum
    >>> sums = Cusum(centre=0.0, slack=0.5)
    >>> [sums.update(score) for score in (1.0, -1.0, -1.0, 3.0)]
    [0.0, -0.5, -1.0, 0.0]
    """

    def __init__(self, centre: float, slack: float = 0.0) -> None:
        usual = "The median of normal scores is usual."
        self.centre = check_number(centre, "centre", -math.inf, math.inf, usual)
        self.slack = check_number(slack, "slack", 0.0, math.inf, "0 forgives nothing.")
        self.total = 0.0

    def update(self, score: float) -> float:
        """Take the next score; return the sum."""
        if not math.isnan(score):
            self.total = min(0.0, self.total + float(score) - (self.centre - self.slack))
        return self.total


def cusum(scores: ArrayLike, centre: float, slack: float = 0.0) -> FloatArray:
    """Return the sums of a run, as `Cusum` makes them.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of a run in the order of time; NaN where there is none.
    centre, slack : float
        As in `Cusum`.

    Returns
    -------
    ndarray of shape (n,)
        The sums; a threshold for `events` comes from those of normal runs.

    Examples
    --------
    >>> from ocfuse.streaming import cusum
    >>> cusum([1.0, -1.0, -1.0, 3.0], centre=0.0, slack=0.5)
    array([ 0. , -0.5, -1. ,  0. ])
    """
    sums = Cusum(centre, slack)
    return np.array([sums.update(score) for score in one_run(scores)])
