"""Course: samples relative to usual values at their progress; drift of channels."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import require_count
from ocfuse.exceptions import DriftWarning, InvalidInputError
from ocfuse.fusion.local_scale import warn_if_far
from ocfuse.streaming.windows import blocks, check_samples, run_slices
from ocfuse.validation import check_context

#: Ratio from which on a channel is said to drift.
DRIFTING = 0.3


class Course(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Compare samples with usual values at the same context, such as the progress of a task.

    Each value is replaced by its distance from the mean, in units of the spread, both at its
    context. Mean and spread of each channel are learned at evenly spaced knots of the context and
    interpolated linearly. Then a value that is usual in one phase of a task is unusual in another.
    A spread is at least a twentieth of the spread over the whole task.

    Parameters
    ----------
    n_knots : int, default=41
        Number of knots over the range of the context in `fit`. Beyond this range the outermost
        knots are used, with a warning if the context is farther away than the range is wide.

    Attributes
    ----------
    mean_, spread_ : ndarray of shape (n_knots, n_channels)
        Mean and spread at each knot; those of the whole task where there were no samples.
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
        """Learn the usual values of each channel.

        Parameters
        ----------
        X : array-like of shape (n, c)
            Samples of normal runs, NaN for gaps.
        context : array-like of shape (n,)
            Context of each sample, such as the progress of the task.

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
        # means of what is left, added up: the first alone is too flat where a course is steep
        for _ in range(4):
            self.mean_ += near.T @ np.nan_to_num(samples - self._at(self.mean_, place)) / weight
        squares = np.nan_to_num(samples - self._at(self.mean_, place)) ** 2
        # one sample's worth of the usual spread around the course, and of all where it is unknown
        usual = squares.sum(axis=0) / n + variance / weight
        floor = 0.05**2 * variance  # sensors rest in some phases
        self.spread_ = np.sqrt((near.T @ squares + usual) / weight + floor)
        self.spread_[:, ~(variance > 0)] = 1.0
        return self

    def transform(self, X: Any, context: Any) -> FloatArray:
        """Return the distance of samples from the mean at their context, in units of the spread.

        Parameters
        ----------
        X : array-like of shape (n, c)
            Samples; NaN for gaps, which remain.
        context : array-like of shape (n,)
            Context of each sample, such as the progress of the task.

        Returns
        -------
        ndarray of shape (n, c)
            Distances; for normal samples about 0 with a spread of about 1.
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
        """Return the result of `transform` for samples and contexts that have been checked."""
        return (samples - self._at(self.mean_, place)) / self._at(self.spread_, place)

    def usual(self, place: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and spread of every channel at n places, each of shape (n, n_channels)."""
        return self._at(self.mean_, place), self._at(self.spread_, place)

    def residuals(self, X: FloatArray, context: Any) -> FloatArray:
        """Return the distance of samples from the mean at their context, in their own units."""
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


def drift_ratio(
    X: ArrayLike, runs: Any = None, n_blocks: int = 4, context: Any = None
) -> FloatArray:
    """Return the drift of each channel: variance of block means over variance within blocks.

    The ratio is about 0 for a channel with a constant level. From 0.3 on the channel drifts: it
    takes values that it did not have before, and detectors of its level raise false alarms.

    With two runs or more, the mean course of the runs is subtracted first. So phases that all runs
    have do not count as drift, but levels that differ between runs do.

    Parameters
    ----------
    X : array-like of shape (n, c)
        Samples in the order of time, NaN for gaps.
    runs : array-like of shape (n,), optional
        Run of each sample; None is one run.
    n_blocks : int, default=4
        Number of blocks per run.
    context : array-like of shape (n,), optional
        Progress of the task at which runs are compared; None takes the number of the sample in its
        run. Not used for one run.

    Returns
    -------
    ndarray of shape (c,)
        Ratios: 0 for a constant channel, inf for one that is constant only within each block.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.streaming import drift_ratio
    >>> t = np.arange(400.0)
    >>> drift_ratio(np.column_stack([np.sin(t), np.sin(t) + t / 100])).round(2)
    array([0.  , 2.15])
    """
    samples = check_samples(X)
    slices, measured = run_slices(runs, len(samples)), samples
    if len(slices) > 1:
        place = context
        if context is None:
            place = np.concatenate([np.arange(part.stop - part.start) for part in slices])
        measured = Course().fit(samples, place).residuals(samples, place)
    between, within = _variances(measured, slices, n_blocks)
    if len(slices) > 1:  # every run is part of the course, and draws it towards itself
        between = between * len(slices) / (len(slices) - 1)
    rounding = 1e-24 * _mean_of(samples**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > rounding, between / within, 0.0)


def _variances(
    samples: FloatArray, slices: list[slice], n_blocks: int
) -> tuple[FloatArray, FloatArray]:
    """Return the variances of block means and within blocks; those without values do not count."""
    parts = []
    for run in slices:
        label = blocks(run.stop - run.start, n_blocks, purge=0).label
        parts += [samples[run][label == block] for block in np.unique(label)]
    means = np.array([_mean_of(part) for part in parts])
    variances = np.array([_mean_of((part - _mean_of(part)) ** 2) for part in parts])
    return _mean_of((means - _mean_of(means)) ** 2), _mean_of(variances)


def warn_of_drift(ratio: FloatArray, channels: Sequence[str], limit: float, advice: str) -> None:
    """Name the channels that drift, if any."""
    which = [f"{channels[j]} ({ratio[j]:.2g})" for j in np.flatnonzero(ratio > limit).tolist()]
    if which:
        warnings.warn(
            f"These channels drift in training (drift ratio above {limit:g}): "
            f"{', '.join(which)}. {advice}",
            DriftWarning,
            stacklevel=3,
        )


def _mean_of(table: FloatArray) -> FloatArray:
    """Return the mean of the values present in each column; NaN where there is none."""
    count = (~np.isnan(table)).sum(axis=0)
    return np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)
