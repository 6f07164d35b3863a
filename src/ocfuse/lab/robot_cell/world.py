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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ocfuse.lab.robot_cell.settings import Chance, Picture, RunSettings, surface
from ocfuse.lab.robot_cell.task import HALF_BOX, Pose
from ocfuse.system.packages import needed

#: Of the physics engine.
STEPS_PER_SECOND = 240

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


class World:
    """A pybullet server of its own; its functions are called as methods.

    Functions of pybullet are given the server they are for, constants are passed on. `data` is
    the folder of the robots that come with pybullet.
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


def robot_needs(package: str) -> Any:
    """Return a package that the cell needs, or say which extra brings it."""
    return needed(package, "for the simulated robot cell", "robots")


def engine() -> Any:
    """Return pybullet, which greets on stderr when it is imported."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)  # what C code writes too
        return robot_needs("pybullet")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def open_world() -> Iterator[World]:
    """Give a world that is closed at the end."""
    world = World()
    try:
        yield world
    finally:
        world.disconnect()


class Scene:
    """What stands and lies in the cell: table, wall, target and box."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        rng = settings.rng(Chance.SURFACES)
        table = solid(world, (0.65, 0.8, 0.02), (0.45, 0.0, -0.02), (1, 1, 1))
        paint(world, table, surface(settings.table, rng))
        wall = solid(world, (0.01, 0.9, 0.6), (-0.62, 0.0, 0.3), (1, 1, 1))
        paint(world, wall, surface(settings.wall, rng))
        world.changeDynamics(table, -1, lateralFriction=0.8)
        self._mark(world, settings.place)
        pick = settings.pick
        self.box = solid(world, (HALF_BOX,) * 3, (pick.x, pick.y, pick.z), settings.box, mass=0.1)
        turn = world.getQuaternionFromEuler([0, 0, pick.yaw])
        world.resetBasePositionAndOrientation(self.box, [pick.x, pick.y, pick.z], turn)
        world.changeDynamics(self.box, -1, lateralFriction=1.0)

    @staticmethod
    def _mark(world: World, place: Pose) -> None:
        """Draw the target on the table."""
        thickness = 0.001
        turn = world.getQuaternionFromEuler([0, 0, place.yaw])
        for half, height, colour in ((0.055, 1, (0.12, 0.28, 0.62)), (0.044, 2, (0.86, 0.88, 0.9))):
            shape = world.createVisualShape(
                world.GEOM_BOX, halfExtents=[half, half, thickness / 2], rgbaColor=[*colour, 1]
            )
            world.createMultiBody(
                0,
                baseVisualShapeIndex=shape,
                basePosition=[place.x, place.y, thickness * height / 2],
                baseOrientation=turn,
            )


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
    """A camera that looks at the cell, with square pictures."""

    #: Height and width of a picture.
    pixels: ClassVar = 128
    #: Where it stands, and where it looks.
    place: ClassVar = np.array([1.32, 0.06, 0.66])
    target: ClassVar = np.array([0.40, 0.0, 0.17])
    #: Angle of the picture, in degrees.
    angle: ClassVar = 40.0

    def __init__(self, world: World, settings: RunSettings) -> None:
        self.world = world
        self.settings = settings
        self._rng = settings.rng(Chance.CAMERA)
        self._view = world.computeViewMatrix(self.place.tolist(), self.target.tolist(), [0, 0, 1])
        self._lens = world.computeProjectionMatrixFOV(self.angle, 1.0, nearVal=0.05, farVal=4.0)

    def look(self) -> tuple[Picture, NDArray[np.int64]]:
        """Return what a perfect camera sees, and the body that each pixel shows."""
        light = self.settings.light
        width, height, colours, _, bodies = self.world.getCameraImage(
            self.pixels,
            self.pixels,
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

    @classmethod
    def before_lens(
        cls, right: float, up: float, distance: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where in the world a point before the lens is, and the turn of the picture.

        The point is given in half widths of the picture, from its middle. The turn is a
        quaternion that turns x to the right of the picture and y to its top.
        """
        forward = (cls.target - cls.place) / np.linalg.norm(cls.target - cls.place)
        side = np.cross(forward, [0.0, 0.0, 1.0])
        side /= np.linalg.norm(side)
        top = np.cross(side, forward)
        half = distance * math.tan(math.radians(cls.angle / 2))
        place = cls.place + distance * forward + half * (right * side + up * top)
        turn = Rotation.from_matrix(np.column_stack([side, top, -forward])).as_quat()
        return place, turn


@dataclass(frozen=True)
class Grip:
    """Where each finger shall go, from the middle of the hand; its force and its speed."""

    width: float
    newton: float = 25.0
    speed: float = 0.12


class Arm:
    """The arm in a world; joints and links are pybullet's numbers of them."""

    joints: ClassVar = tuple(range(7))
    fingers: ClassVar = (9, 10)
    #: Wrist sensor: between the last joint and the hand.
    wrist: ClassVar = 8
    #: The point between the fingertips.
    tip: ClassVar = 11
    #: How far each open finger is from the middle of the hand.
    open_width: ClassVar = 0.04
    rest_pose: ClassVar = (0.0, -0.35, 0.0, -2.4, 0.0, 2.05, math.pi / 4)

    def __init__(self, world: World) -> None:
        self.world = world
        self.body = world.loadURDF(str(light_robot(world.data)), useFixedBase=True)
        for joint in self.fingers:
            world.changeDynamics(
                self.body, joint, lateralFriction=1.2, frictionAnchor=1, spinningFriction=0.1
            )
            world.resetJointState(self.body, joint, self.open_width)
        for joint, angle in zip(self.joints, self.rest_pose, strict=True):
            world.resetJointState(self.body, joint, angle)
        # the real fingers share one drive; without it they would slide sideways with the box
        gear = world.createConstraint(
            self.body,
            self.fingers[0],
            self.body,
            self.fingers[1],
            world.JOINT_GEAR,
            [1, 0, 0],
            [0] * 3,
            [0] * 3,
        )
        world.changeConstraint(gear, gearRatio=-1, erp=0.1, maxForce=50)
        world.enableJointForceTorqueSensor(self.body, self.wrist, True)

    def place_at(self, hand: NDArray[np.float64]) -> None:
        """Put the hand somewhere at once, before the run."""
        for _ in range(50):  # inverse kinematics goes on from where the joints are
            for joint, angle in zip(self.joints, self._angles(hand), strict=True):
                self.world.resetJointState(self.body, joint, angle)

    def move_to(self, hand: NDArray[np.float64]) -> None:
        """Let the motors hold x, y, z and yaw of the hand."""
        self.world.setJointMotorControlArray(
            self.body,
            self.joints,
            self.world.POSITION_CONTROL,
            targetPositions=self._angles(hand),
            forces=(87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
            positionGains=[0.3] * 7,
        )

    def grip(self, grip: Grip) -> None:
        """Tell the fingers what to do."""
        for joint in self.fingers:
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
        joints = self.world.getJointStates(self.body, self.joints)
        fingers = [state[0] for state in self.world.getJointStates(self.body, self.fingers)]
        place, turn = self.world.getLinkState(self.body, self.tip, computeForwardKinematics=1)[4:6]
        wrist = self.world.getJointState(self.body, self.wrist)[2]
        grips = [self.force_on(joint) for joint in self.fingers]
        values = [state[i] for i in (0, 1, 3) for state in joints]
        return np.array([*values, *fingers, *place, *turn, *wrist, *grips])

    def hand(self) -> NDArray[np.float64]:
        """Return where the fingertips meet."""
        return np.array(self.world.getLinkState(self.body, self.tip, computeForwardKinematics=1)[4])

    def opening(self) -> float:
        """Return how far the fingers are apart."""
        return float(sum(state[0] for state in self.world.getJointStates(self.body, self.fingers)))

    def force_on(self, link: int) -> float:
        """Return the normal force of all contacts of a link."""
        return sum(
            (c[9] for c in self.world.getContactPoints(bodyA=self.body, linkIndexA=link)), 0.0
        )

    def touches(self, body: int) -> bool:
        """Return whether any link touches a body."""
        return bool(self.world.getContactPoints(bodyA=self.body, bodyB=body))

    def _angles(self, hand: NDArray[np.float64]) -> Any:
        lower = (-2.9, -1.76, -2.9, -3.07, -2.9, -0.02, -2.9)
        upper = (2.9, 1.76, 2.9, -0.07, 2.9, 3.75, 2.9)
        down = self.world.getQuaternionFromEuler([math.pi, 0.0, float(hand[3])])
        found = self.world.calculateInverseKinematics(
            self.body,
            self.tip,
            hand[:3].tolist(),
            down,
            lowerLimits=lower,
            upperLimits=upper,
            jointRanges=[b - a for a, b in zip(lower, upper, strict=True)],
            restPoses=self.rest_pose,
            maxNumIterations=60,
            residualThreshold=1e-5,
        )
        return found[:7]


@cache
def light_robot(data: Path) -> Path:
    """Return the URDF of a robot that looks like pybullet's, made once per process.

    Its folder goes with the process.
    """
    folder = Path(_kept_folder().name) / "franka_panda"
    shutil.copytree(data / folder.name, folder)
    for mesh in sorted((folder / "meshes" / "visual").glob("*.obj")):
        mesh.write_text(simplified(mesh.read_text(encoding="utf-8")), encoding="utf-8")
    return folder / "panda.urdf"


@cache
def _kept_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="ocfuse-robot-")


def simplified(text: str, cell: float = 0.008) -> str:
    """Return a mesh of triangles, in the format OBJ, with the corners in one cell made one.

    The edge of a cell is by default about a pixel of the camera.
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
    arrays = {
        name: np.array(" ".join(lines).split(), dtype=np.float64).reshape(len(lines), -1)
        for name, lines in points.items()
    }
    lines: list[str] = []
    n_corners = 0
    for heads, faces in parts:
        # numbers of point, texture (-1 if there is none) and normal of each corner
        numbers = " ".join(faces).replace("//", "/0/").replace("/", " ").split()
        corners, triangles = _merged(
            np.array(numbers, dtype=np.int64).reshape(-1, 3) - 1, arrays, cell
        )
        lines += [*heads, *corners]
        lines += ["f " + " ".join(f"{i}/{i}/{i}" for i in t) for t in triangles + n_corners + 1]
        n_corners += len(corners) // 3
    return "\n".join(lines) + "\n"


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
    # triangles that begin with their smallest number and turn as they did
    numbered = group.reshape(-1, 3)
    order = (numbered.argmin(axis=1)[:, None] + np.arange(3)) % 3
    numbered = np.take_along_axis(numbered, order, axis=1)
    triangles, index = np.unique(numbered, axis=0, return_index=True)
    first, second, third = where.reshape(-1, 3)[index].T
    has_area = (first != second) & (second != third) & (third != first)
    lines = [
        " ".join([word, *(f"{value:.6f}" for value in values)])
        for corner in zip(*means, strict=True)
        for word, values in zip(("v", "vt", "vn"), corner, strict=True)
    ]
    return lines, triangles[has_area]


def _groups(keys: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the group of each row of whole numbers, and the sizes of groups."""
    whole = (keys - keys.min(axis=0)).astype(np.int64)
    flat = np.ravel_multi_index(tuple(whole.T), tuple(whole.max(axis=0) + 1))
    _, group, counts = np.unique(flat, return_inverse=True, return_counts=True)
    return group, counts


def _mean(
    values: NDArray[np.float64], group: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    columns = [np.bincount(group, values[:, j], len(counts)) for j in range(values.shape[1])]
    return np.column_stack(columns) / counts[:, None]
