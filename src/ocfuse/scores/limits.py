"""A threshold from very few scores of normal runs."""

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import InvalidInputError
from ocfuse.optional import slow

#: Standard deviation of a Gaussian in units of its median absolute deviation.
SD_PER_MAD = 1.482602218505602


def prediction_limit(scores: ArrayLike, false_alarm_rate: float = 0.05) -> float:
    """Return a threshold from so few normal scores that they have no such quantile.

    ``median - t 1.4826 MAD sqrt(1 + 1/n)`` with t the quantile of Student's law with
    n - 1 degrees of freedom: the limit that one more Gaussian score stays above, made
    robust. With ten scores the lowest of them stands for a rate of 9 %, whatever is asked
    for; this goes on beyond it. It trusts the middle of the scores to tell their tail,
    so prefer `FusedDetector.set_threshold` from ``1 / false_alarm_rate`` scores on.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Held-out scores of normal runs, such as `training_scores_`; NaN is left out.
    false_alarm_rate : float, default=0.05
        Share of fresh normal runs that may score lower.

    Returns
    -------
    float
        The threshold, for `FusedDetector.set_threshold(offset=...)`.

    Examples
    --------
    >>> from ocfuse.scores import prediction_limit
    >>> round(prediction_limit([0.1, 0.3, -0.2, 0.0, -0.1, -4.0]), 2)
    -0.53
    """
    if not 0 < false_alarm_rate < 0.5:
        raise InvalidInputError(
            f"false_alarm_rate must be in (0, 0.5), such as 0.05. Got {false_alarm_rate!r}."
        )
    values = np.asarray(scores, dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 3:
        raise InvalidInputError(f"At least 3 scores are needed to tell their spread. Got {n}.")
    middle = np.median(values)
    spread = SD_PER_MAD * np.median(np.abs(values - middle))
    quantile = slow("scipy.stats").t.ppf(1.0 - false_alarm_rate, n - 1)
    return float(middle - quantile * spread * np.sqrt(1.0 + 1.0 / n))
