"""What a system may see: the camera, the joints, or both, as one table."""

from collections.abc import Callable

import numpy as np

from benchmarks.robots.recordings import FloatArray, Recordings, Runs
from ocfuse.lab.paper.repetitions import standardise

VIEWS = ("camera", "joints", "both")
#: Principal components of the 1280 pooled features, as `PooledMembers` takes at most.
N_COMPONENTS = 256

View = Callable[[Runs], FloatArray]


def make_view(data: Recordings, name: str) -> View:
    """Return what makes a table of runs, scaled on the training runs.

    The principal components of the pooled features are standardised, and so are the
    joints. In "both", the two count alike.
    """
    if name == "joints":
        return joint_view(data)
    if name == "camera":
        return camera_view(data)
    parts = [camera_view(data), joint_view(data)]
    weights = [1.0 / np.sqrt(part(data.train).var(axis=0).sum()) for part in parts]

    def both(runs: Runs) -> FloatArray:
        return np.hstack([w * part(runs) for w, part in zip(weights, parts, strict=True)])

    return both


def joint_view(data: Recordings) -> View:
    known = need_joints(data.train)
    return lambda runs: standardise(need_joints(runs), known)


def camera_view(data: Recordings) -> View:
    known = data.train.pooled.astype(np.float64)
    centre = known.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(known.T))
    components = vectors[:, ::-1][:, : min(N_COMPONENTS, len(known) // 3)]
    learned = (known - centre) @ components
    return lambda runs: standardise((runs.pooled - centre) @ components, learned)


def need_joints(runs: Runs) -> FloatArray:
    """Return the joints of runs that have them."""
    joints = runs.joints
    if joints is None:
        raise ValueError("These runs have no joints.")
    return joints
