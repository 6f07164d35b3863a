"""Whether a run turned out to be what it was meant to be."""

import numpy as np

from ocfuse.robots.kinds import DROP, GRASP, OBSTACLE, OCCLUSION, type_of
from ocfuse.robots.run import Recording
from ocfuse.robots.task import HALF_BOX

#: Of the box from its target, at the end: nearer is there, farther is not.
THERE, NOT_THERE = 0.02, 0.06
#: The box is lifted if it rises so far, carried if it rises so far.
LIFTED, CARRIED = 0.05, 0.15


def is_as_meant(recording: Recording) -> bool:
    """Tell whether what was meant to happen did.

    Without a fault, and behind an occlusion, the box is brought to its target. A grasp that
    should fail lifts nothing. A box that should be dropped is carried and ends elsewhere. An
    obstacle is touched by the arm or the box.

    Parameters
    ----------
    recording : Recording
        The run.

    Returns
    -------
    bool
        If False, the run should be drawn again.
    """
    kind = type_of(recording.settings.kind)
    rise = float(np.max(recording.fact("box_z"))) - HALF_BOX
    place = recording.settings.place
    end = [recording.fact(f"box_{axis}")[-1] for axis in "xyz"]
    error = float(np.linalg.norm(np.array(end) - [place.x, place.y, place.z]))
    if kind == GRASP:
        return rise < LIFTED
    if kind == DROP:
        return rise > CARRIED and error > NOT_THERE
    if kind == OBSTACLE:
        return bool(recording.fact("touched").any())
    is_seen = kind != OCCLUSION or bool(recording.is_anomalous().any())
    return rise > CARRIED and error < THERE and is_seen
