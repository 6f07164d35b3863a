"""When anomalies begin, and whether an alarm was on by then."""

import numpy as np
from numpy.typing import NDArray


def on_before(y: NDArray[np.int64], alarms: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell of each anomaly of a run whether an alarm was on just before it began.

    Such an alarm has found nothing: it would be a detection after no time at all.
    """
    starts = np.flatnonzero(np.diff(np.r_[1, y]) < 0)
    return np.array([start > 0 and alarms[start - 1] for start in starts], dtype=bool)
