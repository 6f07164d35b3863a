"""What each type of anomaly does to a run."""

import numpy as np
from numpy.typing import NDArray

from ocfuse.robots.arm import OPEN, Arm, Grip
from ocfuse.robots.kinds import DROP, GRASP, NORMAL, OBSTACLE, OCCLUSION, type_of
from ocfuse.robots.looks import Picture
from ocfuse.robots.obstacles import Obstacle
from ocfuse.robots.occluders import Cover, Hand, Occluder, Smear
from ocfuse.robots.settings import Settings
from ocfuse.robots.task import Moment, Pose, Task
from ocfuse.robots.world import World


class NoFault:
    """A run in which nothing goes wrong; what goes wrong in others differs from it.

    Parameters
    ----------
    world : World
        Where the run is.
    settings : Settings
        Of the run.
    """

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.settings = settings

    def believed(self, pick: Pose) -> Pose:
        """Return where the controller believes the box to be."""
        return pick

    def act(self, time: float) -> None:
        """Do what happens in the world, whatever the arm does."""

    def arrange(self, time: float) -> None:
        """Put what only the camera sees where it is at a time."""

    def grip(self, moment: Moment) -> Grip:
        """Return what the fingers are told."""
        return Grip(0.0 if Task.is_gripping(moment) else OPEN)

    def withdraw(self, bodies: NDArray[np.int64]) -> bool:
        """Take away what the camera does not see; tell whether it has to look again."""
        return False

    def spoil(self, picture: Picture, time: float) -> Picture:
        """Return what the lens makes of a picture."""
        return picture

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture that something strange takes."""
        return 0.0

    def touched(self, arm: Arm, box: int) -> bool:
        """Tell whether the arm or the box touches something strange."""
        return False


class Occlusion(NoFault):
    """Something comes before the lens."""

    def __init__(self, world: World, settings: Settings) -> None:
        super().__init__(world, settings)
        self._occluder: Occluder = {"hand": Hand, "smear": Smear}.get(settings.kind, Cover)(
            world, settings
        )

    def arrange(self, time: float) -> None:
        """Move it."""
        self._occluder.move(time)

    def withdraw(self, bodies: NDArray[np.int64]) -> bool:
        """Hide it if only its shadow would be seen."""
        return self._occluder.withdraw(bodies)

    def spoil(self, picture: Picture, time: float) -> Picture:
        """Return what the lens makes of a picture."""
        return self._occluder.spoil(picture, time)

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture that is hidden."""
        return self._occluder.seen(bodies, time)


class GraspError(NoFault):
    """The controller believes the box to be where it is not."""

    def believed(self, pick: Pose) -> Pose:
        """Return the wrong place."""
        error = self.settings.fault
        return pick.shifted(error["x"], error["y"], error["z"])


class Drop(NoFault):
    """The fingers let the box go on its way to the target."""

    def grip(self, moment: Moment) -> Grip:
        """Return what the fingers are told, which is wrong from some moment on."""
        usual = super().grip(moment)
        is_before = moment.phase != "transport" or moment.fraction < self.settings.fault["at"]
        if not Task.is_gripping(moment) or (is_before and moment.phase != "lower"):
            return usual
        return {
            "open": Grip(OPEN),
            "slow": Grip(OPEN, speed=0.015),
            # they still close, but cannot hold the weight
            "limp": Grip(0.0, newton=0.15),
        }[self.settings.kind]


class InTheWay(NoFault):
    """Something stands where the arm or the box has to go."""

    def __init__(self, world: World, settings: Settings) -> None:
        super().__init__(world, settings)
        self._obstacle = Obstacle(world, settings)

    def act(self, time: float) -> None:
        """Bring it."""
        self._obstacle.move(time)

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture that it takes."""
        return float(np.mean(bodies == self._obstacle.body))

    def touched(self, arm: Arm, box: int) -> bool:
        """Tell whether the arm or the box touches it."""
        body = self._obstacle.body
        return arm.touches(body) or bool(self.world.getContactPoints(bodyA=box, bodyB=body))


def fault_of(world: World, settings: Settings) -> NoFault:
    """Return what happens in a run."""
    faults = {
        NORMAL: NoFault,
        OCCLUSION: Occlusion,
        GRASP: GraspError,
        DROP: Drop,
        OBSTACLE: InTheWay,
    }
    return faults[type_of(settings.kind)](world, settings)
