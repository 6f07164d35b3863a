"""Everything about a run that is left to chance, drawn before it begins."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, zoom

from ocfuse.lab.robot_cell.task import HALF_BOX, OVER_PICK, OVER_PLACE, PHASES, Pose
from ocfuse.vision.trials import DROP, GRASP, OBSTACLE, OCCLUSION, type_of

#: Parameters of what goes wrong, by name.
Fault: TypeAlias = dict[str, float]

Picture: TypeAlias = NDArray[np.uint8]

#: Height and width of the pictures of surfaces.
SIZE = 256
#: Colours, each jittered from run to run.
TABLES = {"wood": (176, 136, 94), "laminate": (172, 176, 180), "mat": (84, 106, 98)}
WALLS = {"plain": (206, 204, 196), "panels": (150, 164, 182), "bricks": (178, 140, 122)}


class Chance(IntEnum):
    """What `RunSettings.rng` draws, each from numbers of its own."""

    SURFACES = 1
    CAMERA = 2
    SHAPES = 3
    SENSORS = 4


@dataclass(frozen=True)
class Light:
    """The lamp: where it stands, as seen from the table, and light from everywhere and from it."""

    direction: tuple[float, ...]
    colour: tuple[float, ...]
    ambient: float
    diffuse: float


@dataclass(frozen=True)
class RunSettings:
    """What a run is made of.

    All chance comes from `seed`, `trial` and `attempt`. `kind` is what goes wrong, "" if nothing
    does, and `fault` are its parameters. The durations of the phases are in seconds; `noise` of
    the camera is the spread of each value (of 255), `flicker` that of the brightness of frames.
    """

    seed: int
    trial: int
    attempt: int
    kind: str
    pick: Pose
    place: Pose
    durations: tuple[float, ...]
    table: str
    wall: str
    light: Light
    noise: float
    flicker: float
    box: tuple[float, ...]
    fault: Fault = field(default_factory=dict)

    def rng(self, purpose: Chance) -> np.random.Generator:
        """Return random numbers for a purpose, the same at every call."""
        return np.random.default_rng([self.seed, self.trial, self.attempt, purpose])


def draw(seed: int, trial: int, kind: str = "", attempt: int = 0) -> RunSettings:
    """Draw a run; `attempt` counts those thrown away, as they did not turn out as planned."""
    rng = np.random.default_rng([seed, trial, attempt])
    speed = rng.uniform(1 - 0.08, 1 + 0.08)
    durations = speed * rng.uniform(1 - 0.05, 1 + 0.05, len(PHASES))
    return RunSettings(
        seed=seed,
        trial=trial,
        attempt=attempt,
        kind=kind,
        pick=_near(OVER_PICK, 0.3, rng),
        place=_near(OVER_PLACE, 0.1, rng),
        durations=_numbers(durations * list(PHASES.values())),
        table=list(TABLES)[int(rng.integers(len(TABLES)))],
        wall=list(WALLS)[int(rng.integers(len(WALLS)))],
        light=_light(rng),
        noise=_number(rng.uniform(1.0, 4.0)),
        flicker=_number(rng.uniform(0.002, 0.01)),
        box=_numbers(np.array([0.78, 0.16, 0.12]) + rng.normal(0.0, 0.03, 3)),
        fault={name: _number(value) for name, value in _fault(kind, rng).items()},
    )


def _near(mean: tuple[float, float, float], turn: float, rng: np.random.Generator) -> Pose:
    x, y = _numbers(np.array(mean[:2]) + rng.uniform(-0.03, 0.03, 2))
    return Pose(x, y, HALF_BOX, _number(rng.uniform(-turn, turn)))


def _light(rng: np.random.Generator) -> Light:
    direction = np.array([1.2, -0.4, 2.6]) + rng.uniform(-0.5, 0.5, 3)
    colour = 1.0 + rng.uniform(-0.04, 0.04, 3)
    ambient, diffuse = rng.uniform((0.50, 0.42), (0.60, 0.54))
    return Light(_numbers(direction), _numbers(colour), _number(ambient), _number(diffuse))


def _fault(kind: str, rng: np.random.Generator) -> Fault:
    """Draw the parameters of what goes wrong."""
    number = type_of(kind)
    if number == OCCLUSION:
        begin = rng.uniform(0.8, 4.5)
        return {
            "begin": begin,
            "end": begin + rng.uniform(2.0, 3.6),
            "moving": rng.uniform(0.25, 0.6),
            "angle": rng.uniform(0.0, 2 * np.pi),
            "share": rng.uniform(0.25, 0.55),
            "shade": rng.uniform(0.25, 0.9),
            "red": rng.uniform(-0.08, 0.12),
        }
    if number == GRASP:
        error, other = rng.uniform(0.055, 0.085), rng.normal(0.0, 0.004)
        x, y, z = {
            "short": (-error, other, 0.0),
            "beyond": (error, other, 0.0),
            "high": (other, other, error),
            # a finger comes down on the box; the error is half the way the fingers are apart
            "onto": (other, rng.choice((-1.0, 1.0)) * rng.uniform(0.035, 0.05), 0.0),
        }[kind]
        return {"x": x, "y": y, "z": z}
    if number == DROP:
        return {"at": rng.uniform(0.2, 0.65)}
    if number == OBSTACLE:
        waits = rng.random() < 0.4
        return {
            # before the run: it stands there from the first frame
            "begin": -1.0 if waits else rng.uniform(0.4, 2.0),
            "x": rng.uniform(-0.015, 0.015),
            "y": rng.uniform(-0.03, 0.03),
            "size": rng.uniform(0.9, 1.15),
            "hue": rng.random(),
            "turn": rng.uniform(-0.5, 0.5),
            "from": rng.uniform(-0.12, 0.12),
        }
    return {}


def _number(value: float) -> float:
    # what is stored is what was used
    return round(float(value), 5)


def _numbers(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float, ...]:
    return tuple(_number(value) for value in values)


def surface(look: str, rng: np.random.Generator) -> Picture:
    """Draw a table or a wall, its colour jittered."""
    colour = np.array((TABLES | WALLS)[look]) + rng.normal(0.0, 8.0) + rng.normal(0.0, 8.0 / 3, 3)
    return _picture(colour, _relief(look, rng))


def cover(colour: NDArray[np.float64], rng: np.random.Generator) -> Picture:
    """Draw the cardboard that a camera can be covered with."""
    return _picture(colour, 10.0 * _noise(rng, (0.6, 3.0)))


def _picture(colour: NDArray[np.float64], relief: NDArray[np.float64]) -> Picture:
    return np.clip(colour + relief[..., None], 0, 255).astype(np.uint8)


def _noise(rng: np.random.Generator, widths: tuple[float, float]) -> NDArray[np.float64]:
    """Return smooth noise of unit spread; widths are along the two axes."""
    smooth = gaussian_filter(rng.normal(size=(SIZE, SIZE)), widths, mode="wrap")
    return np.asarray(smooth / smooth.std())


def _relief(look: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return by how much the brightness of each pixel of a surface differs."""
    rows, columns = np.indices((SIZE, SIZE))
    if look == "wood":
        rings = np.sin(np.linspace(0, 40, SIZE)[:, None] + 2.5 * _noise(rng, (20.0, 60.0)))
        return np.asarray(9.0 * rings + 5.0 * _noise(rng, (0.8, 14.0)))
    if look == "laminate":
        return 4.0 * _noise(rng, (1.0, 1.0))
    if look == "mat":
        is_line = (rows % 32 < 2) | (columns % 32 < 2)
        return np.where(is_line, 22.0, 0.0) + 3.0 * _noise(rng, (1.0, 1.0))
    if look == "plain":
        return 3.0 * _noise(rng, (12.0, 12.0))
    if look == "panels":
        shades = zoom(rng.normal(0.0, 7.0, 8), SIZE // 8, order=0)
        return np.asarray(shades + np.where(columns % (SIZE // 8) < 2, -40.0, 0.0))
    # bricks
    course = rows // 16
    shifted = columns + 16 * (course % 2)
    shades = rng.normal(0.0, 9.0, (SIZE // 16, SIZE // 32 + 1))
    is_mortar = (rows % 16 < 2) | (shifted % 32 < 2)
    return np.where(is_mortar, 30.0, shades[course, shifted // 32])
