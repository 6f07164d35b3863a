"""Everything about a run that is left to chance, drawn before it begins."""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, zoom

from ocfuse.lab.robot_cell.task import HALF_BOX, OVER_PICK, OVER_PLACE, PHASES, Pose
from ocfuse.vision.trials import DROP, GRASP, NORMAL, OBSTACLE, OCCLUSION, type_of

#: Parameters of what goes wrong, by name.
Fault: TypeAlias = dict[str, float]

#: How far the box and the target lie from where they are in the mean.
SPREAD = 0.03
#: Shares by which the speed of a run, and of a phase, differ from the nominal one.
RUN_SPEED, PHASE_SPEED = 0.08, 0.05

Picture: TypeAlias = NDArray[np.uint8]

SIZE = 256
#: Colours, each jittered from run to run.
TABLES = {"wood": (176, 136, 94), "laminate": (172, 176, 180), "mat": (84, 106, 98)}
WALLS = {"plain": (206, 204, 196), "panels": (150, 164, 182), "bricks": (178, 140, 122)}
#: Of the colour of a surface, from run to run.
TINT = 8.0


@dataclass(frozen=True)
class Light:
    """The lamp of a run.

    Attributes
    ----------
    direction : tuple of float
        Where it stands, as seen from the table.
    colour : tuple of float
        Red, green and blue.
    ambient, diffuse : float
        Light from everywhere, and from the lamp.
    """

    direction: tuple[float, ...]
    colour: tuple[float, ...]
    ambient: float
    diffuse: float


@dataclass(frozen=True)
class RunSettings:
    """What a run is made of.

    Attributes
    ----------
    seed, trial, attempt : int
        What all chance of the run comes from.
    kind : str
        What goes wrong; "" if nothing does.
    pick, place : Pose
        Where the box is, and where it shall go.
    durations : tuple of float
        Of the phases, in seconds.
    table, wall : str
        What they look like.
    light : Light
        The lamp.
    noise, flicker : float
        Of the camera: spread of each value (of 255), and of the brightness of frames.
    box : tuple of float
        Colour of the box.
    fault : dict
        Parameters of what goes wrong.
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

    def rng(self, purpose: int) -> np.random.Generator:
        """Return chance for a purpose, the same whenever it is asked for."""
        return np.random.default_rng([self.seed, self.trial, self.attempt, purpose])


def draw(seed: int, trial: int, kind: str = "", attempt: int = 0) -> RunSettings:
    """Draw a run.

    Parameters
    ----------
    seed : int
        Seed of the cell.
    trial : int
        Number of the run in the cell.
    kind : str, default=""
        What goes wrong.
    attempt : int, default=0
        How often the run was drawn before and thrown away, as it did not turn out
        to be of its kind.

    Returns
    -------
    Settings
        The run.
    """
    rng = np.random.default_rng([seed, trial, attempt])
    speed = rng.uniform(1 - RUN_SPEED, 1 + RUN_SPEED)
    durations = speed * rng.uniform(1 - PHASE_SPEED, 1 + PHASE_SPEED, len(PHASES))
    return RunSettings(
        seed=seed,
        trial=trial,
        attempt=attempt,
        kind=kind,
        pick=_near(OVER_PICK, 0.3, rng),
        place=_near(OVER_PLACE, 0.1, rng),
        durations=_numbers(durations * list(PHASES.values())),
        table=_one_of(TABLES, rng),
        wall=_one_of(WALLS, rng),
        light=_light(rng),
        noise=_number(rng.uniform(1.0, 4.0)),
        flicker=_number(rng.uniform(0.002, 0.01)),
        box=_numbers(np.array([0.78, 0.16, 0.12]) + rng.normal(0.0, 0.03, 3)),
        fault=_FAULTS[type_of(kind)](kind, rng),
    )


def _near(mean: tuple[float, float, float], turn: float, rng: np.random.Generator) -> Pose:
    x, y = _numbers(np.array(mean[:2]) + rng.uniform(-SPREAD, SPREAD, 2))
    return Pose(x, y, HALF_BOX, _number(rng.uniform(-turn, turn)))


def _light(rng: np.random.Generator) -> Light:
    direction = np.array([1.2, -0.4, 2.6]) + rng.uniform(-0.5, 0.5, 3)
    colour = 1.0 + rng.uniform(-0.04, 0.04, 3)
    ambient, diffuse = rng.uniform((0.50, 0.42), (0.60, 0.54))
    return Light(_numbers(direction), _numbers(colour), _number(ambient), _number(diffuse))


def _normal(kind: str, rng: np.random.Generator) -> Fault:
    return {}


def _occlusion(kind: str, rng: np.random.Generator) -> Fault:
    begin = rng.uniform(0.8, 4.5)
    return {
        "begin": _number(begin),
        "end": _number(begin + rng.uniform(2.0, 3.6)),
        "moving": _number(rng.uniform(0.25, 0.6)),
        "angle": _number(rng.uniform(0.0, 2 * np.pi)),
        "share": _number(rng.uniform(0.25, 0.55)),
        "shade": _number(rng.uniform(0.25, 0.9)),
        "red": _number(rng.uniform(-0.08, 0.12)),
    }


def _grasp(kind: str, rng: np.random.Generator) -> Fault:
    error, other = rng.uniform(0.055, 0.085), rng.normal(0.0, 0.004)
    x, y, z = {
        "short": (-error, other, 0.0),
        "beyond": (error, other, 0.0),
        "high": (other, other, error),
        # a finger comes down on the box; the error is half the way the fingers are apart
        "onto": (other, rng.choice((-1.0, 1.0)) * rng.uniform(0.035, 0.05), 0.0),
    }[kind]
    return {"x": _number(x), "y": _number(y), "z": _number(z)}


def _drop(kind: str, rng: np.random.Generator) -> Fault:
    return {"at": _number(rng.uniform(0.2, 0.65))}


def _obstacle(kind: str, rng: np.random.Generator) -> Fault:
    waits = rng.random() < 0.4
    return {
        # before the run: it stands there from the first frame
        "begin": -1.0 if waits else _number(rng.uniform(0.4, 2.0)),
        "x": _number(rng.uniform(-0.015, 0.015)),
        "y": _number(rng.uniform(-0.03, 0.03)),
        "size": _number(rng.uniform(0.9, 1.15)),
        "hue": _number(rng.random()),
        "turn": _number(rng.uniform(-0.5, 0.5)),
        "from": _number(rng.uniform(-0.12, 0.12)),
    }


_FAULTS = {
    NORMAL: _normal,
    OCCLUSION: _occlusion,
    GRASP: _grasp,
    DROP: _drop,
    OBSTACLE: _obstacle,
}


def _one_of(names: dict[str, tuple[int, int, int]], rng: np.random.Generator) -> str:
    return list(names)[int(rng.integers(len(names)))]


def _number(value: float) -> float:
    # what is stored is what was used
    return round(float(value), 5)


def _numbers(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float, ...]:
    return tuple(_number(value) for value in values)


def surface(look: str, rng: np.random.Generator) -> Picture:
    """Draw a table or a wall."""
    colour = np.array((TABLES | WALLS)[look]) + rng.normal(0.0, TINT) + rng.normal(0.0, TINT / 3, 3)
    return _picture(colour, _RELIEFS[look](rng))


def cover(colour: NDArray[np.float64], rng: np.random.Generator) -> Picture:
    """Draw the cardboard that a camera can be covered with."""
    return _picture(colour, 10.0 * _noise(rng, (0.6, 3.0)))


def _picture(colour: NDArray[np.float64], relief: NDArray[np.float64]) -> Picture:
    return np.clip(colour + relief[..., None], 0, 255).astype(np.uint8)


def _noise(rng: np.random.Generator, widths: tuple[float, float]) -> NDArray[np.float64]:
    """Return smooth noise of unit spread; widths are along the two axes."""
    smooth = gaussian_filter(rng.normal(size=(SIZE, SIZE)), widths, mode="wrap")
    return np.asarray(smooth / smooth.std())


def _wood(rng: np.random.Generator) -> NDArray[np.float64]:
    rings = np.sin(np.linspace(0, 40, SIZE)[:, None] + 2.5 * _noise(rng, (20.0, 60.0)))
    return np.asarray(9.0 * rings + 5.0 * _noise(rng, (0.8, 14.0)))


def _laminate(rng: np.random.Generator) -> NDArray[np.float64]:
    return 4.0 * _noise(rng, (1.0, 1.0))


def _mat(rng: np.random.Generator) -> NDArray[np.float64]:
    line = np.arange(SIZE) % 32 < 2
    grid = np.where(line[:, None] | line[None], 22.0, 0.0)
    return grid + 3.0 * _noise(rng, (1.0, 1.0))


def _plain(rng: np.random.Generator) -> NDArray[np.float64]:
    return 3.0 * _noise(rng, (12.0, 12.0))


def _panels(rng: np.random.Generator) -> NDArray[np.float64]:
    shades = zoom(rng.normal(0.0, 7.0, 8), SIZE // 8, order=0)
    seams = np.where(np.arange(SIZE) % (SIZE // 8) < 2, -40.0, 0.0)
    return np.tile(shades + seams, (SIZE, 1))


def _bricks(rng: np.random.Generator) -> NDArray[np.float64]:
    rows, columns = np.indices((SIZE, SIZE))
    course = rows // 16
    shifted = columns + 16 * (course % 2)
    shades = rng.normal(0.0, 9.0, (SIZE // 16, SIZE // 32 + 1))
    mortar = (rows % 16 < 2) | (shifted % 32 < 2)
    return np.where(mortar, 30.0, shades[course, shifted // 32])


_RELIEFS = {
    "wood": _wood,
    "laminate": _laminate,
    "mat": _mat,
    "plain": _plain,
    "panels": _panels,
    "bricks": _bricks,
}
