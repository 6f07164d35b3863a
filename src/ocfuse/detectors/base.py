"""Base classes of the detectors: contract, out-of-fold scores, threshold."""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ocfuse.arrays import FloatArray, IntArray
from ocfuse.cost import NUMBER, Cost, Shape, guessed_cost
from ocfuse.detectors.gram import Gram, Query, Reference, RowChange, distances_cost
from ocfuse.detectors.landmarks import Landmarks, landmarks_cost
from ocfuse.exceptions import InvalidInputError

Folds: TypeAlias = Sequence[tuple[IntArray, IntArray]]

#: Folds of the scores that a detector gives to rows it has not seen.
N_FOLDS = 4
#: More rows than this are many: "default" means the pool "large", and kernels go by landmarks.
MANY_ROWS = 2000


class BaseDetector(OutlierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the detectors of this package.

    A subclass defines `_fit` and `_score`, and `cost` for plans. It defines `_leave_one_out` if
    there is a closed form for the scores of training rows that are left out. In an ensemble, all
    members get the same `Gram` of training rows and the same `Query` of rows to score, so that
    distances, kernels, factorisations and neighbours are computed once.

    Attributes
    ----------
    reference_ : Reference
        The training rows; members of an ensemble share one.
    offset_ : float
        Threshold: rows with a lower score are anomalies. A fresh normal row has a lower score with
        a probability of at most `false_alarm_rate`. `fit` sets it from out-of-fold scores.
    """

    #: `_leave_one_out` exists.
    closed_form: ClassVar[bool] = False
    #: On one Gram, detectors of lower rank go first: they leave there what others reuse.
    fit_rank: ClassVar[int] = 1

    #: Read as parameters where a subclass has them in its `__init__`.
    max_samples: int | None = None
    false_alarm_rate: float = 0.05
    reference_: Reference
    offset_: float

    def fit(self, X: ArrayLike, y: Any = None) -> "BaseDetector":
        """Learn what is normal from the rows of X; y is ignored."""
        self._check_parameters()
        table: FloatArray = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        rows = core_rows(len(table), self.rows_of(len(table)))
        gram = Gram(table[rows])
        self.fit_gram(gram)
        out_of_fold = out_of_fold_scores(self, gram, interleaved_folds(len(rows)))
        self.offset_ = lower_quantile(out_of_fold, self.false_alarm_rate)
        return self

    def fit_gram(self, gram: Gram) -> "BaseDetector":
        """Learn from rows whose distances are shared; sets no offset."""
        self._check_parameters()
        self.reference_ = gram.reference
        self._fit(gram)
        return self

    def fit_fold(self, part: Gram, gram: Gram) -> "BaseDetector":
        """Return a clone fitted to a part of the rows of a Gram, to score the others."""
        fresh: BaseDetector = clone(self).fit_gram(part)
        return fresh

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return one score per row: higher is more normal."""
        check_is_fitted(self)
        table: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return self._score(self.reference_.query(table))

    def score_query(self, query: Query) -> FloatArray:
        """Score rows whose distances to the training rows are shared."""
        return self._score(query)

    def updated(self, change: RowChange) -> "BaseDetector | None":
        """Return a fitted copy that has learned added rows and forgotten dropped rows.

        Parameters
        ----------
        change : RowChange
            The old and the new training rows.

        Returns
        -------
        BaseDetector or None
            The copy, made much faster than a fit; None if the detector cannot be updated.
        """
        return None

    def rows_of(self, n: int) -> int:
        """Return how many of n rows are learned from."""
        most = self.max_samples
        # A pool asks before it checks the detector.
        return min(n, int(most)) if isinstance(most, numbers.Integral) else n

    def is_closed(self, n: int, m: int) -> bool:
        """Return whether `_leave_one_out` exists for n rows of m columns."""
        return self.closed_form

    def sharing_order(self) -> tuple[int, int]:
        """Return the place among detectors on one Gram: first those who leave most to others."""
        return self.fit_rank, 0

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one.

        Parameters
        ----------
        shape : Shape
            Numbers of rows, columns and folds.

        Returns
        -------
        Cost
            Work and bytes by kind; by default the bytes of the rows.
        """
        return guessed_cost(shape)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the score minus the offset: negative for anomalies."""
        scores: FloatArray = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for anomalies."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used; a subclass adds its own."""
        require_number("false_alarm_rate", self.false_alarm_rate, 0.0, 1.0)
        if self.max_samples is not None:
            require_count("max_samples", self.max_samples, 2, "Use None for all rows.")

    @abstractmethod
    def _fit(self, gram: Gram) -> None:
        """Learn from the rows behind `gram`."""

    @abstractmethod
    def _score(self, query: Query) -> FloatArray:
        """Score the rows of `query`."""

    def _leave_one_out(self, gram: Gram) -> FloatArray:
        """Score each row of the `gram` fitted on as if it had been left out."""
        raise NotImplementedError


class KernelDetector(BaseDetector):
    """A detector on the kernel ``k(a, b) = exp(-|a - b|^2 / (width M))``.

    M is the mean squared distance between two training rows. `method_` is "exact" if the kernel of
    the training rows is exact; "landmarks" if it is approximated with landmarks, which are in
    `reference_`; "blocks" if it is exact within blocks of near rows, and else approximated.
    """

    #: By way of how many landmarks more than `max_samples` rows are learned from.
    landmarks: int | None = None
    #: What is made of an exact kernel, "factor" or "spectrum", and whether that needs a copy of it.
    kernel_work: ClassVar[str] = "factor"
    copies_kernel: ClassVar[bool] = True
    method_: str = "exact"

    width: float

    @property
    def in_blocks(self) -> bool:
        """Whether many rows are learned from exactly within blocks, by landmarks between them."""
        return False

    def fit_gram(self, gram: Gram) -> "KernelDetector":
        """Learn from rows whose distances are shared; sets no offset."""
        self._check_parameters()
        source = self._source(gram)
        self.method_ = "landmarks" if isinstance(source, Landmarks) else "exact"
        self.reference_ = source.reference
        self._fit(gram)
        return self

    def score_query(self, query: Query) -> FloatArray:
        """Score rows whose distances to the training rows are shared."""
        if self.method_ != "exact":
            query = query.against(self.reference_)
        return self._score(query)

    def rows_of(self, n: int) -> int:
        """Return how many of n rows are learned from: with landmarks all."""
        return super().rows_of(n) if self.landmarks is None else n

    def cost(self, shape: Shape) -> Cost:
        """Return the cost of learning from rows, and of scoring one."""
        n = shape.rows
        if self.landmarks is None or not self.needs_landmarks(n):
            return self._exact_cost(shape)
        size = min(n, self.landmarks)
        return landmarks_cost(shape, size, self.width, self._n_outputs(n, size))

    def _exact_cost(self, shape: Shape) -> Cost:
        n = shape.rows
        square, outputs = NUMBER * n * n, self._n_outputs(n, n)
        kernel = Cost(fit_bytes={"kernel": shape.held * square})
        return distances_cost(shape) + Cost(
            fit_work={self.kernel_work: shape.fits(3) * n**3},
            score_work={"kernel": n * (1 + outputs)},
            scratch_bytes={self.kernel_work: square} if self.copies_kernel else {},
            model_bytes={"kernel": NUMBER * n * outputs},
            shared={("kernel", shape.view, n, self.width): kernel},
            methods=frozenset({"exact"}),
        )

    def _n_outputs(self, n: int, size: int) -> float:
        """Return how many numbers are made of the `size` kernel values of a row, from n rows."""
        return 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("width", self.width, 0.0, math.inf)
        if self.landmarks is not None:
            require_count("landmarks", self.landmarks, 1, "Use 1000, or None for none.")

    def needs_landmarks(self, n: int) -> bool:
        """Return whether a fit to n rows, and all its folds, go by way of landmarks."""
        return self.landmarks is not None and n > super().rows_of(n)

    def _source(self, gram: Gram) -> Gram | Landmarks:
        """Return the rows of the Gram or, in a fit to too many, all by way of landmarks."""
        if self.landmarks is None or not self.needs_landmarks(gram.n_fit):
            return gram
        return gram.made(Landmarks, self.landmarks)


def core_rows(n: int, max_samples: int | None) -> IntArray:
    """Return at most `max_samples` row numbers, evenly spaced."""
    if max_samples is None or n <= max_samples:
        return np.arange(n)
    return np.linspace(0, n - 1, max_samples).round().astype(np.intp)


def interleaved_folds(n: int, n_folds: int = N_FOLDS) -> Folds:
    """Return (train, test) row numbers; row i is tested in fold i modulo `n_folds`."""
    fold = np.arange(n) % min(n_folds, n)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in np.unique(fold)]


def out_of_fold_scores(
    detector: BaseDetector, gram: Gram, folds: Folds, *, by_fold: bool = False
) -> FloatArray:
    """Score every row of `gram` with a detector that has not seen it.

    In closed form if the fitted `detector` can, unless `by_fold`; otherwise by
    clones fitted on the other folds, on slices of the same Gram.
    """
    if detector.is_closed(*gram.X.shape) and not by_fold:
        return detector._leave_one_out(gram)
    tested = np.concatenate([test for _, test in folds])
    if not np.array_equal(np.sort(tested), np.arange(gram.n_rows)):
        raise InvalidInputError(
            f"folds must test each of the {gram.n_rows} rows once. "
            f"Got {len(tested)} tests of {len(np.unique(tested))} rows."
        )
    scores = np.empty(gram.n_rows)
    for train, test in folds:
        part, query = gram.fold(train, test)
        scores[test] = detector.fit_fold(part, gram).score_query(query)
    return scores


def seed_of(random_state: Any) -> int:
    """Return a whole number as it is, or one that is drawn."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def lower_quantile(scores: FloatArray, rate: float) -> float:
    """Return the largest offset that puts at most a share `rate` of fresh scores below it.

    Conformal: with n out-of-fold scores it is the k-th smallest, k = floor(rate (n + 1)).
    If k is 0, n is too small for the rate and the smallest score is all there is.
    """
    # 0.1 * 30 is a little less or more than 3; neither must change k.
    k = math.floor(rate * (len(scores) + 1) + 1e-9)
    k = min(max(k, 1), len(scores))
    return float(np.partition(scores, k - 1)[k - 1])


def require_number(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not a number strictly between two others."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not low < value < high:
        raise InvalidInputError(
            f"{name} must be a number in ({low:g}, {high:g}). Got {name}={value!r}."
        )


def require_count(name: str, value: Any, least: int, advice: str) -> None:
    """Refuse what is not a whole number of at least `least`."""
    is_count = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_count or value < least:
        raise InvalidInputError(
            f"{name} must be a whole number of at least {least}. Got {name}={value!r}. {advice}"
        )
