"""Offsets of a score that rest on what was observed: an alarm is score < offset."""

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.scores.checks import label_vector, rate_in_open_interval, require_rows, score_vector
from ocfuse.scores.conformal import whole_part


def quantile_threshold(scores: ArrayLike, rate: float) -> float:
    """Return the largest offset that at most a share `rate` of the scores is below.

    A statement on the given scores only; `conformal_threshold` makes one on
    fresh normals.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Scores of normals.
    rate : float
        Share of false alarms among them, in (0, 1).

    Returns
    -------
    float
        The (floor(rate n) + 1)-th smallest score.

    Examples
    --------
    >>> from ocfuse.scores import quantile_threshold
    >>> quantile_threshold([1.0, 2.0, 3.0, 4.0], 0.25)
    2.0
    """
    normals = np.sort(require_rows(score_vector(scores), "scores"))
    n_below = whole_part(rate_in_open_interval(rate, "rate") * len(normals))
    return float(normals[min(n_below, len(normals) - 1)])


def gmean_threshold(scores: ArrayLike, y: ArrayLike) -> float:
    """Return the offset with the largest geometric mean of the two hit rates.

    Maximises sqrt(TPR TNR), TPR the share of normals with score >= offset, TNR
    the share of anomalies below it. The offset is the middle between two
    neighbouring scores; of several equally good places the lowest is taken,
    which has the fewest false alarms. If all scores are equal, that score.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Higher is more normal.
    y : array_like of shape (n,)
        +1 normal, -1 anomaly; both must occur.

    Returns
    -------
    float
        The offset.

    Examples
    --------
    >>> from ocfuse.scores import gmean_threshold
    >>> gmean_threshold([1.0, 2.0, 4.0, 5.0], [-1, -1, 1, 1])
    3.0
    """
    checked = score_vector(scores)
    is_normal = label_vector(y, len(checked)) > 0
    values, position = np.unique(checked, return_inverse=True)
    if len(values) == 1:
        return float(values[0])
    # whole numbers, so that equally good places tie exactly
    normals_below = np.cumsum(np.bincount(position, weights=is_normal))[:-1]
    anomalies_below = np.cumsum(np.bincount(position, weights=~is_normal))[:-1]
    best = int(np.argmax((is_normal.sum() - normals_below) * anomalies_below))
    low, high = values[best], values[best + 1]
    middle = 0.5 * low + 0.5 * high
    # between neighbouring floats there is no middle
    return float(middle if middle > low else high)
