"""Context of rows, such as time or the progress of a task, made comparable with features."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.fusion.inputs import check_context, require_context

FloatArray: TypeAlias = NDArray[np.float64]


class ContextScale:
    """Bring context to the units of m standardised features.

    A column is centred, divided by its standard deviation (1 if it is constant) and
    multiplied by ``sqrt(m / k)``: two training rows are, on average, as far apart in
    their k columns of context as in their m features.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Context of the training rows.
    n_features : int
        The number m.
    """

    def __init__(self, values: FloatArray, n_features: int) -> None:
        spread = values.std(axis=0)
        is_constant = spread <= 1e-13 * np.abs(values).max(axis=0, initial=0.0)
        unit = np.sqrt(n_features / values.shape[1])
        self.centre = values.mean(axis=0)
        self.factor = unit / np.where(is_constant, 1.0, spread)

    def transform(self, values: FloatArray) -> FloatArray:
        """Return context in the units of the features."""
        return np.asarray((values - self.centre) * self.factor)


def scaled_context(scale: ContextScale | None, context: Any, n: int) -> FloatArray | None:
    """Return the context of n rows to score in the units of the features, as in fit."""
    values = np.empty((n, 0)) if context is None else check_context(context, n)
    require_context(values.shape[1], 0 if scale is None else len(scale.centre))
    return None if scale is None else scale.transform(values)
