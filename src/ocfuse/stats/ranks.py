"""Ranks of systems within data sets, ties, and rank correlation."""

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.system.packages import slow


def result_table(table: ArrayLike) -> FloatArray:
    """Return results of shape (n_sets, n_systems), NaN where there is none, or refuse."""
    try:
        results = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"table must hold real numbers, or NaN for a gap. {error}."
        ) from None
    if results.ndim != 2 or results.shape[0] < 1 or results.shape[1] < 2:
        raise InvalidInputError(
            "table must have shape (n_sets, n_systems) with at least one set and two systems. "
            f"Got shape {results.shape}."
        )
    if np.isinf(results).any():
        raise InvalidInputError("table must be finite, with NaN for a gap. Got an infinite result.")
    return results


def ranks_within(results: FloatArray) -> FloatArray:
    """Rank every row: 1 for the highest, means for ties, the mid-rank for a gap."""
    ranks = slow("scipy.stats").rankdata(-steps(results), axis=1, nan_policy="omit")
    middle = (np.sum(~np.isnan(results), axis=1, keepdims=True) + 1.0) / 2.0
    filled: FloatArray = np.where(np.isnan(results), middle, ranks)
    return filled


def mean_ranks(table: ArrayLike) -> FloatArray:
    """Return the mean rank of each system over the data sets.

    Rank 1 is the best, that is, the highest result. Ties have the mean of their ranks; results
    that differ only by rounding are ties. A missing result has the middle rank of the systems with
    a result on that set, so that it is neither an advantage nor a disadvantage.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a missing result.

    Returns
    -------
    ndarray of shape (n_systems,)
        The mean ranks.

    Examples
    --------
    >>> from ocfuse.stats import mean_ranks
    >>> mean_ranks([[0.9, 0.8, 0.7], [0.6, 0.6, float("nan")]])
    array([1.25, 1.75, 2.25])
    """
    ranks: FloatArray = ranks_within(result_table(table)).mean(axis=0)
    return ranks


def critical_difference(n_systems: int, n_sets: int, alpha: float = 0.05) -> float:
    """Return the difference of two mean ranks that is significant in Nemenyi's test.

    It holds for all pairs together, after Friedman's test, on a table without missing results::

        CD = q / sqrt(2) * sqrt(k (k + 1) / (6 n))

    with k systems, n sets and q the upper alpha-quantile of the studentised range of k values. It
    increases with the number of systems, so compare few.

    Parameters
    ----------
    n_systems : int
        Number of systems, at least 2.
    n_sets : int
        Number of data sets.
    alpha : float, default=0.05
        Probability of any false difference among all pairs, in (0, 1).

    Returns
    -------
    float
        The critical difference of mean ranks.

    Examples
    --------
    >>> from ocfuse.stats import critical_difference
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    require_count("n_systems", n_systems, 2)
    require_count("n_sets", n_sets, 1)
    level: Any = alpha
    if isinstance(level, bool) or not isinstance(level, numbers.Real):
        raise InvalidTypeError(f"alpha must be a number. Got alpha={alpha!r}. Use 0.05.")
    if not 0.0 < alpha < 1.0:
        raise InvalidInputError(f"alpha must be in (0, 1). Got alpha={alpha!r}. Use 0.05.")
    q = float(slow("scipy.stats").studentized_range.ppf(1.0 - alpha, n_systems, np.inf))
    return q / math.sqrt(2.0) * math.sqrt(n_systems * (n_systems + 1) / (6.0 * n_sets))


def require_count(name: str, value: Any, least: int) -> None:
    """Refuse what is not an integer of at least this size."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidTypeError(f"{name} must be an integer. Got {name}={value!r}.")
    if value < least:
        raise InvalidInputError(f"{name} must be at least {least}. Got {name}={value}.")


def steps(values: ArrayLike, unit: float | None = None) -> NDArray[np.float64]:
    """Return the place of each value along the last axis, from 0 upwards; level ones share it.

    Values are level if no gap between neighbours, in their order, exceeds 1e-12 of the
    unit, by default the largest absolute value of the row: 0.1 + 0.2 and 0.3 are not the
    same number in binary. NaN has no place, and stays NaN.
    """
    table = np.asarray(values, dtype=np.float64)
    known = np.where(np.isnan(table), 0.0, np.abs(table))
    units = known.max(axis=-1, keepdims=True) if unit is None else np.asarray(unit)
    scaled = table / np.where(units > 0.0, units, 1.0)
    order = np.argsort(scaled, axis=-1)  # NaN last
    is_higher = np.diff(np.take_along_axis(scaled, order, axis=-1), axis=-1) > 1e-12
    places = np.zeros_like(table)
    places[..., 1:] = np.cumsum(is_higher, axis=-1)
    found = np.empty_like(table)
    np.put_along_axis(found, order, places, axis=-1)
    found[np.isnan(table)] = np.nan
    return found


def rank_correlation(S: ArrayLike) -> FloatArray:
    """Return Spearman's correlation of every pair of the d columns of scores, of shape (d, d).

    It is NaN for a column that is constant.

    Examples
    --------
    >>> from ocfuse.stats.ranks import rank_correlation
    >>> rank_correlation([[1.0, 30.0], [2.0, 20.0], [3.0, 10.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    ranks = slow("scipy.stats").rankdata(np.asarray(S, dtype=np.float64), axis=0)
    ranks -= ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    with np.errstate(invalid="ignore"):
        R: FloatArray = (ranks.T @ ranks) / np.outer(length, length)
    np.fill_diagonal(R, np.where(length > 0, 1.0, np.nan))
    return np.clip(R, -1.0, 1.0)
