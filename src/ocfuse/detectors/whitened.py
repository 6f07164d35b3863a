"""Detectors on whitened rows."""

from typing import ClassVar, cast

import numpy as np

from ocfuse.cost import Cost, Shape
from ocfuse.detectors.base import BaseDetector, KernelDetector
from ocfuse.detectors.gram import FloatArray, Gram, Query, View
from ocfuse.detectors.neighbours import KNN, LOF
from ocfuse.detectors.viewed import Viewed
from ocfuse.detectors.whitening import LeftOut, Whitening, whitening_cost

#: Up to so many rows, or with fewer for each column, honest scores go by folds.
MOST_FOLDED, ROWS_PER_COLUMN = 2000, 10


class Mahalanobis(BaseDetector):
    """Score rows by minus the squared Mahalanobis distance to the mean.

    The score is ``-|W (x - mean)|^2`` with the whitening
    ``W = ((1 - a) C + a v I)^(-1/2)``: C is the covariance of the training
    rows, v its mean variance and a the shrinkage of Ledoit and Wolf (2004), at
    least 0.001. It works with fewer rows than columns and with constant
    columns too.

    Leave-one-out scores take the row out of the mean and of C, in closed form;
    a and v stay.

    Parameters
    ----------
    max_samples : int, optional
        Learn from at most so many rows, evenly spaced.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    shrinkage_ : float
        The shrinkage a.
    offset_ : float
        Rows that score less are called anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 1.0], [0.0, 0.2]]
    >>> Mahalanobis().fit(X).predict([[1.0, 1.0], [1.0, -1.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True

    def __init__(self, *, max_samples: int | None = None, false_alarm_rate: float = 0.05) -> None:
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def cost(self, shape: Shape) -> Cost:
        """Return what it takes to learn from rows, and to score one."""
        return Cost(shared={("view", Whitening.__name__, shape.rows): whitening_cost(shape)})

    def _fit(self, gram: Gram) -> None:
        whitening = cast(Whitening, gram.reference.view(Whitening).coordinates)
        self.shrinkage_ = whitening.shrinkage

    def _score(self, query: Query) -> FloatArray:
        rows = query.view(Whitening).X
        squares: FloatArray = np.einsum("qm,qm->q", rows, rows)
        return -squares

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        # Without row i the matrix is n / (n - 1) of what is left when (1 - a) / (n - 1)
        # times the outer product of the centred row is taken from it (Sherman-Morrison).
        n, scores = gram.n_rows, self._score(gram)
        return n * scores / (n - 1 + (1.0 - self.shrinkage_) * scores)


class Whitened(Viewed):
    """Let a detector of this package learn from whitened rows.

    Rows are centred and multiplied by the W of `Mahalanobis` before the
    detector sees them, so that all directions count alike. In a `Pool` all
    whitened members that learn from the same rows share one whitening, its
    distances, kernels and neighbours.

    Honest scores go by folds with a whitening each, also if the detector
    itself knows a closed form: a whitening that has seen a row draws it to
    the others, the more the fewer rows there are for the columns. With more
    than 2,000 rows, and 10 for each column, the row is taken out of the
    whitening in closed form instead (see `LeftOut`), if the detector knows
    rows by their neighbours or by landmarks only. The mean of a Gaussian process in
    blocks would tell the distances of a row left out from those between the others.

    Parameters
    ----------
    detector : BaseDetector
        A detector of this package, such as ``KPCA()``; it is cloned, never
        fitted. It says how many rows are learned from and what the false
        alarm rate is: ``Whitened(KNN(5, max_samples=1000))``.

    Attributes
    ----------
    detector_ : BaseDetector
        The detector fitted to whitened rows.
    offset_ : float
        Rows that score less are called anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.detectors.neighbours import KNN
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 1.0], [0.0, 0.2]]
    >>> Whitened(KNN()).fit(X).predict([[1.0, 1.0], [1.0, -1.0]])
    array([ 1, -1])
    """

    view: ClassVar[type[View]] = Whitening

    def is_closed(self, n: int, m: int) -> bool:
        """Tell whether rows can be taken out of the whitening one by one."""
        inner = self.detector
        by_landmarks = isinstance(inner, KernelDetector) and inner.needs_landmarks(n)
        if isinstance(inner, KernelDetector) and inner.in_blocks:
            return False
        by_distance = by_landmarks or isinstance(inner, KNN | LOF)
        return by_distance and n > MOST_FOLDED and n >= ROWS_PER_COLUMN * m

    def _view_cost(self, shape: Shape) -> Cost:
        return super()._view_cost(shape) + whitening_cost(shape)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        whitening = cast(Whitening, gram.reference.view(Whitening).coordinates)
        left_out = LeftOut(gram.view(Whitening), whitening.shrinkage)
        return self.detector_._leave_one_out(left_out)
