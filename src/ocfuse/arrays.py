"""Types of arrays, defined once: the layers above import them from here.

They stand at the bottom, and not in `ocfuse.validation`, as files and threads have arrays too, and
as the solvers must not wait for scikit-learn.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Numbers: rows, scores, weights.
FloatArray: TypeAlias = NDArray[np.float64]
#: Numbers of half the size.
SingleArray: TypeAlias = NDArray[np.float32]
#: Indices of rows and columns.
IntArray: TypeAlias = NDArray[np.intp]
#: Labels and counts.
Int64Array: TypeAlias = NDArray[np.int64]
#: Masks.
BoolArray: TypeAlias = NDArray[np.bool_]
