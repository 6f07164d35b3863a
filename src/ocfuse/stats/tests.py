"""Tests: Friedman, Skillings-Mack, pairs of systems, Holm's correction."""

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray
from ocfuse.exceptions import FewSamplesWarning, InvalidInputError, InvalidTypeError
from ocfuse.stats.ranks import ranks_within, require_count, result_table, steps
from ocfuse.system.packages import slow


@dataclass(frozen=True, eq=False)
class Friedman:
    """Result of `friedman`.

    Attributes
    ----------
    statistic : float
        Friedman's chi-squared, corrected for ties.
    df : int
        Degrees of freedom of the statistic: number of systems minus 1.
    p_value : float
        p-value from the chi-squared distribution; conservative on few sets.
    f_statistic : float
        F statistic of Iman and Davenport; infinite if all sets have the same order.
    f_df : tuple of int
        Its two degrees of freedom.
    f_p_value : float
        p-value from the F distribution; more exact than `p_value`.
    mean_ranks : ndarray of shape (n_systems,)
        Mean rank of each system; 1 is the best.
    """

    statistic: float
    df: int
    p_value: float
    f_statistic: float
    f_df: tuple[int, int]
    f_p_value: float
    mean_ranks: FloatArray


def friedman(table: ArrayLike) -> Friedman:
    """Friedman's test whether any system differs, on a table without missing results.

    With n sets, k systems, ranks r_ij (means for ties) and mean ranks R_j::

        Q = (k - 1) n^2 sum_j (R_j - (k + 1) / 2)^2 / sum_ij (r_ij - (k + 1) / 2)^2
        F = (n - 1) Q / (n (k - 1) - Q)

    Q has approximately a chi-squared distribution with k - 1 degrees of freedom, and F an F
    distribution with k - 1 and (k - 1)(n - 1). With missing results use `skillings_mack`, which
    does not correct for ties, and equals Q without ties.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Complete results on at least two sets; higher is better.

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
    # the largest value, up to rounding, becomes infinity
    left = n * df - statistic
    f_statistic = (n - 1) * statistic / left if left > 1e-12 * n * df else np.inf
    return Friedman(
        statistic,
        df,
        float(slow("scipy.stats").chi2.sf(statistic, df)),
        f_statistic,
        f_df,
        float(slow("scipy.stats").f.sf(f_statistic, *f_df)),
        means + (k + 1) / 2,
    )


@dataclass(frozen=True, eq=False)
class SkillingsMack:
    """Result of `skillings_mack`.

    Attributes
    ----------
    statistic : float
        The statistic T; it increases with the differences between systems.
    df : int
        Degrees of freedom: number of systems minus number of groups without common sets; number of
        systems minus 1 if the sets connect all systems.
    p_value : float
        p-value from the chi-squared distribution; conservative with ties and on few sets.
    resampled_p_value : float or None
        (c + 1) / (n_resamples + 1), with c the number of resampled statistics that are at least as
        large; None without resampling.
    mean_ranks : ndarray of shape (n_systems,)
        Mean rank of each system; 1 is the best, missing results have the middle rank.
    n_sets : int
        Number of sets with at least two results; others are not used.
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
    """Skillings-Mack test whether any system differs, on sets with missing results.

    With k_i results on set i, ranks r_ij (means for ties) and the middle rank for a missing
    result::

        A_j = sum_i sqrt(12 / (k_i + 1)) (r_ij - (k_i + 1) / 2)
        T = A' S^+ A,  S_jl = -(number of sets with both j and l),  rows of S sum to 0

    T has approximately a chi-squared distribution with rank(S) degrees of freedom. Without missing
    results and ties it is Friedman's statistic, in balanced incomplete blocks Durbin's. Systems
    that no chain of sets connects are not compared: T is the sum over the groups of connected
    systems. The test does not show which systems differ; for that see `wilcoxon_holm`.

    Sets with one result or none do not contribute to A or S. They are left out with a warning, as
    they are usually a mistake, such as a transposed table.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a missing result. T and the p-values are the same if
        lower is better.
    n_resamples : int, default=0
        Number of random tables, with the ranks of each set permuted, for an additional p-value.
        Use it for few sets or many ties; 10000 is usual.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling.

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
    # the terms of A: centred ranks, weighted by the size of the set
    k = is_seen.sum(axis=1, keepdims=True)
    terms: FloatArray = np.sqrt(12.0 / (k + 1)) * (ranks - (k + 1) / 2)
    inverse, df = _inverse_covariance(is_seen)
    statistic = float(_quadratic(terms.sum(axis=0), inverse))
    resampled = None
    if n_resamples:
        drawn = _quadratic(_resampled_sums(terms, is_seen, n_resamples, random), inverse)
        # within rounding of the observed statistic is equal to it
        count = int(np.sum(drawn >= statistic * (1.0 - 1e-9)))
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


def wins(a: ArrayLike, b: ArrayLike) -> tuple[int, int, int]:
    """Count the sets on which a is above, equal to, and below b.

    Parameters
    ----------
    a, b : array_like of shape (n_sets,)
        Results of two systems; sets on which one has NaN are left out. Results that differ only by
        rounding are equal.

    Returns
    -------
    tuple of int
        Wins, ties and losses of a.

    Examples
    --------
    >>> from ocfuse.stats import wins
    >>> wins([0.9, 0.8, 0.7], [0.6, 0.8, 0.6])
    (2, 1, 0)
    """
    return _counts(_signs(*_paired(a, b)))


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`.

    Attributes
    ----------
    mean_difference : float
        Mean of a - b.
    p_value : float
        Two-sided p-value of Wilcoxon's signed-rank test; exact up to 200 sets.
    wins, ties, losses : int
        Number of sets on which a is above, equal to, or below b.
    """

    mean_difference: float
    p_value: float
    wins: int
    ties: int
    losses: int


def compare(a: ArrayLike, b: ArrayLike) -> Comparison:
    """Compare two systems with Wilcoxon's signed-rank test.

    Sets with equal results are evidence against a difference: their ranks are split evenly between
    the two systems (Demsar 2006), not dropped. If the systems do not differ, all 2^n ways to sign
    the n ranks, including those of equal sets, have the same probability. The p-value is the share
    of those that are at least as one-sided. It is conservative. With n sets it is never below
    2^(1-n).

    Parameters
    ----------
    a, b : array_like of shape (n_sets,)
        Results of two systems; sets on which one has NaN are left out.

    Returns
    -------
    Comparison
        Mean difference, p-value and counts.

    Examples
    --------
    >>> from ocfuse.stats import compare
    >>> found = compare([0.9, 0.8, 0.7, 0.9, 0.6], [0.6, 0.7, 0.65, 0.7, 0.45])
    >>> found.wins, found.p_value
    (5, 0.0625)
    """
    left, right = _paired(a, b)
    signs = _signs(left, right)
    mean = float(np.mean(np.where(signs == 0, 0.0, left - right)))
    return Comparison(mean, _signed_rank_p(_ranks(left, right), signs), *_counts(signs))


def _signs(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return 1, 0 or -1 for every set that the left wins, shares or loses."""
    one, other = steps(np.column_stack([left, right])).T
    signs: FloatArray = one - other
    return signs


def _ranks(left: FloatArray, right: FloatArray) -> FloatArray:
    """Rank the sets by how far apart the two are; 0.9 - 0.8 is level with 0.8 - 0.7."""
    largest = float(np.max(np.abs([left, right])))
    ranks: FloatArray = slow("scipy.stats").rankdata(steps(np.abs(left - right), largest))
    return ranks


def _signed_rank_p(ranks: FloatArray, signs: FloatArray, exact_sets: int = 200) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, zeros split.

    Up to `exact_sets` sets the signs are counted; beyond, the normal curve is as good.
    """
    # half of a zero's rank goes to either side, and nothing to the difference of the two
    observed = abs(float(ranks @ signs))
    if len(ranks) > exact_sets:
        return float(2.0 * slow("scipy.stats").norm.sf(observed / np.sqrt(ranks @ ranks)))
    # twice a rank is an integer, ties or not, so the sums can be counted
    doubled = np.rint(2.0 * ranks).astype(int)
    chances = np.zeros(1 + int(doubled.sum()))
    chances[0] = 1.0
    for rank in doubled:
        chances *= 0.5
        chances[rank:] += chances[:-rank].copy()
    signed_sums = np.arange(len(chances)) - (len(chances) - 1) / 2.0
    return min(float(chances[np.abs(signed_sums) >= observed - 0.25].sum()), 1.0)


def _counts(signs: FloatArray) -> tuple[int, int, int]:
    return int(np.sum(signs > 0)), int(np.sum(signs == 0)), int(np.sum(signs < 0))


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the results of both where both have one, or refuse."""
    try:
        left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"a and b must hold real numbers. {error}.") from None
    if left.ndim != 1 or left.shape != right.shape:
        raise InvalidInputError(
            "a and b must have shape (n_sets,), one result per set. "
            f"Got shapes {left.shape} and {right.shape}."
        )
    if np.isinf([left, right]).any():
        raise InvalidInputError("a and b must be finite, with NaN for a gap. Got infinity.")
    both = ~np.isnan(left + right)
    if not both.any():
        raise InvalidInputError("a and b must have a result on the same set. Got no such set.")
    return left[both], right[both]


@dataclass(frozen=True)
class PairComparison(Comparison):
    """Result of `wilcoxon_holm` for one pair of systems.

    Attributes
    ----------
    mean_difference : float
        Mean of first - second over the sets where both have a result.
    p_value : float
        Two-sided p-value of Wilcoxon's signed-rank test for this pair alone.
    wins, ties, losses : int
        Number of sets on which the first is above, equal to, or below the second.
    first, second : int
        Columns of the two systems.
    adjusted_p_value : float
        p-value with Holm's correction. If pairs with a value below alpha are called different, the
        probability of any false difference among all pairs is at most alpha.
    """

    first: int
    second: int
    adjusted_p_value: float


def wilcoxon_holm(table: ArrayLike, control: int | None = None) -> list[PairComparison]:
    """Compare pairs of systems with Wilcoxon's test, corrected for the number of pairs.

    Each pair is tested with `compare`, on the sets with results of both systems. Holm's step-down
    correction holds for any dependence between the pairs. Pairs without a common set are left out
    and not counted.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a gap.
    control : int, optional
        Column to compare with every other one, which has more power than a comparison of all
        pairs. It is the first of each pair. None compares all pairs.

    Returns
    -------
    list of PairComparison
        One per pair, in the order of the columns.

    Examples
    --------
    >>> from ocfuse.stats import wilcoxon_holm
    >>> table = [[9, 8, 1], [8, 6, 2], [7, 4, 3], [9, 5, 4], [8, 3, 2], [6, 0, 1]]
    >>> [(f.first, f.second, round(f.adjusted_p_value, 3)) for f in wilcoxon_holm(table, 0)]
    [(0, 1, 0.062), (0, 2, 0.062)]
    """
    results = result_table(table)
    met = [
        (i, j)
        for i, j in _family(results.shape[1], control)
        if not np.isnan(results[:, i] - results[:, j]).all()
    ]
    if not met:
        raise InvalidInputError("table must have two systems with results on one set. Got none.")
    found = [compare(results[:, i], results[:, j]) for i, j in met]
    adjusted = holm(np.array([pair.p_value for pair in found]))
    return [
        PairComparison(**vars(pair), first=i, second=j, adjusted_p_value=float(p))
        for pair, (i, j), p in zip(found, met, adjusted, strict=True)
    ]


def holm(p_values: FloatArray) -> FloatArray:
    """Return Holm's adjusted p-values: the smallest times m, the next times m - 1, ..."""
    order = np.argsort(p_values, kind="stable")
    times = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(times * p_values[order]), 1.0)
    return adjusted


def _family(k: int, control: Any) -> list[tuple[int, int]]:
    """Return the pairs of columns to compare, or refuse the control."""
    if control is None:
        return list(combinations(range(k), 2))
    if isinstance(control, bool) or not isinstance(control, int | np.integer):
        raise InvalidTypeError(f"control must be the index of a column. Got control={control!r}.")
    if not 0 <= control < k:
        raise InvalidInputError(f"control must be in 0..{k - 1}. Got control={control}.")
    return [(int(control), j) for j in range(k) if j != control]
