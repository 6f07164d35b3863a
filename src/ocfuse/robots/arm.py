"""The Franka Panda: where its hand goes, how it grips, what its sensors say."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocfuse.robots.meshes import light_robot
from ocfuse.robots.world import World

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
