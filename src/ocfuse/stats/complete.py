"""Friedman's test: whether systems differ at all, on tables without gaps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import InvalidInputError
from ocfuse.optional import slow
from ocfuse.stats.ranks import FloatArray, ranks_within, result_table


@dataclass(frozen=True, eq=False)
class Friedman:
    """What `friedman` has found.

    Attributes
    ----------
    statistic : float
        Friedman's chi-squared, corrected for ties.
    df : int
        Its degrees of freedom: one less than the systems.
    p_value : float
        Of the chi-squared distribution; conservative on few sets.
    f_statistic : float
        The F of Iman and Davenport; infinite if all sets agree on the order.
    f_df : tuple of int
        Its two degrees of freedom.
    f_p_value : float
        Of the F distribution; nearer to the truth than `p_value`.
    mean_ranks : ndarray of shape (n_systems,)
        Mean rank of every system; 1 is the best.
    """

    statistic: float
    df: int
    p_value: float
    f_statistic: float
    f_df: tuple[int, int]
    f_p_value: float
    mean_ranks: FloatArray


def friedman(table: ArrayLike) -> Friedman:
    """Test whether any system differs from the others, on a table without gaps.

    With n sets, k systems, ranks r_ij (means for ties) and mean ranks R_j::

        Q = (k - 1) n^2 sum_j (R_j - (k + 1) / 2)^2 / sum_ij (r_ij - (k + 1) / 2)^2
        F = (n - 1) Q / (n (k - 1) - Q)

    Q is nearly chi-squared with k - 1 degrees of freedom, F nearly F with k - 1
    and (k - 1)(n - 1). With gaps use `skillings_mack`, which makes no correction
    for ties and equals Q without them.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results without gaps on at least two sets; higher is better.

    Returns
    -------
    Friedman
        Both statistics with their p-values, and the mean ranks.

    Examples
    --------
    >>> from ocfuse.stats import friedman
    >>> found = friedman([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0], [2.0, 1.0, 3.0]])
    >>> round(found.statistic, 2), round(found.f_statistic, 2), found.f_df
    (4.67, 7.0, (2, 4))
    """
    results = result_table(table)
    if np.isnan(results).any():
        raise InvalidInputError("table must have no gaps. Got NaN. Use skillings_mack.")
    n, k = results.shape
    if n < 2:
        raise InvalidInputError("table must have at least two sets. Got one.")
    deviations = ranks_within(results) - (k + 1) / 2
    spread = float(np.sum(deviations**2))
    means: FloatArray = deviations.mean(axis=0)
    # if every set ties all its systems, nothing differs
    statistic = float((k - 1) * n**2 * (means @ means) / spread) if spread else 0.0
    df, f_df = k - 1, (k - 1, (k - 1) * (n - 1))
    f_statistic = _iman_davenport(statistic, n, df)
    return Friedman(
        statistic,
        df,
        float(slow("scipy.stats").chi2.sf(statistic, df)),
        f_statistic,
        f_df,
        float(slow("scipy.stats").f.sf(f_statistic, *f_df)),
        means + (k + 1) / 2,
    )


def _iman_davenport(statistic: float, n: int, df: int) -> float:
    """Turn Friedman's statistic into F; its largest value, up to rounding, into infinity."""
    room = n * df - statistic
    return (n - 1) * statistic / room if room > 1e-12 * n * df else np.inf
