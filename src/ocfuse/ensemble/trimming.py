"""Find the rows of a training set that can hardly be normal, such as glitches of a sensor."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

#: A row is left out if it lies this many times farther from the median than the
#: nearer half of the rows on that side does.
CUT = 30.0
#: Most rows that are ever left out.
LARGEST_SHARE = 0.2
#: The same for rows whose long tails are pulled in; in a single column a normal row may lie so
#: far. Of rows that are all normal 1 in 2,000 does, on average over the development sets.
GROUP_CUT, GROUP_CUT_ONE_COLUMN = 10.0, 30.0
#: Largest share of rows that are left out as a group: a larger one may be a rare mode.
LARGEST_GROUP = 1 / 15
#: Rows below which a quarter of them says nothing.
FEWEST_ROWS = 20
#: Rows whose distances stand for those of all.
MOST_PROBES = 500


def remote_groups(X: FloatArray) -> BoolArray:
    """Tell which rows of X lie far from the bulk of the rows, even if side by side.

    Hidden anomalies of one kind vouch for each other: a member that looks at near
    neighbours takes them for normal, and so it does every anomaly of that kind. No
    group of less than `LARGEST_SHARE` can hide from the distance to the nearest rows
    of that share, and nothing has to be learned to know it.
    """
    n, m = X.shape
    if n < FEWEST_ROWS:
        return np.zeros(n, dtype=bool)
    rows = _pulled_in(X)
    reach = _reach(rows, rows[_evenly(n)])
    middle, quartile = np.percentile(reach, [50, 75])
    if not 0 < middle < quartile:  # too many equal rows: nothing to measure with
        return np.zeros(n, dtype=bool)
    cut = GROUP_CUT if m > 1 else GROUP_CUT_ONE_COLUMN
    # in many columns all are about as far: then twice as far is much
    found: BoolArray = reach > np.maximum(middle + cut * (quartile - middle), 2 * middle)
    return found


def outlying_rows(S: FloatArray, X: FloatArray) -> BoolArray:
    """Tell which rows are far outside, from honest scores (n, d) and features (n, m).

    The scores of every member are measured from their median, in distances from
    there to their lower quartile; more than half of the members must put the row
    more than `CUT` below. Members whose scores are skewed would trim normal
    rows, so that the distance of the row from the bulk of the others, measured
    alike, must be as exceptional.
    """
    outlying = np.zeros(len(S), dtype=bool)
    if len(S) < FEWEST_ROWS:
        return outlying
    votes = np.sort(_above_median(S), axis=1)
    agreed = votes[:, S.shape[1] // 2]
    candidates = np.flatnonzero(agreed < -CUT)
    if len(candidates):
        outlying[candidates[_is_remote(X, candidates)]] = True
    return outlying


def _above_median(S: FloatArray) -> FloatArray:
    """Return how far every score lies above its column's median, in lower quartiles."""
    quartile, middle = np.percentile(S, [25, 50], axis=0)
    spread = middle - quartile
    spread[spread == 0] = np.inf  # too many equal rows: nothing to measure with
    ratio: FloatArray = (S - middle) / spread
    return ratio


def _is_remote(X: FloatArray, candidates: NDArray[np.intp]) -> BoolArray:
    """Tell which candidates are exceptionally far from the nearest fifth of the rows."""
    middle, quartile = np.percentile(_reach(X[_evenly(len(X))], X), [50, 75])
    is_remote: BoolArray = _reach(X[candidates], X) - middle > CUT * (quartile - middle)
    return is_remote


def _pulled_in(X: FloatArray) -> FloatArray:
    """Return the rows in units that no remote row can stretch, their long tails shortened."""
    lower, middle, upper = np.percentile(X, [25, 50, 75], axis=0)
    spread = np.where(upper > lower, upper - lower, X.std(axis=0))
    spread[spread == 0] = 1.0
    rows: FloatArray = np.arcsinh((X - middle) / spread)
    return rows


def _evenly(n: int) -> NDArray[np.intp]:
    """Return the numbers of rows that stand for all n."""
    return np.linspace(0, n - 1, min(n, MOST_PROBES)).round().astype(np.intp)


def _reach(rows: FloatArray, X: FloatArray) -> FloatArray:
    """Return how far each row is from the nearest fifth of the rows of X."""
    k = math.ceil(LARGEST_SHARE * len(X))
    blocks = pairwise_distances_chunked(rows, X)
    return np.concatenate([np.partition(block, k, axis=1)[:, k] for block in blocks])
