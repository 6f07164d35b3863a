"""Folds of a stream: blocks of time, with a purge between them."""

from typing import Any

import numpy as np

from ocfuse.detectors.base import require_count
from ocfuse.detectors.groups import Groups
from ocfuse.streaming.windows import run_slices


def blocks(runs: Any, n_blocks: int = 4, purge: int = 29) -> Groups:
    """Cut every run into blocks of time, to be given to `fit` as `groups`.

    Samples next to each other are alike, and windows over them overlap: scored by
    a detector that has learned its neighbours, every sample looks normal. Here whole
    blocks are held out, and the samples up to `purge` places before and after them
    are not learned meanwhile. With several runs recorded apart, the runs themselves
    are the better groups: they vary as new runs will.

    Parameters
    ----------
    runs : int or array-like of shape (n,)
        Number of samples of one run, or the run of each sample, in the order of time.
    n_blocks : int, default=4
        Blocks per run, of about equal length.
    purge : int, default=29
        Samples left out on either side: one less than the longest window.

    Returns
    -------
    Groups
        For `FusedDetector.fit(X, groups=...)`.

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
