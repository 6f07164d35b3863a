"""Whether context lies where it lay in training."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocfuse.exceptions import SuspectInputWarning


def warn_if_far(context: ArrayLike, low: Any, high: Any, stacklevel: int = 3) -> bool:
    """Tell of context that lies beyond the range of training by more than its width.

    It is most likely in other units.

    Parameters
    ----------
    context : array-like of shape (n,) or (n, k)
        Context of some rows; NaN is not known, and is not far.
    low, high : float or array-like of shape (k,)
        Range of each column in training.
    stacklevel : int, default=3
        Whose line is shown, as in `warnings.warn`.

    Returns
    -------
    bool
        Whether there was any, and a `SuspectInputWarning` was given.
    """
    values, width = np.asarray(context, dtype=np.float64), np.subtract(high, low)
    is_far = (values < low - width) | (values > high + width)
    if not is_far.any():
        return False
    where = tuple(np.argwhere(is_far)[0].tolist())
    ends = np.broadcast_to(low, values.shape)[where], np.broadcast_to(high, values.shape)[where]
    warnings.warn(
        f"The context was {ends[0]:g} to {ends[1]:g} in training, and is {values[where]:g} now, "
        "which is far beyond. Give it in the units of training, such as 0.5 instead of 50 %.",
        SuspectInputWarning,
        stacklevel=stacklevel,
    )
    return True
