"""What is measured of a system on one split."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.metrics import auc, average_precision, best_gmean, false_alarm_rate, gmean
from ocfuse.scores import conformal_threshold

FloatArray = NDArray[np.float64]

#: The threshold of every system lets this share of the normals raise an alarm.
RATE = 0.05
#: Digits after the point of a percentage that is kept.
DIGITS = 6


def measure(
    validation: FloatArray, test: FloatArray, is_normal: NDArray[np.bool_], rate: float = RATE
) -> dict[str, float]:
    """Return the accuracies of scores, in %; the threshold comes from validation normals.

    Parameters
    ----------
    validation : ndarray of shape (v,)
        Scores of the validation normals.
    test : ndarray of shape (t,)
        Scores of the test rows.
    is_normal : ndarray of shape (t,)
        Which of these are normal.
    rate : float, default=0.05
        Share of fresh normals that may raise an alarm.

    Returns
    -------
    dict
        "auc"; "ap", the area under precision and recall of the anomalies, and
        "prevalence", what chance has there; "gmean" and "false_alarms" at the
        threshold; "best_gmean", that of the best threshold in hindsight.
    """
    if not (np.isfinite(validation).all() and np.isfinite(test).all()):
        raise InvalidInputError("Scores must be finite. Got NaN or infinite ones.")
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
    # rounding errors must not part systems that are level
    found = {name: round(100.0 * value, DIGITS) for name, value in found.items()}
    require_consistent(found["auc"], found["gmean"])
    require_consistent(found["auc"], found["best_gmean"])
    return found


def require_consistent(auc_percent: float, gmean_percent: float) -> None:
    """Raise if an AUC and a G-mean cannot come from the same scores: AUC >= G^2.

    A normal at or above the threshold scores more than an anomaly below it, and
    these are a share G^2 of all pairs.
    """
    bound = gmean_percent**2 / 100.0
    if auc_percent < bound - 10.0**-DIGITS * 3.0:
        raise AssertionError(
            f"AUC {auc_percent} % is less than the square of the G-mean {gmean_percent} %, "
            f"{bound:.4f} %: they are not of the same scores."
        )
