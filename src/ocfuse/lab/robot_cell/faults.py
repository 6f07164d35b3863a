"""What each type of anomaly does to a run: faults, obstacles, occluders."""

import colorsys
import math
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from ocfuse.lab.robot_cell.settings import Chance, Picture, RunSettings, cover
from ocfuse.lab.robot_cell.task import OVER_PLACE, SHOWN, Pose, Task, TaskMoment, ramp
from ocfuse.lab.robot_cell.world import STEPS_PER_SECOND, Arm, Camera, Grip, World, paint
from ocfuse.vision.trials import DROP, GRASP, NORMAL, OBSTACLE, OCCLUSION, type_of

#: Half the edges and the middle of each box of a body.
Parts: TypeAlias = list[tuple[list[float], list[float]]]


class NoFault:
    """A run in which nothing goes wrong; what goes wrong in others differs from it."""

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
        """Return the command to the fingers."""
        return Grip(0.0 if Task.is_gripping(moment) else Arm.open_width)

    def withdraw(self, bodies: NDArray[np.int64]) -> bool:
        """Take away what the camera does not see; return whether it has to look again."""
        return False

    def spoil(self, picture: Picture, time: float) -> Picture:
        """Return what the lens makes of a picture."""
        return picture

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture that something strange takes."""
        return 0.0

    def touched(self, arm: Arm, box: int) -> bool:
        """Return whether the arm or the box touches something strange."""
        return False


class GraspError(NoFault):
    """The controller believes the box to be where it is not."""

    def believed(self, pick: Pose) -> Pose:
        """Return the wrong place."""
        error = self.settings.fault
        return pick.shifted(error["x"], error["y"], error["z"])


class Drop(NoFault):
    """The fingers let the box go on its way to the target."""

    def grip(self, moment: TaskMoment) -> Grip:
        """Return the command to the fingers, which is wrong from some moment on."""
        usual = super().grip(moment)
        is_before = moment.phase != "transport" or moment.fraction < self.settings.fault["at"]
        if not Task.is_gripping(moment) or (is_before and moment.phase != "lower"):
            return usual
        return {
            "open": Grip(Arm.open_width),
            "slow": Grip(Arm.open_width, speed=0.015),
            # they still close, but cannot hold the weight
            "limp": Grip(0.0, newton=0.15),
        }[self.settings.kind]


class Obstacle(NoFault):
    """A thing in the way of the arm or the box: pushed into the cell, or there from the start."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        fault, pick, place = settings.fault, settings.pick, settings.place
        if settings.kind in ("block", "bottle"):  # half-way from where the box is lifted
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
        if self._is_coming:  # from out of sight of the camera
            self._place = np.array([1.04, self._goal[1] + fault["from"]])
        # before, it is so far away that not even its shadow is seen
        self._put(np.array([4.0, 0.0]) if self._is_coming else self._goal)

    def act(self, time: float) -> None:
        """Push it towards its place, until it is there."""
        if not self._is_coming or time < self.settings.fault["begin"]:
            return
        way = self._goal - self._place
        left = float(np.linalg.norm(way))
        # slower towards the end, so that tall things do not fall
        step = min(0.7, 0.03 + 4.0 * left) / STEPS_PER_SECOND
        self._place = self._goal if left <= step else self._place + step * way / left
        self._is_coming = left > step
        self._put(self._place)
        self.world.resetBaseVelocity(self.body, [0] * 3, [0] * 3)

    def seen(self, bodies: NDArray[np.int64], time: float) -> float:
        """Return the share of the picture that it takes."""
        return float(np.mean(bodies == self.body))

    def touched(self, arm: Arm, box: int) -> bool:
        """Return whether the arm or the box touches it."""
        return arm.touches(self.body) or bool(
            self.world.getContactPoints(bodyA=box, bodyB=self.body)
        )

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


class Occluder(NoFault):
    """Something that comes before the lens and goes again."""

    #: Where it is when nobody sees it: under the table, as it would cast a shadow elsewhere.
    unseen: ClassVar = (0.0, 0.0, -5.0)

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        self.body = -1
        self._is_hidden = True

    def there(self, time: float) -> float:
        """Return how far it has come, in [0, 1]."""
        fault = self.settings.fault
        coming = ramp((time - fault["begin"]) / fault["moving"])
        return coming - ramp((time - fault["end"] + fault["moving"]) / fault["moving"])

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
        self.world.resetBasePositionAndOrientation(self.body, self.unseen, [0, 0, 0, 1])

    def _bring(self, right: float, up: float, roll: float, distance: float) -> None:
        self._is_hidden = False
        place, turn = Camera.before_lens(right, up, distance)
        rolled = self.world.getQuaternionFromEuler([0, 0, roll])
        _, turn = self.world.multiplyTransforms([0] * 3, turn, [0] * 3, rolled)
        self.world.resetBasePositionAndOrientation(self.body, place.tolist(), turn)

    def _make(self, parts: Parts, colour: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)) -> None:
        """Put a body of boxes into the world that is seen but touches nothing."""
        shape = self.world.createVisualShapeArray(
            shapeTypes=[self.world.GEOM_BOX] * len(parts),
            halfExtents=[half for half, _ in parts],
            visualFramePositions=[place for _, place in parts],
            rgbaColors=[list(colour)] * len(parts),
        )
        self.body = int(
            self.world.createMultiBody(0, baseVisualShapeIndex=shape, basePosition=self.unseen)
        )


class Cover(Occluder):
    """Cardboard that slides before all of the lens, or before a part of it."""

    #: Half its edge, in half widths of the picture, and how far it is from the lens.
    half: ClassVar = 1.5
    distance: ClassVar = 0.25

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        edge, middle = (Camera.before_lens(x, 0, self.distance)[0] for x in (1, 0))
        half = self.half * float(np.linalg.norm(edge - middle))
        self._make([([half, half, 0.002], [0] * 3)])
        shade, red = settings.fault["shade"], settings.fault["red"]
        colour = 230 * shade * np.array([1 + red, 1.0, 1 - 1.5 * red])
        paint(world, self.body, cover(colour, settings.rng(Chance.SHAPES)))

    def arrange(self, time: float) -> None:
        """Slide it."""
        if (there := self.there(time)) == 0:
            self._hide()
            return
        fault = self.settings.fault
        angle = fault["angle"]
        stop = 0.0
        if self.settings.kind == "partial":  # its edge is parallel to one of the picture
            angle = round(angle / (math.pi / 2)) * math.pi / 2
            stop = self.half + 1 - 2 * fault["share"]
        out = self.half + _extent(angle)
        far = out + there * (stop - out)
        self._bring(far * math.cos(angle), far * math.sin(angle), angle, self.distance)


class Hand(Occluder):
    """Somebody's hand, which comes, waves and goes, and comes again if there is time."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        palm = ([0.038, 0.042, 0.011], [0.0, 0.0, 0.0])
        thumb = ([0.009, 0.030, 0.008], [0.050, 0.01, 0.0])
        arm = ([0.027, 0.14, 0.02], [0.0, -0.17, 0.0])
        # they point to +y
        lengths = {-0.030: 0.026, -0.010: 0.034, 0.010: 0.037, 0.030: 0.032}
        fingers = [([0.008, y, 0.008], [x, 0.04 + y, 0]) for x, y in lengths.items()]
        self._make([palm, thumb, arm, *fingers], colour=(0.83, 0.62, 0.50, 1.0))

    def arrange(self, time: float) -> None:
        """Wave it."""
        fault = self.settings.fault
        middle, length = fault["angle"], fault["end"] - fault["begin"]
        phase = 2 * math.pi * (time - fault["begin"]) / length
        # two visits; in between it is out of the picture for a moment
        near = min(self.there(time) * (0.9 - 0.9 * math.cos(2 * phase)), 1.0)
        if near == 0:
            self._hide()
            return
        # from the middle of the hand to its fingertips it is 1.2 half widths of the picture
        out = 1.2 + _extent(middle)
        far = out + near * (0.3 - out)
        sway = 0.35 * math.sin(3 * phase)
        right = far * math.cos(middle) - sway * math.sin(middle)
        up = far * math.sin(middle) + sway * math.cos(middle)
        self._bring(right, up, middle + math.pi / 2 + 0.3 * sway, 0.3)


class Smear(Occluder):
    """A greasy film on a part of the lens."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        super().__init__(world, settings)
        rng = settings.rng(Chance.SHAPES)
        side = Camera.pixels
        rows, columns = np.indices((side, side)) / side
        film = np.zeros((side, side))
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
        """Return the share of the picture on which a tenth or more is hidden: less is not seen."""
        return float(np.mean(self.there(time) * self._film > 0.1))


def _extent(angle: float) -> float:
    """Return how far the picture reaches in a direction, in half widths."""
    return abs(math.cos(angle)) + abs(math.sin(angle))


def fault_of(world: World, settings: RunSettings) -> NoFault:
    """Return what happens in a run."""
    faults: dict[int, type[NoFault]] = {
        NORMAL: NoFault,
        OCCLUSION: {"hand": Hand, "smear": Smear}.get(settings.kind, Cover),
        GRASP: GraspError,
        DROP: Drop,
        OBSTACLE: Obstacle,
    }
    return faults[type_of(settings.kind)](world, settings)
