"""One run of the cell, from its settings to frames, sensor values, labels and outcome."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocfuse.lab.robot_cell.faults import fault_of
from ocfuse.lab.robot_cell.settings import Picture, RunSettings
from ocfuse.lab.robot_cell.task import (
    HALF_BOX,
    HOME,
    SECONDS,
    Pose,
    Task,
    TaskMoment,
    anomalous_frames,
)
from ocfuse.lab.robot_cell.world import (
    COLUMNS,
    STEPS_PER_SECOND,
    Arm,
    Camera,
    Scene,
    World,
    open_world,
)
from ocfuse.vision.trials import DROP, GRASP, OBSTACLE, OCCLUSION, type_of

#: Inverse kinematics and commands come once in so many steps of the engine.
STEPS_PER_COMMAND = 4
#: Of which `Settings.rng` draws the noise of sensors.
SENSORS = 4
#: Spread of the noise of sensors, by the begin of the names of columns.
NOISE = {"velocity": 0.002, "torque": 0.05, "wrist": 0.2, "grip": 0.2}
SPREADS = np.array([NOISE.get(name.split("_")[0], 0.0) for name in COLUMNS])

#: Columns of what is true, which no robot measures: where the box is; how far the hand is
#: sent off its way; by how much fingers or box have moved from where they were when the
#: box was lifted, as long as it should be held; the share of the picture that shows
#: something strange; whether arm or box touched something strange since the last frame.
TRUTH = ("box_x", "box_y", "box_z", "deviation", "slip", "seen", "touched")

#: Of the box from its target, at the end: nearer is there, farther is not.
THERE, NOT_THERE = 0.02, 0.06
#: The box is lifted if it rises so far, carried if it rises so far.
LIFTED, CARRIED = 0.05, 0.15


@dataclass
class Recording:
    """What is known of a run, one entry per frame.

    Attributes
    ----------
    settings : RunSettings
        Of the run.
    times : list of float
        Seconds from its beginning.
    moments : list of Moment
        What the controller was doing.
    frames : list of ndarray
        Pictures; empty if nobody looked.
    sensors : list of ndarray
        As `ocfuse.lab.robot_cell.world.COLUMNS` names them.
    truth : list of list of float
        As `TRUTH` names them.
    """

    settings: RunSettings
    times: list[float] = field(default_factory=list)
    moments: list[TaskMoment] = field(default_factory=list)
    frames: list[Picture] = field(default_factory=list)
    sensors: list[NDArray[np.float64]] = field(default_factory=list)
    truth: list[list[float]] = field(default_factory=list)

    def fact(self, name: str) -> NDArray[np.float64]:
        """Return a column of the truth."""
        return np.array(self.truth)[:, TRUTH.index(name)]

    def is_anomalous(self) -> NDArray[np.bool_]:
        """Tell which frames are anomalous."""
        return anomalous_frames(type_of(self.settings.kind), {c: self.fact(c) for c in TRUTH})


def record(settings: RunSettings, n_frames: int = 100, *, pictures: bool = True) -> Recording:
    """Let the arm do its task once.

    Parameters
    ----------
    settings : RunSettings
        Of the run.
    n_frames : int, default=100
        Frames of the run, evenly spread over its `SECONDS`.
    pictures : bool, default=True
        Whether the camera looks; without, a run takes a tenth of the time, and what is
        told by sight is 0.

    Returns
    -------
    Recording
        What was seen and measured.
    """
    n_steps = round(SECONDS * STEPS_PER_SECOND)
    looks = set(np.rint(np.arange(n_frames) * n_steps / n_frames).astype(int).tolist())
    with open_world() as world:
        run = _Run(world, settings)
        for step in range(n_steps):
            if step % STEPS_PER_COMMAND == 0:
                run.command(step / STEPS_PER_SECOND)
            if step in looks:
                run.note(step / STEPS_PER_SECOND, pictures)
            run.advance(step / STEPS_PER_SECOND)
        return run.recording


class _Run:
    """A run that is going on."""

    def __init__(self, world: World, settings: RunSettings) -> None:
        self.world = world
        self.recording = Recording(settings)
        self.scene = Scene(world, settings)
        self.arm = Arm(world)
        self.camera = Camera(world, settings)
        self.fault = fault_of(world, settings)
        self.noise = settings.rng(SENSORS)
        durations = np.array(settings.durations)
        self.ideal = Task(settings.pick, settings.place, durations)
        self.task = Task(self.fault.believed(settings.pick), settings.place, durations)
        self.arm.place_at(Pose(*HOME).array())
        self.was_touched = False
        self.grasp: NDArray[np.float64] | None = None

    def command(self, time: float) -> None:
        """Tell the motors what to do."""
        moment = self.task.moment(time)
        self.arm.move_to(self.task.hand(moment))
        self.arm.grip(self.fault.grip(moment))
        if moment.phase == "lift" and self.grasp is None:
            self.grasp = self._held()

    def advance(self, time: float) -> None:
        """Let the world go on by a step."""
        self.fault.act(time)
        self.world.stepSimulation()
        self.was_touched = self.was_touched or self.fault.touched(self.arm, self.scene.box)

    def note(self, time: float, pictures: bool) -> None:
        """Write down what is seen, measured and true."""
        moment = self.task.moment(time)
        seen = self._look(time) if pictures else 0.0
        self.recording.times.append(time)
        self.recording.moments.append(moment)
        self.recording.sensors.append(self._noisy(self.arm.read()))
        self.recording.truth.append([*self._facts(moment), seen, float(self.was_touched)])
        self.was_touched = False

    def _look(self, time: float) -> float:
        self.fault.arrange(time)
        picture, bodies = self.camera.look()
        if self.fault.withdraw(bodies):
            picture, bodies = self.camera.look()
        self.recording.frames.append(self.camera.expose(self.fault.spoil(picture, time)))
        return self.fault.seen(bodies, time)

    def _facts(self, moment: TaskMoment) -> list[float]:
        """Return where the box is, how far the hand is off, and how far the grip."""
        error = np.linalg.norm(self.task.hand(moment)[:3] - self.ideal.hand(moment)[:3])
        slip = 0.0
        if self.grasp is not None and self.task.is_gripping(moment):
            slip = float(np.max(self._held() - self.grasp))
        return [*self._box().tolist(), float(error), slip]

    def _held(self) -> NDArray[np.float64]:
        """Return how far the fingers are open, and how far the box is from the hand."""
        distance = np.linalg.norm(self._box() - self.arm.hand())
        return np.array([self.arm.opening(), distance])

    def _box(self) -> NDArray[np.float64]:
        return np.array(self.world.getBasePositionAndOrientation(self.scene.box)[0])

    def _noisy(self, sensors: NDArray[np.float64]) -> NDArray[np.float64]:
        return sensors + SPREADS * self.noise.normal(size=len(sensors))


def is_as_meant(recording: Recording) -> bool:
    """Tell whether what was meant to happen did.

    Without a fault, and behind an occlusion, the box is brought to its target. A grasp that
    should fail lifts nothing. A box that should be dropped is carried and ends elsewhere. An
    obstacle is touched by the arm or the box.

    Parameters
    ----------
    recording : Recording
        The run.

    Returns
    -------
    bool
        If False, the run should be drawn again.
    """
    kind = type_of(recording.settings.kind)
    rise = float(np.max(recording.fact("box_z"))) - HALF_BOX
    place = recording.settings.place
    end = [recording.fact(f"box_{axis}")[-1] for axis in "xyz"]
    error = float(np.linalg.norm(np.array(end) - [place.x, place.y, place.z]))
    if kind == GRASP:
        return rise < LIFTED
    if kind == DROP:
        return rise > CARRIED and error > NOT_THERE
    if kind == OBSTACLE:
        return bool(recording.fact("touched").any())
    is_seen = kind != OCCLUSION or bool(recording.is_anomalous().any())
    return rise > CARRIED and error < THERE and is_seen
