"""The world of the cell: physics engine, table, target, box, camera, and the Franka Panda.

The robot is drawn with fewer triangles, in a third of the time: pybullet's Panda has 100,000,
most of them smaller than a pixel. Corners in one cell of a grid that look the same way become
one corner; triangles without area go. Shapes for contacts are left as they are.
"""

import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ocfuse.lab.robot_cell.settings import Picture, RunSettings, surface
from ocfuse.lab.robot_cell.task import HALF_BOX, Pose
from ocfuse.system.packages import needed

STEPS_PER_SECOND = 240

#: Of which `Settings.rng` draws the pictures.
LOOKS = 1
FLAT = 0.001

PIXELS = 128
PLACE = np.array([1.32, 0.06, 0.66])
LOOKS_AT = np.array([0.40, 0.0, 0.17])
#: Of the picture, in degrees.
ANGLE = 40.0
NEAR, FAR = 0.05, 4.0
#: Of which `Settings.rng` draws the noise.
NOISE = 2

ARM = tuple(range(7))
FINGERS = (9, 10)
#: Wrist sensor: between the last joint and the hand.
WRIST = 8
#: The point between the fingertips.
GRASP = 11
OPEN = 0.04
TORQUES = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
REST_POSE = (0.0, -0.35, 0.0, -2.4, 0.0, 2.05, math.pi / 4)
LOWER = (-2.9, -1.76, -2.9, -3.07, -2.9, -0.02, -2.9)
UPPER = (2.9, 1.76, 2.9, -0.07, 2.9, 3.75, 2.9)

#: Columns that `Arm.read` gives.
COLUMNS = (
    *(f"position_{i}" for i in range(1, 8)),
    *(f"velocity_{i}" for i in range(1, 8)),
    *(f"torque_{i}" for i in range(1, 8)),
    *("finger_left", "finger_right"),
    *("hand_x", "hand_y", "hand_z", "hand_qx", "hand_qy", "hand_qz", "hand_qw"),
    *(f"wrist_{name}" for name in ("fx", "fy", "fz", "tx", "ty", "tz")),
    *("grip_left", "grip_right"),
)

#: Edge of a cell, about a pixel of the camera.
CELL = 0.008
ROBOT = "franka_panda"


class World:
    """A pybullet server of its own; its functions are called as methods.

    Functions of pybullet are given the server they are for, constants are passed on.

    Attributes
    ----------
    data : Path
        Folder of the robots that come with pybullet.
    """

    def __init__(self) -> None:
        self._engine = engine()
        self._server = self._engine.connect(self._engine.DIRECT)
        self.data = Path(robot_needs("pybullet_data").getDataPath())
        self.setGravity(0, 0, -9.81)
        self.setPhysicsEngineParameter(
            fixedTimeStep=1 / STEPS_PER_SECOND,
            numSolverIterations=80,
            deterministicOverlappingPairs=1,
        )

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._engine, name)
        return partial(value, physicsClientId=self._server) if callable(value) else value

    def close(self) -> None:
        """End the server."""
        self.disconnect()


def robot_needs(package: str) -> Any:
    """Return a package that the cell needs, or say which extra brings it."""
    return needed(package, "for the simulated robot cell", "robots")


def engine() -> Any:
    """Return pybullet, which greets on stderr when it is imported."""
    with _silenced():
        return robot_needs("pybullet")


@contextmanager
def open_world() -> Iterator[World]:
    """Give a world that is closed at the end."""
    world = World()
    try:
        yield world
    finally:
        world.close()


@contextmanager
def _silenced() -> Iterator[None]:
    """Send what C code writes to stderr inside to nowhere."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class Scene:
    """What stands and lies in the cell.

    Parameters
    ----------
    world : World
        Where to build it.
    settings : RunSettings
        What it looks like.
    """

    def __init__(self, world: World, settings: RunSettings) -> None:
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
    def _box(world: World, settings: RunSettings) -> int:
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


class Camera:
    """A camera that looks at the cell.

    Parameters
    ----------
    world : World
        What it sees.
    settings : RunSettings
        Light and noise.
    """

    def __init__(self, world: World, settings: RunSettings) -> None:
        self.world = world
        self.settings = settings
        self._rng = settings.rng(NOISE)
        self._view = world.computeViewMatrix(PLACE.tolist(), LOOKS_AT.tolist(), [0, 0, 1])
        self._lens = world.computeProjectionMatrixFOV(ANGLE, 1.0, NEAR, FAR)

    def look(self) -> tuple[Picture, NDArray[np.int64]]:
        """Return what a perfect camera sees, and the body that each pixel shows."""
        light = self.settings.light
        width, height, colours, _, bodies = self.world.getCameraImage(
            PIXELS,
            PIXELS,
            self._view,
            self._lens,
            lightDirection=light.direction,
            lightColor=light.colour,
            lightDistance=3.0,
            shadow=1,
            lightAmbientCoeff=light.ambient,
            lightDiffuseCoeff=light.diffuse,
            lightSpecularCoeff=0.08,
            renderer=self.world.ER_TINY_RENDERER,
        )
        picture = np.reshape(colours, (height, width, 4))[..., :3].astype(np.uint8)
        return picture, np.reshape(bodies, (height, width)).astype(np.int64)

    def expose(self, picture: Picture) -> Picture:
        """Return what this camera makes of a picture."""
        gain = 1.0 + self.settings.flicker * self._rng.normal()
        grain = self.settings.noise * self._rng.normal(size=picture.shape)
        return np.clip(np.rint(gain * picture + grain), 0, 255).astype(np.uint8)


def before_lens(
    right: float, up: float, distance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where in the world a point before the lens is, and the turn of the picture.

    Parameters
    ----------
    right, up : float
        In half widths of the picture, from its middle.
    distance : float
        From the lens.

    Returns
    -------
    place : ndarray of shape (3,)
        In the world.
    turn : ndarray of shape (4,)
        Quaternion that turns x to the right of the picture and y to its top.
    """
    forward = (LOOKS_AT - PLACE) / np.linalg.norm(LOOKS_AT - PLACE)
    side = np.cross(forward, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    top = np.cross(side, forward)
    half = distance * math.tan(math.radians(ANGLE / 2))
    place = PLACE + distance * forward + half * (right * side + up * top)
    turn = Rotation.from_matrix(np.column_stack([side, top, -forward])).as_quat()
    return place, turn


@dataclass(frozen=True)
class Grip:
    """What the fingers are told.

    Attributes
    ----------
    width : float
        Where each shall go, from the middle of the hand.
    newton : float
        Its force.
    speed : float
        Its speed.
    """

    width: float
    newton: float = 25.0
    speed: float = 0.12


class Arm:
    """The arm in a world.

    Parameters
    ----------
    world : World
        Where it stands.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.body = world.loadURDF(str(light_robot(world.data)), useFixedBase=True)
        for joint in FINGERS:
            world.changeDynamics(
                self.body, joint, lateralFriction=1.2, frictionAnchor=1, spinningFriction=0.1
            )
            world.resetJointState(self.body, joint, OPEN)
        for joint, angle in zip(ARM, REST_POSE, strict=True):
            world.resetJointState(self.body, joint, angle)
        # the real fingers share one drive; without it they would slide sideways with the box
        gear = world.createConstraint(
            self.body,
            FINGERS[0],
            self.body,
            FINGERS[1],
            world.JOINT_GEAR,
            [1, 0, 0],
            [0] * 3,
            [0] * 3,
        )
        world.changeConstraint(gear, gearRatio=-1, erp=0.1, maxForce=50)
        world.enableJointForceTorqueSensor(self.body, WRIST, True)

    def place_at(self, hand: NDArray[np.float64]) -> None:
        """Put the hand somewhere at once, before the run."""
        for _ in range(50):  # inverse kinematics goes on from where the joints are
            for joint, angle in zip(ARM, self._angles(hand), strict=True):
                self.world.resetJointState(self.body, joint, angle)

    def move_to(self, hand: NDArray[np.float64]) -> None:
        """Let the motors hold x, y, z and yaw of the hand."""
        self.world.setJointMotorControlArray(
            self.body,
            ARM,
            self.world.POSITION_CONTROL,
            targetPositions=self._angles(hand),
            forces=TORQUES,
            positionGains=[0.3] * 7,
        )

    def grip(self, grip: Grip) -> None:
        """Tell the fingers what to do."""
        for joint in FINGERS:
            self.world.setJointMotorControl2(
                self.body,
                joint,
                self.world.POSITION_CONTROL,
                targetPosition=grip.width,
                force=grip.newton,
                maxVelocity=grip.speed,
            )

    def read(self) -> NDArray[np.float64]:
        """Return what the sensors say, as `COLUMNS` names it."""
        joints = self.world.getJointStates(self.body, ARM)
        fingers = [state[0] for state in self.world.getJointStates(self.body, FINGERS)]
        place, turn = self.world.getLinkState(self.body, GRASP, computeForwardKinematics=1)[4:6]
        wrist = self.world.getJointState(self.body, WRIST)[2]
        grips = [self.force_on(joint) for joint in FINGERS]
        values = [state[i] for i in (0, 1, 3) for state in joints]
        return np.array([*values, *fingers, *place, *turn, *wrist, *grips])

    def hand(self) -> NDArray[np.float64]:
        """Return where the fingertips meet."""
        return np.array(self.world.getLinkState(self.body, GRASP, computeForwardKinematics=1)[4])

    def opening(self) -> float:
        """Return how far the fingers are apart."""
        return float(sum(state[0] for state in self.world.getJointStates(self.body, FINGERS)))

    def force_on(self, link: int) -> float:
        """Return the normal force of all contacts of a link."""
        return sum(
            (c[9] for c in self.world.getContactPoints(bodyA=self.body, linkIndexA=link)), 0.0
        )

    def touches(self, body: int) -> bool:
        """Tell whether any link touches a body."""
        return bool(self.world.getContactPoints(bodyA=self.body, bodyB=body))

    def _angles(self, hand: NDArray[np.float64]) -> Any:
        down = self.world.getQuaternionFromEuler([math.pi, 0.0, float(hand[3])])
        found = self.world.calculateInverseKinematics(
            self.body,
            GRASP,
            hand[:3].tolist(),
            down,
            lowerLimits=LOWER,
            upperLimits=UPPER,
            jointRanges=[b - a for a, b in zip(LOWER, UPPER, strict=True)],
            restPoses=REST_POSE,
            maxNumIterations=60,
            residualThreshold=1e-5,
        )
        return found[:7]


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
