"""Squared distances and what a Gaussian kernel makes of them, compiled or by NumPy."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ocfuse.compiled.native import kernel, thread_count

FloatArray: TypeAlias = NDArray[np.float64]

#: What a value costs, in numbers to read.
WORK_PER_VALUE = 4


def complete(D: FloatArray, columns: FloatArray, rows: FloatArray) -> FloatArray:
    """Return squared distances ``|x|^2 + |y|^2 - 2 x.y``, none below 0, in the place of the last.

    Parameters
    ----------
    D : ndarray of shape (q, n)
        ``-2 x.y``; overwritten.
    columns, rows : ndarray of shape (n,) and (q,)
        The squared lengths of the y and of the x.

    Returns
    -------
    ndarray of shape (q, n)
        D.
    """
    if kernel is not None and D.flags.c_contiguous:
        kernel.complete(D, columns, rows, thread_count(D.size))
        return D
    D += columns
    D += rows[:, None]
    return np.maximum(D, 0.0, out=D)


def decayed(D: FloatArray, rate: float) -> FloatArray:
    """Return ``exp(-rate D)``.

    Compiled and by NumPy it differs by rounding alone; either way a value depends on
    nothing but the distance and the rate.
    """
    if kernel is not None:
        K: FloatArray = kernel.decay(D, rate, thread_count(WORK_PER_VALUE * D.size))
        return K
    K = D * -rate
    return np.exp(K, out=K)
