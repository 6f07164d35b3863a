"""One run of the cell, from its settings to frames, sensor values, labels and outcome."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ocfuse.lab.robot_cell.faults import fault_of
from ocfuse.lab.robot_cell.settings import Chance, Picture, RunSettings
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

#: Columns of what is true, which no robot measures: where the box is; how far the hand is
#: sent off its way; by how much fingers or box have moved from where they were when the
#: box was lifted, as long as it should be held; the share of the picture that shows
#: something strange; whether arm or box touched something strange since the last frame.
TRUTH = ("box_x", "box_y", "box_z", "deviation", "slip", "seen", "touched")


@dataclass
class Recording:
    """What is known of a run, one entry per frame.

    Times are seconds from its beginning; there are no frames if the camera was off. The names
    of `sensors` are `ocfuse.lab.robot_cell.world.COLUMNS`, those of `truth` are `TRUTH`.
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
        """Return which frames are anomalous."""
        return anomalous_frames(type_of(self.settings.kind), {c: self.fact(c) for c in TRUTH})


def record(settings: RunSettings, n_frames: int = 100, *, pictures: bool = True) -> Recording:
    """Let the arm do its task once, with frames evenly spread over its `SECONDS`.

    Without pictures a run takes a tenth of the time, and what is known by sight is 0.
    """
    n_steps = round(SECONDS * STEPS_PER_SECOND)
    looks = set(np.rint(np.arange(n_frames) * n_steps / n_frames).astype(int).tolist())
    with open_world() as world:
        run = _Run(world, settings)
        for step in range(n_steps):
            if step % 4 == 0:  # inverse kinematics and commands
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
        self.noise = settings.rng(Chance.SENSORS)
        # by the beginning of the names of columns
        noise = {"velocity": 0.002, "torque": 0.05, "wrist": 0.2, "grip": 0.2}
        self.spreads = np.array([noise.get(name.split("_")[0], 0.0) for name in COLUMNS])
        durations = np.array(settings.durations)
        self.ideal = Task(settings.pick, settings.place, durations)
        self.task = Task(self.fault.believed(settings.pick), settings.place, durations)
        self.arm.place_at(Pose(*HOME).array())
        self.was_touched = False
        self.grasp: NDArray[np.float64] | None = None

    def command(self, time: float) -> None:
        """Send the motors their commands."""
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
        sensors = self.arm.read()
        noise = self.spreads * self.noise.normal(size=len(sensors))
        self.recording.times.append(time)
        self.recording.moments.append(moment)
        self.recording.sensors.append(sensors + noise)
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


def is_as_meant(recording: Recording) -> bool:
    """Return whether what was meant to happen did; if not, the run should be drawn again.

    Without a fault, and behind an occlusion, the box is brought to its target. A grasp that
    should fail lifts nothing. A box that should be dropped is carried and ends elsewhere. An
    obstacle is touched by the arm or the box.
    """
    kind = type_of(recording.settings.kind)
    rise = float(np.max(recording.fact("box_z"))) - HALF_BOX
    place = recording.settings.place
    end = [recording.fact(f"box_{axis}")[-1] for axis in "xyz"]
    error = float(np.linalg.norm(np.array(end) - [place.x, place.y, place.z]))
    if kind == GRASP:
        return rise < 0.05
    is_carried = rise > 0.15
    if kind == DROP:
        return is_carried and error > 0.06
    if kind == OBSTACLE:
        return bool(recording.fact("touched").any())
    is_seen = kind != OCCLUSION or bool(recording.is_anomalous().any())
    return is_carried and error < 0.02 and is_seen
