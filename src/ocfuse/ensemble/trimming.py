"""Find the rows of a training set that cannot be normal, such as glitches of a sensor."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked

FloatArray: TypeAlias = NDArray[np.float64]

#: A row is left out if it lies this many times farther from the median than the
#: nearer half of the rows on that side does.
CUT = 30.0
#: Most rows that are ever left out.
LARGEST_SHARE = 0.2
#: Rows below which a quarter of them says nothing.
FEWEST_ROWS = 20
#: Rows whose distances stand for those of all.
MOST_PROBES = 500


def outlying_rows(S: FloatArray, X: FloatArray) -> NDArray[np.bool_]:
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


def _is_remote(X: FloatArray, candidates: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which candidates are exceptionally far from the nearest fifth of the rows."""
    probes = np.linspace(0, len(X) - 1, min(len(X), MOST_PROBES)).round().astype(np.intp)
    rows = np.concatenate([candidates, probes])
    k = math.ceil(LARGEST_SHARE * len(X))
    reach = np.concatenate(
        [np.partition(block, k, axis=1)[:, k] for block in pairwise_distances_chunked(X[rows], X)]
    )
    middle, quartile = np.percentile(reach[len(candidates) :], [50, 75])
    is_remote: NDArray[np.bool_] = reach[: len(candidates)] - middle > CUT * (quartile - middle)
    return is_remote
