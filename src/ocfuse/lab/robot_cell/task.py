"""The task: phases, the path of the hand, progress, and labels of frames.

Only numbers live here. Lengths are metres, times seconds, angles radians; the top of the
table is z = 0 and the robot stands at the origin, looking along x.

An anomaly begins and ends by what is true of each frame:

1. Occlusion: as long as something hides at least `SHOWN` of the picture.
2. Grasp failure: from when the hand is sent 2 cm or more from where it would go without
   the error, to the end: the box stays behind.
3. Drop: from when the fingers open, or the box slides, by 2 mm or more while it should
   be held, to the end: the box is not brought to its target.
4. Obstacle: from when at least `SHOWN` of the picture shows it, to the end: it stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocfuse.vision.trials import DROP, GRASP, OBSTACLE, OCCLUSION

#: Phases in their order, and what each takes at the nominal speed.
PHASES = {
    "wait": 0.25,
    "approach": 1.1,
    "descend": 0.9,
    "grasp": 0.45,
    "lift": 0.7,
    "transport": 1.6,
    "lower": 0.8,
    "release": 0.4,
    "retreat": 0.6,
    "home": 1.0,
}
#: A run, with some time to rest for the slowest.
SECONDS = 9.0

#: Where the hand waits, and where it is above the box and above the target in the mean.
HOME = (0.36, 0.0, 0.42)
OVER_PICK = (0.52, -0.21, 0.23)
OVER_PLACE = (0.52, 0.21, 0.23)
#: Half the edge of the box; its centre is where the fingers take it.
HALF_BOX = 0.028

#: Share of the picture in which something can be seen: 16 of 128 x 128 pixels.
SHOWN = 0.001


@dataclass(frozen=True)
class Pose:
    """Where the fingertips of the hand meet, and its turn about the vertical; it points down."""

    x: float
    y: float
    z: float
    yaw: float = 0.0

    def shifted(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> "Pose":
        """Return the pose moved, its axes those of the world."""
        return Pose(self.x + x, self.y + y, self.z + z, self.yaw)

    def array(self) -> NDArray[np.float64]:
        """Return x, y, z and yaw."""
        return np.array([self.x, self.y, self.z, self.yaw])


@dataclass(frozen=True)
class TaskMoment:
    """The phase of the controller at a moment.

    `fraction` is the share of the phase that has passed, `progress` the share of the task that
    is done: phases count as long as they nominally take.
    """

    phase: str
    fraction: float
    progress: float


class Task:
    """Where the hand should be, and whether the fingers should be closed, at any time.

    `pick` is where the controller believes the box to be, `place` where it shall go, and
    `durations` are those of `PHASES` in this run.
    """

    def __init__(self, pick: Pose, place: Pose, durations: NDArray[np.float64]) -> None:
        self.pick = pick
        self.place = place
        self.ends = np.cumsum(durations)
        over_pick, over_place = Pose(*OVER_PICK), Pose(*OVER_PLACE)
        stations = {
            "wait": Pose(*HOME),
            "approach": over_pick,
            "descend": pick,
            "grasp": pick,
            # straight up, so that the box is not dragged
            "lift": Pose(pick.x, pick.y, over_pick.z, pick.yaw),
            "transport": over_place,
            "lower": place,
            "release": place,
            "retreat": Pose(place.x, place.y, over_place.z, place.yaw),
            "home": Pose(*HOME),
        }
        self._ends: NDArray[np.float64] = np.array([stations[name].array() for name in PHASES])

    def moment(self, time: float) -> TaskMoment:
        """Return the phase and the progress at a time."""
        i = int(np.searchsorted(self.ends, time, side="right"))
        if i == len(PHASES):
            return TaskMoment("rest", 1.0, 1.0)
        begin = self.ends[i - 1] if i else 0.0
        fraction = float((time - begin) / (self.ends[i] - begin))
        nominal = list(PHASES.values())
        progress = (sum(nominal[:i]) + fraction * nominal[i]) / sum(nominal)
        return TaskMoment(list(PHASES)[i], fraction, progress)

    def hand(self, moment: TaskMoment) -> NDArray[np.float64]:
        """Return x, y, z and yaw that the controller asks of the hand."""
        if moment.phase == "rest":
            return np.asarray(self._ends[-1])
        i = list(PHASES).index(moment.phase)
        begin = self._ends[max(i - 1, 0)]
        return np.asarray(begin + ramp(moment.fraction) * (self._ends[i] - begin))

    @staticmethod
    def is_gripping(moment: TaskMoment) -> bool:
        """Return whether the fingers should be closed."""
        return moment.phase in ("grasp", "lift", "transport", "lower")


def ramp(t: float) -> float:
    """Return the way done after a share of the time, with smooth ends (minimum jerk).

    Examples
    --------
    >>> ramp(0.0), ramp(0.5), ramp(1.0)
    (0.0, 0.5, 1.0)
    """
    t = min(max(t, 0.0), 1.0)
    return t * t * t * (10.0 + t * (6.0 * t - 15.0))


def anomalous_frames(kind: int, truth: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Return which frames of a run are anomalous, by its type and what is true of each frame.

    The names are those of `ocfuse.lab.robot_cell.run.TRUTH`.
    """
    if kind == OCCLUSION:
        return truth["seen"] >= SHOWN
    if kind == GRASP:
        return np.logical_or.accumulate(truth["deviation"] >= 0.02)
    if kind == DROP:
        return np.logical_or.accumulate(truth["slip"] >= 0.002)
    if kind == OBSTACLE:
        return np.logical_or.accumulate(truth["seen"] >= SHOWN)
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
