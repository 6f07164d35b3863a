"""Find the rows of a training set that cannot be normal, such as glitches of a sensor."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

#: A row is left out if it lies this many times farther below the median than the
#: lowest quarter of the rows begins. Of clean rows this takes 0.2 % in the mean over
#: the 24 development sets, and 2 % of one of them.
CUT = 30.0
#: Most rows that are ever left out.
LARGEST_SHARE = 0.2
#: Rows below which a quarter of them says nothing.
FEWEST_ROWS = 20


def outlying_rows(S: FloatArray) -> NDArray[np.bool_]:
    """Tell which rows most members agree to be far outside, from honest scores (n, d).

    The scores of every member are measured from their median, in distances from
    there to their lower quartile. A row is outlying if the median member puts
    it more than `CUT` below. At most a share `LARGEST_SHARE`, the lowest.
    """
    if len(S) < FEWEST_ROWS:
        return np.zeros(len(S), dtype=bool)
    lowest, middle = np.percentile(S, [25, 50], axis=0)
    spread = middle - lowest
    spread[spread == 0] = np.inf  # too many equal rows: nothing to measure with
    agreed = np.median((S - middle) / spread, axis=1)
    outlying: NDArray[np.bool_] = agreed < -CUT
    most = int(LARGEST_SHARE * len(S))
    if outlying.sum() > most:
        outlying &= agreed < np.sort(agreed)[most]
    return outlying
