"""Whether the stated false-alarm rate can be believed."""

from dataclasses import dataclass

import numpy as np

from ocfuse.optional import slow
from ocfuse.report.data import FloatArray, ReportData
from ocfuse.scores import conformal_threshold

#: Stated rates at which the others are shown.
RATES = np.round(np.geomspace(0.005, 0.5, 25), 5)
#: Fewest rows of each half by which the other is judged.
FEWEST_HALF = 10
#: Share of the draws of normal rows that the band covers.
COVERED = 0.9
N_P_BINS = 20


@dataclass(frozen=True)
class Trust:
    """Stated rates beside those that were measured; NaN where nothing can be said.

    Attributes
    ----------
    rates : ndarray of shape (k,)
        Stated rates.
    low, high : ndarray of shape (k,)
        Where the true rate lies in 9 of 10 draws of as many normal rows, or groups of them.
    held_out : ndarray of shape (k,)
        Rate on each half of the training rows, by the threshold of the other.
    fresh : ndarray of shape (k,)
        Share of the rows of the report that would raise an alarm: of those that are
        labelled normal, if there are some, and else of those not labelled anomaly.
    """

    rates: FloatArray
    low: FloatArray
    high: FloatArray
    held_out: FloatArray
    fresh: FloatArray


def compare_rates(data: ReportData) -> Trust:
    """Compare stated rates with measured ones."""
    n = data.n_independent
    k = np.clip(np.floor(RATES * (n + 1)), 1, n)
    # the true rate below the k-th smallest of n scores is a Beta variable
    tails = [[(1 - COVERED) / 2], [(1 + COVERED) / 2]]
    low, high = slow("scipy.stats").beta.ppf(tails, k, n + 1 - k)
    reached = n + 1 >= 1 / RATES
    return Trust(
        rates=RATES,
        low=np.where(reached, low, np.nan),
        high=np.where(reached, high, np.nan),
        held_out=_halves(data.held_out_scores),
        fresh=_shares(judged_normal(data)),
    )


def judged_normal(data: ReportData) -> FloatArray:
    """Return the p-values of rows labelled normal, or of all that may be if none is."""
    if data.labels is None or not has_normals(data):
        return data.p_values[data.may_be_normal]
    return data.p_values[data.labels > 0]


def _shares(p_values: FloatArray) -> FloatArray:
    """Return the share of p-values up to each rate."""
    if not len(p_values):
        return np.full(len(RATES), np.nan)
    return np.array([np.mean(p_values <= rate) for rate in RATES])


def whose(data: ReportData) -> str:
    """Say which rows the measured rate is of."""
    if has_normals(data):
        return "rows labelled normal"
    return "rows of this report" if data.may_be_normal.all() else "rows not labelled anomaly"


def has_normals(data: ReportData) -> bool:
    """Tell whether some rows are labelled normal."""
    return data.labels is not None and bool((data.labels > 0).any())


def count_p_values(p_values: FloatArray) -> list[int]:
    """Count p-values in bars of equal width; those of normal rows are even."""
    counts, _ = np.histogram(p_values, bins=N_P_BINS, range=(0.0, 1.0))
    return [int(count) for count in counts]


def _halves(scores: FloatArray) -> FloatArray:
    """Judge the first half of the rows by the second, and the second by the first."""
    first, second = np.array_split(scores, 2)
    fewest = min(len(first), len(second))
    measured = np.full(len(RATES), np.nan)
    if fewest < FEWEST_HALF:
        return measured
    for i in np.flatnonzero(fewest + 1 >= 1 / RATES):
        by_first, _ = conformal_threshold(first, RATES[i])
        by_second, _ = conformal_threshold(second, RATES[i])
        measured[i] = (np.mean(second < by_first) + np.mean(first < by_second)) / 2
    return measured
