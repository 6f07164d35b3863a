"""What each type of anomaly does to a run: faults, obstacles, occluders."""

import colorsys
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from ocfuse.lab.robot_cell.settings import Picture, RunSettings, cover
from ocfuse.lab.robot_cell.task import OVER_PLACE, SHOWN, Pose, Task, TaskMoment, ramp
from ocfuse.lab.robot_cell.world import (
    OPEN,
    PIXELS,
    STEPS_PER_SECOND,
    Arm,
    Grip,
    World,
    before_lens,
    paint,
)
from ocfuse.vision.trials import DROP, GRASP, NORMAL, OBSTACLE, OCCLUSION, type_of

#: Kinds that stand in the path; the others lie on the target.
IN_PATH = ("block", "bottle")
#: Where things come from, out of sight of the camera; and where they are before, so that
#: not even their shadow is seen.
FRONT, ELSEWHERE = 1.04, 4.0
SPEED = 0.7

#: Of which `Settings.rng` draws pictures and shapes.
SHAPES = 3
DISTANCE = 0.25
#: Where it is when nobody sees it: under the table, as it would cast a shadow elsewhere.
UNSEEN = (0.0, 0.0, -5.0)
#: Half the edge of a cover, in half widths of the picture.
COVER = 1.5
#: From the middle of a hand to its fingertips, in half widths of the picture.
REACH = 1.2
#: A film that hides less of what is behind it cannot be seen.
FILM = 0.1
SKIN = (0.83, 0.62, 0.50, 1.0)


class NoFault:
    """A run in which nothing goes wrong; what goes wrong in others differs from it.

    Parameters
    ----------
    world : World
        Where the run is.
    settings : RunSettings
        Of the run.
    """

    def __init__(self, world: World, settings: RunSettings) -> None:
        self.world = world
        self.settings = settings

    def believed(self, pick: Pose) -> Pose:
        """Return where the controller believes the box to be."""
        return pick

    def act(self, time: float) -> None:
        """Do what happens in the world, whatever the arm does."""

    def arrange(self, time: float) -> None:
        """Put what only the camera sees where it is at a time."""

    def grip(self, moment: TaskMoment) -> Grip:
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

    def __init__(self, world: World, settings: RunSettings) -> None:
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

    def grip(self, moment: TaskMoment) -> Grip:
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

    def __init__(self, world: World, settings: RunSettings) -> None:
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


def fault_of(world: World, settings: RunSettings) -> NoFault:
    """Return what happens in a run."""
    faults = {
        NORMAL: NoFault,
        OCCLUSION: Occlusion,
        GRASP: GraspError,
        DROP: Drop,
        OBSTACLE: InTheWay,
    }
    return faults[type_of(settings.kind)](world, settings)


class Obstacle:
    """A thing that is pushed into the cell, or stands there from the beginning.

    Parameters
    ----------
    world : World
        Where it is.
    settings : RunSettings
        What it is, and when it comes.
    """

    def __init__(self, world: World, settings: RunSettings) -> None:
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


class Occluder:
    """Something that comes before the lens and goes again.

    Parameters
    ----------
    world : World
        Where it is.
    settings : RunSettings
        When it comes, and from where.
    """

    def __init__(self, world: World, settings: RunSettings) -> None:
        self.world = world
        self.settings = settings
        self.body = -1
        self._is_hidden = True

    def there(self, time: float) -> float:
        """Return how far it has come, in [0, 1]."""
        fault = self.settings.fault
        coming = ramp((time - fault["begin"]) / fault["moving"])
        return coming - ramp((time - fault["end"] + fault["moving"]) / fault["moving"])

    def move(self, time: float) -> None:
        """Bring it to where it is at a time."""

    def spoil(self, picture: Picture, time: float) -> Picture:
        """Return what the lens makes of a picture."""
        return picture

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture that it hides."""
        return float(np.mean(bodies == self.body))

    def withdraw(self, bodies: NDArray[np.int64]) -> bool:
        """Hide it if it is beside the picture, where only its shadow would be seen."""
        is_lurking = not self._is_hidden and self.seen(bodies, 0.0) < SHOWN
        if is_lurking:
            self._hide()
        return is_lurking

    def _hide(self) -> None:
        self._is_hidden = True
        self.world.resetBasePositionAndOrientation(self.body, UNSEEN, [0, 0, 0, 1])

    def _bring(self, right: float, up: float, roll: float, distance: float = DISTANCE) -> None:
        self._is_hidden = False
        place, turn = before_lens(right, up, distance)
        rolled = self.world.getQuaternionFromEuler([0, 0, roll])
        _, turn = self.world.multiplyTransforms([0] * 3, turn, [0] * 3, rolled)
        self.world.resetBasePositionAndOrientation(self.body, place.tolist(), turn)


class Cover(Occluder):
    """Cardboard that slides before all of the lens, or before a part of it."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        width = before_lens(1, 0, DISTANCE)[0] - before_lens(0, 0, DISTANCE)[0]
        half = COVER * float(np.linalg.norm(width))
        self.body = _ghost(world, [(world.GEOM_BOX, {"halfExtents": [half, half, 0.002]}, [0] * 3)])
        shade, red = settings.fault["shade"], settings.fault["red"]
        colour = 230 * shade * np.array([1 + red, 1.0, 1 - 1.5 * red])
        paint(world, self.body, cover(colour, settings.rng(SHAPES)))

    def move(self, time: float) -> None:
        """Slide it."""
        if (there := self.there(time)) == 0:
            self._hide()
            return
        fault = self.settings.fault
        angle = fault["angle"]
        stop = 0.0
        if self.settings.kind == "partial":  # its edge is parallel to one of the picture
            angle = round(angle / (math.pi / 2)) * math.pi / 2
            stop = COVER + 1 - 2 * fault["share"]
        out = COVER + _extent(angle)
        far = out + there * (stop - out)
        self._bring(far * math.cos(angle), far * math.sin(angle), angle)


class Hand(Occluder):
    """Somebody's hand, which comes, waves and goes, and comes again if there is time."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        self.body = _ghost(world, _hand(world), SKIN)

    def move(self, time: float) -> None:
        """Wave it."""
        fault = self.settings.fault
        middle, length = fault["angle"], fault["end"] - fault["begin"]
        phase = 2 * math.pi * (time - fault["begin"]) / length
        # two visits; in between it is out of the picture for a moment
        near = min(self.there(time) * (0.9 - 0.9 * math.cos(2 * phase)), 1.0)
        if near == 0:
            self._hide()
            return
        out = REACH + _extent(middle)
        far = out + near * (0.3 - out)
        sway = 0.35 * math.sin(3 * phase)
        right = far * math.cos(middle) - sway * math.sin(middle)
        up = far * math.sin(middle) + sway * math.cos(middle)
        self._bring(right, up, middle + math.pi / 2 + 0.3 * sway, 0.3)


class Smear(Occluder):
    """A greasy film on a part of the lens."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        rng = settings.rng(SHAPES)
        rows, columns = np.indices((PIXELS, PIXELS)) / PIXELS
        film = np.zeros((PIXELS, PIXELS))
        for _ in range(3):
            x, y, width = rng.uniform((0.25, 0.25, 0.12), (0.75, 0.75, 0.25))
            film += np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * width**2))
        self._film = np.clip(1.3 * film, 0, 1)

    def spoil(self, picture: Picture, time: float) -> Picture:
        """Blur the picture where the film is, and make it milky."""
        film = (self.there(time) * self._film)[..., None]
        blurred = gaussian_filter(picture.astype(np.float64), (5, 5, 0), mode="nearest")
        milky = 0.75 * blurred + 0.25 * 215 * self.settings.fault["shade"] ** 0.25
        spoiled = np.rint(film * milky + (1 - film) * picture)
        return np.asarray(spoiled, dtype=np.uint8)

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture on which film can be seen."""
        return float(np.mean(self.there(time) * self._film > FILM))


def _extent(angle: float) -> float:
    """Return how far the picture reaches in a direction, in half widths."""
    return abs(math.cos(angle)) + abs(math.sin(angle))


def _hand(world: World) -> list[tuple[int, dict[str, object], list[float]]]:
    """Return palm, fingers, thumb and arm: shape, its size, its middle; fingers point to +y."""
    parts: list[tuple[int, dict[str, object], list[float]]] = [
        (world.GEOM_BOX, {"halfExtents": [0.038, 0.042, 0.011]}, [0.0, 0.0, 0.0]),
        (world.GEOM_BOX, {"halfExtents": [0.009, 0.030, 0.008]}, [0.050, 0.01, 0.0]),
        (world.GEOM_BOX, {"halfExtents": [0.027, 0.14, 0.02]}, [0.0, -0.17, 0.0]),
    ]
    for x, length in ((-0.030, 0.026), (-0.010, 0.034), (0.010, 0.037), (0.030, 0.032)):
        parts.append(
            (world.GEOM_BOX, {"halfExtents": [0.008, length, 0.008]}, [x, 0.04 + length, 0])
        )
    return parts


def _ghost(
    world: World,
    parts: list[tuple[int, dict[str, object], list[float]]],
    colour: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
) -> int:
    """Put a body into the world that is seen but touches nothing."""
    keys = {key for _, size, _ in parts for key in size}
    shape = world.createVisualShapeArray(
        shapeTypes=[kind for kind, _, _ in parts],
        visualFramePositions=[place for _, _, place in parts],
        rgbaColors=[list(colour)] * len(parts),
        **{key: [size.get(key, 0.0) for _, size, _ in parts] for key in keys},
    )
    return int(world.createMultiBody(0, baseVisualShapeIndex=shape, basePosition=UNSEEN))
