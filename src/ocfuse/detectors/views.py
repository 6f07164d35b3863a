"""Detectors on transformed rows: whitened, or with compressed tails."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy.linalg import svd
from sklearn.base import clone

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import NUMBER, Cost, Shape
from ocfuse.detectors.base import MANY_ROWS, BaseDetector, KernelDetector
from ocfuse.detectors.gram import Gram, Query, Reference, RowChange, View
from ocfuse.detectors.kernel_algebra import eigenpairs
from ocfuse.detectors.neighbours import KNN, LOF
from ocfuse.exceptions import InvalidTypeError
from ocfuse.system.threads import few_threads, one_thread

#: Error of an eigenvalue, relative to the largest, per column.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
#: A mean variance below this is taken as none.
SMALLEST_VARIANCE = 1e-290


class Viewed(BaseDetector):
    """A detector of this package on the rows as a view shows them.

    A subclass names the `view`. Members of a pool that learn from the same
    rows in the same view share it, its distances, kernels and neighbours. The
    detector says how many rows are learned from and what the false alarm rate is.
    """

    #: What the rows are seen through.
    view: ClassVar[type[View]]

    detector_: BaseDetector

    def __init__(self, detector: Any) -> None:
        self.detector = detector

    @property
    def max_samples(self) -> int | None:  # type: ignore[override]
        """The number of rows that the detector learns from."""
        return getattr(self.detector, "max_samples", None)  # a pool asks before it checks

    @property
    def false_alarm_rate(self) -> float:  # type: ignore[override]
        """The false alarm rate of the detector."""
        return float(self.detector.false_alarm_rate)

    def rows_of(self, n: int) -> int:
        """Return how many of n rows the detector learns from."""
        # A pool asks before it checks the detector.
        return self.detector.rows_of(n) if isinstance(self.detector, BaseDetector) else n

    def sharing_order(self) -> tuple[int, int]:
        """Return the place of the detector among those that share the view."""
        order: tuple[int, int] = self.detector.sharing_order()
        return order

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        name = self.view.__name__
        inside: Cost = self.detector.cost(replace(shape, view=name))
        return Cost(shared={("view", name, shape.rows): self._view_cost(shape)}) + inside

    def _view_cost(self, shape: Shape) -> Cost:
        """Return the cost of the rows in the view, which members share."""
        size = NUMBER * shape.cells
        return Cost(
            fit_work={"view": shape.fits() * shape.cells},
            score_work={"view": shape.columns},
            fit_bytes={"view": shape.held * size},
            model_bytes={"view": size},
        )

    def _check_parameters(self) -> None:
        if not isinstance(self.detector, BaseDetector):
            raise InvalidTypeError(
                "detector must be a detector of this package, such as KPCA(). "
                f"Got {self.detector!r}. Others can follow a transformer of scikit-learn in a "
                "pipeline."
            )
        self.detector._check_parameters()

    def _fit(self, gram: Gram) -> None:
        self.detector_ = clone(self.detector).fit_gram(gram.view(self.view))

    def updated(self, change: RowChange) -> "Viewed | None":
        """Return a copy whose detector knows the new rows, in the coordinates of before."""
        inside = self.detector_.updated(change.view(self.view))
        if inside is None:
            return None
        fresh = copy(self)
        fresh.reference_, fresh.detector_ = change.new, inside
        return fresh

    def _score(self, query: Query) -> FloatArray:
        return self.detector_.score_query(query.view(self.view))


class Whitening:
    """Multiply centred rows by ``W = ((1 - a) C + a v I)^(-1/2)``, up to a rotation.

    C is the covariance of the training rows, v its mean variance and a the
    shrinkage of Ledoit and Wolf (2004), at least 0.001. The coordinates are
    the principal ones. Where the training rows do not span all m directions,
    the part of a row off their span, on which W is the factor ``(a v)^(-1/2)``,
    becomes a single column: its length. No training row has such a part, so
    norms and distances to training rows are those of all m columns.

    A row is multiplied on its own: its coordinates are the same to the last
    bit in every batch, and duplicates stay duplicates.

    `directions` (r, m) are an orthonormal basis of the centred rows, which W multiplies by
    `factors`, and all others by `rest_factor`. `rounding` is the length of a training row off its
    span, which is 0, as computed; that of every row is taken as so much less.
    """

    def __init__(self, raw: Reference) -> None:
        self.centre = raw.centre
        self.rounding = 0.0
        rows = raw.X - raw.centre
        variance = float(np.mean(np.einsum("nm,nm->n", rows, rows))) / rows.shape[1]
        if variance <= SMALLEST_VARIANCE:
            # M is twice the sum of the variances; a fold of one row has one too.
            variance = raw.scale / (2 * rows.shape[1])
        # In this unit fourth powers do not overflow.
        rows /= np.sqrt(variance)
        with few_threads(rows.size * min(rows.shape)):
            values, self.directions = _principal(rows)
        a = self.shrinkage = max(1e-3, ledoit_wolf(rows, values))
        self.factors: FloatArray = 1.0 / np.sqrt(((1.0 - a) * values + a) * variance)
        self.rest_factor = float(1.0 / np.sqrt(a * variance))
        if len(self.directions) < rows.shape[1]:
            self.rounding = float(self._split(raw.X)[1].max())

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the whitened rows, shape (q, min(r + 1, m))."""
        inside, rest = self._split(X)
        inside *= self.factors
        r, m = self.directions.shape
        return inside if r == m else np.column_stack([inside, rest * self.rest_factor])

    def _split(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows in the directions, and the length of what is off them."""
        rows = X - self.centre
        with one_thread():
            inside = _row_by_row(self.directions, rows)
            if inside.shape == rows.shape:
                return inside, np.zeros(len(rows))
            rows -= _row_by_row(self.directions.T, inside)
        # Shifted rather than cut: a step would turn rounding into a difference.
        length = np.sqrt(np.einsum("qm,qm->q", rows, rows)) - self.rounding
        return inside, np.maximum(length, 0.0)


class LeftOut(Gram):
    """Whitened training rows, each at the distances in a whitening that has not seen it.

    Without row i, whose whitened coordinates are w_i, the inverse covariance gains
    ``b w_i w_i' / (1 - b |w_i|^2)`` with ``b = (1 - a) / (n - 1)``, in these
    coordinates and up to a factor (Sherman and Morrison), so that ::

        d(i, j)^2 = (n - 1) / n (|w_i - w_j|^2 + b (w_i.(w_i - w_j))^2 / (1 - b |w_i|^2))

    The shrinkage a and the mean variance stay, and so do the other rows' neighbours.
    """

    def __init__(self, gram: Gram, shrinkage: float) -> None:
        self._begin(gram.reference, None, gram.n_fit)
        self._gram = gram
        self._norms: FloatArray = np.einsum("nm,nm->n", gram.X, gram.X)
        self._gain = (1.0 - shrinkage) / (gram.n_rows - 1)

    def neighbours(self, k: int) -> tuple[FloatArray, IntArray]:
        """Return new distances of the k rows nearest in the whitening of all, nearest first."""
        distances, index = self._gram.neighbours(k)
        squares = distances**2
        self._stretch(squares, self._norms, self._norms[index])
        order = squares.argsort(axis=1, kind="stable")
        nearest = np.sqrt(np.take_along_axis(squares, order, axis=1))
        return nearest, np.take_along_axis(index, order, axis=1)

    def made(self, make: Callable[[Gram, int], Any], size: int) -> Any:
        """Return the same landmarks, with rows that are left out at their new distances."""
        return self._gram.made(make, size).adjusted(self._adjust)

    def _adjust(self, squares: FloatArray, block: slice, others: FloatArray) -> None:
        self._stretch(squares, self._norms[block], np.einsum("nm,nm->n", others, others))

    def _stretch(self, squares: FloatArray, norms: FloatArray, others: FloatArray) -> None:
        """Change the squared distances of rows of some norms to rows of others, in place."""
        n, own = self._gram.n_rows, norms[:, None]
        along = (squares + own - others) / 2
        along *= along
        # A row that alone spans a direction leaves no leverage to the others.
        along *= self._gain / np.maximum(1.0 - self._gain * own, 1e-12)
        squares += along
        squares *= (n - 1) / n


def ledoit_wolf(rows: FloatArray, values: FloatArray) -> float:
    """Return the shrinkage towards a sphere that is closest to the true covariance, in [0, 1].

    `values` are the positive eigenvalues of the covariance of the centred rows. The shrinkage is
    0 if the covariance is a sphere already, and 1 if it is 0.
    """
    n, m = rows.shape
    squares = float(values @ values)
    distance = squares - float(values.sum()) ** 2 / m
    if distance <= ROUNDING * squares:
        return 0.0 if len(values) else 1.0
    norms = np.einsum("nm,nm->n", rows, rows)
    error = (float(norms @ norms) / n - squares) / n
    return float(np.clip(error / distance, 0.0, 1.0))


def whitening_cost(shape: Shape) -> Cost:
    """Return the cost of a whitening of the rows."""
    n, m = shape.rows, shape.columns
    r = min(n, m)  # rows span no more directions than there are rows
    size = NUMBER * r * m
    return Cost(
        fit_work={"whitening": shape.fits() * (n + m) * r * r},
        score_work={"whitening": r * m},
        fit_bytes={"wide": size},
        model_bytes={"wide": size},
    )


def _principal(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the positive eigenvalues of the covariance, and directions as rows."""
    n, m = rows.shape
    if n > m:
        values, vectors = eigenpairs(rows.T @ rows / n)
        is_positive = values > ROUNDING * m * max(values[-1], SMALLEST_VARIANCE)
        return values[is_positive], np.ascontiguousarray(vectors.T[is_positive])
    _, singular, directions = svd(rows, full_matrices=False, check_finite=False)
    is_positive = singular > ROUNDING * m * max(singular[0], SMALLEST_VARIANCE)
    return singular[is_positive] ** 2 / n, directions[is_positive]


def _row_by_row(A: FloatArray, rows: FloatArray) -> FloatArray:
    """Return ``rows @ A.T`` by one product per row, which does not know the other rows."""
    product: FloatArray = np.matmul(A, rows[:, :, None])[:, :, 0]
    return product


class Mahalanobis(BaseDetector):
    """The score is minus the squared Mahalanobis distance to the mean.

    The score is ``-|W (x - mean)|^2`` with the whitening
    ``W = ((1 - a) C + a v I)^(-1/2)``: C is the covariance of the training
    rows, v its mean variance and a the shrinkage of Ledoit and Wolf (2004), at
    least 0.001. It works with fewer rows than columns and with constant
    columns too.

    For leave-one-out scores the row is taken out of the mean and of C in closed form; a and v do
    not change.

    Parameters
    ----------
    max_samples : int, optional
        Most rows to learn from, evenly spaced. None learns from all.
    false_alarm_rate : float, default 0.05
        Share of fresh normal rows that `predict` may call anomalies.

    Attributes
    ----------
    shrinkage_ : float
        The shrinkage a.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 1.0], [0.0, 0.2]]
    >>> Mahalanobis().fit(X).predict([[1.0, 1.0], [1.0, -1.0]])
    array([ 1, -1])
    """

    closed_form: ClassVar[bool] = True
    #: The whitening of its own that it has after an update.
    whitening_: Whitening | None = None

    def __init__(self, *, max_samples: int | None = None, false_alarm_rate: float = 0.05) -> None:
        self.max_samples = max_samples
        self.false_alarm_rate = false_alarm_rate

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        return Cost(shared={("view", Whitening.__name__, shape.rows): whitening_cost(shape)})

    def _fit(self, gram: Gram) -> None:
        whitening = cast(Whitening, gram.reference.view(Whitening).coordinates)
        self.shrinkage_ = whitening.shrinkage

    def updated(self, change: RowChange) -> "Mahalanobis":
        """Return a copy with the whitening of the new rows, which it does not share."""
        fresh = copy(self)
        fresh.reference_ = change.new
        fresh.whitening_ = Whitening(Reference(change.new.X))
        fresh.shrinkage_ = fresh.whitening_.shrinkage
        return fresh

    def _score(self, query: Query) -> FloatArray:
        own = self.whitening_
        rows = query.view(Whitening).X if own is None else own.transform(query.X)
        squares: FloatArray = np.einsum("qm,qm->q", rows, rows)
        return -squares

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        # Without row i the matrix is n / (n - 1) of what is left when (1 - a) / (n - 1)
        # times the outer product of the centred row is taken from it (Sherman-Morrison).
        n, scores = gram.n_rows, self._score(gram)
        return n * scores / (n - 1 + (1.0 - self.shrinkage_) * scores)


class Whitened(Viewed):
    """Apply a detector of this package to whitened rows.

    Rows are centred and multiplied by the matrix W of `Mahalanobis`, so that all directions have
    the same variance. In a `Pool` all whitened members that learn from the same rows share one
    whitening, its distances, kernels and neighbours.

    Out-of-fold scores are computed with folds, each with its own whitening, even if the detector
    has a closed form: a whitening that has seen a row moves it towards the others, the more the
    fewer rows there are per column. With more than 500 rows, and 10 per column, the row is taken
    out of the whitening in closed form instead (see `LeftOut`), if the detector uses neighbours or
    landmarks only (not the blocks of a Gaussian process).

    Parameters
    ----------
    detector : BaseDetector
        A detector of this package, such as ``KPCA()``; a clone of it is fitted. It defines
        `max_samples` and `false_alarm_rate`: ``Whitened(KNN(5, max_samples=1000))``.

    Attributes
    ----------
    detector_ : BaseDetector
        The detector fitted to whitened rows.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.detectors.neighbours import KNN
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 1.0], [0.0, 0.2]]
    >>> Whitened(KNN()).fit(X).predict([[1.0, 1.0], [1.0, -1.0]])
    array([ 1, -1])
    """

    view: ClassVar[type[View]] = Whitening
    #: Up to so many rows a whitening is learned in every fold: it is cheap.
    folded_rows: ClassVar[int] = 500

    def is_closed(self, n: int, m: int) -> bool:
        """Return whether rows can be taken out of the whitening one by one."""
        inner = self.detector
        if isinstance(inner, KernelDetector):
            by_distance = inner.needs_landmarks(n) and not inner.in_blocks
        else:
            by_distance = isinstance(inner, KNN | LOF)
        return by_distance and n > self.folded_rows and n >= 10 * m

    def _view_cost(self, shape: Shape) -> Cost:
        return super()._view_cost(shape) + whitening_cost(shape)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        whitening = cast(Whitening, gram.reference.view(Whitening).coordinates)
        left_out = LeftOut(gram.view(Whitening), whitening.shrinkage)
        return self.detector_._leave_one_out(left_out)


class Compression:
    """Take arcsinh of every column and standardise it again.

    arcsinh is the identity near 0 and a logarithm far from it, on both sides.
    """

    #: Compute arcsinh by a logarithm, right to 1e-15: with many rows it takes time.
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
        # The spread of a constant column is rounding.
        self.spread: FloatArray = np.where(spread > 1e-9, spread, 1.0)

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
    for begin in range(0, len(X), 1024):
        rows = _arcsinh(X[begin : begin + 1024])
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
    """Apply a detector of this package to rows with compressed tails.

    Each column is transformed with ``arcsinh(x)`` and standardised again, so that the long tail of
    a skewed column does not dominate the others. The rows must be standardised before, as those of
    an ensemble are: arcsinh hardly changes values much smaller than 1. In a `Pool` all compressed
    members that learn from the same rows share the compressed rows, their distances, kernels and
    neighbours.

    Out-of-fold scores are in closed form if the detector has one. The means and standard
    deviations include the left-out row, as those of the first standardisation do.

    Parameters
    ----------
    detector : BaseDetector
        A detector of this package, such as ``KPCA()``; a clone of it is fitted. It defines
        `max_samples` and `false_alarm_rate`: ``Compressed(KNN(5, max_samples=1000))``.

    Attributes
    ----------
    detector_ : BaseDetector
        The detector fitted to compressed rows.
    offset_ : float
        Threshold: rows with a lower score are anomalies.

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
        """Return whether the detector has a closed form for n rows of m columns."""
        return isinstance(self.detector, BaseDetector) and self.detector.is_closed(n, m)

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        return self.detector_._leave_one_out(gram.view(self.view))
