"""Pictures that surfaces of the cell are covered with, drawn from chance."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, zoom

Picture: TypeAlias = NDArray[np.uint8]

SIZE = 256
#: Colours, each jittered from run to run.
TABLES = {"wood": (176, 136, 94), "laminate": (172, 176, 180), "mat": (84, 106, 98)}
WALLS = {"plain": (206, 204, 196), "panels": (150, 164, 182), "bricks": (178, 140, 122)}
#: Of the colour of a surface, from run to run.
TINT = 8.0


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
