"""The robot with fewer triangles, as small pictures show no more, in a third of the time.

pybullet's Panda has 100,000 triangles, most of them smaller than a pixel. Corners in one
cell of a grid that look the same way become one corner; triangles without area go.
Shapes for contacts are left as they are.
"""

import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Edge of a cell, about a pixel of the camera.
CELL = 0.008
ROBOT = "franka_panda"


@cache
def light_robot(data: Path) -> Path:
    """Return the URDF of a robot that looks like pybullet's, made once per process.

    Parameters
    ----------
    data : Path
        Folder of pybullet's own data.

    Returns
    -------
    Path
        The file, in a folder that goes with the process.
    """
    folder = Path(_kept_folder().name) / ROBOT
    shutil.copytree(data / ROBOT, folder)
    for mesh in sorted((folder / "meshes" / "visual").glob("*.obj")):
        mesh.write_text(simplified(mesh.read_text(encoding="utf-8")), encoding="utf-8")
    return folder / "panda.urdf"


@cache
def _kept_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="ocfuse-robot-")


def simplified(text: str, cell: float = CELL) -> str:
    """Return a mesh in the format OBJ with the corners in one cell made one.

    Parameters
    ----------
    text : str
        Content of an OBJ file of triangles.
    cell : float
        Edge of a cell.

    Returns
    -------
    str
        Content of an OBJ file.
    """
    points: dict[str, list[str]] = {"v": [], "vt": [], "vn": []}
    parts: list[tuple[list[str], list[str]]] = [([], [])]
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word in points:
            points[word].append(rest)
        elif word == "f":
            parts[-1][1].append(rest)
        elif word in ("mtllib", "usemtl", "o"):
            if parts[-1][1]:
                parts.append(([], []))
            parts[-1][0].append(line)
    arrays = {name: _numbers(lines).reshape(len(lines), -1) for name, lines in points.items()}
    lines: list[str] = []
    n_corners = 0
    for heads, faces in parts:
        corners, triangles = _merged(_corners(faces), arrays, cell)
        lines += [*heads, *corners]
        lines += ["f " + " ".join(f"{i}/{i}/{i}" for i in t) for t in triangles + n_corners + 1]
        n_corners += len(corners) // 3
    return "\n".join(lines) + "\n"


def _numbers(lines: list[str]) -> NDArray[np.float64]:
    return np.array(" ".join(lines).split(), dtype=np.float64)


def _corners(faces: list[str]) -> NDArray[np.int64]:
    """Return numbers of point, texture (-1 if there is none) and normal of all corners."""
    text = " ".join(faces).replace("//", "/0/").replace("/", " ")
    return np.array(text.split(), dtype=np.int64).reshape(-1, 3) - 1


def _merged(
    corners: NDArray[np.int64], points: dict[str, NDArray[np.float64]], cell: float
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the lines of the corners of a part, and its triangles by their numbers."""
    place, normal = points["v"][corners[:, 0]], points["vn"][corners[:, 2]]
    spot = np.where(corners[:, [1]] >= 0, points["vt"][corners[:, 1]], 0.0)
    where, n_there = _groups(np.floor(place / cell))
    # corners that look different ways stay apart, but in one place, or there would be cracks
    place = _mean(place, where, n_there)[where]
    group, counts = _groups(np.column_stack([where, np.rint(normal)]))
    means = [_mean(values, group, counts) for values in (place, spot, normal)]
    triangles, index = np.unique(_from_smallest(group.reshape(-1, 3)), axis=0, return_index=True)
    first, second, third = where.reshape(-1, 3)[index].T
    has_area = (first != second) & (second != third) & (third != first)
    lines = [
        line
        for p, t, n in zip(*means, strict=True)
        for line in (_line("v", p), _line("vt", t), _line("vn", n))
    ]
    return lines, triangles[has_area]


def _groups(keys: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the group of each row of whole numbers, and the sizes of groups."""
    whole = (keys - keys.min(axis=0)).astype(np.int64)
    flat = np.ravel_multi_index(tuple(whole.T), tuple(whole.max(axis=0) + 1))
    _, group, counts = np.unique(flat, return_inverse=True, return_counts=True)
    return group, counts


def _from_smallest(triangles: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return triangles that begin with their smallest number and turn as they did."""
    first = triangles.argmin(axis=1)
    order = (first[:, None] + np.arange(3)) % 3
    return np.take_along_axis(triangles, order, axis=1)


def _mean(
    values: NDArray[np.float64], group: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    columns = [np.bincount(group, values[:, j], len(counts)) for j in range(values.shape[1])]
    return np.column_stack(columns) / counts[:, None]


def _line(word: str, values: NDArray[np.float64]) -> str:
    return " ".join([word, *(f"{value:.6f}" for value in values)])
