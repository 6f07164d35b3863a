"""What reported figures must obey, whoever reports them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.bench.published import published_measures, published_table
from ocfuse.exceptions import InvalidInputError

#: The members of the paper's tables.
PRINTED_MEMBERS = ("GMM", "SVDD", "GP", "KPCA")


@dataclass(frozen=True)
class Contradiction:
    """A cell of the paper whose AUC and G-mean cannot come from the same scores.

    Attributes
    ----------
    table, set_name, system : str
        Where it is printed.
    auc, gmean : float
        What is printed, percent.
    """

    table: str
    set_name: str
    system: str
    auc: float
    gmean: float


@dataclass(frozen=True)
class BestOfAll:
    """A printed "Single-best" that is better than every printed member.

    Attributes
    ----------
    table, set_name : str
        Where it is printed.
    single : float
        AUC of "Single-best", percent.
    member : float
        AUC of the best of the four members, percent.
    """

    table: str
    set_name: str
    single: float
    member: float


def auc_below_gmean(
    auc: ArrayLike, gmean: ArrayLike, *, whole: float = 100.0, rounding: float = 0.0
) -> NDArray[np.bool_]:
    """Mark where the AUC is smaller than the square of the G-mean allows.

    At any threshold the ROC curve passes through (1 - TNR, TPR) and never
    falls, so AUC >= TPR * TNR = G^2. For means over repetitions too, because
    the mean of squares is at least the square of the mean.

    Parameters
    ----------
    auc, gmean : array_like
        Figures of the same shape; nothing is marked where one is NaN.
    whole : float, default=100.0
        What a perfect system gets: 100 for percent, 1 for fractions.
    rounding : float, default=0.0
        How far a figure may be from the exact one; 0.005 for two decimals.

    Returns
    -------
    ndarray of bool
        True where no scores can have both figures.

    Examples
    --------
    >>> from ocfuse.bench.consistency import auc_below_gmean
    >>> auc_below_gmean([92.2, 92.2], [97.88, 90.0])
    array([ True, False])
    """
    area, mean = np.asarray(auc, dtype=np.float64), np.asarray(gmean, dtype=np.float64)
    if area.shape != mean.shape:
        raise InvalidInputError(
            f"auc and gmean must have one shape. Got {area.shape} and {mean.shape}."
        )
    least = np.maximum(mean - rounding, 0.0) ** 2 / whole
    # sums over thresholds and over ranks differ in their last digits
    is_below: NDArray[np.bool_] = area + rounding < least - 1e-9 * whole
    return is_below


def published_contradictions() -> list[Contradiction]:
    """List the cells of the paper that break AUC >= G^2, rounding allowed for.

    Returns
    -------
    list of Contradiction
        In the order of the tables.
    """
    found = []
    for name, measures in published_measures().items():
        if not {"auc", "gmean"} <= set(measures):
            continue
        auc, gmean = published_table(name, "auc"), published_table(name, "gmean")
        is_below = auc_below_gmean(auc.mean, gmean.mean, rounding=0.005)
        found += [
            Contradiction(
                name, auc.sets[i], auc.systems[j], float(auc.mean[i, j]), float(gmean.mean[i, j])
            )
            for i, j in np.argwhere(is_below)
        ]
    return found


def published_single_above_members() -> list[BestOfAll]:
    """List where the printed AUC of "Single-best" is above those of all four members.

    If it is one of the four, picked anew in every repetition, its mean can be above all
    of theirs only as far as their order changes between repetitions. Gaps of many
    deviations are not explained by that.

    Returns
    -------
    list of BestOfAll
        In the order of the tables.
    """
    found = []
    for name in ("rpau", "pseudo-negative"):
        table = published_table(name, "auc")
        single = table.column("Single-best")
        member = np.max([table.column(family) for family in PRINTED_MEMBERS], axis=0)
        # both are rounded to two decimals
        found += [
            BestOfAll(name, table.sets[i], float(single[i]), float(member[i]))
            for i in np.flatnonzero(single > member + 0.01)
        ]
    return found


def worst_average_precision(n_positive: int, n_negative: int) -> float:
    """Return the average precision of the worst order: all negatives first.

    With P positives after N negatives the i-th positive is found at precision
    i / (N + i), so the mean over them is 1 - (N / P)(H_{N+P} - H_N) with the
    harmonic numbers H. No figure on such a test set can be lower.

    Parameters
    ----------
    n_positive, n_negative : int
        Sizes of the two classes; at least one positive.

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> from ocfuse.bench.consistency import worst_average_precision
    >>> round(worst_average_precision(60, 7), 3)
    0.744
    """
    if n_positive < 1 or n_negative < 0:
        raise InvalidInputError(
            "n_positive must be at least 1 and n_negative at least 0. "
            f"Got {n_positive} and {n_negative}."
        )
    found = np.arange(1, n_positive + 1)
    return float(np.mean(found / (n_negative + found)))
