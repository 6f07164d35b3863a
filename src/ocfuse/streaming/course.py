"""Course: samples measured from what is usual where the task is."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ocfuse.detectors.base import require_count
from ocfuse.exceptions import InvalidInputError
from ocfuse.fusion.inputs import check_context
from ocfuse.fusion.ranges import warn_if_far
from ocfuse.streaming.windows import check_samples

FloatArray: TypeAlias = NDArray[np.float64]

#: Least spread at a place, in spreads of the whole: sensors rest in some phases.
LEAST_SPREAD = 0.05
#: Means of what is left, added up: the first alone is too flat where a course is steep or rare.
N_PASSES = 4


class Course(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Measure samples from what is usual at their context, such as the progress of a task.

    Mean and spread of every channel are learned at evenly spaced knots of the context and
    drawn straight between them. A reading that is usual in one phase of a task and comes
    in another then stands out. A spread is not taken to be less than a twentieth of that
    over the whole task.

    Parameters
    ----------
    n_knots : int, default=41
        Knots over the context seen in `fit`; beyond it the outermost count, with a warning if
        context is farther away than that range is wide.

    Attributes
    ----------
    mean_, spread_ : ndarray of shape (n_knots, n_channels)
        What is usual at each knot; that of the whole task where no sample was seen.
    low_, high_ : float
        Range of the context.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.streaming import Course
    >>> progress = np.tile(np.linspace(0, 1, 101), 20)
    >>> rng = np.random.default_rng(0)
    >>> force = np.where(progress < 0.5, 1.0, 3.0) + rng.normal(scale=0.1, size=2020)
    >>> course = Course().fit(force[:, np.newaxis], progress)
    >>> course.transform([[3.0], [3.0]], [0.2, 0.8]).round().ravel().tolist()
    [17.0, 0.0]
    """

    def __init__(self, n_knots: int = 41) -> None:
        self.n_knots = n_knots

    def fit(self, X: Any, context: Any) -> "Course":
        """Learn what is usual.

        Parameters
        ----------
        X : array-like of shape (n, c)
            Samples of normal runs, NaN for gaps.
        context : array-like of shape (n,)
            Where in the task each sample is.

        Returns
        -------
        Course
            The fitted course.
        """
        samples = check_samples(X)
        require_count("n_knots", self.n_knots, 1, "41 takes fortieths of the task.")
        place = _one_column(context, len(samples))
        if not len(samples):
            raise InvalidInputError("There must be samples to learn a course from. Got none.")
        self.low_, self.high_ = float(place.min()), float(place.max())
        near = hats(self._share(place), self.n_knots)
        present = ~np.isnan(samples)
        n = np.maximum(present.sum(axis=0), 1)
        whole = np.nansum(samples, axis=0) / n
        variance = np.nansum((samples - whole) ** 2, axis=0) / n
        weight = near.T @ present + 1.0  # the whole counts as one sample at every knot
        self.mean_ = np.tile(whole, (self.n_knots, 1))
        for _ in range(N_PASSES):
            self.mean_ += near.T @ np.nan_to_num(samples - self._at(self.mean_, place)) / weight
        squares = np.nan_to_num(samples - self._at(self.mean_, place)) ** 2
        # one sample's worth of the usual spread around the course, and of all where it is unknown
        usual = squares.sum(axis=0) / n + variance / weight
        floor = LEAST_SPREAD**2 * variance
        self.spread_ = np.sqrt((near.T @ squares + usual) / weight + floor)
        self.spread_[:, ~(variance > 0)] = 1.0
        return self

    def transform(self, X: Any, context: Any) -> FloatArray:
        """Return samples less what is usual at their context, in spreads that are usual there.

        Parameters
        ----------
        X : array-like of shape (n, c)
            Samples, NaN for gaps, which stay.
        context : array-like of shape (n,)
            Where in the task each sample is.

        Returns
        -------
        ndarray of shape (n, c)
            About 0, with a spread of about 1, for normal samples.
        """
        check_is_fitted(self, "mean_")
        samples = check_samples(X)
        if samples.shape[1] != self.mean_.shape[1]:
            raise InvalidInputError(
                f"Samples must have {self.mean_.shape[1]} channels, as in fit. "
                f"Got {samples.shape[1]}."
            )
        place = _one_column(context, len(samples))
        warn_if_far(place, self.low_, self.high_)
        return self.measured(samples, place)

    def measured(self, samples: FloatArray, place: FloatArray) -> FloatArray:
        """Return what `transform` does, of samples and places that have been checked."""
        return (samples - self._at(self.mean_, place)) / self._at(self.spread_, place)

    def residuals(self, X: FloatArray, context: Any) -> FloatArray:
        """Return samples less what is usual at their context, in their own units."""
        return np.asarray(X - self._at(self.mean_, _one_column(context, len(X))))

    def _at(self, table: FloatArray, place: FloatArray) -> FloatArray:
        """Return values between knots; no products of matrices: rows alone and in batches agree."""
        knot = self._share(place) * (len(table) - 1)
        before = np.minimum(knot.astype(np.intp), max(len(table) - 2, 0))
        after = np.minimum(before + 1, len(table) - 1)
        share = (knot - before)[:, np.newaxis]
        return np.asarray((1.0 - share) * table[before] + share * table[after])

    def _share(self, place: FloatArray) -> FloatArray:
        """Return places as shares of the range, within it."""
        width = self.high_ - self.low_
        return np.clip((place - self.low_) / (width if width > 0 else 1.0), 0.0, 1.0)


def hats(context: Any, knots: int) -> FloatArray:
    """Return how much each of evenly spaced knots counts at each context, shape (n, knots)."""
    place = np.clip(np.asarray(context, dtype=np.float64), 0.0, 1.0) * (knots - 1)
    return np.maximum(0.0, 1.0 - np.abs(place[:, np.newaxis] - np.arange(knots)))


def _one_column(context: Any, n: int) -> FloatArray:
    table = check_context(context, n)
    if table.shape[1] != 1:
        raise InvalidInputError(
            "A course follows a context of one column, such as the progress of the task. "
            f"Got {table.shape[1]} columns."
        )
    return table[:, 0]
