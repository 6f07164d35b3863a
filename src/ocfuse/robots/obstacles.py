"""What can stand in the way of the arm, or on its target."""

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.robots.settings import Settings
from ocfuse.robots.task import OVER_PLACE
from ocfuse.robots.world import STEPS_PER_SECOND, World

#: Kinds that stand in the path; the others lie on the target.
IN_PATH = ("block", "bottle")
#: Where things come from, out of sight of the camera; and where they are before, so that
#: not even their shadow is seen.
FRONT, ELSEWHERE = 1.04, 4.0
SPEED = 0.7


class Obstacle:
    """A thing that is pushed into the cell, or stands there from the beginning.

    Parameters
    ----------
    world : World
        Where it is.
    settings : Settings
        What it is, and when it comes.
    """

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.settings = settings
        fault, pick, place = settings.fault, settings.pick, settings.place
        if settings.kind in IN_PATH:  # half-way from where the box is lifted
            goal = (np.array([pick.x, pick.y]) + OVER_PLACE[:2]) / 2
        else:
            goal = np.array([place.x, place.y])
        self._goal = goal + np.array([fault["x"], fault["y"]])
        shapes = {"block": _block, "bottle": _bottle, "brick": _brick, "ball": _ball}
        colour = (*colorsys.hsv_to_rgb(fault["hue"], 0.65, 0.75), 1.0)
        self.body, self._height = shapes[settings.kind](world, fault["size"], colour)
        self._turn = world.getQuaternionFromEuler([0, 0, fault["turn"]])
        self._is_coming = fault["begin"] >= 0
        self._place = self._goal
        if self._is_coming:
            self._place = np.array([FRONT, self._goal[1] + fault["from"]])
        self._put(np.array([ELSEWHERE, 0.0]) if self._is_coming else self._goal)

    def move(self, time: float) -> None:
        """Push it towards its place, until it is there."""
        if not self._is_coming or time < self.settings.fault["begin"]:
            return
        way = self._goal - self._place
        left = float(np.linalg.norm(way))
        # slower towards the end, so that tall things do not fall
        step = min(SPEED, 0.03 + 4.0 * left) / STEPS_PER_SECOND
        self._place = self._goal if left <= step else self._place + step * way / left
        self._is_coming = left > step
        self._put(self._place)
        self.world.resetBaseVelocity(self.body, [0] * 3, [0] * 3)

    def _put(self, place: NDArray[np.float64]) -> None:
        self.world.resetBasePositionAndOrientation(self.body, [*place, self._height], self._turn)


def _block(world: World, size: float, colour: Any) -> tuple[int, float]:
    half = [0.035 * size, 0.035 * size, 0.14 * size]
    return _body(world, world.GEOM_BOX, {"halfExtents": half}, colour, 1.2), half[2]


def _brick(world: World, size: float, colour: Any) -> tuple[int, float]:
    half = [0.05 * size, 0.035 * size, 0.028 * size]
    return _body(world, world.GEOM_BOX, {"halfExtents": half}, colour, 0.5), half[2]


def _ball(world: World, size: float, colour: Any) -> tuple[int, float]:
    radius = 0.042 * size
    body = _body(world, world.GEOM_SPHERE, {"radius": radius}, colour, 0.2)
    world.changeDynamics(body, -1, rollingFriction=0.003, angularDamping=0.6)
    return body, radius


def _bottle(world: World, size: float, colour: Any) -> tuple[int, float]:
    radius, height = 0.032 * size, 0.22 * size
    neck = 0.07 * size
    solid = world.createCollisionShapeArray(
        shapeTypes=[world.GEOM_CYLINDER] * 2,
        radii=[radius, 0.5 * radius],
        lengths=[height, neck],
        collisionFramePositions=[[0, 0, 0], [0, 0, (height + neck) / 2]],
    )
    seen = world.createVisualShapeArray(
        shapeTypes=[world.GEOM_CYLINDER] * 2,
        radii=[radius, 0.5 * radius],
        lengths=[height, neck],
        visualFramePositions=[[0, 0, 0], [0, 0, (height + neck) / 2]],
        rgbaColors=[list(colour)] * 2,
    )
    body = int(world.createMultiBody(0.5, solid, seen))
    world.changeDynamics(body, -1, lateralFriction=0.6)
    return body, height / 2


def _body(world: World, shape: int, size: dict[str, Any], colour: Any, mass: float) -> int:
    solid = world.createCollisionShape(shape, **size)
    body = world.createMultiBody(
        mass, solid, world.createVisualShape(shape, rgbaColor=colour, **size)
    )
    world.changeDynamics(body, -1, lateralFriction=0.6)
    return int(body)
