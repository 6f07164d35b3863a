"""The test of Skillings and Mack: whether systems differ at all, with gaps allowed."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ocfuse.exceptions import FewSamplesWarning, InvalidInputError
from ocfuse.optional import slow
from ocfuse.stats.ranks import FloatArray, ranks_within, require_count, result_table

#: A resampled statistic within this of the observed one is taken as equal to it.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SkillingsMack:
    """What `skillings_mack` has found.

    Attributes
    ----------
    statistic : float
        T, the larger the more the systems differ.
    df : int
        Degrees of freedom: the systems less the groups that never meet; one
        less than the systems, if the sets connect all.
    p_value : float
        Of the chi-squared distribution; conservative with ties and on few sets.
    resampled_p_value : float or None
        (c + 1) / (n_resamples + 1) where c resampled statistics are as large;
        None without resampling.
    mean_ranks : ndarray of shape (n_systems,)
        Mean rank of every system, 1 the best, gaps at the mid-rank.
    n_sets : int
        Sets with at least two results, which all of this is about.
    """

    statistic: float
    df: int
    p_value: float
    resampled_p_value: float | None
    mean_ranks: FloatArray
    n_sets: int


def skillings_mack(
    table: ArrayLike, *, n_resamples: int = 0, random_state: Any = None
) -> SkillingsMack:
    """Test whether any system differs from the others, over sets with gaps.

    With k_i results on set i, ranks r_ij (means for ties) and the mid-rank for
    a gap::

        A_j = sum_i sqrt(12 / (k_i + 1)) (r_ij - (k_i + 1) / 2)
        T = A' S^+ A,  S_jl = -(number of sets with both j and l),  rows of S sum to 0

    T is nearly chi-squared with rank(S) degrees of freedom. Without gaps and
    ties it is Friedman's statistic, in balanced incomplete blocks Durbin's.
    Systems that no chain of sets connects are not compared: T is the sum over
    the groups that are. The test does not say which systems differ; for that
    see `wilcoxon_holm`.

    A set with one result or none adds nothing to A or S. It is left out with a
    warning (the R package Skillings.Mack refuses it), because it is usually a
    mistake, such as a transposed table.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a gap. T and the p-values are the
        same if lower is better.
    n_resamples : int, default=0
        Also compute a p-value from so many random tables in which the ranks of
        every set, ties included, are dealt out anew over its results. For few
        sets or many ties; 10000 is usual.
    random_state : int, RandomState instance or None, default=None
        Seeds the resampling.

    Returns
    -------
    SkillingsMack
        Statistic, degrees of freedom, p-values and mean ranks.

    References
    ----------
    Skillings, J. H. and Mack, G. A. (1981). On the use of a Friedman-type
    statistic in balanced and unbalanced block designs. Technometrics 23,
    171-177.

    Chatfield, M. and Mander, A. (2009). The Skillings-Mack test (Friedman test
    when there are missing data). The Stata Journal 9, 299-305.

    Examples
    --------
    >>> from ocfuse.stats import skillings_mack
    >>> found = skillings_mack([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0], [2.0, 1.0, float("nan")]])
    >>> round(found.statistic, 2), found.df
    (4.98, 2)
    """
    results = _informative(result_table(table))
    require_count("n_resamples", n_resamples, 0)
    random = _generator(random_state)
    ranks = ranks_within(results)
    is_seen = ~np.isnan(results)
    terms = _terms(ranks, is_seen)
    inverse, df = _inverse_covariance(is_seen)
    statistic = float(_quadratic(terms.sum(axis=0), inverse))
    resampled = None
    if n_resamples:
        drawn = _quadratic(_resampled_sums(terms, is_seen, n_resamples, random), inverse)
        count = int(np.sum(drawn >= statistic * (1.0 - ROUNDING)))
        resampled = (count + 1) / (int(n_resamples) + 1)
    p_value = float(slow("scipy.stats").chi2.sf(statistic, df))
    return SkillingsMack(statistic, df, p_value, resampled, ranks.mean(axis=0), len(results))


def _generator(random_state: Any) -> RandomState:
    try:
        generator: RandomState = check_random_state(random_state)
    except ValueError:
        raise InvalidInputError(
            "random_state must be an integer from 0 to 2^32 - 1, a RandomState or None. "
            f"Got random_state={random_state!r}."
        ) from None
    return generator


def _informative(results: FloatArray) -> FloatArray:
    """Return the sets with at least two results, or refuse if there are none."""
    is_kept = np.sum(~np.isnan(results), axis=1) > 1
    if not is_kept.any():
        raise InvalidInputError("table must have a set with at least two results. Got none.")
    if not is_kept.all():
        warnings.warn(
            f"{np.sum(~is_kept)} of {len(results)} sets have fewer than two results, say nothing "
            "about the systems and are left out. Sets belong in rows, systems in columns.",
            FewSamplesWarning,
            stacklevel=3,
        )
    kept: FloatArray = results[is_kept]
    return kept


def _terms(ranks: FloatArray, is_seen: NDArray[np.bool_]) -> FloatArray:
    """Return the terms of A: centred ranks, weighted by the size of the set."""
    k = is_seen.sum(axis=1, keepdims=True)
    terms: FloatArray = np.sqrt(12.0 / (k + 1)) * (ranks - (k + 1) / 2)
    return terms


def _inverse_covariance(is_seen: NDArray[np.bool_]) -> tuple[FloatArray, int]:
    """Return the pseudo-inverse of S and its rank.

    S is the Laplacian of the graph whose edges count the sets in which two
    systems meet, so its rank is known without rounding.
    """
    both = is_seen.T.astype(np.float64) @ is_seen
    np.fill_diagonal(both, 0.0)
    n_groups, _ = slow("scipy.sparse.csgraph").connected_components(both, directed=False)
    covariance = np.diag(both.sum(axis=1)) - both
    inverse: FloatArray = np.linalg.pinv(covariance, hermitian=True).astype(np.float64)
    return inverse, len(both) - int(n_groups)


def _quadratic(sums: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return A' S^+ A, for one vector of sums or for many."""
    values: FloatArray = np.sum((sums @ inverse) * sums, axis=-1)
    return values


def _resampled_sums(
    terms: FloatArray, is_seen: NDArray[np.bool_], n_resamples: int, random: RandomState
) -> FloatArray:
    """Deal the terms of every set out anew over its results, and sum over the sets."""
    rng = np.random.default_rng(random.randint(2**31 - 1))
    sums = np.zeros((n_resamples, terms.shape[1]))
    for row, seen in zip(terms, is_seen, strict=True):
        sums[:, seen] += rng.permuted(np.tile(row[seen], (n_resamples, 1)), axis=1)
    return sums
