"""Trust from unlabelled rows: what `FusedDetector.adapt` learns, and where it refuses to."""

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.ensemble.copies import find_copies
from ocfuse.ensemble.score import Trace
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.trust import TrustFusion

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

#: Rows below which nothing can be learned.
FEWEST_ROWS = 30
#: Share of the rows that must score above the median of the normals: 70 % normals have 35 %.
LEAST_NORMAL = 0.35


def require_adaptable(detector: "FusedDetector") -> tuple[TrustFusion, IntArray]:
    """Return the fusion and the rows that the threshold rests on, or refuse the detector."""
    check_is_fitted(detector)
    fusion, rows = detector.fusion_, getattr(detector, "calibration_rows_", None)
    if not isinstance(fusion, TrustFusion):
        raise InvalidInputError(
            "adapt changes trust that was learned from other data sets. This detector has "
            f'{type(fusion).__name__}. Fit one with fusion="trust"; it is the default for rows '
            "without labels, groups and tune."
        )
    if detector.pool_.constants_:
        raise InvalidInputError(
            "adapt compares members, of which prune has left out "
            f"{', '.join(detector.pool_.constants_)}. Fit again, adapt, and then call prune."
        )
    if rows is None:
        raise InvalidInputError(
            "The threshold does not rest on training rows, but on those that calibrate was given, "
            "on labels, or the model was fitted by an earlier version: after adapt it would be "
            "wrong. Fit again, adapt, and then call calibrate."
        )
    return fusion, rows


def adapted_fusion(
    detector: "FusedDetector", fusion: TrustFusion, trace: Trace
) -> tuple[TrustFusion, FloatArray]:
    """Return the fusion with trust drawn to what rows say, and how training scores change by it.

    Parameters
    ----------
    detector : FusedDetector
        The detector.
    fusion : TrustFusion
        Its fusion.
    trace : Trace
        Unlabelled rows; of copies one counts.

    Returns
    -------
    fusion : TrustFusion
        The adapted fusion.
    change : ndarray of shape (n,)
        What is to be added to the held-out scores of the rows that were learned from.
    """
    once = np.unique(find_copies(trace.encoded), return_index=True)[1]
    rows = trace.take(once)
    _require_rows(len(rows), len(trace))
    _require_no_drift(detector, rows.score)
    normals = _held_out_values(detector, fusion)
    fresh = fusion.adapted(normals, fusion.values(rows.normalised, rows.encoded, rows.context))
    return fresh, -normals @ (fresh.trust_ - fusion.trust_)


def _require_rows(n: int, given: int) -> None:
    if n < FEWEST_ROWS:
        raise InvalidInputError(
            f"adapt needs at least {FEWEST_ROWS} different rows, better 300. Got {given}"
            + (f", of which {n} differ." if n < given else ".")
        )


def _require_no_drift(detector: "FusedDetector", scores: FloatArray) -> None:
    """Refuse rows most of which are unlike training, beyond what chance explains."""
    median = detector.conformal_.threshold(0.5)[0]
    share = float(np.mean(scores >= median))
    if share + 2.0 * np.sqrt(0.25 / len(scores)) < LEAST_NORMAL:
        raise InvalidInputError(
            f"The rows have drifted as a whole: {share:.0%} of them score above the median of the "
            f"training rows, where 50 % of normal rows do, and {LEAST_NORMAL:.0%} if 30 % are "
            "anomalies. adapt needs rows that are mostly normal. If this is the new normal, fit "
            "again with it; if the units have changed, change them back."
        )


def _held_out_values(detector: "FusedDetector", fusion: TrustFusion) -> FloatArray:
    """Return `TrustFusion.values` of the training rows, by a scale learned from other folds."""
    S, fold = detector.pool_.out_of_fold_scores_, detector.pool_.fold_
    X, context = detector.training_, detector.training_context_
    V = np.empty(S.shape)
    # weights do not matter here, and a file of coefficients may be gone
    blank = clone(fusion).set_params(strength=0.0, coefficients=None)
    for f in np.unique(fold):
        others, own = fold != f, fold == f
        theirs, mine = (None if context is None else context[part] for part in (others, own))
        normaliser = clone(detector.normaliser_).fit(S[others])
        Z = np.clip(normaliser.transform(S[others]), -1e6, 1e6)  # as in a fit
        part = clone(blank).fit(Z, X=X[others], context=theirs)
        V[own] = part.values(normaliser.transform(S[own]), X[own], mine)
    return V
