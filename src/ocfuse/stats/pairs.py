"""Which systems differ: all pairs, or all against one, with Holm's correction."""

from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats.paired import Comparison, compare
from ocfuse.stats.ranks import FloatArray, result_table


@dataclass(frozen=True)
class PairComparison(Comparison):
    """One pair of systems in what `wilcoxon_holm` has found.

    Attributes
    ----------
    mean_difference : float
        Mean of first - second over the sets where both have a result.
    p_value : float
        Of Wilcoxon's signed-rank test, two-sided, for this pair alone.
    wins, ties, losses : int
        Sets on which the first is above, level with, or below the second.
    first, second : int
        Columns of the two systems.
    adjusted_p_value : float
        Holm's: below alpha if the pair differs, with a probability of at most
        alpha that any pair of the family is called different and is not.
    """

    first: int
    second: int
    adjusted_p_value: float


def wilcoxon_holm(table: ArrayLike, control: int | None = None) -> list[PairComparison]:
    """Compare pairs of systems by Wilcoxon's test, adjusted for their number.

    Every pair is tested by `compare`, on the sets where both have a result;
    there level sets are split, not dropped, and the p-value is exact. Holm's
    step-down correction holds whatever the pairs have in common. Pairs that
    have no set in common are left out and do not count.

    Parameters
    ----------
    table : array_like of shape (n_sets, n_systems)
        Results, higher is better; NaN for a gap.
    control : int, optional
        Compare this column with every other one, which leaves more power than
        all pairs. The control is then the first of each pair.

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
        PairComparison(**_values(pair), first=i, second=j, adjusted_p_value=float(p))
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


def _values(pair: Comparison) -> dict[str, Any]:
    return {field.name: getattr(pair, field.name) for field in fields(pair)}
