"""Features of the latest samples: level, slope and spread; blocks of time as folds."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocfuse.arrays import FloatArray
from ocfuse.detectors.base import require_count
from ocfuse.encoder import read_columns
from ocfuse.exceptions import InvalidInputError
from ocfuse.frame_columns import read_frame
from ocfuse.groups import Groups

#: What is taken of every window, in the order of the columns.
KINDS = ("level", "slope", "spread")
#: Farthest from 0 that a value may be.
LARGEST = 1e100


class Windows:
    """Level, slope and spread of each channel over the last h samples, for several h.

    The features of a sample depend only on it and on earlier samples of its run. The level is the
    mean of the window, the slope that of its regression line per sample, and the spread its
    standard deviation. Gaps (NaN) are left out. The features are NaN if less than half of a window
    is present, or if the run is shorter than the window.

    Parameters
    ----------
    lengths : sequence of int, default=(10, 30)
        Lengths h of the windows in samples, each at least 3.

    Attributes
    ----------
    longest : int
        The largest h.

    Examples
    --------
    >>> import numpy as np
    >>> from ocfuse.streaming import Windows
    >>> windows = Windows((4,))
    >>> windows.names(["force"])
    ['force level 4', 'force slope 4', 'force spread 4']
    >>> windows.transform(np.array([[0.0], [2.0], [4.0], [6.0], [8.0]]))[3:].round(2)
    array([[3.  , 2.  , 2.24],
           [5.  , 2.  , 2.24]])
    """

    def __init__(self, lengths: Sequence[int] = (10, 30)) -> None:
        given = tuple(lengths) if isinstance(lengths, Sequence | np.ndarray) else (lengths,)
        whole = all(isinstance(h, int | np.integer) and not isinstance(h, bool) for h in given)
        if not given or not whole or min(given) < 3 or len(set(given)) < len(given):
            raise InvalidInputError(
                "The lengths of windows must be different whole numbers of samples, at least 3, "
                f"such as (10, 30). Got {lengths!r}."
            )
        self.lengths = tuple(int(h) for h in given)
        self.longest = max(self.lengths)

    def names(self, channels: Sequence[str]) -> list[str]:
        """Return the names of the features."""
        return [f"{c} {kind} {h}" for h in self.lengths for kind in KINDS for c in channels]

    def transform(self, X: ArrayLike, runs: Any = None) -> FloatArray:
        """Return the features of every sample.

        Parameters
        ----------
        X : array-like of shape (n, c)
            Samples in the order of time; NaN for missing values.
        runs : array-like of shape (n,), optional
            Run of each sample; the samples of a run must follow each other. A new run starts with
            empty windows. None is one run.

        Returns
        -------
        ndarray of shape (n, 3 c len(lengths))
            Features, with the columns of `names`.
        """
        samples = check_samples(X)
        features = np.empty((len(samples), len(KINDS) * len(self.lengths) * samples.shape[1]))
        for part in run_slices(runs, len(samples)):
            padding = np.full((self.longest - 1, samples.shape[1]), np.nan)
            features[part] = self.slide(np.vstack([padding, samples[part]]))
            for h, columns in self._columns(samples.shape[1]):
                features[part][: h - 1, columns] = np.nan
        return features

    def slide(self, samples: FloatArray, max_values: int = 2_000_000) -> FloatArray:
        """Return the features of all samples but the first ``longest - 1``, of one run.

        At most about `max_values` values of windows are unfolded in memory at once.
        """
        n, c = len(samples) - self.longest + 1, samples.shape[1]
        features = np.empty((n, len(KINDS) * len(self.lengths) * c))
        step = max(1, max_values // (self.longest * c))
        samples = np.ascontiguousarray(samples)
        has_gaps = bool(np.isnan(samples).any())
        for start in range(0, n, step):
            stop = min(start + step, n)
            for h, columns in self._columns(c):
                rows = samples[start + self.longest - h : stop + self.longest - 1]
                _write_features(rows, h, has_gaps, features[start:stop, columns])
        return features

    def _columns(self, c: int) -> list[tuple[int, slice]]:
        width = len(KINDS) * c
        return [(h, slice(i * width, (i + 1) * width)) for i, h in enumerate(self.lengths)]


def check_samples(X: Any) -> FloatArray:
    """Return samples of a stream as numbers, in which NaN stands for a gap."""
    try:
        samples = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        frame = read_frame(X)  # a query is run, and gaps of pandas' own kind become NaN
        columns: list[NDArray[Any]] = []
        if hasattr(frame, "columns"):
            columns = read_columns(frame, np.zeros(len(frame.columns), dtype=bool))
        if not columns or any(column.dtype.kind == "O" for column in columns):
            raise InvalidInputError(f"Samples must be numbers, NaN for gaps. {error}.") from None
        samples = np.column_stack(columns)
    if samples.ndim != 2 or not samples.shape[1]:
        raise InvalidInputError(
            f"Samples must have shape (n_samples, n_channels). Got shape {samples.shape}. "
            "Use X.reshape(-1, 1) for one channel."
        )
    # an overflow of a sensor is no value either, nor is what would overflow in a square
    return np.where(np.abs(samples) <= LARGEST, samples, np.nan)


def run_slices(runs: Any, n: int) -> list[slice]:
    """Return where each run begins and ends; samples of a run must follow each other."""
    if runs is None:
        return [slice(0, n)] if n else []
    labels = np.asarray(runs)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"runs must name the run of every sample, shape ({n},). Got shape {labels.shape}."
        )
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]]) if n else np.empty(0, int)
    if len(starts) > len(set(labels[starts].tolist())):
        raise InvalidInputError(
            "The samples of one run must follow each other. Sort them by run, then by time."
        )
    return [slice(int(a), int(b)) for a, b in zip(starts, [*starts[1:], n], strict=True)]


def _write_features(samples: FloatArray, h: int, has_gaps: bool, out: FloatArray) -> None:
    """Write level, slope and spread of every window of h samples, gaps left out.

    Without gaps, it is the same to the bit as with them, in half of the time.
    """
    (n, c), (step, width) = samples.shape, samples.strides
    # window by window along the second axis, as `sliding_window_view` has them, which is slow
    x = np.ndarray((h, n - h + 1, c), np.float64, samples, strides=(step, step, width))
    if not has_gaps:
        t, steps = _centred(h)
        level = _total(x) / h
        x = x - level
        out[:, :c] = level
        out[:, c : 2 * c] = _total(t * x) / steps
        out[:, 2 * c :] = np.sqrt(_total(x * x) / h)
        return
    present = ~np.isnan(x)
    x, w = np.where(present, x, 0.0), present.astype(np.float64)
    count = _total(w)
    enough = count >= 0.5 * h
    count = np.maximum(count, 1.0)
    t = np.arange(h, dtype=np.float64)[:, np.newaxis, np.newaxis]
    t = w * (t - _total(w * t) / count)
    steps = _total(t * t)
    level = _total(x) / count
    x = w * (x - level)
    slope = _total(t * x) / np.where(steps > 0, steps, 1.0)
    spread = np.sqrt(_total(x * x) / count)
    out[:] = np.hstack([np.where(enough, part, np.nan) for part in (level, slope, spread)])


@cache
def _centred(h: int) -> tuple[FloatArray, FloatArray]:
    """Return the times of a window of h samples from its middle, and the sum of their squares."""
    t = np.arange(h, dtype=np.float64)[:, np.newaxis, np.newaxis] - (h - 1) / 2
    return t, _total(t * t)


def _total(values: FloatArray) -> FloatArray:
    """Add along the first axis one after another: `sum` adds in an order that depends on n."""
    total: FloatArray = np.add.accumulate(values, axis=0)[-1]
    return total


def blocks(runs: Any, n_blocks: int = 4, purge: int = 29) -> Groups:
    """Cut each run into blocks of time, for `groups` of `FusedDetector.fit`.

    Neighbouring samples are alike, and their windows overlap. A sample always looks normal to a
    detector that has learned its neighbours. So whole blocks are held out, and the `purge` samples
    before and after a held-out block are not learned either. If there are several runs, the runs
    themselves are better groups: they vary as new runs will.

    Parameters
    ----------
    runs : int or array-like of shape (n,)
        Number of samples of one run, or the run of each sample, in the order of time.
    n_blocks : int, default=4
        Number of blocks per run, of about equal length.
    purge : int, default=29
        Samples left out on either side of a held-out block: the longest window minus one.

    Returns
    -------
    Groups
        Groups for `FusedDetector.fit(X, groups=...)`.

    Examples
    --------
    >>> from ocfuse.streaming import blocks
    >>> groups = blocks(8, n_blocks=2, purge=1)
    >>> groups.label
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> groups.withheld(groups.label)[:, 0]  # while the first block is held out
    array([ True,  True,  True,  True,  True, False, False, False])
    """
    require_count("n_blocks", n_blocks, 2, "4 is usual.")
    require_count("purge", purge, 0, "One less than the longest window is usual.")
    is_count = isinstance(runs, int | np.integer)
    n = int(runs) if is_count else len(runs)
    label, place = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i, part in enumerate(run_slices(None if is_count else runs, n)):
        length = part.stop - part.start
        label[part] = i * n_blocks + np.arange(length) * n_blocks // length
        # rows of different runs are farther apart than the purge
        place[part] = np.arange(part.start, part.stop) + i * (int(purge) + 1)
    return Groups(label, place, int(purge), are_folds=True)
