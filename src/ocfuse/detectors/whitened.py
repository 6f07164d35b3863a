"""Detectors on whitened rows."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.gram import FloatArray, Gram, Query
from ocfuse.exceptions import InvalidTypeError


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

    def _fit(self, gram: Gram) -> None:
        self.shrinkage_ = gram.reference.white.whitening.shrinkage

    def _score(self, query: Query) -> FloatArray:
        rows = query.white.X
        squares: FloatArray = np.einsum("qm,qm->q", rows, rows)
        return -squares

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        # Without row i the matrix is n / (n - 1) of what is left when (1 - a) / (n - 1)
        # times the outer product of the centred row is taken from it (Sherman-Morrison).
        n, scores = gram.n_rows, self._score(gram)
        return n * scores / (n - 1 + (1.0 - self.shrinkage_) * scores)


class Whitened(BaseDetector):
    """Let a detector of this package learn from whitened rows.

    Rows are centred and multiplied by the W of `Mahalanobis` before the
    detector sees them, so that all directions count alike. In a `Pool` all
    whitened members that learn from the same rows share one whitening, its
    distances, kernels and neighbours.

    Honest scores go by folds with a whitening each, also if the detector
    itself knows a closed form: a whitening that has seen a row draws it to
    the others, the more the fewer rows there are for the columns.

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

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    @property
    def max_samples(self) -> int | None:  # type: ignore[override]
        """The number of rows that the detector learns from."""
        # A pool asks before it checks the detector.
        samples: int | None = getattr(self.detector, "max_samples", None)
        return samples

    @property
    def false_alarm_rate(self) -> float:  # type: ignore[override]
        """The false alarm rate of the detector."""
        return float(self.detector.false_alarm_rate)

    def sharing_order(self) -> tuple[int, int]:
        """Return the place of the detector among those that share the whitened rows."""
        order: tuple[int, int] = self.detector.sharing_order()
        return order

    def _check_parameters(self) -> None:
        if not isinstance(self.detector, BaseDetector):
            raise InvalidTypeError(
                "detector must be a detector of this package, such as KPCA(). "
                f"Got {self.detector!r}. Others can follow a whitening of scikit-learn in a "
                "pipeline."
            )
        self.detector._check_parameters()

    def _fit(self, gram: Gram) -> None:
        self.detector_: BaseDetector = clone(self.detector).fit_gram(gram.white)

    def _score(self, query: Query) -> FloatArray:
        return self.detector_.score_query(query.white)
