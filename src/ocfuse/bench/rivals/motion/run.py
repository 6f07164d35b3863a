"""What a camera saw during one run, and where the joints were."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.bench.rivals.motion.film import Film, film_of
from ocfuse.exceptions import InvalidInputError

#: Smallest height and width of a picture, in pixels.
SMALLEST = 16
#: Fewest pairs of frames that motion can be learned, and judged, from.
FEWEST_PAIRS = 5


@dataclass(frozen=True)
class MotionRun:
    """One run.

    Parameters
    ----------
    frames : ndarray of shape (n, h, w, 3), uint8
        Colour pictures, in order of time.
    joints : ndarray of shape (n, c) or None
        Angles of the joints, and openings of the gripper, at each picture.
    """

    frames: NDArray[np.uint8]
    joints: NDArray[np.float64] | None = None


def films_of(runs: Iterable[Any]) -> list[Film]:
    """Return each run as a film, one after the other, after a check that they fit together."""
    films: list[Film] = []
    for i, run in enumerate(runs):
        films.append(checked_film(run, f"runs[{i}]", None if i == 0 else films[0].joints.shape[1]))
    if not films:
        raise InvalidInputError("runs is empty. Give at least one normal run.")
    n_pairs = sum(len(film) - 1 for film in films)
    if n_pairs < FEWEST_PAIRS:
        raise InvalidInputError(
            f"runs must have at least {FEWEST_PAIRS} frames with one before them. "
            f"Got {n_pairs}. Give whole runs."
        )
    return films


def checked_film(run: Any, name: str, c: int | None) -> Film:
    """Return a run as a film, or say what is wrong with it; c joints are expected, None = any."""
    frames = np.asarray(run.frames)
    if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8 or not len(frames):
        raise InvalidInputError(
            f"{name}.frames must be uint8 of shape (n, h, w, 3). "
            f"Got {frames.dtype} of shape {frames.shape}."
        )
    if min(frames.shape[1:3]) < SMALLEST:
        raise InvalidInputError(
            f"{name}.frames must be at least {SMALLEST} pixels high and wide. "
            f"Got {frames.shape[1]} x {frames.shape[2]}."
        )
    film = film_of(frames, _checked_joints(run, name, len(frames)))
    if c is not None and film.joints.shape[1] != c:
        raise InvalidInputError(
            f"{name} has {film.joints.shape[1]} joints, the first training run has {c}. "
            "Give the same joints with every run, or with none."
        )
    return film


def _checked_joints(run: Any, name: str, n: int) -> NDArray[np.float64]:
    if run.joints is None:
        return np.empty((n, 0))
    joints = np.asarray(run.joints, dtype=np.float64)
    if joints.ndim != 2 or len(joints) != n or not joints.shape[1]:
        raise InvalidInputError(
            f"{name}.joints must be of shape (n, c) with one row per frame, n={n}. "
            f"Got shape {joints.shape}. Use None where there are no joints."
        )
    if not np.isfinite(joints).all():
        raise InvalidInputError(
            f"{name}.joints must be finite. Fill missing readings with the last known ones."
        )
    return joints
