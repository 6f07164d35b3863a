"""Two systems on the same data sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import wilcoxon

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.stats.ranks import FloatArray


@dataclass(frozen=True)
class Comparison:
    """What `compare` has found.

    Attributes
    ----------
    mean_difference : float
        Mean of a - b.
    p_value : float
        Of Wilcoxon's signed-rank test, two-sided.
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
    p_value = 1.0
    if difference.any():
        p_value = float(wilcoxon(difference, zero_method="zsplit").pvalue)
    return Comparison(float(difference.mean()), p_value, *_counts(difference))


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
    difference: FloatArray = left - right
    difference = difference[~np.isnan(difference)]
    if not len(difference):
        raise InvalidInputError("a and b must have a result on the same set. Got no such set.")
    return difference
