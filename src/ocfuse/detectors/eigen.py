"""Eigenvalues and eigenvectors of symmetric matrices."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

FloatArray: TypeAlias = NDArray[np.float64]


def eigenpairs(A: FloatArray, *, overwrite: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return all eigenvalues, smallest first, and eigenvectors as columns.

    Parameters
    ----------
    A : ndarray of shape (m, m)
        Symmetric and finite.
    overwrite : bool, default=False
        A is not needed any more.

    Returns
    -------
    values : ndarray of shape (m,)
        Eigenvalues.
    vectors : ndarray of shape (m, m)
        Eigenvectors.
    """
    # SciPy before 1.14 asks for too little room where there is nothing to divide and conquer
    driver = "evd" if len(A) > 1 else "ev"
    values, vectors = eigh(A, driver=driver, overwrite_a=overwrite, check_finite=False)
    return values, vectors
