"""How far the channels of a stream wander, against how much they vary on the spot."""

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import DriftWarning
from ocfuse.streaming.course import Course
from ocfuse.streaming.folds import blocks
from ocfuse.streaming.windows import check_samples, run_slices

FloatArray: TypeAlias = NDArray[np.float64]

#: Ratio from which on a channel is said to drift.
DRIFTING = 0.3
#: The same where several runs show how far it wanders: they differ too much to learn from.
FAR_APART = 3.0
#: Knots of the mean course of several runs.
N_KNOTS = 41


def drift_ratio(
    X: ArrayLike, runs: Any = None, n_blocks: int = 4, context: Any = None
) -> FloatArray:
    """Return, for each channel, the variance of block means over that within blocks.

    About 0 for a channel that stays where it is. From 0.3 on it wanders: what is normal
    for it now was not seen before, and a detector that knows its level raises false alarms.

    With two runs or more, samples are first measured from the mean course of the runs:
    phases that all runs have are no drift, levels that differ from run to run are.

    Parameters
    ----------
    X : array-like of shape (n, c)
        Samples in the order of time, NaN for gaps.
    runs : array-like of shape (n,), optional
        Run of each sample; None is one run.
    n_blocks : int, default=4
        Blocks that each run is cut into.
    context : array-like of shape (n,), optional
        Progress of the task, by which the runs are compared; None takes the number of the
        sample in its run. Not used for one run.

    Returns
    -------
    ndarray of shape (c,)
        Ratios; 0 for a constant channel, inf for one that is constant in every block only.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.streaming import drift_ratio
    >>> t = np.arange(400.0)
    >>> drift_ratio(np.column_stack([np.sin(t), np.sin(t) + t / 100])).round(2)
    array([0.  , 2.15])
    """
    samples = check_samples(X)
    slices = run_slices(runs, len(samples))
    between, within = _variances(_from_course(samples, slices, context), slices, n_blocks)
    if len(slices) > 1:  # every run is part of the course, and draws it towards itself
        between = between * len(slices) / (len(slices) - 1)
    rounding = 1e-24 * _mean_of(samples**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > rounding, between / within, 0.0)


def _from_course(samples: FloatArray, slices: list[slice], context: Any) -> FloatArray:
    """Return samples less the mean course of several runs."""
    if len(slices) < 2:
        return samples
    place = context
    if context is None:
        place = np.concatenate([np.arange(part.stop - part.start) for part in slices])
    return Course(N_KNOTS).fit(samples, place).residuals(samples, place)


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
