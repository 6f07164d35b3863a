"""One score of several detectors that watch the same thing with different eyes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import InvalidInputError
from ocfuse.scores.checks import FloatArray, require_rows, score_vector
from ocfuse.scores.normalise import ZScore


def join_lowest(scores: Sequence[ArrayLike], normal_scores: Sequence[ArrayLike]) -> FloatArray:
    """Return the lowest of several detectors' scores, in units of their normals.

    For detectors of a camera, of joints, of a microphone: one that sees nothing
    strange does not talk the others out of an alarm, as a mean would. With mean m
    and deviation d of each detector's held-out normals::

        joined = min over detectors of (score - m) / d

    The threshold of the joined score comes from joined scores of normals that
    no detector has seen, for instance by `ConformalCalibrator`.

    Parameters
    ----------
    scores : sequence of array_like of shape (n,)
        What each detector says of the same n moments, higher = more normal. NaN is
        no score: the others decide, and if there is none it stays NaN.
    normal_scores : sequence of array_like of shape (m,)
        Scores of normals that the detector has not seen, such as its
        `training_scores_`; m may differ from detector to detector. NaN is left out.

    Returns
    -------
    ndarray of shape (n,)
        The joined scores, about 0 for what is usual.

    Examples
    --------
    >>> from ocfuse.scores import join_lowest
    >>> camera, joints = [9.0, 11.0], [90.0, 110.0]
    >>> join_lowest([[10.0, 5.0], [100.0, 110.0]], [camera, joints])
    array([ 0., -5.])
    """
    if len(scores) != len(normal_scores) or not len(scores):
        raise InvalidInputError(
            "scores and normal_scores must have one entry for each detector, and at least one. "
            f"Got {len(scores)} and {len(normal_scores)}."
        )
    units = [
        _in_units(column, normals) for column, normals in zip(scores, normal_scores, strict=True)
    ]
    if len({len(column) for column in units}) > 1:
        raise InvalidInputError(
            "scores must be of the same moments for every detector. Got "
            f"{', '.join(str(len(column)) for column in units)} scores."
        )
    return np.asarray(np.fmin.reduce(units))


def _in_units(scores: ArrayLike, normals: ArrayLike) -> FloatArray:
    column = np.asarray(scores, dtype=np.float64)
    is_missing = np.isnan(column)
    checked = score_vector(np.where(is_missing, 0.0, column))
    known = np.asarray(normals, dtype=np.float64)
    known = score_vector(known[~np.isnan(known)] if known.ndim == 1 else known, "normal_scores")
    require_rows(known, "normal_scores")
    unit = ZScore().fit(known[:, np.newaxis])
    return np.where(is_missing, np.nan, unit.transform(checked[:, np.newaxis])[:, 0])
