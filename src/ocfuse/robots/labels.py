"""When an anomaly begins and ends, told from what is true of each frame.

1. Occlusion: as long as something hides at least `SHOWN` of the picture.
2. Grasp failure: from when the hand is sent `OFF` or more from where it would go without
   the error, to the end: the box stays behind.
3. Drop: from when the fingers open, or the box slides, by `SLIP` or more while it should
   be held, to the end: the box is not brought to its target.
4. Obstacle: from when at least `SHOWN` of the picture shows it, to the end: it stays.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ocfuse.robots.kinds import DROP, GRASP, OBSTACLE, OCCLUSION

#: Of the picture: 16 of 128 x 128 pixels.
SHOWN = 0.001
OFF = 0.02
SLIP = 0.002


def anomalous_frames(kind: int, truth: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Tell which frames of a run are anomalous.

    Parameters
    ----------
    kind : int
        Type of the anomaly, 0 for a normal run.
    truth : mapping of str to ndarray
        What is true of each frame, by the names of `ocfuse.robots.run.TRUTH`.

    Returns
    -------
    ndarray of bool
        True where a frame is anomalous.
    """
    if kind == OCCLUSION:
        return truth["seen"] >= SHOWN
    if kind == GRASP:
        return _from_first(truth["deviation"] >= OFF)
    if kind == DROP:
        return _from_first(truth["slip"] >= SLIP)
    if kind == OBSTACLE:
        return _from_first(truth["seen"] >= SHOWN)
    return np.zeros(len(truth["seen"]), dtype=bool)


def intervals(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last index of every run of True.

    Examples
    --------
    >>> import numpy as np
    >>> intervals(np.array([False, True, True, False, True]))
    [(1, 2), (4, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def _from_first(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.logical_or.accumulate(flags)
