"""Detectors on rows whose long tails are pulled in."""

from typing import ClassVar

import numpy as np

from ocfuse.detectors.base import MANY_ROWS, BaseDetector
from ocfuse.detectors.gram import FloatArray, Gram, Reference, View
from ocfuse.detectors.viewed import Viewed

#: A column with less spread than this is constant.
SMALLEST_SPREAD = 1e-9
#: Of many rows so many are looked at together.
ROWS_AT_ONCE = 1024


class Compression:
    """Take arcsinh of every column and standardise it again.

    arcsinh is the identity near 0 and a logarithm far from it, on both sides.

    Parameters
    ----------
    raw : Reference
        The training rows, standardised.

    Attributes
    ----------
    mean : ndarray of shape (m,)
        Means of arcsinh of the columns.
    spread : ndarray of shape (m,)
        Their standard deviations, 1 for constant columns.
    by_logarithm : bool
        Compute arcsinh by a logarithm, right to 1e-15: with many rows it takes time.
    """

    by_logarithm = False

    def __init__(self, raw: Reference) -> None:
        self.by_logarithm = raw.n_rows > MANY_ROWS
        if self.by_logarithm:
            self.mean, spread = _moments(raw.X)
        else:
            rows = np.arcsinh(raw.X)
            # Constant columns must give exactly 0, so the mean is taken around a row.
            self.mean = rows[0] + (rows - rows[0]).mean(axis=0)
            spread = np.sqrt(np.mean((rows - self.mean) ** 2, axis=0))
        self.spread: FloatArray = np.where(spread > SMALLEST_SPREAD, spread, 1.0)

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the compressed rows, shape (q, m)."""
        rows: FloatArray = _arcsinh(X) if self.by_logarithm else np.arcsinh(X)
        rows -= self.mean
        rows /= self.spread
        return rows


def _moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of arcsinh of the columns, block by block."""
    first = _arcsinh(X[:1])
    total, squares = np.zeros((2, X.shape[1]))
    for begin in range(0, len(X), ROWS_AT_ONCE):
        rows = _arcsinh(X[begin : begin + ROWS_AT_ONCE])
        rows -= first  # constant columns must give exactly 0
        total += rows.sum(axis=0)
        squares += np.einsum("nm,nm->m", rows, rows)
    shift = total / len(X)
    return first[0] + shift, np.sqrt(np.maximum(squares / len(X) - shift**2, 0.0))


def _arcsinh(X: FloatArray) -> FloatArray:
    """Return ``sign(x) log(|x| + sqrt(x^2 + 1))``."""
    sizes = np.abs(X)
    values = sizes * sizes
    values += 1.0
    np.sqrt(values, out=values)
    values += sizes
    np.log(values, out=values)
    np.copysign(values, X, out=values)
    return values


class Compressed(Viewed):
    """Let a detector of this package learn from compressed rows.

    Every column goes through ``arcsinh(x)`` and is standardised again, so that
    the long tail of a skewed column does not outweigh all others. The rows
    themselves must be standardised, as those of an ensemble are: arcsinh
    leaves values much smaller than 1 as they are. In a `Pool` all compressed
    members that learn from the same rows share the compressed rows, their
    distances, kernels and neighbours.

    Honest scores are in closed form if the detector knows one: the means and
    deviations have seen the row that is left out, as those of the
    standardisation before have.

    Parameters
    ----------
    detector : BaseDetector
        A detector of this package, such as ``KPCA()``; it is cloned, never
        fitted. It says how many rows are learned from and what the false
        alarm rate is: ``Compressed(KNN(5, max_samples=1000))``.

    Attributes
    ----------
    detector_ : BaseDetector
        The detector fitted to compressed rows.
    offset_ : float
        Rows that score less are called anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.detectors.neighbours import KNN
    >>> X = np.random.default_rng(0).standard_t(2, size=(200, 2))
    >>> Compressed(KNN()).fit(X).predict([[0.0, 0.0], [90.0, 90.0]])
    array([ 1, -1])
    """

    view: ClassVar[type[View]] = Compression

    def is_closed(self, n: int, m: int) -> bool:
        """Tell whether the detector has a closed form for n rows of m columns."""
        return isinstance(self.detector, BaseDetector) and self.detector.is_closed(n, m)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return self.detector_._leave_one_out(gram.view(self.view))
