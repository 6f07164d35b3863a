"""Two systems on the same data sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.optional import slow
from ocfuse.stats.ranks import FloatArray
from ocfuse.stats.ties import steps

#: Up to so many sets the signs are counted; beyond, the normal curve is as good.
EXACT_SETS = 200


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
        Results of two systems; sets on which one has NaN are left out. Results
        that only rounding tells apart are level.

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


def _signed_rank_p(ranks: FloatArray, signs: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, zeros split."""
    # half of a zero's rank goes to either side, and nothing to the difference of the two
    observed = abs(float(ranks @ signs))
    if len(ranks) > EXACT_SETS:
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
