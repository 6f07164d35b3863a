"""Kernel principal component analysis: the reconstruction error of a row."""

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import MANY_ROWS, KernelDetector
from ocfuse.detectors.gram import Gram, Query, RowChange
from ocfuse.detectors.landmark_models import Basis, LandmarkSpectrum, Principal, moments
from ocfuse.detectors.landmarks import noisy_factor, row_blocks
from ocfuse.exceptions import InvalidInputError


class KPCA(KernelDetector):
    """Kernel PCA: the score is minus the reconstruction error (Hoffmann 2007).

    With ``phi(x)`` centred on the training rows and V the first principal directions, the error is
    ``|phi(x)|^2 - |V' phi(x)|^2`` and the score is ``-max(error - resolution, 0)``. The resolution
    is 4e-15 of the largest eigenvalue. Smaller errors are rounding errors, which a normaliser
    would magnify; they count as 0.

    Leave-one-out scores are computed from the spectrum of the full model, with the same number of
    directions. They are exact for up to 1,000 rows, or if half of the directions are kept. Else
    directions far beyond those kept are approximated by two moments. In measurements this changed
    scores by up to 0.01 standard deviations (root mean square; single rows by up to 0.2).

    With `landmarks`, more than `max_samples` rows are all learned, through their kernel values at
    the landmarks; what these values miss of a row counts as error. The cost is linear in the
    number of rows, and scoring compares a row with the landmarks only.

    Parameters
    ----------
    subspace : int, float or None
        Number of directions, or the share of the variance that they explain. None takes 0.3 n, at
        most 300. There are never more than the numerical rank.
    width : float
        Width of the kernel, in multiples of M, the mean squared distance of two training rows.
    max_samples : int or None
        Most rows to learn from, evenly spaced, to limit the time to fit and to score a row. None
        learns from all.
    false_alarm_rate : float
        Share of fresh normal rows that `predict` may call anomalies.
    landmarks : int or None
        Number of landmarks, at most 8,000 (see `ocfuse.detectors.landmarks`). With landmarks all
        rows are learned from even if there are more than `max_samples`. None uses none.

    Attributes
    ----------
    method_ : {"exact", "landmarks"}
        How the rows were learned.
    n_components_ : int
        Number of directions kept.
    projection_ : ndarray of shape (n, r + 1)
        Matrix that maps kernel values to projections; the last column computes their mean.
    shift_ : ndarray of shape (r,)
        Projections of the mean.
    mean_ : float
        Squared norm of the mean in feature space.
    values_ : ndarray of shape (number of landmarks,) or None
        Sums of squares of the rows along all directions, with landmarks; else None.
    changed_ : int
        Number of rows added or dropped by updates since the last full fit.
    resolution_ : float
        Errors up to this count as 0; it is subtracted from larger ones.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.detectors.kpca import KPCA
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> KPCA().fit(X).predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    #: Share of the rows that may come and go before an update learns from all of them again.
    most_changed: ClassVar[float] = 0.2
    #: Directions that an update may exchange, those that the rows vary least along.
    exchanged: ClassVar[int] = 64

    closed_form: ClassVar[bool] = True
    values_: FloatArray | None = None
    changed_: int = 0
    fit_rank: ClassVar[int] = 0
    kernel_work: ClassVar[str] = "spectrum"
    #: Default directions: this share of the rows, and no more than so many.
    default_share: ClassVar[float] = 0.3
    most_directions: ClassVar[int] = 300

    def __init__(
        self,
        subspace: int | float | None = None,
        width: float = 1.0,
        max_samples: int | None = MANY_ROWS,
        false_alarm_rate: float = 0.05,
        landmarks: int | None = None,
    ) -> None:
        self.subspace = subspace
        self.width = width
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate
        self.landmarks = landmarks

    def _n_outputs(self, n: int, size: int) -> float:
        return min(self.default_share * n, self.most_directions, size)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        subspace: Any = self.subspace
        is_whole, is_real = isinstance(subspace, Integral), isinstance(subspace, Real)
        fits = (is_whole and subspace >= 1) or (is_real and 0.0 < subspace < 1.0)
        if isinstance(subspace, bool) or not (subspace is None or fits):
            raise InvalidInputError(
                "subspace must be a number of directions of at least 1, a share of the variance "
                f"in (0, 1), or None. Got subspace={subspace!r}."
            )

    def _fit(self, gram: Gram) -> None:
        source = self._source(gram)
        subspace = self._subspace_of(gram.n_rows)
        spectrum = source.spectrum(self.width, subspace)
        r = self.n_components_ = spectrum.size(subspace)
        self.projection_, self.shift_ = spectrum.projection(r)
        self.mean_ = spectrum.mean
        self.resolution_ = spectrum.resolution
        self.values_ = spectrum.values if isinstance(spectrum, LandmarkSpectrum) else None

    def updated(self, change: RowChange) -> "KPCA | None":
        """Return a copy that has learned the new rows, if it uses landmarks, which do not change.

        The rows that come and go move the mean as they would in a fit, and the directions within
        those that are kept last and those that the rows bring; how the rows of before vary off
        all kept directions counts as the same on every side. Once a fifth of the rows has come
        or gone, all are learned from again.
        """
        if self.method_ != "landmarks":
            return None
        fresh = copy(self)
        fresh.changed_ = self.changed_ + change.size
        landmarks = self.reference_
        basis = Basis(noisy_factor(landmarks.query(landmarks.X).kernel(self.width)))
        if self.values_ is None or fresh.changed_ > self.most_changed * change.new.n_rows:
            kernels = (
                landmarks.query(rows).kernel(self.width)
                for rows in row_blocks(change.new.X, landmarks.n_rows)
            )
            spectrum = LandmarkSpectrum(moments(basis, kernels))
            fresh.changed_ = 0
            fresh.projection_, fresh.shift_ = spectrum.projection(self.n_components_)
            fresh.mean_, fresh.resolution_ = spectrum.mean, spectrum.resolution
            fresh.values_ = spectrum.values
            return fresh
        before = Principal(basis, change.old.n_rows, self.projection_, self.values_)
        added, dropped = (
            basis.coordinates(landmarks.query(rows).kernel(self.width)).astype(np.float64)
            for rows in (change.added, change.dropped)
        )
        found = before.moved(added, dropped, self.exchanged)
        fresh.projection_, fresh.shift_, fresh.values_ = found.projection, found.shift, found.values
        fresh.mean_ = float(found.centre @ found.centre)
        return fresh

    def _score(self, query: Query) -> FloatArray:
        parts = query.kernel(self.width) @ self.projection_
        f = parts[:, :-1]
        f -= self.shift_
        score: FloatArray = np.einsum("qr,qr->q", f, f)
        score += 2.0 * parts[:, -1]
        score -= 1.0 + self.mean_
        return self._resolved(score)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        source = self._source(gram)
        spectrum = source.spectrum(self.width, self._subspace_of(gram.n_rows))
        return self._resolved(-spectrum.left_out_errors(self.n_components_))

    def _resolved(self, score: FloatArray) -> FloatArray:
        # Shifted rather than cut: a step would turn rounding into a difference.
        return np.minimum(score + self.resolution_, 0.0)

    def _subspace_of(self, n: int) -> int | float:
        if self.subspace is None:
            return max(1, min(int(self.default_share * n), self.most_directions))
        return float(self.subspace) if 0.0 < self.subspace < 1.0 else int(self.subspace)
