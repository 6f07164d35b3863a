"""Which results are level: the one rule for ties, of ranks and of pairs."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Results that differ by no more than this share of the largest are level: 0.1 + 0.2
#: and 0.3 are not the same number in binary.
ROUNDING = 1e-12


def steps(values: ArrayLike, unit: float | None = None) -> NDArray[np.float64]:
    """Return the place of each value along the last axis, from 0 upwards; level ones share it.

    Values are level if no gap between neighbours, in their order, exceeds
    `ROUNDING` of the unit: by default the largest absolute value of the row.
    NaN has no place, and stays NaN.
    """
    table = np.asarray(values, dtype=np.float64)
    known = np.where(np.isnan(table), 0.0, np.abs(table))
    units = known.max(axis=-1, keepdims=True) if unit is None else np.asarray(unit)
    scaled = table / np.where(units > 0.0, units, 1.0)
    order = np.argsort(scaled, axis=-1)  # NaN last
    is_higher = np.diff(np.take_along_axis(scaled, order, axis=-1), axis=-1) > ROUNDING
    places = np.zeros_like(table)
    places[..., 1:] = np.cumsum(is_higher, axis=-1)
    found = np.empty_like(table)
    np.put_along_axis(found, order, places, axis=-1)
    found[np.isnan(table)] = np.nan
    return found
