"""One figure per run: its score, and how soon its anomalies were found."""

from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.exceptions import InvalidInputError
from ocfuse.streaming.times import to_seconds

FloatArray: TypeAlias = NDArray[np.float64]


def run_score(scores: ArrayLike, quantile: float = 0.0) -> float:
    """Return one score for a run, higher = more normal.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of its samples; NaN where there is none.
    quantile : float, default=0.0
        0 is the lowest score: one bad moment spoils the run. A small share such as 0.02
        forgives so many samples.

    Returns
    -------
    float
        The score of the run; NaN if no sample has one.

    Examples
    --------
    >>> from ocfuse.streaming import run_score
    >>> run_score([0.3, -2.0, float("nan"), 0.1])
    -2.0
    """
    if not 0 <= quantile < 1:
        raise InvalidInputError(f"quantile must be in [0, 1). Got {quantile!r}.")
    values = one_run(scores)
    values = values[~np.isnan(values)]
    return float(np.quantile(values, quantile, method="lower")) if len(values) else np.nan


def one_run(scores: ArrayLike) -> FloatArray:
    """Return the scores of one run, in which NaN stands for none, or refuse them."""
    with suppress(TypeError, ValueError):
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim == 1:
            return values
    raise InvalidInputError(
        "scores must be numbers of shape (n_samples,), those of one run. "
        f"Got {type(scores).__name__} of shape {np.shape(np.asarray(scores, dtype=object))}."
    )


def time_to_detection(y: ArrayLike, alarms: ArrayLike, time: Any = None) -> FloatArray:
    """Return how long each anomaly of a run lasted until an alarm was raised in it.

    An alarm that was on before the anomaly began counts as found at once: `alarms`
    must come from a detector with few false alarms for this to mean anything.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of the samples, +1 normal, -1 anomalous.
    alarms : array-like of shape (n,)
        True, or -1 as `predict` says, where an alarm is on.
    time : array-like of shape (n,), optional
        Numbers or dates; None counts samples.

    Returns
    -------
    ndarray, one per anomaly
        Samples, units of `time`, or seconds for dates; NaN for an anomaly without an alarm.

    Examples
    --------
    >>> from ocfuse.streaming import time_to_detection
    >>> time_to_detection([1, -1, -1, -1, 1, -1], [False, False, False, True, False, False])
    array([ 2., nan])
    """
    anomalous = np.asarray(y) < 0
    on = np.asarray(alarms)
    on = on if on.dtype == bool else on < 0
    times = np.arange(len(on), dtype=np.float64) if time is None else to_seconds(time)
    if not len(anomalous) == len(on) == len(times):
        raise InvalidInputError(
            "y, alarms and time must have one entry per sample. "
            f"Got {len(anomalous)}, {len(on)} and {len(times)}."
        )
    edges = np.flatnonzero(np.diff(np.r_[False, anomalous, False]))
    delays = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        found = np.flatnonzero(on[start:stop])
        delays.append(times[start + found[0]] - times[start] if len(found) else np.nan)
    return np.array(delays, dtype=np.float64)
