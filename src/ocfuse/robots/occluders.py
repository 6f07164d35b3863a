"""What can come before the lens: a cover, a hand, a smear."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from ocfuse.robots.camera import PIXELS, before_lens
from ocfuse.robots.labels import SHOWN
from ocfuse.robots.looks import Picture, cover
from ocfuse.robots.scene import paint
from ocfuse.robots.settings import Settings
from ocfuse.robots.task import ramp
from ocfuse.robots.world import World

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


class Occluder:
    """Something that comes before the lens and goes again.

    Parameters
    ----------
    world : World
        Where it is.
    settings : Settings
        When it comes, and from where.
    """

    def __init__(self, world: World, settings: Settings) -> None:
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

    def __init__(self, world: World, settings: Settings) -> None:
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

    def __init__(self, world: World, settings: Settings) -> None:
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

    def __init__(self, world: World, settings: Settings) -> None:
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
