"""Find the rows of a training set that can hardly be normal, such as glitches of a sensor."""

import math
import warnings
from collections.abc import Callable

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, SingleArray
from ocfuse.detectors.base import MANY_ROWS, core_rows
from ocfuse.exceptions import SuspectRowsWarning
from ocfuse.system.packages import slow

#: A row is left out if it lies this many times farther from the median than the
#: nearer half of the rows on that side does.
CUT = 30.0
#: Most rows that are ever left out.
LARGEST_SHARE = 0.2
#: Largest share of rows that are left out as a group: a larger one may be a rare mode.
LARGEST_GROUP = 1 / 15
#: Rows below which a quarter of them says nothing.
FEWEST_ROWS = 20
#: A value that many units away is far enough: its square is a number in single precision.
FARTHEST = 1e15


def remote_groups(X: FloatArray) -> BoolArray:
    """Return which rows of X lie far from the bulk of the rows, even if side by side.

    Hidden anomalies of one kind vouch for each other: a member that looks at near
    neighbours takes them for normal, and so it does every anomaly of that kind. No
    group of less than `LARGEST_SHARE` can hide from the distance to the nearest rows
    of that share, and nothing has to be learned to know it.
    """
    n, m = X.shape
    if n < FEWEST_ROWS:
        return np.zeros(n, dtype=bool)
    some = X[core_rows(n, MANY_ROWS)]
    # the middle and a spread of every column that no remote row can stretch
    lower, centre, upper = np.percentile(some, [25, 50, 75], axis=0)
    spread = np.where(upper > lower, upper - lower, some.std(axis=0))
    spread[spread == 0] = 1.0
    if n <= MANY_ROWS:
        rows = np.arcsinh((X - centre) / spread)
        reach = _reach(rows, _probes(rows))
    else:
        reach = _reach_of_many(X, lambda rows: _arcsinh((rows - centre) / spread))
    middle, quartile = np.percentile(reach, [50, 75])
    if not 0 < middle < quartile:  # too many equal rows: nothing to measure with
        return np.zeros(n, dtype=bool)
    # Long tails are pulled in, so that less than `CUT` is far; in a single column a normal row may
    # lie so far. Of rows that are all normal 1 in 2,000 does, on average over the development sets.
    cut = 10.0 if m > 1 else CUT
    # in many columns all are about as far: then twice as far is much
    found: BoolArray = reach > np.maximum(middle + cut * (quartile - middle), 2 * middle)
    return found


def outlying_rows(S: FloatArray, X: FloatArray) -> BoolArray:
    """Return which rows are far outside, from out-of-fold scores (n, d) and features (n, m).

    The scores of every member are measured from their median, in distances from
    there to their lower quartile; more than half of the members must put the row
    more than `CUT` below. Members whose scores are skewed would trim normal
    rows, so that the distance of the row from the bulk of the others, measured
    alike, must be as exceptional.
    """
    outlying = np.zeros(len(S), dtype=bool)
    if len(S) < FEWEST_ROWS:
        return outlying
    candidates = np.flatnonzero(is_voted_out(S, S))
    if len(candidates):
        middle, quartile = np.percentile(_reach(_probes(X), X), [50, 75])
        is_remote = _reach(X[candidates], X) - middle > CUT * (quartile - middle)
        outlying[candidates[is_remote]] = True
    return outlying


def are_far(S: FloatArray, rows: FloatArray, out_of_fold: FloatArray, X: FloatArray) -> BoolArray:
    """Return which rows are far outside training rows X, as `outlying_rows` has it.

    S (q, d) are scores of the rows by members that have not seen them, and `out_of_fold` (n, d)
    those of the training rows.
    """
    far = np.zeros(len(S), dtype=bool)
    candidates = np.flatnonzero(is_voted_out(S, out_of_fold))
    if len(X) >= FEWEST_ROWS and len(candidates):
        middle, quartile = np.percentile(_reach(_probes(X), X), [50, 75])
        far[candidates] = _reach(rows[candidates], X) - middle > CUT * (quartile - middle)
    return far


def is_voted_out(S: FloatArray, out_of_fold: FloatArray) -> BoolArray:
    """Return which rows more than half of the members find far outside.

    S, of shape (q, d), holds scores of the rows by members that have not seen them,
    `out_of_fold`, of shape (n, d), such scores of the training rows.
    """
    quartile, middle = np.percentile(out_of_fold, [25, 50], axis=0)
    spread = middle - quartile
    spread[spread == 0] = np.inf  # too many equal rows: nothing to measure with
    votes = np.sort((S - middle) / spread, axis=1)
    voted: BoolArray = votes[:, S.shape[1] // 2] < -CUT
    return voted


def remote_rows(X: FloatArray) -> BoolArray:
    """Return which of many rows are so far from the bulk that members may find them outlying.

    It is one of the two things that make a row outlying, and nothing has to be learned
    to know it. Distances are in single precision, from some rows that stand for all.
    """
    centre = np.median(X[core_rows(len(X), MANY_ROWS)], axis=0)
    reach = _reach_of_many(X, lambda rows: rows - centre)
    middle, quartile = np.percentile(reach, [50, 75])
    is_remote: BoolArray = reach - middle > CUT * (quartile - middle)
    return is_remote


def _arcsinh(values: FloatArray) -> FloatArray:
    """Return arcsinh by a logarithm, which is quicker."""
    sizes = np.minimum(np.abs(values), FARTHEST)
    logs = np.log(sizes + np.sqrt(sizes * sizes + 1.0))
    np.copyto(logs, sizes, where=sizes < 1e-5)  # the identity, to 11 digits
    return np.asarray(np.copysign(logs, values))


def _reach_of_many(X: FloatArray, prepared: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return how far each row is from the nearest fifth of some rows, in units of its own."""
    some = prepared(_probes(X))
    unit = float(np.median(np.abs(some).max(axis=1))) or 1.0
    probes = _single(some / unit)
    squares = np.einsum("pm,pm->p", probes, probes)
    k = math.ceil(LARGEST_SHARE * len(probes))
    reach = np.empty(len(X))
    for begin in range(0, len(X), 2048):
        block = slice(begin, begin + 2048)
        rows = _single(prepared(X[block]) / unit)
        D = squares - 2.0 * (rows @ probes.T)
        nearest = np.partition(D, k, axis=1)[:, k] + np.einsum("nm,nm->n", rows, rows)
        reach[block] = np.sqrt(np.maximum(nearest, 0.0))
    return reach


def _single(rows: FloatArray) -> SingleArray:
    """Return rows in single precision, in which squares of these are numbers."""
    return np.minimum(np.maximum(rows, -FARTHEST), FARTHEST).astype(np.float32)


def _probes(X: FloatArray) -> FloatArray:
    """Return 500 rows whose distances stand for those of all."""
    return np.asarray(X[core_rows(len(X), 500)])


def _reach(rows: FloatArray, X: FloatArray) -> FloatArray:
    """Return how far each row is from the nearest fifth of the rows of X."""
    k = math.ceil(LARGEST_SHARE * len(X))
    blocks = slow("sklearn.metrics").pairwise_distances_chunked(rows, X)
    return np.concatenate([np.partition(block, k, axis=1)[:, k] for block in blocks])


def warn_of_group(n_remote: int, n: int) -> None:
    """Warn that rows far outside are so many that they were learned all the same."""
    if n_remote:
        warnings.warn(
            f"{n_remote} of {n} training rows lie far from the others and were learned as normal, "
            "as so many may be a rare mode. If they are anomalies, label them with y = -1 or leave "
            "them out: rows like them raise no alarm. If they are normal, say so with y = +1.",
            SuspectRowsWarning,
            stacklevel=5,
        )
