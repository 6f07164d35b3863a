"""The cell around the arm: table, wall, target and box."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ocfuse.robots.looks import Picture, surface
from ocfuse.robots.settings import Settings
from ocfuse.robots.task import HALF_BOX, Pose
from ocfuse.robots.world import World, robot_needs

#: Of which `Settings.rng` draws the pictures.
LOOKS = 1
FLAT = 0.001


class Scene:
    """What stands and lies in the cell.

    Parameters
    ----------
    world : World
        Where to build it.
    settings : Settings
        What it looks like.
    """

    def __init__(self, world: World, settings: Settings) -> None:
        rng = settings.rng(LOOKS)
        table = solid(world, (0.65, 0.8, 0.02), (0.45, 0.0, -0.02), (1, 1, 1))
        paint(world, table, surface(settings.table, rng))
        wall = solid(world, (0.01, 0.9, 0.6), (-0.62, 0.0, 0.3), (1, 1, 1))
        paint(world, wall, surface(settings.wall, rng))
        world.changeDynamics(table, -1, lateralFriction=0.8)
        self._mark(world, settings.place)
        self.box = self._box(world, settings)

    @staticmethod
    def _mark(world: World, place: Pose) -> None:
        """Draw the target on the table."""
        turn = world.getQuaternionFromEuler([0, 0, place.yaw])
        for half, height, colour in ((0.055, 1, (0.12, 0.28, 0.62)), (0.044, 2, (0.86, 0.88, 0.9))):
            shape = world.createVisualShape(
                world.GEOM_BOX, halfExtents=[half, half, FLAT / 2], rgbaColor=[*colour, 1]
            )
            world.createMultiBody(
                0,
                baseVisualShapeIndex=shape,
                basePosition=[place.x, place.y, FLAT * height / 2],
                baseOrientation=turn,
            )

    @staticmethod
    def _box(world: World, settings: Settings) -> int:
        pick = settings.pick
        box = solid(world, (HALF_BOX,) * 3, (pick.x, pick.y, pick.z), settings.box, mass=0.1)
        turn = world.getQuaternionFromEuler([0, 0, pick.yaw])
        world.resetBasePositionAndOrientation(box, [pick.x, pick.y, pick.z], turn)
        world.changeDynamics(box, -1, lateralFriction=1.0)
        return box


def solid(
    world: World,
    half: Sequence[float],
    place: Sequence[float],
    colour: Sequence[float],
    mass: float = 0.0,
) -> int:
    """Put a cuboid into the world; without mass it never moves."""
    return int(
        world.createMultiBody(
            mass,
            world.createCollisionShape(world.GEOM_BOX, halfExtents=half),
            world.createVisualShape(world.GEOM_BOX, halfExtents=half, rgbaColor=[*colour, 1]),
            place,
        )
    )


def paint(world: World, body: int, picture: Picture) -> None:
    """Cover a body with a picture."""
    image = robot_needs("PIL.Image")
    with tempfile.TemporaryDirectory() as folder:  # the engine reads files only
        file = Path(folder) / "picture.png"
        image.fromarray(picture).save(file)
        world.changeVisualShape(body, -1, textureUniqueId=world.loadTexture(str(file)))
