"""What is measured of a system on one split."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.consistency import auc_below_gmean
from ocfuse.exceptions import InvalidInputError, InvalidTypeError, OcfuseError
from ocfuse.metrics import auc, average_precision, best_gmean, false_alarm_rate, gmean
from ocfuse.scores import conformal_threshold

FloatArray = NDArray[np.float64]

#: The threshold of every system lets this share of the normals raise an alarm.
RATE = 0.05
#: Digits after the point of a percentage that is kept.
DIGITS = 6


class InconsistentMeasuresError(OcfuseError):
    """Say that measures cannot come from the same scores: the measuring is wrong."""


def measure(
    validation: FloatArray, test: FloatArray, is_normal: NDArray[np.bool_], rate: float = RATE
) -> dict[str, float]:
    """Return the accuracies of scores, in %; the threshold comes from validation normals.

    With v scores of normals that nothing else was chosen by, the threshold holds the
    rate on average. In the paper's experiment the same rows choose members and p
    first, so that the promise is not strict there; and with v < 19 no threshold can
    hold 5 %: it is the lowest score then, which holds 1 / (v + 1).

    Parameters
    ----------
    validation : ndarray of shape (v,)
        Scores of the validation normals.
    test : ndarray of shape (t,)
        Scores of the test rows.
    is_normal : ndarray of bool of shape (t,)
        Which of these are normal; labels +1 and -1 are not taken.
    rate : float, default=0.05
        Share of fresh normals that may raise an alarm.

    Returns
    -------
    dict
        "auc"; "ap", the area under precision and recall of the anomalies, and
        "prevalence", what chance has there; "gmean" and "false_alarms" at the
        threshold; "best_gmean", that of the best threshold in hindsight.
    """
    is_normal = np.asarray(is_normal)
    _check(validation, test, is_normal)
    y = np.where(is_normal, 1, -1)
    offset, _ = conformal_threshold(validation, rate)
    predicted = np.where(test >= offset, 1, -1)
    found = {
        "auc": auc(y, test),
        "ap": average_precision(y, test),
        "prevalence": float(np.mean(~is_normal)),
        "gmean": gmean(y, predicted),
        "best_gmean": best_gmean(y, test),
        "false_alarms": false_alarm_rate(y, predicted),
    }
    require_consistent(found["auc"], found["gmean"])
    require_consistent(found["auc"], found["best_gmean"])
    # rounding errors must not part systems that are level
    return {name: round(100.0 * value, DIGITS) for name, value in found.items()}


def _check(validation: FloatArray, test: FloatArray, is_normal: NDArray[np.bool_]) -> None:
    if is_normal.dtype != np.bool_:
        raise InvalidTypeError(
            f"is_normal must be booleans. Got {is_normal.dtype}. Use y > 0 for labels +1 and -1."
        )
    if np.shape(test) != is_normal.shape:
        raise InvalidInputError(
            f"test and is_normal must have one shape. Got {np.shape(test)} and {is_normal.shape}."
        )
    if not (np.isfinite(validation).all() and np.isfinite(test).all()):
        raise InvalidInputError("Scores must be finite. Got NaN or infinite ones.")


def require_consistent(area: float, mean: float) -> None:
    """Raise if an AUC and a G-mean cannot come from the same scores: AUC >= G^2."""
    if auc_below_gmean(area, mean, whole=1.0):
        raise InconsistentMeasuresError(
            f"The AUC {area} must be at least the square of the G-mean {mean}. They are not of "
            "the same scores: please report it."
        )
