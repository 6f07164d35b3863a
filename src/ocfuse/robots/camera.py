"""The fixed camera: what it sees, with its noise."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ocfuse.robots.looks import Picture
from ocfuse.robots.settings import Settings
from ocfuse.robots.world import World

PIXELS = 128
PLACE = np.array([1.32, 0.06, 0.66])
LOOKS_AT = np.array([0.40, 0.0, 0.17])
#: Of the picture, in degrees.
ANGLE = 40.0
NEAR, FAR = 0.05, 4.0
#: Of which `Settings.rng` draws the noise.
NOISE = 2


class Camera:
    """A camera that looks at the cell.

    Parameters
    ----------
    world : World
        What it sees.
    settings : Settings
        Light and noise.
    """

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.settings = settings
        self._rng = settings.rng(NOISE)
        self._view = world.computeViewMatrix(PLACE.tolist(), LOOKS_AT.tolist(), [0, 0, 1])
        self._lens = world.computeProjectionMatrixFOV(ANGLE, 1.0, NEAR, FAR)

    def look(self) -> tuple[Picture, NDArray[np.int64]]:
        """Return what a perfect camera sees, and the body that each pixel shows."""
        light = self.settings.light
        width, height, colours, _, bodies = self.world.getCameraImage(
            PIXELS,
            PIXELS,
            self._view,
            self._lens,
            lightDirection=light.direction,
            lightColor=light.colour,
            lightDistance=3.0,
            shadow=1,
            lightAmbientCoeff=light.ambient,
            lightDiffuseCoeff=light.diffuse,
            lightSpecularCoeff=0.08,
            renderer=self.world.ER_TINY_RENDERER,
        )
        picture = np.reshape(colours, (height, width, 4))[..., :3].astype(np.uint8)
        return picture, np.reshape(bodies, (height, width)).astype(np.int64)

    def expose(self, picture: Picture) -> Picture:
        """Return what this camera makes of a picture."""
        gain = 1.0 + self.settings.flicker * self._rng.normal()
        grain = self.settings.noise * self._rng.normal(size=picture.shape)
        return np.clip(np.rint(gain * picture + grain), 0, 255).astype(np.uint8)


def before_lens(
    right: float, up: float, distance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where in the world a point before the lens is, and the turn of the picture.

    Parameters
    ----------
    right, up : float
        In half widths of the picture, from its middle.
    distance : float
        From the lens.

    Returns
    -------
    place : ndarray of shape (3,)
        In the world.
    turn : ndarray of shape (4,)
        Quaternion that turns x to the right of the picture and y to its top.
    """
    forward = (LOOKS_AT - PLACE) / np.linalg.norm(LOOKS_AT - PLACE)
    side = np.cross(forward, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    top = np.cross(side, forward)
    half = distance * math.tan(math.radians(ANGLE / 2))
    place = PLACE + distance * forward + half * (right * side + up * top)
    turn = Rotation.from_matrix(np.column_stack([side, top, -forward])).as_quat()
    return place, turn
