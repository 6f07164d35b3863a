"""Two systems on the same data sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats.ranks import FloatArray

#: Up to so many sets the signs are counted; beyond, the normal curve is as good.
EXACT_SETS = 200
#: Differences that agree to so many digits of the largest result are equal: 0.9 - 0.8
#: and 0.8 - 0.7 are not the same number in binary.
DIGITS = 12


@dataclass(frozen=True)
class Comparison:
    """What `compare` has found.

    Attributes
    ----------
    mean_difference : float
        Mean of a - b.
    p_value : float
        Of Wilcoxon's signed-rank test, two-sided; exact up to 200 sets.
    wins, ties, losses : int
        Sets on which a is above, level with, or below b.
    """

    mean_difference: float
    p_value: float
    wins: int
    ties: int
    losses: int


def wins(a: ArrayLike, b: ArrayLike) -> tuple[int, int, int]:
    """Count the sets on which a is above, level with, and below b.

    Parameters
    ----------
    a, b : array_like of shape (n_sets,)
        Results of two systems; sets on which one has NaN are left out.

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
    return _counts(_differences(a, b))


def compare(a: ArrayLike, b: ArrayLike) -> Comparison:
    """Compare two systems by Wilcoxon's signed-rank test.

    Sets on which they are level speak against a difference: their ranks are
    split evenly between the two, as Demsar (2006) advises, and not dropped.
    If the systems are alike, each of the 2^n ways to sign the n ranks, those
    of level sets included, is as likely; the p-value is the share of those
    that are as one-sided. It errs, if at all, towards no difference. With n
    sets it is never below 2^(1-n).

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
    difference = _differences(a, b)
    return Comparison(float(difference.mean()), _signed_rank_p(difference), *_counts(difference))


def _signed_rank_p(difference: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, zeros split."""
    ranks = rankdata(np.abs(difference))
    # half of a zero's rank goes to either side, and nothing to the difference of the two
    observed = abs(float(ranks @ np.sign(difference)))
    if len(ranks) > EXACT_SETS:
        return float(2.0 * norm.sf(observed / np.sqrt(ranks @ ranks)))
    # twice a rank is an integer, ties or not, so the sums can be counted
    steps = np.rint(2.0 * ranks).astype(int)
    chances = np.zeros(1 + int(steps.sum()))
    chances[0] = 1.0
    for step in steps:
        chances *= 0.5
        chances[step:] += chances[:-step].copy()
    signed_sums = np.arange(len(chances)) - (len(chances) - 1) / 2.0
    return min(float(chances[np.abs(signed_sums) >= observed - 0.25].sum()), 1.0)


def _counts(difference: FloatArray) -> tuple[int, int, int]:
    return (
        int(np.sum(difference > 0)),
        int(np.sum(difference == 0)),
        int(np.sum(difference < 0)),
    )


def _differences(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return a - b where both have a result, or refuse."""
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
    left, right = left[both], right[both]
    unit = float(np.max(np.abs([left, right]))) or 1.0
    difference: FloatArray = np.round((left - right) / unit, DIGITS) * unit
    return difference
