"""The test of Skillings and Mack: whether systems differ at all, with gaps allowed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2
from sklearn.utils import check_random_state

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats.ranks import FloatArray, ranks_within, result_table

#: A resampled statistic within this of the observed one is taken as equal to it.
ROUNDING = 1e-9


@dataclass(frozen=True)
class SkillingsMack:
    """What `skillings_mack` has found.

    Attributes
    ----------
    statistic : float
        T, the larger the more the systems differ.
    df : int
        Degrees of freedom: one less than the systems, if the sets connect all.
    p_value : float
        Of the chi-squared distribution; conservative with many ties.
    resampled_p_value : float or None
        Share of resampled statistics that are as large, if resampled.
    """

    statistic: float
    df: int
    p_value: float
    resampled_p_value: float | None = None


def skillings_mack(
    table: ArrayLike, *, n_resamples: int = 0, random_state: Any = None
) -> SkillingsMack:
    """Test whether any system differs from the others, over sets with gaps.

    With k_i results on set i, ranks r_ij and the mid-rank for a gap::

        A_j = sum_i sqrt(12 / (k_i + 1)) (r_ij - (k_i + 1) / 2)
        T = A' S^+ A,  S_jl = -(number of sets with both j and l),  rows of S sum to 0

    T is nearly chi-squared with rank(S) degrees of freedom. Without gaps and
    ties it is Friedman's statistic. Sets with one result or none say nothing
    and are left out. It does not say which systems differ.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results; NaN for a gap. Whether high or low is better does not matter.
    n_resamples : int, default=0
        Also compute a p-value from so many random tables in which the ranks of
        every set, ties included, are dealt out anew. For few sets or many ties.
    random_state : int, RandomState instance or None, default=None
        Seeds the resampling.

    Returns
    -------
    SkillingsMack
        Statistic, degrees of freedom and p-values.

    Examples
    --------
    >>> from ocfuse.stats import skillings_mack
    >>> found = skillings_mack([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0], [2.0, 1.0, float("nan")]])
    >>> round(found.statistic, 2), found.df
    (4.98, 2)
    """
    results = result_table(table)
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer):
        raise InvalidTypeError(f"n_resamples must be an integer. Got {n_resamples!r}.")
    if n_resamples < 0:
        raise InvalidInputError(f"n_resamples must not be negative. Got {n_resamples}. Use 10000.")
    results = results[np.sum(~np.isnan(results), axis=1) > 1]
    if not len(results):
        raise InvalidInputError("table must have a set with at least two results. Got none.")
    pooled, df = _inverse_covariance(~np.isnan(results))
    deviations = _deviations(results)
    statistic = float(_statistic(deviations.sum(axis=0), pooled))
    resampled = None
    if n_resamples:
        sums = _resampled_sums(results, deviations, n_resamples, random_state)
        count = np.sum(_statistic(sums, pooled) >= statistic * (1.0 - ROUNDING))
        resampled = float((count + 1) / (n_resamples + 1))
    return SkillingsMack(statistic, df, float(chi2.sf(statistic, df)), resampled)


def _deviations(results: FloatArray) -> FloatArray:
    """Return the terms of A: centred ranks, weighted by the size of the set."""
    k = np.sum(~np.isnan(results), axis=1, keepdims=True)
    deviations: FloatArray = np.sqrt(12.0 / (k + 1)) * (ranks_within(results) - (k + 1) / 2)
    return deviations


def _inverse_covariance(observed: Any) -> tuple[FloatArray, int]:
    """Return the pseudo-inverse of S and its rank."""
    both = observed.T.astype(np.float64) @ observed
    np.fill_diagonal(both, 0.0)
    covariance = np.diag(both.sum(axis=1)) - both
    return np.linalg.pinv(covariance, hermitian=True), int(
        np.linalg.matrix_rank(covariance, hermitian=True)
    )


def _statistic(sums: FloatArray, pooled: FloatArray) -> Any:
    """Return A' S^+ A, for one vector of sums or for many."""
    return np.einsum("...j,jl,...l->...", sums, pooled, sums, optimize=True)


def _resampled_sums(
    results: FloatArray, deviations: FloatArray, n_resamples: int, random_state: Any
) -> FloatArray:
    """Deal the terms of every set out anew over its results, and sum over the sets."""
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    sums = np.zeros((n_resamples, results.shape[1]))
    for row, terms in zip(results, deviations, strict=True):
        seen = np.flatnonzero(~np.isnan(row))
        sums[:, seen] += rng.permuted(np.tile(terms[seen], (n_resamples, 1)), axis=1)
    return sums
